//! Aborting at every point of a run (S226–S230): it settles soon, everything said is stored, every call has a result.

#[path = "session_support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use branchline::{EventKind, PromptOptions, SubscribeOptions, WhenRunning, block_on};
use serde_json::{Value, json};
use support::*;

/// Roles and stop reasons of the stored messages.
fn stored(path: &std::path::Path) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = lines(path);
    let messages = lines.iter().filter_map(|line| line.get("message"));
    messages
        .map(|message| format!("{} {}", word(&message["role"]), word(&message["stopReason"])).trim_end().to_owned())
        .collect()
}

#[test]
fn while_the_model_speaks() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([{"content": [{"type": "text", "text": "partial"}], "hang": true}, {"content": [{"type": "text", "text": "fine"}]}]);
    let (session, control) = scripted(&engine, dir.path(), script);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    // Two at once: the second finds the same activity.
    let (first, second) = (session.abort(), session.abort());
    block_on(first).unwrap();
    block_on(second).unwrap();
    let result = block_on(run.result()).unwrap();
    assert!(result.aborted);
    assert_eq!(result.text, "partial");
    assert_eq!(stored(&session.path().unwrap()), ["system", "user", "assistant aborted"]);

    let run = block_on(session.prompt("again", PromptOptions::default())).unwrap();
    let result = block_on(run.result()).unwrap();
    assert_eq!((result.text.as_str(), result.aborted), ("fine", false));
}

#[test]
fn between_deltas_what_arrived_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let text = "word ".repeat(2000);
    let script = json!([{"content": [{"type": "text", "text": text}], "chunk": 5, "chunkDelayMs": 1}]);
    let (session, _) = scripted(&engine, dir.path(), script);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    while block_on(run.next()).is_some_and(|event| event.text_delta().is_none()) {}
    block_on(session.abort()).unwrap();
    let result = block_on(run.result()).unwrap();
    assert!(result.aborted && !result.text.is_empty() && result.text.len() < text.len());
    assert!(text.starts_with(&result.text));
}

#[test]
fn while_tools_run_every_call_gets_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let call = |id: &str, command: &str| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": command}});
    let script = json!([{"content": [call("c1", "echo one; sleep 600"), call("c2", "sleep 600")]}]);
    let (session, _) = scripted_with(&engine, dir.path(), script, |options| options.tools(["bash"]));
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let mut started = 0;
    while started < 2 {
        let event = run.events().next_timeout(Duration::from_secs(10)).unwrap().unwrap();
        started += usize::from(matches!(event.kind(), EventKind::ToolExecutionUpdate { .. }));
    }
    let begun = Instant::now();
    block_on(session.abort()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(
        stored(&session.path().unwrap()),
        ["system", "user", "assistant toolUse", "toolResult", "toolResult", "assistant aborted"]
    );
    let lines = lines(&session.path().unwrap());
    let results: Vec<&Value> =
        lines.iter().filter_map(|line| line.get("message")).filter(|message| message["role"] == "toolResult").collect();
    assert_eq!((&results[0]["toolCallId"], &results[1]["toolCallId"]), (&json!("c1"), &json!("c2")));
    assert!(results.iter().all(|message| message["isError"] == true));
    assert!(results[1]["content"][0]["text"].as_str().unwrap().contains("Command aborted"));
}

#[test]
fn a_queue_survives_an_abort_and_goes_with_the_next_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([{"hang": true}, {"content": [{"type": "text", "text": "both"}]}]);
    let (session, control) = scripted(&engine, dir.path(), script);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    let refused = block_on(session.prompt("no", PromptOptions::default()));
    assert_eq!(refused.err().map(|error| error.code().name()), Some("running"));
    let steer = PromptOptions::default().when_running(WhenRunning::Steer);
    let joined = block_on(session.prompt("steer me", steer)).unwrap();
    block_on(session.abort()).unwrap();
    assert!(block_on(run.result()).unwrap().aborted && block_on(joined.result()).unwrap().aborted);
    assert_eq!(session.state().steering, ["steer me"]);
    block_on(block_on(session.prompt("next", PromptOptions::default())).unwrap().result()).unwrap();
    let last = control.requests().pop().unwrap();
    let texts: Vec<String> = last.messages.iter().filter(|m| m.role().name() == "user").map(|m| m.text("")).collect();
    assert_eq!(texts, ["go", "next", "steer me"]);
    assert!(session.state().steering.is_empty());
}

/// The thread that aborts is the one that should read: the abort must not wait for room in its own queue.
#[test]
fn while_the_session_waits_for_a_slow_subscriber() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([{"content": [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "hang": true}]);
    let (session, _) = scripted(&engine, dir.path(), script);
    let events = session.subscribe(SubscribeOptions::default().capacity(2));
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(session.state().phase, branchline::Phase::Running);
    block_on(session.steer("served while it waits")).unwrap();
    block_on(session.abort()).unwrap();
    assert!(block_on(run.result()).unwrap().aborted);
    let all = until_settled(&events);
    assert_eq!(all.last().map(shape).unwrap(), "agent_settled true");
}

#[test]
fn an_idle_session_has_nothing_to_abort() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, _) = scripted(&engine, dir.path(), json!([{"content": [{"type": "text", "text": "fine"}]}]));
    block_on(session.abort()).unwrap();
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    assert!(!block_on(run.result()).unwrap().aborted);
}

/// A tool that ignores the signal is given up after the grace.
#[test]
fn a_deaf_tool_does_not_hold_the_session() {
    use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolFuture};
    struct Deaf(ToolDefinition);
    impl Tool for Deaf {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }
        fn execute(&self, call: ToolCall) -> ToolFuture {
            call.progress.offer(Default::default());
            Box::pin(std::future::pending())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([{"content": [{"type": "toolCall", "id": "c1", "name": "deaf", "arguments": {}}]}]);
    let deaf = std::sync::Arc::new(Deaf(ToolDefinition::new("deaf", "never ends", json!({"type": "object"}))));
    let (session, _) = scripted_with(&engine, dir.path(), script, |options| options.custom_tool(deaf));
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    loop {
        let event = block_on(run.next()).unwrap();
        if matches!(event.kind(), EventKind::ToolExecutionUpdate { .. }) {
            break;
        }
    }
    let begun = Instant::now();
    block_on(session.abort()).unwrap();
    assert!((1..6).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    let result = block_on(run.result()).unwrap();
    assert!(result.messages.iter().any(|message| message.text("") == "Operation aborted"));
}
