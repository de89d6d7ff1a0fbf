//! What the model sees at the leaf, kept up to date (S207).
//!
//! Reading it from the tree costs the length of the path, so that is done once, on opening and after navigating; from
//! then on every stored message is pushed. The list is shared with requests by reference count: while none is under
//! way, pushing is in place.

use std::sync::Arc;

use super::system_state::SystemState;
use super::transform::{self, KnownCalls};
use crate::message::{Message, Role};
use crate::tree::Context;

#[derive(Default)]
pub(crate) struct Projection {
    messages: Arc<Vec<Arc<Message>>>,
    system: SystemState,
    /// Results whose call is not there are left out of requests (bug 101).
    calls: KnownCalls,
    level: Option<String>,
}

impl Projection {
    /// The context as it is read.
    pub(crate) fn new(context: &Context) -> Projection {
        let mut projection = Projection::default();
        for message in context.messages() {
            projection.push(message.message());
        }
        projection.level = context.has_thinking_level().then(|| context.thinking_level().to_owned());
        projection
    }

    /// Adds a message, converted to what models understand (S146–S151).
    pub(crate) fn push(&mut self, message: Arc<Message>) {
        if !self.calls.admits(&message) {
            return;
        }
        let converted = match message.role() {
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
        Arc::make_mut(&mut self.messages).push(converted);
    }

    pub(crate) fn messages(&self) -> Arc<Vec<Arc<Message>>> {
        self.messages.clone()
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
}
