//! What needs the parts themselves: every way to split a stream, and the many forms of a request.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::message::Message;
use crate::providers::assemble::Assembler;
use crate::providers::protocol::Flow;
use crate::providers::sse::SseReader;
use crate::providers::{Model, RequestOptions, StreamEvent, ToolChoice};

fn model(facts: Value) -> Model {
    let mut all = json!({"provider": "demo", "id": "m", "api": API, "baseUrl": "http://127.0.0.1:9/v1",
        "contextWindow": 100_000, "maxTokens": 8000});
    all.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
    Model::from_json(&all).unwrap()
}

fn compat(flags: Value) -> Model {
    model(json!({"reasoning": true, "compat": flags}))
}

fn request(model: Model, messages: Value) -> Request {
    let messages = messages.as_array().unwrap().iter();
    let messages = messages.map(|message| Arc::new(Message::from_value(message.clone()).unwrap())).collect();
    Request::new(Arc::new(model), messages)
}

fn body_of(request: &Request) -> Value {
    let compat = ChatCompat::of(&request.model);
    let transcript = transcript(request, None, compat.system_in_place);
    let first: Value = serde_json::from_slice(&request::body(request, &compat, &transcript).unwrap()).unwrap();
    // What was worked out for the first request serves the second one.
    let again: Value = serde_json::from_slice(&request::body(request, &compat, &transcript).unwrap()).unwrap();
    assert_eq!(first, again);
    first
}

fn user() -> Value {
    json!([{"role": "user", "content": "q", "timestamp": 1}])
}

/// The final message of a stream whose bytes arrive in these pieces, and the text of its events.
fn played<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Value, String) {
    let mut out = Assembler::new(Arc::new(model(json!({}))));
    let mut stream =
        ChatStream::new(ChatStreamOptions { supports_finish_reason: true, ..ChatStreamOptions::default() });
    let mut reader = SseReader::default();
    let mut over = false;
    for piece in pieces {
        reader.push(piece);
        while let (false, Some(event)) = (over, reader.next_event().unwrap()) {
            over = stream.event(&event, &mut out).unwrap() == Flow::Done;
        }
    }
    if let (false, Some(event)) = (over, reader.finish()) {
        stream.event(&event, &mut out).unwrap();
    }
    stream.end(&mut out).unwrap();
    let mut told = String::new();
    let mut last = Value::Null;
    while let Some(event) = out.pop() {
        match event {
            StreamEvent::Done(message) => last = message.into_value(),
            event => told.push_str(&format!("{event:?}\n")),
        }
    }
    let object = last.as_object_mut().unwrap();
    object.shift_remove("timestamp");
    object.shift_remove("durationMs");
    (last, told)
}

#[test]
fn bug_68_every_split_of_the_bytes_reads_the_same() {
    let body = concat!(
        "\u{feff}: hi\r\ndata: {\"id\":\"c\",\"choices\":[{\"delta\":{\"reasoning\":\"茶\",\"content\":\"🍵\"}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\uD83D\\uDE00\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",",
        "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":\\\"é\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"}\"}}]},\n",
        "data: \"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]",
    )
    .as_bytes();
    let whole = played([body]);
    assert_eq!(whole.0["stopReason"], "toolUse");
    assert_eq!(whole.0["content"][1]["text"], "🍵😀");
    assert_eq!(whole.0["content"][2]["arguments"], json!({"x": "é"}));
    assert_eq!(played(body.chunks(1)), whole);
    for at in 1..body.len() {
        assert_eq!(played([&body[..at], &body[at..]]), whole, "split at {at}");
    }
}

fn streamed(data: &[Value]) -> Value {
    let text: String = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    played([text.as_bytes()]).0
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"delta": delta}]})
}

fn end() -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})
}

