//! From a protocol's steps to stream events and the final message (P41–P46, P50, P60).
//!
//! Every piece of text is copied once into its block and once into its event; nothing is read again before the block
//! ends. So a response costs time linear in its length.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::arguments::parse_arguments;
use super::partial_json::PartialJson;
use super::{BlockEvent, Model, StreamEvent};
use crate::message::{AssistantStart, JsonObject, Message, StopReason, Usage};
use crate::system::clock::now_ms;

/// The text shown in place of thinking the service keeps to itself (P223).
pub(crate) const REDACTED: &str = "[Reasoning redacted]";
/// The error of an aborted response (P100).
pub(crate) const ABORTED: &str = "The request was aborted.";

/// Builds one response. A protocol calls it in the order things arrive; the driver takes the events.
///
/// Blocks are counted from 0 in the order they begin. Calls for a block that does not exist, is of another kind or has
/// ended do nothing, so that a confused service cannot break anything.
pub(crate) struct Assembler {
    events: VecDeque<StreamEvent>,
    message: Message,
    model: Arc<Model>,
    blocks: Vec<Block>,
    usage: Option<Usage>,
    begun: Instant,
    started: bool,
    ended: bool,
}

struct Block {
    body: Body,
    /// Opaque state of the service: `textSignature`, `thinkingSignature` or `thoughtSignature`.
    signature: Option<String>,
    open: bool,
}

enum Body {
    Text(String),
    Thinking { text: String, redacted: bool },
    Call { id: String, name: String, text: String, namespace: Option<String>, parsed: Option<Value> },
}

#[allow(dead_code, reason = "each protocol uses a part")]
impl Assembler {
    /// A response to a request that begins now.
    pub(crate) fn new(model: Arc<Model>) -> Assembler {
        let start =
            AssistantStart { api: &model.api, provider: &model.provider, model: &model.id, timestamp: now_ms() };
        Assembler {
            events: VecDeque::new(),
            message: start.message(),
            model,
            blocks: Vec::new(),
            usage: None,
            begun: Instant::now(),
            started: false,
            ended: false,
        }
    }

    /// The model that was asked.
    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The service has answered: the `start` event. The driver calls it.
    pub(crate) fn start(&mut self) {
        if !self.started {
            self.started = true;
            self.events.push_back(StreamEvent::Start(self.message.clone()));
        }
    }

