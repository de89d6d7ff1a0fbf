//! What changes during a conversation and is told where it changes: tools, the level of thinking, and what a service holds
//! already (P218, P219, P409); and what an answer costs when others made or billed it (P62, P224).

mod provider_support;

use std::sync::Arc;

use branchline::Engine;
use branchline::message::Message;
use branchline::providers::{Compat, Model, Purpose, Request};
use branchline_canned::{Reply, Server, events};
use provider_support::*;
use serde_json::{Value, json};

const ANTHROPIC: &str = "anthropic-messages";

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "d", "parameters": {"type": "object", "properties": {}, "required": []}})
}

fn system(content: &str, add: &[&str], remove: &[&str]) -> Value {
    let remove: Vec<Value> = remove.iter().map(|name| json!({"name": name})).collect();
    json!({"role": "system", "content": content, "toolsAdded": add.iter().map(|name| tool(name)).collect::<Vec<_>>(),
        "toolsRemoved": remove, "timestamp": 1})
}

/// A model with these flags, and an engine and a server for it. Every request gets the same answer.
fn serve(api: &str, flags: Value, replies: Vec<Reply>) -> (Server, Model, Engine) {
    let server = Server::start(replies);
    let mut model = model(api, "m", &server.url());
    model.compat = Compat::new(flags.as_object().cloned().unwrap());
    (server, model, engine())
}

fn asking(model: &Model, messages: Vec<Value>, tools: &[&str]) -> Request {
    let mut request = request(model, messages);
    request.tools = Arc::new(tools.iter().map(|name| tool(name)).collect());
    request
}

fn claude(id: &str, served: &str, usage: Value) -> Reply {
    Reply::sse(events([
        ("message_start", json!({"type": "message_start", "message": {"id": id, "model": served, "usage": usage}})),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "yes"}}),
        ),
        ("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
        (
            "message_delta",
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 10}}),
        ),
        ("message_stop", json!({"type": "message_stop"})),
    ]))
}

fn yes(id: &str) -> Reply {
    claude(id, "m", json!({"input_tokens": 10, "output_tokens": 1}))
}

fn responses() -> Reply {
    let done = json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}});
    Reply::sse(events([("response.completed", done)]))
}

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect()
}

fn betas(server: &Server) -> String {
    server.received().last().unwrap().header("anthropic-beta").unwrap_or_default().to_owned()
}

#[test]
fn p218_changes_of_tools_leave_the_list_at_the_head_alone() {
    let flags = json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true});
    let (server, model, engine) = serve(ANTHROPIC, flags, vec![yes("1")]);
    let reply = || assistant(&model, json!([{"type": "text", "text": "b"}]));
    ask(&engine, asking(&model, vec![system("base", &["a", "b"], &[]), user("1")], &["a", "b"]));
    let first = last_body(&server);
    let changed = vec![
        system("base", &["a", "b"], &[]),
        user("1"),
        reply(),
        system("", &["c", "b"], &["a", "b"]),
        user("2"),
        reply(),
        system("more", &[], &["c"]),
        user("3"),
    ];
    assert_eq!(ask(&engine, asking(&model, changed, &["b"])).stop(), "stop");
    let body = last_body(&server);
    // One deferred tool keeps the place of those to come.
    assert_eq!(
        (names(&body["tools"])[..2].to_vec(), body["tools"][2]["defer_loading"].clone()),
        (vec!["a", "b"], true.into())
    );
    assert_eq!(first["tools"], body["tools"], "the cached prefix stays");
    assert!(body["tools"][1].get("cache_control").is_some());
    assert_eq!(betas(&server), "inline-tools-2026-09-15");
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    // Each stands in front of the answer that follows it.
    assert_eq!(roles, ["user", "assistant", "user", "system", "assistant", "user", "system"]);
    let told: Vec<(&str, &str)> = messages[3]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| {
            let tool = &block["tool"];
            (block["type"].as_str().unwrap(), tool["name"].as_str().or(tool["definition"]["name"].as_str()).unwrap())
        })
        .collect();
    // `b` is replaced, so it is not taken away.
    assert_eq!(told, [("tool_removal", "a"), ("tool_addition", "c"), ("tool_addition", "b")]);
    assert_eq!(messages[3]["content"][1]["tool"]["definition"]["input_schema"]["type"], "object");
    assert_eq!(messages[6]["content"][0]["text"], "more");
    assert_eq!(messages[6]["content"][1]["tool"], json!({"type": "tool_reference", "name": "c"}));
    assert!(messages[6]["content"][1].get("cache_control").is_some(), "the mark is at the end (P205)");
}

