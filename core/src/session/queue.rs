//! The bounded queue between a session, or several, and one subscriber.
//!
//! Hazard: a host that stops reading must neither make memory grow nor stop other sessions, a host that calls back into
//! the session while its queue is full must not wait for itself, and an abort must get through. So pushing never
//! blocks. Instead the session asks for room after each event of a run and waits there, while it still serves commands
//! and watches for aborts; the few events a command causes may exceed the capacity. When the queue is full, text and
//! thinking deltas of one block grow the last queued delta instead of the queue, up to [`MERGE_LIMIT`].

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::event::{Event, EventKind};
use crate::error::{Error, ErrorCode, Result};
use crate::providers::BlockEvent;
use crate::system::wake_fd::WakeFd;

/// Most bytes of text that deltas are merged to: well above what a display shows at once, well below what hurts.
const MERGE_LIMIT: usize = 16 * 1024;

pub(crate) struct Queue {
    state: Mutex<State>,
    readable: Condvar,
}

struct State {
    items: VecDeque<Item>,
    capacity: usize,
    /// End after the next `agent_settled`.
    one_run: bool,
    /// Several sessions push. A delta that could still grow is then no room: the next one may be another session's.
    shared: bool,
    ended: bool,
    /// The reader is gone; nothing is queued any more.
    detached: bool,
    readers: Vec<Waker>,
    /// Threads in [`Queue::wait`]. Waking nobody costs a system call, too, so it is not done.
    blocked: usize,
    /// Sessions that wait for room.
    writers: Vec<Waker>,
    fd: Option<Arc<WakeFd>>,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It was queued, and the next one has room.
    Room,
    /// It was queued; the session should wait now.
    Full,
    /// Nobody will read this queue any more.
    Gone,
}

/// A queued event, and text merged into it.
struct Item {
    event: Event,
    more: String,
}

impl Item {
    /// The length of the text when more can be merged into it.
    fn delta(&self) -> Option<usize> {
        delta(&self.event.kind).map(|(_, _, text)| text.len() + self.more.len())
    }

    fn into_event(self) -> Event {
        let Item { mut event, more } = self;
        if !more.is_empty()
            && let EventKind::MessageUpdate { update, .. } = &mut event.kind
            && let BlockEvent::TextDelta { delta, .. } | BlockEvent::ThinkingDelta { delta, .. } = update
        {
            *delta = [&**delta, &more].concat().into();
        }
        event
    }
}

/// The parts of a delta that can be merged: is it thinking, which block, the text.
fn delta(kind: &EventKind) -> Option<(bool, usize, &str)> {
    match kind {
        EventKind::MessageUpdate { update: BlockEvent::TextDelta { index, delta }, .. } => Some((false, *index, delta)),
        EventKind::MessageUpdate { update: BlockEvent::ThinkingDelta { index, delta }, .. } => {
            Some((true, *index, delta))
        }
        _ => None,
    }
}

impl Queue {
    pub(crate) fn new(capacity: usize, one_run: bool) -> Queue {
        let state = State {
            items: VecDeque::new(),
            capacity: capacity.max(1),
            one_run,
            shared: false,
            ended: false,
            detached: false,
            readers: Vec::new(),
            blocked: 0,
            writers: Vec::new(),
            fd: None,
        };
        Queue { state: Mutex::new(state), readable: Condvar::new() }
    }

    /// A queue that several sessions push to. Each may exceed the capacity by the event it then waits after.
    pub(crate) fn shared(capacity: usize) -> Queue {
        let queue = Queue::new(capacity, false);
        queue.lock().shared = true;
        queue
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event and says whether the session may go on. Nobody is woken before the next [`wake`](Queue::wake), unless it
    /// was the last event.
    pub(crate) fn push(&self, event: Event) -> Pushed {
        let mut state = self.lock();
        if state.detached || state.ended {
            return Pushed::Gone;
        }
        let settled = matches!(event.kind, EventKind::AgentSettled { .. });
        if !state.merge(&event) {
            state.items.push_back(Item { event, more: String::new() });
        }
        state.ended = state.one_run && settled;
        let pushed = match (state.ended, state.has_room()) {
            (true, _) => Pushed::Gone,
            (false, true) => Pushed::Room,
            (false, false) => Pushed::Full,
        };
        if state.ended {
            self.wake_with(state);
        }
        pushed
    }

    /// Wakes who reads, if there is still something to read.
    pub(crate) fn wake(&self) {
        let state = self.lock();
        if !state.items.is_empty() || state.over() {
            self.wake_with(state);
        }
    }

    /// No event follows.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.wake_with(state);
    }