#[test]
fn p321_calls_are_told_apart_by_index_then_by_id() {
    let by_index = [
        json!({"index": 0, "function": {"arguments": "{\"a\":"}}),
        json!({"index": 1, "id": "two", "function": {"name": "g", "arguments": "{}"}}),
        json!({"index": 0, "id": "one", "function": {"name": "f", "arguments": "1}"}}),
    ];
    let by_id = [
        json!({"id": "one", "function": {"name": "f", "arguments": "{\"a\":"}}),
        json!({"function": {"arguments": "1"}}),
        json!({"id": "two", "function": {"name": "g", "arguments": {"b": 2}}}),
        json!({"id": "one", "function": {"arguments": "}"}}),
    ];
    let call = |id: &str, name: &str, arguments: Value| json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments});
    for (pieces, second) in [(&by_index[..], json!({})), (&by_id[..], json!({"b": 2}))] {
        let mut data: Vec<Value> = pieces.iter().map(|piece| delta(json!({"tool_calls": [piece]}))).collect();
        data.push(end());
        let content = &streamed(&data)["content"];
        assert_eq!(*content, json!([call("one", "f", json!({"a": 1})), call("two", "g", second)]));
    }
}

#[test]
fn p325_reasoning_details_are_kept_and_sent_back() {
    let details = |details: Value| delta(json!({"reasoning_details": details}));
    let text = |text: &str| json!({"type": "reasoning.text", "text": text, "index": 0});
    let message = streamed(&[
        delta(json!({"reasoning": "ab", "reasoning_details": [text("ab")]})),
        details(json!([text("c"), {"type": "mystery", "x": 1}])),
        details(json!([{"type": "reasoning.text", "signature": "S", "index": 0}])),
        details(json!([{"type": "reasoning.encrypted", "data": "E1"}, {"type": "reasoning.encrypted", "data": "E2"}])),
        delta(json!({"content": "ok"})),
        end(),
    ]);
    let kept = json!([{"type": "reasoning.text", "text": "abc", "index": 0, "signature": "S"},
        {"type": "reasoning.encrypted", "data": "E1"}, {"type": "reasoning.encrypted", "data": "E2"}]);
    let thinking = &message["content"][0];
    // What is to be read comes in its own field; the details are for the service.
    assert_eq!(thinking["thinking"], "ab");
    assert_eq!(serde_json::from_str::<Value>(thinking["thinkingSignature"].as_str().unwrap()).unwrap(), kept);

    let mut stored = message.clone();
    stored["timestamp"] = 2.into();
    let body = body_of(&request(compat(json!({})), json!([user()[0], stored, user()[0]])));
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "ok", "reasoning_details": kept}));
}

