//! Messages: what a model is told and what it answers (rules S29–S37).
//!
//! A [`Message`] is a JSON object with typed readers on top, not a closed struct: session files are written by several
//! programs and versions, so every field we do not know must survive a round trip in its place, and a field of an
//! unexpected shape must never make a message unreadable. The builders write the exact key orders of the format.

mod block;
mod build;
mod memo;
mod shape;
mod usage;

pub use block::{Block, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock};
pub use build::{AssistantStart, BashExecution, SystemMessage, ToolResultMessage};
pub use usage::{Cost, Usage};

use memo::Memos;
pub(crate) use memo::{Fitted, MessageMemos};
pub(crate) use shape::Shape;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, ErrorCode, Result};

/// A JSON object with its keys in written order.
pub type JsonObject = Map<String, Value>;

/// A field of an object with a dozen fields at the most: looking through them is quicker than a hash that withstands attacks.
pub(crate) fn field<'a>(object: &'a JsonObject, key: &str) -> Option<&'a Value> {
    object.iter().find_map(|(name, value)| (name == key).then_some(value))
}

/// Whether a block is a picture, in whatever form.
pub(crate) fn is_image(block: &Value) -> bool {
    block.as_object().and_then(|block| field(block, "type")).and_then(Value::as_str) == Some("image")
}

/// Refuses what is no image as a host gives one, `{type: "image", data, mimeType}`: in a file it would stay for ever.
///
/// # Errors
/// `invalid_argument`, with the number of the image.
pub(crate) fn check_images(images: &[Value]) -> Result<()> {
    let base64 = |text: &str| {
        let body = text.trim_end_matches('=');
        !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
    };
    for (at, image) in images.iter().enumerate() {
        let text = |key: &str| image.get(key).and_then(Value::as_str).unwrap_or_default();
        let problem = match image {
            image if !is_image(image) => "is no block of type \"image\"",
            _ if text("mimeType").is_empty() => "has no mimeType",
            _ if !base64(text("data")) => "has no base64 text as its data",
            _ => continue,
        };
        let message = format!("image {at} {problem}; an image is {{\"type\":\"image\",\"data\":…,\"mimeType\":…}}");
        return Err(Error::new(ErrorCode::InvalidArgument, message));
    }
    Ok(())
}

/// Who speaks in a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Prompt sections and tool declarations (S35).
    System,
    /// The person, or a host on the person's behalf (S31).
    User,
    /// The model (S32).
    Assistant,
    /// The outcome of one tool call (S34).
    ToolResult,
    /// A command the user ran outside the model's turn (S36).
    BashExecution,
    /// A message of an extension or host (S37).
    Custom,
    /// The summary of a branch that was left (S37).
    BranchSummary,
    /// The summary of compacted history (S37).
    CompactionSummary,
    /// Any other word; kept, never sent to a model (S146).
    Other,
}

impl Role {
    /// The role written as `text` in a message.
    pub fn parse(text: &str) -> Role {
        match text {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "toolResult" => Role::ToolResult,
            "bashExecution" => Role::BashExecution,
            "custom" => Role::Custom,
            "branchSummary" => Role::BranchSummary,
            "compactionSummary" => Role::CompactionSummary,
            _ => Role::Other,
        }
    }

    /// The word written in a message; `Other` has none of its own and gives `"other"`.
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::ToolResult => "toolResult",
            Role::BashExecution => "bashExecution",
            Role::Custom => "custom",
            Role::BranchSummary => "branchSummary",
            Role::CompactionSummary => "compactionSummary",
            Role::Other => "other",
        }
    }
}

/// Why a response ended (S32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The model was done.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model wants tools run.
    ToolUse,
    /// The request failed.
    Error,
    /// The host aborted.
    Aborted,
    /// The provider will deliver later.
    Deferred,
    /// Still streaming; never stored.
    Pending,
    /// Any other word.
    Other,
}

impl StopReason {
    /// The reason written as `text`.
    pub fn parse(text: &str) -> StopReason {
        match text {
            "stop" => StopReason::Stop,
            "length" => StopReason::Length,
            "toolUse" => StopReason::ToolUse,
            "error" => StopReason::Error,
            "aborted" => StopReason::Aborted,
            "deferred" => StopReason::Deferred,
            "pending" => StopReason::Pending,
            _ => StopReason::Other,
        }
    }

