//! A recorded session answers again: tools, branches, retries, compactions; and where a conversation leaves the recording.

mod session_support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use branchline::message::Role;
use branchline::providers::WireObserver;
use branchline::providers::WireRecorder;
use branchline::replay::{Replay, ReplayOptions};
use branchline::resources::settings::Settings;
use branchline::tools::ToolResult;
use branchline::{Engine, NavigateOptions, PromptOptions, Session, SessionOptions, block_on};
use serde_json::{Value, json};
use session_support::{engine, scripted_with, tool};

fn say(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn counter() -> Arc<dyn branchline::tools::Tool> {
    let count = std::sync::atomic::AtomicUsize::new(1);
    tool("count", move |_| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Box::pin(
            async move { Ok(ToolResult { details: Some(json!({"n": n})), ..ToolResult::text(format!("count {n}")) }) },
        )
    })
}

fn quick() -> Settings {
    Settings::from_values(
        json!({"retry": {"baseDelayMs": 1}, "compaction": {"keepRecentTokens": 1}}).as_object().unwrap().clone(),
    )
}

fn prompt(session: &Session, text: &str) -> branchline::RunResult {
    let run = block_on(session.prompt(text, PromptOptions::default())).unwrap();
    block_on(run.result()).unwrap()
}

/// Role and text of everything that was said, over the whole tree.
fn said(session: &Session) -> Vec<String> {
    let entries = session.tree().entries().map(|entry| entry.unwrap());
    let messages = entries.filter_map(|entry| entry.message()).filter(|message| message.role() != Role::System);
    messages.map(|message| format!("{}: {}", message.role().name(), message.text(""))).collect()
}

/// Records a session with `script`, driven by `host`; its file.
fn record(engine: &Engine, dir: &Path, script: Value, host: impl FnOnce(&Session)) -> (PathBuf, Vec<String>) {
    let (session, _) =
        scripted_with(engine, dir, script, |options| options.custom_tool(counter()).tools(["count"]).settings(quick()));
    host(&session);
    let said = said(&session);
    let path = session.path().unwrap();
    block_on(session.close()).unwrap();
    (path, said)
}

/// A new session that is answered by a replay.
fn replayed(engine: &Engine, dir: &Path, replay: &Replay, tools: Vec<Arc<dyn branchline::tools::Tool>>) -> Session {
    engine.add_provider(Arc::new(replay.clone()));
    let mut options =
        SessionOptions::new(dir).in_memory(true).model("cassette/test").thinking_level("off").settings(quick());
    let names: Vec<String> = tools.iter().map(|tool| tool.definition().name.clone()).collect();
    for tool in tools {
        options = options.custom_tool(tool);
    }
    block_on(engine.create_session(options.tools(names))).unwrap()
}

fn call(id: &str) -> Value {
    json!({"content": [{"type": "text", "text": "looking"}, {"type": "toolCall", "id": id, "name": "count", "arguments": {"a": [1, 2.5]}}]})
}

/// The same prompts get the same answers, tools the recorded results, and the file comes out the same.
#[test]
fn the_same_conversation_again() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let host = |session: &Session| {
        prompt(session, "one");
        prompt(session, "two");
    };
    let (path, recorded) =
        record(&engine, dir.path(), json!([call("c1"), say("first"), call("c2"), say("second")]), host);
    let replay = Replay::open("cassette", &path, ReplayOptions::default()).unwrap();
    let session = replayed(&engine, dir.path(), &replay, replay.tools());
    host(&session);
    assert_eq!(said(&session), recorded);
    assert_eq!(replay.divergence(), None);
    let details: Vec<Value> =
        session.tree().entries().filter_map(|entry| entry.unwrap().message()?.get("details").cloned()).collect();
    assert_eq!(details, [json!({"n": 1}), json!({"n": 2})]);
    // Live tools do the same as long as they say the same.
    let live = replayed(&engine, dir.path(), &replay, vec![counter()]);
    host(&live);
    assert_eq!((said(&live), replay.divergence()), (recorded, None));
}

