//! The conversation in the form of chat completions (P302, P304, P306–P308).

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::compat::ChatCompat;
use super::details;
use crate::message::{Block, JsonObject, Message, Role};
use crate::providers::openai_shared::{self as shared, result_text};
use crate::providers::transcript::{Transcript, changes_text, images, is_blank};

/// In front of images that tools returned (P307).
const IMAGES_OF_RESULTS: &str = "Attached image(s) from tool result:";
/// What a service reads between tool results and a user message, if it insists on a response there (P307).
const BETWEEN: &str = "I have processed the tool results.";

/// One message as it is sent: a value that may still change, or the text that was made for an earlier request.
pub(super) enum Piece {
    Value(Value),
    Text(Arc<[u8]>),
}

impl Piece {
    /// The value, if it may still change.
    pub(super) fn value_mut(&mut self) -> Option<&mut Value> {
        match self {
            Piece::Value(value) => Some(value),
            Piece::Text(_) => None,
        }
    }

    /// The bytes of its text, as far as they are known.
    pub(super) fn len(&self) -> usize {
        match self {
            Piece::Value(_) => 0,
            Piece::Text(text) => text.len(),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Piece::Value(value) => crate::json::write_value(out, value),
            Piece::Text(text) => out.extend_from_slice(text),
        }
    }
}

/// What the mapping depends on.
pub(super) struct Mapping<'a> {
    pub(super) compat: &'a ChatCompat,
    pub(super) reasoning: bool,
    pub(super) images: bool,
    /// The number of the first system message that is no prompt.
    pub(super) first_system: usize,
    /// Name → property of tools whose calls are sent as custom ones (P132).
    pub(super) grammar_tools: &'a HashMap<String, String>,
    /// Tools declared where they were added: by the number of the system message.
    pub(super) added_tools: HashMap<usize, Vec<Value>>,
    /// Stands for all that the form of a message depends on in memos; without one every message becomes a value.
    pub(super) memo: Option<u64>,
}

