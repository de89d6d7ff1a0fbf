//! How many tokens a context takes (S257–S261). Lengths are in UTF-16 code units, as in the format's own estimates.

use serde::Serialize;
use serde_json::Value;

use crate::json::utf16_len;
use crate::message::{Block, Message, Role, StopReason, is_image};
use crate::tree::{Context, ContextEntry, EntryKind};

/// What an image counts as, in characters.
const IMAGE_CHARACTERS: usize = 4800;

/// The estimate of one message: a quarter of its characters, rounded up (S257).
pub fn message_tokens(message: &Message) -> u64 {
    (characters(message) as u64).div_ceil(4)
}

fn characters(message: &Message) -> usize {
    let length = |key: &str| message.get_str(key).map_or(0, utf16_len);
    match message.role() {
        Role::User | Role::Custom | Role::ToolResult => message.blocks().map(visible).sum(),
        Role::Assistant => message.blocks().map(produced).sum(),
        Role::BashExecution => length("command") + length("output"),
        Role::BranchSummary | Role::CompactionSummary => length("summary"),
        Role::System => {
            let sections = message.get("sections").and_then(Value::as_object);
            let sections: usize =
                sections.into_iter().flatten().filter_map(|(_, text)| text.as_str()).map(utf16_len).sum();
            let tools = message.get("toolsAdded").map_or(0, json_len);
            message.blocks().map(visible).sum::<usize>() + sections + tools
        }
        Role::Other => 0,
    }
}

/// Text and images: what is put before a model.
fn visible(block: Block<'_>) -> usize {
    match block {
        Block::Text(text) => utf16_len(text.text),
        Block::Image(_) => IMAGE_CHARACTERS,
        Block::Other(block) if is_image(block) => IMAGE_CHARACTERS,
        _ => 0,
    }
}

/// Text, thinking and calls: what a model produces.
fn produced(block: Block<'_>) -> usize {
    match block {
        Block::Text(text) => utf16_len(text.text),
        Block::Thinking(thinking) => utf16_len(thinking.thinking),
        Block::ToolCall(call) => utf16_len(call.name) + json_len(call.arguments),
        _ => 0,
    }
}

fn json_len(value: &Value) -> usize {
    utf16_len(&crate::json::to_string(value))
}

/// The tokens a response reports, if its usage can be relied on: it did not fail, and reports some (S258).
pub fn valid_usage(message: &Message) -> Option<u64> {
    if message.role() != Role::Assistant
        || matches!(message.stop_reason(), Some(StopReason::Error | StopReason::Aborted))
    {
        return None;
    }
    message.usage().map(|usage| usage.total()).filter(|total| *total > 0)
}

/// The last valid usage and the estimates of what follows it; without one, all estimates (S259).
pub fn context_tokens(messages: &[Message]) -> u64 {
    let mut following = 0;
    for message in messages.iter().rev() {
        if let Some(total) = valid_usage(message) {
            return total + following;
        }
        following += message_tokens(message);
    }
    following
}

/// Sum of the estimates of all messages of a context (S264).
pub fn sum_of_estimates(context: &Context) -> u64 {
    context.messages().map(|message| message_tokens(&message.message())).sum()
}

/// The estimate of a whole context (S260): a reported usage counts only if nothing changed the context after it.
pub fn projected_tokens(context: &Context) -> u64 {
    match reported(context) {
        Some((tokens, true)) => tokens,
        _ => pure_estimate(context),
    }
}

/// The last valid usage in context plus the estimates of what follows, and whether it stands after the last edit and
/// the last compaction.
fn reported(context: &Context) -> Option<(u64, bool)> {
    let entries = context.entries();
    let fresh = after_compaction(entries);
    let (mut following, mut edited) = (0, false);
    for (at, entry) in entries.iter().enumerate().rev() {
        edited |= entry.kind() == EntryKind::ContextEdit;
        for message in entry.messages().iter().rev() {
            let message = message.message();
            if let Some(total) = valid_usage(&message) {
                return Some((total + following, at >= fresh && !edited));
            }
            following += message_tokens(&message);
        }
    }
    None
}

fn pure_estimate(context: &Context) -> u64 {
    let spoken = context.messages().filter(|message| message.role() != Role::System);
    let spoken: u64 = spoken.map(|message| message_tokens(&message.message())).sum();
    spoken + context.system_message().map_or(0, |system| message_tokens(&system))
}

/// Index of the first context entry that was appended after the active compaction: 0 without one, the length when
/// nothing follows it. The compaction comes first in the list, then what it kept, so only `parentId` tells.
pub(crate) fn after_compaction(entries: &[ContextEntry]) -> usize {
    match entries.first() {
        Some(first) if first.kind() == EntryKind::Compaction => entries
            .iter()
            .skip(1)
            .position(|entry| entry.entry().parent_id().as_deref() == Some(first.id()))
            .map_or(entries.len(), |at| at + 1),
        _ => 0,
    }
}

/// How full the model's window is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ContextUsage {
    /// Estimated tokens; unknown right after a compaction, until a response reports usage again.
    pub tokens: Option<u64>,
    /// The model's context window, when known.
    pub window: Option<u64>,
    /// `tokens` as a percentage of `window`.
    pub percent: Option<f64>,
}

/// The context usage reported to hosts (S261).
pub fn context_usage(context: &Context, window: Option<u64>) -> ContextUsage {
    let entries = context.entries();
    let fresh = after_compaction(entries);
    let known = fresh == 0
        || entries[fresh..]
            .iter()
            .flat_map(|entry| entry.messages())
            .any(|message| message.role() == Role::Assistant && valid_usage(&message.message()).is_some());
    let tokens = known.then(|| projected_tokens(context));
    let window = window.filter(|window| *window > 0);
    let percent = tokens.zip(window).map(|(tokens, window)| tokens as f64 / window as f64 * 100.0);
    ContextUsage { tokens, window, percent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tokens(value: Value) -> u64 {
        message_tokens(&Message::from_value(value).unwrap())
    }

    #[test]
    fn s257_characters() {
        assert_eq!(tokens(json!({"role": "user", "content": "12345"})), 2);
        assert_eq!(tokens(json!({"role": "user", "content": "🍵🍵🍵"})), 2);
        assert_eq!(
            tokens(
                json!({"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "data": ""}]})
            ),
            1201
        );
        let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a.txt"}});
        assert_eq!(tokens(json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "abc"}, call]})), 6);
        assert_eq!(tokens(json!({"role": "bashExecution", "command": "ls", "output": "abc"})), 2);
        assert_eq!(
            tokens(
                json!({"role": "system", "content": "1234", "sections": {"a": "12", "b": null}, "toolsAdded": [{}]})
            ),
            3
        );
        assert_eq!(tokens(json!({"role": "martian", "content": "1234"})), 0);
    }

    #[test]
    fn s259_the_last_usage_counts() {
        let message = |value| Message::from_value(value).unwrap();
        let user = message(json!({"role": "user", "content": "12345678"}));
        let answer = |stop: &str| {
            message(
                json!({"role": "assistant", "content": [], "stopReason": stop, "usage": {"totalTokens": 0, "input": 40, "output": 2}}),
            )
        };
        assert_eq!(context_tokens(&[user.clone(), answer("stop"), user.clone()]), 44);
        assert_eq!(context_tokens(&[user.clone(), answer("error"), user]), 4);
    }
}
