//! Faults that agent loops of other programs had, by number.

#[path = "session_support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use branchline::message::{AssistantStart, Message, StopReason};
use branchline::providers::{Model, Provider, Request, ResponseStream, StreamEvent};
use branchline::resources::settings::Settings;
use branchline::{ErrorCode, EventKind, PromptOptions, Session, SessionOptions, block_on};
use serde_json::{Value, json};
use support::*;

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

fn run(session: &Session, prompt: &str) -> Vec<branchline::Event> {
    let run = block_on(session.prompt(prompt, PromptOptions::default())).expect("accepted");
    until_settled(run.events())
}

fn results(events: &[branchline::Event]) -> Vec<(String, String)> {
    let end = |event: &branchline::Event| match event.kind() {
        EventKind::ToolExecutionEnd { id, result, .. } => {
            Some((id.to_string(), result.content[0]["text"].as_str().unwrap_or_default().to_owned()))
        }
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

/// A response that is cut off never acts: not its cut call, and not the complete one before it.
#[test]
fn bug_86_a_cut_call_is_not_executed() {
    let whole = call("c1", "write", json!({"path": "other.txt", "content": "x"}));
    let cut = call("c2", "write", json!({"path": "keep.txt", "content": "fn main() {"}));
    let mut broken = cut.clone();
    broken["argumentsError"] = "unexpected end".into();
    for calls in [vec![cut.clone()], vec![whole.clone(), cut.clone()], vec![broken], vec![whole]] {
        let dir = tempfile::tempdir().unwrap();
        let keep = dir.path().join("keep.txt");
        std::fs::write(&keep, "k".repeat(16 * 1024)).unwrap();
        let engine = engine(dir.path());
        let script =
            json!([{"content": calls, "stop": "length", "usage": {"input": 10, "output": 8192}}, text("I see.")]);
        let (session, control) = scripted(&engine, dir.path(), script);
        let events = run(&session, "go");
        assert_eq!(std::fs::metadata(&keep).unwrap().len(), 16 * 1024);
        assert!(!dir.path().join("other.txt").exists());
        let told = results(&events);
        assert_eq!(told.len(), calls.len());
        assert!(told.iter().all(|(_, text)| text.contains("output limit")), "{told:?}");
        // The model can react.
        assert_eq!(control.requests().len(), 2);
        assert_eq!(control.requests()[1].messages.last().unwrap().get_str("role"), Some("toolResult"));
    }
}

#[test]
fn bug_86_responses_that_are_always_cut_off_come_to_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let cut = json!({"content": [call("c", "write", json!({"path": "x", "content": "y"}))], "stop": "length"});
    let (session, control) = scripted(&engine, dir.path(), json!({"replies": [cut], "atEnd": "loop"}));
    let events = run(&session, "go");
    assert!(control.requests().len() < 10, "{}", control.requests().len());
    let last = events.iter().rev().find(|event| event.type_name() == "turn_end").unwrap();
    assert_eq!(last.message().unwrap().stop_reason(), Some(StopReason::Length));
    assert!(!dir.path().join("x").exists());
    // Something that waits is still delivered.
    block_on(session.steer("shorter, please")).unwrap();
    run(&session, "again");
    assert!(control.requests().last().unwrap().messages.iter().any(|it| it.text("") == "shorter, please"));
}

/// A cut response is another outcome than a whole one, for the host, the file and the model.
#[test]
fn bug_87_a_truncated_response_can_be_told() {
    let streams = [
        json!([{"type": "text", "text": "writing the file"}, call("c1", "write", json!({"path": "f"}))]),
        json!([{"type": "text", "text": "half a sen"}]),
        json!([]),
    ];
    for content in streams {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let output = content.as_array().unwrap().len() * 10;
        let script =
            json!([{"content": content, "stop": "length", "usage": {"input": 5, "output": output}}, text("ok")]);
        let (session, _) = scripted(&engine, dir.path(), script);
        let events = run(&session, "go");
        let turn = events.iter().find(|event| event.type_name() == "turn_end").unwrap();
        assert_eq!(turn.message().unwrap().stop_reason(), Some(StopReason::Length));
        let stored = lines(&session.path().unwrap());
        let message = &stored.iter().find(|line| line["message"]["role"] == "assistant").unwrap()["message"];
        assert_eq!((&message["stopReason"], &message["content"]), (&json!("length"), &content));
        let open = message["content"].as_array().unwrap().iter().filter(|block| block["type"] == "toolCall").count();
        let answered = stored.iter().filter(|line| line["message"]["role"] == "toolResult").count();
        assert_eq!(open, answered);
        let starts = events.iter().filter(|event| shape(event).ends_with("toolcall_start")).count();
        let ends = events.iter().filter(|event| shape(event).ends_with("toolcall_end")).count();
        assert_eq!(starts, ends);
    }
}

/// What is sent after an abort has a signal of its own.
#[test]
fn bug_89_a_message_after_an_abort_gets_a_live_signal() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let sleep = json!({"content": [call("c1", "bash", json!({"command": "sleep 5"}))]});
    let (session, control) = scripted(&engine, dir.path(), json!([sleep, text("I obey.")]));
    let first = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    while !shape(&block_on(first.next()).unwrap()).starts_with("tool_execution_start") {}
    block_on(session.steer("stop that")).unwrap();
    let begun = Instant::now();
    let sent = control.requests().iter().filter(|request| !request.aborted).count();
    let aborting = session.abort();
    // At once: refused while the old run has not settled, else a run of its own, never one on the dead signal.
    let early = block_on(session.prompt("too early", PromptOptions::default()));
    block_on(aborting).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3));
    let run = early.unwrap_or_else(|error| {
        assert_eq!(error.code(), ErrorCode::Running);
        block_on(session.prompt("go on", PromptOptions::default())).unwrap()
    });
    let result = block_on(run.result()).unwrap();
    assert_eq!((result.text.as_str(), result.aborted), ("I obey.", false));
    let requests = control.requests();
    assert_eq!(requests.iter().filter(|request| !request.aborted).count(), sent + 1, "exactly one new request");
    let last = requests.last().unwrap();
    assert!(!last.aborted && last.messages.iter().any(|message| message.text("") == "stop that"));
}

