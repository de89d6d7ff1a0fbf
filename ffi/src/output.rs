//! What goes out: written only on success, and only where the host gave a place for it.

use std::ffi::{CString, c_char};

use serde::Serialize;

use crate::error::{ErrorObject, Failure, branchline_error};
use crate::handle::{Handle, Object};
use crate::status::branchline_status;

/// Fails when the place for a result is missing.
pub(crate) fn required<T>(out: *mut T, name: &str) -> Result<(), Failure> {
    match out.is_null() {
        true => Err(Failure::new(branchline_status::INVALID_ARGUMENT, format!("{name} is NULL"))),
        false => Ok(()),
    }
}

/// Stores a value. Does nothing for NULL.
///
/// # Safety
/// `out` is NULL or valid for writing.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: not NULL, and valid for writing by contract.
        unsafe { out.write(value) };
    }
}

/// Hands an object over.
///
/// # Safety
/// `out` is NULL or valid for writing.
pub(crate) unsafe fn handle<T: Object>(out: *mut *mut T::C, handle: Handle<T>) {
    if !out.is_null() {
        // SAFETY: as this function's.
        unsafe { put(out, handle.into_token()) };
    }
}

/// Hands a string over, NULL for `None`.
///
/// # Safety
/// `out` is NULL or valid for writing.
pub(crate) unsafe fn string(out: *mut *mut c_char, text: Option<impl Into<Vec<u8>>>) {
    if !out.is_null() {
        let text = text.map_or(std::ptr::null_mut(), |text| c_string(text).into_raw());
        // SAFETY: as this function's.
        unsafe { put(out, text) };
    }
}

/// Hands a value over as JSON text, for results that the host may not want; who must take it has `gives_json!`.
///
/// # Safety
/// `out` is NULL or valid for writing.
pub(crate) unsafe fn json(out: *mut *mut c_char, value: &impl Serialize) {
    if !out.is_null() {
        // SAFETY: as this function's.
        unsafe { string(out, Some(branchline_core::json::to_string(value))) };
    }
}

/// Hands an error over. Replaces whatever the host's variable holds.
///
/// # Safety
/// `out` is NULL or valid for writing.
pub(crate) unsafe fn error(out: *mut *mut branchline_error, failure: Failure) {
    if out.is_null() || !failure.status().has_error() {
        return;
    }
    if let Ok(error) = Handle::new(ErrorObject::from(failure)) {
        // SAFETY: as this function's.
        unsafe { handle(out, error) };
    }
}

/// A C string. A NUL inside, which C could not see past, becomes U+FFFD.
pub(crate) fn c_string(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).unwrap_or_else(|error| {
        let text = error.into_vec();
        let parts: Vec<&[u8]> = text.split(|byte| *byte == 0).collect();
        CString::new(parts.join("\u{FFFD}".as_bytes())).unwrap_or_default()
    })
}
