//! Reading the answer of a host's model, and driving the future that writes it.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::HostFuture;
use super::response::Inner;
use crate::providers::StreamEvent;

/// The events of an answer.
pub(super) struct HostStream {
    inner: Arc<Inner>,
    work: Option<HostFuture>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    over: bool,
}

impl HostStream {
    pub(super) fn new(inner: Arc<Inner>) -> HostStream {
        HostStream { cancelled: Box::pin(inner.cancel.clone().cancelled_owned()), inner, work: None, over: false }
    }

    pub(super) fn with_work(mut self, work: Option<HostFuture>) -> HostStream {
        self.inner.state().working = work.is_some();
        self.work = work;
        self
    }

    /// The next event that is there.
    fn take(&mut self, cx: &Context<'_>) -> Option<StreamEvent> {
        let mut state = self.inner.state();
        if state.waiting.is_empty() {
            state.flush();
            state.drain();
        }
        let event = state.waiting.pop_front();
        match &event {
            Some(StreamEvent::Done(_) | StreamEvent::Failed(_)) => self.over = true,
            Some(_) => {}
            None => state.waker = Some(cx.waker().clone()),
        }
        event
    }

    /// The work is over, for this reason if it failed.
    fn work_over(&mut self, error: Option<&str>) {
        self.work = None;
        if let Some(error) = error {
            return self.end(Some(error));
        }
        let mut state = self.inner.state();
        state.working = false;
        if state.abandoned {
            state.give_up();
            state.drain();
        }
    }

    /// Ends the answer with this error if it is not over.
    fn end(&self, error: Option<&str>) {
        let mut state = self.inner.state();
        if !state.out.is_over() {
            state.flush();
            match error {
                Some(error) => state.out.fail(error),
                None => state.out.abort(),
            }
        }
        state.drain();
    }
}

impl Stream for HostStream {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(None);
        }
        if let Some(event) = this.take(cx) {
            return Poll::Ready(Some(event));
        }
        if this.cancelled.as_mut().poll(cx).is_ready() {
            this.work = None;
            this.end(None);
        } else if let Some(work) = &mut this.work {
            let polled = std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
            match polled {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(Ok(()))) => this.work_over(None),
                Ok(Poll::Ready(Err(error))) => this.work_over(Some(&error)),
                Err(_) => this.work_over(Some("the host's model panicked")),
            }
        }
        match this.take(cx) {
            Some(event) => Poll::Ready(Some(event)),
            None => Poll::Pending,
        }
    }
}
