//! Entries a host adds itself: labels, the name, data and messages of its own.

use std::ffi::c_char;

use crate::block_on::block_on;
use crate::boundary::export;
use crate::error::{Failure, branchline_error};
use crate::handle;
use crate::input;
use crate::output;
use crate::session::{SessionObject, branchline_session};
use crate::status::branchline_status;

/// Sets the label of an entry, or clears it when `label` is NULL. The label entry becomes the leaf.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise the new entry's id is yours: free it with
/// branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: ENTRY_NOT_FOUND, READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_set_label(
    session: *mut branchline_session,
    entry_id: *const c_char,
    label: *const c_char,
    out_id: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let target = input::text(entry_id, "entry_id")?;
        let label = input::optional_text(label, "label")?;
        let id = block_on(session.core.set_label(target, label))?;
        output::string(out_id, Some(id));
        Ok(())
    })
}

/// Sets the session's name; an empty one clears it.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_set_name(
    session: *mut branchline_session,
    name: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        Ok(block_on(session.core.set_name(input::text(name, "name")?))?)
    })
}

/// # Safety
/// The pointers are as the header demands of the functions below.
unsafe fn custom(
    session: *mut branchline_session,
    custom_type: *const c_char,
    data: Option<&str>,
    out_id: *mut *mut c_char,
) -> Result<(), Failure> {
    let session = handle::get::<SessionObject>(session)?;
    // SAFETY: as this function's.
    let custom_type = unsafe { input::text(custom_type, "custom_type") }?;
    let data = data.map(|data| input::json(data, "data_json")).transpose()?;
    let id = block_on(session.core.append_custom(custom_type, data))?;
    // SAFETY: as this function's.
    unsafe { output::string(out_id, Some(id)) };
    Ok(())
}

/// Stores data of the host that the model never sees. `data_json` is any JSON, or NULL for none.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise the new entry's id is yours: free it with
/// branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_append_custom(
    session: *mut branchline_session,
    custom_type: *const c_char,
    data_json: *const c_char,
    out_id: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { custom(session, custom_type, input::optional_text(data_json, "data_json")?, out_id) })
}

/// branchline_session_append_custom for a text that is not NUL-terminated.
///
/// Ownership: as branchline_session_append_custom.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_append_custom.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_append_custom_n(
    session: *mut branchline_session,
    custom_type: *const c_char,
    data_json: *const c_char,
    length: usize,
    out_id: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { custom(session, custom_type, Some(input::text_n(data_json, length, "data_json")?), out_id) })
}

/// Stores a message of the host that the model sees. `content_json` is a JSON string or a list of text and image blocks;
/// `display` tells whether it is meant to be shown to people; `details_json` is any JSON for the host, or NULL.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise it gets the new entry's id, or NULL when a run is
/// active, as the message is stored after the current turn then. It is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_append_custom_message(
    session: *mut branchline_session,
    custom_type: *const c_char,
    content_json: *const c_char,
    display: bool,
    details_json: *const c_char,
    out_id: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let custom_type = input::text(custom_type, "custom_type")?;
        let content = input::json(input::text(content_json, "content_json")?, "content_json")?;
        let details = input::optional_text(details_json, "details_json")?;
        let details = details.map(|details| input::json(details, "details_json")).transpose()?;
        let id = block_on(session.core.append_custom_message(custom_type, content, display, details))?;
        output::string(out_id, id);
        Ok(())
    })
}
