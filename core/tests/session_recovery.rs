//! What a session does by itself when requests fail or the context fills up (S242–S279), and what hosts put into it:
//! shell runs, custom messages, edits, hooks. The corpus of traces has the details; these are the promises to hosts.

#[path = "session_support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use branchline::agent::{Decision, HookFuture, HookedCall, ResultChange, ToolHook};
use branchline::message::BashExecution;
use branchline::resources::settings::Settings;
use branchline::tools::ToolResult;
use branchline::{
    CustomMessage, Delivery, Engine, EngineOptions, Phase, PromptOptions, Session, SessionOptions, SubscribeOptions,
    block_on,
};
use serde_json::{Value, json};
use support::*;

fn settings(value: Value) -> Settings {
    Settings::from_values(value.as_object().unwrap().clone())
}

fn say(session: &Session, text: &str) -> branchline::RunResult {
    block_on(block_on(session.prompt(text, PromptOptions::default())).unwrap().result()).unwrap()
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

fn types(session: &Session) -> Vec<String> {
    session.tree().entries().map(|entry| entry.unwrap().type_name().to_string()).collect()
}

#[test]
fn a_failed_request_is_repeated_and_the_failure_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([{"immediateError": "overloaded"}, {"throw": "connection lost"}, text("done"), text("more")]);
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| {
        options.settings(settings(json!({"retry": {"baseDelayMs": 1}})))
    });
    let events = session.subscribe(SubscribeOptions::default());
    let result = say(&session, "go");
    assert_eq!((result.text.as_str(), result.error_message), ("done", None));
    let told: Vec<Value> =
        until_settled(&events).iter().map(|event| serde_json::from_str(&event.to_json()).unwrap()).collect();
    let of = |name: &str| told.iter().filter(|event| event["type"] == name).cloned().collect::<Vec<Value>>();
    let willing: Vec<bool> = of("agent_end").iter().map(|event| event["willRetry"] == true).collect();
    assert_eq!(willing, [true, true, false]);
    assert_eq!(
        of("auto_retry_start")[1],
        json!({"type": "auto_retry_start", "attempt": 2, "maxAttempts": 3, "delayMs": 2, "errorMessage": "connection lost"})
    );
    assert_eq!(of("auto_retry_end"), [json!({"type": "auto_retry_end", "success": true, "attempt": 2})]);
    assert_eq!(of("entry_appended").len(), 2);
    say(&session, "next");
    let roles: Vec<_> = control.requests().pop().unwrap().messages.iter().map(|it| it.role().name()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"], "the failures are in the file and not in requests");
}

#[test]
fn a_wait_for_a_retry_ends_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!({"script": [{"immediateError": "overloaded"}], "atEnd": "repeatLast"});
    let (session, _) = scripted_with(&engine, dir.path(), script, |options| {
        options.settings(settings(json!({"retry": {"baseDelayMs": 60000}})))
    });
    let begun = Instant::now();
    for alone in [true, false] {
        let events = session.subscribe(SubscribeOptions::default());
        let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
        while events.next_timeout(Duration::from_secs(20)).unwrap().unwrap().type_name() != "entry_appended" {}
        assert_eq!(session.state().phase, Phase::Retrying);
        assert!(session.state().running);
        session.abort_summary(); // is not what runs
        match alone {
            true => session.abort_retry(),
            false => block_on(session.abort()).unwrap(),
        }
        let result = block_on(run.result()).unwrap();
        assert_eq!(result.aborted, !alone);
        let words: Vec<String> = until_settled(&events).iter().map(|event| event.type_name().to_owned()).collect();
        assert_eq!(words, ["auto_retry_end", "agent_settled"]);
    }
    // Closing does not wait either.
    let events = session.subscribe(SubscribeOptions::default());
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    while events.next_timeout(Duration::from_secs(20)).unwrap().unwrap().type_name() != "entry_appended" {}
    block_on(session.close()).unwrap();
    assert!(block_on(run.result()).unwrap().aborted);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// Whoever hears that a compaction begins may cancel it at once.