    fn wake_with(&self, mut state: MutexGuard<'_, State>) {
        let readers = std::mem::take(&mut state.readers);
        // What this is about may have been read meanwhile; a descriptor with nothing behind it would make its loop spin.
        if let Some(fd) = state.fd.as_ref().filter(|_| !state.items.is_empty() || state.over()) {
            fd.set();
        }
        let blocked = state.blocked > 0;
        drop(state);
        if blocked {
            self.readable.notify_all();
        }
        readers.into_iter().for_each(Waker::wake);
    }

    /// Ready when the session may go on: the queue has room, or the last delta can still grow, or nobody reads.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.has_room() {
            return Poll::Ready(());
        }
        if !state.writers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.writers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The reader is gone.
    pub(crate) fn detach(&self) {
        let mut state = self.lock();
        state.detached = true;
        state.items = VecDeque::new();
        let writers = std::mem::take(&mut state.writers);
        self.wake_with(state);
        writers.into_iter().for_each(Waker::wake);
    }

    /// The next event; `None` when there will be none.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut state = self.lock();
        if let Some(event) = state.pop() {
            return Poll::Ready(Some(event));
        }
        if state.over() {
            return Poll::Ready(None);
        }
        if !state.readers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.readers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    pub(crate) fn try_next(&self) -> Option<Event> {
        self.lock().pop()
    }

    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.items.is_empty() && state.over()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Up to `max` events at once, none when the queue is empty.
    pub(crate) fn drain(&self, max: usize) -> Vec<Event> {
        let mut state = self.lock();
        let count = state.items.len().min(max);
        let mut events = Vec::with_capacity(count);
        while events.len() < count {
            events.extend(state.pop());
        }
        events
    }

    /// Blocks the calling thread until there is something to read or the time is over.
    pub(crate) fn wait(&self, time: Duration) -> Result<()> {
        let deadline = Instant::now().checked_add(time);
        let mut state = self.lock();
        while state.items.is_empty() && !state.over() {
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() {
                return Err(Error::new(ErrorCode::Timeout, "no event came in the time allowed"));
            }
            state.blocked += 1;
            state = self.readable.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.blocked -= 1;
        }
        Ok(())
    }

    /// The descriptor that is readable while there is something to read.
    pub(crate) fn fd(&self) -> Result<Arc<WakeFd>> {
        let mut state = self.lock();
        if let Some(fd) = &state.fd {
            return Ok(fd.clone());
        }
        let fd = Arc::new(WakeFd::new()?);
        if !state.items.is_empty() || state.over() {
            fd.set();
        }
        state.fd = Some(fd.clone());
        Ok(fd)
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.detached
            || self.ended
            || self.items.len() < self.capacity
            || !self.shared && self.items.back().and_then(Item::delta).is_some_and(|length| length < MERGE_LIMIT)
    }

    fn over(&self) -> bool {
        self.ended || self.detached
    }

    /// Grows the last event of a full queue by a delta of the same block.
    fn merge(&mut self, event: &Event) -> bool {
        if self.items.len() < self.capacity {
            return false;
        }
        let Some((thinking, index, text)) = delta(&event.kind) else { return false };
        let Some(last) = self.items.back_mut().filter(|last| last.event.sibling == event.sibling) else {
            return false;
        };
        match delta(&last.event.kind) {
            Some((last_thinking, last_index, _)) if (last_thinking, last_index) == (thinking, index) => {}
            _ => return false,
        }
        last.more.push_str(text);
        last.event.sequence = event.sequence;
        true
    }

    fn pop(&mut self) -> Option<Event> {
        let event = self.items.pop_front()?.into_event();
        if self.items.is_empty()
            && !self.over()
            && let Some(fd) = &self.fd
        {
            fd.clear();
        }
        if !self.writers.is_empty() && self.has_room() {
            self.writers.drain(..).for_each(Waker::wake);
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(fd: &WakeFd) -> bool {
        // SAFETY: the descriptor lives as long as `fd`.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd.raw()) };
        let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&now)).unwrap() == 1
    }

    #[test]
    fn an_event_is_told_by_the_next_wake_unless_it_was_read() {
        let queue = Queue::new(8, false);
        let fd = queue.fd().unwrap();
        let event = Event { sequence: 1, session: "s".into(), sibling: 0, kind: EventKind::AgentStart };
        queue.push(event.clone());
        assert!(!readable(&fd));
        queue.wake();
        assert!(readable(&fd));
        assert!(queue.try_next().is_some() && !readable(&fd));
        queue.push(event);
        assert!(queue.try_next().is_some());
        queue.wake();
        assert!(!readable(&fd), "a loop that polls would spin");
    }
}
