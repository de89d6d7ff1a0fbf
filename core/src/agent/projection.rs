//! What the model sees at the leaf, kept up to date (S207).
//!
//! Reading it from the tree costs the length of the path, so that is done once, on opening, after navigating, and when
//! a compaction or an edit changed it; else every stored message is pushed. The list is shared with requests by
//! reference count: while none is under way, pushing is in place.

use std::sync::Arc;

use super::gauge::Gauge;
use super::system_state::SystemState;
use super::transform::{self, KnownCalls};
use crate::message::{Message, Role};
use crate::session::estimate::after_compaction;
use crate::tree::{Context, EntryKind, parse_iso};

#[derive(Clone, Default)]
pub(crate) struct Projection {
    messages: Arc<Vec<Arc<Message>>>,
    system: SystemState,
    /// Results whose call is not there are left out of requests (bug 101).
    calls: KnownCalls,
    level: Option<String>,
    /// Images are replaced by a notice (S152).
    block_images: bool,
    gauge: Gauge,
    last_response: Option<Response>,
    edited: bool,
    compacted_at: Option<f64>,
}

/// A response and the entry that holds it.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) entry: Arc<str>,
    pub(crate) message: Arc<Message>,
    /// The context was edited after it.
    pub(crate) edited_after: bool,
}

impl Projection {
    /// The context as it is read.
    pub(crate) fn new(context: &Context, block_images: bool) -> Projection {
        let mut projection = Projection { block_images, ..Projection::default() };
        let entries = context.entries();
        let fresh = after_compaction(entries);
        for (at, entry) in entries.iter().enumerate() {
            match entry.kind() {
                EntryKind::ContextEdit => projection.edited(),
                EntryKind::Compaction if at == 0 => {
                    projection.compacted_at = parse_iso(&entry.entry().timestamp()).map(|ms| ms as f64);
                }
                _ => {}
            }
            for message in entry.messages() {
                projection.add(entry.id(), message.message(), at >= fresh);
            }
        }
        projection.level = context.has_thinking_level().then(|| context.thinking_level().to_owned());
        projection
    }

    fn edited(&mut self) {
        self.edited = true;
        self.gauge.edited();
        if let Some(response) = &mut self.last_response {
            response.edited_after = true;
        }
    }

    /// Adds the message of a new entry.
    pub(crate) fn push(&mut self, entry: &str, message: Arc<Message>) {
        self.add(entry, message, true);
    }

    /// Adds a message, converted to what models understand (S146–S152). `fresh` is false for what a compaction kept.
    fn add(&mut self, entry: &str, message: Arc<Message>, fresh: bool) {
        self.gauge.add(&message, fresh);
        if message.role() == Role::Assistant {
            let message = message.clone();
            self.last_response = Some(Response { entry: entry.into(), message, edited_after: false });
        }
        if !self.calls.admits(&message) {
            return;
        }
        let mut converted = match message.role() {
            Role::System => {
                self.system.apply(&message);
                message
            }
            Role::User | Role::Assistant | Role::ToolResult => message,
            _ => match transform::to_llm([&*message]).pop() {
                Some(converted) => Arc::new(converted),
                None => return,
            },
        };
        if self.block_images && converted.shape().images {
            transform::block_images(std::slice::from_mut(Arc::make_mut(&mut converted)));
        }
        Arc::make_mut(&mut self.messages).push(converted);
    }

    /// A copy for another session at the same leaf. What there is by now is shared, so a copy of a copy costs little.
    pub(crate) fn share(&mut self) -> Projection {
        self.calls.settle();
        let mut copy = self.clone();
        copy.system.recheck();
        copy
    }

    pub(crate) fn messages(&self) -> Arc<Vec<Arc<Message>>> {
        self.messages.clone()
    }

    /// Whether the last message is a response, so that nothing is left to answer (S237).
    pub(crate) fn ends_with_response(&self) -> bool {
        self.messages.last().is_some_and(|message| message.role() == Role::Assistant)
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// The prompt and tools in force.
    pub(crate) fn system(&self) -> &SystemState {
        &self.system
    }

    pub(crate) fn system_mut(&mut self) -> &mut SystemState {
        &mut self.system
    }

    /// The thinking level the path records, if any.
    pub(crate) fn level(&self) -> Option<&str> {
        self.level.as_deref()
    }

    pub(crate) fn set_level(&mut self, level: &str) {
        self.level = Some(level.to_owned());
    }

    /// How full the context is.
    pub(crate) fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// The last response in context.
    pub(crate) fn last_response(&self) -> Option<&Response> {
        self.last_response.as_ref()
    }

    /// Whether the context holds an edit.
    pub(crate) fn is_edited(&self) -> bool {
        self.edited
    }

    /// When the compaction in force was made, in milliseconds since the Unix epoch.
    pub(crate) fn compacted_at(&self) -> Option<f64> {
        self.compacted_at
    }
}
