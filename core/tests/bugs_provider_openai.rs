//! One test for each fault known from other clients of the two OpenAI protocols, by its number in the collection of
//! faults, over real HTTP on loopback.

#[path = "openai_support/mod.rs"]
mod openai_support;
#[path = "session_support/mod.rs"]
mod support;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use branchline::providers::Model;
use branchline::resources::settings::Settings;
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolFuture, ToolResult};
use branchline::{PromptOptions, RunResult, Session, SessionOptions, SubscribeOptions, block_on};
use openai_support::*;
use serde_json::{Value, json};
use support::{lines, until_settled};

const CHAT: &str = "openai-completions";
const RESPONSES: &str = "openai-responses";

fn say(session: &Session, text: &str) -> RunResult {
    block_on(block_on(session.prompt(text, PromptOptions::default())).unwrap().result()).unwrap()
}

fn settings(value: Value) -> Settings {
    Settings::from_values(value.as_object().unwrap().clone())
}

fn no_retry(options: SessionOptions) -> SessionOptions {
    options.settings(settings(json!({"retry": {"enabled": false}})))
}

/// What one answer becomes: the stored message and the events that told it.
struct Told {
    message: Value,
    updates: Vec<Value>,
    took: Duration,
}

/// Asks a model of this protocol once, without retries, and gives what came of this answer.
fn ask(api: &str, reply: Reply) -> Told {
    ask_with(api, reply, |_| {})
}

fn ask_with(api: &str, reply: Reply, change: impl FnOnce(&mut Model)) -> Told {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let server = Server::start(vec![reply, Reply::stream(end_of(api))]);
    let mut model = model(&server, api);
    change(&mut model);
    let session = session_with(&engine, dir.path(), model, |options| no_retry(options).tools(Vec::<String>::new()));
    let events = session.subscribe(SubscribeOptions::default());
    let begun = Instant::now();
    // Read while it goes: a subscriber that does not would make the session wait.
    let all = std::thread::scope(|scope| {
        let reader = scope.spawn(|| until_settled(&events));
        say(&session, "go");
        reader.join().unwrap()
    });
    let took = begun.elapsed();
    let all: Vec<Value> = all.iter().map(|event| serde_json::from_str(&event.to_json()).unwrap()).collect();
    let end = |event: &&Value| event["type"] == "message_end" && event["message"]["role"] == "assistant";
    let message = all.iter().find(end).expect("a response")["message"].clone();
    let first = all.iter().position(|event| end(&event)).unwrap();
    let updates = all[..first].iter().filter(|event| event["type"] == "message_update");
    Told { message, updates: updates.map(|event| event["assistantMessageEvent"].clone()).collect(), took }
}

/// A short complete answer, for what follows the answer under test.
fn end_of(api: &str) -> String {
    match api {
        CHAT => chat_text("end"),
        _ => named_events(&[
            json!({"type": "response.output_text.delta", "delta": "end"}),
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed"}}),
        ]),
    }
}

