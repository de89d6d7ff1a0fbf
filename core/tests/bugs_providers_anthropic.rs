//! Recorded bugs of Anthropic clients, each against a real HTTP server.

mod provider_support;

use std::time::{Duration, Instant};

use branchline::agent::classify::is_retryable_response;
use branchline::providers::{Model, StreamEvent};
use branchline_canned::{Reply, Server, Then, events};
use futures::StreamExt;
use provider_support::{ask, ask_async, assistant, call, engine, last_body, model, request, result, user};
use serde_json::{Value, json};

const API: &str = "anthropic-messages";

fn start(usage: Value) -> (&'static str, Value) {
    ("message_start", json!({"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": usage}}))
}

fn block(block: Value) -> (&'static str, Value) {
    ("content_block_start", json!({"type": "content_block_start", "index": 0, "content_block": block}))
}

fn delta(delta: Value) -> (&'static str, Value) {
    ("content_block_delta", json!({"type": "content_block_delta", "index": 0, "delta": delta}))
}

fn block_stop() -> (&'static str, Value) {
    ("content_block_stop", json!({"type": "content_block_stop", "index": 0}))
}

fn message_delta(stop: &str, usage: Value) -> (&'static str, Value) {
    ("message_delta", json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}))
}

fn stop() -> (&'static str, Value) {
    ("message_stop", json!({"type": "message_stop"}))
}

fn text_reply(text: &str) -> String {
    events([
        start(json!({"input_tokens": 3, "output_tokens": 1})),
        block(json!({"type": "text", "text": ""})),
        delta(json!({"type": "text_delta", "text": text})),
        block_stop(),
        message_delta("end_turn", json!({"output_tokens": 2})),
        stop(),
    ])
}

fn serve(body: impl Into<Vec<u8>>) -> (Server, Model) {
    let server = Server::start(vec![Reply::sse(body)]);
    let model = model(API, "m", &server.url());
    (server, model)
}

/// What is sent for these messages.
fn sent(build: impl FnOnce(&Model) -> Vec<Value>) -> Value {
    let (server, model) = serve(text_reply("ok"));
    let answer = ask(&engine(), request(&model, build(&model)));
    assert_eq!(answer.stop(), "stop", "{answer:?}");
    last_body(&server)
}

fn blocks<'a>(body: &'a Value, kind: &str) -> Vec<&'a Value> {
    let messages = body["messages"].as_array().unwrap();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().into_iter().flatten());
    blocks.filter(|block| block["type"] == kind).collect()
}

#[test]
fn bug_75_foreign_ids_are_clean_and_different_and_fit_their_results() {
    let foreign = |content: Value| {
        json!({"role": "assistant", "content": content, "api": "openai-responses", "provider": "openai", "model": "g",
            "stopReason": "toolUse", "timestamp": 2})
    };
    let long = "x".repeat(90);
    let ids = ["call_AbC|fc_0f9d", "functions.write:0", &long, "", "a|b", "a_b", "a:b"];
    let calls: Vec<Value> = ids.iter().map(|id| call(id, "write")).collect();
    let mut content = vec![
        json!({"type": "thinking", "thinking": "hidden", "thinkingSignature": "{\"id\":\"rs_1\"}"}),
        json!({"type": "thinking", "thinking": "x", "thinkingSignature": "ENC", "redacted": true}),
    ];
    content.extend(calls);
    let mut history = vec![user("go"), foreign(content.into())];
    history.extend(ids.iter().map(|id| result(id, "write", &format!("result of {id}"))));
    let body = sent(|_| history);
    let uses = blocks(&body, "tool_use");
    let new: Vec<&str> = uses.iter().map(|block| block["id"].as_str().unwrap()).collect();
    assert_eq!(new.len(), ids.len());
    for (at, id) in new.iter().enumerate() {
        let clean = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!(!id.is_empty() && id.len() <= 64 && id.chars().all(clean), "{id}");
        assert!(!new[..at].contains(id), "{id} twice");
    }
    let results = blocks(&body, "tool_result");
    for ((id, new), result) in ids.iter().zip(&new).zip(results) {
        assert_eq!(result["tool_use_id"], *new);
        assert_eq!(result["content"], format!("result of {id}"));
    }
    assert!(blocks(&body, "thinking").is_empty() && blocks(&body, "redacted_thinking").is_empty());
}

