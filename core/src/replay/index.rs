//! Where in a recording a conversation is.
//!
//! Every place is the hash of the messages before it, so a request is found by its own messages, on whatever branch of the
//! file they are, after compactions and edits as well.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use serde_json::Value;

use super::ReplayOptions;
use crate::agent::transform::{self, BRANCH_PREFIX, COMPACTION_PREFIX};
use crate::error::{Error, ErrorCode, Result};
use crate::message::{Block, Message, Role, StopReason};
use crate::tree::{EntryKind, Tree, contribution};

/// The place before the first message.
const BEGINNING: u64 = 0x6272_616e_6368;

pub(super) struct Index {
    tree: Tree,
    options: ReplayOptions,
    /// What follows at each place.
    places: HashMap<u64, Place>,
    /// Ids of the models that answered, in order of appearance.
    pub(super) models: Vec<String>,
    /// Texts of the summaries, in the order of the file.
    pub(super) summaries: Vec<String>,
    /// Declarations of tools, the last of each name.
    pub(super) tools: Vec<Value>,
    /// Entries of tool results by the id of their call.
    pub(super) results: HashMap<String, String>,
    /// Names and arguments of calls by id.
    pub(super) calls: HashMap<String, (String, Value)>,
}

#[derive(Default)]
struct Place {
    /// Entries of the answers given here, in the order of the file.
    answers: Vec<String>,
    /// Entries of everything that follows here.
    following: Vec<String>,
}

