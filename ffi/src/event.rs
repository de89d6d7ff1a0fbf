//! `branchline_event`: one event, read by accessors; what is never asked for is never made.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use branchline_core::{Event, EventKind};

use crate::boundary::{export, peek};
use crate::error::branchline_error;
use crate::handle::{self, Handle, Object, Table};
use crate::output::{self, c_string};
use crate::status::branchline_status;

/// One event. The accessors below never fail: for what is no live event, or does not have what was asked for, they give
/// 0, false or NULL.
pub struct branchline_event {
    _opaque: [u8; 0],
}

/// What happened. New numbers are added: ignore what you do not know.
/// cbindgen:prefix-with-name=false
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum branchline_event_kind {
    /// Not a live event.
    BRANCHLINE_EVENT_NONE = 0,
    /// A pass of the run begins: it has one, and further ones for what follows by itself.
    BRANCHLINE_EVENT_AGENT_START = 1,
    /// A turn began: its messages, one response, and the calls it asks for follow.
    BRANCHLINE_EVENT_TURN_START = 2,
    /// A message begins.
    BRANCHLINE_EVENT_MESSAGE_START = 3,
    /// The response grew by something that is neither text nor thinking; see the JSON.
    BRANCHLINE_EVENT_MESSAGE_UPDATE = 4,
    /// The response grew by text: see branchline_event_text.
    BRANCHLINE_EVENT_TEXT_DELTA = 5,
    /// The model thought on: see branchline_event_text.
    BRANCHLINE_EVENT_THINKING_DELTA = 6,
    /// A message is complete and stored: see branchline_event_entry_id.
    BRANCHLINE_EVENT_MESSAGE_END = 7,
    /// A tool call is about to run.
    BRANCHLINE_EVENT_TOOL_EXECUTION_START = 8,
    /// A running tool reports progress.
    BRANCHLINE_EVENT_TOOL_EXECUTION_UPDATE = 9,
    /// A tool call is over.
    BRANCHLINE_EVENT_TOOL_EXECUTION_END = 10,
    /// A turn is over.
    BRANCHLINE_EVENT_TURN_END = 11,
    /// A pass is over.
    BRANCHLINE_EVENT_AGENT_END = 12,
    /// The run is over: nothing follows by itself any more, the session is idle.
    BRANCHLINE_EVENT_AGENT_SETTLED = 13,
    /// The queues of waiting texts changed.
    BRANCHLINE_EVENT_QUEUE_UPDATE = 14,
    /// An entry was stored that no other event speaks of.
    BRANCHLINE_EVENT_ENTRY_APPENDED = 15,
    /// The session's name changed.
    BRANCHLINE_EVENT_SESSION_INFO_CHANGED = 16,
    /// The effective thinking level changed.
    BRANCHLINE_EVENT_THINKING_LEVEL_CHANGED = 17,
    /// Something this header has no number for; see the JSON.
    BRANCHLINE_EVENT_OTHER = 1000,
}

pub(crate) struct EventObject {
    event: Event,
    /// The host may free it.
    owned: bool,
    json: OnceLock<CString>,
    /// With a NUL behind it, for hosts that print it.
    text: OnceLock<Box<[u8]>>,
    strings: [OnceLock<CString>; 4],
}

/// Places in `strings`.
const SESSION_ID: usize = 0;
const ENTRY_ID: usize = 1;
const TOOL_NAME: usize = 2;
const TOOL_CALL_ID: usize = 3;

static EVENTS: Table<EventObject> = Table::new();

impl Object for EventObject {
    type C = branchline_event;
    const KIND: usize = 5;
    const NAME: &'static str = "event";
    fn table() -> &'static Table<Self> {
        &EVENTS
    }
}

impl EventObject {
    /// An event that the library frees.
    pub(crate) fn borrowed(event: Event) -> EventObject {
        EventObject {
            event,
            owned: false,
            json: OnceLock::new(),
            text: OnceLock::new(),
            strings: [const { OnceLock::new() }; 4],
        }
    }

    fn kind(&self) -> branchline_event_kind {
        use branchline_event_kind as Kind;
        match self.event.kind() {
            EventKind::AgentStart => Kind::BRANCHLINE_EVENT_AGENT_START,
            EventKind::TurnStart => Kind::BRANCHLINE_EVENT_TURN_START,
            EventKind::MessageStart { .. } => Kind::BRANCHLINE_EVENT_MESSAGE_START,
            EventKind::MessageUpdate { .. } if self.event.text_delta().is_some() => Kind::BRANCHLINE_EVENT_TEXT_DELTA,
            EventKind::MessageUpdate { .. } if self.event.thinking_delta().is_some() => {
                Kind::BRANCHLINE_EVENT_THINKING_DELTA
            }
            EventKind::MessageUpdate { .. } => Kind::BRANCHLINE_EVENT_MESSAGE_UPDATE,
            EventKind::MessageEnd { .. } => Kind::BRANCHLINE_EVENT_MESSAGE_END,
            EventKind::ToolExecutionStart { .. } => Kind::BRANCHLINE_EVENT_TOOL_EXECUTION_START,
            EventKind::ToolExecutionUpdate { .. } => Kind::BRANCHLINE_EVENT_TOOL_EXECUTION_UPDATE,
            EventKind::ToolExecutionEnd { .. } => Kind::BRANCHLINE_EVENT_TOOL_EXECUTION_END,
            EventKind::TurnEnd { .. } => Kind::BRANCHLINE_EVENT_TURN_END,
            EventKind::AgentEnd { .. } => Kind::BRANCHLINE_EVENT_AGENT_END,
            EventKind::AgentSettled { .. } => Kind::BRANCHLINE_EVENT_AGENT_SETTLED,
            EventKind::QueueUpdate { .. } => Kind::BRANCHLINE_EVENT_QUEUE_UPDATE,
            EventKind::EntryAppended { .. } => Kind::BRANCHLINE_EVENT_ENTRY_APPENDED,
            EventKind::SessionInfoChanged { .. } => Kind::BRANCHLINE_EVENT_SESSION_INFO_CHANGED,
            EventKind::ThinkingLevelChanged { .. } => Kind::BRANCHLINE_EVENT_THINKING_LEVEL_CHANGED,
            _ => Kind::BRANCHLINE_EVENT_OTHER,
        }
    }

