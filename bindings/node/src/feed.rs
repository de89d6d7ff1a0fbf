//! Events on their way to JavaScript, in batches: one wake-up and one JSON text for everything that is queued.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use branchline::{Error, ErrorCode, Event, Events, Exploration, Run, RunResult};
use napi_derive::napi;
use serde_json::json;

use crate::bridge::Shared;
use crate::outcome::Outcome;

/// Events taken at once. A batch is full long before that when events are big.
const BATCH: usize = 256;
/// A batch ends after the event that takes it past this size: far below the string limit, yet hundreds of deltas.
const BATCH_BYTES: usize = 4 << 20;

/// A run's events and result, or a subscription to a session.
#[napi]
pub struct Feed {
    shared: Arc<Shared>,
    inner: Arc<Inner>,
}

struct Inner {
    source: Source,
    /// Taken from the queue, but too much for the last batch.
    held: Mutex<VecDeque<Event>>,
}

enum Source {
    Run(Run),
    Events(Events),
    Exploration(Arc<Exploration>),
}

impl Feed {
    pub(crate) fn run(shared: Arc<Shared>, run: Run) -> Feed {
        Feed { shared, inner: Arc::new(Inner { source: Source::Run(run), held: Mutex::default() }) }
    }

    pub(crate) fn exploration(shared: Arc<Shared>, exploration: Arc<Exploration>) -> Feed {
        Feed { shared, inner: Arc::new(Inner { source: Source::Exploration(exploration), held: Mutex::default() }) }
    }

    pub(crate) fn events(shared: Arc<Shared>, events: Events) -> Feed {
        Feed { shared, inner: Arc::new(Inner { source: Source::Events(events), held: Mutex::default() }) }
    }
}

#[napi]
impl Feed {
    /// The next events as a JSON list, empty when there will be none.
    #[napi]
    pub fn next(&self, ticket: u32) {
        let inner = self.inner.clone();
        self.shared.start(ticket, async move { Ok(Outcome::Text(inner.batch().await)) });
    }

    /// Whether `next` would have an answer at once: an event, or the end.
    #[napi]
    pub fn ready(&self) -> bool {
        self.inner.take_queued(1);
        !self.inner.held().is_empty() || self.inner.queue().is_ended()
    }

    /// Takes no more events; a waiting `next` ends.
    #[napi]
    pub fn discard(&self) {
        self.inner.queue().discard();
        self.inner.held().clear();
    }

    /// Waits for a run's result and discards its unread events.
    #[napi]
    pub fn result(&self, ticket: u32) {
        let inner = self.inner.clone();
        self.shared.start(ticket, async move {
            match &inner.source {
                Source::Run(run) => run.result().await.map(|result| Outcome::Text(result_json(&result))),
                _ => Err(Error::new(ErrorCode::InvalidArgument, "only a run has a result here")),
            }
        });
    }
}

impl Inner {
    fn queue(&self) -> &Events {
        match &self.source {
            Source::Run(run) => run.events(),
            Source::Events(events) => events,
            Source::Exploration(exploration) => exploration.events(),
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, VecDeque<Event>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves events that are there from the queue to `held`, up to `count` in all.
    fn take_queued(&self, count: usize) {
        let mut held = self.held();
        while held.len() < count
            && let Some(event) = self.queue().try_next()
        {
            held.push_back(event);
        }
    }

    async fn batch(&self) -> String {
        self.take_queued(BATCH);
        if self.held().is_empty() {
            let events = self.queue().next_batch(BATCH).await;
            self.held().extend(events);
        }
        let mut held = self.held();
        let mut out = String::from("[");
        while out.len() < BATCH_BYTES
            && let Some(event) = held.pop_front()
        {
            let json = event_json(&event);
            // A huge event goes alone: what came before it must not share its fate at the string limit.
            if out.len() > 1 && out.len() + json.len() > 2 * BATCH_BYTES {
                held.push_front(event);
                break;
            }
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&json);
        }
        out.push(']');
        out
    }
}

/// pi's form with more keys at its end: the sequence number, the sibling's number and, where there is one, the entry's id.
fn event_json(event: &Event) -> String {
    let mut json = event.to_json();
    json.pop();
    json.push_str(",\"sequence\":");
    json.push_str(&event.sequence().to_string());
    json.push_str(",\"sibling\":");
    json.push_str(&event.sibling().to_string());
    if let Some(id) = event.entry_id() {
        json.push_str(",\"entryId\":");
        json.push_str(&branchline::json::to_string(id));
    }
    json.push('}');
    json
}

fn result_json(result: &RunResult) -> String {
    let facts = json!({
        "text": result.text,
        "usage": result.usage.to_value(),
        "stopReason": result.stop_reason.map(|reason| reason.name()),
        "errorMessage": result.error_message,
        "leaf": result.leaf,
        "aborted": result.aborted,
        "budgetExceeded": result.budget_exceeded,
    });
    let mut json = branchline::json::to_string(&facts);
    json.pop();
    json.push_str(",\"messages\":[");
    for (at, message) in result.messages.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        json.push_str(&message.to_json());
    }
    json.push_str("]}");
    json
}
