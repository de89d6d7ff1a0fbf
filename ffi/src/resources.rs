//! What a session knows of its project: context files, skills, prompt templates.

use std::ffi::c_char;

use branchline_core::ResourceOptions;

use crate::block_on::block_on;
use crate::boundary::{export, gives_json};
use crate::error::branchline_error;
use crate::handle;
use crate::input;
use crate::output;
use crate::session::{SessionObject, branchline_session};
use crate::status::branchline_status;

/// What the session knows, as JSON: `{"contextFiles":[{"path","content"}],"skills":[{"name","description","path",
/// "disableModelInvocation"}],"promptTemplates":[{"name","description","argumentHint"?,"content","path"?}],"systemPrompt",
/// "appendSystemPrompt","documentation","guidelines","sections","diagnostics":[{"fault","path","message","winner"?}],
/// "skillCommands"}`. What was wrong with a file is in "diagnostics".
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_resources(
    session: *const branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, *handle::get::<SessionObject>(session)?.core.resources())
}

/// Reads the files again that the session was allowed to read. What changed is told to the model before its next request.
///
/// Ownership: borrows `session`; `out_json` may be NULL, otherwise it gets what branchline_session_resources gives, and is
/// yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_reload_resources(
    session: *mut branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        output::json(out_json, &*block_on(session.core.reload_resources())?);
        Ok(())
    })
}

/// Chooses anew what the session reads and tells the model, and reads it. `resources_json` as in
/// branchline_session_options; NULL is nothing.
///
/// Ownership: borrows everything; `out_json` as for branchline_session_reload_resources.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_set_resources(
    session: *mut branchline_session,
    resources_json: *const c_char,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let options: ResourceOptions = input::form(resources_json, "resources_json")?;
        output::json(out_json, &*block_on(session.core.set_resources(options))?);
        Ok(())
    })
}
