//! Making a session work: prompts, queued texts, waiting, stopping, and what the next request is made with.

use std::ffi::c_char;

use crate::block_on::{Deadline, block_on, block_until};
use crate::boundary::export;
use crate::callbacks;
use crate::error::{Failure, branchline_error};
use crate::handle;
use crate::input::{self, invalid};
use crate::options::{self, branchline_prompt_options};
use crate::session::{SessionObject, branchline_session};
use crate::status::branchline_status;

/// # Safety
/// `options` is NULL or as the header demands.
unsafe fn prompt(
    session: *mut branchline_session,
    text: &str,
    options: *const branchline_prompt_options,
) -> Result<(), Failure> {
    let session = handle::get::<SessionObject>(session)?;
    // SAFETY: as this function's.
    let options = unsafe { options::prompt(options) }?;
    // The run goes on without the object that would read its events: hosts subscribe to the session.
    block_on(session.core.prompt(text, options))?;
    Ok(())
}

/// Sends a prompt and returns once it is accepted; what comes of it are events. `options` may be NULL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: RUNNING when a run is active and `options` do not say to queue it, COMPACTING, NO_MODEL, UNKNOWN_MODEL,
/// READ_ONLY, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_prompt(
    session: *mut branchline_session,
    text: *const c_char,
    options: *const branchline_prompt_options,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { prompt(session, input::text(text, "text")?, options) })
}

/// branchline_session_prompt for a text that is not NUL-terminated or holds NUL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_prompt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_prompt_n(
    session: *mut branchline_session,
    text: *const c_char,
    length: usize,
    options: *const branchline_prompt_options,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { prompt(session, input::text_n(text, length, "text")?, options) })
}

/// Queues a text for the current run: it is delivered before the run's next request. On an idle session it waits for the
/// next prompt.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_steer(
    session: *mut branchline_session,
    text: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        Ok(block_on(session.core.steer(input::text(text, "text")?))?)
    })
}

/// branchline_session_steer for a text that is not NUL-terminated or holds NUL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_steer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_steer_n(
    session: *mut branchline_session,
    text: *const c_char,
    length: usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        Ok(block_on(session.core.steer(input::text_n(text, length, "text")?))?)
    })
}

/// Queues a text for when the current run would end. On an idle session it waits for the next prompt.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_follow_up(
    session: *mut branchline_session,
    text: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        Ok(block_on(session.core.follow_up(input::text(text, "text")?))?)
    })
}

/// branchline_session_follow_up for a text that is not NUL-terminated or holds NUL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_follow_up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_follow_up_n(
    session: *mut branchline_session,
    text: *const c_char,
    length: usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        Ok(block_on(session.core.follow_up(input::text_n(text, length, "text")?))?)
    })
}

/// Aborts what runs and waits until the session is idle; processes that tools started are gone then. Does nothing on an
/// idle session. Queued texts stay queued for the next prompt.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_abort(
    session: *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { Ok(block_on(handle::get::<SessionObject>(session)?.core.abort())?) })
}

/// Waits until the session is idle and its callbacks have returned from every event there was by then, at most
/// `timeout_ms` milliseconds; BRANCHLINE_WAIT_FOREVER has no limit. Queues made with branchline_session_events must be
/// read meanwhile by another thread, as a full one stops the run.
///
/// Ownership: borrows `session`.
/// Threads: any, but hold no lock that one of your callbacks takes.
/// Errors: TIMEOUT (without an error object), INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED, WOULD_DEADLOCK from
/// inside a callback of the same session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_wait_idle(
    session: *mut branchline_session,
    timeout_ms: u32,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        if callbacks::current() == Some(session.key) || callbacks::serves(&session.core) {
            let text = "waiting here would wait for this callback; return from it and wait on another thread";
            return Err(Failure::new(branchline_status::WOULD_DEADLOCK, text));
        }
        let deadline = Deadline::from_ms(timeout_ms);
        match block_until(session.core.wait_idle(), deadline) {
            Some(idle) => idle?,
            None => return Err(branchline_status::TIMEOUT.into()),
        }
        match session.flush(deadline) {
            true => Ok(()),
            false => Err(branchline_status::TIMEOUT.into()),
        }
    })
}

/// Chooses the model, "provider/model", from the next request on.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: UNKNOWN_MODEL, READ_ONLY, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_set_model(
    session: *mut branchline_session,
    model: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        Ok(block_on(session.core.set_model(input::text(model, "model")?))?)
    })
}

/// Chooses the thinking level: "off", "minimal", "low", "medium", "high", "xhigh" or "max". It is clamped to what the
/// model can do.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_set_thinking_level(
    session: *mut branchline_session,
    level: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        Ok(block_on(session.core.set_thinking_level(input::text(level, "level")?))?)
    })
}

/// Chooses the active tools by name, in this order. `tools` has `tool_count` names; a count of 0 is none.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: UNKNOWN_TOOL (nothing is changed then), CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_set_tools(
    session: *mut branchline_session,
    tools: *const *const c_char,
    tool_count: usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let names = match (input::texts(tools, tool_count, "tools")?, tool_count) {
            (Some(names), _) => names,
            (None, 0) => Vec::new(),
            (None, _) => return Err(invalid("tools is NULL")),
        };
        Ok(block_on(session.core.set_tools(names))?)
    })
}
