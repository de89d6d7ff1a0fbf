//! Models that the host serves: by an async closure, from other threads, by JSON events; aborts, errors, slow readers.

mod session_support;

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use branchline::message::Usage;
use branchline::providers::host::{HostFuture, HostModel, HostProvider, HostRequest, HostResponse};
use branchline::providers::{BlockEvent, Model, Provider, Request, StreamEvent};
use branchline::tools::ToolResult;
use branchline::{Engine, ErrorCode, PromptOptions, Session, SessionOptions, block_on};
use futures::StreamExt;
use serde_json::{Value, json};
use session_support::tool;

/// Longer than anything here takes; a wait that long is a hang.
const GUARD: Duration = Duration::from_secs(20);

fn session(provider: HostProvider, dir: &std::path::Path) -> (Engine, Session) {
    let engine = session_support::engine(dir);
    engine.add_provider(Arc::new(provider));
    let options = SessionOptions::new(dir)
        .in_memory(true)
        .model("ide/m")
        .system_prompt("Be a host.")
        .custom_tool(tool("echo", |call| {
            Box::pin(async move { Ok(ToolResult::text(format!("echo {}", call.arguments["n"]))) })
        }))
        .tools(["echo"]);
    let session = block_on(engine.create_session(options)).unwrap();
    (engine, session)
}

fn models() -> [Model; 1] {
    [Model::new("", "m", "host-api")]
}

fn run(session: &Session, text: &str) -> branchline::RunResult {
    let run = block_on(session.prompt(text, PromptOptions::default())).unwrap();
    block_on(run.result()).unwrap()
}

fn content(result: &branchline::RunResult) -> Value {
    result.messages.last().unwrap().get("content").cloned().unwrap()
}

/// An async closure: text, thinking, a tool call that the session runs, usage; and what the closure is told.
#[test]
fn an_async_closure_answers() {
    let dir = tempfile::tempdir().unwrap();
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let notes = seen.clone();
    let provider = HostProvider::from_fn("ide", models(), move |request: HostRequest, answer: HostResponse| {
        notes.lock().unwrap().push(request.to_value());
        async move {
            if request.messages().len() == 1 {
                answer.thinking("hm")?;
                answer.tool_call("", "echo", &json!({"n": 7}))?;
                answer.usage(Usage { input: 5, output: 2, ..Usage::default() })?;
                return Ok::<_, branchline::Error>(()); // finished by returning
            }
            tokio_yield().await;
            answer.text("do")?;
            answer.text("ne")?;
            answer.finish()
        }
    });
    let (_engine, session) = session(provider, dir.path());
    let result = run(&session, "go");
    assert_eq!((result.text.as_str(), result.usage.total_tokens), ("done", 7));
    let call = &result.messages[2];
    assert_eq!(call.get_str("stopReason"), Some("toolUse"));
    assert_eq!(
        (call.get_str("provider"), call.get_str("api"), call.get_str("model")),
        (Some("ide"), Some("host-api"), Some("m"))
    );
    assert!(call.get("content").unwrap()[1]["id"].as_str().unwrap().starts_with("call_"), "an id was drawn");
    let seen = seen.lock().unwrap();
    assert_eq!(
        (seen[0]["provider"].as_str(), seen[0]["model"].as_str(), seen[0]["purpose"].as_str()),
        (Some("ide"), Some("m"), Some("turn"))
    );
    assert!(seen[0]["systemPrompt"].as_str().unwrap().starts_with("Be a host."));
    assert_eq!(seen[0]["tools"][0]["name"], "echo");
    let roles: Vec<&str> =
        seen[1]["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult"]);
    assert_eq!(seen[1]["messages"][2]["content"][0]["text"], "echo 7");
}

/// Ends on the second poll.
async fn tokio_yield() {
    let mut first = true;
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut first) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(())
    })
    .await;
}

/// Hands requests to another thread.
struct Elsewhere(Mutex<mpsc::Sender<(HostRequest, HostResponse)>>);

impl HostModel for Elsewhere {
    fn respond(&self, request: HostRequest, response: HostResponse) -> Option<HostFuture> {
        self.0.lock().unwrap().send((request, response)).unwrap();
        None
    }
}

fn elsewhere() -> (HostProvider, mpsc::Receiver<(HostRequest, HostResponse)>) {
    let (sender, receiver) = mpsc::channel();
    (HostProvider::new("ide", models(), Arc::new(Elsewhere(Mutex::new(sender)))), receiver)
}

/// Events as JSON from a thread of the host's, the way bindings write them.
#[test]
fn json_events_from_another_thread() {
    let dir = tempfile::tempdir().unwrap();
    let (provider, requests) = elsewhere();
    let (_engine, session) = session(provider, dir.path());
    let host = std::thread::spawn(move || {
        let events = [
            vec![
                json!({"type": "start"}),
                json!({"type": "thinking_start", "contentIndex": 0}),
                json!({"type": "thinking_delta", "contentIndex": 0, "delta": "a"}),
                json!({"type": "thinking_end", "contentIndex": 0, "signature": "sig"}),
                json!({"type": "toolcall_start", "contentIndex": 1, "id": "c1", "toolName": "echo"}),
                json!({"type": "toolcall_delta", "delta": "{\"n\""}),
                json!({"type": "toolcall_delta", "delta": ": 1}"}),
                json!({"type": "toolcall_end"}),
                json!({"type": "toolcall", "id": "c2", "name": "echo", "arguments": {"n": 2}}),
                json!({"type": "usage", "usage": {"input": 3, "output": 4, "totalTokens": 7}}),
                json!({"type": "done"}),
            ],
            vec![
                json!({"type": "done", "reason": "length", "message": {"content": [{"type": "text", "text": "whole"}]}}),
            ],
        ];
        for events in events {
            let (_, answer) = requests.recv_timeout(GUARD).unwrap();
            for event in &events {
                answer.push_json(&event.to_string()).unwrap_or_else(|error| panic!("{event}: {error}"));
            }
            assert!(answer.is_over());
            assert_eq!(answer.text("late").unwrap_err().code(), ErrorCode::InvalidArgument);
        }
    });
    let result = run(&session, "go");
    host.join().unwrap();
    assert_eq!(
        (result.text.as_str(), result.messages.last().unwrap().get_str("stopReason")),
        ("whole", Some("length"))
    );
    let first = result.messages[2].get("content").unwrap();
    assert_eq!(first[0], json!({"type": "thinking", "thinking": "a", "thinkingSignature": "sig"}));
    assert_eq!((&first[1]["arguments"], &first[2]["arguments"]), (&json!({"n": 1}), &json!({"n": 2})));
    let results: Vec<String> = result.messages[3..5].iter().map(|message| message.text("")).collect();
    assert_eq!(results, ["echo 1", "echo 2"]);
}

