//! Faults that compactions of other programs had, by number.

mod common;
#[path = "session_support/mod.rs"]
mod support;

use std::collections::HashSet;

use branchline::agent::transform::{TargetModel, drop_orphan_results, repair, to_llm};
use branchline::message::{Message, Role};
use branchline::providers::scripted::{RecordedRequest, Script, ScriptedProvider};
use branchline::providers::{Model, Purpose};
use branchline::resources::settings::Settings;
use branchline::session::compaction;
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolFuture, ToolResult};
use branchline::tree::Tree;
use branchline::{Engine, EventKind, PromptOptions, Session, SessionOptions, block_on};
use common::{Fixture, entry, message, user};
use serde_json::{Value, json};
use support::{engine, lines, shape, until_settled, until_settled_with};

/// What a provider would be sent at a leaf.
fn request(tree: &Tree, leaf: Option<&str>) -> Vec<Message> {
    let target =
        TargetModel { provider: "lantern".into(), api: "lantern-chat".into(), id: "small".into(), images: true };
    let context = tree.context(leaf).expect("a context");
    let messages: Vec<Message> = context.messages().map(|message| (*message.message()).clone()).collect();
    drop_orphan_results(repair(&to_llm(&messages), &target, None))
}

/// Every call has exactly one result behind it, every result its call before it.
fn assert_paired(messages: &[Message]) {
    let mut open = HashSet::new();
    for message in messages {
        for call in message.tool_calls() {
            assert!(open.insert(call.id.to_owned()));
        }
        if message.role() == Role::ToolResult {
            assert!(open.remove(message.get_str("toolCallId").expect("an id")), "a result without its call");
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

fn answer(id: &str, parent: &str, text: &str, calls: &[&str]) -> String {
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(calls.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "look", "arguments": {}})));
    let stop = if calls.is_empty() { "stop" } else { "toolUse" };
    let body = json!({"role": "assistant", "content": content, "api": "lantern-chat", "provider": "lantern",
        "model": "small", "stopReason": stop, "timestamp": 2});
    message(id, Some(parent), body)
}

fn result(id: &str, parent: &str, call: &str) -> String {
    let content = json!([{"type": "text", "text": format!("result of {call}")}]);
    let body = json!({"role": "toolResult", "toolCallId": call, "toolName": "look", "content": content,
        "isError": false, "timestamp": 3});
    message(id, Some(parent), body)
}

fn compacted(id: &str, parent: &str, first_kept: &str, summary: &str) -> String {
    let fields = json!({"summary": summary, "firstKeptEntryId": first_kept, "tokensBefore": 9, "fromHook": false});
    entry("compaction", id, Some(parent), fields)
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.text("")).collect()
}

#[test]
fn bug_23_two_compactions_leave_no_result_without_its_call() {
    let tree = Fixture::lines([
        user("u1", None, "first"),
        answer("a1", "u1", "looking", &["k1"]),
        compacted("x1", "a1", "a1", "one"),
        result("r1", "x1", "k1"),
        answer("a2", "r1", "again", &["k2"]),
        result("r2", "a2", "k2"),
        user("u2", Some("r2"), "more"),
        compacted("x2", "u2", "r1", "two"),
        user("u3", Some("x2"), "on"),
    ]);
    let sent = request(&tree.open(), Some("u3"));
    assert_paired(&sent);
    assert!(texts(&sent)[0].contains("two") && texts(&sent).last().unwrap() == "on");
}

