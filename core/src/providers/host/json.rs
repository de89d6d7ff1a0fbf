//! Writing an answer by JSON events, for hosts in other languages.

use std::time::Duration;

use serde_json::Value;

use super::HostResponse;
use super::response::Kind;
use crate::error::{Error, ErrorCode, Result};
use crate::message::{StopReason, Usage};

impl HostResponse {
    /// Writes one event, in the shape of the events that a session gives out (P41); an index may be left out. A text in
    /// its place is text of the answer.
    ///
    /// | type | fields |
    /// |---|---|
    /// | `start` | |
    /// | `text_start`, `thinking_start` | |
    /// | `text_delta`, `thinking_delta` | `delta` |
    /// | `text_end`, `thinking_end` | `signature`? |
    /// | `toolcall_start` | `id`?, `toolName` |
    /// | `toolcall_delta` | `delta`: a piece of the JSON text |
    /// | `toolcall_end` | |
    /// | `text`, `thinking` | `text`: a whole block |
    /// | `toolcall` | `id`?, `name`, `arguments`: a whole call |
    /// | `usage` | `usage`: as messages have it |
    /// | `done` | `reason`?, `message`?: a message whose content is written if nothing was |
    /// | `error` | `error`: a text, or a message with `errorMessage`; `retryAfterMs`? |
    ///
    /// Errors: `invalid_argument` for anything else, saying what is missing; `cancelled`.
    pub fn push_json(&self, event: &str) -> Result<()> {
        let event: Value =
            serde_json::from_str(event).map_err(|error| wrong(format!("the event is no JSON: {error}")))?;
        self.push_value(&event)
    }

    /// The same for a value.
    pub fn push_value(&self, event: &Value) -> Result<()> {
        if let Value::String(piece) = event {
            return if piece.is_empty() { self.start() } else { self.text(piece) };
        }
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        let needed = |key: &str| text(key).ok_or_else(|| wrong(format!("the event {} needs {key:?}", event["type"])));
        match text("type").unwrap_or_default() {
            "start" => self.start(),
            "text_start" => self.begin(Kind::Text),
            "thinking_start" => self.begin(Kind::Thinking),
            "text_delta" => self.text(needed("delta")?),
            "thinking_delta" => self.thinking(needed("delta")?),
            "toolcall_start" => {
                let name = text("toolName").or(text("name"));
                let name = name.ok_or_else(|| wrong("the event toolcall_start needs \"toolName\"".to_owned()))?;
                self.tool_call_start(text("id").unwrap_or_default(), name)
            }
            "toolcall_delta" => self.tool_call_arguments(needed("delta")?),
            "text_end" | "thinking_end" | "toolcall_end" => {
                if let Some(signature) = text("signature") {
                    self.signature(signature)?;
                }
                self.end_block()
            }
            "text" | "thinking" | "toolcall" => self.push_block(event),
            "usage" => {
                let usage = event.get("usage").and_then(Usage::from_value);
                self.usage(usage.ok_or_else(|| wrong("the event usage needs an object \"usage\"".to_owned()))?)
            }
            "done" => self.push_done(event),
            "error" => {
                let error = event.get("error");
                let message = error.and_then(Value::as_str);
                let message =
                    message.or_else(|| error.and_then(|error| error.get("errorMessage")).and_then(Value::as_str));
                let pause = event.get("retryAfterMs").and_then(Value::as_u64).map(Duration::from_millis);
                self.fail_after(message.unwrap_or("the host's model failed"), pause)
            }
            other => Err(wrong(format!("{other:?} is no event of an answer"))),
        }
    }

    fn push_done(&self, event: &Value) -> Result<()> {
        let message = event.get("message");
        if let Some(usage) = message.and_then(|message| message.get("usage")).and_then(Usage::from_value) {
            self.usage(usage)?;
        }
        if self.is_empty() {
            for block in
                message.and_then(|message| message.get("content")).and_then(Value::as_array).into_iter().flatten()
            {
                self.push_block(block)?;
            }
        }
        let reason = event.get("reason").or_else(|| message.and_then(|message| message.get("stopReason")));
        match reason.and_then(Value::as_str) {
            None => self.finish(),
            Some(reason) => match StopReason::parse(reason) {
                reason @ (StopReason::Stop | StopReason::Length | StopReason::ToolUse) => {
                    self.finish_with(Some(reason))
                }
                _ => Err(wrong(format!("{reason:?} is no reason to be done; use stop, length or toolUse"))),
            },
        }
    }

    /// A whole block, as an event or as messages have it.
    fn push_block(&self, block: &Value) -> Result<()> {
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        match text("type").unwrap_or_default() {
            "text" => {
                self.begin(Kind::Text)?;
                self.text(text("text").unwrap_or_default())?;
            }
            "thinking" => {
                self.begin(Kind::Thinking)?;
                self.thinking(text("thinking").or(text("text")).unwrap_or_default())?;
            }
            "toolcall" | "toolCall" => {
                let name = text("name").or(text("toolName"));
                let name = name.ok_or_else(|| wrong("a tool call needs a \"name\"".to_owned()))?;
                let none = Value::Object(Default::default());
                let arguments = block.get("arguments").filter(|arguments| !arguments.is_null()).unwrap_or(&none);
                return match arguments {
                    Value::String(text_of) => {
                        self.tool_call_start(text("id").unwrap_or_default(), name)?;
                        self.tool_call_arguments(text_of)?;
                        self.end_block()
                    }
                    arguments => self.tool_call(text("id").unwrap_or_default(), name, arguments),
                };
            }
            other => return Err(wrong(format!("{other:?} is no block of an answer"))),
        }
        if let Some(signature) = text("signature").or(text("textSignature")).or(text("thinkingSignature")) {
            self.signature(signature)?;
        }
        self.end_block()
    }
}

fn wrong(text: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, text)
}
