//! What a session differed in from pi 1.6.0 until both played the same generated scenarios (tests/interop/tests/loop).

#[path = "session_support/mod.rs"]
mod support;

use std::sync::Arc;

use branchline::providers::scripted::Gates;
use branchline::resources::settings::Settings;
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult};
use branchline::{PromptOptions, Session, SubscribeOptions, block_on};
use serde_json::{Value, json};
use support::*;

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn calls(names: &[&str]) -> Value {
    let calls = names.iter().map(|name| json!({"type": "toolCall", "id": *name, "name": *name, "arguments": {}}));
    json!({"content": calls.collect::<Vec<Value>>()})
}

fn users(messages: &[Arc<branchline::message::Message>]) -> Vec<String> {
    messages.iter().filter(|message| message.role().name() == "user").map(|message| message.text("")).collect()
}

type Act = dyn Fn(&ToolCall) -> Result<ToolResult, ToolError> + Send + Sync;

/// A tool that opens the gate `here`, waits for the gate `go`, and then does something.
struct Told {
    definition: ToolDefinition,
    gates: Gates,
    act: Arc<Act>,
}

impl Told {
    fn new(
        name: &str,
        gates: &Gates,
        act: impl Fn(&ToolCall) -> Result<ToolResult, ToolError> + Send + Sync + 'static,
    ) -> Arc<Told> {
        let definition = ToolDefinition::new(name, "d", json!({"type": "object"}));
        Arc::new(Told { definition, gates: gates.clone(), act: Arc::new(act) })
    }
}

impl Tool for Told {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        let (gates, act) = (self.gates.clone(), self.act.clone());
        Box::pin(async move {
            gates.open("here");
            gates.wait("go").await;
            act(&call)
        })
    }
}

fn run(session: &Session, prompt: &str) {
    block_on(block_on(session.prompt(prompt, PromptOptions::default())).unwrap().result()).unwrap();
}

/// S228 with S232: the turn that closes an aborted batch of tools begins like any other.
#[test]
fn an_abort_while_tools_run_delivers_what_steers() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let gates = Gates::default();
    let tool = Told::new("slow", &gates, |_| Ok(ToolResult::text("done")));
    let script = json!([calls(&["slow"]), text("after")]);
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| options.custom_tool(tool));
    let running = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(gates.wait("here"));
    block_on(session.steer("one")).unwrap();
    block_on(session.steer("two")).unwrap();
    block_on(session.follow_up("later")).unwrap();
    let aborting = session.abort();
    gates.open("go");
    block_on(aborting).unwrap();
    assert!(block_on(running.result()).unwrap().aborted);
    let state = session.state();
    assert_eq!((state.steering, state.follow_up), (vec!["two".to_owned()], vec!["later".to_owned()]));
    let entries = session.tree().entries().flatten().filter_map(|entry| entry.message());
    let said: Vec<String> = entries.map(|message| format!("{} {}", message.role().name(), message.text(""))).collect();
    assert_eq!(said[1..], ["user go", "assistant ", "toolResult done", "user one", "assistant "]);
    run(&session, "next");
    assert_eq!(users(&control.requests().pop().unwrap().messages)[..4], ["go", "one", "next", "two"]);
}

/// S237: what a failed recovery left without an answer is answered before what follows up.
#[test]
fn a_prompt_without_an_answer_goes_before_follow_ups() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let too_long = json!({"immediateError": "prompt is too long: 9 tokens > 8 maximum"});
    let script = json!([{"content": [{"type": "text", "text": "x"}], "waitGate": "go"}, too_long, text("none"), text("answer"), text("last")]);
    let keep = json!({"compaction": {"keepRecentTokens": 100_000}});
    let settings = Settings::from_values(keep.as_object().unwrap().clone());
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| options.settings(settings));
    run_steered(&session, &control);
    let asked: Vec<Vec<String>> = control.requests().iter().map(|request| users(&request.messages)).collect();
    assert_eq!(asked[1], ["go", "steered"]);
    assert_eq!(asked[2], ["go", "steered"], "the request that failed is made again, without the follow-up");
    assert_eq!(asked[3], ["go", "steered", "later"]);
}