#[test]
fn p310_each_format_says_how_much_to_think() {
    let asked = |flags: Value, level: &str, map: Value| {
        let mut facts = json!({"reasoning": true, "compat": flags});
        facts["thinkingLevelMap"] = map;
        let mut request = request(model(facts), user());
        request.thinking_level = level.to_owned();
        let mut body = body_of(&request);
        let object = body.as_object_mut().unwrap();
        for usual in ["model", "messages", "stream", "stream_options", "store", "max_completion_tokens", "max_tokens"] {
            object.shift_remove(usual);
        }
        body
    };
    let format = |name: &str| json!({"thinkingFormat": name});
    let none = || json!({});
    for (flags, map, on, off) in [
        (format("openai"), none(), json!({"reasoning_effort": "high"}), json!({})),
        (
            format("openai"),
            json!({"off": "none", "high": "max"}),
            json!({"reasoning_effort": "max"}),
            json!({"reasoning_effort": "none"}),
        ),
        (json!({"supportsReasoningEffort": false}), none(), json!({}), json!({})),
        (
            format("zai"),
            none(),
            json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "high"}),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            format("qwen"),
            none(),
            json!({"enable_thinking": true, "reasoning_effort": "high"}),
            json!({"enable_thinking": false}),
        ),
        (
            format("qwen-chat-template"),
            none(),
            json!({"chat_template_kwargs": {"enable_thinking": true, "preserve_thinking": true}}),
            json!({"chat_template_kwargs": {"enable_thinking": false, "preserve_thinking": true}}),
        ),
        (
            format("deepseek"),
            none(),
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            format("openrouter"),
            none(),
            json!({"reasoning": {"effort": "high"}}),
            json!({"reasoning": {"effort": "none"}}),
        ),
        (
            format("together"),
            none(),
            json!({"reasoning": {"enabled": true}, "reasoning_effort": "high"}),
            json!({"reasoning": {"enabled": false}}),
        ),
        (format("string-thinking"), none(), json!({"thinking": "high"}), json!({"thinking": "none"})),
        (format("ant-ling"), none(), json!({}), json!({})),
        (format("ant-ling"), json!({"high": "deep"}), json!({"reasoning": {"effort": "deep"}}), json!({})),
        (
            json!({"thinkingFormat": "chat-template", "chatTemplateKwargs": {"a": 1, "on": {"$var": "thinking.enabled"},
            "how": {"$var": "thinking.effort", "omitWhenOff": true}, "room": {"$var": "thinking.budget"}}}),
            none(),
            json!({"chat_template_kwargs": {"a": 1, "on": true, "how": "high", "room": 6976}}),
            json!({"chat_template_kwargs": {"a": 1, "on": false}}),
        ),
        (
            json!({"thinkingFormat": "baseten", "chatTemplateArgs": {"on": {"$var": "thinking.enabled"}}}),
            none(),
            json!({"reasoning_effort": "high", "chat_template_args": {"on": true}}),
            json!({"chat_template_args": {"on": false}}),
        ),
        (
            json!({"supportsThinkingTokenBudget": true}),
            none(),
            json!({"reasoning_effort": "high", "thinking_token_budget": 6976}),
            json!({}),
        ),
    ] {
        assert_eq!(asked(flags.clone(), "high", map.clone()), on, "{flags} on");
        assert_eq!(asked(flags.clone(), "off", map), off, "{flags} off");
    }
    let cannot_be_off = json!({"off": null});
    assert_eq!(asked(format("openrouter"), "low", cannot_be_off), json!({"reasoning": {"effort": "low"}}));
}

#[test]
fn p313_keys_and_marks_of_caches() {
    let with = |model: Model, retention: CacheRetention| {
        let mut request = request(model, user());
        request.session_id = "é".repeat(70);
        request.options = Arc::new(RequestOptions { cache_retention: retention, ..RequestOptions::default() });
        let body = body_of(&request);
        (body["prompt_cache_key"].as_str().map(|key| key.chars().count()), body["prompt_cache_retention"] == "24h")
    };
    let official = || model(json!({"provider": "openai", "baseUrl": "https://api.openai.com/v1"}));
    assert_eq!(with(official(), CacheRetention::Short), (Some(64), false));
    assert_eq!(with(official(), CacheRetention::Long), (Some(64), true));
    assert_eq!(with(official(), CacheRetention::None), (None, false));
    assert_eq!(with(model(json!({})), CacheRetention::Short), (None, false));
    assert_eq!(with(model(json!({})), CacheRetention::Long), (Some(64), true));
    assert_eq!(with(compat(json!({"supportsLongCacheRetention": false})), CacheRetention::Long), (None, false));
    assert_eq!(with(compat(json!({"promptCacheKeyMode": "enabled"})), CacheRetention::Short), (Some(64), false));
    assert_eq!(with(compat(json!({"promptCacheKeyMode": "disabled"})), CacheRetention::Long), (None, true));
}

