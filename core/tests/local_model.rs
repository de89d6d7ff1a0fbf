//! A real model in a real OpenAI-compatible server on loopback, through the public interface. `make test-local-model`
//! installs both and says where they are; without it these tests do not run.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use branchline::message::{Message, StopReason};
use branchline::providers::Model;
use branchline::resources::settings::Settings;
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolFuture, ToolResult};
use branchline::{
    Engine, EngineOptions, EventKind, PromptOptions, Session, SessionOptions, SubscribeOptions, block_on,
};
use serde_json::{Value, json};

/// Nothing here waits longer: the machine may be slow, but not that slow.
const GUARD: Duration = Duration::from_secs(180);

/// One server at a time: the model wants a processor for itself.
static ONE: Mutex<()> = Mutex::new(());

/// The server's process; it ends with the value.
struct Server {
    process: Child,
    port: u16,
    _one: MutexGuard<'static, ()>,
}

fn home() -> PathBuf {
    std::env::var_os("BRANCHLINE_LOCAL_MODEL").map(PathBuf::from).expect("run this with `make test-local-model`")
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/local_model")
}

fn spawn(port: u16) -> Child {
    let child = Command::new(home().join("venv/bin/python"))
        .arg(scripts().join("serve.py"))
        .arg(home().join("model.gguf"))
        .arg(port.to_string())
        .arg(scripts().join("tools.jinja"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    wait_until("the model is loaded", || get(port, "/health").is_some_and(|(status, _)| status == 200));
    child
}

impl Server {
    fn start() -> Server {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Server { process: spawn(port), port, _one: one }
    }

    fn kill(&mut self) {
        self.process.kill().expect("the server is killed");
        self.process.wait().expect("the server ends");
    }

    fn model(&self, api: &str) -> Model {
        let facts = json!({"provider": "local", "id": "smollm2", "api": api,
            "baseUrl": format!("http://127.0.0.1:{}/v1", self.port), "contextWindow": 8192, "maxTokens": 64,
            "samplingParams": {"temperature": 0}, "compat": {"supportsStore": false}});
        Model::from_json(&facts).expect("a model")
    }

    /// Whether it is generating for someone.
    fn at_work(&self) -> bool {
        let (_, slots) = get(self.port, "/slots").expect("an answer about the slots");
        slots.as_array().expect("slots").iter().any(|slot| slot["is_processing"] == true)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A GET by hand, so that nothing of the library is used to check the library.
fn get(port: u16, path: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).unwrap_or(Value::Null)))
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < GUARD, "{what}: not within {GUARD:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// A session and the engine it lives in.
fn session(dir: &Path, model: Model, change: impl FnOnce(SessionOptions) -> SessionOptions) -> (Engine, Session) {
    let engine =
        Engine::new(EngineOptions::default().agent_dir(dir.join("agent")).worker_threads(1)).expect("an engine");
    let name = model.full_name();
    engine.add_model(model).expect("a model");
    let options = SessionOptions::new(dir).session_dir(dir.join("sessions")).model(name).tools(Vec::<String>::new());
    // A short prompt: such a model reads thirty tokens a second.
    let options = options.system_prompt("You are a helpful assistant.").permissions(branchline::Permissions::allow());
    let session = block_on(engine.create_session(change(options))).expect("a session");
    (engine, session)
}

#[test]
#[ignore = "needs a local model: make test-local-model"]
fn an_answer_streams_in_with_usage() {
    let server = Server::start();
    for api in ["openai-completions", "openai-responses"] {
        let dir = tempfile::tempdir().unwrap();
        let (_engine, session) =
            session(dir.path(), server.model(api), |options| options.system_prompt("You are friendly."));
        let run = block_on(session.prompt("Tell me about the sea.", PromptOptions::default())).unwrap();
        let mut pieces = Vec::new();
        while let Some(event) = block_on(run.next()) {
            pieces.extend(event.text_delta().map(str::to_owned));
        }
        let result = block_on(run.result()).unwrap();
        assert_eq!(result.error_message, None, "{api}");
        assert!(pieces.len() > 1, "{api}: in pieces: {pieces:?}");
        assert_eq!(pieces.concat(), result.text, "{api}");
        assert!(matches!(result.stop_reason, Some(StopReason::Stop | StopReason::Length)), "{api}");
        let usage = result.usage;
        assert!(usage.input + usage.cache_read > 0 && usage.output > 0, "{api}: {usage:?}");
        assert_eq!(usage.total_tokens, usage.input + usage.cache_read + usage.output, "{api}: {usage:?}");
    }
}

/// Knows the weather anywhere.
struct Weather {
    definition: ToolDefinition,
    calls: Arc<AtomicUsize>,
    /// It answers when this is set.
    go: Arc<AtomicBool>,
}

impl Tool for Weather {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, _: ToolCall) -> ToolFuture {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let go = self.go.clone();
        Box::pin(async move {
            while !go.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(ToolResult::text("sunny, 21 degrees"))
        })
    }
}

#[test]
#[ignore = "needs a local model: make test-local-model"]
fn a_forced_call_is_run_and_answered() {
    let server = Server::start();
    for api in ["openai-completions", "openai-responses"] {
        let dir = tempfile::tempdir().unwrap();
        let (calls, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let definition = ToolDefinition::new("get_weather", "Weather of a city", schema);
        let tool = Arc::new(Weather { definition, calls: calls.clone(), go: go.clone() });
        let mut model = server.model(api);
        model.sampling_params.insert("tool_choice".to_owned(), "required".into());
        model.sampling_params.insert("parallel_tool_calls".to_owned(), false.into());
        let (engine, session) = session(dir.path(), model, |options| options.custom_tool(tool).tools(["get_weather"]));
        // The same model, not forced: it answers.
        let mut free = server.model(api);
        free.id = "free".to_owned();
        free.sampling_params.insert("tool_choice".to_owned(), "none".into());
        engine.add_model(free).unwrap();
        let events = session.subscribe(SubscribeOptions::default());
        let run = block_on(session.prompt("Use get_weather for Oslo.", PromptOptions::default())).unwrap();
        loop {
            let event = events.next_timeout(GUARD).expect("an event in time").expect("not the end");
            match event.kind() {
                EventKind::ToolExecutionStart { .. } if !go.load(Ordering::SeqCst) => {
                    block_on(session.set_model("local/free")).unwrap();
                    go.store(true, Ordering::SeqCst);
                }
                EventKind::AgentSettled { .. } => break,
                _ => {}
            }
        }
        let result = block_on(run.result()).unwrap();
        assert_eq!(result.error_message, None, "{api}");
        assert!(calls.load(Ordering::SeqCst) >= 1, "{api}: the tool was called");
        let roles: Vec<&str> = result.messages.iter().map(|message| message.role().name()).collect();
        let called = result.messages.iter().find(|message| message.tool_calls().next().is_some()).expect("a call");
        assert_eq!(called.stop_reason(), Some(StopReason::ToolUse), "{api}");
        assert_eq!(roles[..4], ["system", "user", "assistant", "toolResult"], "{api}");
        // The server may fail once; what failed is stored, and the request is made again.
        let (answer, failed) = result.messages[4..].split_last().expect("an answer");
        let error = |message: &Arc<Message>| message.get_str("errorMessage").map(str::to_owned);
        let errors: Vec<_> = failed.iter().map(error).collect();
        assert!(failed.iter().all(|message| message.stop_reason() == Some(StopReason::Error)), "{api}: {errors:?}");
        assert_eq!(answer.role().name(), "assistant", "{api}: {errors:?}");
        assert!(!result.text.is_empty(), "{api}: the result was answered");
    }
}

#[test]
#[ignore = "needs a local model: make test-local-model"]
fn an_abort_stops_the_server_from_generating() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let mut model = server.model("openai-completions");
    model.max_tokens = 3000;
    // Never the end token: without an abort this goes on for minutes.
    model.sampling_params.insert("ignore_eos".to_owned(), true.into());
    let (_engine, session) = session(dir.path(), model, |options| options);
    let run = block_on(session.prompt("Count for ever.", PromptOptions::default())).unwrap();
    while block_on(run.next()).expect("a delta before the end").text_delta().is_none() {}
    assert!(server.at_work());
    let begun = Instant::now();
    block_on(session.abort()).unwrap();
    let result = block_on(run.result()).unwrap();
    assert!(result.aborted);
    assert_eq!(result.stop_reason, Some(StopReason::Aborted));
    wait_until("the slot is free", || !server.at_work());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}: that was the end of the text", begun.elapsed());
}

