//! Models and keys by requests to the host: what hosts of other languages stand on.

mod session_support;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use branchline::host::{HostKeys, HostPayloads, Notice, Request, RequestKind, Requests, provider_from_value, requests};
use branchline::providers::Key;
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolFuture, ToolResult};
use branchline::{Engine, EngineOptions, ErrorCode, PromptOptions, RunResult, Session, SessionOptions, block_on};
use branchline_canned::{Reply, Server};
use serde_json::{Value, json};

struct Echo(ToolDefinition);

impl Tool for Echo {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        Box::pin(async move { Ok(ToolResult::text(format!("echo {}", call.arguments["n"]))) })
    }
}

fn engine(dir: &std::path::Path) -> (Engine, Requests) {
    let (asker, requests) = requests();
    let engine = session_support::engine(dir);
    let definition = json!({"name": "ide", "models": [{"id": "m", "contextWindow": 1000}]});
    engine.add_provider(Arc::new(provider_from_value(definition, asker, 7).unwrap()));
    engine.add_tool(Arc::new(Echo(ToolDefinition::new("echo", "A tool.", json!({"type": "object"})))));
    (engine, requests)
}

fn session(engine: &Engine, dir: &std::path::Path) -> Session {
    let options = SessionOptions::new(dir).in_memory(true).model("ide/m").system_prompt("Be a host.").tools(["echo"]);
    block_on(engine.create_session(options)).unwrap()
}

fn asked(requests: &Requests) -> Request {
    match block_on(requests.next()) {
        Some(Notice::Asked(request)) => request,
        other => panic!("{other:?}"),
    }
}

/// Prompts on a thread of its own.
fn prompt(session: &Session, text: &'static str) -> thread::JoinHandle<RunResult> {
    let session = session.clone();
    thread::spawn(move || {
        let run = block_on(session.prompt(text, PromptOptions::default())).unwrap();
        block_on(run.result()).unwrap()
    })
}

/// What is asked, an answer in pieces with a call that the loop runs, and the whole answer in one.
#[test]
fn a_model_answers_by_requests() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, requests) = engine(dir.path());
    let session = session(&engine, dir.path());
    let running = prompt(&session, "go");
    let request = asked(&requests);
    assert_eq!((request.kind(), request.kind().name(), request.target()), (RequestKind::Model, "model", 7));
    assert_eq!((request.name(), request.session_id()), ("ide/m", session.id().as_str()));
    let told = request.arguments();
    assert_eq!(
        (&told["model"], &told["purpose"], &told["tools"][0]["name"]),
        (&json!("m"), &json!("turn"), &json!("echo"))
    );
    assert!(told["systemPrompt"].as_str().unwrap().starts_with("Be a host."));
    request.push_value(&json!({"type": "thinking", "text": "hm"})).unwrap();
    request.push_json("\"Calling\"").unwrap();
    request.push_value(&json!({"type": "text_delta", "delta": " it"})).unwrap();
    request.push_value(&json!({"type": "toolcall", "name": "echo", "arguments": {"n": 7}})).unwrap();
    assert_eq!(request.push_value(&json!({"type": "text_delta"})).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!(request.progress(json!("x")).unwrap_err().code(), ErrorCode::InvalidArgument);
    request.complete(Value::Null).unwrap();
    assert_eq!(request.push_value(&json!("late")).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!(request.complete(Value::Null).unwrap_err().code(), ErrorCode::InvalidArgument);

    let request = asked(&requests);
    assert_eq!(request.arguments()["messages"][2]["content"][0]["text"], "echo 7");
    assert_eq!(request.complete(json!({"type": "dance"})).unwrap_err().code(), ErrorCode::InvalidArgument);
    request.complete(json!("done")).unwrap();
    let result = running.join().unwrap();
    assert_eq!((result.text.as_str(), result.error_message.as_deref()), ("done", None));
    let content = result.messages[2].get("content").unwrap();
    assert_eq!((&content[1]["text"], &content[2]["name"]), (&json!("Calling it"), &json!("echo")));
}

/// Every way to say that an answer is over.
#[test]
fn the_ends_of_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, requests) = engine(dir.path());
    let session = session(&engine, dir.path());
    let answered = |answer: &dyn Fn(&Request)| {
        let running = prompt(&session, "go");
        let request = asked(&requests);
        answer(&request);
        let result = running.join().unwrap();
        // It was not called off, and saying again that it is over is no error.
        assert!(!request.is_cancelled() && requests.try_next().is_none());
        (result.text, result.error_message)
    };
    let fine = |text: &str| (text.to_owned(), None);
    let done = |request: &Request| {
        request.push_value(&json!({"type": "done", "message": {"content": [{"type": "text", "text": "a"}]}})).unwrap();
        request.complete(json!({})).unwrap();
    };
    assert_eq!(answered(&done), fine("a"));
    let push_only = |request: &Request| {
        request.push_value(&json!("b")).unwrap();
        request.push_value(&json!({"type": "done"})).unwrap();
    };
    assert_eq!(answered(&push_only), fine("b"));
    let list = json!(["c", {"type": "text_delta", "delta": "d"}, {"type": "done", "reason": "stop"}]);
    assert_eq!(answered(&|request| request.complete(list.clone()).unwrap()), fine("cd"));
    assert_eq!(answered(&|request| request.complete(json!({})).unwrap()), fine(""));
    let failed = |request: &Request| {
        request.push_value(&json!("half")).unwrap();
        request.fail("the model is asleep").unwrap();
    };
    assert_eq!(answered(&failed), ("half".to_owned(), Some("the model is asleep".to_owned())));
    let told = |request: &Request| request.complete(json!({"type": "error", "error": "no such luck"})).unwrap();
    assert_eq!(answered(&told), (String::new(), Some("no such luck".to_owned())));

    // Nobody answers.
    let running = prompt(&session, "go");
    drop(asked(&requests));
    let result = running.join().unwrap();
    assert_eq!(result.error_message.as_deref(), Some("the host's model stopped without finishing its answer"));
    drop(requests);
    let result = prompt(&session, "go").join().unwrap();
    assert_eq!(result.error_message.as_deref(), Some("the program that serves this model takes no more requests"));
}

