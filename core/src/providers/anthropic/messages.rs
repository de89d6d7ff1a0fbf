//! The conversation in the service's form (P205–P209, P211, P212, P217, P218).

use serde_json::{Value, json};

use super::super::tool_changes::{self, Define, ToolPlan};
use super::super::transcript::{UniqueIds, changes_text, images, is_blank, joined_texts, transcript};
use super::super::{Request, call_id};
use super::request::mark;
use crate::message::{Block, Message, Role};

/// Stands in front of images when there is no text.
const SEE_IMAGE: &str = "(see attached image)";
/// The levels a message may say.
const LEVELS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// Stands in an error result for images, which are only allowed behind it.
const IMAGE_BEHIND: &str = "(image attached after the tool results)";

/// What stands among the messages instead of in front of them.
pub(super) struct Changes<'a> {
    /// Later system messages.
    pub(super) in_place: bool,
    /// Changes of tools that are not contained in the list at the head.
    pub(super) plan: Option<&'a ToolPlan>,
    /// The service's form of declarations.
    pub(super) define: &'a Define<'a>,
    /// The level of the answer to come; those of earlier answers are told too.
    pub(super) effort: Option<&'a str>,
}

/// The system prompt and the messages, the last of them marked for the cache.
///
/// Errors: a tool cannot be declared.
pub(super) fn convert(
    request: &Request,
    cache: Option<&Value>,
    changes: &Changes<'_>,
) -> Result<(String, Vec<Value>), String> {
    let ids = UniqueIds::new(request, 64);
    let normalize = |id: &str, _: &Message| ids.unique(id, call_id::anthropic(id));
    let transcript = transcript(request, Some(&normalize), changes.in_place);
    let mut writer = Writer { allow_empty: request.model.compat.is("allowEmptySignature", false), ..Writer::default() };
    let mut number = usize::from(request.messages.first().is_some_and(|first| first.role() == Role::System));
    for message in &transcript.messages {
        match message.role() {
            Role::System => {
                writer.end_results();
                let plan = changes.plan.filter(|plan| plan.tells(number));
                number += 1;
                let blocks = system_blocks(message, plan.is_some(), changes.define)?;
                if !blocks.is_empty() {
                    writer.system.push(blocks.into());
                }
            }
            Role::Assistant if changes.effort.is_some() => {
                let own = message.get_str("provider") == Some(&request.model.provider)
                    && message.get_str("api") == Some(&request.model.api);
                let level = message.get_str("providerThinkingLevel").filter(|level| own && LEVELS.contains(level));
                writer.effort = level.map(str::to_owned);
                writer.add(message);
            }
            _ => writer.add(message),
        }
    }
    writer.end_results();
    writer.end_system();
    let mut messages = writer.out;
    if let Some(last) = messages.last_mut().filter(|last| last["role"] != "assistant") {
        if let Some(text) = last["content"].as_str().filter(|_| cache.is_some()) {
            last["content"] = json!([{"type": "text", "text": text}]);
        }
        if let Some(block) = last["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
            mark(block, cache);
        }
    }
    messages.extend(changes.effort.map(effort));
    Ok((transcript.system, messages))
}

/// An answer in the form in which the next request sends it; `None` if it holds nothing.
pub(super) fn reply(message: &Message, allow_empty: bool) -> Option<Value> {
    let mut writer = Writer { allow_empty, ..Writer::default() };
    writer.add(message);
    writer.out.pop()
}

/// A message that only says how much to think from here on.
fn effort(level: &str) -> Value {
    json!({"role": "system", "content": [], "output_config": {"effort": level}})
}

