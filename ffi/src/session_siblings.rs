//! Further sessions from one: siblings over the same tree, and others in its place.

use std::ffi::c_char;

use branchline_core::Session;
use branchline_core::session::BranchForm;

use crate::block_on::block_on;
use crate::boundary::export;
use crate::error::{Failure, branchline_error};
use crate::handle;
use crate::input;
use crate::output;
use crate::session::{SessionObject, branchline_session};
use crate::status::branchline_status;

/// Opens another live session over the same tree and file: a sibling, with its own leaf, queues, model, tools, events and
/// run. Nothing it does moves this session. `options_json` may be NULL: `{"at"?,"model"?,"thinkingLevel"?,"tools"?}`.
/// Without "at" it begins at the leaf, with an id at that entry, with null before the first entry. What is left out of
/// the rest is what the path to that entry says, else as in this session.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free, in any order with this
/// one. The file stays open for writing until the last of them is closed.
/// Threads: any, also from inside callbacks and while this session runs.
/// Errors: ENTRY_NOT_FOUND, UNKNOWN_MODEL, UNKNOWN_TOOL, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_branch(
    session: *mut branchline_session,
    options_json: *const c_char,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_session, "out_session")?;
        let session = handle::get::<SessionObject>(session)?;
        let form: BranchForm = input::form(options_json, "options_json")?;
        let sibling = block_on(session.core.branch(form.at, form.options))?;
        output::handle(out_session, session.sibling(sibling)?);
        Ok(())
    })
}

/// Which of the sessions over its file this is: 0 for the one that opened or made the file, 1, 2 and so on for its siblings in
/// the order of branching. branchline_event_sibling tells whose an event is.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_sibling(
    session: *const branchline_session,
    out_sibling: *mut u32,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_sibling, "out_sibling")?;
        output::put(out_sibling, handle::get::<SessionObject>(session)?.core.sibling());
        Ok(())
    })
}

/// Whether both are sessions over one tree.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_is_sibling_of(
    session: *const branchline_session,
    other: *const branchline_session,
    out_answer: *mut bool,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_answer, "out_answer")?;
        let (session, other) = (handle::get::<SessionObject>(session)?, handle::get::<SessionObject>(other)?);
        output::put(out_answer, session.core.is_sibling_of(&other.core));
        Ok(())
    })
}

/// Moves the session to where a sibling stands, which is how an exploration is decided. `options_json` may be NULL:
/// `{"summarizeOthers"?,"others"?,"instructions"?,"replaceInstructions"?}`. With "summarizeOthers" the model writes one
/// summary of what the other siblings of the winner's exploration (or the entries listed in "others") found, which is
/// stored there. The result is JSON as of branchline_session_navigate.
///
/// Ownership: borrows everything, `winner` as well; `out_json` may be NULL, otherwise it is yours: free it with
/// branchline_string_free.
/// Threads: any, also from inside callbacks. With "summarizeOthers" it blocks until the model has answered.
/// Errors: RUNNING, COMPACTING, NO_MODEL, SUMMARY_FAILED, ENTRY_NOT_FOUND, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT (also
/// for a winner over another tree), INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_adopt(
    session: *mut branchline_session,
    winner: *const branchline_session,
    options_json: *const c_char,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let winner = handle::get::<SessionObject>(winner)?;
        let result = block_on(session.core.adopt(&winner.core, input::form(options_json, "options_json")?))?;
        output::string(out_json, Some(crate::json::navigated(&result)));
        Ok(())
    })
}

/// Makes a new, empty session beside this one: in the same directory, with the same model, tools and settings.
/// `options_json` may be NULL: `{"recordParent"?,"name"?}`; with "recordParent" its header names this session's file. This
/// session stays as it is.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks.
/// Errors: NOT_SAVED when this session should be recorded and has no file yet, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT,
/// INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_new_session(
    session: *mut branchline_session,
    options_json: *const c_char,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_session, "out_session")?;
        let session = handle::get::<SessionObject>(session)?;
        let new = block_on(session.core.new_session(input::form(options_json, "options_json")?))?;
        output::handle(out_session, session.sibling(new)?);
        Ok(())
    })
}

/// # Safety
/// The pointers are as the header demands of the two functions below.
unsafe fn replace<F: Future<Output = branchline_core::Result<Session>>>(
    session: *mut branchline_session,
    path: *const c_char,
    out_session: *mut *mut branchline_session,
    with: impl FnOnce(Session, std::path::PathBuf) -> F,
) -> Result<(), Failure> {
    output::required(out_session, "out_session")?;
    let session = handle::get::<SessionObject>(session)?;
    // SAFETY: as this function's.
    let path = unsafe { input::optional_path(path) }.ok_or_else(|| input::invalid("path is NULL"))?;
    let next = block_on(with(session.core.clone(), path))?;
    // SAFETY: as this function's.
    unsafe { output::handle(out_session, session.sibling(next)?) };
    Ok(())
}

/// Opens another session file in place of this session: when it is open, what runs here is aborted and stored and this
/// session is closed. On any error this session is as it was. `options_json` may be NULL: `{"cwd"?}`, a working directory
/// for when the file's own is gone.
///
/// Ownership: borrows everything, `session` still has to be freed; `out_session` is yours: free it with
/// branchline_session_free.
/// Threads: any, also from inside callbacks. Blocks while the file is read.
/// Errors: INVALID_SESSION_FILE, SESSION_LOCKED, WORKING_DIRECTORY_MISSING, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT,
/// INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_switch(
    session: *mut branchline_session,
    path: *const c_char,
    options_json: *const c_char,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let options = input::form(options_json, "options_json")?;
        replace(session, path, out_session, |core, path| async move { core.switch(path, options).await })
    })
}

/// Copies a session file into this session's directory and opens the copy in place of this session, as
/// branchline_session_switch does.
///
/// Ownership: as branchline_session_switch.
/// Threads: as branchline_session_switch.
/// Errors: as branchline_session_switch; STORAGE_FAILED also when there is no such file, INVALID_ARGUMENT also for a session
/// in memory, which has no directory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_import_session(
    session: *mut branchline_session,
    path: *const c_char,
    options_json: *const c_char,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let options = input::form(options_json, "options_json")?;
        replace(session, path, out_session, |core, path| async move { core.import_session(path, options).await })
    })
}
