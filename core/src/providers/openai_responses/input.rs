//! The conversation as input items of the Responses API (P402–P405, P409).
//!
//! Items know each other by ids: a call or text that was made after reasoning is refused when it is sent with its id and
//! without that reasoning. So an id is sent only with everything it refers to, and only once (bug 72).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::changes::{Changes, ToolItem, ToolItems, effort};
use crate::message::{Block, JsonObject, Message, Role, ToolCallBlock};
use crate::providers::call_id;
use crate::providers::openai_shared::{self as shared, host_matches, result_text};
use crate::providers::transcript::{
    Sent, Transcript, UniqueIds, changes_text, images, is_blank, joined_texts, target, transcript,
};
use crate::providers::{Model, Request};

/// The longest item id the service takes.
const MAX_ID: usize = 64;

/// What the mapping depends on, and what it has sent so far.
pub(super) struct Input<'a> {
    model: &'a Model,
    developer_role: bool,
    /// Name → property of tools whose calls are custom ones (P132).
    grammar_tools: &'a HashMap<String, String>,
    used: HashSet<String>,
    /// Ids that stored texts have; a fallback never takes one.
    stored: HashSet<String>,
    /// Ids of calls that were sent as custom ones.
    custom_calls: HashSet<String>,
}

impl<'a> Input<'a> {
    pub(super) fn new(model: &'a Model, developer_role: bool, grammar_tools: &'a HashMap<String, String>) -> Input<'a> {
        Input {
            model,
            developer_role,
            grammar_tools,
            used: HashSet::new(),
            stored: HashSet::new(),
            custom_calls: HashSet::new(),
        }
    }

    /// The list `input` of a request.
    ///
    /// Errors: a tool cannot be declared.
    pub(super) fn items(
        mut self,
        transcript: &Transcript<'_>,
        request: &Request,
        changes: &Changes<'_>,
    ) -> Result<Vec<Value>, String> {
        let mut out = Vec::with_capacity(transcript.messages.len() + 1);
        let mut tools = ToolItems::new(changes);
        out.extend(tools.first());
        out.extend(self.system(&transcript.system));
        let mut system_number = usize::from(request.messages.first().is_some_and(|it| it.role() == Role::System));
        let texts = transcript.messages.iter().flat_map(|message| message.blocks());
        self.stored.extend(texts.filter_map(|block| match block {
            Block::Text(text) => TextSignature::read(text.signature?).id,
            _ => None,
        }));
        let mut number = 0;
        for message in &transcript.messages {
            let before = out.len();
            match message.role() {
                Role::System => {
                    let (before, removed) = tools.of(message, system_number)?;
                    system_number += 1;
                    for item in before {
                        out.extend(match item {
                            ToolItem::Item(item) => Some(item),
                            ToolItem::Notice(text) => self.system(&text),
                        });
                    }
                    let texts = [changes_text(message), removed];
                    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
                    out.extend(self.system(&texts.join("\n\n")));
                    // It counts whether it says something or not, as in other programs with the same sessions.
                    number += 1;
                    continue;
                }
                Role::User => out.extend(user(message)),
                Role::Assistant => {
                    self.assistant(message, number, &mut out);
                    let own = target(self.model).made(message);
                    let level = message.get_str("providerThinkingLevel").filter(|_| own && changes.effort.is_some());
                    if let Some(level) = level.filter(|_| out.len() > before) {
                        out.insert(before, effort(level));
                    }
                }
                Role::ToolResult => out.push(self.result(message)),
                _ => {}
            }
            number += usize::from(out.len() > before);
        }
        out.extend(changes.effort.map(effort));
        Ok(out)
    }

    fn system(&self, text: &str) -> Option<Value> {
        let role = if self.model.reasoning && self.developer_role { "developer" } else { "system" };
        (!is_blank(text)).then(|| json!({"role": role, "content": text}))
    }

    /// An id that was not used yet.
    fn take(&mut self, id: &str) -> bool {
        self.used.insert(id.to_owned())
    }

    fn assistant(&mut self, message: &Message, number: usize, out: &mut Vec<Value>) {
        // Ids of another model of the same service would be looked up there, with its reasoning; those of other services
        // were replaced (P404).
        let sibling = message.get_str("provider") == Some(&self.model.provider)
            && message.get_str("api") == Some(&self.model.api)
            && message.get_str("model") != Some(&self.model.id);
        let own = target(self.model).made(message);
        // Reasoning that cannot be sent back takes the ids of what followed from it along.
        let mut paired = message.get(UNPAIRED).is_none();
        let mut texts = 0;
        for block in message.blocks() {
            match block {
                Block::Thinking(thinking) => {
                    let item = thinking.signature.and_then(|signature| self.reasoning(signature));
                    paired &= item.is_some();
                    out.extend(item);
                }
                Block::Text(text) if !is_blank(text.text) => {
                    let signature = text.signature.map(TextSignature::read).unwrap_or_default();
                    let fallback = match texts {
                        0 => format!("msg_pi_{number}"),
                        _ => format!("msg_pi_{number}_{texts}"),
                    };
                    texts += 1;
                    out.push(self.text(text.text, signature, paired, fallback));
                }
                Block::ToolCall(call) => out.push(self.call(&call, paired && !sibling, own)),
                _ => {}
            }
        }
    }

    /// A stored reasoning item (P403).
    fn reasoning(&mut self, signature: &str) -> Option<Value> {
        if !signature.trim_start().starts_with('{') {
            return None;
        }
        let Value::Object(mut item) = crate::json::parse(signature.as_bytes())? else { return None };
        if item.get("type").and_then(Value::as_str) != Some("reasoning") {
            return None;
        }
        let sealed = item.get("encrypted_content").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        // Nothing is stored there, so an item without its content could not be found.
        if !sealed && host_matches(&self.model.base_url, "api.openai.com") {
            return None;
        }
        if let Some(id) = item.get("id").and_then(Value::as_str).map(str::to_owned)
            && !self.take(&id)
        {
            item.shift_remove("id");
        }
        Some(Value::Object(item))
    }

    fn text(&mut self, text: &str, signature: TextSignature, paired: bool, fallback: String) -> Value {
        let stored = signature.id.filter(|id| paired && !id.is_empty()).map(|id| match id.chars().count() > MAX_ID {
            true => format!("msg_{}", call_id::hash(&id)),
            false => id,
        });
        let id = match stored {
            Some(id) if self.take(&id) => id,
            _ => {
                let mut id = fallback.clone();
                let mut more = 0;
                while self.stored.contains(&id) || !self.take(&id) {
                    more += 1;
                    id = format!("{fallback}_x{more}");
                }
                id
            }
        };
        let mut item = json!({
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
            "status": "completed",
            "id": id,
        });
        if let Some(phase) = signature.phase {
            item["phase"] = phase.into();
        }
        item
    }

    fn call(&mut self, call: &ToolCallBlock<'_>, with_id: bool, own: bool) -> Value {
        let (call_id, item_id) = split(call.id);
        let custom = self.grammar_tools.get(call.name);
        let prefix = if custom.is_some() { "ctc_" } else { "fc_" };
        let kind = if custom.is_some() { "custom_tool_call" } else { "function_call" };
        let namespace = call.namespace.filter(|_| own && custom.is_none());
        let mut item = JsonObject::new();
        item.insert("type".to_owned(), kind.into());
        let item_id = item_id.filter(|id| with_id && id.starts_with(prefix) && id.len() <= MAX_ID);
        if let Some(id) = item_id.filter(|id| self.take(id)) {
            item.insert("id".to_owned(), id.into());
        }
        item.insert("call_id".to_owned(), call_id.into());
        item.insert("name".to_owned(), call.name.into());
        match custom {
            Some(property) => {
                self.custom_calls.insert(call_id.to_owned());
                let input = call.arguments.get(property).and_then(Value::as_str).unwrap_or_default();
                item.insert("input".to_owned(), input.into());
            }
            None => {
                item.insert("arguments".to_owned(), shared::arguments_text(call.arguments).into());
            }
        }
        if let Some(namespace) = namespace {
            item.insert("namespace".to_owned(), namespace.into());
        }
        Value::Object(item)
    }

    fn result(&self, message: &Message) -> Value {
        let (call_id, _) = split(message.get_str("toolCallId").unwrap_or_default());
        let images = images(message);
        let output: Value = if images.is_empty() || !self.model.images {
            result_text(message, !images.is_empty()).into()
        } else {
            let text = joined_texts(message);
            let text = (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}));
            text.into_iter().chain(images.into_iter().map(|(mime_type, data)| image_part(mime_type, data))).collect()
        };
        let kind = if self.custom_calls.contains(call_id) { "custom_tool_call_output" } else { "function_call_output" };
        json!({"type": kind, "call_id": call_id, "output": output})
    }
}

