//! Bug 109: a run with everything in it is ended at every one of its events, by an abort and by a kill.

#[path = "session_support/mod.rs"]
mod support;

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use branchline::message::StopReason;
use branchline::providers::Model;
use branchline::resources::settings::Settings;
use branchline::tree::{OpenOptions, Tree};
use branchline::{
    Engine, EventKind, Phase, PromptOptions, Session, SessionOptions, SubscribeOptions, WhenRunning, block_on,
};
use branchline_canned::{Reply, Server, requests};
use serde_json::{Value, json};
use support::*;

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

fn settings(value: Value) -> Settings {
    Settings::from_values(value.as_object().unwrap().clone())
}

fn run(session: &Session, prompt: &str) -> Vec<branchline::Event> {
    let run = block_on(session.prompt(prompt, PromptOptions::default())).expect("accepted");
    until_settled(run.events())
}

/// A run with everything in it: thinking, text, two tools at once, a failure that is repeated, a compaction between
/// turns, and a follow-up.
fn everything(engine: &Engine, dir: &Path) -> Session {
    let touch = |name: &str| json!({"command": format!("echo $$ >> {name}; sleep 0.02; echo out")});
    let script = json!([
        {"content": [{"type": "text", "text": "warm up"}], "usage": {"input": 100, "output": 10}},
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "two at once"},
            call("a", "bash", touch("pid1")), call("b", "bash", touch("pid2"))], "usage": {"input": 100, "output": 10}},
        {"content": [], "stop": "error", "error": "503 overloaded"},
        {"content": [{"type": "text", "text": "again"}, call("c", "bash", touch("pid3"))],
            "usage": {"input": 1900, "output": 10}},
        {"content": [{"type": "text", "text": "a summary"}], "times": 1},
        text("first part done"),
        text("and the rest"),
        text("spare"), text("spare"), text("spare"), text("spare"), text("spare"), text("spare"),
    ]);
    let script = branchline::providers::scripted::Script::from_value(script).unwrap().with_chunk(0);
    let provider = branchline::providers::scripted::ScriptedProvider::new("script");
    let mut model = Model::new("script", "m", "a");
    (model.context_window, model.max_tokens) = (2000, 500);
    provider.add([model], &script);
    engine.add_provider(Arc::new(provider));
    let options = SessionOptions::new(dir)
        .session_dir(dir.join("sessions"))
        .model("script/m")
        .system_prompt("x")
        .tools(["bash"])
        .settings(settings(json!({"retry": {"baseDelayMs": 1, "maxRetries": 2},
            "compaction": {"reserveTokens": 200, "keepRecentTokens": 20}})));
    block_on(engine.create_session(options)).unwrap()
}

/// Whether a process runs (a zombie does not).
fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).is_some_and(|state| state != 'Z')
}

/// The path of a session file is a chain of known parents.
fn chain(file: &Path) -> Vec<Value> {
    let tree = Tree::open(file, OpenOptions { read_only: true, ..Default::default() }).expect("the file loads");
    assert!(tree.diagnostics().is_empty(), "{:?}", tree.diagnostics());
    let lines = lines(file);
    let mut known = HashSet::new();
    for line in &lines[1..] {
        assert!(line["parentId"].is_null() || known.contains(line["parentId"].as_str().unwrap()));
        known.insert(line["id"].as_str().unwrap().to_owned());
    }
    lines
}