#[test]
#[ignore = "needs a local model: make test-local-model"]
fn a_server_killed_in_the_middle_is_asked_again() {
    let mut server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let settings = json!({"retry": {"maxRetries": 20, "baseDelayMs": 1000, "maxAgentDelayMs": 1000}});
    let settings = Settings::from_values(settings.as_object().unwrap().clone());
    let (_engine, session) =
        session(dir.path(), server.model("openai-completions"), |options| options.settings(settings));
    let events = session.subscribe(SubscribeOptions::default());
    let run = block_on(session.prompt("Tell me a story.", PromptOptions::default())).unwrap();
    let (mut killed, mut retries, mut ended) = (false, 0, None);
    loop {
        let event = events.next_timeout(GUARD).expect("an event in time").expect("not the end");
        match event.kind() {
            _ if !killed && event.text_delta().is_some() => {
                server.kill();
                killed = true;
            }
            EventKind::AutoRetryStart { .. } => {
                retries += 1;
                if retries == 1 {
                    server.process = spawn(server.port);
                }
            }
            EventKind::AutoRetryEnd { success, .. } => ended = Some(*success),
            EventKind::AgentSettled { .. } => break,
            _ => {}
        }
    }
    let result = block_on(run.result()).unwrap();
    assert!(killed && retries >= 1);
    assert_eq!((ended, result.error_message.as_deref()), (Some(true), None));
    assert!(!result.text.is_empty());
}
