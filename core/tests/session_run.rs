//! Whole prompts against scripted models: order of events, stored entries, key orders (S205, S209, S284–S302).

#[path = "session_support/mod.rs"]
mod support;

use std::sync::Arc;

use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult};
use branchline::{PromptOptions, SessionOptions, SubscribeOptions, block_on};
use serde_json::json;
use support::*;

/// A tool made of a function.
struct FnTool<F> {
    definition: ToolDefinition,
    run: F,
}

impl<F> Tool for FnTool<F>
where
    F: Fn(ToolCall) -> ToolFuture + Send + Sync,
{
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        (self.run)(call)
    }
}

fn tool(name: &str, run: impl Fn(ToolCall) -> ToolFuture + Send + Sync + 'static) -> Arc<dyn Tool> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": []});
    Arc::new(FnTool { definition: ToolDefinition::new(name, format!("made-up {name}"), schema), run })
}

fn echo() -> Arc<dyn Tool> {
    tool("echo", |call| {
        Box::pin(async move {
            let text = format!("echo {}", call.arguments["n"]);
            Ok::<_, ToolError>(ToolResult { details: Some(json!({})), ..ToolResult::text(text) })
        })
    })
}

/// Trace t02: one tool call, then an answer.
/// A file keeps for ever what is appended.
#[test]
fn images_are_checked_before_they_are_stored() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, _) = scripted(&engine, dir.path(), json!([{"content": [{"type": "text", "text": "yes"}]}]));
    let good = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    let without = |key: &str| {
        let mut image = good.clone();
        image.as_object_mut().unwrap().remove(key);
        image
    };
    let mut url = good.clone();
    url["data"] = "data:image/png;base64,AAAA".into();
    for bad in [json!(5), json!(null), json!("abc"), without("type"), without("data"), without("mimeType"), url] {
        let options = PromptOptions::default().images(vec![good.clone(), bad.clone()]);
        let error = block_on(session.prompt("look", options)).err().unwrap_or_else(|| panic!("{bad}"));
        assert_eq!(error.code().name(), "invalid_argument", "{bad}");
        assert!(error.message().starts_with("image 1 "), "{error}");
    }
    block_on(session.run("look", PromptOptions::default().images(vec![good]))).unwrap();
}

#[test]
fn a_run_in_one_call() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, _) = scripted(&engine, dir.path(), json!([{"content": [{"type": "text", "text": "yes"}]}]));
    let events = session.subscribe(SubscribeOptions::default());
    let result = block_on(session.run("well?", PromptOptions::default())).unwrap();
    assert_eq!((result.text.as_str(), result.leaf), ("yes", session.leaf()));
    assert_eq!(shapes(&until_settled(&events)).last().map(String::as_str), Some("agent_settled false"));
    block_on(session.close()).unwrap();
    let refused = block_on(session.run("and?", PromptOptions::default())).unwrap_err();
    assert_eq!(refused.code().name(), "closed");
}

