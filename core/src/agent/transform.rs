//! From context messages to what a provider may be sent (S146–S152). What a model accepts is the providers' side of it:
//! `providers/repair.rs` (S153–S162).
//!
//! It is pure; nothing it changes is ever stored. The sentences the model reads are constants, so that tests and hosts can
//! recognise them.

use serde_json::{Value, json};

use crate::message::{Message, Role};
pub(crate) use crate::providers::repair::KnownCalls;
pub use crate::providers::repair::{
    IdNormalizer, NO_RESULT, TOOL_IMAGE_NOTICE, TargetModel, USER_IMAGE_NOTICE, drop_orphan_results, repair,
};
use crate::providers::repair::{replace_images, truthy};

/// In front of the summary of compacted history (S148).
pub const COMPACTION_PREFIX: &str =
    "The earlier part of this conversation was condensed. What happened in it:\n\n<summary>\n";
/// Behind the summary of compacted history (S148).
pub const COMPACTION_SUFFIX: &str = "\n</summary>";
/// In front of the summary of a branch that was left (S149).
pub const BRANCH_PREFIX: &str =
    "Another line of this conversation was tried and then left. What happened on it:\n\n<summary>\n";
/// Behind the summary of a branch that was left: no line break, unlike [`COMPACTION_SUFFIX`] (S149).
pub const BRANCH_SUFFIX: &str = "</summary>";
/// Stands for images when the setting `images.blockImages` is on (S152).
pub const BLOCKED_IMAGE_NOTICE: &str = "[An image was left out: sending images is switched off in the settings.]";
/// The messages a model may see: unknown roles are dropped, ours become user messages (S146–S151).
pub fn to_llm<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Message> {
    messages.into_iter().filter_map(convert).collect()
}

fn convert(message: &Message) -> Option<Message> {
    match message.role() {
        Role::System | Role::User | Role::Assistant | Role::ToolResult => Some(message.clone()),
        Role::Custom => {
            let content = match message.get("content") {
                Some(Value::String(text)) => Some(text_content(text)),
                // Whatever else it is passes as it is (S147); repair deals with what is missing (S153).
                other => other.cloned(),
            };
            Some(user(content, message))
        }
        Role::CompactionSummary => Some(summary(message, COMPACTION_PREFIX, COMPACTION_SUFFIX)),
        Role::BranchSummary => Some(summary(message, BRANCH_PREFIX, BRANCH_SUFFIX)),
        Role::BashExecution if message.get("excludeFromContext").is_some_and(truthy) => None,
        Role::BashExecution => Some(user(text_content(&bash_text(message)), message)),
        Role::Other => None,
    }
}

fn summary(message: &Message, prefix: &str, suffix: &str) -> Message {
    let text = format!("{prefix}{}{suffix}", message.get_str("summary").unwrap_or_default());
    user(text_content(&text), message)
}

/// A user message with the time of the message it stands for.
fn user(content: impl Into<Option<Value>>, original: &Message) -> Message {
    let mut out = Message::default();
    out.set("role", "user");
    if let Some(content) = content.into() {
        out.set("content", content);
    }
    if let Some(timestamp) = original.get("timestamp") {
        out.set("timestamp", timestamp.clone());
    }
    out
}

fn text_content(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// A shell run as the model reads it (S151). The output is not escaped.
fn bash_text(message: &Message) -> String {
    let mut text = format!("Ran `{}`\n", message.get_str("command").unwrap_or_default());
    match message.get_str("output").unwrap_or_default() {
        "" => text.push_str("(no output)"),
        output => {
            text.push_str("```\n");
            text.push_str(output);
            text.push_str("\n```");
        }
    }
    let exit_code = message.get("exitCode").filter(|code| code.is_number() && code.as_f64() != Some(0.0));
    if message.get("cancelled").is_some_and(truthy) {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = exit_code {
        text.push_str(&format!("\n\nCommand exited with code {}", crate::json::to_string(code)));
    }
    if message.get("truncated").is_some_and(truthy)
        && let Some(path) = message.get_str("fullOutputPath").filter(|path| !path.is_empty())
    {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    text
}

/// Replaces the images of user messages and tool results by a notice (S152, setting `images.blockImages`).
pub fn block_images(messages: &mut [Message]) {
    for message in messages {
        if matches!(message.role(), Role::User | Role::ToolResult) {
            replace_images(message, BLOCKED_IMAGE_NOTICE);
        }
    }
}