    /// Sets a field of the message, in its place or at the end: `responseId`, `rawStopReason`, ….
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.message.set(key, value);
    }

    /// The model that answered, if it is another than was asked (P42).
    pub(crate) fn set_response_model(&mut self, served: &str) {
        if !served.is_empty() && served != self.model.id && self.message.get_str("responseModel") != Some(served) {
            self.message.set("responseModel", served);
        }
    }

    /// The id of the response, if it has one and none is known yet.
    pub(crate) fn set_response_id(&mut self, id: &str) {
        if !id.is_empty() && self.message.get("responseId").is_none() {
            self.message.set("responseId", id);
        }
    }

    /// What is known of the usage so far.
    pub(crate) fn usage(&self) -> Usage {
        self.usage.unwrap_or_default()
    }

    /// Sets the usage; its cost is computed with the model's prices (P60, P61).
    pub(crate) fn set_usage(&mut self, mut usage: Usage) {
        usage.cost = self.model.prices.cost(&usage);
        self.set_priced_usage(usage);
    }

    /// Sets the usage with a cost that is known already (P62).
    pub(crate) fn set_priced_usage(&mut self, usage: Usage) {
        if self.usage != Some(usage) {
            self.usage = Some(usage);
            self.events.push_back(StreamEvent::Usage(usage));
        }
    }

    fn begin(&mut self, body: Body) -> usize {
        self.blocks.push(Block { body, signature: None, open: true });
        self.blocks.len() - 1
    }

    fn open(&mut self, index: usize) -> Option<&mut Block> {
        self.blocks.get_mut(index).filter(|block| block.open)
    }

    fn tell(&mut self, event: BlockEvent) {
        self.events.push_back(StreamEvent::Block(event));
    }

    /// Begins a text block; its index.
    pub(crate) fn text_start(&mut self) -> usize {
        let index = self.begin(Body::Text(String::new()));
        self.tell(BlockEvent::TextStart { index });
        index
    }

    /// Text arrived. Nothing is told for an empty piece.
    pub(crate) fn text_delta(&mut self, index: usize, delta: &str) {
        if let Some(Block { body: Body::Text(text), .. }) = self.open(index)
            && !delta.is_empty()
        {
            text.push_str(delta);
            self.tell(BlockEvent::TextDelta { index, delta: delta.into() });
        }
    }

    /// Text or thinking arrived, in a piece that is told although it may be empty.
    pub(crate) fn any_delta(&mut self, index: usize, delta: &str) {
        let event = match self.open(index) {
            Some(Block { body: Body::Text(text), .. }) => {
                text.push_str(delta);
                BlockEvent::TextDelta { index, delta: delta.into() }
            }
            Some(Block { body: Body::Thinking { text, redacted: false }, .. }) => {
                text.push_str(delta);
                BlockEvent::ThinkingDelta { index, delta: delta.into() }
            }
            _ => return,
        };
        self.tell(event);
    }

    /// Begins a thinking block; its index.
    pub(crate) fn thinking_start(&mut self) -> usize {
        let index = self.begin(Body::Thinking { text: String::new(), redacted: false });
        self.tell(BlockEvent::ThinkingStart { index });
        index
    }

    /// Begins thinking the service keeps to itself; `payload` is what it wants back (P223).
    pub(crate) fn redacted_thinking_start(&mut self, payload: &str) -> usize {
        let index = self.begin(Body::Thinking { text: REDACTED.to_owned(), redacted: true });
        self.set_signature(index, payload);
        self.tell(BlockEvent::ThinkingStart { index });
        index
    }

    /// Thinking arrived. Nothing is told for an empty piece.
    pub(crate) fn thinking_delta(&mut self, index: usize, delta: &str) {
        if let Some(Block { body: Body::Thinking { text, redacted: false }, .. }) = self.open(index)
            && !delta.is_empty()
        {
            text.push_str(delta);
            self.tell(BlockEvent::ThinkingDelta { index, delta: delta.into() });
        }
    }

    /// Begins a tool call; its index. Id and name may still be empty.
    pub(crate) fn call_start(&mut self, id: &str, name: &str) -> usize {
        let body =
            Body::Call { id: id.to_owned(), name: name.to_owned(), text: String::new(), namespace: None, parsed: None };
        let index = self.begin(body);
        self.tell(BlockEvent::ToolCallStart { index, id: id.into(), name: name.into() });
        index
    }

    /// Id or name of a call arrived later; empty ones change nothing.
    pub(crate) fn call_identify(&mut self, index: usize, new_id: &str, new_name: &str) {
        if let Some(Block { body: Body::Call { id, name, .. }, .. }) = self.open(index) {
            if !new_id.is_empty() {
                new_id.clone_into(id);
            }
            if !new_name.is_empty() {
                new_name.clone_into(name);
            }
        }
    }

    /// The namespace of a call's tool (P42).
    pub(crate) fn call_namespace(&mut self, index: usize, new: &str) {
        if let Some(Block { body: Body::Call { namespace, .. }, .. }) = self.open(index) {
            *namespace = Some(new.to_owned());
        }
    }

    /// Argument text arrived; an empty piece is told too (P222, P321).
    pub(crate) fn call_delta(&mut self, index: usize, delta: &str) {
        if let Some(Block { body: Body::Call { text, .. }, .. }) = self.open(index) {
            text.push_str(delta);
            self.tell(BlockEvent::ToolCallDelta { index, delta: delta.into() });
        }
    }

    /// The text of a block as it stands: text, thinking, or the argument text of a call.
    pub(crate) fn text_of(&self, index: usize) -> &str {
        match self.blocks.get(index).map(|block| &block.body) {
            Some(Body::Text(text) | Body::Thinking { text, .. } | Body::Call { text, .. }) => text,
            None => "",
        }
    }

    /// Replaces the text of an open block by the service's final one, without an event.
    pub(crate) fn replace_text(&mut self, index: usize, new: &str) {
        if let Some(Block { body: Body::Text(text) | Body::Thinking { text, .. } | Body::Call { text, .. }, .. }) =
            self.open(index)
        {
            new.clone_into(text);
        }
    }

    /// Sets the signature of a block, open or not.
    pub(crate) fn set_signature(&mut self, index: usize, signature: &str) {
        if let Some(block) = self.blocks.get_mut(index) {
            block.signature = Some(signature.to_owned());
        }
    }

    /// Adds to the signature of a block.
    pub(crate) fn append_signature(&mut self, index: usize, more: &str) {
        if let Some(block) = self.blocks.get_mut(index) {
            block.signature.get_or_insert_default().push_str(more);
        }
    }

    /// The signature of a block.
    pub(crate) fn signature(&self, index: usize) -> Option<&str> {
        self.blocks.get(index)?.signature.as_deref()
    }

    /// Ends a block: its `*_end` event. The arguments of a call are read now (P46).
    pub(crate) fn end(&mut self, index: usize) {
        let Some(block) = self.open(index) else { return };
        block.open = false;
        if let Body::Call { text, parsed, .. } = &mut block.body {
            let arguments = parse_arguments(text);
            let mut value = JsonObject::new();
            value.insert("arguments".to_owned(), Value::Object(arguments.object));
            if let Some(error) = arguments.error {
                value.insert("argumentsError".to_owned(), error.into());
            }
            *parsed = Some(Value::Object(value));
        }
        let event = match &block.body {
            Body::Text(text) => BlockEvent::TextEnd { index, content: text.as_str().into() },
            Body::Thinking { text, .. } => BlockEvent::ThinkingEnd { index, content: text.as_str().into() },
            Body::Call { .. } => BlockEvent::ToolCallEnd { index, tool_call: Arc::new(block.value()) },
        };
        self.tell(event);
    }

    /// Ends every open block, in order.
    pub(crate) fn end_all(&mut self) {
        for index in 0..self.blocks.len() {
            self.end(index);
        }
    }

    /// Whether a block is open.
    pub(crate) fn is_open(&self, index: usize) -> bool {
        self.blocks.get(index).is_some_and(|block| block.open)
    }

    /// How many blocks have begun.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is a tool call.
    pub(crate) fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block.body, Body::Call { .. }))
    }

    /// The response is complete. Blocks still open are ended first.
    pub(crate) fn finish(&mut self, stop: StopReason) {
        self.end_all();
        self.over(stop.name(), None);
    }

    /// The response failed; what had arrived stays (P44).
    pub(crate) fn fail(&mut self, error: &str) {
        self.over("error", Some(error));
    }

    /// The caller no longer wants it; what had arrived stays (P100).
    pub(crate) fn abort(&mut self) {
        self.over("aborted", Some(ABORTED));
    }

    fn over(&mut self, stop: &str, error: Option<&str>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let mut message = std::mem::take(&mut self.message);
        let content: Vec<Value> = self.blocks.iter().map(Block::value).collect();
        message.set("content", content);
        if let Some(usage) = self.usage {
            message.set("usage", usage.to_value());
        }
        message.set("stopReason", stop);
        if let Some(error) = error {
            message.set("errorMessage", error);
        }
        message.set("durationMs", u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.events.push_back(StreamEvent::Done(message));
    }

    /// The message, if it is the last that was told.
    pub(crate) fn finished(&self) -> Option<&Message> {
        match self.events.back() {
            Some(StreamEvent::Done(message)) => Some(message),
            _ => None,
        }
    }

    /// Tells something that is no part of the message.
    pub(crate) fn push(&mut self, event: StreamEvent) {
        self.events.push_back(event);
    }

    /// The next event.
    pub(crate) fn pop(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Whether the final event was made.
    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }
}