#[test]
fn an_abort_ends_the_request_and_keeps_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, requests) = engine(dir.path());
    let session = session(&engine, dir.path());
    let events = session.subscribe(Default::default());
    let running = prompt(&session, "go");
    let request = asked(&requests);
    request.push_value(&json!("begun")).unwrap();
    while events.next_timeout(Duration::from_secs(20)).unwrap().unwrap().type_name() != "message_update" {}
    block_on(session.abort()).unwrap();
    block_on(request.cancelled());
    assert!(matches!(block_on(requests.next()), Some(Notice::Cancelled(id)) if id == request.id()));
    assert_eq!(request.push_value(&json!("more")).unwrap_err().code(), ErrorCode::Cancelled);
    assert_eq!(request.complete(Value::Null).unwrap_err().code(), ErrorCode::Cancelled);
    assert_eq!(request.fail("late").unwrap_err().code(), ErrorCode::Cancelled);
    let result = running.join().unwrap();
    assert!(result.aborted);
    assert_eq!(result.messages.last().unwrap().get_str("stopReason"), Some("aborted"));
}

#[test]
fn two_sessions_ask_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, requests) = engine(dir.path());
    let (a, b) = (session(&engine, dir.path()), session(&engine, dir.path()));
    let runs = [prompt(&a, "a"), prompt(&b, "b")];
    let asked = [asked(&requests), asked(&requests)];
    for request in asked.iter().rev() {
        let text = request.arguments()["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned();
        request.complete(json!(format!("{text} of {}", request.session_id()))).unwrap();
    }
    let texts: Vec<String> = runs.map(|run| run.join().unwrap().text).into();
    assert_eq!(texts, [format!("a of {}", a.id()), format!("b of {}", b.id())]);
}

#[test]
fn only_answers_of_models_are_written_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let (asker, requests) = requests();
    let engine = session_support::engine(dir.path());
    let tool = branchline::host::HostTool::new(json!({"name": "t", "description": ""}), asker, 1).unwrap();
    engine.add_tool(Arc::new(tool));
    let tools = engine.toolbox(dir.path());
    let calling = thread::spawn(move || block_on(tools.call("t", json!({}))));
    let request = asked(&requests);
    assert_eq!(request.push_value(&json!("x")).unwrap_err().code(), ErrorCode::InvalidArgument);
    request.complete(json!("y")).unwrap();
    assert_eq!(calling.join().unwrap().joined_text(), "y");
}