/// The same for every place a compaction may say it keeps from, in histories drawn at random.
#[test]
fn bug_23_calls_and_results_pair_wherever_the_cut_is() {
    let mut seed = 7_u64;
    let mut draw = move |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    for round in 0..6 {
        let mut lines = vec![user("e0", None, "begin")];
        let mut open: Vec<String> = Vec::new();
        while lines.len() < 50 {
            let (id, parent) = (format!("e{}", lines.len()), format!("e{}", lines.len() - 1));
            lines.push(match open.pop() {
                Some(_) if draw(6) == 0 && lines.len() > 4 => {
                    let kept = format!("e{}", draw(lines.len() as u64));
                    open.clear();
                    compacted(&id, &parent, &kept, "in between")
                }
                Some(call) => result(&id, &parent, &call),
                None if draw(3) == 0 => user(&id, Some(&parent), "say"),
                None => {
                    let calls: Vec<String> = (0..draw(3)).map(|at| format!("{id}-{at}")).collect();
                    let names: Vec<&str> = calls.iter().map(String::as_str).collect();
                    open = calls.iter().rev().cloned().collect();
                    answer(&id, &parent, "look", &names)
                }
            });
        }
        for kept in 0..50 {
            let mut lines = lines.clone();
            lines.push(compacted("end", "e49", &format!("e{kept}"), "the end"));
            let tree = Fixture::lines(lines).open();
            let sent = request(&tree, Some("end"));
            assert_paired(&sent);
            assert!(texts(&sent)[0].contains("the end"), "round {round}, kept {kept}");
        }
    }
}

#[test]
fn bug_24_a_summary_that_was_replaced_stands_nowhere() {
    let fixture = Fixture::lines([
        user("u1", None, "first"),
        answer("a1", "u1", "looking", &["k1"]),
        compacted("x1", "a1", "u1", "the stale one"),
        result("r1", "x1", "k1"),
        answer("a2", "r1", "found", &[]),
        user("u3", Some("a2"), "third"),
        answer("a3", "u3", "answer", &[]),
        compacted("x2", "a3", "a1", "the fresh one"),
    ]);
    let sent = request(&fixture.open(), Some("x2"));
    assert_paired(&sent);
    let texts = texts(&sent);
    assert!(texts[0].contains("the fresh one") && !texts.iter().any(|text| text.contains("the stale one")));
    assert_eq!(&texts[1..], ["looking", "result of k1", "found", "third", "answer"]);
}

#[test]
fn bug_99_a_pointer_that_leads_nowhere_keeps_nothing() {
    let history = || {
        vec![
            user("u1", None, "first"),
            answer("a1", "u1", "one", &["k1"]),
            result("r1", "a1", "k1"),
            entry("label", "l1", Some("r1"), json!({"targetId": "u1", "label": "here"})),
            answer("a2", "l1", "two", &[]),
            user("s1", Some("a1"), "elsewhere"),
        ]
    };
    let before = ["first", "one", "result of k1", "two"];
    for (kept, from) in
        [("gone", 4), ("s1", 4), ("x1", 4), ("later", 4), ("l1", 3), ("u1", 0), ("a1", 1), ("r1", 4), ("a2", 3)]
    {
        let mut lines = history();
        lines.push(compacted("x1", "a2", kept, "summary"));
        lines.push(user("later", Some("x1"), "after"));
        lines.push(answer("end", "later", "the end", &[]));
        let tree = Fixture::lines(lines).open();
        let sent = request(&tree, Some("end"));
        assert_paired(&sent);
        let texts = texts(&sent);
        assert!(texts[0].contains("summary"), "{kept}: {texts:?}");
        // A result that lost its call stays behind.
        let mut wanted: Vec<&str> = before[from.min(4)..].to_vec();
        if kept == "r1" {
            wanted = vec!["two"];
        }
        wanted.extend(["after", "the end"]);
        assert_eq!(&texts[1..], wanted, "{kept}");
        // And the next compaction can be planned.
        let _ = compaction::prepare(&tree.context(Some("end")).unwrap(), 1);
    }
    // Two whose kept ranges overlap.
    let mut lines = history();
    lines.push(compacted("x1", "a2", "a1", "older"));
    lines.push(user("u2", Some("x1"), "between"));
    lines.push(compacted("x2", "u2", "u1", "newer"));
    let sent = request(&Fixture::lines(lines).open(), Some("x2"));
    assert_paired(&sent);
    assert!(texts(&sent)[0].contains("newer") && !texts(&sent).iter().any(|text| text.contains("older")));
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "usage": {"input": 50, "output": 5}})
}

