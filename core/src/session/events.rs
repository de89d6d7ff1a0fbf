//! A host's end of an event queue.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;

use super::event::Event;
use super::queue::Queue;
use crate::error::Result;

/// A subscription to a session's events: a bounded queue that the host drains.
///
/// A session whose subscriber does not drain waits for it, so read it or drop it. Dropping it never blocks the session.
/// Any number of threads may read; each event goes to one of them.
///
/// ```no_run
/// # fn show(session: &branchline::Session) {
/// let events = session.subscribe(Default::default());
/// while let Some(event) = branchline::block_on(events.next()) {
///     println!("{}", event.to_json());
/// }
/// # }
/// ```
pub struct Events {
    queue: Arc<Queue>,
}

impl Events {
    pub(crate) fn new(queue: Arc<Queue>) -> Events {
        Events { queue }
    }

    /// The next event, waiting for it; `None` when there will be none (the session was closed, or the run of a
    /// [`Run`](super::Run) has settled). Any executor can drive the future; dropping it loses nothing.
    pub async fn next(&self) -> Option<Event> {
        poll_fn(|cx| self.queue.poll_next(cx)).await
    }

    /// The next event if one is queued.
    pub fn try_next(&self) -> Option<Event> {
        self.queue.try_next()
    }

    /// The next event, blocking the calling thread for at most `time`. `Ok(None)` when there will be none.
    ///
    /// Errors: `timeout`.
    pub fn next_timeout(&self, time: Duration) -> Result<Option<Event>> {
        loop {
            self.queue.wait(time)?;
            match self.queue.try_next() {
                Some(event) => return Ok(Some(event)),
                None if self.queue.is_over() => return Ok(None),
                None => {} // another thread was faster
            }
        }
    }

    /// At least one event, waiting for it, and whatever else is queued, at most `max` (0 counts as 1). Empty when there
    /// will be none. Far cheaper than one by one for hosts that pay for every wake-up.
    pub async fn next_batch(&self, max: usize) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(event) = self.next().await {
            events.push(event);
            events.extend(self.queue.drain(max.saturating_sub(1)));
        }
        events
    }

    /// Like [`next_batch`](Events::next_batch), blocking the calling thread for at most `time`.
    ///
    /// Errors: `timeout` when nothing came.
    pub fn next_batch_timeout(&self, max: usize, time: Duration) -> Result<Vec<Event>> {
        let first = self.next_timeout(time)?;
        let mut events: Vec<Event> = first.into_iter().collect();
        if !events.is_empty() {
            events.extend(self.queue.drain(max.saturating_sub(1)));
        }
        Ok(events)
    }

    /// What is queued, at most `max`, without waiting.
    pub fn try_next_batch(&self, max: usize) -> Vec<Event> {
        self.queue.drain(max)
    }

    /// Blocks the calling thread until something is queued or nothing will be, for at most `time`, and takes nothing.
    ///
    /// Errors: `timeout`.
    pub fn wait(&self, time: Duration) -> Result<()> {
        self.queue.wait(time)
    }

    /// Events queued now.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none is queued now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops what is queued and takes no more: [`next`](Events::next) gives `None` from now on.
    pub fn discard(&self) {
        self.queue.detach();
    }

    /// Whether everything was read and nothing follows.
    pub fn is_ended(&self) -> bool {
        self.queue.is_over()
    }

    /// A file descriptor to poll in an event loop: readable while events are queued or after the end. It is created on
    /// the first call and belongs to this subscription: do not read from it or close it.
    ///
    /// Errors: `storage_failed` when the process has no descriptor left.
    #[cfg(unix)]
    pub fn fd(&self) -> Result<std::os::fd::RawFd> {
        Ok(self.queue.fd()?.raw())
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.queue.detach();
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.queue.poll_next(cx)
    }
}