fn text_of(message: &Value) -> String {
    let blocks = message["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

/// Usage of a response without the price.
fn tokens(message: &Value) -> [u64; 5] {
    ["input", "output", "cacheRead", "cacheWrite", "totalTokens"].map(|key| message["usage"][key].as_u64().unwrap())
}

// 68: every chunk was parsed as if it held whole lines.

#[test]
fn bug_68_an_answer_does_not_depend_on_how_its_bytes_arrive() {
    let body = concat!(
        "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"🍵 \"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"茶 \\uD83D\\uDE00\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}",
    );
    let whole = ask(CHAT, Reply::stream(body));
    assert_eq!(text_of(&whole.message), "🍵 茶 😀");
    assert_eq!(
        whole.message["stopReason"], "stop",
        "an event without a blank line behind it counts: {}",
        whole.message
    );
    assert_eq!(tokens(&whole.message), [3, 2, 0, 0, 5]);
    let bytes = body.as_bytes();
    let mut ways: Vec<Vec<Act>> = vec![bytes.iter().map(|byte| Act::Send(vec![*byte])).collect()];
    let middle = body.find('🍵').unwrap();
    for at in (middle..middle + 5).chain([5, body.find("\n\n").unwrap() + 1]) {
        ways.push(vec![
            Act::Send(bytes[..at].to_vec()),
            Act::Wait(Duration::from_millis(20)),
            Act::Send(bytes[at..].to_vec()),
        ]);
    }
    for mut acts in ways {
        acts.push(Act::End);
        let split = ask(CHAT, Reply::acts(acts));
        assert_eq!(split.updates, whole.updates);
        assert_eq!(text_of(&split.message), "🍵 茶 😀");
        assert_eq!(
            (&split.message["usage"], &split.message["stopReason"]),
            (&whole.message["usage"], &whole.message["stopReason"])
        );
    }
}

// 69: LF after a chunk-ending CR was taken as an empty line.

#[test]
fn bug_69_line_ends_comments_and_fields_follow_the_grammar_of_the_format() {
    let event = |text: &str| format!("data: {}", chunk(json!({"content": text})));
    let last = format!("data: {}", finish("stop"));
    for end in ["\n", "\r\n", "\r"] {
        // One event in three data lines, with comments inside; unknown names; the end with blanks behind it.
        let body = [
            "\u{feff}: hello",
            "",
            &event("a"),
            "",
            ": keep-alive",
            "event: telemetry",
            "id: 7",
            "retry: 10",
            "data:{\"choices\":",
            ": inside",
            "data",
            "data: [{\"delta\":{\"content\":\"b\"}}]}",
            "",
            "event: nothing",
            "",
            &last,
            "",
            "data: [DONE]  ",
            "",
            &event("never"),
            "",
            "",
        ]
        .join(end);
        let told = ask(CHAT, Reply::stream(body.clone()));
        assert_eq!(text_of(&told.message), "ab", "{end:?}: {}", told.message);
        let pieces = body.as_bytes().chunks(1).map(|piece| Act::Send(piece.to_vec())).chain([Act::End]).collect();
        assert_eq!(text_of(&ask(CHAT, Reply::acts(pieces)).message), "ab", "{end:?} byte by byte");
    }
}

// 71: truncated streams were either fatal after retries or looked like a complete answer.

fn stops(told: &Told) -> (&str, &str) {
    (told.message["stopReason"].as_str().unwrap(), told.message["errorMessage"].as_str().unwrap_or_default())
}

fn call(arguments: &str) -> Value {
    let call = json!({"index": 0, "id": "c1", "function": {"name": "weigh", "arguments": arguments}});
    chunk(json!({"tool_calls": [call]}))
}

#[test]
fn bug_71_a_chat_stream_without_an_end_is_a_failure() {
    let text = chunk(json!({"content": "half"}));
    for acts in [
        vec![Act::Send(events(std::slice::from_ref(&text)).into()), Act::Close],
        vec![Act::Send(events(std::slice::from_ref(&text)).into()), Act::Reset],
        vec![Act::Send(events(std::slice::from_ref(&text)).into()), Act::End],
        vec![Act::Send((events(std::slice::from_ref(&text)) + "data: [DONE]\n\n").into()), Act::End],
    ] {
        let told = ask(CHAT, Reply::acts(acts));
        let (stop, error) = stops(&told);
        assert_eq!((stop, text_of(&told.message).as_str()), ("error", "half"));
        assert!(branchline::agent::classify::is_retryable(error), "{error}");
    }
    let told = ask(CHAT, Reply::acts(vec![Act::Send(events(&[call("{\"crate\":")]).into()), Act::End]));
    assert_eq!(stops(&told).0, "error");
}

#[test]
fn bug_71_calls_of_a_truncated_stream_are_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let cut = Reply::acts(vec![Act::Send(events(&[call("{\"crate\":\"A\"}")]).into()), Act::Close]);
    let server = Server::start(vec![cut, Reply::stream(chat_text("again"))]);
    let session = session_with(&engine, dir.path(), model(&server, CHAT), |options| {
        options
            .settings(settings(json!({"retry": {"baseDelayMs": 1}})))
            .custom_tool(std::sync::Arc::new(Weigh::default()))
    });
    let result = say(&session, "go");
    assert_eq!(result.text, "again");
    let messages = server.last().body["messages"].clone();
    assert!(!messages.to_string().contains("tool_calls"), "the failed half is no part of the retry: {messages}");
    assert!(!lines(&session.path().unwrap()).iter().any(|line| line["message"]["role"] == "toolResult"));
}