fn run_steered(session: &Session, control: &branchline::providers::scripted::ScriptControl) {
    let running = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    block_on(session.steer("steered")).unwrap();
    block_on(session.follow_up("later")).unwrap();
    control.gates().open("go");
    block_on(running.result()).unwrap();
}

/// S303: tools that stay keep their places.
#[test]
fn tools_that_stay_keep_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([text("a"), text("b")]);
    let (session, control) =
        scripted_with(&engine, dir.path(), script, |options| options.tools(["read", "bash", "ls"]));
    let set =
        |names: &[&str]| block_on(session.set_tools(names.iter().map(|name| (*name).to_owned()).collect())).unwrap();
    set(&["write", "ls", "read"]);
    assert_eq!(session.state().tools, ["read", "ls", "write"]);
    run(&session, "go");
    let first = control.requests()[0].messages[0].get("toolsAdded").unwrap().clone();
    let names: Vec<&str> = first.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["read", "ls", "write"]);
}

/// S303: what is chosen while the model speaks holds from the next turn on.
#[test]
fn a_response_may_call_what_it_was_offered() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let gates = Gates::default();
    gates.open("go");
    let tool = Told::new("mine", &gates, |_| Ok(ToolResult::text("done")));
    let mut first = calls(&["mine"]);
    first["waitGate"] = "on".into();
    let script = json!([first, calls(&["mine"]), text("well")]);
    let (session, control) =
        scripted_with(&engine, dir.path(), script, |options| options.custom_tool(tool).tools(["mine", "ls"]));
    let running = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    block_on(session.set_tools(vec!["ls".to_owned()])).unwrap();
    control.gates().open("on");
    block_on(running.result()).unwrap();
    let entries = session.tree().entries().flatten().filter_map(|entry| entry.message());
    let results = entries.filter(|message| message.role().name() == "toolResult");
    let results: Vec<String> = results.map(|message| message.text("")).collect();
    assert_eq!(results, ["done", "Tool mine not found"]);
}

/// R116: the result in an event says what the tool said of itself; an error that was thrown has no result of its own.
#[test]
fn a_result_that_says_it_failed_says_so_in_its_event() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let gates = Gates::default();
    gates.open("go");
    let sorry = ToolResult { is_error: true, details: Some(json!({})), ..ToolResult::text("no") };
    let sorry = Told::new("sorry", &gates, move |_| Ok(sorry.clone()));
    let broken = Told::new("broken", &gates, |_| Err(ToolError::new("no")));
    let script = json!([calls(&["sorry", "broken", "absent"]), text("well")]);
    let (session, _) =
        scripted_with(&engine, dir.path(), script, |options| options.custom_tool(sorry).custom_tool(broken));
    let events = session.subscribe(SubscribeOptions::default());
    run(&session, "go");
    let told = until_settled(&events);
    let told = told.iter().map(|event| serde_json::from_str::<Value>(&event.to_json()).unwrap());
    let ends: Vec<Value> = told.filter(|event| event["type"] == "tool_execution_end").collect();
    let result = |name: &str| ends.iter().find(|event| event["toolName"] == name).unwrap()["result"].clone();
    let content = json!([{"type": "text", "text": "no"}]);
    assert_eq!(result("sorry"), json!({"content": content, "details": {}, "isError": true}));
    assert_eq!(result("broken"), json!({"content": content, "details": {}}));
    assert_eq!(result("absent").get("isError"), None);
    assert!(ends.iter().all(|event| event["isError"] == true));
}

