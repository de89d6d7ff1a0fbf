//! The host's hand on a playing script: gates that replies wait at, and what was asked of the model.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::lock;
use crate::message::Message;
use crate::providers::{Purpose, Request};

/// Named gates: closed at first, open for good once opened. Clones share the gates.
#[derive(Debug, Clone, Default)]
pub struct Gates(Arc<Waitable>);

#[derive(Debug, Default)]
struct Waitable {
    names: Mutex<HashSet<String>>,
    changed: Notify,
}

impl Gates {
    /// Opens a gate.
    pub fn open(&self, name: impl Into<String>) {
        lock(&self.0.names).insert(name.into());
        self.0.changed.notify_waiters();
    }

    /// Whether a gate is open.
    pub fn is_open(&self, name: &str) -> bool {
        lock(&self.0.names).contains(name)
    }

    /// Waits until a gate is open. Any executor can drive the future.
    pub async fn wait(&self, name: &str) {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_open(name) {
                return;
            }
            changed.await;
        }
    }
}

/// Shared between a [`Script`](super::Script), its clones and the host.
#[derive(Debug, Clone, Default)]
pub struct ScriptControl {
    gates: Gates,
    standing: Gates,
    requests: Arc<Mutex<Option<Vec<RecordedRequest>>>>,
}

/// One request a script answered, kept when [`ScriptControl::record`] was called before it.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// The model's id.
    pub model: String,
    /// The conversation as it was sent.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The thinking level.
    pub thinking_level: String,
    /// What it was for.
    pub purpose: Purpose,
    /// The abort signal was already set.
    pub aborted: bool,
}

impl ScriptControl {
    /// The gates of `waitGate`.
    pub fn gates(&self) -> &Gates {
        &self.gates
    }

    /// Waits until the reply with this number (from 0) stands at its `hang` or `waitGate`.
    pub async fn reached(&self, reply: usize) {
        self.standing.wait(&reply.to_string()).await;
    }

    pub(super) fn stands(&self, reply: usize) {
        self.standing.open(reply.to_string());
    }

    /// Starts keeping requests.
    pub fn record(&self) {
        lock(&self.requests).get_or_insert_default();
    }

    /// The requests kept so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.requests).clone().unwrap_or_default()
    }

    pub(super) fn note(&self, request: &Request) {
        if let Some(requests) = lock(&self.requests).as_mut() {
            requests.push(RecordedRequest {
                model: request.model.id.clone(),
                messages: request.messages.clone(),
                thinking_level: request.thinking_level.clone(),
                purpose: request.purpose,
                aborted: request.cancel.is_cancelled(),
            });
        }
    }
}