#[test]
fn bug_71_the_end_of_a_chat_stream_is_read_with_care() {
    let text = chunk(json!({"content": "x"}));
    let done = |data: &[Value]| Reply::stream(events(data) + "data: [DONE]\n\n");
    let usage = json!({"id": "cc", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}});

    let told = ask(CHAT, done(&[text.clone(), finish("eos")]));
    assert_eq!(stops(&told), ("error", "Provider finish_reason: eos"));

    let told = ask(CHAT, done(&[call("{}"), finish("stop")]));
    assert_eq!(told.message["stopReason"], "toolUse", "calls win over stop");

    let told = ask(CHAT, done(&[text.clone(), finish("stop"), finish("stop"), usage.clone()]));
    assert_eq!((stops(&told).0, tokens(&told.message)), ("stop", [9, 1, 0, 0, 10]));

    let odd = [
        json!({"id": "cc"}),
        json!({"choices": null}),
        json!({"choices": [], "usage": null}),
        json!({"choices": [{}]}),
    ];
    let told = ask(CHAT, done(&[&odd[..], &[text.clone(), finish("stop")]].concat()));
    assert_eq!((stops(&told).0, tokens(&told.message)), ("stop", [0; 5]));
    assert_eq!(told.message["usage"]["cost"]["total"], 0.0, "zero, and a number");

    let told = ask(
        CHAT,
        done(&[
            text.clone(),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": -5, "completion_tokens": null, "prompt_tokens_details": {"cached_tokens": 7}}}),
        ]),
    );
    assert_eq!(tokens(&told.message), [0, 0, 7, 0, 7], "never negative");

    let flags = |model: &mut Model| {
        let flags = json!({"supportsFinishReason": false});
        model.compat = branchline::providers::Compat::new(flags.as_object().unwrap().clone());
    };
    let told = ask_with(CHAT, done(std::slice::from_ref(&text)), flags);
    assert_eq!(stops(&told).0, "stop", "a service that never says why it stops");
    let told = ask_with(CHAT, done(&[call("{}")]), flags);
    assert_eq!(stops(&told).0, "toolUse");
}

#[test]
fn bug_71_usage_of_zero_is_no_context_size() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let server = Server::start(vec![Reply::stream(chat_text("x"))]);
    let session = session(&engine, dir.path(), model(&server, CHAT));
    say(&session, &"long ".repeat(1000));
    let tokens = block_on(session.context_usage()).unwrap().tokens;
    assert!(tokens.is_some_and(|tokens| tokens > 1000), "an estimate stands in for zero: {tokens:?}");
}

#[test]
fn bug_71_responses_end_by_an_event_and_say_how() {
    let delta = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "half"});
    let end = |kind: &str, response: Value| json!({"type": kind, "response": response});
    let told = ask(RESPONSES, Reply::stream(named_events(std::slice::from_ref(&delta))));
    assert_eq!((stops(&told).0, text_of(&told.message).as_str()), ("error", "half"));
    assert!(branchline::agent::classify::is_retryable(stops(&told).1));

    let incomplete = |reason: &str| {
        let response = json!({"id": "r", "status": "incomplete", "incomplete_details": {"reason": reason}});
        named_events(&[delta.clone(), end("response.incomplete", response)])
    };
    assert_eq!(stops(&ask(RESPONSES, Reply::stream(incomplete("max_output_tokens")))).0, "length");
    let told = ask(RESPONSES, Reply::stream(incomplete("content_filter")));
    assert_eq!((stops(&told).0, stops(&told).1.contains("content_filter")), ("error", true));

    let failed =
        end("response.failed", json!({"status": "failed", "error": {"code": "server_error", "message": "boom"}}));
    assert_eq!(stops(&ask(RESPONSES, Reply::stream(named_events(&[failed])))), ("error", "server_error: boom"));
    let cancelled = end("response.cancelled", json!({"status": "cancelled"}));
    assert_eq!(stops(&ask(RESPONSES, Reply::stream(named_events(&[cancelled])))).0, "error");

    // A call that never became complete is not handed over (P423).
    let added = json!({"type": "response.output_item.added", "output_index": 0,
        "item": {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weigh", "arguments": "{"}});
    let completed = end("response.completed", json!({"id": "r", "status": "completed"}));
    let told = ask(RESPONSES, Reply::stream(named_events(&[added, completed])));
    assert_eq!(stops(&told).0, "error");
    // The service says that this is all, so it did not break off (P151).
    assert!(!branchline::agent::classify::is_retryable(stops(&told).1));
}

/// A tool that counts its calls.
#[derive(Default)]
struct Weigh {
    definition: std::sync::OnceLock<ToolDefinition>,
}

impl Tool for Weigh {
    fn definition(&self) -> &ToolDefinition {
        self.definition.get_or_init(|| {
            let schema = json!({"type": "object", "properties": {"crate": {"type": "string"}}});
            ToolDefinition::new("weigh", "Weighs a crate", schema)
        })
    }

    fn execute(&self, _: ToolCall) -> ToolFuture {
        Box::pin(async { Ok(ToolResult::text("12 kg")) })
    }
}

// 72: fallback ids by position collided with stored ids or with each other when history came from another provider.

fn assistant(api: &str, provider: &str, stop: &str, content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": api, "provider": provider, "model": "m",
        "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
        "stopReason": stop, "timestamp": 2})
}

fn result(id: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "weigh", "content": [{"type": "text", "text": "1"}],
        "isError": false, "timestamp": 3})
}