#[test]
fn p218_without_a_first_tool_or_with_other_tools_the_list_is_the_present_one() {
    let flags = json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true});
    let (server, model, engine) = serve(ANTHROPIC, flags, vec![yes("1")]);
    ask(&engine, asking(&model, vec![system("base", &[], &[]), user("1"), system("", &["a"], &[])], &["a"]));
    assert_eq!((names(&last_body(&server)["tools"]), betas(&server)), (vec!["a"], String::new()));
    // The host asks with other tools than the messages tell.
    ask(&engine, asking(&model, vec![system("base", &["a", "b"], &[]), user("1")], &["b"]));
    assert_eq!(names(&last_body(&server)["tools"]), ["b"]);
    // Tools that only the request names are those of the beginning.
    ask(&engine, asking(&model, vec![system("base", &[], &[]), user("1")], &["b"]));
    assert_eq!(names(&last_body(&server)["tools"]).len(), 2);
}

#[test]
fn p218_the_level_is_told_by_messages() {
    let flags = json!({"supportsMidConvoEffort": true});
    let (server, mut model, engine) = serve(ANTHROPIC, flags, vec![yes("1")]);
    model.set_thinking_level_map([("max".to_owned(), Some("max".to_owned()))].into());
    let mut earlier = assistant(&model, json!([{"type": "text", "text": "b"}]));
    earlier["providerThinkingLevel"] = "max".into();
    let other = assistant(&model, json!([{"type": "text", "text": "c"}]));
    let mut request = asking(&model, vec![user("1"), earlier, user("2"), other, user("3")], &[]);
    request.thinking_level = "minimal".to_owned();
    Arc::make_mut(&mut request.options).temperature = Some(0.5);
    let answer = ask(&engine, request.clone());
    assert_eq!(answer.message.get_str("providerThinkingLevel"), Some("low"));
    let body = last_body(&server);
    let effort = |level: &str| json!({"role": "system", "content": [], "output_config": {"effort": level}});
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(
        (&messages[1], &messages[2]["role"], messages.last().unwrap()),
        (&effort("max"), &"assistant".into(), &effort("low"))
    );
    assert_eq!(messages.len(), 7);
    assert!(messages[5]["content"][0].get("cache_control").is_some(), "{body}");
    // What stands in front never changes with the level.
    assert_eq!(body["output_config"], json!({"effort": "low"}));
    assert_eq!(body["thinking"]["block_binding"], json!({"prefix_mismatch_behavior": "drop_block"}));
    assert_eq!((&body["thinking"]["type"], body.get("temperature")), (&"adaptive".into(), None));
    assert_eq!(betas(&server), "mid-conversation-output-config-2026-07-01,thinking-binding-controls-2026-08-01");
    request.thinking_level = "off".to_owned();
    let answer = ask(&engine, request);
    let body = last_body(&server);
    assert_eq!((&body["thinking"], body.get("output_config")), (&json!({"type": "disabled"}), None));
    assert_eq!((body["messages"].as_array().unwrap().len(), answer.message.get("providerThinkingLevel")), (5, None));
}

/// Asks, and adds the answer to the conversation.
fn turn(engine: &Engine, model: &Model, messages: &mut Vec<Value>, text: &str) {
    messages.push(user(text));
    let mut request = asking(model, messages.clone(), &["a"]);
    request.session_id = "s".to_owned();
    let answer = ask(engine, request);
    assert_eq!(answer.stop(), "stop", "{answer:?}");
    messages.push(answer.message.into_value());
}