impl Block {
    /// The block as it is stored; a call that has not ended has the arguments of its text so far (P45).
    fn value(&self) -> Value {
        let mut object = JsonObject::new();
        let mut put = |key: &str, value: Value| {
            object.insert(key.to_owned(), value);
        };
        let signature = self.signature.as_deref();
        match &self.body {
            Body::Text(text) => {
                put("type", "text".into());
                put("text", text.as_str().into());
                if let Some(signature) = signature {
                    put("textSignature", signature.into());
                }
            }
            Body::Thinking { text, redacted } => {
                put("type", "thinking".into());
                put("thinking", text.as_str().into());
                if let Some(signature) = signature {
                    put("thinkingSignature", signature.into());
                }
                if *redacted {
                    put("redacted", true.into());
                }
            }
            Body::Call { id, name, text, namespace, parsed } => {
                put("type", "toolCall".into());
                put("id", id.as_str().into());
                put("name", name.as_str().into());
                let part = |key: &str| parsed.as_ref().and_then(|parsed| parsed.get(key)).cloned();
                let so_far = || {
                    let mut partial = PartialJson::new();
                    partial.push(text);
                    Value::Object(partial.object())
                };
                put("arguments", part("arguments").unwrap_or_else(so_far));
                if let Some(signature) = signature {
                    put("thoughtSignature", signature.into());
                }
                if let Some(namespace) = namespace {
                    put("namespace", namespace.as_str().into());
                }
                if let Some(error) = part("argumentsError") {
                    put("argumentsError", error);
                }
            }
        }
        Value::Object(object)
    }
}
