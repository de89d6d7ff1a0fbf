//! Push delivery: one thread a subscription, which drains a queue and calls the host.
//!
//! Hazard: a host's callback may take long, take locks, or call back into the library. On a worker of the runtime it
//! would stall every session, and with a shared thread it would stall other sessions. So each subscription has an
//! ordinary thread of its own; those of one session take turns, as the header promises. Nobody waits for a callback
//! while holding anything: unsubscribing from inside it, or freeing the session, only marks the end.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use branchline_core::{Event, Events};

use crate::block_on::Deadline;
use crate::boundary::export;
use crate::callbacks::{self, Callbacks};
use crate::error::Failure;
use crate::event::EventObject;
use crate::finished::{self, Threads, Worker};
use crate::handle::{self, Handle, Object, Table};
use crate::status::branchline_status;

/// Callbacks that are being told of a session's events.
pub struct branchline_subscription {
    _opaque: [u8; 0],
}

/// What the thread and those who wait for it share.
pub(crate) struct Subscription {
    events: Events,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Default)]
struct Gate {
    /// Events taken from the queue, and those the host has seen.
    taken: u64,
    done: u64,
    cancelled: bool,
    /// `destroy` has run; the thread is about to end.
    finished: bool,
}

/// The turns of the callbacks of one session.
pub(crate) type Turns = Arc<Mutex<()>>;

impl Subscription {
    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Gate)) {
        change(&mut self.gate());
        self.changed.notify_all();
    }

    /// No callback starts any more. One that is running runs on, then `destroy` follows.
    pub(crate) fn cancel(&self) {
        self.change(|gate| gate.cancelled = true);
        self.events.discard();
    }

    /// Waits until the host has seen what is queued now. False when the time ran out.
    pub(crate) fn flush(&self, deadline: Deadline) -> bool {
        let gate = self.gate();
        // Events leave the queue under the gate only, so none is missed between the two numbers.
        let target = gate.taken + self.events.len() as u64;
        self.wait(gate, deadline, |gate| gate.done >= target || gate.cancelled || gate.finished)
    }

    fn wait(&self, mut gate: MutexGuard<'_, Gate>, deadline: Deadline, over: impl Fn(&Gate) -> bool) -> bool {
        while !over(&gate) {
            let left = deadline.left();
            if left.is_zero() {
                return false;
            }
            // The longest waits are cut in pieces: not every system can wait for `Duration::MAX`.
            let piece = left.min(Duration::from_secs(3600));
            gate = self.changed.wait_timeout(gate, piece).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The next event for the host; `None` at the end.
    fn take(&self) -> Option<Event> {
        loop {
            let _ = self.events.wait(Duration::MAX);
            let mut gate = self.gate();
            if gate.cancelled {
                return None;
            }
            match self.events.try_next() {
                Some(event) => {
                    gate.taken += 1;
                    return Some(event);
                }
                None if self.events.is_ended() => return None,
                None => {}
            }
        }
    }

    fn run(&self, callbacks: &Callbacks, session: u64, turns: &Turns) {
        while let Some(event) = self.take() {
            let turn = turns.lock().unwrap_or_else(PoisonError::into_inner);
            // It may have been cancelled while another subscription had its turn.
            if !self.gate().cancelled
                && let Ok(event) = Handle::new(EventObject::borrowed(event))
            {
                callbacks::inside(session, || callbacks.on_event(event.token()));
            }
            drop(turn);
            self.change(|gate| gate.done += 1);
        }
    }
}

/// Starts the thread. On failure the callbacks are dropped, which runs `destroy`.
pub(crate) fn start(
    events: Events,
    callbacks: Callbacks,
    session: u64,
    turns: Turns,
    threads: &Threads,
) -> Result<Arc<Subscription>, Failure> {
    let subscription = Arc::new(Subscription { events, gate: Mutex::default(), changed: Condvar::new() });
    let theirs = subscription.clone();
    let work = move || {
        // Set up as a guard, so that a fault of ours cannot leave someone waiting for ever.
        struct Finished(Arc<Subscription>);
        impl Drop for Finished {
            fn drop(&mut self) {
                self.0.change(|gate| gate.finished = true);
            }
        }
        let finished = Finished(theirs);
        finished.0.run(&callbacks, session, &turns);
        let turn = turns.lock().unwrap_or_else(PoisonError::into_inner);
        callbacks::inside(session, || drop(callbacks));
        drop(turn);
    };
    let thread = finished::spawn(work)?;
    threads.add(subscription.clone(), thread);
    Ok(subscription)
}

impl Worker for Subscription {
    fn wait_finished(&self, deadline: Deadline) -> bool {
        self.wait(self.gate(), deadline, |gate| gate.finished)
    }
}

/// The host's handle: freeing it ends the subscription.
pub(crate) struct SubscriptionObject(pub(crate) Weak<Subscription>);

static SUBSCRIPTIONS: Table<SubscriptionObject> = Table::new();

impl Object for SubscriptionObject {
    type C = branchline_subscription;
    const KIND: usize = 6;
    const NAME: &'static str = "subscription";
    fn table() -> &'static Table<Self> {
        &SUBSCRIPTIONS
    }
}

/// Ends a subscription. Once this has returned no callback of it starts any more; one that is running on another thread
/// runs on, and `destroy` tells when the library is done with the table. NULL is fine.
///
/// Ownership: takes `subscription`.
/// Threads: any, also from inside its own callback. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_subscription_free(subscription: *mut branchline_subscription) -> branchline_status {
    export!(std::ptr::null_mut(), {
        let object = handle::take::<SubscriptionObject>(subscription)?;
        if let Some(subscription) = object.and_then(|object| object.0.upgrade()) {
            subscription.cancel();
        }
        Ok(())
    })
}