#[test]
fn p219_a_thread_sends_only_what_is_new() {
    let (server, model, engine) = serve(
        ANTHROPIC,
        json!({"supportsMessageThreads": true}),
        vec![yes("one"), yes("two"), yes("three"), yes("four")],
    );
    let mut messages = vec![system("base", &["a"], &[])];
    turn(&engine, &model, &mut messages, "1");
    let body = last_body(&server);
    assert_eq!((&body["thread"], names(&body["tools"])), (&json!({"type": "create"}), vec!["a"]));
    assert_eq!(betas(&server), "message-threads-2026-08-12");
    turn(&engine, &model, &mut messages, "2");
    let body = last_body(&server);
    assert_eq!(body["thread"], json!({"type": "continue", "previous_message_id": "one"}));
    assert_eq!((body["messages"].as_array().unwrap().len(), body.get("tools"), body.get("system")), (1, None, None));
    // Another branch of the conversation is no continuation.
    messages.truncate(3);
    turn(&engine, &model, &mut messages, "other");
    let body = last_body(&server);
    assert_eq!((&body["thread"]["type"], body["messages"].as_array().unwrap().len()), (&"create".into(), 3));
    // Nor is one with another prompt.
    messages[0]["content"] = "changed".into();
    turn(&engine, &model, &mut messages, "3");
    assert_eq!(last_body(&server)["thread"]["type"], "create");
}

#[test]
fn p219_only_where_it_was_said_or_is_known() {
    let (server, model, engine) = serve(ANTHROPIC, json!({}), vec![yes("one")]);
    turn(&engine, &model, &mut vec![], "1");
    assert_eq!(last_body(&server).get("thread"), None, "only the official address has them by itself");
    let mut model = model;
    model.compat = Compat::new(json!({"supportsMessageThreads": true}).as_object().cloned().unwrap());
    let mut request = asking(&model, vec![user("1")], &[]);
    ask(&engine, request.clone());
    assert_eq!(last_body(&server).get("thread"), None, "without a session");
    request.session_id = "s".to_owned();
    request.purpose = Purpose::Summary;
    ask(&engine, request.clone());
    assert_eq!(last_body(&server).get("thread"), None, "for a summary");
    request.purpose = Purpose::Turn;
    Arc::make_mut(&mut request.options).headers = vec![("Anthropic-Beta".to_owned(), Some("x".to_owned()))];
    ask(&engine, request);
    assert_eq!((last_body(&server).get("thread"), betas(&server).as_str()), (None, "x"), "with other betas (P203)");
}

#[test]
fn p219_a_refused_thread_is_sent_whole() {
    let refusal = |status: u16, details: Value, message: &str| {
        let error = json!({"type": "invalid_request_error", "message": message, "details": details});
        Reply::status(status, &json!({"type": "error", "error": error}))
    };
    let lost = refusal(404, json!({"error_code": "thread_not_found"}), "gone");
    let unknown = refusal(400, Value::Null, "thread: Extra inputs are not permitted");
    let replies = vec![
        yes("one"),
        lost,
        yes("two"),
        unknown,
        yes("three"),
        yes("four"),
        refusal(400, Value::Null, "prompt is too long"),
    ];
    let (server, model, engine) = serve(ANTHROPIC, json!({"supportsMessageThreads": true}), replies);
    let mut messages = vec![system("base", &["a"], &[])];
    let kinds = |server: &Server| -> Vec<String> {
        server.received().iter().map(|it| it.json()["thread"]["type"].as_str().unwrap_or("none").to_owned()).collect()
    };
    turn(&engine, &model, &mut messages, "1");
    turn(&engine, &model, &mut messages, "2");
    assert_eq!(kinds(&server), ["create", "continue", "create"]);
    assert_eq!(last_body(&server)["messages"].as_array().unwrap().len(), 3);
    turn(&engine, &model, &mut messages, "3");
    turn(&engine, &model, &mut messages, "4");
    assert_eq!(kinds(&server)[3..], ["continue", "none", "none"], "the session has no more threads");
    // Another refusal is no reason to ask again.
    let mut request = asking(&model, vec![user("1")], &[]);
    request.session_id = "t".to_owned();
    assert_eq!(ask(&engine, request).stop(), "error");
    assert_eq!(server.received().len(), 7);
}

