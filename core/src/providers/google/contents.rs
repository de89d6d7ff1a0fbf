//! The conversation in the service's form (P502–P506).

use serde_json::{Value, json};

use super::super::transcript::{UniqueIds, images, is_blank, joined_texts, target, transcript};
use super::super::{Request, call_id};
use super::generation;
use crate::message::{Block, JsonObject, Message, Role};

const SEE_IMAGE: &str = "(see attached image)";
const IMAGE_TURN: &str = "Tool result image:";
/// What the service's documentation has clients send in place of a signature for calls another model made.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// The system prompt and the turns.
pub(super) fn convert(request: &Request) -> (String, Vec<Value>) {
    let id = &*request.model.id;
    let generation = generation(id);
    let newer = generation.is_some_and(|generation| generation >= 3);
    let ids = UniqueIds::new(request, 64);
    let normalize = |id: &str, _: &Message| ids.unique(id, call_id::anthropic(id));
    let transcript = transcript(request, Some(&normalize), false);
    let target = target(&request.model);
    let mut writer = Writer {
        sends_ids: newer || id.starts_with("claude-") || id.starts_with("gpt-oss-"),
        nests_images: newer || generation.is_none(),
        wants_signatures: newer,
        ..Writer::default()
    };
    for message in &transcript.messages {
        writer.add(message, target.made(message));
    }
    writer.end_results();
    (transcript.system, writer.out)
}

#[derive(Default)]
struct Writer {
    out: Vec<Value>,
    sends_ids: bool,
    nests_images: bool,
    wants_signatures: bool,
    /// Results that follow each other, and their images where those are a turn of their own.
    results: Vec<Value>,
    behind: Vec<Value>,
}

impl Writer {
    fn add(&mut self, message: &Message, own: bool) {
        if message.role() == Role::ToolResult {
            return self.result(message);
        }
        self.end_results();
        match message.role() {
            Role::User => self.turn("user", message.blocks().filter_map(user_part).collect()),
            Role::Assistant => {
                let mut parts: Vec<Value> = message
                    .get("content")
                    .and_then(Value::as_array)
                    .map_or(&[][..], Vec::as_slice)
                    .iter()
                    .filter_map(|block| self.model_part(block, own))
                    .collect();
                if self.wants_signatures && !own {
                    // The service looks at the first call of a turn only.
                    let call = parts.iter_mut().find(|part| part.get("functionCall").is_some());
                    if let Some(Value::Object(call)) = call {
                        call.insert("thoughtSignature".to_owned(), NOT_SIGNED.into());
                    }
                }
                self.turn("model", parts);
            }
            _ => {}
        }
    }

    fn turn(&mut self, role: &str, parts: Vec<Value>) {
        if !parts.is_empty() {
            self.out.push(json!({"parts": parts, "role": role}));
        }
    }

    fn model_part(&self, value: &Value, own: bool) -> Option<Value> {
        let signature = |key: &str| {
            let text = value.get(key).and_then(Value::as_str).unwrap_or_default();
            Some(text).filter(|text| own && is_base64(text))
        };
        let (mut part, signature) = match Block::new(value) {
            Block::Text(text) => {
                let signature = signature("textSignature");
                if is_blank(text.text) && signature.is_none() {
                    return None;
                }
                (json!({"text": text.text}), signature)
            }
            Block::Thinking(thinking) => {
                let signature = signature("thinkingSignature");
                if !own || (is_blank(thinking.thinking) && signature.is_none()) {
                    return None;
                }
                (json!({"thought": true, "text": thinking.thinking}), signature)
            }
            Block::ToolCall(call) => {
                let args = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
                let mut function = json!({"args": args, "name": call.name});
                if self.sends_ids {
                    function["id"] = call.id.into();
                }
                (json!({"functionCall": function}), signature("thoughtSignature"))
            }
            _ => return None,
        };
        if let Some(signature) = signature {
            part["thoughtSignature"] = signature.into();
        }
        Some(part)
    }

    fn result(&mut self, message: &Message) {
        let images: Vec<Value> = images(message).into_iter().map(inline).collect();
        let mut text = joined_texts(message);
        if is_blank(&text) && !images.is_empty() {
            SEE_IMAGE.clone_into(&mut text);
        }
        let failed = message.get("isError").and_then(Value::as_bool).unwrap_or(false);
        let mut response = JsonObject::new();
        response.insert("name".to_owned(), message.get_str("toolName").unwrap_or_default().into());
        response.insert("response".to_owned(), if failed { json!({"error": text}) } else { json!({"output": text}) });
        if self.sends_ids {
            response.insert("id".to_owned(), message.get_str("toolCallId").unwrap_or_default().into());
        }
        if !images.is_empty() {
            if self.nests_images {
                response.insert("parts".to_owned(), images.into());
            } else {
                self.behind.push(json!({"text": IMAGE_TURN}));
                self.behind.extend(images);
            }
        }
        self.results.push(json!({"functionResponse": response}));
    }

    /// Consecutive results share one turn; the service counts them (P505).
    fn end_results(&mut self) {
        let (results, behind) = (std::mem::take(&mut self.results), std::mem::take(&mut self.behind));
        self.turn("user", results);
        self.turn("user", behind);
    }
}

fn user_part(block: Block<'_>) -> Option<Value> {
    match block {
        Block::Text(text) if !is_blank(text.text) => Some(json!({"text": text.text})),
        Block::Image(image) => Some(inline((image.mime_type, image.data))),
        _ => None,
    }
}

fn inline((mime_type, data): (&str, &str)) -> Value {
    json!({"inlineData": {"mimeType": mime_type, "data": data}})
}

/// Only what the service itself can have made is sent back to it (P504).
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}