#[test]
fn one_tool_call_then_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([
        {"content": [{"type": "text", "text": "calling"}, {"type": "toolCall", "id": "c1", "name": "echo", "arguments": {"n": 1}}]},
        {"content": [{"type": "text", "text": "done"}]}
    ]);
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| {
        options.custom_tool(echo()).tools(["echo"]).system_prompt("Scripted prompt.")
    });
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let events = until_settled(run.events());
    let expected = [
        "agent_start",
        "turn_start",
        "message_start system",
        "message_end system",
        "message_start user",
        "message_end user",
        "message_start assistant pending",
        "message_update text_start",
        "message_update text_delta",
        "message_update text_end",
        "message_update toolcall_start",
        "message_update toolcall_delta",
        "message_update toolcall_end",
        "message_end assistant toolUse",
        "tool_execution_start c1",
        "tool_execution_end c1 false",
        "message_start toolResult",
        "message_end toolResult",
        "turn_end 1",
        "turn_start",
        "message_start assistant pending",
        "message_update text_start",
        "message_update text_delta",
        "message_update text_end",
        "message_end assistant stop",
        "turn_end 0",
        "agent_end system,user,assistant,toolResult,assistant",
        "agent_settled false",
    ];
    assert_eq!(shapes(&events), expected);
    let sequences: Vec<u64> = events.iter().map(|event| event.sequence()).collect();
    assert!(sequences.windows(2).all(|pair| pair[1] == pair[0] + 1), "{sequences:?}");

    let result = block_on(run.result()).unwrap();
    assert_eq!((result.text.as_str(), result.aborted, result.usage.total_tokens), ("done", false, 220));
    assert_eq!(result.leaf, session.leaf());

    let requests = control.requests();
    let roles: Vec<Vec<&str>> =
        requests.iter().map(|request| request.messages.iter().map(|message| message.role().name()).collect()).collect();
    assert_eq!(roles, [vec!["system", "user"], vec!["system", "user", "assistant", "toolResult"]]);

    let lines = lines(&session.path().unwrap());
    let found: Vec<String> = lines[1..]
        .iter()
        .map(|line| match line.get("message") {
            Some(message) => format!("{} | {}", keys(line), keys(message)),
            None => keys(line),
        })
        .collect();
    let message = |keys: &str| format!("type,id,parentId,timestamp,message | {keys}");
    let assistant = "role,content,api,provider,model,usage,stopReason,timestamp,durationMs,thinkingLevel";
    let expected = [
        "type,id,parentId,timestamp,provider,modelId".to_owned(),
        "type,id,parentId,timestamp,thinkingLevel".to_owned(),
        message("role,content,sections,timestamp,toolsAdded"),
        message("role,content,timestamp"),
        message(assistant),
        message("role,toolCallId,toolName,content,details,isError,durationMs,timestamp"),
        message(assistant),
    ];
    assert_eq!(found, expected);
    assert_eq!(keys(&lines[3]["message"]["sections"]), "preamble,cwd");
    for pair in lines[1..].windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
    }
}

/// Trace t03: two calls run beside each other; ends come as they finish, results in the order of the calls.
#[test]
fn two_tools_run_together() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let call = |id: &str, name: &str| json!({"type": "toolCall", "id": id, "name": name, "arguments": {}});
    let script =
        json!([{"content": [call("c1", "slow"), call("c2", "fast")]}, {"content": [{"type": "text", "text": "done"}]}]);
    let gates = branchline::providers::scripted::Gates::default();
    let gate = gates.clone();
    let slow = tool("slow", move |_| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.wait("g").await;
            Ok(ToolResult::text("slow"))
        })
    });
    let fast = tool("fast", |call| {
        Box::pin(async move {
            call.progress.update(ToolResult::text("half")).await;
            Ok(ToolResult::text("fast"))
        })
    });
    let (session, _) = scripted_with(&engine, dir.path(), script, |options| {
        options.custom_tool(slow).custom_tool(fast).tools(["slow", "fast"])
    });
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let mut words = Vec::new();
    for event in until_settled_with(run.events(), |word| {
        if word == "tool_execution_end c2 false" {
            gates.open("g");
        }
    }) {
        words.push(shape(&event));
    }
    let start = words.iter().position(|word| word == "message_end assistant toolUse").unwrap();
    let expected = [
        "tool_execution_start c1",
        "tool_execution_start c2",
        "tool_execution_update c2",
        "tool_execution_end c2 false",
        "tool_execution_end c1 false",
        "message_start toolResult",
        "message_end toolResult",
        "message_start toolResult",
        "message_end toolResult",
        "turn_end 2",
    ];
    assert_eq!(words[start + 1..start + 1 + expected.len()], expected);
    let lines = lines(&session.path().unwrap());
    let results: Vec<&str> = lines.iter().filter_map(|line| line["message"]["toolCallId"].as_str()).collect();
    assert_eq!(results, ["c1", "c2"]);
}

/// The model every engine has needs no script and looks around with the built-in tools.
#[test]
fn the_demo_model_uses_the_built_in_tools() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("notes.txt"), "first\nsecond\n").unwrap();
    let engine = engine(dir.path());
    let options = SessionOptions::new(dir.path()).model("scripted/demo").in_memory(true);
    let session = block_on(engine.create_session(options)).unwrap();
    for _ in 0..2 {
        let run = block_on(session.prompt("What is here?", PromptOptions::default())).unwrap();
        let result = block_on(run.result()).unwrap();
        let results: Vec<String> = result
            .messages
            .iter()
            .filter(|message| message.role().name() == "toolResult")
            .map(|message| message.text(""))
            .collect();
        assert_eq!(results.len(), 2, "{results:?}");
        assert!(results[0].contains("notes.txt"), "{results:?}");
        assert_eq!(results[1], "first\nsecond\n");
        assert!(result.text.contains("demo model"));
    }
}
