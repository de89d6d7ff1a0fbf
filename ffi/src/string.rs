//! Strings the library hands out.

use std::ffi::{CString, c_char};

use crate::boundary::export;
use crate::status::branchline_status;

/// Frees a string that the library handed out through a `char **`. NULL is fine.
///
/// Ownership: takes `string`; it must have come from this library and not be freed yet. Strings that are `const char *`
/// belong to someone else: do not free them.
/// Threads: any.
/// Errors: FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_string_free(string: *mut c_char) -> branchline_status {
    export!(std::ptr::null_mut(), {
        if !string.is_null() {
            drop(CString::from_raw(string));
        }
        Ok(())
    })
}
