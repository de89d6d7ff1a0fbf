//! Entry lines in their written order (S11, S17–S27).

use serde_json::Value;

use crate::blank;
use crate::json;
use crate::message::{Message, Role};

use super::kind::{EntryKind, MessagePlace};
use super::time::parse_iso;

/// A compaction to append (S21).
#[derive(Debug, Clone, Default)]
pub struct CompactionEntry {
    /// The summary.
    pub summary: String,
    /// First entry that stays in context; `None` keeps nothing before the compaction (S78).
    pub first_kept_entry_id: Option<String>,
    /// Context size before, in tokens.
    pub tokens_before: u64,
    /// File lists or a host's own data.
    pub details: Option<Value>,
    /// Tokens the summary cost.
    pub usage: Option<Value>,
    /// Whether a hook made it.
    pub from_hook: Option<bool>,
}

/// A branch summary to append (S22).
#[derive(Debug, Clone, Default)]
pub struct BranchSummaryEntry {
    /// The summary; an empty one is stored and gives no message (S129).
    pub summary: String,
    /// File lists or a host's own data.
    pub details: Option<Value>,
    /// Whether a hook made it.
    pub from_hook: Option<bool>,
    /// Tokens the summary cost.
    pub usage: Option<Value>,
}

/// The base fields of an entry about to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base<'a> {
    pub(crate) id: &'a str,
    pub(crate) parent: Option<&'a str>,
    pub(crate) timestamp: &'a str,
}

/// Writes the members of one entry line.
pub(crate) struct LineWriter {
    out: Vec<u8>,
}

impl LineWriter {
    /// `{"type":T,"id":…,"parentId":…,"timestamp":…`
    pub(crate) fn new(out: Vec<u8>, entry_type: &str, base: Base<'_>) -> LineWriter {
        let mut line = LineWriter::payload_first(out, entry_type);
        line.base(base);
        line
    }

    /// `{"type":T`, for the kinds whose payload comes before the base fields (S23, S24).
    /// The line replaces what `out` holds; only its room is used.
    pub(crate) fn payload_first(mut out: Vec<u8>, entry_type: &str) -> LineWriter {
        out.clear();
        out.extend_from_slice(b"{\"type\":");
        json::write_string(&mut out, entry_type);
        LineWriter { out }
    }

    pub(crate) fn base(&mut self, base: Base<'_>) {
        self.string("id", base.id);
        match base.parent {
            Some(parent) => self.string("parentId", parent),
            None => self.raw("parentId", b"null"),
        }
        self.string("timestamp", base.timestamp);
    }

    pub(crate) fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        json::write_string(&mut self.out, value);
    }

    pub(crate) fn raw(&mut self, key: &str, value: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(value);
    }

    pub(crate) fn value<T: serde::Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.key(key);
        json::write(&mut self.out, value);
    }

    pub(crate) fn optional<T: serde::Serialize>(&mut self, key: &str, value: &Option<T>) {
        if let Some(value) = value {
            self.value(key, value);
        }
    }

    /// The line with its LF.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(b"}\n");
        self.out
    }

    fn key(&mut self, key: &str) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

