//! What the model sees at a leaf (section C): the path, cut at its last compaction, with edits applied.
//!
//! Only the entries that take part are read, a run of neighbouring lines with one read. Messages stay raw JSON until
//! somebody wants to look inside.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::error::Result;
use crate::json;
use crate::message::{Message, Role};

use super::contribution::contribution;
use super::entry::{Entry, Line};
use super::kind::{EntryKind, MessagePlace};
use super::system::fold_system;
use super::tree::{State, Tree};

/// Lines closer than this are read together; a gap costs less than another read.
const GAP: u64 = 16 << 10;
/// Longest run of lines read at once.
const RUN: u64 = 8 << 20;

/// The context at one leaf.
#[derive(Debug, Clone)]
pub struct Context {
    entries: Vec<ContextEntry>,
    thinking_level: Option<String>,
    model: Option<ModelName>,
}

/// Provider and model id.
type ModelName = (String, String);

/// One entry that takes part in a context, in projected order.
#[derive(Debug, Clone)]
pub struct ContextEntry {
    entry: Entry,
    messages: Vec<ContextMessage>,
    omitted: bool,
}

/// One message of a context. It is a JSON text until asked to be more.
#[derive(Debug, Clone)]
pub struct ContextMessage {
    entry_id: Arc<str>,
    role: Role,
    source: Source,
    parsed: OnceLock<Arc<Message>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// The `message` of a line.
    Stored(Line, MessagePlace),
    /// A text made from a line.
    Made(Arc<[u8]>),
}

impl Context {
    /// The entries after the compaction rule: the compaction first, then what it kept, then what came after (S120–S125).
    pub fn entries(&self) -> &[ContextEntry] {
        &self.entries
    }

    /// All messages in order.
    pub fn messages(&self) -> impl Iterator<Item = &ContextMessage> {
        self.entries.iter().flat_map(|entry| &entry.messages)
    }

    /// Thinking level in force on the path (S119); `"off"` when the path sets none.
    pub fn thinking_level(&self) -> &str {
        self.thinking_level.as_deref().unwrap_or("off")
    }

    /// Whether the path records a thinking level (S291).
    pub fn has_thinking_level(&self) -> bool {
        self.thinking_level.is_some()
    }

    /// Provider and model id in force on the path (S119).
    pub fn model(&self) -> Option<(&str, &str)> {
        self.model.as_ref().map(|(provider, model)| (&**provider, &**model))
    }

    /// The prompt and tools in force: all system messages folded into one (S139, S140).
    pub fn system_message(&self) -> Option<Message> {
        let system: Vec<Arc<Message>> =
            self.messages().filter(|message| message.role == Role::System).map(ContextMessage::message).collect();
        fold_system(system.iter().map(|message| &**message))
    }
}

impl ContextEntry {
    /// The entry's id.
    pub fn id(&self) -> &str {
        self.entry.id()
    }

    /// The entry's kind.
    pub fn kind(&self) -> EntryKind {
        self.entry.kind()
    }

    /// The entry itself, unedited.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The messages it contributes after edits; most kinds contribute none (S126–S132).
    pub fn messages(&self) -> &[ContextMessage] {
        &self.messages
    }

    /// Whether an edit took everything away that it would contribute (S135).
    pub fn omitted(&self) -> bool {
        self.omitted
    }
}

impl ContextMessage {
    pub(crate) fn new(entry_id: &Arc<str>, role: Role, source: Source) -> ContextMessage {
        ContextMessage { entry_id: entry_id.clone(), role, source, parsed: OnceLock::new() }
    }

    /// Id of the entry it comes from.
    pub fn entry_id(&self) -> &str {
        &self.entry_id
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The role as written.
    pub fn role_name(&self) -> String {
        match self.role {
            Role::Other => json::get(&self.raw(), "role").and_then(json::decode_string).unwrap_or_default(),
            role => role.name().to_owned(),
        }
    }

    /// The message's JSON, byte for byte where no edit and no rule changed it.
    pub fn raw(&self) -> Cow<'_, [u8]> {
        match &self.source {
            Source::Made(text) => Cow::Borrowed(text),
            Source::Stored(line, place) => {
                let raw = match (place.at, line.bytes()) {
                    (0, line) => json::get(line, "message").unwrap_or(b"{}"),
                    (at, line) => &line[usize::from(at)..line.len() - 1],
                };
                if place.has_content { Cow::Borrowed(raw) } else { with_content(raw, self.role) }
            }
        }
    }

