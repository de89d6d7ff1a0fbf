//! A position in a tree, and appending there (S72–S78, S87–S89).

use serde_json::Value;

use crate::error::{Error, ErrorCode, Result};
use crate::json;
use crate::message::{Message, Role, StopReason};

use super::append::{kind_of, not_found};
use super::new_entry::{self, BranchSummaryEntry, CompactionEntry, NewEntry};
use super::tree::Tree;

/// One leaf over a tree. Every append goes below the leaf and becomes the new leaf, whatever its kind (S72).
///
/// Cursors on one tree are independent; moving one writes nothing and moves no other (S45).
#[derive(Debug, Clone)]
pub struct Cursor {
    tree: Tree,
    leaf: Option<String>,
}

impl Cursor {
    /// A cursor on the last entry of the file (S58).
    pub fn new(tree: Tree) -> Cursor {
        let leaf = tree.last_id();
        Cursor { tree, leaf }
    }

    /// A cursor on an entry, or before the first one.
    ///
    /// # Errors
    /// `entry_not_found`.
    pub fn at(tree: Tree, leaf: Option<&str>) -> Result<Cursor> {
        let mut cursor = Cursor { tree, leaf: None };
        if let Some(leaf) = leaf {
            cursor.move_to(leaf)?;
        }
        Ok(cursor)
    }

    /// The tree it stands on.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The entry it stands on; `None` before the first one.
    pub fn leaf(&self) -> Option<&str> {
        self.leaf.as_deref()
    }

    /// Moves to an entry. Nothing is written (S87).
    ///
    /// # Errors
    /// `entry_not_found`; the cursor then stays where it was.
    pub fn move_to(&mut self, id: &str) -> Result<()> {
        if !self.tree.knows(id) {
            return Err(not_found(id));
        }
        self.leaf = Some(id.to_owned());
        Ok(())
    }

    /// Moves before the first entry: the next append is a new root (S88).
    pub fn reset(&mut self) {
        self.leaf = None;
    }

    /// Moves to `target` (or before the first entry) and appends a summary of what was left there (S89).
    ///
    /// # Errors
    /// `entry_not_found`, and what every append may give; the cursor then stays where it was.
    pub fn move_with_summary(&mut self, target: Option<&str>, entry: &BranchSummaryEntry) -> Result<String> {
        let from = self.leaf.as_deref().unwrap_or("root");
        let id = self.tree.append(target, &NewEntry::BranchSummary { from, entry })?;
        self.leaf = Some(id.clone());
        Ok(id)
    }

