//! Tools that give recorded results.

use std::sync::Arc;

use serde_json::Value;

use super::{Inner, Replay};
use crate::message::JsonObject;
use crate::tools::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult};

struct RecordedTool {
    definition: ToolDefinition,
    inner: Arc<Inner>,
}

pub(super) fn tools(replay: &Replay) -> Vec<Arc<dyn Tool>> {
    let make = |declared: &Value| {
        let text = |key: &str| declared.get(key).and_then(Value::as_str).unwrap_or_default();
        let parameters = declared.get("parameters").cloned().unwrap_or_else(|| Value::Object(JsonObject::new()));
        let mut definition = ToolDefinition::new(text("name"), text("description"), parameters);
        definition.constrained_sampling = declared.get("constrainedSampling").cloned();
        Arc::new(RecordedTool { definition, inner: replay.inner.clone() }) as Arc<dyn Tool>
    };
    replay.inner.index.tools.iter().map(make).collect()
}

impl Tool for RecordedTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepares_images(&self) -> bool {
        true // they were prepared before they were stored
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        let result = self.inner.result(&call);
        Box::pin(std::future::ready(result))
    }
}

impl Inner {
    fn result(&self, call: &ToolCall) -> Result<ToolResult, ToolError> {
        let unknown =
            || ToolError::new(format!("The recording has no result for the call {} of {}.", call.id, call.name));
        let entry = self.index.results.get(&call.id).ok_or_else(unknown)?;
        if let Some((name, _)) = self.index.calls.get(&call.id)
            && *name != call.name
        {
            let text = format!("The recording has {name} under the call id {}, not {}.", call.id, call.name);
            return Err(ToolError::new(text));
        }
        let message = self.index.message(entry).map_err(|error| ToolError::new(error.to_string()))?;
        let content = message.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(ToolResult {
            content,
            details: message.get("details").cloned(),
            usage: message.get("usage").cloned(),
            is_error: message.get("isError") == Some(&Value::Bool(true)),
            ..ToolResult::default()
        })
    }
}
