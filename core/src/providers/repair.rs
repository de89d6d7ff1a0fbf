//! Making a conversation acceptable to a model (S153–S162, P120–P126): missing contents, images, thinking and signatures of
//! other models, call ids, calls without results.
//!
//! It is pure and runs per request; nothing it changes is ever stored. The sentences the model reads are constants, so that
//! tests and hosts can recognise them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::message::{Message, Role, StopReason, ToolResultMessage};

/// Stands for a user's images when the model cannot see (S154).
pub const USER_IMAGE_NOTICE: &str = "[An image was attached here; this model does not accept images.]";
/// Stands for a tool's images when the model cannot see (S154).
pub const TOOL_IMAGE_NOTICE: &str = "[The tool returned an image here; this model does not accept images.]";
/// The text of a synthetic result (S160); other programs look for it.
pub const NO_RESULT: &str = "No result provided";

pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Whether the content of a message has an image block.
pub(crate) fn has_images(message: &Message) -> bool {
    message.get("content").and_then(Value::as_array).is_some_and(|content| content.iter().any(is_image))
}

fn is_image(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("image")
}

/// One notice per run of images; a text block equal to the notice absorbs the images behind it (S154).
pub(crate) fn replace_images(message: &mut Message, notice: &str) {
    let Some(Value::Array(content)) = message.object_mut().get_mut("content") else { return };
    if !content.iter().any(is_image) {
        return;
    }
    let mut out: Vec<Value> = Vec::with_capacity(content.len());
    for block in std::mem::take(content) {
        if !is_image(&block) {
            out.push(block);
        } else if !out.last().is_some_and(|last| is_text(last, notice)) {
            out.push(json!({"type": "text", "text": notice}));
        }
    }
    *content = out;
}

fn is_text(block: &Value, text: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some("text") && block.get("text").and_then(Value::as_str) == Some(text)
}

/// The model a request goes to, as far as repair needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetModel {
    /// Provider name.
    pub provider: String,
    /// Wire protocol.
    pub api: String,
    /// Model id.
    pub id: String,
    /// The model accepts images.
    pub images: bool,
}

impl TargetModel {
    /// Whether `message` was made by this very model: equal provider, api and model id.
    pub fn made(&self, message: &Message) -> bool {
        message.get_str("provider") == Some(&self.provider)
            && message.get_str("api") == Some(&self.api)
            && message.get_str("model") == Some(&self.id)
    }
}

/// Maps a tool-call id of another model to one the target accepts (S157): the id, and the assistant message it is from.
pub type IdNormalizer<'a> = &'a dyn Fn(&str, &Message) -> String;

/// Makes a converted conversation acceptable to `model` (S153–S162). Ids made by the model itself never change.
pub fn repair<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    model: &TargetModel,
    normalize: Option<IdNormalizer<'_>>,
) -> Vec<Message> {
    close_calls(adapt(messages, model, normalize))
}

/// Message by message: missing contents, images, foreign thinking and signatures, call ids (S153–S158).
fn adapt<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    model: &TargetModel,
    normalize: Option<IdNormalizer<'_>>,
) -> Vec<Message> {
    let mut renamed: HashMap<String, String> = HashMap::new();
    let mut out = Vec::new();
    for message in messages {
        let mut message = message.clone();
        if message.get("content").is_none_or(Value::is_null) {
            message.set("content", json!([]));
        }
        match message.role() {
            Role::User if !model.images => replace_images(&mut message, USER_IMAGE_NOTICE),
            Role::ToolResult => {
                if !model.images {
                    replace_images(&mut message, TOOL_IMAGE_NOTICE);
                }
                if let Some(id) = message.get_str("toolCallId").and_then(|id| renamed.get(id)).cloned() {
                    message.set("toolCallId", id);
                }
            }
            Role::Assistant => adapt_assistant(&mut message, model, normalize, &mut renamed),
            _ => {}
        }
        out.push(message);
    }
    out
}

fn adapt_assistant(
    message: &mut Message,
    model: &TargetModel,
    normalize: Option<IdNormalizer<'_>>,
    renamed: &mut HashMap<String, String>,
) {
    let own = model.made(message);
    let Some(Value::Array(content)) = message.object_mut().get_mut("content").map(Value::take) else { return };
    let mut blocks = Vec::with_capacity(content.len());
    for mut block in content {
        match block.get("type").and_then(Value::as_str) {
            Some("thinking") if !keeps_thinking(&block, own) => continue,
            Some("text") if !own => remove(&mut block, "textSignature"),
            Some("toolCall") if !own => {
                remove(&mut block, "thoughtSignature");
                if let (Some(normalize), Some(id)) = (normalize, block.get("id").and_then(Value::as_str)) {
                    let new = normalize(id, message);
                    if new != id {
                        renamed.insert(id.to_owned(), new.clone());
                        block["id"] = new.into();
                    }
                }
            }
            _ => {}
        }
        blocks.push(block);
    }
    message.set("content", blocks);
}

/// Thinking survives only at its own model, and there when it is redacted, signed or not blank (S155).
fn keeps_thinking(block: &Value, own: bool) -> bool {
    let string = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    let redacted = block.get("redacted").is_some_and(truthy);
    own && (redacted || !string("thinkingSignature").is_empty() || !is_blank(string("thinking")))
}

/// White space only, as JavaScript sees it.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}'))
}

fn remove(block: &mut Value, key: &str) {
    if let Value::Object(object) = block {
        object.shift_remove(key);
    }
}

