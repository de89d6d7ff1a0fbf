//! `branchline_error`: what went wrong, for people and for programs.

use std::ffi::{CString, c_char};

use crate::boundary::{export, peek};
use crate::handle::{self, Object, Table};
use crate::output::c_string;
use crate::status::branchline_status;

/// What went wrong: a status, a sentence that says what to do next, and the file it is about.
pub struct branchline_error {
    _opaque: [u8; 0],
}

/// A failure on its way to the host.
#[derive(Debug)]
pub(crate) struct Failure {
    status: branchline_status,
    message: String,
    path: Option<Vec<u8>>,
}

impl Failure {
    pub(crate) fn new(status: branchline_status, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), path: None }
    }

    pub(crate) fn status(&self) -> branchline_status {
        self.status
    }
}

impl From<branchline_status> for Failure {
    fn from(status: branchline_status) -> Failure {
        Failure::new(status, "")
    }
}

impl From<branchline_core::Error> for Failure {
    fn from(error: branchline_core::Error) -> Failure {
        Failure {
            status: branchline_status::of(error.code()),
            message: error.message().to_owned(),
            path: error.path().map(|path| path.as_os_str().as_encoded_bytes().to_vec()),
        }
    }
}

pub(crate) struct ErrorObject {
    status: branchline_status,
    message: CString,
    path: Option<CString>,
}

impl From<Failure> for ErrorObject {
    fn from(failure: Failure) -> ErrorObject {
        let Failure { status, message, path } = failure;
        ErrorObject { status, message: c_string(message), path: path.map(c_string) }
    }
}

static ERRORS: Table<ErrorObject> = Table::new();

impl Object for ErrorObject {
    type C = branchline_error;
    const KIND: usize = 1;
    const NAME: &'static str = "error";
    fn table() -> &'static Table<Self> {
        &ERRORS
    }
}

/// The status the failed call returned. OK for NULL or what is no error.
///
/// Ownership: borrows `error`.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_error_status(error: *const branchline_error) -> branchline_status {
    peek(branchline_status::OK, || handle::peek::<ErrorObject>(error).map(|error| error.status))
}

/// One sentence for people: what was wrong and what to do. UTF-8, never NULL; empty for NULL or what is no error.
///
/// Ownership: the string belongs to `error` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_error_message(error: *const branchline_error) -> *const c_char {
    peek(c"".as_ptr(), || handle::peek::<ErrorObject>(error).map(|error| error.message.as_ptr()))
}

/// The file the error is about, or NULL.
///
/// Ownership: the string belongs to `error` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_error_path(error: *const branchline_error) -> *const c_char {
    peek(std::ptr::null(), || handle::peek::<ErrorObject>(error)?.path.as_ref().map(|path| path.as_ptr()))
}

/// Frees an error. NULL is fine.
///
/// Ownership: takes `error`.
/// Threads: any.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_error_free(error: *mut branchline_error) -> branchline_status {
    export!(std::ptr::null_mut(), { handle::take::<ErrorObject>(error).map(drop) })
}
