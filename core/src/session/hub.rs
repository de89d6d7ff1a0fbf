//! The fan-out of a session's events to its subscribers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::event::{Event, EventKind};
use super::queue::{Pushed, Queue};

/// Numbers events and hands each to every subscriber.
pub(crate) struct Hub {
    session: Arc<str>,
    sibling: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sequence: u64,
    queues: Vec<Subscriber>,
    /// There are events that nobody was woken for.
    unheard: bool,
    closed: bool,
}

struct Subscriber {
    queue: Arc<Queue>,
    /// Other sessions push to it, too: it leaves after `agent_settled` and is not ended here.
    shared: bool,
}

impl Hub {
    pub(crate) fn new(session: Arc<str>, sibling: u32) -> Hub {
        Hub { session, sibling, state: Mutex::default() }
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
            state.queues.push(Subscriber { queue: queue.clone(), shared: false });
        }
        queue
    }

    /// Adds a queue of several sessions, until this one's next `agent_settled`.
    pub(crate) fn join(&self, queue: &Arc<Queue>) {
        let mut state = self.lock();
        if !state.closed {
            state.queues.push(Subscriber { queue: queue.clone(), shared: true });
        }
    }

    /// Takes a queue of several sessions away again.
    pub(crate) fn leave(&self, queue: &Arc<Queue>) {
        self.lock().queues.retain(|subscriber| !Arc::ptr_eq(&subscriber.queue, queue));
        queue.wake();
    }

    /// Hands an event to everyone, never waiting. False when a subscriber is full, so that a run should wait.
    ///
    /// Events come in batches, as they were read from a connection or as a turn begins and ends, and waking a thread costs more
    /// than an event. So it wakes nobody but the readers of a run that is over: the actor calls [`wake`](Hub::wake) whenever
    /// it has to wait for something, others do after they pushed.
    pub(crate) fn push(&self, kind: EventKind) -> bool {
        let mut state = self.lock();
        state.sequence += 1;
        state.unheard = true;
        let event = Event { sequence: state.sequence, session: self.session.clone(), sibling: self.sibling, kind };
        let settled = matches!(event.kind, EventKind::AgentSettled { .. });
        let mut room = true;
        // The last one gets the event itself; usually there is one alone.
        let mut copies = state.queues.len();
        let mut event = Some(event);
        state.queues.retain(|subscriber| {
            copies -= 1;
            let event = if copies == 0 { event.take() } else { event.clone() };
            let Some(event) = event else { return true };
            let pushed = subscriber.queue.push(event);
            room &= pushed != Pushed::Full;
            let leaves = settled && subscriber.shared;
            if leaves {
                subscriber.queue.wake(); // nobody else will
            }
            pushed != Pushed::Gone && !leaves
        });
        room
    }

    /// Wakes everyone who has not been woken for what was pushed.
    pub(crate) fn wake(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.unheard) {
            state.queues.iter().for_each(|subscriber| subscriber.queue.wake());
        }
    }

    /// Ready when every subscriber has room.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let state = self.lock();
        for subscriber in &state.queues {
            if subscriber.queue.poll_room(cx).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Ends every subscription of this session alone, after what is queued, and leaves the others.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        for subscriber in state.queues.drain(..) {
            match subscriber.shared {
                true => subscriber.queue.wake(),
                false => subscriber.queue.end(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The session that leaves may be the last that pushed: others wait for room, which only a reader can make.
    #[test]
    fn whoever_leaves_a_queue_of_several_sessions_wakes_its_reader() {
        let leaving: [fn(&Hub, &Arc<Queue>); 3] = [
            |hub, _| assert!(hub.push(EventKind::AgentSettled { aborted: false })),
            |hub, queue| hub.leave(queue),
            |hub, _| hub.close(),
        ];
        for leave in leaving {
            let (hub, queue, woken) = (Hub::new("s".into(), 1), Arc::new(Queue::shared(8)), Arc::new(Woken::default()));
            hub.join(&queue);
            let waker = Waker::from(woken.clone());
            assert!(queue.poll_next(&mut Context::from_waker(&waker)).is_pending());
            assert!(hub.push(EventKind::AgentStart));
            assert_eq!(woken.0.load(Ordering::Relaxed), 0, "events come in batches");
            leave(&hub, &queue);
            assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        }
    }
}
