//! Events as real servers send them, and the forms of a request.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::message::Message;
use crate::providers::assemble::Assembler;
use crate::providers::protocol::Flow;
use crate::providers::sse::SseReader;
use crate::providers::{Model, RequestOptions, StreamEvent};

fn model(facts: Value) -> Model {
    let mut all = json!({"provider": "openai", "id": "m", "api": API, "baseUrl": "http://127.0.0.1:9/v1",
        "contextWindow": 100_000, "maxTokens": 8000, "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}});
    all.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
    Model::from_json(&all).unwrap()
}

fn request(model: Model, messages: Value) -> Request {
    let messages = messages.as_array().unwrap().iter();
    let messages = messages.map(|message| Arc::new(Message::from_value(message.clone()).unwrap())).collect();
    Request::new(Arc::new(model), messages)
}

fn user() -> Value {
    json!([{"role": "user", "content": "q", "timestamp": 1}])
}

fn body_of(request: &Request, key: Option<&str>) -> Value {
    let compat = ResponsesCompat::of(&request.model, key);
    let transcript = input::prepare(request, compat.system_in_place);
    Value::Object(request::body(request, &compat, &transcript).unwrap())
}

/// The final message, and the names of the block events.
fn played(events: &[Value]) -> Result<(Value, Vec<String>), String> {
    let mut out = Assembler::new(Arc::new(model(json!({}))));
    let mut stream = ResponsesStream::new([("patch".to_owned(), "text".to_owned())].into(), None);
    let mut reader = SseReader::default();
    for event in events {
        reader.push(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()).as_bytes());
    }
    while let Some(event) = reader.next_event().unwrap() {
        if stream.event(&event, &mut out)? == Flow::Done {
            break;
        }
    }
    stream.end(&mut out)?;
    let (mut last, mut told) = (Value::Null, Vec::new());
    while let Some(event) = out.pop() {
        match event {
            StreamEvent::Done(message) => last = message.into_value(),
            StreamEvent::Block(event) => told.push(event.type_name().to_owned()),
            _ => {}
        }
    }
    Ok((last, told))
}

fn completed(more: Value) -> Value {
    let mut response = json!({"id": "resp_1", "status": "completed"});
    response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"type": "response.completed", "response": response})
}

#[test]
fn events_of_llama_cpp_have_no_indices_and_no_arguments_done() {
    let (message, told) = played(&[
        json!({"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
        json!({"type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": "hm"}),
        json!({"type": "response.output_item.done", "item": {"type": "reasoning", "id": "rs_1", "summary": [],
            "content": [{"type": "reasoning_text", "text": "hm"}], "encrypted_content": ""}}),
        json!({"type": "response.output_item.added", "item": {"type": "message", "id": "msg_1", "content": []}}),
        json!({"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "delta": "ok"}),
        json!({"type": "response.output_item.done", "item": {"type": "message", "id": "msg_1",
            "content": [{"type": "output_text", "text": "ok"}]}}),
        json!({"type": "response.output_item.added", "item": {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_other", "delta": "{\"x\""}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_other", "delta": ":1}"}),
        json!({"type": "response.output_item.done", "item": {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{\"x\":1}"}}),
        completed(json!({})),
    ])
    .unwrap();
    assert_eq!(message["stopReason"], "toolUse");
    assert_eq!(message["content"][0]["thinking"], "hm");
    assert_eq!(
        message["content"][1],
        json!({"type": "text", "text": "ok", "textSignature": "{\"v\":1,\"id\":\"msg_1\"}"})
    );
    assert_eq!(message["content"][2], json!({"type": "toolCall", "id": "a|fc_1", "name": "f", "arguments": {"x": 1}}));
    let expected = [
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "text_start",
        "text_delta",
        "text_end",
        "toolcall_start",
        "toolcall_delta",
        "toolcall_delta",
        "toolcall_end",
    ];
    assert_eq!(told, expected);
}

#[test]
fn p422_a_missing_tail_is_told_and_another_text_replaces() {
    let call = |arguments: &str| json!({"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": arguments});
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": call("")});
    let piece = json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"x\""});
    let done =
        |arguments: &str| json!({"type": "response.output_item.done", "output_index": 0, "item": call(arguments)});
    let (message, told) = played(&[added.clone(), piece.clone(), done("{\"x\":1}"), completed(json!({}))]).unwrap();
    assert_eq!(message["content"][0]["arguments"], json!({"x": 1}));
    assert_eq!(told, ["toolcall_start", "toolcall_delta", "toolcall_delta", "toolcall_end"]);
    let (message, told) = played(&[added, piece, done("{\"y\":2}"), completed(json!({}))]).unwrap();
    assert_eq!(message["content"][0]["arguments"], json!({"y": 2}));
    assert_eq!(told, ["toolcall_start", "toolcall_delta", "toolcall_end"]);
    let (message, told) = played(&[done("{}"), completed(json!({}))]).unwrap();
    assert_eq!((message["stopReason"].as_str(), told.len()), (Some("toolUse"), 3), "an item that only ends");
}

#[test]
fn p132_input_of_a_grammar_tool_is_told_as_json() {
    let item = |input: &str| json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "patch", "input": input});
    let (message, _) = played(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": item("")}),
        json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "a\"b"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item("a\"b\nc")}),
        completed(json!({})),
    ])
    .unwrap();
    assert_eq!(message["content"][0]["arguments"], json!({"text": "a\"b\nc"}));
    assert_eq!(message["content"][0]["id"], "a|ctc_1");
}