/// The host is asked before each request, at any time of its own another source, and its keys are told to nobody.
#[test]
fn keys_by_requests() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Reply::hi(), Reply::hi(), Reply::hi()]);
    let mut options = EngineOptions::default().worker_threads(1).record(dir.path().join("wire"));
    options.keys = options.keys.environment(false);
    let engine = Engine::new(options).unwrap();
    let config = json!({"providers": {"mine": {"baseUrl": server.url(), "api": "anthropic-messages", "apiKey": "sk-of-the-file",
        "models": [{"id": "m"}]}}});
    engine.configure_models(&config.to_string()).unwrap();
    let (asker, requests) = requests();
    engine.set_key_source(Some(Arc::new(HostKeys::new(asker, 3))));
    let options = SessionOptions::new(dir.path()).session_dir(dir.path().join("s")).model("mine/m");
    let session = block_on(engine.create_session(options)).unwrap();
    let mut shown = String::new();
    let events = session.subscribe(Default::default());

    let mut ask = |answer: &dyn Fn(&Request)| {
        let running = prompt(&session, "go");
        let request = asked(&requests);
        assert_eq!((request.kind(), request.name(), request.target()), (RequestKind::Key, "mine", 3));
        assert_eq!(request.arguments(), &json!({"provider": "mine", "model": "m", "baseUrl": server.url()}));
        answer(&request);
        let result = running.join().unwrap();
        while let Ok(Some(event)) = events.next_timeout(Duration::from_secs(20)) {
            shown.push_str(&event.to_json());
            if event.type_name() == "agent_settled" {
                break;
            }
        }
        result
    };
    let result = ask(&|request| {
        let error = request.complete(json!({"secret": "sk-of-the-host"})).unwrap_err();
        assert!(error.code() == ErrorCode::InvalidArgument && !error.to_string().contains("sk-"), "{error}");
        assert!(!format!("{request:?}").contains("sk-"));
        request.complete(json!("sk-of-the-host-1")).unwrap();
    });
    assert_eq!((result.text.as_str(), result.error_message), ("hi", None));
    ask(&|request| request.complete(json!({"key": "sk-of-the-host-2", "bearer": true})).unwrap());
    ask(&|request| request.complete(Value::Null).unwrap());
    let failed = ask(&|request| request.fail("the vault is locked").unwrap());
    assert!(failed.error_message.as_deref().unwrap().contains("the vault is locked"), "{failed:?}");
    let received = server.received();
    assert_eq!(received[0].header("x-api-key"), Some("sk-of-the-host-1"));
    assert_eq!(received[1].header("authorization"), Some("Bearer sk-of-the-host-2"));
    assert_eq!(received[2].header("x-api-key"), Some("sk-of-the-file"));
    assert_eq!(received.len(), 3);

    // A key of the host's own goes before, and without a source nobody is asked.
    engine.set_key("mine", Some(Key::new("sk-explicit")));
    engine.set_key_source(None);
    let path = session.path().unwrap();
    engine.shutdown_blocking(Duration::from_secs(20)).unwrap();
    assert!(block_on(requests.next()).is_none(), "the source is gone, and with it whoever could ask");
    let recorded = std::fs::read_to_string(dir.path().join("wire")).unwrap();
    assert!(recorded.contains("message_stop"), "{recorded}");
    for text in [recorded, std::fs::read_to_string(path).unwrap(), shown, format!("{engine:?}")] {
        assert!(!text.contains("sk-of-the-host"), "{text}");
    }
}

/// A request to a service that is aborted while the host looks for its key.
#[test]
fn an_abort_ends_the_question_for_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let engine = session_support::engine(dir.path());
    let config = json!({"providers": {"mine": {"baseUrl": "http://127.0.0.1:9", "api": "anthropic-messages", "models": [{"id": "m"}]}}});
    engine.configure_models(&config.to_string()).unwrap();
    let (asker, requests) = requests();
    engine.set_key_source(Some(Arc::new(HostKeys::new(asker, 3))));
    let options = SessionOptions::new(dir.path()).in_memory(true).model("mine/m");
    let session = block_on(engine.create_session(options)).unwrap();
    let running = prompt(&session, "go");
    let request = asked(&requests);
    block_on(session.abort()).unwrap();
    assert!(running.join().unwrap().aborted);
    assert!(request.is_cancelled());
    assert_eq!(request.complete(json!("sk-1")).unwrap_err().code(), ErrorCode::Cancelled);
}