    /// The word written in a message; `Other` gives `"other"`.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Stop => "stop",
            StopReason::Length => "length",
            StopReason::ToolUse => "toolUse",
            StopReason::Error => "error",
            StopReason::Aborted => "aborted",
            StopReason::Deferred => "deferred",
            StopReason::Pending => "pending",
            StopReason::Other => "other",
        }
    }
}

/// One message. See the module's introduction for why it is an object with readers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message {
    object: JsonObject,
    #[serde(skip)]
    memos: Memos,
}

impl Message {
    pub(crate) fn from_object(object: JsonObject) -> Message {
        Message { object, memos: Memos::default() }
    }

    /// What was worked out from it for requests.
    pub(crate) fn memos(&self) -> &MessageMemos {
        self.memos.get()
    }

    /// What requests ask of it.
    pub(crate) fn shape(&self) -> &Shape {
        self.memos().shape.get_or_init(|| Shape::of(self))
    }

    /// The message held by `value`, if that is a JSON object.
    pub fn from_value(value: Value) -> Option<Message> {
        match value {
            Value::Object(object) => Some(Message::from_object(object)),
            _ => None,
        }
    }

    /// The message held by a JSON text of any origin (see [`crate::json::to_serde`] for what a foreign text may lose in
    /// this view; its bytes in the session file stay as they are). `None` if the text is not a JSON object.
    pub fn from_json(text: &[u8]) -> Option<Message> {
        crate::json::parse(text).and_then(Message::from_value)
    }

    /// All fields in written order.
    pub fn object(&self) -> &JsonObject {
        &self.object
    }

    /// All fields, to change.
    pub fn object_mut(&mut self) -> &mut JsonObject {
        self.memos = Memos::default();
        &mut self.object
    }

    /// The message as a JSON value.
    pub fn into_value(self) -> Value {
        Value::Object(self.object)
    }

    /// Compact JSON text in the form session files use (S2–S4).
    pub fn to_json(&self) -> String {
        crate::json::to_string(&self.object)
    }

    /// One field.
    pub fn get(&self, key: &str) -> Option<&Value> {
        field(&self.object, key)
    }

    /// One field that is a string.
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }

    /// Sets a field: in its place if it is there, else at the end.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.object_mut().insert(key.to_owned(), value.into());
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.get_str("role").map_or(Role::Other, Role::parse)
    }

    /// The content as blocks; a plain string counts as one text block, anything else as none.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let (text, blocks) = match self.get("content") {
            Some(Value::String(text)) => (Some(Block::Text(TextBlock { text, signature: None })), &[][..]),
            Some(Value::Array(blocks)) => (None, blocks.as_slice()),
            _ => (None, &[][..]),
        };
        text.into_iter().chain(blocks.iter().map(Block::new))
    }

    /// The text blocks joined by `separator` (a string content is returned as it is).
    pub fn text(&self, separator: &str) -> String {
        let mut out = String::new();
        let mut first = true;
        for block in self.blocks() {
            if let Block::Text(text) = block {
                if !first {
                    out.push_str(separator);
                }
                out.push_str(text.text);
                first = false;
            }
        }
        out
    }

    /// The tool calls of an assistant message, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = ToolCallBlock<'_>> {
        let calls = if self.role() == Role::Assistant { self.get("content") } else { None };
        calls.and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter().filter_map(|block| {
            match Block::new(block) {
                Block::ToolCall(call) => Some(call),
                _ => None,
            }
        })
    }

    /// Why an assistant message ended.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.get_str("stopReason").map(StopReason::parse)
    }

    /// Tokens and cost, when recorded.
    pub fn usage(&self) -> Option<Usage> {
        self.get("usage").and_then(Usage::from_value)
    }

    /// Milliseconds since the Unix epoch; `None` when absent or not a number.
    pub fn timestamp(&self) -> Option<f64> {
        self.get("timestamp").and_then(Value::as_f64)
    }
}