#[test]
fn a_compaction_can_be_cancelled_from_its_first_event() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let long = "word ".repeat(40);
    let script = json!([text(&long), text(&long), {"content": [], "hang": true}]);
    let (session, _) = scripted_with(&engine, dir.path(), script, |options| {
        options.settings(settings(json!({"compaction": {"keepRecentTokens": 52}})))
    });
    say(&session, "first question");
    say(&session, "second question");
    // One event fits: the compaction waits in the middle of telling that it began.
    let events = session.subscribe(SubscribeOptions::default().capacity(1));
    let theirs = session.clone();
    let compacting = std::thread::spawn(move || block_on(theirs.compact(None)));
    assert_eq!(block_on(events.next()).unwrap().type_name(), "compaction_start");
    session.abort_summary();
    assert_eq!(block_on(events.next()).unwrap().type_name(), "compaction_end");
    assert_eq!(compacting.join().unwrap().unwrap_err().code().name(), "cancelled");
}

#[test]
fn compacting_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let long = "word ".repeat(40);
    let script = json!([text(&long), text(&long), {"content": [{"type": "text", "text": "S"}], "waitGate": "g"},
        text("SUMMARY"), text("after")]);
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| {
        options.settings(settings(json!({"compaction": {"keepRecentTokens": 52}})))
    });
    assert_eq!(block_on(session.compact(None)).unwrap_err().code().name(), "nothing_to_compact");
    say(&session, "first question");
    say(&session, "second question");
    let mut before = types(&session);

    // Aborted: nothing is stored. Meanwhile the session is not free, and commands are served.
    let theirs = session.clone();
    let compacting = std::thread::spawn(move || block_on(theirs.compact(None)));
    block_on(control.reached(2));
    assert_eq!(session.state().phase, Phase::Compacting);
    for refused in [
        block_on(session.prompt("no", PromptOptions::default())).err(),
        block_on(session.compact(None)).err(),
        block_on(session.navigate("x", Default::default())).err(),
    ] {
        assert_eq!(refused.unwrap().code().name(), "compacting");
    }
    let shell = BashExecution { command: "ls".into(), ..Default::default() };
    assert!(block_on(session.record_bash(shell)).unwrap().is_some(), "nothing runs that it could disturb");
    before.push("message".into());
    session.abort_summary();
    assert_eq!(compacting.join().unwrap().unwrap_err().code().name(), "cancelled");
    assert_eq!(types(&session), before);

    let made = block_on(session.compact(Some("tea"))).unwrap();
    assert_eq!(made.summary, "SUMMARY");
    assert_eq!(made.tokens_before, 111, "what the last response reported, and the shell run");
    let entry = session.tree().entry(&made.entry_id).unwrap().unwrap().value();
    assert_eq!((&entry["summary"], &entry["firstKeptEntryId"]), (&json!("SUMMARY"), &json!(made.first_kept_entry_id)));
    let asked = control.requests().pop().unwrap().messages[1].text("");
    assert!(asked.contains("first question") && !asked.contains("second question"));
    assert!(asked.ends_with("\n\nAdditional focus: tea"));
    assert_eq!(block_on(session.compact(None)).unwrap_err().code().name(), "already_compacted");
    assert_eq!(block_on(session.context_usage()).unwrap().tokens, None, "unknown until the next response");

    say(&session, "third question");
    let sent = control.requests().pop().unwrap();
    let texts: Vec<String> = sent.messages.iter().map(|message| message.text("")).collect();
    assert!(texts[1].contains("SUMMARY") && texts[2].contains("second question"), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("first question")));
    let stats = block_on(session.stats()).unwrap();
    assert_eq!((stats.user_messages, stats.assistant_messages), (3, 3));
    let offered = block_on(session.fork_messages()).unwrap();
    let offered: Vec<&str> = offered.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(offered, ["first question", "second question", "third question"]);
}

