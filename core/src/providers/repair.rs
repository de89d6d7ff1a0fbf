//! Making a conversation acceptable to a model (S153–S162, P120–P126): missing contents, images, thinking and signatures of
//! other models, call ids, calls without results.
//!
//! It is pure and runs per request; nothing it changes is ever stored. The sentences the model reads are constants, so that
//! tests and hosts can recognise them.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::message::{Fitted, Message, Role, ToolResultMessage, field, is_image};

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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

    /// A number that stands for it in memos.
    pub(crate) fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
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
    repaired(messages, model, normalize).into_iter().map(Message::from).collect()
}

/// A message as it is sent: the conversation's own, or one in its place.
#[derive(Debug, Clone)]
pub(crate) enum Sent<'a> {
    Original(&'a Message),
    Adapted(Arc<Message>),
}

impl Sent<'_> {
    /// The message, to change.
    pub(crate) fn to_mut(&mut self) -> &mut Message {
        if let Sent::Original(message) = self {
            *self = Sent::Adapted(Arc::new(message.clone()));
        }
        match self {
            Sent::Adapted(message) => Arc::make_mut(message),
            Sent::Original(_) => unreachable!("it was replaced"),
        }
    }
}

impl Deref for Sent<'_> {
    type Target = Message;

    fn deref(&self) -> &Message {
        match self {
            Sent::Original(message) => message,
            Sent::Adapted(message) => message,
        }
    }
}

impl Borrow<Message> for Sent<'_> {
    fn borrow(&self) -> &Message {
        self
    }
}

impl From<Sent<'_>> for Message {
    fn from(sent: Sent<'_>) -> Message {
        match sent {
            Sent::Original(message) => message.clone(),
            Sent::Adapted(message) => Arc::unwrap_or_clone(message),
        }
    }
}

/// [`repair`] that copies only messages it changes, and those once for a model.
pub(crate) fn repaired<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    model: &TargetModel,
    normalize: Option<IdNormalizer<'_>>,
) -> Vec<Sent<'a>> {
    close_calls(adapt(messages, model, normalize))
}

/// Message by message: missing contents, images, foreign thinking and signatures, call ids (S153–S158).
pub(crate) fn adapt<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    model: &TargetModel,
    normalize: Option<IdNormalizer<'_>>,
) -> Vec<Sent<'a>> {
    let key = model.key();
    let mut renamed: HashMap<String, String> = HashMap::new();
    let adapt_one = |message: &'a Message| {
        let shape = message.shape();
        let fitted = match shape.plain {
            true => Fitted::default(),
            false => message.memos().fitted.get_or(key, || fit(message, model)),
        };
        let mut sent = fitted.copy.map_or(Sent::Original(message), Sent::Adapted);
        if let (true, Some(normalize)) = (fitted.foreign_calls, normalize) {
            let new = |id: &str| Some(normalize(id, message)).filter(|new| new != id);
            let ids = shape.calls.ids().iter().filter_map(|id| Some((id.to_string(), new(id)?)));
            let ids: HashMap<String, String> = ids.collect();
            if !ids.is_empty() {
                rename_calls(sent.to_mut(), &ids);
                renamed.extend(ids);
            }
        }
        if !renamed.is_empty()
            && let Some(id) = shape.answers.as_deref().and_then(|id| renamed.get(id))
        {
            sent.to_mut().set("toolCallId", id.as_str());
        }
        sent
    };
    messages.into_iter().map(adapt_one).collect()
}

/// What `model` can take of one message, ids aside.
fn fit(message: &Message, model: &TargetModel) -> Fitted {
    let mut sent = Sent::Original(message);
    if message.get("content").is_none_or(Value::is_null) {
        sent.to_mut().set("content", json!([]));
    }
    let mut foreign_calls = false;
    match message.role() {
        Role::User if !model.images && message.shape().images => replace_images(sent.to_mut(), USER_IMAGE_NOTICE),
        Role::ToolResult if !model.images && message.shape().images => replace_images(sent.to_mut(), TOOL_IMAGE_NOTICE),
        Role::Assistant => {
            let own = model.made(message);
            foreign_calls = !own && !message.shape().calls.is_empty();
            let blocks = message.get("content").and_then(Value::as_array);
            if let Some(blocks) = blocks.filter(|blocks| blocks.iter().any(|block| !fits(block, own))) {
                let blocks: Vec<Value> = blocks.iter().filter_map(|block| fit_block(block, own)).collect();
                sent.to_mut().set("content", blocks);
            }
        }
        _ => {}
    }
    let copy = match sent {
        Sent::Original(_) => None,
        Sent::Adapted(copy) => Some(copy),
    };
    Fitted { copy, foreign_calls }
}

/// Whether a block of a response can be sent as it is.
fn fits(block: &Value, own: bool) -> bool {
    match string(block, "type") {
        Some("thinking") => keeps_thinking(block, own),
        Some("text") => own || block.get("textSignature").is_none(),
        Some("toolCall") => own || block.get("thoughtSignature").is_none(),
        _ => true,
    }
}

/// A block of a response as it is sent, if it is.
fn fit_block(block: &Value, own: bool) -> Option<Value> {
    let kind = string(block, "type");
    if kind == Some("thinking") && !keeps_thinking(block, own) {
        return None;
    }
    let mut block = block.clone();
    match kind {
        Some("text") if !own => remove(&mut block, "textSignature"),
        Some("toolCall") if !own => remove(&mut block, "thoughtSignature"),
        _ => {}
    }
    Some(block)
}