    /// The message, parsed once.
    pub fn message(&self) -> Arc<Message> {
        self.parsed.get_or_init(|| Arc::new(Message::from_json(&self.raw()).unwrap_or_default())).clone()
    }

    /// The same message with other content (S136).
    fn replace_content(&mut self, content: &[u8]) {
        let replaced = match (self.role, content.first()) {
            (Role::Assistant | Role::ToolResult, Some(b'"')) => {
                let block = [&b"[{\"type\":\"text\",\"text\":"[..], content, b"}]"].concat();
                json::replace_member(&self.raw(), "content", &block)
            }
            (Role::User | Role::Custom | Role::Assistant | Role::ToolResult, _) => {
                json::replace_member(&self.raw(), "content", content)
            }
            _ => return,
        };
        self.source = Source::Made(replaced.into());
        self.parsed = OnceLock::new();
    }
}

/// S127: missing or null content of the four model roles becomes empty content.
fn with_content(raw: &[u8], role: Role) -> Cow<'_, [u8]> {
    let empty: &[u8] = match role {
        Role::System => b"\"\"",
        Role::User | Role::Assistant | Role::ToolResult => b"[]",
        _ => return Cow::Borrowed(raw),
    };
    match json::get(raw, "content") {
        None | Some(b"null") => Cow::Owned(json::replace_member(raw, "content", empty)),
        Some(_) => Cow::Borrowed(raw),
    }
}

impl Tree {
    /// The context at `leaf`. `None` stands before the first entry and sees nothing; an unknown id falls back to the last
    /// entry of the file (S118). Costs O(path) steps in memory, and reads only what the context holds.
    ///
    /// # Errors
    /// `storage_failed` or `storage_changed` if a line cannot be read.
    pub fn context(&self, leaf: Option<&str>) -> Result<Context> {
        let state = self.read();
        let node = leaf.and_then(|leaf| state.index.find(leaf).or(state.index.last()));
        let path = node.map_or_else(Vec::new, |node| state.index.path(node));
        let (thinking_level, model) = state.settings(&path)?;
        let entries = state.context_entries(&path)?;
        drop(state);
        Ok(Context { entries: project(entries), thinking_level, model })
    }

    /// Thinking level and model in force at `leaf`, without the rest of the context (S119).
    ///
    /// # Errors
    /// As for [`Tree::context`].
    pub fn settings_at(&self, leaf: Option<&str>) -> Result<(String, Option<(String, String)>)> {
        let state = self.read();
        let (level, model) = state.settings(&state.path(leaf))?;
        Ok((level.unwrap_or_else(|| "off".to_owned()), model))
    }

    /// The system messages of the whole path to `leaf`, root first, also those that a compaction took out of the
    /// context; a compaction gives its snapshot (S304). Only these entries are read; they are few.
    ///
    /// # Errors
    /// As for [`Tree::context`].
    pub fn system_messages(&self, leaf: Option<&str>) -> Result<Vec<Arc<Message>>> {
        let state = self.read();
        let mut nodes = state.path(leaf);
        nodes.retain(|node| {
            matches!(state.index.node(*node).kind(), EntryKind::Message(Role::System) | EntryKind::Compaction)
        });
        let entries = state.read_entries(&nodes)?;
        drop(state);
        let messages = entries.iter().flat_map(contribution).filter(|message| message.role == Role::System);
        Ok(messages.map(|message| message.message()).collect())
    }
}

impl State {
    /// S119: read from the whole path, before any cut. Only the two entries that decide are read.
    fn settings(&self, path: &[u32]) -> Result<(Option<String>, Option<ModelName>)> {
        let last =
            |wanted: fn(EntryKind) -> bool| path.iter().rev().find(|node| wanted(self.index.node(**node).kind()));
        let level = match last(|kind| kind == EntryKind::ThinkingLevelChange) {
            Some(node) => self.entry(*node)?.string("thinkingLevel"),
            None => None,
        };
        let chooses = |kind| matches!(kind, EntryKind::ModelChange | EntryKind::Message(Role::Assistant));
        let model = match last(chooses) {
            Some(node) => {
                let entry = self.entry(*node)?;
                let (source, key) = match entry.kind() {
                    EntryKind::ModelChange => (Some(entry.json()), "modelId"),
                    _ => (entry.raw("message"), "model"),
                };
                let string = |key| source.and_then(|source| json::get(source, key)).and_then(json::decode_string);
                string("provider").zip(string(key))
            }
            None => None,
        };
        Ok((level, model))
    }