/// Where a conversation is.
pub(super) enum Position<'a> {
    /// At a place of the recording, with the answers given there.
    Known { place: u64, answers: &'a [String] },
    /// It left the recording behind `place`, with the message number `at`.
    Left { at: usize, place: u64, message: &'a Arc<Message> },
}

impl Index {
    pub(super) fn new(tree: &Tree, options: ReplayOptions) -> Result<Index> {
        let mut index = Index {
            tree: tree.clone(),
            options,
            places: HashMap::from([(BEGINNING, Place::default())]),
            models: Vec::new(),
            summaries: Vec::new(),
            tools: Vec::new(),
            results: HashMap::new(),
            calls: HashMap::new(),
        };
        let structure = tree.structure();
        // The places of the path to the node that is looked at.
        let mut path: Vec<u64> = Vec::new();
        for (node, depth) in structure.walk() {
            path.truncate(depth);
            let before = path.last().copied().unwrap_or(BEGINNING);
            let id = structure.id(node);
            let place = match structure.kind(node) {
                EntryKind::Compaction | EntryKind::ContextEdit => index.rebuilt(&id)?,
                EntryKind::Message(_) | EntryKind::CustomMessage | EntryKind::BranchSummary => {
                    index.entry(before, &id)?
                }
                _ => before,
            };
            path.push(place);
        }
        index.note_summaries()?;
        if index.models.is_empty() {
            index.models.push("recorded".to_owned());
        }
        Ok(index)
    }

    /// Goes on by the message of one entry.
    fn entry(&mut self, before: u64, id: &str) -> Result<u64> {
        let Some(entry) = self.tree.entry(id)? else { return Ok(before) };
        let mut place = before;
        for message in contribution(&entry) {
            let message = message.message();
            self.note(id, &message);
            place = self.step(place, id, &message);
        }
        Ok(place)
    }

    /// The place of a context that was changed as a whole.
    fn rebuilt(&mut self, id: &str) -> Result<u64> {
        let context = self.tree.context(Some(id))?;
        let mut place = BEGINNING;
        for message in context.messages() {
            let entry = message.entry_id().to_owned();
            place = self.step(place, &entry, &message.message());
        }
        Ok(place)
    }

    /// Goes on by one message, which may be none for the model.
    fn step(&mut self, before: u64, entry: &str, message: &Message) -> u64 {
        let here = self.places.entry(before).or_default();
        let know = |list: &mut Vec<String>| {
            if !list.iter().any(|known| known == entry) {
                list.push(entry.to_owned());
            }
        };
        if message.role() == Role::Assistant {
            know(&mut here.answers);
        }
        let mut place = before;
        for message in transform::to_llm([message]) {
            if counts(&message) {
                know(&mut self.places.entry(place).or_default().following);
                place = after(place, &message, self.options);
                self.places.entry(place).or_default();
            }
        }
        place
    }

    /// Remembers what is asked for by other ways than the place.
    fn note(&mut self, id: &str, message: &Message) {
        match message.role() {
            Role::Assistant => {
                if let Some(model) = message.get_str("model")
                    && !self.models.iter().any(|known| known == model)
                {
                    self.models.push(model.to_owned());
                }
                for block in message.blocks() {
                    if let Block::ToolCall(call) = block {
                        self.calls.insert(call.id.to_owned(), (call.name.to_owned(), call.arguments.clone()));
                    }
                }
            }
            Role::ToolResult => {
                if let Some(call) = message.get_str("toolCallId") {
                    self.results.insert(call.to_owned(), id.to_owned());
                }
            }
            Role::System => {
                let added = message.get("toolsAdded").and_then(Value::as_array).into_iter().flatten();
                for tool in added {
                    self.tools.retain(|known| known.get("name") != tool.get("name"));
                    self.tools.push(tool.clone());
                }
            }
            _ => {}
        }
    }

    fn note_summaries(&mut self) -> Result<()> {
        for entry in self.tree.entries() {
            let entry = entry?;
            if matches!(entry.kind(), EntryKind::Compaction | EntryKind::BranchSummary)
                && let Some(summary) = entry.string("summary")
            {
                self.summaries.push(summary);
            }
        }
        Ok(())
    }

    /// Where a conversation is.
    pub(super) fn position<'a>(&'a self, messages: &'a [Arc<Message>]) -> Position<'a> {
        let mut place = BEGINNING;
        for (at, message) in messages.iter().filter(|message| counts(message)).enumerate() {
            let next = after(place, message, self.options);
            if !self.places.contains_key(&next) {
                return Position::Left { at, place, message };
            }
            place = next;
        }
        let answers = self.places.get(&place).map_or(&[][..], |place| &place.answers);
        Position::Known { place, answers }
    }

    /// How many messages of a conversation count.
    pub(super) fn length(&self, messages: &[Arc<Message>]) -> usize {
        messages.iter().filter(|message| counts(message)).count()
    }

    /// Entries of what follows at a place.
    pub(super) fn following(&self, place: u64) -> &[String] {
        self.places.get(&place).map_or(&[], |place| &place.following)
    }

    /// The message of an entry.
    pub(super) fn message(&self, id: &str) -> Result<Message> {
        let message = self.tree.entry(id)?.and_then(|entry| entry.message());
        message.ok_or_else(|| Error::new(ErrorCode::EntryNotFound, format!("the recording has lost its entry {id:?}")))
    }
}

/// Whether a message belongs to what is compared: prompts of the system do not, nor do answers that failed and were tried
/// again.
fn counts(message: &Message) -> bool {
    match message.role() {
        Role::System => false,
        Role::Assistant => !matches!(message.stop_reason(), Some(StopReason::Error | StopReason::Aborted)),
        _ => true,
    }
}

/// The place behind a message.
fn after(place: u64, message: &Message, options: ReplayOptions) -> u64 {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    let mut add = |text: &str| {
        hasher.write_usize(text.len());
        hasher.write(text.as_bytes());
    };
    add(&format!("{place:x}"));
    add(message.role().name());
    let text = message.text("");
    if message.role() == Role::User && [COMPACTION_PREFIX, BRANCH_PREFIX].iter().any(|it| text.starts_with(it)) {
        add("summary");
        return hasher.finish();
    }
    if message.role() == Role::ToolResult {
        add(message.get_str("toolName").unwrap_or_default());
        if !options.compare_tool_results {
            return hasher.finish();
        }
        add(if message.get("isError") == Some(&Value::Bool(true)) { "error" } else { "" });
    }
    for block in message.blocks() {
        match block {
            Block::Text(block) => {
                add("text");
                add(block.text);
            }
            Block::Image(image) => {
                add(image.mime_type);
                add(image.data);
            }
            Block::ToolCall(call) => {
                add(call.name);
                add(&call.arguments.to_string());
            }
            _ => {}
        }
    }
    hasher.finish()
}