/// A model with a window of 2000 tokens.
fn small(
    engine: &Engine,
    dir: &std::path::Path,
    script: Value,
    settings: Settings,
) -> (Session, branchline::providers::scripted::ScriptControl) {
    use branchline::providers::Model;
    use branchline::providers::scripted::{Script, ScriptedProvider};
    let script = Script::from_value(script).unwrap().with_chunk(0);
    let control = script.control();
    control.record();
    let provider = ScriptedProvider::new("small");
    let model = Model { context_window: 2000, max_tokens: 100, ..Model::new("small", "m", "scripted") };
    provider.add([model], &script);
    engine.add_provider(Arc::new(provider));
    let options = SessionOptions::new(dir).session_dir(dir.join("sessions")).model("small/m").settings(settings);
    (block_on(engine.create_session(options)).unwrap(), control)
}

#[test]
fn the_context_never_outgrows_the_window() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let long = "word ".repeat(100);
    let full = json!({"content": [{"type": "text", "text": long}], "usage": {"input": 1900, "output": 100}});
    let script = json!([text(&long), full, text("SUMMARY"), text("PREFIX"), {"immediateError": "prompt is too long: 3 > 2"},
        text("AGAIN"), text("PREFIX"), text("fits")]);
    let keep = settings(json!({"compaction": {"reserveTokens": 100, "keepRecentTokens": 50}}));
    let (session, _) = small(&engine, dir.path(), script, keep);
    say(&session, "one");
    say(&session, "two"); // fills the window
    let count = |session: &Session| types(session).iter().filter(|name| *name == "compaction").count();
    assert_eq!(count(&session), 1);
    assert_eq!(say(&session, &"three ".repeat(40)).text, "fits", "the request that did not fit was made again");
    assert_eq!(count(&session), 2);
}

#[test]
fn wrong_settings_are_said_when_the_session_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = settings(json!({"compaction": {"reserveTokens": -1}}));
    let options = EngineOptions::default().agent_dir(dir.path()).settings(wrong);
    let engine = Engine::new(options).unwrap();
    let make = |options: SessionOptions| block_on(engine.create_session(options.in_memory(true)));
    let error = make(SessionOptions::new(dir.path())).err().unwrap();
    assert_eq!(error.code().name(), "invalid_argument");
    assert!(error.message().contains("compaction.reserveTokens"));
    let for_one = settings(json!({"compaction": {"modelOverrides": {"scripted/demo": {"reserveTokens": "x"}}}}));
    let session = make(SessionOptions::new(dir.path()).settings(for_one)).unwrap();
    assert_eq!(block_on(session.set_model("scripted/demo")).unwrap_err().code().name(), "invalid_argument");
    assert_eq!(session.state().model, None);
    make(SessionOptions::new(dir.path()).settings(Settings::default())).expect("the session's own settings win");
}