    /// The entries of S120–S124, read.
    fn context_entries(&self, path: &[u32]) -> Result<Vec<Entry>> {
        let kind = |node: u32| self.index.node(node).kind();
        let Some(at) = path.iter().rposition(|node| kind(*node) == EntryKind::Compaction) else {
            return self.read_entries(path);
        };
        let compaction = self.entry(path[at])?;
        let first_kept = compaction.string("firstKeptEntryId").and_then(|id| self.index.find(&id));
        let start = first_kept.and_then(|first| path[..at].iter().rposition(|node| *node == first)).unwrap_or(at);
        let kept = path[start..at].iter().copied().filter(|node| kind(*node) != EntryKind::Message(Role::System));
        let nodes: Vec<u32> = kept.chain(path[at + 1..].iter().copied()).collect();
        let mut entries = Vec::with_capacity(nodes.len() + 1);
        entries.push(compaction);
        entries.extend(self.read_entries(&nodes)?);
        Ok(entries)
    }

    /// Reads entries, neighbours together.
    pub(crate) fn read_entries(&self, nodes: &[u32]) -> Result<Vec<Entry>> {
        let mut entries = Vec::with_capacity(nodes.len());
        let mut at = 0;
        while at < nodes.len() {
            let start = self.index.place(nodes[at]).offset;
            let mut end = start;
            let mut next = at;
            while let Some(place) = nodes.get(next).map(|node| self.index.place(*node)) {
                let place_end = place.offset + u64::from(place.len);
                let near = place.offset >= end && place.offset - end <= GAP && place_end - start <= RUN;
                if next > at && !near {
                    break;
                }
                end = place_end;
                next += 1;
            }
            let buffer = Arc::new(self.log.read(start, (end - start) as usize)?);
            for node in &nodes[at..next] {
                let place = self.index.place(*node);
                let from = (place.offset - start) as usize;
                let facts = self.index.node(*node);
                entries.push(Entry {
                    id: self.index.id(*node).to_owned(),
                    kind: facts.kind(),
                    message: facts.message,
                    line: Line::new(buffer.clone(), from..from + place.len as usize),
                });
            }
            at = next;
        }
        Ok(entries)
    }
}

/// Applies contributions and edits (S126–S138).
fn project(entries: Vec<Entry>) -> Vec<ContextEntry> {
    let edits = edits(&entries);
    let has_compaction = entries.first().is_some_and(|entry| entry.kind() == EntryKind::Compaction);
    let mut out: Vec<ContextEntry> = Vec::with_capacity(entries.len());
    for (at, entry) in entries.into_iter().enumerate() {
        // Only the compaction that cut the path speaks; an older one inside the kept range does not (S125).
        let speaks = entry.kind() != EntryKind::Compaction || (has_compaction && at == 0);
        let mut messages = if speaks { contribution(&entry) } else { Vec::new() };
        let mut omitted = false;
        match edits.get(entry.id()) {
            None => {}
            Some(Edit::Omit) => {
                omitted = true;
                messages.clear();
            }
            Some(Edit::Replace(content)) => messages.iter_mut().for_each(|message| message.replace_content(content)),
        }
        out.push(ContextEntry { entry, messages, omitted });
    }
    out
}

enum Edit {
    Omit,
    Replace(Vec<u8>),
}

/// Target → its last edit (S133, S134). An edit without a usable replacement is passed over (S138).
fn edits(entries: &[Entry]) -> HashMap<String, Edit> {
    let mut edits = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.kind() == EntryKind::ContextEdit) {
        let Some(target) = entry.string("targetId") else { continue };
        let edit = match entry.raw("replacement") {
            Some(b"null") => Edit::Omit,
            Some(object) if object.starts_with(b"{") => match json::get(object, "content") {
                Some(content) if content.starts_with(b"\"") || content.starts_with(b"[") => {
                    Edit::Replace(content.to_vec())
                }
                _ => continue,
            },
            _ => continue,
        };
        edits.insert(target, edit);
    }
    edits
}

/// The JSON value of a context message, for hosts that want the whole context as data.
impl From<&ContextMessage> for Value {
    fn from(message: &ContextMessage) -> Value {
        (*message.message()).clone().into_value()
    }
}
