//! What a summary of a left branch would be made of (S166, S175–S178). Nothing here asks a model or writes anything.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::estimate::message_tokens;
use super::files::{FileLists, FileOperations};
use crate::error::Result;
use crate::message::{Message, Role};
use crate::tree::{Entry, EntryKind, Tree, parse_iso};

/// Context window assumed for a model whose window is unknown (S175).
const UNKNOWN_WINDOW: u64 = 128_000;

/// What is left behind by moving from one leaf to another.
#[derive(Debug, Clone)]
pub struct LeftBranch {
    /// The deepest entry on both paths; `None` when they share nothing.
    pub common_ancestor: Option<String>,
    /// The entries of the old path behind it, oldest first.
    pub entries: Vec<Entry>,
}

/// The entries left behind by moving from `old_leaf` to `target` (S166).
pub fn left_behind(tree: &Tree, old_leaf: Option<&str>, target: Option<&str>) -> Result<LeftBranch> {
    let Some(old_leaf) = old_leaf else {
        return Ok(LeftBranch { common_ancestor: None, entries: Vec::new() });
    };
    let kept: HashSet<String> = target.map(|target| tree.branch(Some(target)).ids().collect()).unwrap_or_default();
    let old: Vec<String> = tree.branch(Some(old_leaf)).ids().collect();
    let shared = old.iter().rposition(|id| kept.contains(id));
    let mut entries = Vec::new();
    for id in &old[shared.map_or(0, |at| at + 1)..] {
        entries.extend(tree.entry(id)?);
    }
    Ok(LeftBranch { common_ancestor: shared.map(|at| old[at].clone()), entries })
}

/// Tokens a summary request may spend on the conversation; `None` means no limit (S175).
pub fn budget(window: Option<u64>, reserve_tokens: u64) -> Option<u64> {
    let window = window.filter(|window| *window > 0).unwrap_or(UNKNOWN_WINDOW);
    window.checked_sub(reserve_tokens).filter(|budget| *budget > 0)
}

/// The conversation chosen for a summary.
#[derive(Debug, Clone, Default)]
pub struct BranchPreparation {
    /// Messages within the budget, oldest first.
    pub messages: Vec<Message>,
    /// Their estimate.
    pub total_tokens: u64,
    /// Files the branch dealt with.
    pub files: FileLists,
}

/// Chooses what a summary of `entries` (oldest first) is made of; `budget` `None` or 0 means no limit (S176–S178).
pub fn prepare_branch(entries: &[Entry], budget: Option<u64>) -> BranchPreparation {
    let budget = budget.filter(|budget| *budget > 0);
    let values: Vec<Value> = entries.iter().map(Entry::value).collect();
    let mut files = FileOperations::default();
    for (entry, value) in entries.iter().zip(&values) {
        if entry.kind() == EntryKind::BranchSummary {
            files.add_summary(value);
        }
    }
    let edits = edits(entries, &values);
    let mut out = BranchPreparation::default();
    for (entry, value) in entries.iter().zip(&values).rev() {
        let Some(message) = message(entry, value, edits.get(entry.id()).copied()) else { continue };
        files.add_calls(&message);
        let tokens = message_tokens(&message);
        let over = budget.filter(|budget| out.total_tokens + tokens > *budget);
        if let Some(budget) = over {
            // A summary says much in few words: it still gets in while a tenth of the budget is free (S177).
            let is_summary = matches!(entry.kind(), EntryKind::Compaction | EntryKind::BranchSummary);
            if is_summary && u128::from(out.total_tokens) * 10 < u128::from(budget) * 9 {
                out.total_tokens += tokens;
                out.messages.push(message);
            }
            break;
        }
        out.total_tokens += tokens;
        out.messages.push(message);
    }
    out.messages.reverse();
    out.files = files.lists();
    out
}

/// The last edit of each target; an edit without a usable `replacement` does nothing (S138).
fn edits<'a>(entries: &[Entry], values: &'a [Value]) -> HashMap<&'a str, &'a Value> {
    let edits = entries.iter().zip(values).filter(|(entry, _)| entry.kind() == EntryKind::ContextEdit);
    let usable = |replacement: &&Value| {
        let content = replacement.get("content");
        replacement.is_null() || content.is_some_and(|content| content.is_string() || content.is_array())
    };
    let edit =
        |value: &'a Value| value.get("targetId").and_then(Value::as_str).zip(value.get("replacement").filter(usable));
    edits.filter_map(|(_, value)| edit(value)).collect()
}

/// The message an entry gives to a summary, after its edit (S176).
fn message(entry: &Entry, value: &Value, edit: Option<&Value>) -> Option<Message> {
    // Summaries are no targets of edits (S76); one written by hand does not count here.
    let edit = edit.filter(|_| matches!(entry.kind(), EntryKind::Message(_) | EntryKind::CustomMessage));
    if edit.is_some_and(Value::is_null) {
        return None;
    }
    let string = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let time = || parse_iso(&entry.timestamp()).map_or(f64::NAN, |ms| ms as f64);
    let mut message = match entry.kind() {
        EntryKind::Message(Role::ToolResult) => return None,
        EntryKind::Message(_) => Message::from_value(value.get("message")?.clone())?,
        EntryKind::CustomMessage => {
            let content = value.get("content").filter(|content| !content.is_null()).cloned().unwrap_or(json!([]));
            let display = value.get("display").and_then(Value::as_bool).unwrap_or(false);
            Message::custom(string("customType"), content, display, value.get("details").cloned(), time())
        }
        // Unlike in a context, an empty summary is a message here.
        EntryKind::BranchSummary => Message::branch_summary(string("summary"), string("fromId"), time()),
        EntryKind::Compaction => {
            let tokens = value.get("tokensBefore").cloned().unwrap_or_default();
            Message::compaction_summary(string("summary"), tokens, time())
        }
        _ => return None,
    };
    if let Some(content) = edit.and_then(|edit| edit.get("content")) {
        replace_content(&mut message, content);
    }
    Some(message)
}

/// An edit changes the content of these roles only; an assistant's content is always a list (S136).
fn replace_content(message: &mut Message, content: &Value) {
    match (message.role(), content) {
        (Role::Assistant | Role::ToolResult, Value::String(text)) => {
            message.set("content", json!([{"type": "text", "text": text}]));
        }
        (Role::User | Role::Assistant | Role::ToolResult | Role::Custom, content) => {
            message.set("content", content.clone());
        }
        _ => {}
    }
}