/// A later system message; with its changes of tools if those are told in place.
fn system_blocks(message: &Message, tells_tools: bool, define: &Define<'_>) -> Result<Vec<Value>, String> {
    let mut blocks = Vec::new();
    let text = changes_text(message);
    if !is_blank(&text) {
        blocks.push(json!({"type": "text", "text": text}));
    }
    if tells_tools {
        for name in tool_changes::removed(message) {
            blocks.push(json!({"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}));
        }
        for definition in define(tool_changes::added(message))? {
            let tool = json!({"type": "tool_definition", "definition": definition});
            blocks.push(json!({"type": "tool_addition", "tool": tool}));
        }
    }
    Ok(blocks)
}

#[derive(Default)]
struct Writer {
    out: Vec<Value>,
    /// Results that follow each other, and what stands behind them.
    results: Vec<Value>,
    behind: Vec<Value>,
    /// System messages held back until the next assistant turn, the blocks of each.
    system: Vec<Value>,
    /// How much the next assistant turn was made to think.
    effort: Option<String>,
    allow_empty: bool,
}

impl Writer {
    fn add(&mut self, message: &Message) {
        if message.role() == Role::ToolResult {
            return self.result(message);
        }
        self.end_results();
        match message.role() {
            Role::User => {
                let content = user(message);
                if !content.is_null() {
                    self.out.push(json!({"role": "user", "content": content}));
                }
            }
            Role::Assistant => {
                let blocks: Vec<Value> = message.blocks().filter_map(|block| self.assistant(block)).collect();
                if !blocks.is_empty() {
                    self.end_system();
                    self.out.extend(self.effort.take().as_deref().map(effort));
                    self.out.push(json!({"role": "assistant", "content": blocks}));
                }
            }
            _ => {}
        }
    }

    fn assistant(&self, block: Block<'_>) -> Option<Value> {
        Some(match block {
            Block::Text(text) if !is_blank(text.text) => json!({"type": "text", "text": text.text}),
            Block::Thinking(thinking) => {
                let signature = thinking.signature.unwrap_or_default();
                let text = thinking.thinking;
                match () {
                    () if thinking.redacted => json!({"type": "redacted_thinking", "data": signature}),
                    () if !signature.is_empty() => {
                        json!({"type": "thinking", "thinking": text, "signature": signature})
                    }
                    () if is_blank(text) => return None,
                    () if self.allow_empty => json!({"type": "thinking", "thinking": text, "signature": ""}),
                    () => json!({"type": "text", "text": text}),
                }
            }
            Block::ToolCall(call) => {
                let input = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
            }
            _ => return None,
        })
    }

    fn result(&mut self, message: &Message) {
        let id = message.get_str("toolCallId").unwrap_or_default();
        let failed = message.get("isError").and_then(Value::as_bool).unwrap_or(false);
        let images = images(message);
        let content = if images.is_empty() {
            joined_texts(message).into()
        } else if failed {
            let name = message.get_str("toolName").unwrap_or_default();
            self.behind.push(json!({"type": "text", "text": format!("Images of the result {id} of {name}:")}));
            self.behind.extend(images.iter().map(|image| image_block(*image)));
            let text = joined_texts(message);
            if is_blank(&text) { IMAGE_BEHIND.into() } else { format!("{text}\n{IMAGE_BEHIND}").into() }
        } else {
            let mut blocks = content_blocks(message);
            if blocks.iter().all(|block| block["type"] == "image") {
                blocks.insert(0, json!({"type": "text", "text": SEE_IMAGE}));
            }
            Value::Array(blocks)
        };
        self.results.push(json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": failed}));
    }

    /// Consecutive results are one message (P206).
    fn end_results(&mut self) {
        if !self.results.is_empty() {
            let mut content = std::mem::take(&mut self.results);
            content.append(&mut self.behind);
            self.out.push(json!({"role": "user", "content": content}));
        }
    }

    fn end_system(&mut self) {
        for content in std::mem::take(&mut self.system) {
            self.out.push(json!({"role": "system", "content": content}));
        }
    }
}

/// The content of a user message; null if nothing is left of it.
fn user(message: &Message) -> Value {
    if let Some(text) = message.get_str("content") {
        return if is_blank(text) { Value::Null } else { text.into() };
    }
    match content_blocks(message) {
        blocks if blocks.is_empty() => Value::Null,
        blocks => blocks.into(),
    }
}

/// Texts that are not blank, and images.
fn content_blocks(message: &Message) -> Vec<Value> {
    let block = |block| match block {
        Block::Text(text) if !is_blank(text.text) => Some(json!({"type": "text", "text": text.text})),
        Block::Image(image) => Some(image_block((image.mime_type, image.data))),
        _ => None,
    };
    message.blocks().filter_map(block).collect()
}

fn image_block((mime_type, data): (&str, &str)) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}})
}
