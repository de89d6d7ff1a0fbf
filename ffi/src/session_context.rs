//! What the model sees and what it cost: compactions, edits, shell runs of the user, messages of the host, queues.

use std::ffi::c_char;

use branchline_core::message::BashExecution;
use branchline_core::session::RunBashOptions;
use branchline_core::{CustomMessage, Delivery};

use crate::block_on::block_on;
use crate::boundary::{export, gives_json};
use crate::error::branchline_error;
use crate::handle;
use crate::input;
use crate::options::{self, branchline_prompt_options};
use crate::output;
use crate::session::{SessionObject, branchline_session};
use crate::status::branchline_status;

/// Replaces the older part of the context by a summary; the history itself stays in the tree. A run is aborted first and
/// not taken up again. `instructions`, which may be NULL, say what the summary should pay attention to. The result is
/// JSON: `{"entryId","summary","firstKeptEntryId","tokensBefore","estimatedTokensAfter","usage"?,"details"}`.
///
/// Ownership: borrows everything; `out_json` may be NULL, otherwise it is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Blocks until the model has answered.
/// Errors: NOTHING_TO_COMPACT, ALREADY_COMPACTED, CANCELLED, SUMMARY_FAILED, NO_MODEL, COMPACTING, RUNNING, READ_ONLY,
/// STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_compact(
    session: *mut branchline_session,
    instructions: *const c_char,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let instructions = input::optional_text(instructions, "instructions")?;
        output::json(out_json, &block_on(session.core.compact(instructions))?);
        Ok(())
    })
}

/// Changes what the model sees of an entry on the path from the next request on. `replacement_json` is `null`, which
/// leaves it out, or `{"content":...}`. What is stored stays.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise the id of the edit's entry is yours: free it with
/// branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_REPLACEMENT, ENTRY_NOT_FOUND, NOT_ON_ACTIVE_BRANCH, NOT_EDITABLE, READ_ONLY, STORAGE_FAILED, CLOSED,
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_edit_context(
    session: *mut branchline_session,
    entry_id: *const c_char,
    replacement_json: *const c_char,
    out_id: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let target = input::text(entry_id, "entry_id")?;
        let replacement = input::json(input::text(replacement_json, "replacement_json")?, "replacement_json")?;
        let id = block_on(session.core.edit_context(target, replacement))?;
        output::string(out_id, Some(id));
        Ok(())
    })
}

/// Stores a shell run of the user that is over, so that the model sees it unless it is excluded. `execution_json`:
/// `{"command","output"?,"exitCode"?,"cancelled"?,"truncated"?,"fullOutputPath"?,"timestamp"?,"excludeFromContext"?}`.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise it gets the entry's id, or NULL when something runs, as
/// it is stored after that then. It is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_record_bash(
    session: *mut branchline_session,
    execution_json: *const c_char,
    out_id: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let execution: BashExecution = input::required_form(execution_json, "execution_json")?;
        output::string(out_id, block_on(session.core.record_bash(execution))?);
        Ok(())
    })
}

/// Runs a command of the user in the session's working directory and stores what came of it, so that the model sees it.
/// `options_json` may be NULL: `{"id"?,"excludeFromContext"?}`, "id" being your name for it in its events, which are
/// bash_execution_update. Permissions are not asked: a person typed it. The result is JSON: `{"output","exitCode",
/// "cancelled","truncated","fullOutputPath"}`.
///
/// Ownership: borrows everything; `out_json` may be NULL, otherwise it is yours: free it with branchline_string_free.
/// Threads: any, also several at once; hold no lock that one of your callbacks takes. Blocks until the command has ended;
/// branchline_session_abort_bash ends it.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, also when it cannot be started; INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_run_bash(
    session: *mut branchline_session,
    command: *const c_char,
    options_json: *const c_char,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let command = input::text(command, "command")?;
        let options: RunBashOptions = input::form(options_json, "options_json")?;
        output::json(out_json, &block_on(session.core.run_bash(command, options))?);
        Ok(())
    })
}

/// Ends all commands of branchline_session_run_bash with everything they started. Does not wait.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_abort_bash(
    session: *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        handle::get::<SessionObject>(session)?.core.abort_bash();
        Ok(())
    })
}

/// Starts a run with a message of the host instead of a user's. `message_json`: `{"customType","content","display"?,
/// "details"?}`. `options` may be NULL; `images_json` and `literal` in them are not used: the message has its images in
/// its content, and its text is sent as it is.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_session_prompt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_prompt_custom(
    session: *mut branchline_session,
    message_json: *const c_char,
    options: *const branchline_prompt_options,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let message: CustomMessage = input::required_form(message_json, "message_json")?;
        block_on(session.core.prompt_custom(message, options::prompt(options)?))?;
        Ok(())
    })
}

