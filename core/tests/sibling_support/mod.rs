//! What the tests of sibling sessions share: a model that answers from what it is shown, so that any number of sessions may
//! ask it at once, and a reading of session files line by line.
#![allow(dead_code, unreachable_pub)] // each test file uses its part

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use branchline::message::{Message, Role};
use branchline::providers::{BlockEvent, Model, Provider, Purpose, Request, ResponseStream, StreamEvent};
use branchline::resources::settings::Settings;
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolFuture, ToolResult};
use branchline::{Engine, EngineOptions, Permissions, PromptOptions, RunResult, Session, SessionOptions, block_on};
use futures::StreamExt;
use serde_json::{Value, json};

/// The model `many/*`. The last user message tells it what to do: its first word is said back at the end, the others are
/// `turns=N` (so many calls of `note`, one a turn, first), `fail`, `hang` (until aborted) and `long` (200 blocks).
pub struct Many {
    pub requests: Mutex<Vec<Request>>,
    /// Requests are kept. Each holds the conversation as it was.
    pub record: bool,
}

impl Many {
    /// The requests that are no summaries and whose last user message begins with this word.
    pub fn asked(&self, word: &str) -> Vec<Request> {
        let asked = |request: &&Request| request.purpose == Purpose::Turn && task(request).starts_with(word);
        self.requests.lock().unwrap().iter().filter(asked).cloned().collect()
    }

    pub fn summaries(&self) -> Vec<Request> {
        self.requests.lock().unwrap().iter().filter(|request| request.purpose == Purpose::Summary).cloned().collect()
    }
}

fn task(request: &Request) -> String {
    let user = request.messages.iter().rfind(|message| message.role() == Role::User);
    user.map(|message| message.text("")).unwrap_or_default()
}

impl Provider for Many {
    fn name(&self) -> &str {
        "many"
    }

    fn models(&self) -> Vec<Model> {
        ["m", "n"].map(|id| Model { context_window: 1_000_000, ..Model::new("many", id, "many").reasoning() }).into()
    }

    fn stream(&self, request: Request) -> ResponseStream {
        if self.record {
            self.requests.lock().unwrap().push(request.clone());
        }
        let text = task(&request);
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let words: Vec<&str> = words.collect();
        let turns: usize = words.iter().find_map(|word| word.strip_prefix("turns=")?.parse().ok()).unwrap_or(0);
        let since = request.messages.iter().rev().take_while(|message| message.role() != Role::User);
        let done = since.filter(|message| message.role() == Role::ToolResult).count();
        let message = |stop: &str, content: Value| {
            let usage = json!({"input": 10, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 11,
                "cost": {"input": 0.1, "output": 0.1, "cacheRead": 0, "cacheWrite": 0, "total": 0.2}});
            let message = json!({"role": "assistant", "content": content, "api": "many", "provider": "many",
                "model": request.model.id, "usage": usage, "stopReason": stop, "timestamp": 1});
            Message::from_value(message).unwrap()
        };
        let start = StreamEvent::Start(message("pending", json!([])));
        let cancel = request.cancel.clone();
        if request.purpose == Purpose::Summary {
            let hang = text.contains("hang-summary");
            let done = message("stop", json!([{"type": "text", "text": "SUMMARY"}]));
            let aborted = message("aborted", json!([]));
            return Box::pin(futures::stream::once(async move {
                match hang {
                    true => cancel.cancelled().await,
                    false => tokio::task::yield_now().await,
                }
                StreamEvent::Done(if hang { aborted } else { done })
            }));
        }
        if words.contains(&"fail") {
            let mut failed = message("error", json!([]));
            failed.set("errorMessage", "it does not work");
            return Box::pin(futures::stream::iter([start, StreamEvent::Done(failed)]));
        }
        if words.contains(&"hang") {
            let end = message("aborted", json!([{"type": "text", "text": "partial"}]));
            let end = futures::stream::once(async move {
                cancel.cancelled().await;
                StreamEvent::Done(end)
            });
            return Box::pin(futures::stream::iter([start]).chain(end));
        }
        if done < turns {
            let arguments = json!({"who": name, "n": done, "deep": {"x": 1.0, "y": [1e21, null, "ü\u{2028}"]}});
            let call =
                json!({"type": "toolCall", "id": format!("{name}-{done}"), "name": "note", "arguments": arguments});
            let end = StreamEvent::Done(message("toolUse", json!([call])));
            return Box::pin(futures::stream::iter([start]).chain(futures::stream::once(async move {
                tokio::task::yield_now().await;
                end
            })));
        }
        let blocks = if words.contains(&"long") { 200 } else { 1 };
        let mut events = vec![start];
        for index in 0..blocks {
            events.push(StreamEvent::Block(BlockEvent::TextStart { index }));
            events.push(StreamEvent::Block(BlockEvent::TextDelta { index, delta: name.as_str().into() }));
            events.push(StreamEvent::Block(BlockEvent::TextEnd { index, content: name.as_str().into() }));
        }
        let content: Vec<Value> = (0..blocks).map(|_| json!({"type": "text", "text": name})).collect();
        events.push(StreamEvent::Done(message("stop", content.into())));
        Box::pin(futures::stream::iter(events))
    }
}