/// The body of the request a model gets when a session with these messages is continued.
fn continued(api: &str, provider: &str, messages: &[Value]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let server = Server::start(vec![Reply::stream(end_of(api))]);
    let mut model = model(&server, api);
    model.provider = provider.to_owned();
    model.reasoning = true;
    model.images = true;
    let name = model.full_name();
    engine.add_model(model).unwrap();
    let path = dir.path().join("history.jsonl");
    let mut text = json!({"type": "session", "version": 3, "id": "00000000-0000-7000-8000-000000000001",
        "timestamp": "2026-01-01T00:00:00.000Z", "cwd": dir.path()})
    .to_string();
    let mut parent = Value::Null;
    for (at, message) in messages.iter().enumerate() {
        let id = format!("{at:08x}");
        let entry = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", "message": message});
        text.push_str(&format!("\n{entry}"));
        parent = id.into();
    }
    std::fs::write(&path, text + "\n").unwrap();
    let options = no_retry(SessionOptions::new(dir.path()).model(name).thinking_level("off"));
    let session = block_on(engine.open_session(&path, options)).unwrap();
    say(&session, "go on");
    let before = std::fs::read_to_string(&path).unwrap();
    for message in messages {
        assert!(before.contains(&message.to_string()), "stored messages never change");
    }
    server.last().body
}

