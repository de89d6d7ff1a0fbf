//! The fold over system messages: which prompt sections and tools are in force (S139–S142), and what must be said so
//! that others are (S299, S301).

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::toolset::Declared;
use crate::json;
use crate::message::{JsonObject, Message};

#[derive(Clone, Default)]
pub(crate) struct SystemState {
    known: bool,
    sections: Vec<(String, String)>,
    tools: Arc<Vec<Value>>,
    /// Every tool name ever declared, also of removed ones.
    mentioned: HashSet<String>,
    /// The version of the toolset that was last compared and found in force.
    checked: Option<u64>,
}

/// What a system message must say.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) sections: JsonObject,
    pub(crate) tools_added: Vec<Value>,
    pub(crate) tools_removed: Vec<String>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty() && self.tools_added.is_empty() && self.tools_removed.is_empty()
    }
}

fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

impl SystemState {
    /// Takes over one system message.
    pub(crate) fn apply(&mut self, message: &Message) {
        self.known = true;
        self.checked = None;
        for (name, text) in message.get("sections").and_then(Value::as_object).into_iter().flatten() {
            match text {
                Value::String(text) => match self.sections.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) => known.clone_from(text),
                    None => self.sections.push((name.clone(), text.clone())),
                },
                _ => self.sections.retain(|(known, _)| known != name),
            }
        }
        let list = |key: &str| message.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let (removed, added) = (list("toolsRemoved"), list("toolsAdded"));
        if removed.is_empty() && added.is_empty() {
            return;
        }
        let tools = Arc::make_mut(&mut self.tools);
        tools.retain(|tool| !removed.iter().any(|gone| name(gone) == name(tool)));
        for tool in added {
            self.mentioned.insert(name(tool).to_owned());
            match tools.iter_mut().find(|known| name(known) == name(tool)) {
                Some(known) => *known = tool.clone(),
                None => tools.push(tool.clone()),
            }
        }
    }

    /// Whether there was any system message.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// The declarations in force.
    pub(crate) fn tools(&self) -> Arc<Vec<Value>> {
        self.tools.clone()
    }

    /// The names in force, and whether a name was ever declared.
    pub(crate) fn tool_names(&self) -> (Vec<String>, &HashSet<String>) {
        (self.tools.iter().map(|tool| name(tool).to_owned()).collect(), &self.mentioned)
    }

    /// Whether this version of the toolset is known to be in force: the usual case, which must cost nothing.
    pub(crate) fn is_checked(&self, version: u64) -> bool {
        self.checked == Some(version)
    }

    /// The wanted sections changed, whatever the version of the toolset; or it is another toolset's version.
    pub(crate) fn recheck(&mut self) {
        self.checked = None;
    }

    /// What differs from the wanted sections and tools. Without difference the version counts as checked.
    pub(crate) fn changes(&mut self, sections: &[(String, String)], tools: &[Declared], version: u64) -> Changes {
        let mut changes = Changes::default();
        for (name, text) in sections {
            if !self.sections.iter().any(|(known, known_text)| known == name && known_text == text) {
                changes.sections.insert(name.clone(), text.as_str().into());
            }
        }
        for (name, _) in &self.sections {
            if !sections.iter().any(|(wanted, _)| wanted == name) {
                changes.sections.insert(name.clone(), Value::Null);
            }
        }
        let declared: Vec<String> = self.tools.iter().map(json::to_string).collect();
        for (tool, text) in self.tools.iter().zip(&declared) {
            if !tools.iter().any(|wanted| wanted.text == *text) {
                changes.tools_removed.push(name(tool).to_owned());
            }
        }
        let missing = tools.iter().filter(|wanted| !declared.contains(&wanted.text));
        changes.tools_added = missing.map(|wanted| wanted.value.clone()).collect();
        if changes.is_empty() {
            self.checked = Some(version);
        }
        changes
    }
}