/// A tool that says back who called it.
struct Note(ToolDefinition);

impl Tool for Note {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(ToolResult::text(format!("{} {}", call.arguments["who"], call.arguments["n"])))
        })
    }
}

pub fn note() -> Arc<dyn Tool> {
    Arc::new(Note(ToolDefinition::new("note", "takes a note", json!({"type": "object"}))))
}

pub struct Setup {
    pub dir: tempfile::TempDir,
    pub engine: Engine,
    pub model: Arc<Many>,
}

impl Setup {
    pub fn new() -> Setup {
        Setup::with(Many { requests: Mutex::default(), record: true })
    }

    /// One that keeps no requests.
    pub fn lean() -> Setup {
        Setup::with(Many { requests: Mutex::default(), record: false })
    }

    fn with(model: Many) -> Setup {
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions::default().agent_dir(dir.path().join("agent")).worker_threads(2);
        let engine = Engine::new(options.permissions(Permissions::allow())).unwrap();
        let model = Arc::new(model);
        engine.add_provider(model.clone());
        Setup { dir, engine, model }
    }

    pub fn options(&self) -> SessionOptions {
        let without_retries = json!({"retry": {"enabled": false}}).as_object().unwrap().clone();
        SessionOptions::new(self.dir.path())
            .session_dir(self.dir.path().join("sessions"))
            .model("many/m")
            .thinking_level("off")
            .custom_tool(note())
            .tools(["note"])
            .settings(Settings::from_values(without_retries))
    }

    pub fn session(&self) -> Session {
        block_on(self.engine.create_session(self.options())).unwrap()
    }
}

pub fn say(session: &Session, text: &str) -> RunResult {
    block_on(block_on(session.prompt(text, PromptOptions::default())).unwrap().result()).unwrap()
}

/// A run that nobody reads.
pub fn begin(session: &Session, text: &str) -> branchline::Run {
    let run = block_on(session.prompt(text, PromptOptions::default())).unwrap();
    run.events().discard();
    run
}

/// Every line of a file as pi reads it: JSON, a header first, unique ids, parents that come before.
pub fn check_file(path: &Path) -> Vec<Value> {
    check_lines(&std::fs::read_to_string(path).unwrap())
}

pub fn check_lines(text: &str) -> Vec<Value> {
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(lines[0]["type"], "session");
    assert_eq!(lines[0]["version"], 3);
    let mut seen = HashSet::new();
    for line in &lines[1..] {
        let id = line["id"].as_str().expect("an id");
        assert!(line["timestamp"].is_string() && line["type"].is_string());
        match &line["parentId"] {
            Value::Null => {}
            parent => assert!(seen.contains(parent.as_str().unwrap()), "{id} has an unknown parent"),
        }
        assert!(seen.insert(id.to_owned()), "{id} is there twice");
    }
    lines
}

/// The path to a leaf, read from the lines alone, root first.
pub fn path_to<'a>(lines: &'a [Value], leaf: &str) -> Vec<&'a Value> {
    let by_id: HashMap<&str, &Value> = lines[1..].iter().map(|line| (line["id"].as_str().unwrap(), line)).collect();
    let mut path = Vec::new();
    let mut at = Some(leaf);
    while let Some(id) = at {
        path.push(by_id[id]);
        at = by_id[id]["parentId"].as_str();
    }
    path.reverse();
    path
}

/// `role` or `type` of each entry.
pub fn words(path: &[&Value]) -> Vec<String> {
    let word = |entry: &&Value| match entry["message"]["role"].as_str() {
        Some(role) => role.to_owned(),
        None => entry["type"].as_str().unwrap().to_owned(),
    };
    path.iter().map(word).collect()
}

/// What a request sends, as one text a message, then the tools.
pub fn sent(request: &Request) -> Vec<String> {
    let mut sent: Vec<String> = request.messages.iter().map(|message| message.to_json()).collect();
    sent.push(serde_json::to_string(&*request.tools).unwrap());
    sent
}

/// Waits for something that comes by itself.
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}