/// Ids of input items are unique, calls and results pair up, and everything has a length and alphabet the service takes.
fn check_items(input: &Value) -> Vec<Value> {
    let items = input.as_array().unwrap().clone();
    let mut ids = std::collections::HashSet::new();
    let mut open = Vec::new();
    for item in &items {
        if let Some(id) = item["id"].as_str() {
            assert!(ids.insert(id.to_owned()), "{id} twice in {input:#}");
            assert!(!id.is_empty() && id.len() <= 64, "{id}");
            assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{id}");
        }
        let call_id = item["call_id"].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("function_call") => {
                assert!(!call_id.is_empty() && call_id.len() <= 64, "{call_id}");
                open.push(call_id);
            }
            Some("function_call_output") => {
                let at = open.iter().position(|open| *open == call_id).expect("a call before its result");
                open.remove(at);
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "calls without a result: {open:?}");
    items
}

#[test]
fn bug_72_items_of_other_models_get_ids_of_their_own() {
    let user = json!({"role": "user", "content": "q", "timestamp": 1});
    let text = |text: &str, signature: Option<&str>| match signature {
        Some(signature) => json!({"type": "text", "text": text, "textSignature": signature}),
        None => json!({"type": "text", "text": text}),
    };
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "weigh", "arguments": {}});
    let thinking = |signature: &str| json!({"type": "thinking", "thinking": "t", "thinkingSignature": signature});
    let sealed = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}"#;
    let long = "i".repeat(90);
    let history = [
        user.clone(),
        assistant(
            "anthropic-messages",
            "x",
            "toolUse",
            json!([thinking("sig"), text("a", None), call("toolu.1:x"), text("b", None)]),
        ),
        result("toolu.1:x"),
        assistant(
            RESPONSES,
            "openai",
            "toolUse",
            json!([thinking(sealed), text("c", Some(r#"{"v":1,"id":"msg_pi_1"}"#)), call("call_2|fc_2")]),
        ),
        result("call_2|fc_2"),
        // The same ids once more, as copies of a session may have them.
        assistant(
            RESPONSES,
            "openai",
            "toolUse",
            json!([thinking(sealed), text("c", Some(r#"{"v":1,"id":"msg_pi_1"}"#)), call("call_2b|fc_2")]),
        ),
        result("call_2b|fc_2"),
        // Reasoning that never got its encrypted form.
        assistant(
            RESPONSES,
            "openai",
            "toolUse",
            json!([{"type": "thinking", "thinking": "lost"}, text("d", Some(r#"{"v":1,"id":"msg_9"}"#)), call("call_3|fc_3")]),
        ),
        result("call_3|fc_3"),
        assistant(
            RESPONSES,
            "other",
            "toolUse",
            json!([call(&format!("{long}|{long}")), call("a|b"), call("a|c"), call("")]),
        ),
        result(&format!("{long}|{long}")),
        result("a|b"),
        result("a|c"),
        result(""),
        assistant(RESPONSES, "openai", "stop", json!([text("e", Some(&format!(r#"{{"v":1,"id":"msg_{long}"}}"#)))])),
    ];
    for provider in ["openai", "demo"] {
        let body = continued(RESPONSES, provider, &history);
        let items = check_items(&body["input"]);
        let with = |text: &str| {
            items.iter().find(|item| item.pointer("/content/0/text") == Some(&text.into())).unwrap().clone()
        };
        let call = |id: &str| items.iter().find(|item| item["call_id"] == id).unwrap().clone();
        if provider == "openai" {
            assert_eq!(items.iter().filter(|item| item["type"] == "reasoning").count(), 2);
            assert_eq!(with("c")["id"], "msg_pi_1");
            assert_eq!(call("call_2")["id"], "fc_2");
            assert_ne!(with("d")["id"], "msg_9", "its reasoning is not there");
            assert!(call("call_3").get("id").is_none(), "an id needs its reasoning");
        } else {
            assert!(!items.iter().any(|item| item["type"] == "reasoning"), "foreign thinking stays away");
        }
    }
    let body = continued(CHAT, "demo", &history);
    let messages = body["messages"].as_array().unwrap();
    let mut calls: Vec<String> = Vec::new();
    for message in messages {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            calls.push(call["id"].as_str().unwrap().to_owned());
        }
        if message["role"] == "tool" {
            let at =
                calls.iter().position(|id| message["tool_call_id"] == id.as_str()).expect("a call before its result");
            calls.remove(at);
        }
    }
    assert!(calls.is_empty(), "{calls:?}");
}

#[test]
fn bug_72_results_without_a_call_and_calls_without_a_result() {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "weigh", "arguments": {}});
    let history = [
        json!({"role": "user", "content": "q", "timestamp": 1}),
        result("nobody|fc_0"),
        assistant(RESPONSES, "openai", "toolUse", json!([call("c1|fc_1")])),
        json!({"role": "user", "content": "r", "timestamp": 5}),
        assistant(RESPONSES, "openai", "error", json!([call("c2|fc_2")])),
        result("c2|fc_2"),
    ];
    check_items(&continued(RESPONSES, "openai", &history)["input"]);
}

// 74: quadratic work on a large write streamed in tiny pieces.

#[test]
fn bug_74_arguments_in_tiny_pieces_cost_linear_time() {
    const CHARACTERS: usize = 40_000;
    let text: String = "a\n\"é".chars().cycle().take(CHARACTERS).collect();
    let whole = json!({"text": text}).to_string();
    let mut body = events(&[json!({"id": "cc", "choices": [{"delta": {"tool_calls": [
        {"index": 0, "id": "c1", "function": {"name": "weigh", "arguments": ""}}]}}]})]);
    for piece in whole.chars() {
        body.push_str(&format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece.to_string()}}]}}]})
        ));
    }
    let end = events(&[finish("tool_calls")]) + "data: [DONE]\n\n";
    let told = ask(CHAT, Reply::stream(body.clone() + &end));
    assert_eq!(told.message["content"][0]["arguments"], json!({"text": text}), "the same as parsed at once");
    assert!(told.took < Duration::from_secs(60), "{:?}", told.took);

    // The same call, aborted in the middle.
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let server = Server::start(vec![Reply::acts(vec![Act::Send(body.into()), Act::Hang])]);
    let session = session_with(&engine, dir.path(), model(&server, CHAT), no_retry);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    block_on(session.abort()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(block_on(run.result()).unwrap().stop_reason, Some(branchline::message::StopReason::Aborted));
}

// 81: a proxy kept the socket open and tools started a minute late.

#[test]
fn bug_81_the_last_event_ends_the_answer_not_the_connection() {
    let completed =
        named_events(&[json!({"type": "response.completed", "response": {"id": "r", "status": "completed"}})]);
    let text = named_events(&[json!({"type": "response.output_text.delta", "delta": "x"})]);
    for (api, body) in [(CHAT, chat_text("x")), (RESPONSES, text + &completed)] {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let late = events(&[chunk(json!({"content": "late"}))]);
        let acts = vec![Act::Send(body.into()), Act::Send(late.into()), Act::Hang];
        let server = Server::start(vec![Reply::acts(acts)]);
        let session = session_with(&engine, dir.path(), model(&server, api), no_retry);
        let begun = Instant::now();
        let result = say(&session, "go");
        assert_eq!((result.text.as_str(), result.error_message), ("x", None), "{api}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{api} {:?}", begun.elapsed());
        let released = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            server.hung_up.load(Ordering::SeqCst) > 0
        });
        assert!(released, "{api}: the connection is released");
    }
}

// 82: overloaded_error after some deltas was not handled and the partial answer was stored as complete.

#[test]
fn bug_82_errors_inside_a_stream_are_errors() {
    let error = json!({"error": {"message": "The engine is overloaded", "type": "overloaded_error", "code": null}});
    let text = chunk(json!({"content": "part"}));
    for data in [vec![text.clone(), error.clone()], vec![error.clone()]] {
        let told = ask(CHAT, Reply::stream(events(&data) + "data: [DONE]\n\n"));
        let (stop, message) = stops(&told);
        assert_eq!(stop, "error");
        assert!(message.contains("overloaded_error") && message.contains("The engine is overloaded"), "{message}");
        assert!(branchline::agent::classify::is_retryable(message));
    }
    let routed = json!({"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "Upstream died"}}]});
    let told = ask(CHAT, Reply::stream(events(&[text.clone(), routed])));
    assert_eq!(stops(&told), ("error", "502: Upstream died"));

    let told = ask(CHAT, Reply::stream("data: {\"choices\": [oops\n\n"));
    assert!(stops(&told).0 == "error" && stops(&told).1.contains("[oops"), "{:?}", stops(&told));

    let page = Reply {
        headers: vec![("content-type".into(), "text/html".into())],
        ..Reply::stream("<html>Gateway is down</html>")
    };
    for api in [CHAT, RESPONSES] {
        let told = ask(api, page.clone());
        assert!(stops(&told).0 == "error" && stops(&told).1.contains("Gateway is down"), "{:?}", stops(&told));
        assert!(branchline::agent::classify::is_retryable(stops(&told).1), "{:?}", stops(&told));
    }
    for (data, expected) in [
        (json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}), "rate_limit_exceeded: slow"),
        (json!({"type": "error", "error": {"type": "server_error", "message": "died"}}), "server_error: died"),
        (json!({"error": {"code": 500, "message": "died", "type": "server_error"}}), "500: died"),
    ] {
        assert_eq!(stops(&ask(RESPONSES, Reply::stream(named_events(&[data])))), ("error", expected));
    }
}

#[test]
fn bug_82_failures_of_the_service_are_retried_and_told_once() {
    for failure in [
        Reply::refusal(503, &[], ""),
        Reply::refusal(529, &[], r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#),
        Reply::acts(vec![Act::Send(events(&[chunk(json!({"content": "fragment-7"}))]).into()), Act::Reset]),
        Reply::stream(events(&[
            chunk(json!({"content": "fragment-7"})),
            json!({"error": {"type": "overloaded_error"}}),
        ])),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let server = Server::start(vec![failure.clone(), failure.clone(), Reply::stream(chat_text("there"))]);
        let session = session_with(&engine, dir.path(), model(&server, CHAT), |options| {
            options.settings(settings(json!({"retry": {"baseDelayMs": 1}})))
        });
        let result = say(&session, "go");
        assert_eq!((result.text.as_str(), result.error_message), ("there", None));
        let messages = server.last().body["messages"].to_string();
        assert!(!messages.contains("fragment-7"), "{messages}");

        let server = Server::start(vec![failure]);
        let mut model = model(&server, CHAT);
        model.id = "n".to_owned();
        let session = session_with(&engine, dir.path(), model, |options| {
            options.settings(settings(json!({"retry": {"baseDelayMs": 1, "maxRetries": 2}})))
        });
        let result = say(&session, "go");
        assert!(result.error_message.is_some());
        assert_eq!(server.asked().len(), 3);
    }
}