#[test]
fn what_hosts_put_in_never_stands_between_call_and_result() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([
        {"content": [{"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "true"}}], "waitGate": "g"},
        text("a1"), text("a2"), text("a3")
    ]);
    let (session, control) = scripted(&engine, dir.path(), script);
    let shell = |command: &str| BashExecution { command: command.into(), output: "x".into(), ..Default::default() };
    let now = block_on(session.record_bash(shell("idle"))).unwrap();
    assert_eq!(now, session.leaf());
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    let custom = |name: &str| CustomMessage::new(name, name).display(false);
    assert_eq!(block_on(session.record_bash(shell("running"))).unwrap(), None);
    assert_eq!(session.state().pending_bash, 1);
    for (name, delivery) in [("next", Delivery::NextTurn), ("steer", Delivery::Steer), ("store", Delivery::Store)] {
        assert_eq!(block_on(session.send_custom_message(custom(name), delivery)).unwrap(), None);
    }
    control.gates().open("g");
    block_on(run.result()).unwrap();
    assert_eq!(session.state().pending_bash, 0);
    let words = |session: &Session| -> Vec<String> {
        let entries = session.tree().entries().map(|entry| entry.unwrap().value());
        let word = |entry: Value| match entry["type"].as_str().unwrap() {
            "custom_message" => entry["customType"].as_str().map(str::to_owned),
            "message" => entry["message"]["role"].as_str().map(str::to_owned),
            _ => None,
        };
        entries.filter_map(word).collect()
    };
    let so_far =
        ["bashExecution", "system", "user", "assistant", "toolResult", "store", "steer", "assistant", "bashExecution"];
    assert_eq!(words(&session), so_far);
    let run = block_on(session.prompt_custom(custom("trigger"), PromptOptions::default())).unwrap();
    assert_eq!(block_on(run.result()).unwrap().text, "a2");
    assert_eq!(words(&session)[so_far.len()..], ["trigger", "next", "assistant"]);
    let bad = CustomMessage::new("bad", 7);
    assert_eq!(
        block_on(session.prompt_custom(bad, PromptOptions::default())).err().unwrap().code().name(),
        "invalid_argument"
    );

    let answer = session.leaf().unwrap();
    block_on(session.edit_context(&answer, json!({"content": "edited"}))).unwrap();
    let refused = block_on(session.edit_context("nope", Value::Null)).unwrap_err();
    assert_eq!(refused.code().name(), "entry_not_found");
    say(&session, "last");
    let sent = control.requests().pop().unwrap();
    let texts: Vec<String> = sent.messages.iter().map(|message| message.text("")).collect();
    assert!(texts.iter().any(|text| text == "edited") && !texts.iter().any(|text| text == "a2"), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("Ran `running`")));
}

struct Guard;

impl ToolHook for Guard {
    fn before<'a>(&'a self, call: &'a mut HookedCall) -> HookFuture<'a, Decision> {
        Box::pin(async {
            match call.arguments["command"].as_str() {
                Some("forbidden") => Ok(Decision::Block { reason: Some("not here".into()), terminate: false }),
                Some("broken") => panic!("a hook may not end the session"),
                _ => {
                    call.arguments.insert("command".into(), "echo changed".into());
                    Ok(Decision::Run)
                }
            }
        })
    }

    fn after<'a>(&'a self, call: &'a HookedCall, result: &'a ToolResult) -> HookFuture<'a, ResultChange> {
        Box::pin(async {
            assert_eq!(call.name, "bash");
            let seen = result.content[0]["text"].as_str().unwrap_or_default().trim().to_owned();
            let content = vec![json!({"type": "text", "text": format!("checked: {seen}")})];
            Ok(ResultChange { content: Some(content), ..Default::default() })
        })
    }
}

#[test]
fn hooks_decide_about_calls_and_results() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let call = |id: &str, command: &str| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": command}});
    let script =
        json!([{"content": [call("c1", "forbidden"), call("c2", "original"), call("c3", "broken")]}, text("done")]);
    let (session, _) = scripted_with(&engine, dir.path(), script, |options| options.tool_hook(Arc::new(Guard)));
    let result = say(&session, "go");
    let results: Vec<_> = result.messages.iter().filter(|message| message.role().name() == "toolResult").collect();
    assert_eq!((results[0].text(""), results[0].get("isError")), ("not here".into(), Some(&json!(true))));
    assert_eq!((results[1].text(""), results[1].get("isError")), ("checked: changed".into(), Some(&json!(false))));
    assert!(results[2].get("isError") == Some(&json!(true)) && results[2].get("durationMs").is_none());
    let stored =
        result.messages.iter().find_map(|message| message.tool_calls().nth(1).map(|call| call.arguments.clone()));
    assert_eq!(stored, Some(json!({"command": "original"})), "the stored call keeps the model's arguments");
}
