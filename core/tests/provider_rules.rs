//! Rules of the wire protocols that generated conversations and answers, compared with another program's, showed to be missed.

mod provider_support;

use std::sync::Arc;

use branchline::message::Message;
use branchline::providers::{BlockEvent, Compat, Model, StreamEvent, limits};
use branchline_canned::{Reply, Server, events};
use provider_support::*;
use serde_json::{Value, json};

const GEMINI: &str = "google-generative-ai";

fn gemini(id: &str, change: impl FnOnce(&mut Model, &mut branchline::providers::Request)) -> Value {
    let chunk = json!({"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]});
    let server = Server::start(vec![Reply::sse(events([("", chunk)]))]);
    let mut model = model(GEMINI, id, &server.url());
    let mut request = request(&model, vec![user("go")]);
    change(&mut model, &mut request);
    request.model = Arc::new(model);
    let answer = ask(&engine(), request);
    assert_eq!(answer.stop(), "stop", "{answer:?}");
    last_body(&server)
}

#[test]
fn p510_a_model_that_thinks_by_levels_can_be_off_unless_its_map_says_no() {
    let off = |id: &str, map: &[(&str, Option<&str>)]| {
        let body = gemini(id, |model, _| {
            let map = map.iter().map(|(level, word)| ((*level).to_owned(), word.map(str::to_owned)));
            model.set_thinking_level_map(map.collect());
        });
        body["generationConfig"]["thinkingConfig"].clone()
    };
    for id in ["gemini-2.5-flash", "gemini-3.1-flash", "models/gemini-3-pro-preview", "gemma4-27b"] {
        assert_eq!(off(id, &[]), json!({"thinkingBudget": 0}), "{id}");
    }
    for id in ["gemini-3.1-flash", "models/gemini-3-pro-preview", "gemma4-27b", "gemini-12-x"] {
        assert_eq!(off(id, &[("off", None), ("minimal", None)]), json!({"thinkingLevel": "LOW"}), "{id}");
    }
}

#[test]
fn p509_a_budget_is_that_of_the_level_the_map_names() {
    let body = gemini("gemini-2.5-flash", |model, request| {
        model.set_thinking_level_map([("high".to_owned(), Some("Low".to_owned()))].into());
        request.thinking_level = "high".to_owned();
    });
    assert_eq!(body["generationConfig"]["thinkingConfig"], json!({"includeThoughts": true, "thinkingBudget": 2048}));
}

#[test]
fn p511_a_strict_tool_is_declared_in_its_strict_form_where_arguments_are_validated() {
    let tool = |schema: Value| {
        json!({"name": "t", "description": "", "parameters": schema,
            "constrainedSampling": {"type": "json_schema", "strict": "prefer"}})
    };
    let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let untyped = json!({"type": "object", "properties": {"a": {"const": "x"}}});
    let sent = |id: &str, schema: &Value| {
        let body = gemini(id, |_, request| request.tools = Arc::new(vec![tool(schema.clone())]));
        let declared = body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"].clone();
        (declared["additionalProperties"].clone(), body["toolConfig"]["functionCallingConfig"]["mode"].clone())
    };
    assert_eq!(sent("gemini-3-pro", &plain), (false.into(), "VALIDATED".into()));
    assert_eq!(sent("gemini-3-pro", &untyped), (Value::Null, Value::Null), "it has no strict form");
    assert_eq!(sent("gemini-2.5-pro", &plain), (Value::Null, Value::Null));
}

#[test]
fn p520_an_empty_text_ends_thinking_and_p523_no_thoughts_are_none() {
    let parts = json!([{"text": "hm", "thought": true}, {"text": "", "thoughtSignature": "c2ln"}, {"text": "on", "thought": true}]);
    let usage = json!({"promptTokenCount": 8, "candidatesTokenCount": 2, "totalTokenCount": 10});
    let chunk = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage});
    let server = Server::start(vec![Reply::sse(events([("", chunk)]))]);
    let model = model(GEMINI, "gemini-3-pro", &server.url());
    let answer = ask(&engine(), request(&model, vec![user("go")]));
    let content = answer.message.get("content").unwrap();
    let kinds: Vec<&str> = content.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "text", "thinking"]);
    assert_eq!(content[1]["textSignature"], "c2ln");
    let told = |event: &StreamEvent| matches!(event, StreamEvent::Block(BlockEvent::TextDelta { delta, .. }) if delta.is_empty());
    assert!(answer.events.iter().any(told));
    assert_eq!(answer.message.usage().unwrap().reasoning, Some(0));
}