/// S276: a summary without a word is none, so the next one is no update of it.
#[test]
fn an_empty_summary_is_no_previous_summary() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([text("a"), text("b"), {"content": []}, text("c"), text("d"), text("sum"), text("e"), text("f"), text("more")]);
    let keep = json!({"compaction": {"keepRecentTokens": 3}});
    let settings = Settings::from_values(keep.as_object().unwrap().clone());
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| options.settings(settings));
    let mut asked = Vec::new();
    for _ in 0..3 {
        run(&session, "one");
        run(&session, "the second of both");
        block_on(session.compact(None)).unwrap();
        asked
            .push(control.requests().pop().unwrap().messages.last().unwrap().text("").contains("<previous-summary>\n"));
    }
    assert_eq!(asked, [false, false, true]);
}

/// S206, S229: what steers is taken when a run begins, also when an abort ends it there.
#[test]
fn an_abort_before_the_run_begins_keeps_to_the_order() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let full = json!({"content": [{"type": "text", "text": "a"}], "usage": {"input": 127_000, "output": 10}});
    let script =
        json!([{"hang": true, "content": full["content"], "usage": full["usage"]}, {"hang": true}, text("next")]);
    let keep = json!({"compaction": {"keepRecentTokens": 1}});
    let settings = Settings::from_values(keep.as_object().unwrap().clone());
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| options.settings(settings));
    let first = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    block_on(session.abort()).unwrap();
    block_on(first.result()).unwrap();
    let second = block_on(session.prompt("on", PromptOptions::default())).unwrap();
    // The request for the summary that makes room.
    block_on(control.reached(1));
    block_on(session.steer("wait")).unwrap();
    block_on(session.abort()).unwrap();
    assert!(block_on(second.result()).unwrap().aborted);
    let entries = session.tree().entries().flatten().filter_map(|entry| entry.message());
    let said: Vec<String> = entries.map(|message| format!("{} {}", message.role().name(), message.text(""))).collect();
    assert_eq!(said[1..], ["user go", "assistant a", "user on", "user wait", "assistant "]);
    assert!(session.state().steering.is_empty());
}

/// S245 with S236: who cancels only the wait for another try goes on with what is queued.
#[test]
fn a_cancelled_wait_goes_on_with_what_is_queued() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([{"immediateError": "overloaded"}, text("answer")]);
    let slow = json!({"retry": {"baseDelayMs": 60_000, "maxAgentDelayMs": 60_000}});
    let settings = Settings::from_values(slow.as_object().unwrap().clone());
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| options.settings(settings));
    let running = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    while running.events().next_timeout(std::time::Duration::from_secs(20)).unwrap().unwrap().type_name()
        != "auto_retry_start"
    {}
    running.events().discard();
    block_on(session.steer("instead")).unwrap();
    session.abort_retry();
    let result = block_on(running.result()).unwrap();
    assert_eq!((result.text.as_str(), result.aborted), ("answer", false));
    assert_eq!(users(&control.requests().pop().unwrap().messages), ["go", "instead"]);
}

/// Both requests of a compaction are made as it began.
#[test]
fn a_compaction_is_made_by_one_model_at_one_level() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let sum = |text: &str| json!({"content": [{"type": "text", "text": text}], "waitGate": text});
    let script = json!([text("a"), text("b"), sum("first"), sum("second")]);
    let keep = json!({"compaction": {"keepRecentTokens": 1}});
    let settings = Settings::from_values(keep.as_object().unwrap().clone());
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| options.settings(settings));
    run(&session, "one");
    run(&session, "two");
    let compacting = {
        let session = session.clone();
        std::thread::spawn(move || block_on(session.compact(None)).unwrap())
    };
    block_on(control.reached(2));
    block_on(session.set_thinking_level("high")).unwrap();
    control.gates().open("first");
    control.gates().open("second");
    assert!(compacting.join().unwrap().summary.ends_with("second"));
    let levels: Vec<String> = control.requests().into_iter().map(|request| request.thinking_level).collect();
    assert_eq!(levels[2..], ["off", "off"]);
    assert_eq!(session.state().thinking_level, "high");
}
