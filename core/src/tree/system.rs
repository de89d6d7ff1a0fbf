//! Prompt and tools in force: a fold over system messages (S139–S143).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::message::{JsonObject, Message, Role};

/// Folds system messages, in context order, into one (S140). Messages of other roles are passed over; `None` without any
/// system message. Messages without a time count as none, unless they declare tools.
pub fn fold_system<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Option<Message> {
    let mut fold = SystemFold::default();
    for message in messages.into_iter().filter(|message| message.role() == Role::System) {
        fold.add(message);
    }
    (fold.timestamp.is_some() || !fold.tools.is_empty()).then(|| fold.into_message())
}

/// The text of a system message: its content, then its sections in order, empty parts left out (S143).
pub fn prompt_text(message: &Message) -> String {
    let content = message.text("\n");
    let sections = message.get("sections").and_then(Value::as_object);
    let texts = sections.into_iter().flat_map(|sections| sections.values()).filter_map(Value::as_str);
    let parts: Vec<&str> = [content.as_str()].into_iter().chain(texts).filter(|text| !text.is_empty()).collect();
    parts.join("\n\n")
}

/// The state of the fold, for callers that keep it running.
#[derive(Debug, Clone, Default)]
pub struct SystemFold {
    contents: Vec<String>,
    sections: JsonObject,
    /// Current tool declarations in order.
    tools: Vec<Value>,
    timestamp: Option<Value>,
}

impl SystemFold {
    /// Takes in one system message.
    pub fn add(&mut self, message: &Message) {
        if self.timestamp.as_ref().is_none_or(Value::is_null) {
            self.timestamp = message.get("timestamp").cloned();
        }
        let content = message.text("\n");
        if !content.is_empty() {
            self.contents.push(content);
        }
        if let Some(given) = message.get("sections").and_then(Value::as_object) {
            if given.values().any(Value::is_null) {
                self.sections.retain(|name, _| given.get(name).is_none_or(|section| !section.is_null()));
            }
            let set = given.iter().filter(|(_, section)| !section.is_null());
            self.sections.extend(set.map(|(name, section)| (name.clone(), section.clone())));
        }
        let list = |key| message.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let removed: HashSet<Option<&Value>> = list("toolsRemoved").iter().map(|tool| tool.get("name")).collect();
        if !removed.is_empty() {
            self.tools.retain(|tool| !removed.contains(&tool.get("name")));
        }
        let added = list("toolsAdded");
        if added.is_empty() {
            return;
        }
        // One pass, however many there are: a file may declare thousands.
        let known = self.tools.iter().enumerate();
        let mut places: HashMap<Option<Value>, usize> =
            known.map(|(at, tool)| (tool.get("name").cloned(), at)).collect();
        for tool in added {
            match places.entry(tool.get("name").cloned()) {
                Entry::Occupied(place) => self.tools[*place.get()] = tool.clone(),
                Entry::Vacant(place) => {
                    place.insert(self.tools.len());
                    self.tools.push(tool.clone());
                }
            }
        }
    }

    /// Sections in force: name → text.
    pub fn sections(&self) -> &JsonObject {
        &self.sections
    }

    /// Tool declarations in force.
    pub fn tools(&self) -> &[Value] {
        &self.tools
    }

    /// The fold as one system message (S140).
    pub fn into_message(self) -> Message {
        let mut out = Message::default();
        out.set("role", "system");
        out.set("content", self.contents.join("\n\n"));
        if !self.sections.is_empty() {
            out.set("sections", self.sections);
        }
        if !self.tools.is_empty() {
            out.set("toolsAdded", self.tools);
        }
        out.set("timestamp", self.timestamp.filter(|timestamp| !timestamp.is_null()).unwrap_or_else(|| 0.into()));
        out
    }
}