impl Mapping<'_> {
    /// The list `messages` of a request. Later system messages are sent where they stand.
    pub(super) fn messages(&self, transcript: &Transcript<'_>) -> Vec<Piece> {
        let mut out = Vec::with_capacity(transcript.messages.len() + 1);
        out.extend(self.system(&transcript.system).map(Piece::Value));
        let between = || Piece::Value(json!({"role": "assistant", "content": BETWEEN}));
        let mut after_result = false;
        let mut system_number = self.first_system;
        let mut rest = transcript.messages.as_slice();
        while let Some((message, following)) = rest.split_first() {
            rest = following;
            match message.shape().role {
                Role::System => {
                    let tools = self.added_tools.get(&system_number);
                    out.extend(tools.map(|tools| Piece::Value(json!({"role": "system", "tools": tools}))));
                    out.extend(self.system(&changes_text(message)).map(Piece::Value));
                    system_number += 1;
                }
                Role::User => {
                    let Some(piece) = self.piece(message, user) else { continue };
                    if after_result && self.compat.assistant_after_tool_result {
                        out.push(between());
                    }
                    out.push(piece);
                    after_result = false;
                }
                Role::Assistant => {
                    if let Some(piece) = self.piece(message, |message| self.assistant(message)) {
                        out.push(piece);
                        after_result = false;
                    }
                }
                Role::ToolResult => {
                    let more = rest.iter().take_while(|message| message.shape().role == Role::ToolResult).count();
                    let mut shown = Vec::new();
                    for result in std::iter::once(message).chain(&rest[..more]) {
                        out.extend(self.piece(result, |result| Some(self.tool_result(result))));
                        if self.images && result.shape().images {
                            shown.extend(images(result).iter().map(|(mime_type, data)| image_part(mime_type, data)));
                        }
                    }
                    rest = &rest[more..];
                    after_result = true;
                    if !shown.is_empty() {
                        if self.compat.assistant_after_tool_result {
                            out.push(between());
                        }
                        shown.insert(0, json!({"type": "text", "text": IMAGES_OF_RESULTS}));
                        out.push(Piece::Value(json!({"role": "user", "content": shown})));
                        after_result = false;
                    }
                }
                _ => {}
            }
        }
        out
    }

    /// One message, if `map` has a form for it.
    fn piece(&self, message: &Message, map: impl FnOnce(&Message) -> Option<Value>) -> Option<Piece> {
        // Images are not kept twice: they are most of a conversation that has any, and cheap to write.
        let Some(key) = self.memo.filter(|_| !message.shape().images) else { return map(message).map(Piece::Value) };
        let text = message.memos().wire.get_or(key, || {
            let mut text = Vec::new();
            if let Some(value) = map(message) {
                crate::json::write_value(&mut text, &value);
            }
            text.into()
        });
        (!text.is_empty()).then_some(Piece::Text(text))
    }

    fn system(&self, text: &str) -> Option<Value> {
        let role = if self.reasoning && self.compat.developer_role { "developer" } else { "system" };
        (!is_blank(text)).then(|| json!({"role": role, "content": text}))
    }

    fn assistant(&self, message: &Message) -> Option<Value> {
        let (mut text, mut thinking, mut calls) = (String::new(), Vec::new(), Vec::new());
        let mut signature = None;
        for block in message.blocks() {
            match block {
                Block::Text(block) if !is_blank(block.text) => text.push_str(block.text),
                Block::Thinking(block) => {
                    if signature.is_none() {
                        signature = block.signature;
                    }
                    if !is_blank(block.thinking) {
                        thinking.push(block.thinking);
                    }
                }
                Block::ToolCall(call) => calls.push(self.call(&call)),
                _ => {}
            }
        }
        let thinking = thinking.join("\n");
        let mut out = JsonObject::new();
        out.insert("role".to_owned(), "assistant".into());
        let absent = if self.compat.content_never_null { Value::from("") } else { Value::Null };
        let as_text = self.compat.thinking_as_text && !thinking.is_empty();
        let content = match (as_text, text.is_empty()) {
            (true, _) => {
                let mut parts = vec![json!({"type": "text", "text": &thinking})];
                if !text.is_empty() {
                    parts.push(json!({"type": "text", "text": &text}));
                }
                Value::from(parts)
            }
            (false, true) => absent,
            (false, false) => text.as_str().into(),
        };
        let has_content = as_text || !text.is_empty();
        out.insert("content".to_owned(), content);
        self.put_thinking(&mut out, signature, if as_text { "" } else { &thinking });
        if !has_content && calls.is_empty() {
            return None;
        }
        if !calls.is_empty() {
            out.insert("tool_calls".to_owned(), calls.into());
        }
        Some(Value::Object(out))
    }

    /// Reasoning goes back into the field it came from (P308).
    fn put_thinking(&self, out: &mut JsonObject, signature: Option<&str>, thinking: &str) {
        match signature {
            Some(field @ ("reasoning_content" | "reasoning" | "reasoning_text")) if !thinking.is_empty() => {
                out.insert(field.to_owned(), thinking.into());
            }
            Some(signature) => {
                if let Some(details) = details::parse(signature) {
                    out.insert("reasoning_details".to_owned(), details);
                }
            }
            None => {}
        }
        if self.compat.reasoning_content && self.reasoning && !out.contains_key("reasoning_content") {
            out.insert("reasoning_content".to_owned(), "".into());
        }
    }

    fn call(&self, call: &crate::message::ToolCallBlock<'_>) -> Value {
        if let Some(property) = self.grammar_tools.get(call.name) {
            let input = call.arguments.get(property).and_then(Value::as_str).unwrap_or_default();
            return json!({"id": call.id, "type": "custom", "custom": {"name": call.name, "input": input}});
        }
        let arguments = shared::arguments_text(call.arguments);
        json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
    }

    fn tool_result(&self, message: &Message) -> Value {
        let text = result_text(message, !images(message).is_empty());
        let id = message.get_str("toolCallId").unwrap_or_default();
        let mut out = json!({"role": "tool", "content": text, "tool_call_id": id});
        if let (true, Some(name)) = (self.compat.tool_result_name, message.get_str("toolName")) {
            out["name"] = name.into();
        }
        out
    }
}

fn image_part(mime_type: &str, data: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:{mime_type};base64,{data}")}})
}

/// A string stays a string, also a blank one; parts without text are left out (P306).
fn user(message: &Message) -> Option<Value> {
    if let Some(text) = message.get_str("content") {
        return Some(json!({"role": "user", "content": text}));
    }
    let parts: Vec<Value> = message
        .blocks()
        .filter_map(|block| match block {
            Block::Text(text) if !text.text.is_empty() => Some(json!({"type": "text", "text": text.text})),
            Block::Image(image) => Some(image_part(image.mime_type, image.data)),
            _ => None,
        })
        .collect();
    (!parts.is_empty()).then(|| json!({"role": "user", "content": parts}))
}
