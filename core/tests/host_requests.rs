//! Tools that a host in another language provides: requests, answers, cancellation, and what becomes of those nobody
//! answers.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use branchline::host::{HostTool, Notice, Request, RequestKind, Requests, requests};
use branchline::tools::{Tool, ToolDefinition, ToolResult, Toolbox};
use branchline::{
    BranchOptions, BranchPoint, Engine, EngineOptions, ErrorCode, PromptOptions, SessionOptions, block_on,
};
use serde_json::{Value, json};

fn definition() -> Value {
    json!({
        "name": "weather",
        "description": "Current weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    })
}

fn tool() -> (Arc<dyn Tool>, Requests) {
    let (asker, requests) = requests();
    (Arc::new(HostTool::new(definition(), asker, 7).unwrap()), requests)
}

fn toolbox() -> (Toolbox, Requests) {
    let (tool, requests) = tool();
    let tools = Toolbox::new(".").unwrap();
    tools.add(tool);
    (tools, requests)
}

fn asked(requests: &Requests) -> Request {
    match block_on(requests.next()) {
        Some(Notice::Asked(request)) => request,
        other => panic!("{other:?}"),
    }
}

/// Calls the tool on a thread of its own.
fn call(tools: &Toolbox) -> thread::JoinHandle<ToolResult> {
    let tools = tools.clone();
    thread::spawn(move || block_on(tools.call("weather", json!({"city": "Kyiv"}))))
}

#[test]
fn a_call_is_a_request_that_any_thread_answers() {
    let (tools, requests) = toolbox();
    let calling = call(&tools);
    let request = asked(&requests);
    assert_eq!((request.kind(), request.target(), request.name()), (RequestKind::Tool, 7, "weather"));
    assert_eq!(request.arguments(), &json!({"city": "Kyiv"}));
    assert!(request.cwd().is_absolute() && request.session_id().is_empty() && !request.is_cancelled());
    assert!(request.progress(json!("looking")).unwrap());
    request.complete(json!({"content": "sunny", "details": {"at": 9_007_199_254_740_993_u64}})).unwrap();
    let again = request.complete(json!("rain")).unwrap_err();
    assert_eq!(again.code(), ErrorCode::InvalidArgument);
    assert!(!request.progress(json!("too late")).unwrap());
    let result = calling.join().unwrap();
    assert_eq!(
        result.to_host_value(),
        json!({"content": [{"type": "text", "text": "sunny"}], "details": {"at": 9_007_199_254_740_993_u64}, "isError": false})
    );
    assert!(result.clone().into_result().is_ok());
}

#[test]
fn progress_reaches_whoever_called() {
    let (tools, requests) = toolbox();
    let host = thread::spawn(move || {
        let request = asked(&requests);
        for n in 0..3 {
            assert!(request.progress(json!(format!("step {n}"))).unwrap());
        }
        assert_eq!(request.progress(json!({"content": 5})).unwrap_err().code(), ErrorCode::InvalidArgument);
        request.complete(json!("done")).unwrap();
    });
    let mut call = tools.start("weather", json!({"city": "Kyiv"}));
    let mut seen = Vec::new();
    while let Some(update) = block_on(call.next_update()) {
        seen.push(update.joined_text());
    }
    assert_eq!(seen, ["step 0", "step 1", "step 2"]);
    assert_eq!(block_on(call.result()).joined_text(), "done");
    host.join().unwrap();
}

#[test]
fn failures_and_silence_are_errors_of_the_tool() {
    let (tools, requests) = toolbox();
    let calling = call(&tools);
    asked(&requests).fail("no such city").unwrap();
    let result = calling.join().unwrap();
    assert!(result.is_error && result.joined_text() == "no such city", "{result:?}");
    assert_eq!(result.into_result().unwrap_err().code(), ErrorCode::ToolFailed);

    // A wrong answer is refused and the request stays open; then the host lets go of it.
    let calling = call(&tools);
    let request = asked(&requests);
    assert_eq!(request.complete(json!({"content": "x", "colour": 1})).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!(request.complete(json!([{"type": "text"}])).unwrap_err().code(), ErrorCode::InvalidArgument);
    drop(request);
    assert_eq!(calling.join().unwrap().joined_text(), "The program that provides this tool gave no answer.");

    // The queue goes with a call in it and one to come.
    let calling = call(&tools);
    thread::sleep(Duration::from_millis(20));
    drop(requests);
    let gone = "The program that provides this tool takes no more calls.";
    assert_eq!(calling.join().unwrap().joined_text(), gone);
    assert_eq!(call(&tools).join().unwrap().joined_text(), gone);
}

#[test]
fn a_cancelled_call_ends_at_once_and_the_host_hears_of_it() {
    let (tools, requests) = toolbox();
    let pending = tools.start("weather", json!({"city": "Kyiv"}));
    let cancel = pending.cancel_token();
    let calling = thread::spawn(move || block_on(pending.result()));
    let request = asked(&requests);
    cancel.cancel();
    assert_eq!(calling.join().unwrap().joined_text(), "Operation aborted");
    block_on(request.cancelled());
    assert!(matches!(block_on(requests.next()), Some(Notice::Cancelled(id)) if id == request.id()));
    assert_eq!(request.complete(json!("late")).unwrap_err().code(), ErrorCode::Cancelled);

    // A call that is merely let go of.
    let mut pending = tools.start("weather", json!({"city": "Kyiv"}));
    assert!(futures_now(pending.next_update()).is_none());
    let request = asked(&requests);
    drop(pending);
    assert!(request.is_cancelled());
}

/// Looks at a future once.
fn futures_now<F: Future>(future: F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn the_end_of_the_engine_ends_the_calls_of_its_toolboxes() {
    let (tool, requests) = tool();
    let engine = Engine::new(EngineOptions::default()).unwrap();
    engine.add_tool(tool);
    let tools = engine.toolbox(".");
    let calling = call(&tools);
    let request = asked(&requests);
    block_on(engine.shutdown());
    assert!(calling.join().unwrap().is_error && request.is_cancelled() && tools.is_closed());
    assert!(call(&tools).join().unwrap().joined_text().contains("was shut down"));
}

/// A session that calls the tool once in each run, the tool's requests, and the engine, which has to live.
fn calling_session() -> (Engine, branchline::Session, Requests) {
    let (tool, requests) = tool();
    let engine = Engine::new(EngineOptions::default()).unwrap();
    let script = json!({"atEnd": "loop", "replies": [
        {"content": [{"type": "toolCall", "id": "c1", "name": "weather", "arguments": {"city": "Kyiv"}}]},
        {"content": [{"type": "text", "text": "It is sunny."}]},
    ]});
    let script = branchline::providers::scripted::Script::from_json(&script.to_string()).unwrap();
    engine.add_scripted_model("w", script).unwrap();
    let mut options =
        SessionOptions::new(".").permissions(branchline::Permissions::allow()).in_memory(true).model("scripted/w");
    options.tools = Some(vec!["weather".to_owned()]);
    options.custom_tools = vec![tool];
    let session = block_on(engine.create_session(options)).unwrap();
    (engine, session, requests)
}

#[test]
fn a_session_calls_it_and_stores_what_it_said() {
    let (_engine, session, requests) = calling_session();
    let run = block_on(session.prompt("Weather?", PromptOptions::default())).unwrap();
    let request = asked(&requests);
    assert_eq!((request.session_id(), request.call_id()), (&*session.id(), "c1"));
    request.complete(json!({"temperature": 21})).unwrap();
    let result = block_on(run.result()).unwrap();
    assert_eq!(result.text, "It is sunny.");
    assert!(result.messages.iter().any(|message| message.to_json().contains(r#"{\"temperature\":21}"#)));
}

/// Siblings share an id: a request tells which of them asks.
#[test]
fn a_request_tells_which_sibling_asks() {
    let (_engine, first, requests) = calling_session();
    let second = block_on(first.branch(BranchPoint::Leaf, BranchOptions::default())).unwrap();
    for (session, number) in [(&first, 0), (&second, 1)] {
        let run = block_on(session.prompt("Weather?", PromptOptions::default())).unwrap();
        let request = asked(&requests);
        assert_eq!((request.session_id(), request.sibling()), (&*first.id(), number));
        assert_eq!(session.sibling(), number);
        request.complete(json!("sun")).unwrap();
        assert_eq!(block_on(run.result()).unwrap().text, "It is sunny.");
    }
}

/// However often it is answered: a host that hears `cancelled` stops the work, and nobody told it that it answered before.
#[test]
fn a_cancelled_request_says_so_each_time() {
    let (_engine, session, requests) = calling_session();
    let _run = block_on(session.prompt("Weather?", PromptOptions::default())).unwrap();
    let request = asked(&requests);
    block_on(session.abort()).unwrap();
    for _ in 0..2 {
        assert_eq!(request.complete(json!("late")).unwrap_err().code(), ErrorCode::Cancelled);
        assert_eq!(request.fail("late").unwrap_err().code(), ErrorCode::Cancelled);
    }
}

#[test]
fn answers_in_every_form() {
    let read = |value| ToolResult::from_host_value(value).unwrap();
    let text = |value| read(value).joined_text();
    assert_eq!(text(json!("plain")), "plain");
    assert_eq!(text(json!(null)), "(no output)");
    assert_eq!(text(json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])), "a\nb");
    assert_eq!(text(json!([1, 2])), "[1,2]");
    assert_eq!(read(json!([])).structured_content, Some(json!([])));
    assert_eq!(read(json!({"a": 1})).structured_content, Some(json!({"a": 1})));
    assert!(read(json!({"content": [], "isError": true, "terminate": true})).terminate);
    for wrong in [
        json!({"content": 1}),
        json!({"content": "x", "isError": "yes"}),
        json!({"content": "x", "usage": 1}),
        json!({"content": [{"type": "image", "data": "AA=="}]}),
        json!({"content": [{"type": "video"}]}),
    ] {
        assert!(ToolResult::from_host_value(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn definitions_that_are_none() {
    let (asker, _requests) = requests();
    let full = json!({
        "name": "a-b_1", "description": "d", "parameters": {"type": "object"}, "executionMode": "sequential",
        "snippet": "s", "guidelines": ["g"], "constrainedSampling": {"type": "json_schema"},
    });
    assert_eq!(ToolDefinition::from_host_value(full.clone()).unwrap().to_host_value(), full);
    for wrong in [
        json!([]),
        json!({"description": "no name"}),
        json!({"name": ""}),
        json!({"name": "two words"}),
        json!({"name": "x".repeat(65)}),
        json!({"name": "a", "parameter": {}}),
        json!({"name": "a", "parameters": {"type": "string"}}),
        json!({"name": "a", "parameters": {"type": "object", "properties": {"x": {"type": 5}}}}),
        json!({"name": "a", "executionMode": "fast"}),
    ] {
        let error = HostTool::new(wrong.clone(), asker.clone(), 0).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{wrong}");
        assert!(error.message().starts_with("bad tool"), "{error}");
    }
}
