//! Entries of the host: custom messages and data, shell runs, edits of the context (S23, S24, S76, S238–S240).

use std::sync::Arc;

use serde_json::Value;

use super::actor::Actor;
use super::asked::{CustomMessage, Delivery};
use super::event::EventKind;
use crate::error::{Error, ErrorCode, Result};
use crate::message::{BashExecution, Message};
use crate::system::clock::now_ms;

impl CustomMessage {
    /// The message as contexts hold it.
    pub(crate) fn message(self) -> Result<Message> {
        if !self.content.is_string() && !self.content.is_array() {
            return Err(Error::new(ErrorCode::InvalidArgument, "content is a string or a list of blocks"));
        }
        Ok(Message::custom(&self.custom_type, self.content, self.display, self.details, now_ms() as f64))
    }
}

impl Actor {
    pub(crate) fn append_custom(&mut self, custom_type: &str, data: Option<Value>) -> Result<String> {
        let id = self.append(|cursor| cursor.append_custom(custom_type, data.as_ref()))?;
        if let Some(appended) = self.appended(&id)? {
            self.shared.hub.push(appended);
        }
        Ok(id)
    }

    /// The event that tells of an entry that no other event speaks of (S198).
    pub(crate) fn appended(&self, id: &str) -> Result<Option<EventKind>> {
        let entry = self.shared.tree.entry(id)?;
        Ok(entry.map(|entry| EventKind::EntryAppended { entry: String::from_utf8_lossy(entry.json()).as_ref().into() }))
    }

    /// Takes a custom message that starts nothing. Returns its entry if it was stored at once (S238).
    pub(crate) fn send_custom(&mut self, message: CustomMessage, delivery: Delivery) -> Result<Option<String>> {
        let message = message.message()?;
        let running = self.is_running();
        match delivery {
            Delivery::NextTurn => self.next_turn.push(message),
            Delivery::Steer if running => self.pending.push_silently(true, message),
            Delivery::FollowUp if running => self.pending.push_silently(false, message),
            Delivery::Store if running => self.held.push(message),
            _ => {
                let message = Arc::new(message);
                self.shared.hub.push(EventKind::MessageStart { message: message.clone() });
                let entry_id = self.store(&message)?;
                self.shared.hub.push(EventKind::MessageEnd { message, entry_id: entry_id.clone() });
                return Ok(entry_id.map(|id| id.to_string()));
            }
        }
        Ok(None)
    }

    /// Takes a shell run that is over. During a run it waits for the end, so that it never stands between a call and its
    /// result (S239).
    pub(crate) fn record_bash(&mut self, mut execution: BashExecution) -> Result<Option<String>> {
        if execution.timestamp == 0 {
            execution.timestamp = now_ms();
        }
        let message = execution.message();
        if self.is_running() {
            self.held_bash.push(message);
            self.show();
            return Ok(None);
        }
        Ok(self.store(&Arc::new(message))?.map(|id| id.to_string()))
    }

    /// Stores what waited for a run to be over: shell runs, then custom messages (S240).
    pub(crate) async fn store_all_held(&mut self) -> Result<()> {
        for message in std::mem::take(&mut self.held_bash) {
            self.store(&Arc::new(message))?;
        }
        self.show();
        self.store_held().await
    }

    pub(crate) fn edit_context(&mut self, target: &str, replacement: &Value) -> Result<String> {
        let id = self.append(|cursor| cursor.append_context_edit(target, replacement))?;
        self.reload_context()?;
        self.show();
        Ok(id)
    }
}
