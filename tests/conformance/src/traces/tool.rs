//! The tools of a scenario: behaviours in JSON.

use branchline::providers::scripted::{Gates, ShortUsage};
use branchline::tools::{ExecutionMode, Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult};
use serde_json::{Value, json};

pub(super) struct ScriptedTool {
    definition: ToolDefinition,
    behaviour: Vec<Value>,
    gates: Gates,
    standing: Gates,
}

impl ScriptedTool {
    /// `gates` are those of the scenario; the gate in `standing` with a call's id opens when that call waits.
    pub(super) fn new(tool: &Value, gates: Gates, standing: Gates) -> ScriptedTool {
        let text = |key: &str| tool[key].as_str().unwrap_or_default();
        let mut definition = ToolDefinition::new(text("name"), text("description"), tool["schema"].clone());
        if tool["executionMode"] == "sequential" {
            definition.mode = ExecutionMode::Sequential;
        }
        let behaviour = tool["behaviour"].as_array().cloned().unwrap_or_default();
        ScriptedTool { definition, behaviour, gates, standing }
    }
}

impl Tool for ScriptedTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        Box::pin(play(self.behaviour.clone(), call, self.gates.clone(), self.standing.clone()))
    }
}

async fn play(behaviour: Vec<Value>, call: ToolCall, gates: Gates, standing: Gates) -> Result<ToolResult, ToolError> {
    let mut arguments = Value::Object(call.arguments.clone());
    for step in behaviour {
        let word = |key: &str| step[key].as_str().unwrap_or_default();
        match word("do") {
            "update" => {
                let text = ToolResult::text(fill(word("text"), &arguments));
                call.progress.update(ToolResult { details: Some(json!({})), ..text }).await;
            }
            "waitGate" => {
                standing.open(&call.id);
                gates.wait(word("gate")).await;
            }
            "waitAbort" => {
                standing.open(&call.id);
                call.cancel.cancelled().await;
            }
            "openGate" => gates.open(word("gate")),
            "call" => {
                let result = call.call_tool(word("tool"), step["arguments"].clone()).await;
                arguments["=nested"] = super::short::text(&Value::Array(result.content), None).into();
            }
            "throw" => return Err(ToolError::new(fill(word("message"), &arguments))),
            "reply" => return Ok(reply(&step, &arguments)),
            other => return Err(ToolError::new(format!("unknown behaviour {other}"))),
        }
    }
    Ok(ToolResult { details: Some(json!({})), ..ToolResult::default() })
}

fn reply(step: &Value, arguments: &Value) -> ToolResult {
    let content = match step.get("content").and_then(Value::as_array) {
        Some(content) => content.clone(),
        None => ToolResult::text(fill(step["text"].as_str().unwrap_or_default(), arguments)).content,
    };
    let usage = step.get("usage").and_then(|usage| serde_json::from_value::<ShortUsage>(usage.clone()).ok());
    ToolResult {
        content,
        details: Some(step.get("details").cloned().unwrap_or(json!({}))),
        usage: usage.map(|usage| usage.usage().to_value()),
        is_error: step["isError"] == true,
        terminate: step["terminate"] == true,
        ..ToolResult::default()
    }
}

/// What the tool was given, without what it found out.
fn given(arguments: &Value) -> String {
    let mut given = arguments.clone();
    given.as_object_mut().and_then(|given| given.remove("=nested"));
    given.to_string()
}

/// `{NAME}` is an argument, `{*}` all of them, `{=nested}` the text of the last call of another tool.
fn fill(text: &str, arguments: &Value) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, name, after)) = rest.split_once('{').and_then(|(before, tail)| {
        let (name, after) = tail.split_once('}')?;
        Some((before, name, after))
    }) {
        out.push_str(before);
        match (name, arguments.get(name)) {
            ("*", _) => out.push_str(&given(arguments)),
            (_, Some(Value::String(text))) => out.push_str(text),
            (_, None | Some(Value::Null)) => {}
            (_, Some(value)) => out.push_str(&value.to_string()),
        }
        rest = after;
    }
    out + rest
}