#[test]
fn bug_75_own_ids_stay() {
    let body = sent(|model| {
        vec![user("go"), assistant(model, json!([call("toolu_1.x", "w")])), result("toolu_1.x", "w", "r")]
    });
    assert_eq!(blocks(&body, "tool_use")[0]["id"], "toolu_1.x");
}

#[test]
fn bug_76_nothing_empty_is_sent() {
    let body = sent(|model| {
        vec![
            json!({"role": "system", "content": "", "timestamp": 0}),
            user(""),
            json!({"role": "user", "content": [{"type": "text", "text": ""}, {"type": "image", "data": "QQ==", "mimeType": "image/png"}]}),
            assistant(model, json!([{"type": "text", "text": ""}, call("t1", "w"), call("t2", "w")])),
            json!({"role": "toolResult", "toolCallId": "t1", "toolName": "w", "content": [], "isError": false}),
            json!({"role": "toolResult", "toolCallId": "t2", "toolName": "w", "content": [{"type": "text", "text": ""}], "isError": false}),
            assistant(model, json!([{"type": "text", "text": "  \n"}, call("t3", "w")])),
            result("t3", "w", "r"),
            assistant(model, json!([])),
            user(" \n"),
        ]
    });
    assert!(body.get("system").is_none());
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 5, "{body}");
    for message in messages {
        assert!(message["content"].as_array().is_none_or(|content| !content.is_empty()));
    }
    assert!(blocks(&body, "text").is_empty());
    // The mark is on the last block that is left.
    assert_eq!(messages[4]["content"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(body.to_string().matches("cache_control").count(), 1);
}

#[test]
fn bug_78_an_aborted_turn_is_never_sent_unsigned() {
    let content = json!([{"type": "thinking", "thinking": "t1", "thinkingSignature": "s1"}, {"type": "text", "text": "part"},
        {"type": "thinking", "thinking": "t2"}]);
    let body = sent(|model| {
        let mut aborted = assistant(model, content.clone());
        aborted["stopReason"] = "aborted".into();
        vec![user("a"), aborted, user("b")]
    });
    assert!(blocks(&body, "thinking").is_empty() && !body.to_string().contains("t2"), "{body}");
    // A turn that was cut off by its limit stays; what is signed is sent as it came, what is not is no thinking.
    let odd = "e\u{301} \u{1f34b} \\u0041";
    let body = sent(|model| {
        let content = json!([{"type": "thinking", "thinking": odd, "thinkingSignature": "s1"}, {"type": "thinking", "thinking": "", "thinkingSignature": "s2"},
            {"type": "thinking", "thinking": "[x]", "thinkingSignature": "ENC", "redacted": true}, {"type": "thinking", "thinking": "t2"}]);
        let mut cut = assistant(model, content);
        cut["stopReason"] = "length".into();
        vec![user("a"), cut, user("b")]
    });
    let thinking = blocks(&body, "thinking");
    assert_eq!(thinking.len(), 2);
    assert_eq!((&thinking[0]["thinking"], &thinking[0]["signature"]), (&odd.into(), &"s1".into()));
    assert_eq!((&thinking[1]["thinking"], &thinking[1]["signature"]), (&"".into(), &"s2".into()));
    assert_eq!(blocks(&body, "redacted_thinking")[0]["data"], "ENC");
}

#[test]
fn bug_79_a_signature_without_text_is_kept_and_sent_back() {
    let (server, model) = serve(events([
        start(json!({})),
        block(json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(json!({"type": "signature_delta", "signature": "sig-"})),
        delta(json!({"type": "signature_delta", "signature": "1"})),
        block_stop(),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t1", "name": "w", "input": {}}}),
        ),
        ("content_block_stop", json!({"type": "content_block_stop", "index": 1})),
        message_delta("tool_use", json!({})),
        stop(),
    ]));
    let engine = engine();
    let answer = ask(&engine, request(&model, vec![user("go")]));
    assert_eq!(answer.stop(), "toolUse");
    let history = vec![user("go"), answer.message.into_value(), result("t1", "w", "r")];
    ask(&engine, request(&model, history.clone()));
    let body = last_body(&server);
    let content = &body["messages"][1]["content"];
    assert_eq!(content[0], json!({"type": "thinking", "thinking": "", "signature": "sig-1"}));
    assert_eq!(content[1]["type"], "tool_use");
    let other = Model { id: "other".to_owned(), ..model };
    ask(&engine, request(&other, history));
    assert!(!last_body(&server).to_string().contains("sig-1"));
}

#[test]
fn bug_81_the_logical_end_counts_not_the_transports() {
    let server = Server::start(vec![Reply::sse(text_reply("whole")).then(Then::Comments)]);
    let model = model(API, "m", &server.url());
    let begun = Instant::now();
    let answer = ask(&engine(), request(&model, vec![user("go")]));
    assert_eq!((answer.stop(), answer.text().as_str()), ("stop", "whole"));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(server.wait(|server| server.hangups() == 1), "the connection is released");

    let (_server, model) = serve(text_reply("x") + "event: foo\ndata: {bad\n\n" + &text_reply("again"));
    assert_eq!(ask(&engine(), request(&model, vec![user("go")])).text(), "x");

    // A stop reason alone is not the end.
    let body = text_reply("half");
    let (_server, model) = serve(body.split("event: message_stop").next().unwrap());
    let answer = ask(&engine(), request(&model, vec![user("go")]));
    assert_eq!((answer.stop(), answer.text().as_str()), ("error", "half"));
    assert!(is_retryable_response(&answer.message), "{}", answer.error());
}

#[test]
fn bug_82_errors_inside_an_answer() {
    let overloaded =
        ("error", json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    let begun = || {
        vec![
            start(json!({})),
            block(json!({"type": "text", "text": ""})),
            delta(json!({"type": "text_delta", "text": "part"})),
        ]
    };
    let mut late = begun();
    late.push(overloaded.clone());
    let (_server, with_late) = serve(events(late));
    let answer = ask(&engine(), request(&with_late, vec![user("go")]));
    assert_eq!((answer.stop(), answer.text().as_str()), ("error", "part"));
    assert!(answer.error().contains("overloaded_error") && is_retryable_response(&answer.message));

    let (_server, early) = serve(events([overloaded]));
    let answer = ask(&engine(), request(&early, vec![user("go")]));
    assert!(answer.error().contains("Overloaded") && answer.text().is_empty());

    let (_server, words) = serve(events(begun()) + "event: error\ndata: upstream connect error\n\n");
    let answer = ask(&engine(), request(&words, vec![user("go")]));
    assert_eq!((answer.stop(), answer.error()), ("error", "upstream connect error"));

    let (_server, page) = serve("<html><body>Bad gateway 502</body></html>");
    let answer = ask(&engine(), request(&page, vec![user("go")]));
    assert!(answer.stop() == "error" && answer.error().contains("Bad gateway"), "{}", answer.error());

    let server = Server::start(vec![Reply::sse(events(begun())).then(Then::Cut)]);
    let answer = ask(&engine(), request(&model(API, "m", &server.url()), vec![user("go")]));
    assert_eq!((answer.stop(), answer.text().as_str()), ("error", "part"));
    assert!(is_retryable_response(&answer.message), "{}", answer.error());

    for status in [529, 503] {
        let server = Server::start(vec![Reply::status(
            status,
            &json!({"type": "error", "error": {"type": "overloaded_error"}}),
        )]);
        let answer = ask(&engine(), request(&model(API, "m", &server.url()), vec![user("go")]));
        assert!(answer.error().starts_with(&status.to_string()) && is_retryable_response(&answer.message));
        assert!(!answer.events.iter().any(|event| matches!(event, StreamEvent::Start(_))));
    }
}

#[test]
fn bug_107_counts_are_cumulative() {
    let usage = |body: String| {
        let (_server, model) = serve(body);
        ask(&engine(), request(&model, vec![user("go")])).message.usage().unwrap()
    };
    let known = json!({"input_tokens": 100, "cache_read_input_tokens": 50, "output_tokens": 1});
    let end = |deltas: Vec<(&'static str, Value)>| {
        let mut all = vec![start(known.clone())];
        all.extend(deltas);
        all.push(stop());
        events(all)
    };
    let last = message_delta("end_turn", json!({"output_tokens": 20, "input_tokens": null}));
    let got = usage(end(vec![message_delta("end_turn", json!({"output_tokens": 7})), last]));
    assert_eq!((got.input, got.cache_read, got.output, got.total_tokens), (100, 50, 20, 170));
    assert!((got.cost.total - (100.0 * 3.0 + 50.0 * 0.3 + 20.0 * 15.0) / 1e6).abs() < 1e-12);
    let got = usage(end(vec![message_delta("end_turn", Value::Null)]));
    assert_eq!((got.input, got.output, got.total_tokens), (100, 1, 151));
    let no_usage = ("message_start", json!({"type": "message_start", "message": {"id": "x"}}));
    let got = usage(events([
        no_usage,
        message_delta("end_turn", json!({"output_tokens": -4.5, "input_tokens": "9"})),
        stop(),
    ]));
    assert_eq!((got.input, got.output, got.total_tokens), (0, 0, 0));
}

#[test]
fn bug_107_an_abort_keeps_what_was_known() {
    let body =
        events([start(json!({"input_tokens": 100, "output_tokens": 1})), block(json!({"type": "text", "text": "x"}))]);
    let server = Server::start(vec![Reply::sse(body).then(Then::Hang)]);
    let request = request(&model(API, "m", &server.url()), vec![user("go")]);
    let engine = engine();
    engine.add_model(Model::clone(&request.model)).unwrap();
    let message = branchline::block_on(async {
        let cancel = request.cancel.clone();
        let mut stream = engine.stream(request).unwrap();
        let mut last = None;
        while let Some(event) = stream.next().await {
            match event {
                StreamEvent::Block(_) => cancel.cancel(),
                StreamEvent::Done(message) => last = Some(message),
                _ => {}
            }
        }
        last.unwrap()
    });
    assert_eq!(message.get_str("stopReason"), Some("aborted"));
    assert_eq!(message.usage().map(|usage| (usage.input, usage.output, usage.total_tokens)), Some((100, 1, 101)));
    assert!(server.wait(|server| server.hangups() == 1), "the service is told");
}

#[test]
fn p228_strict_tools_that_are_too_much_are_sent_again_as_ordinary_ones() {
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "The compiled grammar is too large"}});
    let server = Server::start(vec![Reply::status(400, &refusal), Reply::sse(text_reply("ok"))]);
    let mut model = model(API, "m", &server.url());
    model.compat =
        branchline::providers::Compat::new(json!({"supportsStrictTools": true}).as_object().cloned().unwrap());
    let engine = engine();
    let ask = |session: &str| {
        let mut request = request(&model, vec![user("go")]);
        let tool = json!({"name": "w", "description": "", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
            "constrainedSampling": {"type": "json_schema", "strict": "prefer"}});
        request.tools = std::sync::Arc::new(vec![tool]);
        request.session_id = session.to_owned();
        branchline::block_on(ask_async(&engine, request))
    };
    assert_eq!(ask("s1").stop(), "stop");
    let strict = || server.received().iter().map(|it| it.json()["tools"][0]["strict"] == true).collect::<Vec<_>>();
    assert_eq!(strict(), [true, false]);
    ask("s1");
    ask("s2");
    assert_eq!(strict(), [true, false, false, true]);
}
