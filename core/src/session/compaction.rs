//! What a compaction would summarise and keep (S265–S275). Nothing here asks a model or writes anything.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::estimate::{after_compaction, message_tokens, projected_tokens};
use super::files::FileOperations;
use crate::message::{Message, Role};
use crate::tree::{Context, ContextEntry, ContextMessage, EntryKind};

/// A compaction that can be made.
#[derive(Debug, Clone)]
pub struct Preparation {
    /// The first entry that stays in context.
    pub first_kept_entry_id: String,
    /// The cut falls inside a turn.
    pub is_split_turn: bool,
    /// The context's estimate before the compaction (S273).
    pub tokens_before: u64,
    /// Summary of the compaction before this one.
    pub previous_summary: Option<String>,
    /// Complete turns to summarise.
    pub history: Vec<Message>,
    /// The summarised beginning of a split turn.
    pub turn_prefix: Vec<Message>,
    /// Files the summarised part dealt with, and those of the previous summary.
    pub files: FileOperations,
}

/// One context entry with its messages read.
struct Item<'a> {
    entry: &'a ContextEntry,
    messages: Vec<Arc<Message>>,
}

impl Item<'_> {
    fn is_compaction(&self) -> bool {
        self.entry.kind() == EntryKind::Compaction
    }

    fn has(&self, wanted: impl Fn(Role) -> bool) -> bool {
        !self.is_compaction() && self.messages.iter().any(|message| wanted(message.role()))
    }

    /// A cut may fall here: a tool result must stay with its call, and a system message is state, not talk (S267).
    fn is_cut_point(&self) -> bool {
        self.starts_turn() || self.has(|role| role == Role::Assistant)
    }

    fn starts_turn(&self) -> bool {
        self.has(|role| {
            use Role::{BashExecution, BranchSummary, CompactionSummary, Custom, User};
            matches!(role, User | BashExecution | Custom | BranchSummary | CompactionSummary)
        })
    }
}

/// Plans a compaction of `context` that keeps about `keep_recent_tokens`; `None` when there is nothing to do (S265).
pub fn prepare(context: &Context, keep_recent_tokens: u64) -> Option<Preparation> {
    let entries = context.entries();
    let compaction = entries.first().filter(|first| first.kind() == EntryKind::Compaction);
    if compaction.is_some() && after_compaction(entries) == entries.len() {
        return None;
    }
    // One that an edit took out of the context is history of no interest.
    let previous = compaction.filter(|compaction| !compaction.omitted());
    let items: Vec<Item<'_>> = entries
        .iter()
        .map(|entry| Item { entry, messages: entry.messages().iter().map(ContextMessage::message).collect() })
        .collect();
    let start = usize::from(previous.is_some());
    let cut = find_cut(&items, start, keep_recent_tokens)?;
    // A cut inside a turn splits it; the test is made on the entry the cut ended on (S271, S272).
    let turn = if items[cut].starts_turn() { None } else { (start..cut).rev().find(|at| items[*at].starts_turn()) };
    let history = spoken(&items, start..turn.unwrap_or(cut));
    let turn_prefix = turn.map(|turn| spoken(&items, turn..cut)).unwrap_or_default();
    if history.is_empty() && turn_prefix.is_empty() {
        return None;
    }
    let mut files = FileOperations::default();
    let mut previous_summary = None;
    if let Some(previous) = previous {
        let value = previous.entry().value();
        files.add_summary(&value);
        previous_summary = value.get("summary").and_then(Value::as_str).map(str::to_owned);
    }
    for message in history.iter().chain(&turn_prefix) {
        files.add_message(message);
    }
    Some(Preparation {
        first_kept_entry_id: items[cut].entry.id().to_owned(),
        is_split_turn: turn.is_some(),
        tokens_before: projected_tokens(context),
        previous_summary,
        history,
        turn_prefix,
        files,
    })
}

/// System messages and older compactions are not summarised (S271).
fn spoken(items: &[Item<'_>], range: Range<usize>) -> Vec<Message> {
    items[range]
        .iter()
        .filter(|item| !item.is_compaction())
        .flat_map(|item| &item.messages)
        .filter(|message| message.role() != Role::System)
        .map(|message| Message::clone(message))
        .collect()
}

/// Index of the first kept entry; `None` when the range is empty (S267–S270).
fn find_cut(items: &[Item<'_>], start: usize, keep_recent_tokens: u64) -> Option<usize> {
    if start >= items.len() {
        return None;
    }
    let cut_points: Vec<usize> = (start..items.len()).filter(|at| items[*at].is_cut_point()).collect();
    let (mut cut, reached) = match cut_points.first() {
        None => (start, false),
        Some(first) => match budget_reached(items, start, keep_recent_tokens) {
            None => (*first, false),
            Some(at) => (cut_points.iter().copied().find(|point| *point >= at).unwrap_or(*cut_points.last()?), true),
        },
    };
    if reached && only_omitted_answer_follows(&items[cut + 1..]) {
        cut += 1;
    }
    // Settings, labels and the like stay with what follows them (S270).
    while cut > start && items[cut - 1].messages.is_empty() && !items[cut - 1].is_compaction() {
        cut -= 1;
    }
    Some(cut)
}

/// The newest entry from which on the recent budget is used up (S268).
fn budget_reached(items: &[Item<'_>], start: usize, keep_recent_tokens: u64) -> Option<usize> {
    let mut sum = 0;
    (start..items.len()).rev().find(|at| {
        let tokens: u64 = items[*at].messages.iter().map(|message| message_tokens(message)).sum();
        sum += tokens;
        tokens > 0 && sum >= keep_recent_tokens
    })
}

/// After an overflow the failed answer is omitted and its over-long input stands last; keeping that input would
/// overflow again, so it has to be summarised itself (S269).
fn only_omitted_answer_follows(after: &[Item<'_>]) -> bool {
    let ids: HashSet<&str> = after.iter().map(|item| item.entry.id()).collect();
    let answer_omitted =
        after.iter().any(|item| item.entry.omitted() && item.entry.kind() == EntryKind::Message(Role::Assistant));
    let blocked = after.iter().any(|item| {
        !item.messages.is_empty() || item.is_compaction() || replaces_other(&item.entry.entry().value(), &ids)
    });
    answer_omitted && !blocked
}

/// Whether an entry is an edit that gives an entry outside `ids` a new content.
fn replaces_other(entry: &Value, ids: &HashSet<&str>) -> bool {
    entry.get("type").and_then(Value::as_str) == Some("context_edit")
        && entry.get("replacement").is_some_and(|replacement| !replacement.is_null())
        && !entry.get("targetId").and_then(Value::as_str).is_some_and(|target| ids.contains(target))
}