/// P40: each body is shown to the host, which may replace it, until another hook or none takes its place.
#[test]
fn payloads_by_requests() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Reply::hi(), Reply::hi(), Reply::hi()]);
    let engine = session_support::engine(dir.path());
    let config = json!({"providers": {"mine": {"baseUrl": server.url(), "api": "anthropic-messages", "apiKey": "sk-of-the-file",
        "models": [{"id": "m"}]}}});
    engine.configure_models(&config.to_string()).unwrap();
    let (asker, queue) = requests();
    engine.set_payload_hook(Some(Arc::new(HostPayloads::new(asker, 5))));
    let options = SessionOptions::new(dir.path()).in_memory(true).model("mine/m");
    let session = block_on(engine.create_session(options)).unwrap();
    let ask = |answer: &dyn Fn(&Request)| {
        let running = prompt(&session, "go");
        let request = asked(&queue);
        assert_eq!((request.kind(), request.kind().name()), (RequestKind::Payload, "payload"));
        assert_eq!((request.name(), request.target(), request.session_id()), ("mine/m", 5, ""));
        let told = request.arguments();
        assert_eq!((&told["provider"], &told["model"]), (&json!("mine"), &json!("m")));
        assert_eq!((&told["api"], &told["body"]["stream"]), (&json!("anthropic-messages"), &json!(true)));
        assert!(!told.to_string().contains("sk-of-the-file"));
        answer(&request);
        running.join().unwrap()
    };
    let result = ask(&|request| {
        assert_eq!(request.complete(json!([1])).unwrap_err().code(), ErrorCode::InvalidArgument);
        request.complete(json!({"tenant": 7})).unwrap();
    });
    assert_eq!((result.text.as_str(), result.error_message), ("hi", None));
    ask(&|request| request.complete(Value::Null).unwrap());
    let failed = ask(&|request| request.fail("no such tenant").unwrap());
    assert!(failed.error_message.as_deref().unwrap().contains("no such tenant"), "{failed:?}");
    let received = server.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].body, br#"{"tenant":7}"#);
    assert!(received[1].body.starts_with(br#"{"model":"m""#));

    // Let go of, and then gone.
    let running = prompt(&session, "go");
    drop(asked(&queue));
    let result = running.join().unwrap();
    assert!(result.error_message.as_deref().unwrap().contains("gave no answer"), "{result:?}");
    drop(queue);
    let result = prompt(&session, "go").join().unwrap();
    assert!(result.error_message.as_deref().unwrap().contains("takes no more questions"), "{result:?}");
    assert_eq!(server.received().len(), 2);
    engine.set_payload_hook(None);
    assert_eq!(prompt(&session, "go").join().unwrap().text, "hi");
}

/// A request that is aborted while the host looks at its body.
#[test]
fn an_abort_ends_the_question_about_a_payload() {
    let dir = tempfile::tempdir().unwrap();
    let engine = session_support::engine(dir.path());
    let config = json!({"providers": {"mine": {"baseUrl": "http://127.0.0.1:9", "api": "anthropic-messages", "apiKey": "k",
        "models": [{"id": "m"}]}}});
    engine.configure_models(&config.to_string()).unwrap();
    let (asker, requests) = requests();
    engine.set_payload_hook(Some(Arc::new(HostPayloads::new(asker, 5))));
    let session =
        block_on(engine.create_session(SessionOptions::new(dir.path()).in_memory(true).model("mine/m"))).unwrap();
    let running = prompt(&session, "go");
    let request = asked(&requests);
    block_on(session.abort()).unwrap();
    assert!(running.join().unwrap().aborted && request.is_cancelled());
    assert_eq!(request.complete(Value::Null).unwrap_err().code(), ErrorCode::Cancelled);
}

fn readable(fd: std::os::fd::RawFd) -> bool {
    // SAFETY: the queue, whose descriptor it is, lives longer.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&now)).unwrap() == 1
}

/// What an event loop is told of a queue: there is something, nothing, never anything again.
#[test]
fn a_descriptor_tells_of_a_queue() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, requests) = engine(dir.path());
    let session = session(&engine, dir.path());
    let fd = requests.fd().unwrap();
    assert!(requests.fd().unwrap() == fd && !readable(fd));
    let running = prompt(&session, "go");
    let request = asked(&requests);
    assert!(!readable(fd));
    request.complete(json!("done")).unwrap();
    running.join().unwrap();
    assert!(!readable(fd));
    // Called off before it was taken: both notices wait.
    let running = prompt(&session, "go");
    while !readable(fd) {
        thread::yield_now();
    }
    block_on(session.abort()).unwrap();
    running.join().unwrap();
    assert!(matches!(requests.try_next(), Some(Notice::Asked(request)) if request.is_cancelled()) && readable(fd));
    assert!(matches!(requests.try_next(), Some(Notice::Cancelled(_))) && !readable(fd));
    drop((session, engine));
    assert!(block_on(requests.next()).is_none() && readable(fd));
}