/// What an append writes.
pub(crate) enum NewEntry<'a> {
    Message(&'a Message),
    ThinkingLevel(&'a str),
    Model {
        provider: &'a str,
        model_id: &'a str,
    },
    Usage {
        kind: &'a str,
        provider: &'a str,
        model: &'a str,
        usage: &'a Value,
        note: Option<&'a str>,
    },
    Custom {
        custom_type: &'a str,
        data: Option<&'a Value>,
    },
    CustomMessage {
        custom_type: &'a str,
        content: &'a Value,
        display: bool,
        details: Option<&'a Value>,
    },
    ContextEdit {
        target: &'a str,
        replacement: &'a Value,
    },
    Label {
        target: &'a str,
        label: Option<&'a str>,
    },
    SessionInfo {
        name: &'a str,
    },
    /// With the folded system message, if there is one (S78).
    Compaction {
        entry: &'a CompactionEntry,
        system: Option<Message>,
    },
    BranchSummary {
        from: &'a str,
        entry: &'a BranchSummaryEntry,
    },
}

impl NewEntry<'_> {
    pub(crate) fn kind(&self) -> EntryKind {
        match self {
            NewEntry::Message(message) => EntryKind::Message(message.role()),
            NewEntry::ThinkingLevel(_) => EntryKind::ThinkingLevelChange,
            NewEntry::Model { .. } => EntryKind::ModelChange,
            NewEntry::Usage { .. } => EntryKind::Usage,
            NewEntry::Custom { .. } => EntryKind::Custom,
            NewEntry::CustomMessage { .. } => EntryKind::CustomMessage,
            NewEntry::ContextEdit { .. } => EntryKind::ContextEdit,
            NewEntry::Label { .. } => EntryKind::Label,
            NewEntry::SessionInfo { .. } => EntryKind::SessionInfo,
            NewEntry::Compaction { .. } => EntryKind::Compaction,
            NewEntry::BranchSummary { .. } => EntryKind::BranchSummary,
        }
    }

    /// The entry's line with its LF, in the room of `out`, and where its message lies.
    pub(crate) fn line(&self, kind: EntryKind, base: Base<'_>, out: Vec<u8>) -> (Vec<u8>, MessagePlace) {
        let NewEntry::Message(message) = self else {
            return (self.other_line(kind, base, out), MessagePlace::default());
        };
        let mut line = LineWriter::new(out, kind.type_name(), base);
        line.key("message");
        let place = MessagePlace {
            at: u16::try_from(line.out.len()).unwrap_or(0),
            exists: true,
            has_content: message.get("content").is_some_and(|content| !content.is_null()),
        };
        json::write_object(&mut line.out, message.object());
        (line.finish(), place)
    }

    fn other_line(&self, kind: EntryKind, base: Base<'_>, out: Vec<u8>) -> Vec<u8> {
        let name = kind.type_name();
        match self {
            NewEntry::Custom { custom_type, data } => {
                let mut line = LineWriter::payload_first(out, name);
                line.string("customType", custom_type);
                line.optional("data", data);
                line.base(base);
                return line.finish();
            }
            NewEntry::CustomMessage { custom_type, content, display, details } => {
                let mut line = LineWriter::payload_first(out, name);
                line.string("customType", custom_type);
                line.value("content", content);
                line.value("display", display);
                line.optional("details", details);
                line.base(base);
                return line.finish();
            }
            _ => {}
        }
        let mut line = LineWriter::new(out, name, base);
        match self {
            NewEntry::Custom { .. } | NewEntry::CustomMessage { .. } | NewEntry::Message(_) => {}
            NewEntry::ThinkingLevel(level) => line.string("thinkingLevel", level),
            NewEntry::Model { provider, model_id } => {
                line.string("provider", provider);
                line.string("modelId", model_id);
            }
            NewEntry::Usage { kind, provider, model, usage, note } => {
                line.string("kind", kind);
                line.string("provider", provider);
                line.string("model", model);
                line.value("usage", usage);
                line.optional("note", &note.filter(|note| !note.is_empty()));
            }
            NewEntry::ContextEdit { target, replacement } => {
                line.string("targetId", target);
                line.value("replacement", replacement);
            }
            NewEntry::Label { target, label } => {
                line.string("targetId", target);
                line.optional("label", label);
            }
            NewEntry::SessionInfo { name } => line.string("name", name),
            NewEntry::Compaction { entry, system } => {
                line.string("summary", &entry.summary);
                line.string("firstKeptEntryId", entry.first_kept_entry_id.as_deref().unwrap_or(base.id));
                line.value("tokensBefore", &entry.tokens_before);
                line.optional("details", &entry.details);
                line.optional("usage", &entry.usage);
                line.optional("fromHook", &entry.from_hook);
                // The snapshot is as old as its compaction (S78).
                let system = system.clone().map(|mut system| {
                    system.set("timestamp", parse_iso(base.timestamp));
                    system
                });
                line.optional("systemMessage", &system);
            }
            NewEntry::BranchSummary { from, entry } => {
                line.string("fromId", from);
                line.string("summary", &entry.summary);
                line.optional("details", &entry.details);
                line.optional("usage", &entry.usage);
                line.optional("fromHook", &entry.from_hook);
            }
        }
        line.finish()
    }
}

/// A session name as it is stored: line breaks become spaces, ends are trimmed (S74).
pub(crate) fn clean_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut in_break = false;
    for c in name.chars() {
        let is_break = matches!(c, '\r' | '\n');
        if !is_break {
            out.push(c);
        } else if !in_break {
            out.push(' ');
        }
        in_break = is_break;
    }
    blank::trim(&out).to_owned()
}

/// Kinds whose content a context edit may replace (S76).
pub(crate) fn is_editable(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::CustomMessage | EntryKind::Message(Role::User | Role::Assistant | Role::ToolResult))
}

/// A replacement as it is stored: a string becomes a text block where the target's content is an array (S77).
pub(crate) fn replacement(kind: EntryKind, given: &Value, content: &Value) -> Value {
    match (kind, content) {
        (EntryKind::Message(Role::Assistant | Role::ToolResult), Value::String(text)) => {
            serde_json::json!({"content": [{"type": "text", "text": text}]})
        }
        _ => given.clone(),
    }
}