/// Drops failed responses, answers open calls, and holds system messages back while calls are open (S159–S162).
fn close_calls(messages: Vec<Message>) -> Vec<Message> {
    let mut out = Vec::with_capacity(messages.len());
    let mut open = OpenCalls::default();
    for message in messages {
        match message.role() {
            Role::Assistant => {
                open.close(&mut out);
                if matches!(message.stop_reason(), Some(StopReason::Error | StopReason::Aborted)) {
                    continue;
                }
                open.calls = message.tool_calls().map(|call| (call.id.to_owned(), call.name.to_owned())).collect();
                out.push(message);
            }
            Role::ToolResult => {
                open.answered.extend(message.get_str("toolCallId").map(str::to_owned));
                out.push(message);
            }
            Role::System if !open.calls.is_empty() => open.held.push(message),
            Role::User => {
                open.close(&mut out);
                out.push(message);
            }
            _ => out.push(message),
        }
    }
    open.close(&mut out);
    out
}

/// Leaves out results whose call is not in the conversation before them.
///
/// [`repair`] lets them pass, as the format's rules say (S160); services refuse such a request, and a context edit that
/// hides a call makes one. So providers apply this last, and the conversation goes on.
pub fn drop_orphan_results(messages: Vec<Message>) -> Vec<Message> {
    let mut known = KnownCalls::default();
    messages.into_iter().filter(|message| known.admits(message)).collect()
}

/// The calls of a conversation so far: the same rule for a list that grows.
///
/// Cheap to clone after [`settle`](KnownCalls::settle): the calls known by then are shared.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownCalls {
    shared: Arc<HashSet<String>>,
    own: HashSet<String>,
}

impl KnownCalls {
    /// Takes in the next message and says whether it may stay. Calls of failed responses do not count, as those are
    /// left out of requests themselves (S159).
    pub(crate) fn admits(&mut self, message: &Message) -> bool {
        match message.role() {
            Role::Assistant if !matches!(message.stop_reason(), Some(StopReason::Error | StopReason::Aborted)) => {
                self.own.extend(message.tool_calls().map(|call| call.id.to_owned()));
                true
            }
            Role::ToolResult => {
                message.get_str("toolCallId").is_some_and(|id| self.own.contains(id) || self.shared.contains(id))
            }
            _ => true,
        }
    }

    /// From now on what is known is shared with every clone.
    pub(crate) fn settle(&mut self) {
        Arc::make_mut(&mut self.shared).extend(self.own.drain());
        self.own = HashSet::new();
    }
}

/// The calls of the latest kept assistant message that had any (S162).
#[derive(Default)]
struct OpenCalls {
    calls: Vec<(String, String)>,
    answered: HashSet<String>,
    held: Vec<Message>,
}

impl OpenCalls {
    /// The conversation moves on: every call gets a result, then the held system messages follow (S160, S161).
    fn close(&mut self, out: &mut Vec<Message>) {
        for (id, name) in self.calls.drain(..) {
            if !self.answered.contains(&id) {
                out.push(no_result(&id, &name));
            }
        }
        self.answered.clear();
        out.append(&mut self.held);
    }
}

fn no_result(id: &str, name: &str) -> Message {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64);
    ToolResultMessage {
        tool_call_id: id,
        tool_name: name,
        content: vec![json!({"type": "text", "text": NO_RESULT})],
        details: None,
        usage: None,
        is_error: true,
        duration_ms: None,
        timestamp: now,
        nested_calls: None,
    }
    .message()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(value: Value) -> Vec<Message> {
        value.as_array().unwrap().iter().cloned().filter_map(Message::from_value).collect()
    }

    fn values(messages: Vec<Message>) -> Value {
        messages.into_iter().map(Message::into_value).collect()
    }

    fn model(images: bool) -> TargetModel {
        TargetModel { provider: "lantern".into(), api: "lantern-chat".into(), id: "small".into(), images }
    }

    #[test]
    fn images_become_one_notice_a_run() {
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        let notice = json!({"type": "text", "text": USER_IMAGE_NOTICE});
        let input =
            json!([{"role": "user", "content": [image, image, notice, image, {"type": "text", "text": "x"}, image]}]);
        let expected = json!([{"role": "user", "content": [notice, notice, {"type": "text", "text": "x"}, notice]}]);
        assert_eq!(values(repair(&messages(input.clone()), &model(false), None)), expected);
        assert_eq!(values(repair(&messages(input.clone()), &model(true), None)), input);
    }

    #[test]
    fn results_are_renamed_only_after_their_call() {
        let input = json!([
            {"role": "toolResult", "toolCallId": "a|b", "content": []},
            {"role": "assistant", "provider": "other", "content": [{"type": "toolCall", "id": "a|b", "name": "t", "arguments": {}}]},
            {"role": "toolResult", "toolCallId": "a|b", "content": []},
        ]);
        let normalize = |id: &str, _: &Message| id.replace('|', "_");
        let ids: Vec<_> = repair(&messages(input), &model(true), Some(&normalize))
            .iter()
            .filter_map(|message| message.get_str("toolCallId").map(str::to_owned))
            .collect();
        assert_eq!(ids, ["a|b", "a_b"]);
    }

    #[test]
    fn a_dropped_response_still_closes_calls() {
        let input = json!([
            {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "t", "arguments": {}}], "stopReason": "toolUse"},
            {"role": "system", "content": "held"},
            {"role": "assistant", "content": [], "stopReason": "aborted"},
            {"role": "user", "content": "x"},
        ]);
        let roles: Vec<_> = repair(&messages(input), &model(true), None).iter().map(Message::role).collect();
        assert_eq!(roles, [Role::Assistant, Role::ToolResult, Role::System, Role::User]);
    }
}
