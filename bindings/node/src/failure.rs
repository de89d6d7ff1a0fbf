//! Errors on their way to JavaScript: a JSON text `{code, message, path}`, which becomes a `BranchlineError` there.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use branchline::{Error, ErrorCode, Result};
use serde_json::json;

/// The error as JSON. The message names the path, as the errors of Node itself do.
pub(crate) fn to_json(error: &Error) -> String {
    let path = error.path().map(|path| path.to_string_lossy());
    json!({"code": error.code().name(), "message": error.to_string(), "path": path}).to_string()
}

/// Runs a synchronous call. Its error, or its panic, is thrown in JavaScript; nothing unwinds into Node.
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T>) -> napi::Result<T> {
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panicked(&*payload)));
    result.map_err(|error| napi::Error::from_reason(to_json(&error)))
}

/// The error that a panic becomes.
pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Error {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    Error::new(ErrorCode::Internal, format!("a fault inside the library, please report it: {text}"))
}
