//! A conversation as plain text, for the requests that summarise it (S279).

use serde_json::Value;

use crate::agent::transform::to_llm;
use crate::message::{Block, Message, Role};

/// How much of a tool's output a summary gets to see, in UTF-16 code units.
const TOOL_RESULT_LIMIT: usize = 2000;

/// The conversation in words. Thinking, images and system messages are left out.
pub fn conversation<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for message in to_llm(messages) {
        match message.role() {
            Role::User => {
                let text = message.text("");
                if !text.is_empty() {
                    parts.push(format!("[User]: {text}"));
                }
            }
            Role::Assistant => {
                if message.blocks().any(|block| matches!(block, Block::Text(_))) {
                    parts.push(format!("[Assistant]: {}", message.text("\n")));
                }
                let calls: Vec<String> =
                    message.tool_calls().map(|call| call_text(call.name, call.arguments)).collect();
                if !calls.is_empty() {
                    parts.push(format!("[Assistant tool calls]: {}", calls.join("; ")));
                }
            }
            Role::ToolResult => {
                let text = message.text("");
                if !text.is_empty() {
                    parts.push(format!("[Tool result]: {}", shorten(&text)));
                }
            }
            _ => {}
        }
    }
    parts.join("\n\n")
}

fn call_text(name: &str, arguments: &Value) -> String {
    let arguments: Vec<String> = arguments
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", crate::json::to_string(value)))
        .collect();
    format!("{name}({})", arguments.join(", "))
}

fn shorten(text: &str) -> String {
    let length = text.encode_utf16().count();
    if length <= TOOL_RESULT_LIMIT {
        return text.to_owned();
    }
    let mut units = 0;
    let end = text
        .char_indices()
        .find(|(_, c)| {
            units += c.len_utf16();
            units > TOOL_RESULT_LIMIT
        })
        .map_or(text.len(), |(at, _)| at);
    format!("{}\n\n[... {} more characters truncated]", &text[..end], length - TOOL_RESULT_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_results_are_cut_between_characters() {
        assert_eq!(shorten(&"x".repeat(2000)), "x".repeat(2000));
        let text = format!("{}🍵tail", "x".repeat(1999));
        assert_eq!(shorten(&text), format!("{}\n\n[... 5 more characters truncated]", "x".repeat(1999)));
    }

    #[test]
    fn calls_show_their_arguments_as_json() {
        let call = call_text("read", &json!({"path": "a b.txt", "n": 3, "deep": {"q": [1, null]}}));
        assert_eq!(call, r#"read(path="a b.txt", n=3, deep={"q":[1,null]})"#);
    }
}