/// A session on a model with a small window, and what its model was asked.
fn small(
    engine: &Engine,
    dir: &std::path::Path,
    window: u64,
    compaction: Value,
    script: Value,
) -> (Session, impl Fn() -> Vec<RecordedRequest>) {
    let script = Script::from_value(script).unwrap().with_chunk(0);
    let control = script.control();
    control.record();
    let provider = ScriptedProvider::new("small");
    let mut model = Model::new("small", "m", "a");
    (model.context_window, model.max_tokens) = (window, 100);
    provider.add([model], &script);
    engine.add_provider(std::sync::Arc::new(provider));
    let settings = json!({"compaction": compaction, "retry": {"baseDelayMs": 1, "maxRetries": 2}});
    let options = SessionOptions::new(dir)
        .session_dir(dir.join("sessions"))
        .model("small/m")
        .system_prompt("x")
        .settings(Settings::from_values(settings.as_object().unwrap().clone()));
    let session = block_on(engine.create_session(options)).unwrap();
    (session, move || control.requests())
}

fn go(session: &Session, prompt: &str) -> Vec<String> {
    let run = block_on(session.prompt(prompt, PromptOptions::default())).unwrap();
    until_settled(run.events()).iter().map(shape).collect()
}

fn count(told: &[String], word: &str) -> usize {
    told.iter().filter(|shape| shape.starts_with(word)).count()
}

/// Tokens of a request, as they are estimated.
fn estimate(request: &RecordedRequest) -> usize {
    request.messages.iter().filter(|it| it.role() != Role::System).map(|it| it.to_json().len() / 4).sum()
}

#[test]
fn bug_26_a_long_prompt_is_seen_before_it_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let full =
        json!({"content": [{"type": "text", "text": "a ".repeat(10_000)}], "usage": {"input": 6400, "output": 100}});
    let script = json!([text("one"), full, text("a summary"), text("done")]);
    let (session, requests) =
        small(&engine, dir.path(), 8000, json!({"reserveTokens": 500, "keepRecentTokens": 100}), script);
    go(&session, "first");
    go(&session, "second");
    let told = go(&session, &"word ".repeat(2000));
    assert_eq!(count(&told, "compaction_start"), 1, "{told:?}");
    assert!(
        told.iter().position(|it| it.starts_with("compaction_end"))
            < told.iter().position(|it| it.starts_with("agent_start"))
    );
    let requests = requests();
    assert_eq!(requests[2].purpose, Purpose::Summary);
    let turns: Vec<_> = requests.iter().filter(|it| it.purpose == Purpose::Turn).collect();
    assert_eq!(turns.len(), 3);
    assert!(estimate(turns[2]) < 8000);
}

struct Big(ToolDefinition);

impl Tool for Big {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn execute(&self, _: ToolCall) -> ToolFuture {
        Box::pin(async { Ok(ToolResult::text("x".repeat(30_000))) })
    }
}

#[test]
fn bug_26_big_results_are_seen_before_they_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    engine.add_tool(std::sync::Arc::new(Big(ToolDefinition::new("big", "big", json!({"type": "object"})))));
    let calls: Vec<Value> =
        (0..10).map(|at| json!({"type": "toolCall", "id": format!("c{at}"), "name": "big", "arguments": {}})).collect();
    let script = json!([text("one"), {"content": calls, "usage": {"input": 900, "output": 5}}, text("a summary"),
        text("another"), text("done"), text("spare")]);
    let (session, requests) =
        small(&engine, dir.path(), 60_000, json!({"reserveTokens": 1000, "keepRecentTokens": 10}), script);
    go(&session, "first");
    let told = go(&session, "second");
    assert_eq!(count(&told, "compaction_start"), 1, "{told:?}");
    let requests = requests();
    let turns: Vec<_> = requests.iter().filter(|it| it.purpose == Purpose::Turn).collect();
    assert_eq!(turns.len(), 3);
    assert!(requests.iter().position(|it| it.purpose == Purpose::Summary).unwrap() == 2);
}