#[test]
fn p224_a_fallback_that_answers_has_its_own_prices() {
    let flags = json!({"allowedFallbackModels": ["x", {"provider": "demo", "model": "cheap", "cost": {"input": 1, "output": 2}},
        {"provider": "elsewhere", "model": "foreign", "cost": {"input": 100, "output": 200}}, "y"]});
    let usage = || json!({"input_tokens": 1_000_000, "output_tokens": 1});
    let replies = vec![claude("1", "m", usage()), claude("2", "cheap", usage()), claude("3", "foreign", usage())];
    let (server, model, engine) = serve(ANTHROPIC, flags, replies);
    let costs: Vec<f64> = (0..3)
        .map(|_| {
            let answer = ask(&engine, asking(&model, vec![user("1")], &[]));
            answer.message.usage().unwrap().cost.input
        })
        .collect();
    assert_eq!(costs, [3.0, 1.0, 3.0]);
    assert_eq!(last_body(&server)["fallbacks"], json!([{"model": "x"}, {"model": "cheap"}, {"model": "foreign"}]));
    assert_eq!(betas(&server), "server-side-fallback-2026-07-01");
}

/// P224: a fallback that is named without prices has those its provider's model of that id has; one that nobody knows has those of
/// the model that was asked.
#[test]
fn p224_a_known_fallback_has_the_prices_of_the_catalogue() {
    let flags = json!({"allowedFallbackModels": ["cheap", {"model": "tiered"}, "unknown"]});
    let usage = || json!({"input_tokens": 1_000_000, "output_tokens": 1});
    let replies = ["cheap", "tiered", "unknown", "m"].map(|served| claude("1", served, usage())).to_vec();
    let (server, model, engine) = serve(ANTHROPIC, flags, replies);
    let tier = json!({"inputTokensAbove": 1000, "input": 7, "output": 0, "cacheRead": 0, "cacheWrite": 0});
    let entry =
        |id: &str, cost: Value| json!({"id": id, "api": ANTHROPIC, "baseUrl": "https://x.example", "cost": cost});
    let known = json!({"providers": {
        "demo": {"models": [entry("cheap", json!({"input": 0.5})), entry("tiered", json!({"input": 1, "tiers": [tier]}))]},
        "other": {"models": [entry("unknown", json!({"input": 50}))]},
    }});
    engine.configure_models(&known.to_string()).unwrap();
    let ask = || ask(&engine, asking(&model, vec![user("1")], &[]));
    let costs: Vec<f64> = (0..4).map(|_| ask().message.usage().unwrap().cost.input).collect();
    assert_eq!(costs, [0.5, 7.0, 3.0, 3.0]);
    assert_eq!(last_body(&server)["fallbacks"], json!([{"model": "cheap"}, {"model": "tiered"}, {"model": "unknown"}]));
}

#[test]
fn p62_a_router_bills_here_too() {
    let bill = json!({"input_tokens": 10, "output_tokens": 1, "cost": 0.5, "is_byok": true, "cost_details": {"upstream_inference_cost": 0.25}});
    let (_server, mut model, engine) = serve(ANTHROPIC, json!({}), vec![claude("1", "m", bill)]);
    let cost = |engine: &Engine, model: &Model| {
        let usage = ask(engine, asking(model, vec![user("1")], &[])).message.usage().unwrap();
        (usage.cost.total_from_provider, usage.cost.total, usage.output)
    };
    let (from_provider, total, _) = cost(&engine, &model);
    assert!(from_provider == Some(false) && total < 0.01);
    model.provider = "openrouter".to_owned();
    // The bill stands although later counts bring none.
    assert_eq!(cost(&engine, &model), (Some(true), 0.75, 10));
}