#[test]
fn p421_encrypted_reasoning_may_come_with_the_whole_response() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]});
    let mut sealed = item.clone();
    sealed["encrypted_content"] = "E".into();
    let (message, _) = played(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "one"}),
        json!({"type": "response.reasoning_summary_part.done", "output_index": 0}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        completed(json!({"output": [sealed]})),
    ])
    .unwrap();
    let thinking = &message["content"][0];
    assert_eq!(thinking["thinking"], "one\n\ntwo");
    assert_eq!(serde_json::from_str::<Value>(thinking["thinkingSignature"].as_str().unwrap()).unwrap(), sealed);
}

#[test]
fn p424_usage_and_service_tiers() {
    let usage = json!({"input_tokens": 1_000_000, "output_tokens": 1_000_000,
        "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 50}});
    let cost = |tier: Option<&str>| {
        let (message, _) = played(&[completed(json!({"usage": usage, "service_tier": tier}))]).unwrap();
        assert_eq!(message["usage"]["input"], 999_850);
        assert_eq!(message["usage"]["totalTokens"], 2_000_000);
        message["usage"]["cost"]["output"].as_f64().unwrap()
    };
    assert_eq!([cost(None), cost(Some("flex")), cost(Some("priority")), cost(Some("default"))], [2.0, 1.0, 4.0, 2.0]);
}

#[test]
fn p401_p406_p407_fields_of_a_request() {
    let with = |facts: Value, level: &str, options: RequestOptions, key: &str| {
        let mut request = request(model(facts), user());
        request.thinking_level = level.to_owned();
        request.session_id = "s".to_owned();
        request.options = Arc::new(options);
        body_of(&request, Some(key))
    };
    let long = || RequestOptions {
        cache_retention: CacheRetention::Long,
        temperature: Some(0.5),
        ..RequestOptions::default()
    };
    let official = json!({"baseUrl": "https://api.openai.com/v1"});
    let body = with(official.clone(), "off", long(), "sk-1");
    assert_eq!((&body["prompt_cache_key"], &body["prompt_cache_retention"]), (&json!("s"), &json!("24h")));
    assert_eq!((&body["max_output_tokens"], &body["temperature"]), (&json!(8000), &json!(0.5)));
    assert!(body.get("reasoning").is_none());
    let body = with(official, "off", long(), "signed-in");
    for refused in ["prompt_cache_retention", "max_output_tokens", "temperature"] {
        assert!(body.get(refused).is_none(), "{refused}");
    }
    let reasoning = |map: Value| json!({"reasoning": true, "thinkingLevelMap": map});
    let usual = RequestOptions::default;
    assert_eq!(
        with(reasoning(json!({"low": "tiny"})), "low", usual(), "k")["reasoning"],
        json!({"effort": "tiny", "summary": "auto"})
    );
    assert_eq!(with(reasoning(json!({})), "off", usual(), "k")["reasoning"], json!({"effort": "none"}));
    assert_eq!(
        with(reasoning(json!({"off": "minimal"})), "off", usual(), "k")["reasoning"],
        json!({"effort": "minimal"})
    );
    let body = with(
        json!({"compat": {"supportsMaxOutputTokens": false}, "samplingParams": {"top_p": 0.5, "store": true}}),
        "off",
        usual(),
        "k",
    );
    assert_eq!((body.get("max_output_tokens"), &body["top_p"], &body["store"]), (None, &json!(0.5), &json!(true)));
    let none = RequestOptions { cache_retention: CacheRetention::None, ..RequestOptions::default() };
    let body = with(json!({"compat": {"supportsExplicitPromptCacheMode": true}}), "off", none, "k");
    assert_eq!((&body["prompt_cache_options"], body.get("prompt_cache_key")), (&json!({"mode": "explicit"}), None));
}

#[test]
fn p101_refusals_name_the_service() {
    let told = |provider: &str, body: &str| {
        let refusal = Refusal { status: 413, body: body.to_owned(), retry_after: None, should_retry: None };
        OpenAiResponses.refused(&request(model(json!({"provider": provider})), user()), &refusal)
    };
    assert_eq!(told("openai", r#"{"error":{"message":"big"}}"#), r#"OpenAI API error (413): {"message":"big"}"#);
    assert!(crate::agent::classify::is_overflow_text(&told("xai", ""), "xai"));
}