#[test]
fn p305_p312_tools_and_fields_of_single_services() {
    let grammar = json!({"type": "grammar", "variants": {"openai_lark": "start: \"x\""}});
    let tool = json!({"name": "patch", "description": "d", "constrainedSampling": grammar,
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}});
    let call = json!({"type": "toolCall", "id": "c1", "name": "patch", "arguments": {"text": "x"}});
    let made = json!({"role": "assistant", "content": [call], "api": API, "provider": "demo", "model": "m",
        "stopReason": "toolUse", "timestamp": 2});
    let history = json!([user()[0], made]);
    let mut request = request(
        compat(json!({"supportsOpenAIGrammarTools": true, "zaiToolStream": true, "vllmPriority": 3,
        "openRouterRouting": {"only": ["a"]}, "vercelGatewayRouting": {"order": ["b"], "x": 1}})),
        history.clone(),
    );
    request.tools = Arc::new(vec![tool.clone()]);
    request.options = Arc::new(RequestOptions { tool_choice: Some(ToolChoice::None), ..RequestOptions::default() });
    let body = body_of(&request);
    let format = json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: \"x\""}});
    assert_eq!(
        body["tools"][0],
        json!({"type": "custom", "custom": {"name": "patch", "description": "d", "format": format}})
    );
    let sent = &body["messages"][1]["tool_calls"][0];
    assert_eq!(*sent, json!({"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "x"}}));
    assert_eq!(
        (&body["tool_stream"], &body["priority"], &body["tool_choice"]),
        (&json!(true), &json!(3), &json!("none"))
    );
    assert_eq!(
        (&body["provider"], &body["providerOptions"]),
        (&json!({"only": ["a"]}), &json!({"gateway": {"order": ["b"]}}))
    );

    let mut plain = super::tests::request(compat(json!({})), history.clone());
    plain.tools = Arc::new(vec![tool]);
    assert_eq!(body_of(&plain)["tools"][0]["function"]["name"], "patch", "without support it is a function");

    let empty = super::tests::request(compat(json!({"requiresToolsWithToolHistory": true})), history);
    assert_eq!(body_of(&empty)["tools"], json!([]));

    let mut strict = super::tests::request(compat(json!({})), user());
    strict.tools = Arc::new(vec![json!({"name": "t", "description": "", "parameters": {"type": "object"},
        "constrainedSampling": {"type": "json_schema", "strict": "require"}})]);
    let compat = ChatCompat::of(&strict.model);
    let transcript = transcript(&strict, None, false);
    assert!(request::body(&strict, &compat, &transcript).unwrap_err().contains("requires strict"), "P130");
}

#[test]
fn p307_p308_what_odd_servers_want_of_a_history() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning"});
    let made = json!({"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}], "api": API,
        "provider": "demo", "model": "m", "stopReason": "stop", "timestamp": 2});
    let history = json!([user()[0], made, {"role": "user", "content": [{"type": "text", "text": ""}], "timestamp": 3}]);
    let sent = |flags: Value| body_of(&request(compat(flags), history.clone()))["messages"].clone();
    let messages = sent(json!({}));
    assert_eq!(messages[1], json!({"role": "assistant", "content": "a", "reasoning": "hm"}));
    assert_eq!(messages.as_array().unwrap().len(), 2, "an empty message is left out");
    let parts = json!([{"type": "text", "text": "hm"}, {"type": "text", "text": "a"}]);
    assert_eq!(sent(json!({"requiresThinkingAsText": true}))[1]["content"], parts);
    let also = sent(json!({"requiresReasoningContentOnAssistantMessages": true}));
    assert_eq!(also[1], json!({"role": "assistant", "content": "a", "reasoning": "hm", "reasoning_content": ""}));
}

#[test]
fn p308_details_go_back_beside_thinking_as_text() {
    let signature = r#"[{"type":"reasoning.text","text":"hm"}]"#;
    let content = json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": signature}]);
    let stored =
        json!({"role": "assistant", "content": content, "api": API, "provider": "demo", "model": "m", "timestamp": 2});
    let flags = json!({"requiresThinkingAsText": true, "requiresReasoningContentOnAssistantMessages": true});
    let mut model = compat(flags);
    model.provider = "demo".to_owned();
    model.id = "m".to_owned();
    let sent = body_of(&request(model, json!([user()[0], stored, user()[0]])));
    let sent = &sent["messages"][1];
    assert_eq!(sent["content"], json!([{"type": "text", "text": "hm"}]));
    assert_eq!(sent["reasoning_details"], json!([{"type": "reasoning.text", "text": "hm"}]));
    assert_eq!(sent["reasoning_content"], "");
}

#[test]
fn p310_off_says_nothing_where_a_model_cannot_be_off() {
    let mut model = model(json!({"reasoning": true}));
    model.set_thinking_level_map([("off".to_owned(), None)].into());
    let mut request = request(model, user());
    request.thinking_level = "off".to_owned();
    assert_eq!(body_of(&request).get("reasoning_effort"), None);
    request.thinking_level = "minimal".to_owned();
    assert_eq!(body_of(&request)["reasoning_effort"], "minimal");
    for name in ["deepseek", "string-thinking", "openrouter"] {
        let mut model = compat(json!({"thinkingFormat": name}));
        model.set_thinking_level_map([("off".to_owned(), None)].into());
        let body = body_of(&self::request(model, user()));
        assert_eq!((body.get("thinking"), body.get("reasoning")), (None, None), "{name}");
    }
    let mut request = self::request(compat(json!({"thinkingFormat": "baseten"})), user());
    request.thinking_level = "low".to_owned();
    assert_eq!(body_of(&request)["reasoning_effort"], "low");
}

#[test]
fn p320_the_first_other_model_is_the_one_that_answered() {
    let chunk = |model: &str| json!({"id": "1", "model": model, "choices": [{"delta": {"content": "x"}}]});
    let message = streamed(&[chunk("m"), chunk("one"), chunk("two"), end()]);
    assert_eq!(message["responseModel"], "one");
}

#[test]
fn p101_refusals_are_told_with_status_and_error() {
    let told = |status: u16, body: &str| {
        let refusal = Refusal { status, body: body.to_owned(), retry_after: None, should_retry: None };
        OpenAiChat.refused(&request(model(json!({})), user()), &refusal)
    };
    assert_eq!(told(403, r#"{"error":{"message":"nope"}}"#), r#"403: {"message":"nope"}"#);
    assert_eq!(told(503, "busy\n"), "503 busy");
    assert_eq!(told(503, r#"{"error":"busy"}"#), r#"503 "busy""#);
    assert_eq!(told(400, ""), "400 status code (no body)");
    let routed = told(429, r#"{"error":{"message":"Provider returned error","metadata":{"raw":"say \"please\""}}}"#);
    assert!(routed.ends_with("\nsay \"please\""), "{routed}");
}

#[test]
fn p314_parameters_of_the_model_win_over_the_conversation_too() {
    let mut model = model(json!({}));
    model.sampling_params.insert("messages".to_owned(), json!([{"role": "user", "content": "other"}]));
    let body = body_of(&request(model, user()));
    assert_eq!(body["messages"], json!([{"role": "user", "content": "other"}]));
}

#[test]
fn what_is_kept_of_a_message_is_forgotten_when_it_changes() {
    let first = request(model(json!({})), user());
    assert_eq!(body_of(&first)["messages"][0]["content"], "q");
    let mut message = Message::clone(&first.messages[0]);
    message.set("content", "another");
    let second = Request { messages: Arc::new(vec![Arc::new(message)]), ..first.clone() };
    assert_eq!(body_of(&second)["messages"][0]["content"], "another");
    // Another form of the same message is made anew.
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let seen = request(
        Model { images: true, ..model(json!({})) },
        json!([{"role": "user", "content": [image], "timestamp": 1}]),
    );
    assert_eq!(body_of(&seen)["messages"][0]["content"][0]["type"], "image_url");
    let blind = Request { model: Arc::new(Model { images: false, ..model(json!({})) }), ..seen.clone() };
    assert_eq!(body_of(&blind)["messages"][0]["content"][0]["type"], "text");
    assert_eq!(body_of(&seen)["messages"][0]["content"][0]["type"], "image_url");
}

#[test]
fn a_delta_that_is_no_object_says_nothing() {
    for odd in ["[]", "null", "\"x\"", "7", "-1.5", "false", "{\"content\":\"no\"},\"delta\":{}"] {
        let text = format!(
            "data: {{\"choices\":[{{\"delta\":{odd}}}]}}\n\n\
             data: {{\"choices\":[{{\"delta\":{{\"content\":\"yes\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
        );
        let (message, _) = played([text.as_bytes()]);
        assert_eq!(message["content"], json!([{"type": "text", "text": "yes"}]), "{odd}");
        assert_eq!(message["stopReason"], "stop", "{odd}");
    }
    let (message, _) =
        played([&b"data: {\"choices\":[7]}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n"[..]]);
    assert_eq!(message["stopReason"], "stop");
}