#[test]
fn p42_the_raw_reason_is_known_though_an_error_follows() {
    let server = Server::start(vec![Reply::sse(events([
        ("message_start", json!({"type": "message_start", "message": {"id": "1", "usage": {}}})),
        ("message_delta", json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})),
        ("error", json!({"type": "error", "error": {"type": "overloaded_error"}})),
    ]))]);
    let model = model("anthropic-messages", "m", &server.url());
    let answer = ask(&engine(), request(&model, vec![user("go")]));
    assert_eq!((answer.stop(), answer.message.get_str("rawStopReason")), ("error", Some("end_turn")));
}

#[test]
fn p217_each_later_system_message_is_one_of_its_own() {
    let stop = [
        ("message_delta", json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})),
        ("message_stop", json!({"type": "message_stop"})),
    ];
    let start = ("message_start", json!({"type": "message_start", "message": {"id": "1"}}));
    let server = Server::start(vec![Reply::sse(events([start].into_iter().chain(stop)))]);
    let mut model = model("anthropic-messages", "m", &server.url());
    model.compat = Compat::new(json!({"supportsMidConvoSystemMessages": true}).as_object().cloned().unwrap());
    let system = |text: &str| json!({"role": "system", "content": text, "timestamp": 1});
    ask(&engine(), request(&model, vec![system("base"), system("one"), user("go"), system("two")]));
    let body = last_body(&server);
    let texts: Vec<&Value> =
        body["messages"].as_array().unwrap().iter().skip(1).map(|message| &message["content"][0]["text"]).collect();
    assert_eq!(texts, ["one", "two"]);
}

#[test]
fn p101_refusals_without_a_body_and_with_a_plain_message() {
    let told = |api: &str, reply: Reply| {
        let server = Server::start(vec![reply]);
        let answer = ask(&engine(), request(&model(api, "m", &server.url()), vec![user("go")]));
        answer.error().to_owned()
    };
    let empty = || Reply { body: Vec::new(), ..Reply::status(413, &Value::Null) };
    assert_eq!(told("anthropic-messages", empty()), "413 status code (no body)");
    assert_eq!(told("openai-completions", empty()), "413 status code (no body)");
    assert_eq!(told("openai-responses", empty()), "demo API error (413): 413 status code (no body)");
    assert_eq!(told("anthropic-messages", Reply::status(404, &json!({"message": "top"}))), "404 top");
    let text = || Reply { body: b"down".to_vec(), ..Reply::status(404, &Value::Null) };
    assert_eq!(told("openai-completions", text()), "404 down");
    assert_eq!(told("openai-responses", text()), "demo API error (404): 404 down");
}

#[test]
fn p70_prompt_and_tools_of_a_system_message_are_rounded_by_themselves() {
    let message = |value: Value| limits::message_tokens(&Message::from_value(value).unwrap());
    // 4 + 2 + 5 characters of prompt; a null section says nothing.
    let prompt = json!({"role": "system", "content": "four", "sections": {"cwd": "fives", "gone": null}});
    assert_eq!(message(prompt), 4);
    // `[{"name":"a"}]`, 14 characters, on both sides.
    let tools =
        json!({"role": "system", "content": "x", "toolsAdded": [{"name": "a"}], "toolsRemoved": [{"name": "a"}]});
    assert_eq!(message(tools), 1 + 4 + 4);
    assert_eq!(message(json!({"role": "system", "content": "", "toolsAdded": []})), 0);
}

#[test]
fn p401_a_model_with_an_explicit_cache_is_asked_for_its_longest() {
    let done = json!({"type": "response.completed", "response": {"id": "r", "status": "completed"}});
    let server = Server::start(vec![Reply::sse(events([("response.completed", done)]))]);
    let mut model = model("openai-responses", "m", &server.url());
    model.compat = Compat::new(json!({"supportsExplicitPromptCacheMode": true}).as_object().cloned().unwrap());
    let mut request = request(&model, vec![user("go")]);
    Arc::make_mut(&mut request.options).cache_retention = branchline::providers::CacheRetention::Long;
    ask(&engine(), request);
    let body = last_body(&server);
    assert_eq!((&body["prompt_cache_options"], body.get("prompt_cache_retention")), (&json!({"ttl": "30m"}), None));
}

#[test]
fn p45_numbers_out_of_range_read_as_they_do_in_the_complete_text() {
    let shown = |text: &str| {
        let mut partial = branchline::providers::PartialJson::new();
        partial.push(text);
        partial.value()
    };
    assert_eq!(shown(r#"{"a":1e999}"#), Some(json!({"a": null})));
    assert_eq!(
        shown(r#"{"a":1e999}"#).unwrap(),
        Value::Object(branchline::providers::parse_arguments(r#"{"a":1e999}"#).object)
    );
    assert_eq!(shown("[truee"), Some(json!([])));
}