/// What is no event is refused, and changes nothing.
#[test]
fn wrong_json_events() {
    let (provider, requests) = elsewhere();
    let mut stream = provider.stream(Request::new(Arc::new(Model::new("ide", "m", "host-api")), Vec::new()));
    let (_, answer) = requests.recv_timeout(GUARD).unwrap();
    for wrong in [
        "{",
        "[]",
        r#"{"type":"text_delta"}"#,
        r#"{"type":"toolcall_start"}"#,
        r#"{"type":"toolcall_delta","delta":"x"}"#,
        r#"{"type":"usage"}"#,
        r#"{"type":"done","reason":"error"}"#,
        r#"{"type":"shout"}"#,
    ] {
        assert_eq!(answer.push_json(wrong).unwrap_err().code(), ErrorCode::InvalidArgument, "{wrong}");
    }
    answer.push_json(r#"{"type":"error","error":{"errorMessage":"slow down"},"retryAfterMs":1500}"#).unwrap();
    let mut events = Vec::new();
    while let Some(event) = block_on(stream.next()) {
        events.push(event);
    }
    let [.., StreamEvent::RetryAfter(pause), StreamEvent::Done(message)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!((*pause, message.get_str("errorMessage")), (Duration::from_millis(1500), Some("slow down")));
}

/// An abort ends the answer with what was written; the host is told, and may no longer write.
#[test]
fn aborts() {
    let dir = tempfile::tempdir().unwrap();
    let (told, hears) = mpsc::channel();
    let provider = HostProvider::from_fn("ide", models(), move |_, answer: HostResponse| {
        let told = told.clone();
        async move {
            answer.text("half")?;
            let watch = answer.clone();
            std::thread::spawn(move || {
                block_on(watch.cancelled());
                told.send(watch.text("more").unwrap_err().code()).unwrap();
            });
            std::future::pending::<()>().await;
            Ok::<_, branchline::Error>(())
        }
    });
    let (_engine, session) = session(provider, dir.path());
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    while let Some(event) = run.events().next_timeout(GUARD).unwrap() {
        if event.text_delta().is_some() {
            break;
        }
    }
    block_on(session.abort()).unwrap();
    assert_eq!(hears.recv_timeout(GUARD).unwrap(), ErrorCode::Cancelled);
    let result = block_on(run.result()).unwrap();
    assert_eq!((result.aborted, content(&result)[0]["text"].as_str()), (true, Some("half")));
    assert_eq!(result.messages.last().unwrap().get_str("stopReason"), Some("aborted"));
}

/// A host that gives up, fails or panics makes a failed answer, not a hang.
#[test]
fn failures() {
    let dir = tempfile::tempdir().unwrap();
    let provider = HostProvider::from_fn("ide", models(), |request: HostRequest, answer: HostResponse| async move {
        answer.text("begun").map_err(|error| error.to_string())?;
        match request.last_text().as_str() {
            "panic" => panic!("on purpose"),
            why => Err(format!("no answer: {why}")),
        }
    });
    let (_engine, failing) = session(provider, dir.path());
    let result = run(&failing, "why not");
    assert_eq!(result.error_message.as_deref(), Some("no answer: why not"));
    assert_eq!(content(&result)[0]["text"], "begun");
    assert!(run(&failing, "panic").error_message.unwrap().contains("panicked"));

    let (provider, requests) = elsewhere();
    let (_engine, leaving) = session(provider, dir.path());
    let host = std::thread::spawn(move || drop(requests.recv_timeout(GUARD).unwrap()));
    let result = run(&leaving, "go");
    host.join().unwrap();
    assert!(result.error_message.unwrap().contains("without finishing"));
}

/// A writer that is faster than the reader does not fill the memory: pieces of text are joined, nothing is lost.
#[test]
fn pieces_for_a_slow_reader_are_joined() {
    let (provider, requests) = elsewhere();
    let mut stream = provider.stream(Request::new(Arc::new(Model::new("ide", "m", "host-api")), Vec::new()));
    let (_, answer) = requests.recv_timeout(GUARD).unwrap();
    for n in 0..200_000 {
        answer.text(&(n % 10).to_string()).unwrap();
    }
    answer.finish().unwrap();
    let (mut count, mut text) = (0, String::new());
    while let Some(event) = block_on(stream.next()) {
        count += 1;
        match event {
            StreamEvent::Block(BlockEvent::TextDelta { delta, .. }) => text.push_str(&delta),
            StreamEvent::Done(message) => assert_eq!(message.text(""), text),
            _ => {}
        }
    }
    assert_eq!(text.len(), 200_000);
    assert!(count < 2000, "{count}");
}
