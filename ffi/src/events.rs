//! `branchline_events`: pull delivery, for hosts with a thread or a loop of their own.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use branchline_core::{Event, Events, Exploration};

use crate::block_on::{BRANCHLINE_WAIT_FOREVER, Deadline};
use crate::boundary::export;
use crate::callbacks;
use crate::error::{Failure, branchline_error};
use crate::event::{EventObject, branchline_event};
use crate::handle::{self, Handle, Object, Table};
use crate::input::invalid;
use crate::options::{self, branchline_events_options};
use crate::output;
use crate::session::{SessionObject, branchline_session};
use crate::status::branchline_status;

/// A bounded queue of a session's events that the host drains. A session whose queue is full waits: read it or free it.
pub struct branchline_events {
    _opaque: [u8; 0],
}

pub(crate) struct EventsObject {
    source: Source,
    /// The session, to tell whether its own callback is asking.
    session: u64,
    /// What the host looks at until it asks for more.
    shown: Mutex<Vec<Handle<EventObject>>>,
}

/// Whose queue it is.
enum Source {
    Own(Events),
    Exploration(Arc<Exploration>),
}

static QUEUES: Table<EventsObject> = Table::new();

impl Object for EventsObject {
    type C = branchline_events;
    const KIND: usize = 4;
    const NAME: &'static str = "events";
    fn table() -> &'static Table<Self> {
        &QUEUES
    }
}

impl EventsObject {
    /// The queue of an exploration started from a session.
    pub(crate) fn of_exploration(exploration: Arc<Exploration>, session: u64) -> EventsObject {
        EventsObject { source: Source::Exploration(exploration), session, shown: Mutex::default() }
    }

    fn events(&self) -> &Events {
        match &self.source {
            Source::Own(events) => events,
            Source::Exploration(exploration) => exploration.events(),
        }
    }

    /// Waits for events: at least one, at most `most`.
    fn next(&self, most: usize, timeout_ms: u32) -> Result<Vec<Event>, Failure> {
        if timeout_ms == BRANCHLINE_WAIT_FOREVER && callbacks::current() == Some(self.session) {
            let text = "waiting for ever inside a callback of the same session may never end; give a time limit";
            return Err(Failure::new(branchline_status::WOULD_DEADLOCK, text));
        }
        let events = if timeout_ms == 0 {
            self.events().try_next_batch(most)
        } else {
            self.events().next_batch_timeout(most, Deadline::from_ms(timeout_ms).left())?
        };
        match events.is_empty() {
            true if self.events().is_ended() => Err(branchline_status::END.into()),
            true => Err(branchline_status::TIMEOUT.into()),
            false => Ok(events),
        }
    }

    /// Shows events to the host instead of those before.
    fn show(&self, events: Vec<Event>, mut each: impl FnMut(usize, *const branchline_event)) -> Result<(), Failure> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clear();
        for event in events {
            shown.push(Handle::new(EventObject::borrowed(event))?);
        }
        shown.iter().enumerate().for_each(|(n, event)| each(n, event.token()));
        Ok(())
    }
}

/// Subscribes to a session's events from now on. `options` may be NULL. On a closed session the queue has ended.
///
/// Ownership: borrows `session`; `out_events` is yours: free it with branchline_events_free. It may outlive the session,
/// whose end ends the queue behind what is in it.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_events(
    session: *mut branchline_session,
    options: *const branchline_events_options,
    out_events: *mut *mut branchline_events,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_events, "out_events")?;
        let session = handle::get::<SessionObject>(session)?;
        let events = session.core.subscribe(options::events(options)?);
        let events = EventsObject { source: Source::Own(events), session: session.key, shown: Mutex::default() };
        output::handle(out_events, Handle::new(events)?);
        Ok(())
    })
}

/// Waits for the next event, at most `timeout_ms` milliseconds; 0 does not wait, BRANCHLINE_WAIT_FOREVER has no limit.
///
/// Ownership: borrows `events`. The event belongs to `events`: it lives until the next call of this function or
/// branchline_events_next_batch for the same `events`, or until that is freed. branchline_event_clone keeps it longer.
/// Threads: any, but one at a time for each `events`, as one thread's call ends the other's event.
/// Errors: TIMEOUT when nothing came in time, END when nothing will (neither comes with an error object);
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED, WOULD_DEADLOCK for waiting without a limit in a callback of the session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_events_next(
    events: *mut branchline_events,
    timeout_ms: u32,
    out_event: *mut *const branchline_event,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_event, "out_event")?;
        let events = handle::get::<EventsObject>(events)?;
        let next = events.next(1, timeout_ms)?;
        events.show(next, |_, event| output::put(out_event, event))
    })
}

/// Like branchline_events_next for many events at once: at least one, and whatever else is queued, at most `capacity`.
/// `out_events` has room for `capacity` pointers; `out_count` tells how many were stored.
///
/// Ownership: borrows `events`. The events belong to `events` and live as for branchline_events_next.
/// Threads: any, but one at a time for each `events`.
/// Errors: as branchline_events_next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_events_next_batch(
    events: *mut branchline_events,
    timeout_ms: u32,
    out_events: *mut *const branchline_event,
    capacity: usize,
    out_count: *mut usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_events, "out_events")?;
        output::required(out_count, "out_count")?;
        if capacity == 0 {
            return Err(invalid("capacity is 0"));
        }
        let events = handle::get::<EventsObject>(events)?;
        let next = events.next(capacity, timeout_ms)?;
        output::put(out_count, next.len());
        events.show(next, |n, event| output::put(out_events.add(n), event))
    })
}

/// A file descriptor to poll in a loop: readable while events are queued, and after the end. Then call
/// branchline_events_next with a timeout of 0 until it gives TIMEOUT or END.
///
/// Ownership: the descriptor belongs to `events` and is closed when that is freed: do not read, write or close it.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, STORAGE_FAILED when the process has no descriptor left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_events_fd(
    events: *const branchline_events,
    out_fd: *mut c_int,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_fd, "out_fd")?;
        output::put(out_fd, handle::get::<EventsObject>(events)?.events().fd()?);
        Ok(())
    })
}

/// Ends a subscription. A thread that waits in branchline_events_next gets END. NULL is fine.
///
/// Ownership: takes `events` and with it its events and descriptor.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_events_free(events: *mut branchline_events) -> branchline_status {
    export!(std::ptr::null_mut(), {
        if let Some(events) = handle::take::<EventsObject>(events)? {
            events.events().discard();
        }
        Ok(())
    })
}
