//! Text on its way to a person's screen.

use std::ffi::c_char;

use branchline_core::sanitize_for_display;

use crate::boundary::export;
use crate::error::branchline_error;
use crate::input;
use crate::output;
use crate::status::branchline_status;

/// Takes out of a text what a terminal would obey and what changes the order in which it is read: escape sequences with their
/// content (colours, titles, links), other control characters but LF and TAB, and the controls of bidirectional text. CR LF
/// becomes LF, and so does a CR by itself. A sequence that does not end in its line loses only its beginning, so that it hides
/// nothing. The library stores and tells text as it came: use this for what is shown. For HTML escape what comes out.
///
/// Ownership: borrows `text`; `out_text` is yours: free it with branchline_string_free. It holds no NUL.
/// Threads: any.
/// Errors: INVALID_ARGUMENT when the text is no UTF-8, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_sanitize_for_display(
    text: *const c_char,
    length: usize,
    out_text: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_text, "out_text")?;
        let text = input::text_n(text, length, "text")?;
        output::string(out_text, Some(sanitize_for_display(text).into_owned()));
        Ok(())
    })
}