#[test]
fn p409_responses_declare_tools_where_they_are_added() {
    let flags =
        json!({"supportsMidConvoSystemMessages": true, "supportsAdditionalTools": true, "supportsToolSearch": true});
    let (server, model, engine) = serve("openai-responses", flags, vec![responses()]);
    let messages = vec![
        system("base", &["a", "b"], &[]),
        user("1"),
        system("", &[], &["a"]),
        user("2"),
        system("", &["c"], &[]),
        user("3"),
    ];
    assert_eq!(ask(&engine, asking(&model, messages, &["b", "c"])).stop(), "stop");
    let body = last_body(&server);
    assert_eq!(body.get("tools"), None, "an item cannot take away what the head declares");
    let input = body["input"].as_array().unwrap();
    assert_eq!(
        (&input[0]["type"], &input[0]["role"], names(&input[0]["tools"])),
        (&"additional_tools".into(), &"developer".into(), vec!["a", "b"])
    );
    assert_eq!(input[1], json!({"role": "developer", "content": "base"}));
    let told = input[3]["content"].as_str().unwrap();
    assert!(told.contains("gone") && told.ends_with(" a."), "{told}");
    let notice = input[5]["content"].as_str().unwrap();
    assert!(notice.contains("added") && notice.ends_with("gone: a."), "{notice}");
    assert_eq!((&input[6]["type"], names(&input[6]["tools"])), (&"additional_tools".into(), vec!["c"]));
    assert_eq!(input.len(), 8);
}

#[test]
fn p409_responses_add_tools_as_found_by_a_search() {
    let flags = json!({"supportsMidConvoSystemMessages": true, "supportsToolSearch": true});
    let (server, model, engine) = serve("openai-responses", flags, vec![responses()]);
    let messages = vec![system("base", &["a"], &[]), user("1"), system("", &["b", "c"], &[]), user("2")];
    ask(&engine, asking(&model, messages, &["a", "b", "c"]));
    let body = last_body(&server);
    assert_eq!(names(&body["tools"]), ["a"]);
    let input = body["input"].as_array().unwrap();
    let (search, found) = (&input[2], &input[3]);
    assert_eq!(
        (&search["type"], &search["arguments"]),
        (&"tool_search_call".into(), &json!({"query": "b c", "limit": 2}))
    );
    assert_eq!(
        (&found["type"], names(&found["tools"]), &found["tools"][0]["defer_loading"]),
        (&"tool_search_output".into(), vec!["b", "c"], &true.into())
    );
    assert_eq!(
        (&search["call_id"], &search["execution"], &found["status"]),
        (&found["call_id"], &"client".into(), &"completed".into())
    );
    // What it cannot tell makes the present list the head.
    let messages = vec![system("base", &["a"], &[]), user("1"), system("", &["b"], &["a"]), user("2")];
    ask(&engine, asking(&model, messages, &["b"]));
    let body = last_body(&server);
    assert_eq!((names(&body["tools"]), body["input"].as_array().unwrap().len()), (vec!["b"], 3));
}

#[test]
fn p409_responses_tell_the_level_where_it_changes() {
    let (server, model, engine) = serve("openai-responses", json!({"supportsMidConvoEffort": true}), vec![responses()]);
    let mut earlier = assistant(&model, json!([{"type": "text", "text": "b"}]));
    earlier["providerThinkingLevel"] = "low".into();
    let mut foreign = earlier.clone();
    foreign["model"] = "another".into();
    let mut request = asking(&model, vec![user("1"), earlier, user("2"), foreign, user("3")], &[]);
    request.thinking_level = "high".to_owned();
    let answer = ask(&engine, request.clone());
    assert_eq!(answer.message.get_str("providerThinkingLevel"), Some("high"));
    let body = last_body(&server);
    assert_eq!(body["reasoning"], json!({"effort": "medium", "summary": "auto"}));
    let update = |level: &str| json!({"type": "configuration_update", "reasoning": {"effort": level}});
    let input = body["input"].as_array().unwrap();
    let at: Vec<usize> = (0..input.len()).filter(|at| input[*at]["type"] == "configuration_update").collect();
    assert_eq!((at, &input[1], input.last().unwrap()), (vec![1, 6], &update("low"), &update("high")));
    request.thinking_level = "off".to_owned();
    ask(&engine, request);
    let body = last_body(&server);
    assert_eq!(body["reasoning"], json!({"effort": "none"}));
    assert!(!body.to_string().contains("configuration_update"));
}

