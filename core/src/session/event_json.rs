//! The JSON form of events: pi's event stream, where `message_update` carries no message (S201, R110–R112).

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::event::{CompactionResult, Event, EventKind, RetryWait};
use crate::json;
use crate::message::Message;
use crate::permissions::PermissionDecision;
use crate::providers::BlockEvent;
use crate::tools::ToolResult;

/// An object under construction: keys are written in the order of the calls.
struct Object(String);

impl Object {
    fn new(type_name: &str) -> Object {
        Object(format!("{{\"type\":\"{type_name}\""))
    }

    /// A field whose JSON text is at hand.
    fn raw(mut self, key: &str, text: &str) -> Object {
        let _ = write!(self.0, ",\"{key}\":{text}");
        self
    }

    fn text(self, key: &str, text: &str) -> Object {
        let text = json::to_string(text);
        self.raw(key, &text)
    }

    fn value(self, key: &str, value: &Value) -> Object {
        let text = json::to_string(value);
        self.raw(key, &text)
    }

    fn optional(self, key: &str, text: Option<&str>) -> Object {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    fn flag(self, key: &str, flag: bool) -> Object {
        self.raw(key, if flag { "true" } else { "false" })
    }

    fn message(self, key: &str, message: &Message) -> Object {
        let text = message.to_json();
        self.raw(key, &text)
    }

    fn list<T>(mut self, key: &str, items: &[T], json: impl Fn(&T) -> String) -> Object {
        let _ = write!(self.0, ",\"{key}\":[");
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.0.push_str(&json(item));
        }
        self.0.push(']');
        self
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

pub(super) fn write(event: &Event) -> String {
    let object = Object::new(event.type_name());
    let text = |text: &Arc<str>| json::to_string(&**text);
    let message = |message: &Arc<Message>| message.to_json();
    match &event.kind {
        EventKind::AgentStart | EventKind::TurnStart | EventKind::SummarizationRetryFinished => object,
        EventKind::MessageStart { message } | EventKind::MessageEnd { message, .. } => {
            object.message("message", message)
        }
        EventKind::MessageUpdate { usage, update } => {
            object.value("usage", &usage.to_value()).raw("assistantMessageEvent", &block(update))
        }
        EventKind::ToolExecutionStart { id, name, args, parent } => {
            made_by(tool(object, id, name).value("args", args), parent)
        }
        EventKind::ToolExecutionUpdate { id, name, args, partial, parent } => {
            made_by(tool(object, id, name).value("args", args).raw("partialResult", &result(partial)), parent)
        }
        EventKind::ToolExecutionEnd { id, name, result: outcome, is_error, duration_ms, parent } => {
            let object = tool(object, id, name).raw("result", &result(outcome)).flag("isError", *is_error);
            let object = match duration_ms {
                Some(time) => object.raw("durationMs", &time.to_string()),
                None => object,
            };
            made_by(object, parent)
        }
        EventKind::PermissionDecision { decision } => permission(object, decision),
        EventKind::TurnEnd { message: response, tool_results } => {
            object.message("message", response).list("toolResults", tool_results, message)
        }
        EventKind::AgentEnd { messages, will_retry } => {
            object.list("messages", messages, message).flag("willRetry", *will_retry)
        }
        EventKind::AgentSettled { aborted } => object.flag("aborted", *aborted),
        EventKind::QueueUpdate { steering, follow_up } => {
            object.list("steering", steering, text).list("followUp", follow_up, text)
        }
        EventKind::EntryAppended { entry } => object.raw("entry", entry),
        EventKind::SessionInfoChanged { name } => object.optional("name", name.as_deref()),
        EventKind::ThinkingLevelChanged { level } => object.text("level", level),
        EventKind::CompactionStart { reason } => object.text("reason", reason.name()),
        EventKind::CompactionEnd { reason, result, aborted, will_retry, error } => {
            let object = object.text("reason", reason.name());
            let object = match result {
                Some(result) => object.value("result", &compaction(result)),
                None => object,
            };
            object.flag("aborted", *aborted).flag("willRetry", *will_retry).optional("errorMessage", error.as_deref())
        }
        EventKind::AutoRetryStart { wait } | EventKind::SummarizationRetryScheduled { wait } => retry(object, wait),
        EventKind::AutoRetryEnd { success, attempt, error } => {
            let object = object.flag("success", *success).raw("attempt", &attempt.to_string());
            object.optional("finalError", error.as_deref())
        }
        EventKind::BudgetExceeded { over } => {
            let number = |number: f64| json::to_string(&number);
            let object = object.text("limit", over.limit.name());
            let object = object.raw("used", &number(over.used)).raw("max", &number(over.max));
            if over.price_unknown { object.flag("priceUnknown", true) } else { object }
        }
        EventKind::BashExecutionUpdate { id, delta } => object.optional("id", id.as_deref()).text("delta", delta),
        EventKind::SummarizationRetryAttemptStart { compaction } => match compaction {
            Some(reason) => object.text("source", "compaction").text("reason", reason.name()),
            None => object.text("source", "branchSummary"),
        },
    }
    .end()
}

fn tool(object: Object, id: &str, name: &str) -> Object {
    object.text("toolCallId", id).text("toolName", name)
}

fn made_by(object: Object, parent: &Option<Arc<str>>) -> Object {
    object.optional("parentToolCallId", parent.as_deref())
}

fn permission(object: Object, decision: &PermissionDecision) -> Object {
    tool(object, &decision.call_id, &decision.tool)
        .text("effect", decision.effect.name())
        .text("decision", if decision.allowed { "allow" } else { "deny" })
        .text("rule", &decision.rule)
        .text("by", decision.by.name())
        .optional("reason", decision.reason.as_deref())
}

fn retry(object: Object, wait: &RetryWait) -> Object {
    let object = object.raw("attempt", &wait.attempt.to_string()).raw("maxAttempts", &wait.max_attempts.to_string());
    object.raw("delayMs", &wait.delay_ms.to_string()).text("errorMessage", &wait.error)
}

/// `{summary, firstKeptEntryId, tokensBefore, estimatedTokensAfter, usage?, details}` (S263).
fn compaction(result: &CompactionResult) -> Value {
    let mut value = serde_json::json!({
        "summary": result.summary,
        "firstKeptEntryId": result.first_kept_entry_id,
        "tokensBefore": result.tokens_before,
        "estimatedTokensAfter": result.estimated_tokens_after,
    });
    if let Some(usage) = &result.usage {
        value["usage"] = usage.clone();
    }
    value["details"] = result.details.clone();
    value
}

fn result(result: &ToolResult) -> String {
    json::to_string(&result.to_value())
}

fn block(update: &BlockEvent) -> String {
    let object = Object::new(update.type_name()).raw("contentIndex", &update.index().to_string());
    match update {
        BlockEvent::TextStart { .. } | BlockEvent::ThinkingStart { .. } => object,
        BlockEvent::TextDelta { delta, .. }
        | BlockEvent::ThinkingDelta { delta, .. }
        | BlockEvent::ToolCallDelta { delta, .. } => object.text("delta", delta),
        BlockEvent::TextEnd { content, .. } | BlockEvent::ThinkingEnd { content, .. } => {
            object.text("content", content)
        }
        BlockEvent::ToolCallStart { id, name, .. } => object.text("id", id).text("toolName", name),
        BlockEvent::ToolCallEnd { tool_call, .. } => object.value("toolCall", tool_call),
    }
    .end()
}