#[test]
fn bug_27_texts_that_say_too_long() {
    for (error, overflow) in [
        ("prompt is too long: 210000 tokens > 200000 maximum", true),
        ("400 prompt too long; exceeded max context length by 918 tokens", true),
        ("400 {\"error\": {\"code\": \"context_length_exceeded\"}}", true),
        ("The input token count (9) exceeds the maximum number of tokens allowed", true),
        ("413 request_too_large", true),
        ("429 too many tokens per minute, rate limit reached", false),
        ("400 max_tokens: 999999 > 8192", false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let failed = json!({"content": [], "stop": "error", "error": error});
        let script = json!([text("one"), text("two"), failed, text("answer"), text("answer"), text("answer")]);
        let (session, requests) = small(&engine, dir.path(), 100_000, json!({"keepRecentTokens": 1}), script);
        go(&session, "first");
        go(&session, "second");
        let told = go(&session, "third");
        let retried = error.starts_with("429");
        assert_eq!(count(&told, "compaction_start"), usize::from(overflow), "{error}: {told:?}");
        assert_eq!(count(&told, "auto_retry_start"), usize::from(retried), "{error}");
        let requests = requests();
        let turns = requests.iter().filter(|it| it.purpose == Purpose::Turn).count();
        assert_eq!(turns, 3 + usize::from(overflow || retried), "{error}");
        if overflow || retried {
            // The failure is no part of what is sent again.
            let last = requests.last().unwrap();
            assert!(!last.messages.iter().any(|it| it.get_str("stopReason") == Some("error")));
            assert!(told.iter().any(|it| it == "message_end assistant stop"), "{error}: {told:?}");
        }
    }
}

#[test]
fn bug_27_a_second_overflow_ends_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let failed = json!({"content": [], "stop": "error", "error": "prompt is too long"});
    // The same told by numbers: nothing was answered, and the window is full.
    let full = json!({"content": [], "stop": "length", "usage": {"input": 100_000, "output": 0}});
    for failure in [failed, full] {
        let script =
            json!([text("one"), text("two"), failure, text("a summary"), text("of two parts"), failure, text("spare")]);
        let (session, requests) = small(&engine, dir.path(), 100_000, json!({"keepRecentTokens": 1}), script);
        go(&session, "first");
        go(&session, "second");
        let told = go(&session, "third");
        assert_eq!(count(&told, "compaction_start"), 1, "{told:?}");
        assert_eq!(count(&told, "compaction_end"), 2, "the second says that it does not help");
        assert_eq!(requests().iter().filter(|it| it.purpose == Purpose::Turn).count(), 4);
        block_on(session.close()).unwrap();
    }
}

#[test]
fn bug_29_nothing_runs_after_a_compaction_that_nothing_waits_for() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let full = json!({"content": [{"type": "text", "text": "long"}], "usage": {"input": 950, "output": 5}});
    let summary = json!({"content": [{"type": "text", "text": "a summary"}], "delayMs": 50});
    for follow in [false, true] {
        let script = json!([text("one"), full, summary, summary, text("followed"), text("spare")]);
        let (session, requests) =
            small(&engine, dir.path(), 1000, json!({"reserveTokens": 100, "keepRecentTokens": 1}), script);
        go(&session, "first");
        let run = block_on(session.prompt("second", PromptOptions::default())).unwrap();
        let theirs = session.clone();
        let mut queued = false;
        let events = until_settled_with(run.events(), |shape| {
            if follow && shape.starts_with("compaction_start") {
                block_on(theirs.follow_up("and then?")).unwrap();
                queued = true;
            }
        });
        assert_eq!(queued, follow);
        let told: Vec<String> = events.iter().map(shape).collect();
        assert_eq!(count(&told, "compaction_end"), 1, "{told:?}");
        assert!(matches!(events.last().unwrap().kind(), EventKind::AgentSettled { aborted: false }));
        let requests = requests();
        let turns = requests.iter().filter(|it| it.purpose == Purpose::Turn).count();
        assert_eq!(turns, if follow { 3 } else { 2 });
        if follow {
            assert_eq!(requests.last().unwrap().messages.last().unwrap().text(""), "and then?");
        }
        assert_eq!(session.state().phase.name(), "idle");
        assert!(lines(&session.path().unwrap()).iter().any(|line| line["type"] == "compaction"));
        block_on(session.close()).unwrap();
    }
}