/// Gives calls other ids.
fn rename_calls(message: &mut Message, ids: &HashMap<String, String>) {
    let Some(Value::Array(blocks)) = message.object_mut().get_mut("content") else { return };
    for block in blocks.iter_mut().filter(|block| string(block, "type") == Some("toolCall")) {
        if let Some(new) = string(block, "id").and_then(|id| ids.get(id)) {
            block["id"] = new.as_str().into();
        }
    }
}

/// A field of a block that is a text.
fn string<'a>(block: &'a Value, key: &str) -> Option<&'a str> {
    block.as_object().and_then(|block| field(block, key)).and_then(Value::as_str)
}

/// Thinking survives only at its own model, and there when it is redacted, signed or not blank (S155).
fn keeps_thinking(block: &Value, own: bool) -> bool {
    let text = |key: &str| string(block, key).unwrap_or_default();
    own && (block.get("redacted").is_some_and(truthy)
        || !text("thinkingSignature").is_empty()
        || !is_blank(text("thinking")))
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
fn close_calls(messages: Vec<Sent<'_>>) -> Vec<Sent<'_>> {
    let mut out = Vec::with_capacity(messages.len());
    let mut open = OpenCalls::default();
    for message in messages {
        let shape = message.shape();
        match shape.role {
            Role::Assistant => {
                open.close(&mut out);
                if shape.failed {
                    continue;
                }
                open.asked = (!shape.calls.is_empty()).then_some(out.len());
                out.push(message);
            }
            Role::ToolResult => {
                open.answered.extend(shape.answers.clone());
                out.push(message);
            }
            Role::System if open.asked.is_some() => open.held.push(message),
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
pub fn drop_orphan_results<M: Borrow<Message>>(messages: Vec<M>) -> Vec<M> {
    let mut known = KnownCalls::default();
    messages.into_iter().filter(|message| known.admits(message.borrow())).collect()
}

/// The calls of a conversation so far: the same rule for a list that grows.
///
/// Cheap to clone after [`settle`](KnownCalls::settle): the calls known by then are shared.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownCalls {
    shared: Arc<HashSet<Arc<str>>>,
    own: HashSet<Arc<str>>,
    /// The last ones, which most results answer; they are no members of `own` yet.
    latest: Vec<Arc<str>>,
}

impl KnownCalls {
    /// So many latest calls are looked through one by one.
    const FEW: usize = 16;

    /// Takes in the next message and says whether it may stay. Calls of failed responses do not count, as those are
    /// left out of requests themselves (S159).
    pub(crate) fn admits(&mut self, message: &Message) -> bool {
        let shape = message.shape();
        match shape.role {
            Role::Assistant if !shape.failed => {
                self.latest.extend_from_slice(shape.calls.ids());
                true
            }
            Role::ToolResult => shape.answers.as_ref().is_some_and(|id| self.knows(id)),
            _ => true,
        }
    }

    fn knows(&mut self, id: &Arc<str>) -> bool {
        if self.latest.iter().rev().take(Self::FEW).any(|call| call == id) {
            return true;
        }
        self.own.extend(self.latest.drain(..));
        self.own.contains(id) || self.shared.contains(id)
    }

    /// From now on what is known is shared with every clone.
    pub(crate) fn settle(&mut self) {
        Arc::make_mut(&mut self.shared).extend(self.own.drain().chain(self.latest.drain(..)));
        self.own = HashSet::new();
    }
}

/// The calls of the latest kept assistant message that had any (S162).
#[derive(Default)]
struct OpenCalls<'a> {
    /// Where that message is among those that are sent.
    asked: Option<usize>,
    answered: Vec<Arc<str>>,
    held: Vec<Sent<'a>>,
}

impl<'a> OpenCalls<'a> {
    /// The conversation moves on: every call gets a result, then the held system messages follow (S160, S161).
    fn close(&mut self, out: &mut Vec<Sent<'a>>) {
        if let Some(asked) = self.asked.take()
            && out[asked].shape().calls.ids() != self.answered
        {
            let answered: HashSet<&str> = self.answered.iter().map(Arc::as_ref).collect();
            let open = out[asked].tool_calls().filter(|call| !answered.contains(call.id));
            let results: Vec<_> = open.map(|call| Sent::Adapted(Arc::new(no_result(call.id, call.name)))).collect();
            out.extend(results);
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
    fn results_stay_where_any_earlier_response_has_their_call() {
        let response = |ids: std::ops::Range<usize>| {
            let call = |id| json!({"type": "toolCall", "id": format!("c{id}"), "name": "t", "arguments": {}});
            json!({"role": "assistant", "content": ids.map(call).collect::<Vec<_>>()})
        };
        let result = |id: usize| json!({"role": "toolResult", "toolCallId": format!("c{id}"), "content": []});
        let input = json!([response(0..40), response(40..41), result(40), result(0), result(39), result(41)]);
        let kept = drop_orphan_results(messages(input));
        let ids: Vec<_> = kept.iter().filter_map(|message| message.get_str("toolCallId")).collect();
        assert_eq!(ids, ["c40", "c0", "c39"]);
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