/// The first divergence is told with both sides, in the error and as a value.
#[test]
fn a_divergence_has_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let host = |session: &Session| {
        prompt(session, "one");
        prompt(session, "two");
    };
    let (path, _) = record(&engine, dir.path(), json!([call("c1"), say("first"), say("second")]), host);
    let replay = Replay::open("cassette", &path, ReplayOptions::default()).unwrap();
    let session = replayed(&engine, dir.path(), &replay, replay.tools());
    prompt(&session, "one");
    let result = prompt(&session, "deux");
    let error = result.error_message.unwrap();
    assert!(error.contains("two") && error.contains("deux") && error.contains("message 4"), "{error}");
    let divergence = replay.divergence().unwrap();
    assert_eq!((divergence.at, divergence.recorded.len()), (4, 1));
    assert_eq!(divergence.recorded[0].message["content"][0]["text"], "two");
    assert_eq!(divergence.actual.unwrap()["content"][0]["text"], "deux");
    prompt(&session, "trois");
    assert_eq!(replay.divergence().unwrap().at, 4, "the first one stays");

    // Live tools that say something else, and a host that does not mind.
    for (compare, expected) in [(true, None), (false, Some("first"))] {
        let options = ReplayOptions::default().compare_tool_results(compare);
        let replay = Replay::open("cassette", &path, options).unwrap();
        let other = tool("count", |_| Box::pin(async { Ok(ToolResult::text("another count")) }));
        let session = replayed(&engine, dir.path(), &replay, vec![other]);
        let result = prompt(&session, "one");
        assert_eq!(expected, result.error_message.is_none().then_some(result.text.as_str()));
        assert_eq!(replay.divergence().map(|divergence| divergence.at), compare.then_some(2));
    }

    // Words that look like an error worth another try are kept out of the error.
    let replay = Replay::open("cassette", &path, ReplayOptions::default()).unwrap();
    let session = replayed(&engine, dir.path(), &replay, replay.tools());
    let result = prompt(&session, "429 rate limit, overloaded");
    assert_eq!(result.error_message.as_deref(), Some("The replay left the recording at message 0."));
    assert_eq!(result.messages.iter().filter(|message| message.role() == Role::Assistant).count(), 1);
}

/// Every branch of the file answers, whatever the order.
#[test]
fn branches_of_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let host = |session: &Session| {
        prompt(session, "one");
        let fork = session.leaf().unwrap();
        prompt(session, "left");
        block_on(session.navigate(&fork, NavigateOptions::default())).unwrap();
        prompt(session, "right");
    };
    let (path, recorded) = record(&engine, dir.path(), json!([say("1"), say("l"), say("r")]), host);
    let replay = Replay::open("cassette", &path, ReplayOptions::default()).unwrap();
    let session = replayed(&engine, dir.path(), &replay, Vec::new());
    host(&session);
    assert_eq!((said(&session), replay.divergence()), (recorded, None));
    let straight = replayed(&engine, dir.path(), &replay, Vec::new());
    prompt(&straight, "one");
    assert_eq!(prompt(&straight, "right").text, "r");
    let lost = prompt(&straight, "left").error_message.unwrap();
    assert!(lost.contains("nothing more"), "{lost}");
}

/// A failed answer is given again as it was, and so is the one that followed it.
#[test]
fn failed_answers_and_their_repetition() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let host = |session: &Session| {
        prompt(session, "one");
    };
    let failed = json!({"content": [{"type": "text", "text": "ha"}], "stop": "error", "error": "503 overloaded"});
    let (path, recorded) = record(&engine, dir.path(), json!([failed, say("half an hour later")]), host);
    assert_eq!(recorded, ["user: one", "assistant: ha", "assistant: half an hour later"]);
    let replay = Replay::open("cassette", &path, ReplayOptions::default()).unwrap();
    let session = replayed(&engine, dir.path(), &replay, Vec::new());
    host(&session);
    assert_eq!((said(&session), replay.divergence()), (recorded, None));
}

/// After a compaction the conversation is another; it is found all the same.
#[test]
fn compactions() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let host = |session: &Session| {
        prompt(session, "one");
        prompt(session, "two");
        block_on(session.compact(None)).unwrap();
        prompt(session, "three");
    };
    let (path, recorded) = record(&engine, dir.path(), json!([say("1"), say("2"), say("what was"), say("3")]), host);
    let replay = Replay::open("cassette", &path, ReplayOptions::default()).unwrap();
    let session = replayed(&engine, dir.path(), &replay, Vec::new());
    host(&session);
    assert_eq!((said(&session), replay.divergence()), (recorded, None));
}

/// Traffic is written as it is, without keys, to a file that only its owner reads.
#[test]
fn recording_traffic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wire.jsonl");
    let recorder = WireRecorder::create(&path).unwrap();
    let headers = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    };
    recorder.request(1, "POST", "https://x/v1", &headers(&[("X-Api-Key", "sk-1"), ("accept", "a")]), b"{\"a\":1}");
    recorder.response(1, 200, &headers(&[("Set-Cookie", "c=1")]));
    recorder.bytes(1, "data: é".as_bytes());
    recorder.bytes(1, &[0xff, 0]);
    recorder.end(1);
    recorder.finish();
    recorder.bytes(2, b"later");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("sk-1") && !text.contains("c=1"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["request", "response", "bytes", "bytes", "end"]);
    assert_eq!((&lines[0]["body"], &lines[0]["headers"][1]), (&json!("{\"a\":1}"), &json!(["accept", "a"])));
    assert_eq!((&lines[2]["data"], &lines[3]["base64"]), (&json!("data: é"), &json!("/wA=")));
    assert_eq!(WireRecorder::create(&path).err().unwrap().code(), branchline::ErrorCode::FileExists);
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
        assert_eq!(mode & 0o777, 0o600);
    }
}