#[test]
fn bug_89_aborting_twice_or_for_nothing_is_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, control) = scripted(&engine, dir.path(), json!([{"content": [], "hang": true}, text("fine")]));
    block_on(session.abort()).unwrap();
    let first = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    let (one, two) = (session.abort(), session.abort());
    block_on(two).unwrap();
    block_on(one).unwrap();
    assert!(block_on(first.result()).unwrap().aborted);
    block_on(session.abort()).unwrap();
    assert_eq!(
        block_on(block_on(session.prompt("go", PromptOptions::default())).unwrap().result()).unwrap().text,
        "fine"
    );
}

fn settings(value: Value) -> Settings {
    Settings::from_values(value.as_object().unwrap().clone())
}

#[test]
fn bug_89_waits_and_compactions_end_with_an_abort() {
    // In the wait before a retry.
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let failing = json!({"content": [], "stop": "error", "error": "503"});
    let (session, _) = scripted_with(&engine, dir.path(), json!([failing, text("fine")]), |options| {
        options.settings(settings(json!({"retry": {"baseDelayMs": 60_000, "maxRetries": 3}})))
    });
    let waiting = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    while !shape(&block_on(waiting.next()).unwrap()).starts_with("auto_retry_start") {}
    let begun = Instant::now();
    block_on(session.abort()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(block_on(waiting.result()).unwrap().aborted);
    assert_eq!(
        block_on(block_on(session.prompt("x", PromptOptions::default())).unwrap().result()).unwrap().text,
        "fine"
    );

    // In a compaction.
    let dir = tempfile::tempdir().unwrap();
    let script = json!([text("one"), text("two"), {"content": [], "hang": true}, text("three")]);
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| {
        options.settings(settings(json!({"compaction": {"keepRecentTokens": 1}})))
    });
    run(&session, "first");
    run(&session, "second");
    let theirs = session.clone();
    let compacting = std::thread::spawn(move || block_on(theirs.compact(None)));
    block_on(control.reached(2));
    let before = lines(&session.path().unwrap()).len();
    let begun = Instant::now();
    block_on(session.abort()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(compacting.join().unwrap().unwrap_err().code(), ErrorCode::Cancelled);
    assert_eq!(lines(&session.path().unwrap()).len(), before);
    assert_eq!(
        block_on(block_on(session.prompt("x", PromptOptions::default())).unwrap().result()).unwrap().text,
        "three"
    );
}

/// A service that refuses with a wish for a pause, then answers.
struct Busy {
    refusals: Mutex<Vec<(&'static str, Option<Duration>)>>,
    requests: Arc<Mutex<Vec<(Instant, usize)>>>,
}

impl Provider for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn models(&self) -> Vec<Model> {
        vec![Model::new("busy", "m", "a")]
    }

    fn stream(&self, request: Request) -> ResponseStream {
        let users = request.messages.iter().filter(|message| message.get_str("role") == Some("user")).count();
        self.requests.lock().unwrap().push((Instant::now(), users));
        let start = AssistantStart { api: "a", provider: "busy", model: "m", timestamp: 1 };
        let mut refusals = self.refusals.lock().unwrap();
        let events = if refusals.is_empty() {
            let mut message: Message = start.message();
            message.set("content", json!([{"type": "text", "text": "at last"}]));
            message.set("stopReason", "stop");
            vec![StreamEvent::Done(message)]
        } else {
            let (error, pause) = refusals.remove(0);
            let failed = StreamEvent::Done(start.failed("error", error));
            pause.map(StreamEvent::RetryAfter).into_iter().chain([failed]).collect()
        };
        Box::pin(futures::stream::iter(events))
    }
}

/// What came of a prompt to a busy service: its text, the delays told, the pauses between requests.
fn busy(refusals: Vec<(&'static str, Option<Duration>)>) -> (String, Option<String>, Vec<u64>, Vec<Duration>) {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let requests: Arc<Mutex<Vec<(Instant, usize)>>> = Arc::default();
    engine.add_provider(Arc::new(Busy { refusals: Mutex::new(refusals), requests: requests.clone() }));
    let options = SessionOptions::new(dir.path())
        .session_dir(dir.path().join("sessions"))
        .model("busy/m")
        .settings(settings(json!({"retry": {"baseDelayMs": 20, "maxRetries": 5, "maxAgentDelayMs": 2000}})));
    let session = block_on(engine.create_session(options)).unwrap();
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let events = until_settled(run.events());
    let delays = events.iter().filter_map(|event| match event.kind() {
        EventKind::AutoRetryStart { wait } => Some(wait.delay_ms),
        _ => None,
    });
    let delays = delays.collect();
    let requests = requests.lock().unwrap();
    assert!(requests.iter().all(|(_, users)| *users == 1), "the prompt is sent once a request");
    let stored = lines(&session.path().unwrap());
    assert_eq!(stored.iter().filter(|line| line["message"]["role"] == "user").count(), 1, "and stored once");
    let pauses = requests.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    let result = block_on(run.result()).unwrap();
    (result.text, result.error_message, delays, pauses)
}

#[test]
fn bug_90_the_wait_is_the_one_the_service_asks_for() {
    let ms = Duration::from_millis;
    // Without a wish the usual back-off, with a longer one that, with a shorter one the back-off again.
    let (text, _, delays, pauses) =
        busy(vec![("529 overloaded", None), ("429", Some(ms(300))), ("429", Some(ms(1))), ("429", Some(ms(500)))]);
    assert_eq!((text.as_str(), delays), ("at last", vec![20, 300, 80, 500]));
    for (pause, least) in pauses.iter().zip([20, 300, 80, 500]) {
        assert!(*pause >= ms(least) && *pause < ms(least) + Duration::from_secs(15), "{pause:?} {least}");
    }
}

#[test]
fn bug_90_a_wait_beyond_every_limit_fails_at_once() {
    let begun = Instant::now();
    let (_, error, delays, pauses) = busy(vec![("429 too many requests", Some(Duration::from_secs(86_400)))]);
    assert!(delays.is_empty() && pauses.is_empty() && begun.elapsed() < Duration::from_secs(15));
    assert!(error.unwrap().contains("86400 seconds"));
}

#[test]
fn bug_90_what_cannot_help_is_not_repeated() {
    for error in ["401 unauthorized", "400 bad request"] {
        let (_, told, delays, _) = busy(vec![(error, Some(Duration::from_millis(5)))]);
        assert!(delays.is_empty());
        assert_eq!(told.as_deref(), Some(error));
    }
}
