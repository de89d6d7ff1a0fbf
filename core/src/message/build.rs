//! Builders: messages in the exact key orders of the format (S31–S36).

use serde_json::{Value, json};

use super::{JsonObject, Message, Usage};

impl Message {
    /// A user message (S31): one text block, then images. `timestamp` in milliseconds since the Unix epoch.
    pub fn user(text: &str, images: Vec<Value>, timestamp: i64) -> Message {
        let mut content = vec![json!({"type": "text", "text": text})];
        content.extend(images);
        message(vec![("role", "user".into()), ("content", content.into()), ("timestamp", timestamp.into())])
    }

    /// A custom message as it stands in context (S37).
    pub fn custom(custom_type: &str, content: Value, display: bool, details: Option<Value>, timestamp: f64) -> Message {
        let mut out = message(vec![
            ("role", "custom".into()),
            ("customType", custom_type.into()),
            ("content", content),
            ("display", display.into()),
        ]);
        if let Some(details) = details {
            out.set("details", details);
        }
        out.set("timestamp", number(timestamp));
        out
    }

    /// The summary of a branch that was left, as it stands in context (S37).
    pub fn branch_summary(summary: &str, from_id: &str, timestamp: f64) -> Message {
        message(vec![
            ("role", "branchSummary".into()),
            ("summary", summary.into()),
            ("fromId", from_id.into()),
            ("timestamp", number(timestamp)),
        ])
    }

    /// The summary of compacted history, as it stands in context (S37).
    pub fn compaction_summary(summary: &str, tokens_before: Value, timestamp: f64) -> Message {
        message(vec![
            ("role", "compactionSummary".into()),
            ("summary", summary.into()),
            ("tokensBefore", tokens_before),
            ("timestamp", number(timestamp)),
        ])
    }
}

/// What is known of a response when its request starts (S32); everything later is set on the message by name.
#[derive(Debug, Clone)]
pub struct AssistantStart<'a> {
    /// Wire protocol, for example `anthropic-messages`.
    pub api: &'a str,
    /// Provider name.
    pub provider: &'a str,
    /// Model id.
    pub model: &'a str,
    /// When the request started, milliseconds since the Unix epoch.
    pub timestamp: i64,
}

impl AssistantStart<'_> {
    /// An empty response in state `pending` with zero usage.
    pub fn message(&self) -> Message {
        message(vec![
            ("role", "assistant".into()),
            ("content", Value::Array(Vec::new())),
            ("api", self.api.into()),
            ("provider", self.provider.into()),
            ("model", self.model.into()),
            ("usage", Usage::default().to_value()),
            ("stopReason", "pending".into()),
            ("timestamp", self.timestamp.into()),
        ])
    }

    /// The message stored when the run itself failed (S33).
    pub fn failed(&self, stop_reason: &str, error: &str) -> Message {
        message(vec![
            ("role", "assistant".into()),
            ("content", json!([{"type": "text", "text": ""}])),
            ("api", self.api.into()),
            ("provider", self.provider.into()),
            ("model", self.model.into()),
            ("usage", Usage::default().to_value()),
            ("stopReason", stop_reason.into()),
            ("errorMessage", error.into()),
            ("timestamp", self.timestamp.into()),
        ])
    }
}

/// The outcome of one tool call (S34).
#[derive(Debug, Clone)]
pub struct ToolResultMessage<'a> {
    /// Id of the call it answers.
    pub tool_call_id: &'a str,
    /// The tool's name.
    pub tool_name: &'a str,
    /// Content blocks.
    pub content: Vec<Value>,
    /// Structured facts for hosts.
    pub details: Option<Value>,
    /// Tokens the tool itself spent.
    pub usage: Option<Value>,
    /// The call failed.
    pub is_error: bool,
    /// How long the tool ran, milliseconds; `None` when it did not run.
    pub duration_ms: Option<u64>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// Calls the tool made to other tools.
    pub nested_calls: Option<Value>,
}

impl ToolResultMessage<'_> {
    /// The message in written order.
    pub fn message(self) -> Message {
        let mut out = message(vec![
            ("role", "toolResult".into()),
            ("toolCallId", self.tool_call_id.into()),
            ("toolName", self.tool_name.into()),
            ("content", self.content.into()),
        ]);
        set_some(&mut out, "details", self.details);
        set_some(&mut out, "usage", self.usage);
        out.set("isError", self.is_error);
        set_some(&mut out, "durationMs", self.duration_ms.map(Value::from));
        out.set("timestamp", self.timestamp);
        set_some(&mut out, "nestedCalls", self.nested_calls);
        out
    }
}

/// Prompt and tool changes (S35). Empty parts are left out.
#[derive(Debug, Clone, Default)]
pub struct SystemMessage {
    /// Free text, usually empty.
    pub content: String,
    /// Section name → text, or null to remove it.
    pub sections: JsonObject,
    /// Full declarations `{name, description, parameters, constrainedSampling?}`.
    pub tools_added: Vec<Value>,
    /// Names of tools that are gone.
    pub tools_removed: Vec<String>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
}

impl SystemMessage {
    /// The message in written order.
    pub fn message(self) -> Message {
        let mut out = message(vec![("role", "system".into()), ("content", self.content.into())]);
        if !self.sections.is_empty() {
            out.set("sections", self.sections);
        }
        out.set("timestamp", self.timestamp);
        if !self.tools_added.is_empty() {
            out.set("toolsAdded", self.tools_added);
        }
        if !self.tools_removed.is_empty() {
            let removed: Vec<Value> = self.tools_removed.into_iter().map(|name| json!({"name": name})).collect();
            out.set("toolsRemoved", removed);
        }
        out
    }
}

/// A command run by the user outside the model's turn (S36).
#[derive(Debug, Clone, Default)]
pub struct BashExecution {
    /// As typed.
    pub command: String,
    /// Cleaned, possibly shortened output.
    pub output: String,
    /// Absent when unknown or cancelled.
    pub exit_code: Option<i32>,
    /// The user stopped it.
    pub cancelled: bool,
    /// `output` is only the end of it.
    pub truncated: bool,
    /// File with everything.
    pub full_output_path: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// Kept out of the model's context.
    pub exclude_from_context: Option<bool>,
}

impl BashExecution {
    /// The message in written order.
    pub fn message(self) -> Message {
        let mut out = message(vec![
            ("role", "bashExecution".into()),
            ("command", self.command.into()),
            ("output", self.output.into()),
        ]);
        set_some(&mut out, "exitCode", self.exit_code.map(Value::from));
        out.set("cancelled", self.cancelled);
        out.set("truncated", self.truncated);
        set_some(&mut out, "fullOutputPath", self.full_output_path.map(Value::from));
        out.set("timestamp", self.timestamp);
        set_some(&mut out, "excludeFromContext", self.exclude_from_context.map(Value::from));
        out
    }
}

fn message(fields: Vec<(&str, Value)>) -> Message {
    Message::from_object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn set_some(message: &mut Message, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        message.set(key, value);
    }
}

/// A time as a JSON number; NaN (an unreadable time, S37) is null.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9.0e15 { Value::from(value as i64) } else { Value::from(value) }
}
