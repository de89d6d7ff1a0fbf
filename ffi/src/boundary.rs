//! The way into and out of every exported function.
//!
//! Hazard: a panic that unwinds into C is undefined behaviour, and Rust's default hook would print it to the host's
//! stderr. So every function runs its body in [`run`] (or [`peek`], for accessors that cannot report): it refuses to
//! work in a forked child, catches panics, and turns failures into a status and an error object. The hook, installed
//! with the first engine, keeps what the panic said instead of printing it; this library has its own copy of Rust's
//! runtime, so no other code's panics are affected.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use crate::error::{Failure, branchline_error};
use crate::fork_guard;
use crate::output;
use crate::status::branchline_status;

/// The body of an exported function: a block that gives `Result<(), Failure>`.
///
/// One `unsafe` for all that is done with the host's pointers in it: they are NULL or as the header demands, which only
/// the host can know.
macro_rules! export {
    ($error:expr, $body:block) => {
        $crate::boundary::run($error, || {
            #[allow(unused_unsafe)]
            // SAFETY: the host passes NULL or pointers that are valid as the function's documentation demands.
            unsafe {
                $body
            }
        })
    };
}
pub(crate) use export;

/// The body of an exported function that asks for something and gives it as a text, which is JSON.
macro_rules! gives_text {
    ($error:expr, $out:expr, $text:expr) => {
        $crate::boundary::export!($error, {
            $crate::output::required($out, "out_json")?;
            $crate::output::string($out, Some($text));
            Ok(())
        })
    };
}
pub(crate) use gives_text;

/// The same for a value; a null goes out as the text "null".
macro_rules! gives_json {
    ($error:expr, $out:expr, $value:expr) => {
        $crate::boundary::gives_text!($error, $out, branchline_core::json::to_string(&$value))
    };
}
pub(crate) use gives_json;

pub(crate) fn run(error: *mut *mut branchline_error, body: impl FnOnce() -> Result<(), Failure>) -> branchline_status {
    if fork_guard::is_child() {
        return branchline_status::FORKED;
    }
    // A second net: reporting the failure runs our code as well.
    let reported = catch_unwind(AssertUnwindSafe(|| {
        let failure = match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => return branchline_status::OK,
            Ok(Err(failure)) => failure,
            Err(_) => Failure::new(branchline_status::PANIC, panic_message()),
        };
        let status = failure.status();
        // SAFETY: the host passes NULL or a pointer to where an error handle may be stored.
        unsafe { output::error(error, failure) };
        status
    }));
    reported.unwrap_or(branchline_status::PANIC)
}

/// For accessors: what `body` gives, or `otherwise` after a fork or panic.
pub(crate) fn peek<T>(otherwise: T, body: impl FnOnce() -> Option<T>) -> T {
    if fork_guard::is_child() {
        return otherwise;
    }
    catch_unwind(AssertUnwindSafe(body)).ok().flatten().unwrap_or(otherwise)
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps panics from being printed.
pub(crate) fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(remember)));
}

fn remember(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let said = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let said = said.unwrap_or("no message");
    let text = match info.location() {
        Some(place) => format!("{said} ({}:{})", place.file(), place.line()),
        None => said.to_owned(),
    };
    let _ = PANIC.try_with(|slot| slot.replace(Some(text)));
}

fn panic_message() -> String {
    let said = PANIC.try_with(|slot| slot.take()).ok().flatten().unwrap_or_else(|| "no message".to_owned());
    format!("a fault inside the library, please report it: {said}")
}

/// Panics, to test what happens then: a typed error, and the process lives. For tests only; part of the ABI so that
/// every host language can prove it.
///
/// Ownership: takes nothing.
/// Threads: any.
/// Errors: always PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_test_panic(error: *mut *mut branchline_error) -> branchline_status {
    silence_panics();
    export!(error, { panic!("a panic on request") })
}
