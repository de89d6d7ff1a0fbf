//! Looking at the tree of a session, moving in it, and copying paths out of it.

use std::ffi::c_char;

use branchline_core::ForkPosition;

use crate::block_on::block_on;
use crate::boundary::{export, gives_text};
use crate::error::{Failure, branchline_error};
use crate::handle;
use crate::input::{self, invalid};
use crate::options::{self, branchline_navigate_options};
use crate::session::{SessionObject, branchline_session};
use crate::status::branchline_status;
use crate::{json, output};

/// The whole tree as JSON: `{"leaf":ID|null,"entries":[{"id","type","role"?,"parentId","label"?,"labelTimestamp"?}]}`,
/// every entry once, parents before their children, siblings oldest first.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_tree(
    session: *const branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_text!(error, out_json, {
        let session = handle::get::<SessionObject>(session)?;
        json::tree(&session.core.tree(), session.core.leaf().as_deref())
    })
}

/// The path from the root to an entry, as a JSON list of ids. NULL for `entry_id` is the path to the leaf.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: ENTRY_NOT_FOUND, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_tree_branch(
    session: *const branchline_session,
    entry_id: *const c_char,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_text!(error, out_json, {
        let session = handle::get::<SessionObject>(session)?;
        let leaf = leaf_or(&session.core, input::optional_text(entry_id, "entry_id")?)?;
        json::branch(&session.core.tree(), leaf.as_deref())
    })
}

/// The entry that was named, else the one the session stands on.
fn leaf_or(session: &branchline_core::Session, entry: Option<&str>) -> Result<Option<String>, Failure> {
    match entry {
        Some(id) if !session.tree().contains(id) => Err(not_found(id)),
        Some(id) => Ok(Some(id.to_owned())),
        None => Ok(session.leaf()),
    }
}

fn not_found(id: &str) -> Failure {
    Failure::new(branchline_status::ENTRY_NOT_FOUND, format!("the session has no entry {id:?}"))
}

/// One entry as its line stands in the file, byte for byte (so where another program wrote it, it may not be UTF-8), with
/// a NUL behind it. `out_length`, which may be NULL, gets the number of bytes without that.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Reads the file.
/// Errors: ENTRY_NOT_FOUND, STORAGE_FAILED, STORAGE_CHANGED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_entry(
    session: *const branchline_session,
    entry_id: *const c_char,
    out_json: *mut *mut c_char,
    out_length: *mut usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_json, "out_json")?;
        let session = handle::get::<SessionObject>(session)?;
        let id = input::text(entry_id, "entry_id")?;
        let entry = session.core.tree().entry(id)?.ok_or_else(|| not_found(id))?;
        let line = output::c_string(entry.json());
        output::put(out_length, line.as_bytes().len());
        output::put(out_json, line.into_raw());
        Ok(())
    })
}

/// The path to an entry as the text of a session file of its own: the same session id, the path's first entry as root. NULL
/// for `entry_id` is the path to the leaf. Lines are as in the file, byte for byte, with a NUL behind the last; `out_length`,
/// which may be NULL, gets the number of bytes without that.
///
/// Ownership: borrows everything; `out_text` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Reads the file.
/// Errors: ENTRY_NOT_FOUND, STORAGE_FAILED, STORAGE_CHANGED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_export_branch(
    session: *const branchline_session,
    entry_id: *const c_char,
    out_text: *mut *mut c_char,
    out_length: *mut usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_text, "out_text")?;
        let session = handle::get::<SessionObject>(session)?;
        let leaf = leaf_or(&session.core, input::optional_text(entry_id, "entry_id")?)?;
        let mut text = Vec::new();
        session.core.tree().export_branch(leaf.as_deref(), &mut text)?;
        let text = output::c_string(text);
        output::put(out_length, text.as_bytes().len());
        output::put(out_text, text.into_raw());
        Ok(())
    })
}

/// What the model sees at the leaf, as JSON: `{"messages":[...],"thinkingLevel","model":{"provider","modelId"}|null}`.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Reads the file.
/// Errors: STORAGE_FAILED, STORAGE_CHANGED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_context(
    session: *const branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_text!(error, out_json, {
        let session = handle::get::<SessionObject>(session)?;
        json::context(&session.core.tree().context(session.core.leaf().as_deref())?)?
    })
}

/// What was found wrong with the session file, as a JSON list of `{"line","offset","kind","message"}`. Damage never
/// keeps a file from being opened; everything readable stays readable.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_diagnostics(
    session: *const branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_text!(error, out_json, {
        json::diagnostics(&handle::get::<SessionObject>(session)?.core.tree().diagnostics())
    })
}

/// Moves the session to another entry of its tree. Choosing a user message moves to just before it and gives its text
/// for editing. `options` may be NULL. The result is JSON: `{"leaf":ID|null,"editorText":TEXT|null,"cancelled",
/// "summaryEntry":ID|null}`.
///
/// Ownership: borrows everything; `out_json` may be NULL, otherwise it is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. With `summarize` it blocks until the model has answered.
/// Errors: RUNNING, COMPACTING, ENTRY_NOT_FOUND, NO_MODEL, SUMMARY_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE,
/// FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_navigate(
    session: *mut branchline_session,
    entry_id: *const c_char,
    options: *const branchline_navigate_options,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let id = input::text(entry_id, "entry_id")?;
        let result = block_on(session.core.navigate(id, options::navigate(options)?))?;
        output::string(out_json, Some(json::navigated(&result)));
        Ok(())
    })
}

/// Which side of an entry a fork takes.
pub type branchline_fork_position = u32;
/// Everything before a user message; its text is given for editing.
pub const BRANCHLINE_FORK_BEFORE: branchline_fork_position = 0;
/// Everything up to and including any entry.
pub const BRANCHLINE_FORK_AT: branchline_fork_position = 1;

/// Copies the path to an entry into a new file and opens that as a session of its own. This session stays as it is, also
/// while it runs. `out_editor_text`, which may be NULL, gets the text of the user message forked before, else NULL.
///
/// Ownership: borrows `session`; `out_session` is yours: free it with branchline_session_free; `out_editor_text` is
/// yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: ENTRY_NOT_FOUND, INVALID_FORK_TARGET, NOT_SAVED when the session has no file yet, STORAGE_FAILED, CLOSED,
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_fork(
    session: *mut branchline_session,
    entry_id: *const c_char,
    position: branchline_fork_position,
    out_session: *mut *mut branchline_session,
    out_editor_text: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_session, "out_session")?;
        let session = handle::get::<SessionObject>(session)?;
        let id = input::text(entry_id, "entry_id")?;
        let position = match position {
            BRANCHLINE_FORK_BEFORE => ForkPosition::Before,
            BRANCHLINE_FORK_AT => ForkPosition::At,
            other => return Err(invalid(format!("{other} is no branchline_fork_position"))),
        };
        let fork = block_on(session.core.fork(id, position))?;
        output::handle(out_session, session.sibling(fork.session)?);
        output::string(out_editor_text, fork.editor_text);
        Ok(())
    })
}

/// Copies the path to the leaf into a new file and opens that as a session of its own.
///
/// Ownership: borrows `session`; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks.
/// Errors: ENTRY_NOT_FOUND when the session is empty, NOT_SAVED when it has no file yet, STORAGE_FAILED, CLOSED,
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_clone(
    session: *mut branchline_session,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_session, "out_session")?;
        let session = handle::get::<SessionObject>(session)?;
        let copy = block_on(session.core.clone_session())?;
        output::handle(out_session, session.sibling(copy)?);
        Ok(())
    })
}
