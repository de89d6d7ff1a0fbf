//! Agent-loop cases: a session with a scripted provider that costs as little as the interface allows, as pi's adapter has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use branchline::message::{AssistantStart, Message};
use branchline::providers::{BlockEvent, Model, Provider, Request, ResponseStream, StreamEvent};
use branchline::resources::settings::Settings;
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolFuture, ToolResult};
use branchline::{Engine, EngineOptions, EventKind, Permissions, PromptOptions, Session, SessionOptions, block_on};
use serde_json::{Value, json};

use crate::{Memory, Result, timed};

/// The cases of this file; `None` for another one.
pub(crate) fn run(case: &str, params: &Value) -> Option<Result<Value>> {
    Some(match case {
        "loop.turns" => turns(params),
        "loop.deltas" => deltas(params),
        "startup.sdk" => startup(),
        _ => return None,
    })
}

pub(crate) fn number(params: &Value, key: &str, default: usize) -> usize {
    params[key].as_u64().map_or(default, |n| n as usize)
}

/// User and system time of this process, in ms.
pub(crate) fn cpu_ms() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    tasks.filter_map(of).sum::<f64>() / 1e6
}

const USAGE: &str = r#"{"input":10,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":20,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;

/// What the provider answers with.
#[derive(Clone, Copy)]
enum Answers {
    /// So many responses with one tool call, then `done`.
    Calls { turns: usize },
    /// One text in pieces.
    Text { deltas: usize, size: usize },
}

struct Scripted {
    answers: Answers,
    asked: AtomicUsize,
}

impl Provider for Scripted {
    fn name(&self) -> &str {
        "bench"
    }

    fn models(&self) -> Vec<Model> {
        vec![Model { context_window: 1_000_000_000, max_tokens: 1_000_000, ..Model::new("bench", "s1", "scripted") }]
    }

    fn stream(&self, _: Request) -> ResponseStream {
        let n = self.asked.fetch_add(1, Ordering::Relaxed);
        match self.answers {
            Answers::Calls { turns } if n < turns => Box::pin(futures::stream::iter(call(n))),
            Answers::Calls { .. } => {
                let done = [StreamEvent::Start(empty()), StreamEvent::Done(message(json!([text("done")]), "stop"))];
                Box::pin(futures::stream::iter(done))
            }
            Answers::Text { deltas, size } => Box::pin(futures::stream::iter(pieces(deltas, size))),
        }
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn empty() -> Message {
    AssistantStart { api: "scripted", provider: "bench", model: "s1", timestamp: 1_767_600_000_000 }.message()
}

fn message(content: Value, stop: &str) -> Message {
    let mut message = empty();
    message.set("content", content);
    message.set("usage", serde_json::from_str::<Value>(USAGE).unwrap_or_default());
    message.set("stopReason", stop);
    message
}

fn call(n: usize) -> [StreamEvent; 5] {
    let id: Arc<str> = format!("call_{n}").into();
    let call = json!({"type": "toolCall", "id": &*id, "name": "noop", "arguments": {"n": n}});
    [
        StreamEvent::Start(empty()),
        StreamEvent::Block(BlockEvent::ToolCallStart { index: 0, id, name: "noop".into() }),
        StreamEvent::Block(BlockEvent::ToolCallDelta { index: 0, delta: format!("{{\"n\":{n}}}").into() }),
        StreamEvent::Block(BlockEvent::ToolCallEnd { index: 0, tool_call: Arc::new(call.clone()) }),
        StreamEvent::Done(message(json!([call]), "toolUse")),
    ]
}

fn pieces(deltas: usize, size: usize) -> impl Iterator<Item = StreamEvent> {
    let delta: Arc<str> = "abcdefgh".repeat(size.div_ceil(8))[..size].into();
    let all = delta.repeat(deltas);
    let end = StreamEvent::Block(BlockEvent::TextEnd { index: 0, content: all.as_str().into() });
    let done = StreamEvent::Done(message(json!([text(&all)]), "stop"));
    let piece = move |_| StreamEvent::Block(BlockEvent::TextDelta { index: 0, delta: delta.clone() });
    [StreamEvent::Start(empty()), StreamEvent::Block(BlockEvent::TextStart { index: 0 })]
        .into_iter()
        .chain((0..deltas).map(piece))
        .chain([end, done])
}

struct Noop {
    definition: ToolDefinition,
    calls: Arc<AtomicUsize>,
}

impl Tool for Noop {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, _: ToolCall) -> ToolFuture {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(ToolResult::text("ok")) })
    }
}

struct Host {
    // Dropped after the session.
    session: Session,
    _engine: Engine,
    calls: Arc<AtomicUsize>,
    dir: tempfile::TempDir,
}