/// When a message of the host reaches the model.
pub type branchline_delivery = u32;
/// It is stored: at once on an idle session, after the current turn during a run.
pub const BRANCHLINE_DELIVERY_STORE: branchline_delivery = 0;
/// During a run it is delivered before the next request; on an idle session it is stored at once.
pub const BRANCHLINE_DELIVERY_STEER: branchline_delivery = 1;
/// During a run it is delivered when the run would end; on an idle session it is stored at once.
pub const BRANCHLINE_DELIVERY_FOLLOW_UP: branchline_delivery = 2;
/// It follows the message of the next prompt. It is lost when none comes.
pub const BRANCHLINE_DELIVERY_NEXT_TURN: branchline_delivery = 3;

/// Gives a message of the host to the model without starting a run. `message_json` as for
/// branchline_session_prompt_custom.
///
/// Ownership: borrows everything; `out_id` may be NULL, otherwise it gets the entry's id, or NULL when the message was
/// not stored at once. It is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: READ_ONLY, STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_send_custom_message(
    session: *mut branchline_session,
    message_json: *const c_char,
    delivery: branchline_delivery,
    out_id: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let message: CustomMessage = input::required_form(message_json, "message_json")?;
        let delivery = match delivery {
            BRANCHLINE_DELIVERY_STORE => Delivery::Store,
            BRANCHLINE_DELIVERY_STEER => Delivery::Steer,
            BRANCHLINE_DELIVERY_FOLLOW_UP => Delivery::FollowUp,
            BRANCHLINE_DELIVERY_NEXT_TURN => Delivery::NextTurn,
            other => return Err(input::invalid(format!("{other} is no branchline_delivery"))),
        };
        output::string(out_id, block_on(session.core.send_custom_message(message, delivery))?);
        Ok(())
    })
}

/// Counts and costs of the whole session, all branches, as JSON: `{"userMessages","assistantMessages","toolResults",
/// "messages","toolCalls","tokens":{"input","output","cacheRead","cacheWrite","cost"},"costs":[{"model","tokens"},...]}`.
/// Reads every entry.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_stats(
    session: *const branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, block_on(handle::get::<SessionObject>(session)?.core.stats())?)
}

/// How full the model's context is, as JSON: `{"tokens":N|null,...}`; tokens are unknown right after a compaction. Reads
/// the context, so it is not for every event.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_context_usage(
    session: *const branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, block_on(handle::get::<SessionObject>(session)?.core.context_usage())?)
}

/// The user messages that branchline_session_fork can go before, of all branches in file order, as a JSON list of
/// `{"entryId","text"}`.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: STORAGE_FAILED, CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_fork_messages(
    session: *const branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, block_on(handle::get::<SessionObject>(session)?.core.fork_messages())?)
}

/// Empties both queues of waiting texts and gives them as JSON: `{"steering":[...],"followUp":[...]}`.
///
/// Ownership: borrows `session`; `out_json` may be NULL, otherwise it is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_clear_queues(
    session: *mut branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let (steering, follow_up) = block_on(handle::get::<SessionObject>(session)?.core.clear_queues())?;
        output::json(out_json, &serde_json::json!({"steering": steering, "followUp": follow_up}));
        Ok(())
    })
}

/// How a queue is delivered.
pub type branchline_queue_mode = u32;
/// As it is.
pub const BRANCHLINE_QUEUE_MODE_KEEP: branchline_queue_mode = 0;
/// One text at a time.
pub const BRANCHLINE_QUEUE_MODE_ONE_AT_A_TIME: branchline_queue_mode = 1;
/// Everything that waits.
pub const BRANCHLINE_QUEUE_MODE_ALL: branchline_queue_mode = 2;

/// Chooses how the queues of branchline_session_steer and branchline_session_follow_up are delivered.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_set_queue_modes(
    session: *mut branchline_session,
    steering: branchline_queue_mode,
    follow_up: branchline_queue_mode,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let session = handle::get::<SessionObject>(session)?;
        let mode = |mode| match mode {
            BRANCHLINE_QUEUE_MODE_KEEP => Ok(None),
            BRANCHLINE_QUEUE_MODE_ONE_AT_A_TIME => Ok(Some(false)),
            BRANCHLINE_QUEUE_MODE_ALL => Ok(Some(true)),
            other => Err(input::invalid(format!("{other} is no branchline_queue_mode"))),
        };
        Ok(block_on(session.core.set_queue_modes(mode(steering)?, mode(follow_up)?))?)
    })
}

/// Cancels the wait before a failed request is repeated, and with it the repetition; nothing else. Does not wait.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_abort_retry(
    session: *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        handle::get::<SessionObject>(session)?.core.abort_retry();
        Ok(())
    })
}

/// Cancels a compaction, or the summary of a branch that is left; nothing else. Does not wait.
///
/// Ownership: borrows `session`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_abort_summary(
    session: *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        handle::get::<SessionObject>(session)?.core.abort_summary();
        Ok(())
    })
}