#[test]
fn p8_chat_completions_declare_tools_where_they_are_added() {
    let flags = json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolAdditions": true});
    let chunk = json!({"id": "1", "choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]});
    let reply = Reply::sse(format!("data: {chunk}\n\ndata: [DONE]\n\n"));
    let (server, model, engine) = serve("openai-completions", flags, vec![reply]);
    let messages = vec![system("base", &["a"], &[]), user("1"), system("now", &["b"], &[]), user("2")];
    assert_eq!(ask(&engine, asking(&model, messages, &["a", "b"])).stop(), "stop");
    let body = last_body(&server);
    assert_eq!(names_of_functions(&body["tools"]), ["a"]);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!((&messages[2]["role"], names_of_functions(&messages[2]["tools"])), (&"system".into(), vec!["b"]));
    assert_eq!((messages[3]["content"].as_str(), messages.len()), (Some("now"), 5));
}

fn names_of_functions(tools: &Value) -> Vec<&str> {
    tools.as_array().into_iter().flatten().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

#[test]
fn p42_the_namespace_of_a_call_comes_back() {
    let item = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "a", "arguments": "{}", "namespace": "group"});
    let done = json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}});
    let reply = Reply::sse(events([
        ("response.output_item.added", json!({"type": "response.output_item.added", "output_index": 0, "item": item})),
        ("response.output_item.done", json!({"type": "response.output_item.done", "output_index": 0, "item": item})),
        ("response.completed", done),
    ]));
    let (server, model, engine) = serve("openai-responses", json!({}), vec![reply]);
    let answer = ask(&engine, asking(&model, vec![user("1")], &["a"]));
    assert_eq!(answer.message.get("content").unwrap()[0]["namespace"], "group");
    let message: Message = answer.message;
    let next = vec![user("1"), message.into_value(), result("c1|fc_1", "a", "x")];
    ask(&engine, asking(&model, next.clone(), &["a"]));
    assert_eq!(last_body(&server)["input"][1]["namespace"], "group");
    let mut other = model;
    other.id = "other".to_owned();
    ask(&engine, asking(&other, next, &["a"]));
    assert_eq!(last_body(&server)["input"][1].get("namespace"), None);
}

#[test]
fn p409_a_sign_in_takes_no_level_in_place_and_the_message_says_none() {
    let flags = json!({"supportsMidConvoEffort": true});
    let (server, mut model, _) = serve("openai-responses", flags, vec![responses()]);
    model.provider = "openai".to_owned();
    model.base_url = "https://api.openai.com/v1".to_owned();
    let credentials = Arc::new(SignedIn(server.url()));
    let engine = Engine::new(branchline::EngineOptions::default().worker_threads(1).credentials(credentials)).unwrap();
    let mut request = asking(&model, vec![user("1")], &[]);
    request.thinking_level = "high".to_owned();
    let answer = ask(&engine, request);
    assert_eq!((answer.stop(), answer.message.get("providerThinkingLevel")), ("stop", None));
    assert_eq!(last_body(&server)["reasoning"]["effort"], "high");
}

/// A person's sign-in, for a service that is elsewhere.
struct SignedIn(String);

impl branchline::providers::Credentials for SignedIn {
    fn resolve<'a>(&'a self, _: &'a Model) -> branchline::providers::AuthFuture<'a> {
        let mut auth = branchline::providers::Auth::key("token");
        auth.base_url = Some(self.0.clone());
        Box::pin(std::future::ready(Ok(auth)))
    }
}