    /// Appends a message (S17).
    ///
    /// # Errors
    /// Every append may give `read_only`, `storage_failed`, `storage_changed`, `file_exists` (when the file should come
    /// into being, S43) or `entry_not_found` (the leaf is gone). Tree and cursor are then as before, and a later append
    /// may work. `invalid_argument` for what is never stored: summaries, which have entries of their own kinds, and a
    /// response that is still `pending`.
    pub fn append_message(&mut self, message: &Message) -> Result<String> {
        let summary = matches!(message.role(), Role::BranchSummary | Role::CompactionSummary);
        if summary || (message.role() == Role::Assistant && message.stop_reason() == Some(StopReason::Pending)) {
            let message = "summaries and unfinished responses are not stored as messages";
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        self.append(&NewEntry::Message(message))
    }

    /// Appends a thinking level (S18).
    ///
    /// # Errors
    /// See [`Cursor::append_message`].
    pub fn append_thinking_level(&mut self, level: &str) -> Result<String> {
        self.append(&NewEntry::ThinkingLevel(level))
    }

    /// Appends a model choice (S19).
    ///
    /// # Errors
    /// See [`Cursor::append_message`].
    pub fn append_model(&mut self, provider: &str, model_id: &str) -> Result<String> {
        self.append(&NewEntry::Model { provider, model_id })
    }

    /// Appends usage that belongs to no message (S20).
    ///
    /// # Errors
    /// See [`Cursor::append_message`].
    pub fn append_usage(
        &mut self,
        kind: &str,
        provider: &str,
        model: &str,
        usage: &Value,
        note: Option<&str>,
    ) -> Result<String> {
        self.append(&NewEntry::Usage { kind, provider, model, usage, note })
    }

    /// Appends state of a host or extension that never reaches the model (S23).
    ///
    /// # Errors
    /// See [`Cursor::append_message`].
    pub fn append_custom(&mut self, custom_type: &str, data: Option<&Value>) -> Result<String> {
        self.append(&NewEntry::Custom { custom_type, data })
    }

    /// Appends a message of a host or extension that does reach the model (S24). `content` is a string or an array of
    /// text and image blocks.
    ///
    /// # Errors
    /// See [`Cursor::append_message`].
    pub fn append_custom_message(
        &mut self,
        custom_type: &str,
        content: &Value,
        display: bool,
        details: Option<&Value>,
    ) -> Result<String> {
        self.append(&NewEntry::CustomMessage { custom_type, content, display, details })
    }

    /// Appends a label for any entry of the tree; `None` or an empty text clears it (S75).
    ///
    /// # Errors
    /// `entry_not_found` for an unknown target; see also [`Cursor::append_message`].
    pub fn append_label(&mut self, target: &str, label: Option<&str>) -> Result<String> {
        if !self.tree.knows(target) {
            return Err(not_found(target));
        }
        self.append(&NewEntry::Label { target, label })
    }

    /// Appends a session name, on one line and trimmed (S74).
    ///
    /// # Errors
    /// See [`Cursor::append_message`].
    pub fn append_name(&mut self, name: &str) -> Result<String> {
        self.append(&NewEntry::SessionInfo { name: &new_entry::clean_name(name) })
    }

    /// Appends a change of what the model sees of one entry: `replacement` is null (omit it) or `{content}` (S76, S77).
    ///
    /// # Errors
    /// `invalid_replacement`, `entry_not_found`, `not_on_active_branch`, `not_editable`; see also
    /// [`Cursor::append_message`].
    pub fn append_context_edit(&mut self, target: &str, replacement: &Value) -> Result<String> {
        let content = replacement.get("content").filter(|content| content.is_string() || content.is_array());
        if !replacement.is_null() && content.is_none() {
            let message = format!(
                "a replacement is null or an object with a content that is a string or an array, not {}",
                json::to_string(replacement).chars().take(80).collect::<String>()
            );
            return Err(Error::new(ErrorCode::InvalidReplacement, message));
        }
        self.tree.knows(target);
        let kind = kind_of(&self.tree.read(), target)?;
        if !self.tree.branch(self.leaf()).contains(target) {
            let message = format!("the entry {target:?} is not on the branch of the leaf");
            return Err(Error::new(ErrorCode::NotOnActiveBranch, message));
        }
        if !new_entry::is_editable(kind) {
            let message = format!(
                "the entry {target:?} ({}) cannot be edited; messages of users, models, tools and hosts can",
                kind.type_name()
            );
            return Err(Error::new(ErrorCode::NotEditable, message));
        }
        let replacement = match content {
            None => Value::Null,
            Some(content) => new_entry::replacement(kind, replacement, content),
        };
        self.append(&NewEntry::ContextEdit { target, replacement: &replacement })
    }

    /// Appends a compaction, with the prompt and tools in force folded into it (S78).
    ///
    /// # Errors
    /// See [`Cursor::append_message`].
    pub fn append_compaction(&mut self, entry: &CompactionEntry) -> Result<String> {
        let system = self.tree.context(self.leaf())?.system_message();
        self.append(&NewEntry::Compaction { entry, system })
    }

    fn append(&mut self, entry: &NewEntry<'_>) -> Result<String> {
        let id = self.tree.append(self.leaf.as_deref(), entry)?;
        match &mut self.leaf {
            // In the room of the id before.
            Some(leaf) => leaf.clone_from(&id),
            none => *none = Some(id.clone()),
        }
        Ok(id)
    }
}
