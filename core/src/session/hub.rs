//! The fan-out of a session's events to its subscribers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::event::{Event, EventKind};
use super::queue::{Pushed, Queue};

/// Numbers events and hands each to every subscriber.
pub(crate) struct Hub {
    session: Arc<str>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sequence: u64,
    queues: Vec<Arc<Queue>>,
    closed: bool,
}

impl Hub {
    pub(crate) fn new(session: Arc<str>) -> Hub {
        Hub { session, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new subscriber; it sees what comes from now on.
    pub(crate) fn subscribe(&self, capacity: usize, one_run: bool) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(capacity, one_run));
        let mut state = self.lock();
        if state.closed {
            queue.end();
        } else {
            state.queues.push(queue.clone());
        }
        queue
    }

    /// Hands an event to everyone, never waiting. False when a subscriber is full, so that a run should wait.
    pub(crate) fn push(&self, kind: EventKind) -> bool {
        let mut state = self.lock();
        state.sequence += 1;
        let event = Event { sequence: state.sequence, session: self.session.clone(), kind };
        let mut room = true;
        state.queues.retain(|queue| {
            let pushed = queue.push(&event);
            room &= pushed != Pushed::Full;
            pushed != Pushed::Gone
        });
        room
    }

    /// Ready when every subscriber has room.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let state = self.lock();
        for queue in &state.queues {
            if queue.poll_room(cx).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Ends every subscription, after what is queued.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        for queue in state.queues.drain(..) {
            queue.end();
        }
    }
}
