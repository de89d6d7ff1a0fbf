//! A system prompt for one run alone (S305, P777): it goes out in the place of the session's prompt and is stored nowhere.

use std::sync::Arc;

use crate::message::{Message, Role, SystemMessage};
use crate::session::Actor;
use crate::system::clock::now_ms;

/// A forced prompt: one text without sections.
pub(crate) fn message(text: String) -> Arc<Message> {
    Arc::new(SystemMessage { content: text, timestamp: now_ms(), ..SystemMessage::default() }.message())
}

impl Actor {
    /// The messages of a request: those of the context, under the prompt that this run is forced to have if there is one.
    /// What the context says of prompts does not go out then; its tools are declared by the request all the same.
    pub(super) fn messages_to_send(&self) -> Arc<Vec<Arc<Message>>> {
        let messages = self.projection.messages();
        let Some(forced) = self.activity.as_ref().and_then(|activity| activity.forced_prompt.clone()) else {
            return messages;
        };
        let rest = messages.iter().filter(|message| message.role() != Role::System).cloned();
        Arc::new(std::iter::once(forced).chain(rest).collect())
    }
}