impl Host {
    fn new(answers: Answers, persist: bool, file: Option<&str>) -> Result<Host> {
        let dir = tempfile::tempdir()?;
        let engine = Engine::new(
            EngineOptions::default().agent_dir(dir.path().join("agent")).permissions(Permissions::allow()),
        )?;
        engine.add_provider(Arc::new(Scripted { answers, asked: AtomicUsize::new(0) }));
        let settings = json!({"compaction": {"enabled": false}, "retry": {"enabled": false}});
        let calls = Arc::new(AtomicUsize::new(0));
        let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
        let tool = Noop { definition: ToolDefinition::new("noop", "does nothing", schema), calls: calls.clone() };
        let mut options = SessionOptions::new(dir.path())
            .model("bench/s1")
            .settings(Settings::from_values(settings.as_object().cloned().unwrap_or_default()))
            .system_prompt("You are a minimal assistant.")
            .session_dir(dir.path().join("sessions"))
            .custom_tool(Arc::new(tool));
        options.tools = Some(vec!["noop".to_owned()]);
        options.in_memory = !persist && file.is_none();
        let session = match file {
            Some(file) => {
                let copy = dir.path().join("s.jsonl");
                std::fs::copy(file, &copy)?;
                block_on(engine.open_session(copy, options))?
            }
            None => block_on(engine.create_session(options))?,
        };
        Ok(Host { session, _engine: engine, calls, dir })
    }
}

/// `turns` responses, each with one call that does nothing. params: {turns, persist, file?: continue a copy of this session}
fn turns(params: &Value) -> Result<Value> {
    let count = number(params, "turns", 1000);
    let host = Host::new(Answers::Calls { turns: count }, params["persist"] == true, params["file"].as_str())?;
    let tree = host.session.tree();
    let before = tree.entry_count();
    let mut ends = Vec::with_capacity(count);
    let (memory, cpu) = (Memory::start(), cpu_ms());
    let start = Instant::now();
    let (total, ()) = timed(|| {
        let run = block_on(host.session.prompt("go", PromptOptions::default()))?;
        loop {
            let batch = block_on(run.events().next_batch(256));
            if batch.is_empty() {
                return Ok(());
            }
            let turn_end = |event: &&branchline::Event| matches!(event.kind(), EventKind::TurnEnd { .. });
            let now = start.elapsed().as_secs_f64() * 1e3;
            ends.extend(batch.iter().filter(turn_end).map(|_| now));
        }
    })?;
    let cpu = cpu_ms() - cpu;
    let turns = ends.len();
    let part = |from: f64, to: f64| {
        let at = |part: f64| ends.get((part * (turns - 1) as f64) as usize).copied().unwrap_or(0.0);
        (at(to) - at(from)) / ((to - from) * turns as f64).max(1.0)
    };
    let mut report = memory.report(&[total], Value::Null);
    report["per_turn_ms"] = json!(total / count as f64);
    report["turn_first10pct_ms"] = json!(part(0.0, 0.1));
    report["turn_last10pct_ms"] = json!(part(0.9, 1.0));
    report["cpu_ms"] = json!(cpu);
    report["check"] = json!({"calls": host.calls.load(Ordering::Relaxed), "added": tree.entry_count() - before});
    drop(host.dir);
    Ok(report)
}

/// One answer in `deltas` text deltas of `size` characters. params: {deltas, size, persist}
fn deltas(params: &Value) -> Result<Value> {
    let (deltas, size) = (number(params, "deltas", 100_000), number(params, "size", 4));
    let host = Host::new(Answers::Text { deltas, size }, params["persist"] == true, None)?;
    let (mut events, mut chars) = (0, 0);
    let (memory, cpu) = (Memory::start(), cpu_ms());
    let (total, ()) = timed(|| {
        // As many as there are, so that none is merged and all are counted.
        let options = PromptOptions::default().capacity(number(params, "capacity", 1024));
        let run = block_on(host.session.prompt("go", options))?;
        loop {
            let batch = block_on(run.events().next_batch(256));
            if batch.is_empty() {
                return Ok(());
            }
            for text in batch.iter().filter_map(|event| event.text_delta()) {
                events += 1;
                chars += text.len();
            }
        }
    })?;
    let cpu = cpu_ms() - cpu;
    let mut report = memory.report(&[total], Value::Null);
    report["events"] = json!(events);
    report["cpu_us_per_delta"] = json!(cpu * 1e3 / deltas as f64);
    report["deltas_per_s"] = json!(deltas as f64 / total * 1e3);
    report["check"] = json!({"chars": chars});
    Ok(report)
}

/// An engine and a session in memory. The process's own start is not in it, as it is not in pi's.
fn startup() -> Result<Value> {
    let memory = Memory::start();
    let (ms, host) = timed(|| Host::new(Answers::Calls { turns: 0 }, false, None))?;
    let mut report = memory.report(&[ms], Value::Null);
    report["check"] = json!({"tools": host.session.state().tools.len()});
    Ok(report)
}