/// A chain, and every call on it has one result right after it.
fn well_formed(file: &Path) {
    let mut open: Vec<String> = Vec::new();
    for message in chain(file).iter().filter_map(|line| line.get("message")) {
        match message["role"].as_str().unwrap() {
            "assistant" => {
                assert!(open.is_empty(), "calls without a result: {open:?}");
                if !matches!(message["stopReason"].as_str(), Some("error" | "aborted")) {
                    let calls =
                        message["content"].as_array().unwrap().iter().filter(|block| block["type"] == "toolCall");
                    open = calls.map(|block| block["id"].as_str().unwrap().to_owned()).collect();
                }
            }
            "toolResult" => {
                let id = message["toolCallId"].as_str().unwrap();
                let at = open.iter().position(|call| call == id).expect("a result has its call right before it");
                open.remove(at);
            }
            "user" => assert!(open.is_empty(), "calls without a result: {open:?}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "calls without a result: {open:?}");
}

/// Goes on from the file with a model of every protocol: what is sent is what their services take.
fn accepted_everywhere(file: &Path, when: &str) {
    for api in ["anthropic-messages", "openai-completions", "openai-responses", "google-generative-ai"] {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy.jsonl");
        std::fs::copy(file, &copy).unwrap();
        let server = Server::start(vec![Reply::status(400, &json!({"error": {"message": "enough"}}))]);
        let engine = engine(dir.path());
        let models = json!([{"id": "m", "contextWindow": 200_000, "maxTokens": 1000}]);
        let mine = json!({"baseUrl": server.url(), "api": api, "apiKey": "k", "models": models});
        engine.configure_models(&json!({"providers": {"mine": mine}}).to_string()).unwrap();
        let options = SessionOptions::new(dir.path()).model("mine/m");
        let session = block_on(engine.open_session(copy, options)).unwrap();
        run(&session, "and on");
        let received = server.received();
        assert_eq!(received.len(), 1, "{when}, {api}");
        let body = received[0].json();
        assert_eq!(requests::refusal(api, &body), None, "{when}, {api}: {body:#}");
        assert_eq!(body.to_string().matches("\"and on\"").count(), 1, "{when}, {api}: {body:#}");
    }
}

/// Files that were to take the place of others.
fn half_written(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().flatten().any(|entry| entry.file_name().to_string_lossy().contains("branchline-"))
}

/// Aborts after each event in turn.
#[test]
fn bug_109_an_abort_at_every_event_leaves_everything_in_order() {
    let mut at = 0;
    let seen = loop {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let session = everything(&engine, dir.path());
        run(&session, "warm up");
        let watch = session.subscribe(SubscribeOptions::default());
        let running = block_on(session.prompt("prompt", PromptOptions::default())).unwrap();
        block_on(session.prompt("follow", PromptOptions::default().when_running(WhenRunning::FollowUp))).unwrap();
        let mut aborting = None;
        let mut count = 0;
        let events = until_settled_with(running.events(), |_| {
            if count == at {
                aborting = Some((Instant::now(), session.abort()));
            }
            count += 1;
        });
        let seen = shapes(&events);
        let finished = aborting.is_none();
        if let Some((begun, aborting)) = aborting {
            block_on(aborting).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(5), "event {at}: {:?}", begun.elapsed());
        }
        assert_eq!(session.state().phase, Phase::Idle);
        for name in ["pid1", "pid2", "pid3"] {
            let pids = std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
            assert!(pids.lines().all(|pid| !alive(pid)), "event {at}: a process lives");
        }
        assert!(!half_written(dir.path()) && !half_written(&dir.path().join("sessions")));
        let file = session.path().unwrap();
        well_formed(&file);
        accepted_everywhere(&file, &format!("aborted at event {at}"));
        let prompts = |text: &str| {
            let stored = lines(&file);
            let user =
                |line: &&Value| line["message"]["role"] == "user" && line["message"]["content"][0]["text"] == text;
            stored.iter().filter(user).count()
        };
        assert_eq!(prompts("prompt"), 1, "event {at}: {:?}", seen.get(at));
        // The follow-up was delivered, or waits; told and real queue agree.
        let waiting = session.state().follow_up.len();
        assert_eq!(prompts("follow") + waiting, 1, "event {at}");
        let told = std::iter::from_fn(|| watch.try_next()).filter_map(|event| match event.kind() {
            EventKind::QueueUpdate { follow_up, .. } => Some(follow_up.len()),
            _ => None,
        });
        assert_eq!(told.last(), Some(waiting), "event {at}");
        // And on.
        let result = block_on(block_on(session.prompt("again", PromptOptions::default())).unwrap().result()).unwrap();
        assert!(!result.aborted && result.stop_reason == Some(StopReason::Stop), "event {at}: {result:?}");
        assert_eq!(prompts("again"), 1);
        assert_eq!(prompts("follow"), 1, "event {at}: what waited goes with the next prompt");
        well_formed(&file);
        block_on(session.close()).unwrap();
        if finished {
            break seen;
        }
        at += 1;
    };
    // The run had all of it.
    for word in ["thinking_end", "auto_retry_start", "compaction_end", "tool_execution_end b false", "queue_update"] {
        assert!(seen.iter().any(|shape| shape.contains(word)), "{word}: {seen:?}");
    }
    assert!(at > 50, "{at}");
}

const DIR: &str = "BRANCHLINE_TEST_DIR";
const POINT: &str = "BRANCHLINE_TEST_POINT";

/// The process that is killed: by itself, so that it is at the event of that number.
#[test]
#[ignore = "run by bug_109_a_kill_at_every_event_loses_nothing_that_was_told"]
fn the_process_that_is_killed() {
    let (Some(dir), Ok(point)) = (std::env::var_os(DIR), std::env::var(POINT)) else { return };
    let (dir, point) = (Path::new(&dir), point.parse::<usize>().unwrap());
    let engine = engine(dir);
    let session = everything(&engine, dir);
    run(&session, "warm up");
    let mut told = std::fs::File::create(dir.join("told")).unwrap();
    let running = block_on(session.prompt("prompt", PromptOptions::default())).unwrap();
    block_on(session.prompt("follow", PromptOptions::default().when_running(WhenRunning::FollowUp))).unwrap();
    let mut count = 0;
    let look = |event: &branchline::Event| {
        if let Some(id) = event.entry_id() {
            writeln!(told, "{id}").unwrap();
        }
        if count == point {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
        count += 1;
    };
    events_until_settled(running.events(), look);
}

fn events_until_settled(events: &branchline::Events, mut look: impl FnMut(&branchline::Event)) {
    loop {
        let event = events.next_timeout(Duration::from_secs(20)).expect("an event in time").expect("not the end");
        look(&event);
        if matches!(event.kind(), EventKind::AgentSettled { .. }) {
            return;
        }
    }
}

/// A kill stops the write of another thread between two pages of the file. Nobody was told of that entry.
fn cut_torn_line(file: &Path) {
    let bytes = std::fs::read(file).unwrap();
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    std::fs::OpenOptions::new().write(true).open(file).unwrap().set_len(whole as u64).unwrap();
}

/// Kills a process after each event in turn.
#[test]
fn bug_109_a_kill_at_every_event_loses_nothing_that_was_told() {
    let program = std::env::current_exe().unwrap();
    let mut point = 0;
    loop {
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new(&program)
            .args(["--exact", "the_process_that_is_killed", "--ignored"])
            .env(DIR, dir.path())
            .env(POINT, point.to_string())
            .output()
            .unwrap()
            .status;
        let when = format!("killed at event {point}");
        let sessions: Vec<_> = std::fs::read_dir(dir.path().join("sessions")).unwrap().flatten().collect();
        assert_eq!(sessions.len(), 1, "{when}: {sessions:?}");
        let file = sessions[0].path();
        cut_torn_line(&file);
        let lines = chain(&file);
        let ids: HashSet<&str> = lines.iter().filter_map(|line| line["id"].as_str()).collect();
        let told = std::fs::read_to_string(dir.path().join("told")).unwrap();
        for id in told.lines() {
            assert!(ids.contains(id), "{when}: {id} was told and is not there");
        }
        let prompts = lines.iter().filter(|line| line["message"]["content"][0]["text"] == "prompt").count();
        assert!(prompts == 1 || (prompts == 0 && told.is_empty()), "{when}: {prompts}");
        // Commands of a dead host end by themselves.
        for name in ["pid1", "pid2", "pid3"] {
            let pids = std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
            let begun = Instant::now();
            while pids.lines().any(alive) {
                assert!(begun.elapsed() < Duration::from_secs(20), "{when}: a process lives");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        assert!(!half_written(dir.path()) && !half_written(&dir.path().join("sessions")), "{when}");
        accepted_everywhere(&file, &when);
        if status.success() {
            break;
        }
        point += 1;
    }
    assert!(point > 50, "{point}");
}
