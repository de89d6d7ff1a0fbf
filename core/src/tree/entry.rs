//! One entry, with its line as it stands in the file.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::json;
use crate::message::Message;

use super::kind::{EntryKind, MessagePlace};

/// A line of the log: part of a buffer that may hold many.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Line {
    pub(crate) fn new(buffer: Arc<Vec<u8>>, range: Range<usize>) -> Line {
        Line { buffer, range }
    }

    pub(crate) fn whole(bytes: Vec<u8>) -> Line {
        let range = 0..bytes.len();
        Line { buffer: Arc::new(bytes), range }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

/// One entry of the tree. Its fields are read from the line when asked for.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(crate) id: String,
    pub(crate) kind: EntryKind,
    pub(crate) message: MessagePlace,
    pub(crate) line: Line,
}

impl Entry {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it is.
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The `type` as written; empty if it is no string.
    pub fn type_name(&self) -> String {
        self.string("type").unwrap_or_default()
    }

    /// The `parentId` as written; `None` for `null` and whatever is no string.
    pub fn parent_id(&self) -> Option<String> {
        self.string("parentId")
    }

    /// The `timestamp` as written; empty if it is no string.
    pub fn timestamp(&self) -> String {
        self.string("timestamp").unwrap_or_default()
    }

    /// The line without its LF, byte for byte as in the file.
    pub fn json(&self) -> &[u8] {
        self.line.bytes()
    }

    /// Raw JSON of one field.
    pub fn raw(&self, key: &str) -> Option<&[u8]> {
        json::get(self.json(), key)
    }

    /// One field that is a string.
    pub fn string(&self, key: &str) -> Option<String> {
        self.raw(key).and_then(json::decode_string)
    }

    /// The whole entry as a JSON value. A foreign text may lose details in this view (see [`json::to_serde`]); the
    /// line itself keeps them.
    pub fn value(&self) -> Value {
        json::parse(self.json()).unwrap_or(Value::Null)
    }

    /// The message of a `message` entry.
    pub fn message(&self) -> Option<Message> {
        match self.kind {
            EntryKind::Message(_) => self.raw("message").and_then(Message::from_json),
            _ => None,
        }
    }
}