/// Marks a prepared response some of whose reasoning was left out.
pub(super) const UNPAIRED: &str = "\u{0}unpaired";

/// The conversation in a form this model may be sent, with foreign ids translated (P404).
pub(super) fn prepare(request: &Request, system_in_place: bool) -> Transcript<'_> {
    let (model, target) = (&request.model, target(&request.model));
    let unique = UniqueIds::new(request, MAX_ID);
    let normalize = |id: &str, from: &Message| {
        let translated = match model.provider.as_str() {
            "openai" | "openai-codex" | "opencode" => call_id::responses(id, &target, from),
            _ => call_id::whole(id),
        };
        // Calls and results are paired by the part before the bar.
        match translated.split_once('|') {
            Some((call, item)) => format!("{}|{item}", unique.unique(id, call.to_owned())),
            None => unique.unique(id, translated),
        }
    };
    let mut transcript = transcript(request, Some(&normalize), system_in_place);
    mark_unpaired(request, &mut transcript.messages);
    transcript
}

/// Marks responses of which reasoning was left out, since what followed from it must not be sent with its ids.
fn mark_unpaired(request: &Request, messages: &mut [Sent<'_>]) {
    let thoughts = |message: &Message| message.blocks().filter(|block| matches!(block, Block::Thinking(_))).count();
    let mut originals = request.messages.iter().filter(|message| message.role() == Role::Assistant);
    for message in messages.iter_mut().filter(|message| message.role() == Role::Assistant) {
        // Responses keep their order; some were left out.
        let same = |original: &&Arc<Message>| {
            original.timestamp() == message.timestamp() && original.get("responseId") == message.get("responseId")
        };
        let Some(original) = originals.find(same) else { return };
        if thoughts(original) > thoughts(message) {
            message.to_mut().set(UNPAIRED, true);
        }
    }
}

/// `<call id>|<item id>` (P404).
fn split(id: &str) -> (&str, Option<&str>) {
    id.split_once('|').map_or((id, None), |(call, item)| (call, Some(item)))
}

fn image_part(mime_type: &str, data: &str) -> Value {
    json!({"type": "input_image", "detail": "auto", "image_url": format!("data:{mime_type};base64,{data}")})
}

/// A string becomes one text; parts without text are left out (P402).
fn user(message: &Message) -> Option<Value> {
    let parts: Vec<Value> = message
        .blocks()
        .filter_map(|block| match block {
            Block::Text(text) if !text.text.is_empty() => Some(json!({"type": "input_text", "text": text.text})),
            Block::Image(image) => Some(image_part(image.mime_type, image.data)),
            _ => None,
        })
        .collect();
    (!parts.is_empty()).then(|| json!({"role": "user", "content": parts}))
}

/// What a text's signature says: `{"v":1,"id":…,"phase"?}`, or in older files the id alone.
#[derive(Default)]
struct TextSignature {
    id: Option<String>,
    phase: Option<String>,
}

impl TextSignature {
    fn read(signature: &str) -> TextSignature {
        if !signature.starts_with('{') {
            return TextSignature { id: Some(signature.to_owned()), phase: None };
        }
        let value = crate::json::parse(signature.as_bytes()).unwrap_or(Value::Null);
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let phase = text("phase").filter(|phase| matches!(phase.as_str(), "commentary" | "final_answer"));
        TextSignature { id: text("id"), phase }
    }
}
