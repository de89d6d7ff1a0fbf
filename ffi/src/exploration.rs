//! `branchline_exploration`: one prompt each for several siblings that begin at the same entry.

use std::ffi::c_char;
use std::sync::Arc;

use branchline_core::{Exploration, ExplorePrompt};

use crate::block_on::{BRANCHLINE_WAIT_FOREVER, Deadline, block_on, block_until};
use crate::boundary::{export, gives_text};
use crate::callbacks;
use crate::error::{Failure, branchline_error};
use crate::events::{EventsObject, branchline_events};
use crate::handle::{self, Handle, Object, Table};
use crate::input::{self, invalid};
use crate::output;
use crate::session::{SessionObject, branchline_session};
use crate::status::branchline_status;

/// Several prompts that are being tried at once. Freeing it aborts what still runs.
pub struct branchline_exploration {
    _opaque: [u8; 0],
}

pub(crate) struct ExplorationObject {
    core: Arc<Exploration>,
    /// The session it was started from: what is made of its siblings belongs to the same engine.
    parent: Arc<SessionObject>,
}

static EXPLORATIONS: Table<ExplorationObject> = Table::new();

impl Object for ExplorationObject {
    type C = branchline_exploration;
    const KIND: usize = 12;
    const NAME: &'static str = "exploration";
    fn table() -> &'static Table<Self> {
        &EXPLORATIONS
    }
}

impl Drop for ExplorationObject {
    /// A queue of its events may outlive it, but not what it runs.
    fn drop(&mut self) {
        drop(self.core.abort());
    }
}

/// Tries several prompts at once: each gets a sibling that begins at the same entry, and runs there. One that fails does
/// not disturb the others; this session stays where it is. `prompts_json` is a list, each item a text or
/// `{"text","images"?,"model"?,"thinkingLevel"?,"tools"?}`. `options_json` may be NULL:
/// `{"at"?,"limit"?,"model"?,"thinkingLevel"?,"tools"?,"capacity"?}`: "at" as for branchline_session_branch, "limit" how
/// many run at a time (4), "capacity" how many events are held (1024).
///
/// Ownership: borrows everything; `out_exploration` is yours: free it with branchline_exploration_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, also without a prompt; ENTRY_NOT_FOUND, UNKNOWN_MODEL, UNKNOWN_TOOL, STORAGE_FAILED, CLOSED,
/// INVALID_HANDLE, FORKED. Nothing is run then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_explore(
    session: *mut branchline_session,
    prompts_json: *const c_char,
    options_json: *const c_char,
    out_exploration: *mut *mut branchline_exploration,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_exploration, "out_exploration")?;
        let parent = handle::get::<SessionObject>(session)?;
        let prompts: Vec<ExplorePrompt> = input::required_form(prompts_json, "prompts_json")?;
        let options = input::form(options_json, "options_json")?;
        let core = Arc::new(block_on(parent.core.explore(prompts, options))?);
        output::handle(out_exploration, Handle::new(ExplorationObject { core, parent })?);
        Ok(())
    })
}

/// How many prompts it has.
///
/// Ownership: borrows `exploration`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_exploration_count(
    exploration: *const branchline_exploration,
    out_count: *mut usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_count, "out_count")?;
        output::put(out_count, handle::get::<ExplorationObject>(exploration)?.core.siblings().len());
        Ok(())
    })
}

/// The events of all its siblings in one queue, each sibling's in its own order; branchline_event_sibling tells whose one
/// is. It ends when all are done. There is one queue: what several handles read is divided among them. Until it is read
/// or freed, or branchline_exploration_results is called, the siblings wait when it is full.
///
/// Ownership: borrows `exploration`; `out_events` is yours: free it with branchline_events_free, in any order.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_exploration_events(
    exploration: *mut branchline_exploration,
    out_events: *mut *mut branchline_events,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_events, "out_events")?;
        let exploration = handle::get::<ExplorationObject>(exploration)?;
        let events = EventsObject::of_exploration(exploration.core.clone(), exploration.parent.key);
        output::handle(out_events, Handle::new(events)?);
        Ok(())
    })
}

/// The sibling that runs the prompt at `index`, counted from 0.
///
/// Ownership: borrows `exploration`; `out_session` is yours: free it with branchline_session_free, which closes the
/// sibling.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, also when there is no such prompt; INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_exploration_session(
    exploration: *const branchline_exploration,
    index: usize,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_session, "out_session")?;
        let exploration = handle::get::<ExplorationObject>(exploration)?;
        let siblings = exploration.core.siblings();
        let sibling = siblings.get(index).cloned().ok_or_else(|| {
            invalid(format!("the exploration has {} prompts, there is none at {index}", siblings.len()))
        })?;
        output::handle(out_session, exploration.parent.sibling(sibling)?);
        Ok(())
    })
}

/// Waits until all are done, at most `timeout_ms` milliseconds, and gives a JSON list in the order of the prompts:
/// `{"sibling","text","usage","stopReason","errorMessage","leaf","aborted","error":{"code","message","path"}|null,
/// "messages"}`. What failed or was aborted is a result. Events not read by then are discarded.
///
/// Ownership: borrows `exploration`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, but hold no lock that one of your callbacks takes.
/// Errors: TIMEOUT (without an error object), CLOSED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED, WOULD_DEADLOCK for
/// waiting without a limit inside a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_exploration_results(
    exploration: *const branchline_exploration,
    timeout_ms: u32,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_text!(error, out_json, {
        let exploration = handle::get::<ExplorationObject>(exploration)?;
        if timeout_ms == BRANCHLINE_WAIT_FOREVER && callbacks::current().is_some() {
            let text = "waiting for ever inside a callback may never end; give a time limit";
            return Err(Failure::new(branchline_status::WOULD_DEADLOCK, text));
        }
        let Some(results) = block_until(exploration.core.results(), Deadline::from_ms(timeout_ms)) else {
            return Err(branchline_status::TIMEOUT.into());
        };
        let results: Vec<String> = results?.iter().map(|result| result.to_json()).collect();
        format!("[{}]", results.join(","))
    })
}

/// Aborts all siblings of an exploration and waits until they are idle. Their results say so.
///
/// Ownership: borrows `exploration`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_exploration_abort(
    exploration: *mut branchline_exploration,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        block_on(handle::get::<ExplorationObject>(exploration)?.core.abort());
        Ok(())
    })
}

/// Signals one sibling to abort, by the position of its prompt, and does not wait.
///
/// Ownership: borrows `exploration`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, also when there is no such prompt; INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_exploration_abort_one(
    exploration: *mut branchline_exploration,
    index: usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { Ok(handle::get::<ExplorationObject>(exploration)?.core.abort_one(index)?) })
}

/// Frees an exploration and aborts what of it still runs, without waiting. NULL is fine.
///
/// Ownership: takes `exploration`. Sessions and queues of it stay valid until they are freed too, in any order.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_exploration_free(exploration: *mut branchline_exploration) -> branchline_status {
    export!(std::ptr::null_mut(), {
        handle::take::<ExplorationObject>(exploration)?;
        Ok(())
    })
}
