//! The run a prompt started: its events, and what it came to.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::watch;

use super::event::Event;
use super::{Events, Session};
use crate::agent::BudgetExceeded;
use crate::error::{Error, ErrorCode, Result};
use crate::message::{Message, StopReason, Usage};

/// Slot that the session fills when the run has settled.
pub(crate) type Outcome = watch::Sender<Option<Result<RunResult>>>;

/// What an accepted prompt started: a stream of events from here to `agent_settled`, and a result.
///
/// It keeps its session alive. Like any subscription it slows the session when it is neither read nor dropped.
/// Dropping it does not abort the run.
pub struct Run {
    session: Session,
    events: Events,
    outcome: watch::Receiver<Option<Result<RunResult>>>,
}

/// What a run came to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunResult {
    /// The text of the last assistant message, its text blocks joined by line breaks.
    pub text: String,
    /// The messages of the activity: system, user, assistant and tool results.
    pub messages: Vec<Arc<Message>>,
    /// Tokens and cost of all its responses.
    pub usage: Usage,
    /// Why the last response ended.
    pub stop_reason: Option<StopReason>,
    /// Error text of the last response, when it failed or was aborted.
    pub error_message: Option<String>,
    /// The entry the session stood on when it settled.
    pub leaf: Option<String>,
    /// An abort was asked for.
    pub aborted: bool,
    /// The limit that stopped it, if one did. The session can go on when there is room again.
    pub budget_exceeded: Option<BudgetExceeded>,
}

impl Run {
    pub(crate) fn new(session: Session, events: Events, outcome: watch::Receiver<Option<Result<RunResult>>>) -> Run {
        Run { session, events, outcome }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The next event; `None` after `agent_settled`.
    pub async fn next(&self) -> Option<Event> {
        self.events.next().await
    }

    /// The subscription itself, for waiting with a time limit, in batches or by descriptor.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Waits until the run has settled. Events not read yet are discarded.
    ///
    /// A failed request is a result, not an error: see [`RunResult::stop_reason`]. Errors: `closed` when the session
    /// ended first, `storage_failed` and its like when a message could not be stored.
    pub async fn result(&self) -> Result<RunResult> {
        self.events.discard();
        let mut outcome = self.outcome.clone();
        match outcome.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or_else(|| Err(closed())),
            Err(_) => Err(closed()),
        }
    }

    /// The result if the run has settled.
    pub fn try_result(&self) -> Option<Result<RunResult>> {
        match &*self.outcome.borrow() {
            None if self.outcome.has_changed().is_err() => Some(Err(closed())),
            result => result.clone(),
        }
    }
}

impl Stream for Run {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}

fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the session was closed before the run had settled")
}
