//! What the session tests share: an engine of their own, a scripted session, and the shape of events.
#![allow(dead_code, unreachable_pub)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use branchline::providers::scripted::{Script, ScriptControl};
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolFuture};
use branchline::{Engine, EngineOptions, Event, EventKind, Events, Permissions, Session, SessionOptions};
use serde_json::{Value, json};

pub fn engine(dir: &Path) -> Engine {
    let options = EngineOptions::default().agent_dir(dir.join("agent")).worker_threads(2);
    Engine::new(options.permissions(Permissions::allow())).expect("an engine")
}

/// A session in `dir` whose model `scripted/test` answers from `script`, every block in one delta.
pub fn scripted(engine: &Engine, dir: &Path, script: Value) -> (Session, ScriptControl) {
    scripted_with(engine, dir, script, |options| options)
}

pub fn scripted_with(
    engine: &Engine,
    dir: &Path,
    script: Value,
    options: impl FnOnce(SessionOptions) -> SessionOptions,
) -> (Session, ScriptControl) {
    let script = Script::from_value(script).expect("a script").with_chunk(0);
    let control = script.control();
    control.record();
    engine.add_scripted_model("test", script).expect("a model");
    let base = SessionOptions::new(dir).session_dir(dir.join("sessions")).model("scripted/test").thinking_level("off");
    let session = branchline::block_on(engine.create_session(options(base))).expect("a session");
    (session, control)
}

/// Everything up to and with `agent_settled`.
pub fn until_settled(events: &Events) -> Vec<Event> {
    until_settled_with(events, |_| {})
}

/// The same, with a look at each event's shape as it comes.
pub fn until_settled_with(events: &Events, mut look: impl FnMut(&str)) -> Vec<Event> {
    let mut all = Vec::new();
    loop {
        let event = events.next_timeout(Duration::from_secs(20)).expect("an event in time").expect("not the end");
        let settled = matches!(event.kind(), EventKind::AgentSettled { .. });
        look(&shape(&event));
        all.push(event);
        if settled {
            return all;
        }
    }
}

/// One word an event: its type, and what tells it from others of the type.
pub fn shape(event: &Event) -> String {
    let json: Value = serde_json::from_str(&event.to_json()).expect("events are JSON");
    assert_eq!(json["type"], event.type_name());
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let detail = match event.kind() {
        EventKind::MessageStart { .. } | EventKind::MessageEnd { .. } => {
            let stop = word(&json["message"]["stopReason"]);
            format!("{} {stop}", word(&json["message"]["role"]))
        }
        EventKind::MessageUpdate { .. } => word(&json["assistantMessageEvent"]["type"]),
        EventKind::ToolExecutionStart { .. } | EventKind::ToolExecutionUpdate { .. } => word(&json["toolCallId"]),
        EventKind::ToolExecutionEnd { .. } => format!("{} {}", word(&json["toolCallId"]), json["isError"]),
        EventKind::TurnEnd { .. } => json["toolResults"].as_array().map_or(0, Vec::len).to_string(),
        EventKind::AgentEnd { .. } => {
            let roles: Vec<String> =
                json["messages"].as_array().into_iter().flatten().map(|message| word(&message["role"])).collect();
            roles.join(",")
        }
        EventKind::AgentSettled { aborted } => aborted.to_string(),
        EventKind::QueueUpdate { .. } => format!("{}{}", json["steering"], json["followUp"]),
        _ => String::new(),
    };
    format!("{} {detail}", event.type_name()).trim_end().to_owned()
}

pub fn shapes(events: &[Event]) -> Vec<String> {
    events.iter().map(shape).collect()
}

/// The lines of a session file as values, header first.
pub fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the session file");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The keys of an object in written order.
pub fn keys(value: &Value) -> String {
    value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>().join(",")
}

/// A tool without parameters.
pub fn tool(name: &str, run: impl Fn(ToolCall) -> ToolFuture + Send + Sync + 'static) -> Arc<dyn Tool> {
    Arc::new(HostTool {
        definition: ToolDefinition::new(name, "A tool.", json!({"type": "object"})),
        run: Box::new(run),
    })
}

struct HostTool {
    definition: ToolDefinition,
    run: Box<dyn Fn(ToolCall) -> ToolFuture + Send + Sync>,
}

impl Tool for HostTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        (self.run)(call)
    }
}
