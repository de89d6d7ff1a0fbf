//! Recorded bugs of Gemini clients, each against a real HTTP server.

mod provider_support;

use branchline::providers::Model;
use branchline_canned::{Reply, Server, events};
use provider_support::{ask, assistant, call, engine, last_body, model, request, result, user};
use serde_json::{Value, json};

const API: &str = "google-generative-ai";

fn reply(parts: Value) -> String {
    events([(
        "",
        json!({"responseId": "g", "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 2, "totalTokenCount": 10}}),
    )])
}

fn sent(id: &str, build: impl FnOnce(&Model) -> Vec<Value>) -> Value {
    let server = Server::start(vec![Reply::sse(reply(json!([{"text": "ok"}])))]);
    let model = model(API, id, &server.url());
    let answer = ask(&engine(), request(&model, build(&model)));
    assert_eq!(answer.stop(), "stop", "{answer:?}");
    last_body(&server)
}

#[test]
fn bug_84_as_many_results_as_calls_in_their_order() {
    for (id, nested) in [("gemini-3-pro", true), ("gemini-2.5-flash", false)] {
        let body = sent(id, |model| {
            let mut with_image = result("c1", "look", "seen");
            with_image["content"] =
                json!([{"type": "text", "text": "seen"}, {"type": "image", "data": "QQ==", "mimeType": "image/png"}]);
            let mut failed = result("c4", "look", "broke");
            failed["isError"] = true.into();
            vec![
                user("go"),
                assistant(
                    model,
                    json!([call("c1", "look"), call("c2", "look"), call("c3", "look"), call("c4", "look")]),
                ),
                result("c3", "look", "three"),
                with_image,
                user("and hurry"),
                failed,
            ]
        });
        let contents = body["contents"].as_array().unwrap();
        let parts = |at: usize| contents[at]["parts"].as_array().unwrap().clone();
        assert_eq!(parts(1).len(), 4, "{body}");
        let responses = parts(2);
        assert_eq!(responses.len(), 4, "{body}");
        let shown: Vec<&Value> = responses.iter().map(|part| &part["functionResponse"]["response"]).collect();
        assert_eq!(
            shown,
            [
                &json!({"output": "seen"}),
                &json!({"error": "No result provided"}),
                &json!({"output": "three"}),
                &json!({"error": "broke"})
            ]
        );
        assert_eq!(responses[0]["functionResponse"]["parts"].is_array(), nested);
        let last = contents.last().unwrap();
        assert_eq!(last["parts"], json!([{"text": "and hurry"}]));
        assert_eq!(contents.len(), if nested { 4 } else { 5 });
        assert!(
            contents
                .iter()
                .skip(3)
                .all(|turn| turn["role"] == "user" && turn["parts"][0].get("functionResponse").is_none())
        );
    }
}

#[test]
fn bug_84_ids_made_here_are_different() {
    let calls = json!([{"functionCall": {"name": "w", "args": {}}}, {"functionCall": {"name": "w", "args": {}}}, {"functionCall": {"name": "w", "id": "x"}},
        {"functionCall": {"name": "w", "id": "x"}}]);
    let server = Server::start(vec![Reply::sse(reply(calls))]);
    let model = model(API, "gemini-2.5-pro", &server.url());
    let engine = engine();
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..2 {
        let answer = ask(&engine, request(&model, vec![user("go")]));
        assert_eq!(answer.stop(), "toolUse");
        ids.extend(answer.message.tool_calls().map(|call| call.id.to_owned()).filter(|id| id != "x"));
    }
    assert_eq!(ids.len(), 6);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6);
}

#[test]
fn bug_85_signatures_stay_on_their_parts_and_with_their_model() {
    let parts = json!([{"text": "let me", "thoughtSignature": "dGV4"}, {"functionCall": {"name": "w", "id": "a", "args": {}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "w", "id": "b", "args": {}}}]);
    let server = Server::start(vec![Reply::sse(reply(parts))]);
    let first = model(API, "gemini-3-pro", &server.url());
    let engine = engine();
    let answer = ask(&engine, request(&first, vec![user("go")]));
    // As after storing and reading again.
    let stored: Value =
        serde_json::from_str(&answer.message.to_json().replace("\"text\":\"let me", " \"text\" : \"let me")).unwrap();
    let history = vec![user("go"), stored, result("a", "w", "1"), result("b", "w", "2")];
    ask(&engine, request(&first, history.clone()));
    let body = last_body(&server);
    let parts = body["contents"][1]["parts"].as_array().unwrap();
    let signatures: Vec<&Value> = parts.iter().map(|part| &part["thoughtSignature"]).collect();
    assert_eq!(signatures, [&json!("dGV4"), &json!("c2ln"), &Value::Null]);

    let other = model(API, "gemini-3-flash", &server.url());
    ask(&engine, request(&other, history));
    let body = last_body(&server);
    let parts = body["contents"][1]["parts"].as_array().unwrap();
    let signatures: Vec<&Value> = parts.iter().map(|part| &part["thoughtSignature"]).collect();
    assert_eq!(signatures, [&Value::Null, &json!("skip_thought_signature_validator"), &Value::Null]);
    assert_eq!(parts.len(), 3);
}

#[test]
fn bug_85_foreign_history() {
    let foreign = |model: &Model| {
        let mut message = assistant(
            model,
            json!([{"type": "thinking", "thinking": "t", "thinkingSignature": "QUJD"}, call("toolu|1", "w")]),
        );
        message["provider"] = "anthropic".into();
        vec![user("go"), message, result("toolu|1", "w", "r")]
    };
    let body = sent("gemini-3-pro", foreign);
    assert!(!body.to_string().contains("QUJD"), "{body}");
    let call = &body["contents"][1]["parts"][0];
    assert_eq!(
        (&call["functionCall"]["id"], &call["thoughtSignature"]),
        (&json!("toolu_1"), &json!("skip_thought_signature_validator"))
    );
    assert_eq!(body["contents"][2]["parts"][0]["functionResponse"]["id"], "toolu_1");
    let older = sent("gemini-2.5-pro", foreign);
    assert!(!older.to_string().contains("thoughtSignature") && !older.to_string().contains("toolu"), "{older}");
}

#[test]
fn bug_85_a_signature_in_a_part_without_text_is_kept() {
    let server = Server::start(vec![Reply::sse(
        events([("", json!({"candidates": [{"content": {"parts": [{"text": "hello"}]}}]}))])
            + &reply(json!([{"text": "", "thoughtSignature": "c2ln"}])),
    )]);
    let model = model(API, "gemini-3-pro", &server.url());
    let engine = engine();
    let answer = ask(&engine, request(&model, vec![user("go")]));
    assert_eq!(
        answer.message.get("content"),
        Some(&json!([{"type": "text", "text": "hello", "textSignature": "c2ln"}]))
    );
    ask(&engine, request(&model, vec![user("go"), answer.message.into_value(), user("on")]));
    assert_eq!(last_body(&server)["contents"][1]["parts"], json!([{"text": "hello", "thoughtSignature": "c2ln"}]));
}

#[test]
fn p524_blocked_prompts_and_errors_inside_the_stream() {
    let blocked = events([("", json!({"promptFeedback": {"blockReason": "SAFETY"}}))]);
    let error =
        events([("", json!({"error": {"code": 503, "message": "The model is overloaded", "status": "UNAVAILABLE"}}))]);
    for (body, words) in [(blocked, "Provider stopped with: SAFETY"), (error, "overloaded")] {
        let server = Server::start(vec![Reply::sse(body)]);
        let answer = ask(&engine(), request(&model(API, "gemini-2.5-pro", &server.url()), vec![user("go")]));
        assert!(answer.stop() == "error" && answer.error().contains(words), "{}", answer.error());
    }
}