    fn text(&self) -> Option<&[u8]> {
        let text = self.event.text_delta().or_else(|| self.event.thinking_delta())?;
        Some(self.text.get_or_init(|| [text.as_bytes(), b"\0"].concat().into_boxed_slice()))
    }

    /// The tool call the event is about: id and name.
    fn tool(&self) -> Option<(&str, &str)> {
        match self.event.kind() {
            EventKind::ToolExecutionStart { id, name, .. }
            | EventKind::ToolExecutionUpdate { id, name, .. }
            | EventKind::ToolExecutionEnd { id, name, .. } => Some((id, name)),
            _ => None,
        }
    }

    fn string(&self, place: usize) -> Option<*const c_char> {
        let text = match place {
            SESSION_ID => Some(self.event.session_id()),
            ENTRY_ID => self.event.entry_id(),
            TOOL_NAME => self.tool().map(|(_, name)| name),
            TOOL_CALL_ID => self.tool().map(|(id, _)| id),
            _ => None,
        };
        text.map(|text| self.strings[place].get_or_init(|| c_string(text)).as_ptr())
    }
}

fn string(event: *const branchline_event, place: usize) -> *const c_char {
    peek(std::ptr::null(), || handle::peek::<EventObject>(event)?.string(place))
}

/// What happened.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_type(event: *const branchline_event) -> branchline_event_kind {
    peek(branchline_event_kind::BRANCHLINE_EVENT_NONE, || handle::peek::<EventObject>(event).map(|event| event.kind()))
}

/// Counts the events of the session from 1. Merged deltas carry the number of the last one, so numbers may jump.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_sequence(event: *const branchline_event) -> u64 {
    peek(0, || handle::peek::<EventObject>(event).map(|event| event.event.sequence()))
}

/// Which of the sessions over one tree it comes from: 0 for the one that opened or made the file, 1, 2 and so on for siblings.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_sibling(event: *const branchline_event) -> u32 {
    peek(0, || handle::peek::<EventObject>(event).map(|event| event.event.sibling()))
}

/// The id of the session it comes from.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_session_id(event: *const branchline_event) -> *const c_char {
    string(event, SESSION_ID)
}

/// The new text of a TEXT_DELTA or THINKING_DELTA, UTF-8 with a NUL behind it. The text itself may hold NUL: go by
/// branchline_event_text_length.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_text(event: *const branchline_event) -> *const c_char {
    peek(std::ptr::null(), || Some(handle::peek::<EventObject>(event)?.text()?.as_ptr().cast()))
}

/// Bytes of branchline_event_text, without the NUL behind it.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_text_length(event: *const branchline_event) -> usize {
    peek(0, || Some(handle::peek::<EventObject>(event)?.text()?.len() - 1))
}

/// The tool of a TOOL_EXECUTION event.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_tool_name(event: *const branchline_event) -> *const c_char {
    string(event, TOOL_NAME)
}

/// The id of the tool call of a TOOL_EXECUTION event.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_tool_call_id(event: *const branchline_event) -> *const c_char {
    string(event, TOOL_CALL_ID)
}

/// Whether a TOOL_EXECUTION_END tells of a failed call.
///
/// Ownership: borrows `event`.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_is_error(event: *const branchline_event) -> bool {
    peek(false, || match handle::peek::<EventObject>(event)?.event.kind() {
        EventKind::ToolExecutionEnd { is_error, .. } => Some(*is_error),
        _ => None,
    })
}

/// The entry that holds the message of a MESSAGE_END.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_entry_id(event: *const branchline_event) -> *const c_char {
    string(event, ENTRY_ID)
}

/// The whole event as one line of JSON, in the form of pi's event stream. Made when first asked for.
///
/// Ownership: the string belongs to `event` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_json(event: *const branchline_event) -> *const c_char {
    peek(std::ptr::null(), || {
        let event = handle::peek::<EventObject>(event)?;
        Some(event.json.get_or_init(|| c_string(event.event.to_json())).as_ptr())
    })
}

/// Gives a handle of your own to the same event, to keep it or to pass it to another thread. Copies nothing.
///
/// Ownership: borrows `event`; `out_event` is yours: free it with branchline_event_free.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_clone(
    event: *const branchline_event,
    out_event: *mut *mut branchline_event,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_event, "out_event")?;
        let event = handle::get::<EventObject>(event)?.event.clone();
        let copy = EventObject { owned: true, ..EventObject::borrowed(event) };
        output::handle(out_event, Handle::new(copy)?);
        Ok(())
    })
}

/// Frees an event made by branchline_event_clone. NULL is fine. Events from a queue or in a callback are not yours: for
/// them this gives INVALID_HANDLE and does nothing.
///
/// Ownership: takes `event`.
/// Threads: any.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_event_free(event: *mut branchline_event) -> branchline_status {
    export!(std::ptr::null_mut(), { handle::take_if(event, |event: &EventObject| event.owned).map(drop::<Option<_>>) })
}
