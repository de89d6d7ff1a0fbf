//! What tool calls may do: presets, rules, the handler, and what is told of a decision.

#[path = "session_support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use branchline::permissions::{
    Action, DecidedBy, Effect, PermissionAnswer, PermissionDecision, PermissionRequest, Preset, Scope,
};
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, Toolbox};
use branchline::{Engine, EngineOptions, EventKind, Permissions, PromptOptions, Session, SessionOptions, block_on};
use serde_json::{Value, json};
use support::*;

/// An engine that says nothing about permissions.
fn plain_engine(dir: &Path) -> Engine {
    Engine::new(EngineOptions::default().agent_dir(dir.join("agent")).worker_threads(2)).expect("an engine")
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

/// A script that makes these calls in one response, then answers, again and again.
fn calling(calls: &[Value]) -> Value {
    json!({"replies": [{"content": calls}, {"content": [{"type": "text", "text": "done"}]}], "atEnd": "loop"})
}

/// What came of one prompt: the results as (id, text, is error), and the decisions.
fn go(session: &Session) -> (Vec<(String, String, bool)>, Vec<PermissionDecision>) {
    let run = block_on(session.prompt("go", PromptOptions::default())).expect("accepted");
    let events = until_settled(run.events());
    let mut results = Vec::new();
    let mut decisions = Vec::new();
    for event in &events {
        match event.kind() {
            EventKind::ToolExecutionEnd { id, result, is_error, .. } => {
                let text = result.content[0]["text"].as_str().unwrap_or_default();
                results.push((id.to_string(), text.to_owned(), *is_error));
            }
            EventKind::PermissionDecision { decision } => decisions.push(PermissionDecision::clone(decision)),
            _ => {}
        }
    }
    (results, decisions)
}

fn session(engine: &Engine, dir: &Path, permissions: Option<Permissions>, calls: &[Value]) -> Session {
    let choose = |options: SessionOptions| {
        let options = options.tools(["read", "write", "edit", "bash", "grep", "find", "ls"]);
        match permissions {
            Some(permissions) => options.permissions(permissions),
            None => options,
        }
    };
    scripted_with(engine, dir, calling(calls), choose).0
}

fn summary(decision: &PermissionDecision) -> (String, bool, String, DecidedBy) {
    (decision.call_id.to_string(), decision.allowed, decision.rule.to_string(), decision.by)
}

/// A call of every kind, inside and outside of the working directory.
fn every_kind(outside: &Path) -> Vec<Value> {
    let out = |name: &str| outside.join(name).display().to_string();
    vec![
        call("read-in", "read", json!({"path": "a.txt"})),
        call("grep-in", "grep", json!({"pattern": "a"})),
        call("find-in", "find", json!({"pattern": "*"})),
        call("ls-in", "ls", json!({})),
        call("read-out", "read", json!({"path": out("o.txt")})),
        call("ls-out", "ls", json!({"path": out("")})),
        call("write-in", "write", json!({"path": "new/b.txt", "content": "b"})),
        call("edit-in", "edit", json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]})),
        call("write-out", "write", json!({"path": out("w.txt"), "content": "w"})),
        call("bash", "bash", json!({"command": "echo ran"})),
    ]
}

fn ids(results: &[(String, String, bool)], failed: bool) -> Vec<&str> {
    let mut ids: Vec<&str> = results.iter().filter(|it| it.2 == failed).map(|it| it.0.as_str()).collect();
    ids.sort_unstable();
    ids
}

struct Place {
    _dir: tempfile::TempDir,
    work: std::path::PathBuf,
    outside: std::path::PathBuf,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let base = std::fs::canonicalize(dir.path()).unwrap();
    let (work, outside) = (base.join("work"), base.join("workx"));
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(work.join("a.txt"), "one\n").unwrap();
    std::fs::write(outside.join("o.txt"), "secret\n").unwrap();
    Place { _dir: dir, work, outside }
}

#[test]
fn presets_decide_by_effect_and_place() {
    let inside = ["find-in", "grep-in", "ls-in", "read-in"];
    let writes = ["edit-in", "write-in"];
    let rest = ["bash", "ls-out", "read-out", "write-out"];
    let sorted = |parts: &[&[&'static str]]| {
        let mut all: Vec<&str> = parts.concat();
        all.sort_unstable();
        all
    };
    for (preset, allowed, denied) in [
        (None, sorted(&[&inside]), sorted(&[&writes, &rest])),
        (Some(Preset::ReadOnly), sorted(&[&inside]), sorted(&[&writes, &rest])),
        (Some(Preset::Ask), sorted(&[&inside]), sorted(&[&writes, &rest])),
        (Some(Preset::Workspace), sorted(&[&inside, &writes]), sorted(&[&rest])),
        (Some(Preset::Allow), sorted(&[&inside, &writes, &rest]), vec![]),
    ] {
        let place = place();
        let engine = plain_engine(&place.outside);
        let session = session(&engine, &place.work, preset.map(Permissions::preset), &every_kind(&place.outside));
        let (results, decisions) = go(&session);
        assert_eq!(ids(&results, false), allowed, "{preset:?} {results:?}");
        assert_eq!(ids(&results, true), denied, "{preset:?}");
        if preset == Some(Preset::Allow) {
            assert!(decisions.is_empty(), "pi's stream has no such events");
        } else {
            assert_eq!(decisions.len(), 10);
            for decision in &decisions {
                assert_eq!(decision.allowed, allowed.contains(&&*decision.call_id), "{decision:?}");
            }
        }
        assert_eq!(place.outside.join("w.txt").exists(), preset == Some(Preset::Allow));
        assert_eq!(place.work.join("new/b.txt").exists(), allowed.contains(&"write-in"));
    }
}

#[test]
fn rules_are_named_and_a_denial_says_which_option_changes_it() {
    let place = place();
    let engine = plain_engine(&place.outside);
    let session = session(&engine, &place.work, None, &every_kind(&place.outside));
    let (results, decisions) = go(&session);
    let all: Vec<_> = decisions.iter().map(summary).collect();
    let expect = |id: &str, allowed, rule: &str, by| {
        assert!(all.contains(&(id.into(), allowed, rule.into(), by)), "{id}: {all:?}");
    };
    expect("read-in", true, "ask.read.inside", DecidedBy::Policy);
    expect("read-out", false, "ask.read.outside", DecidedBy::NoHandler);
    expect("write-in", false, "ask.write.inside", DecidedBy::NoHandler);
    expect("bash", false, "ask.execute", DecidedBy::NoHandler);
    let text = |id: &str| results.iter().find(|it| it.0 == id).unwrap().1.clone();
    for (id, option) in [("write-in", "\"workspace\""), ("write-out", "\"allow\""), ("bash", "\"allow\"")] {
        let text = text(id);
        assert!(text.starts_with("Permission denied: ") && text.contains("\"permissions\""), "{text}");
        assert!(text.contains(option), "{text}");
    }
    // The event as hosts of other languages see it.
    let run = block_on(session.prompt("again", PromptOptions::default())).unwrap();
    let events = until_settled(run.events());
    let told = events.iter().find(|event| event.type_name() == "permission_decision").unwrap();
    let told: Value = serde_json::from_str(&told.to_json()).unwrap();
    assert_eq!(
        told,
        json!({"type": "permission_decision", "toolCallId": "read-in", "toolName": "read", "effect": "read",
            "decision": "allow", "rule": "ask.read.inside", "by": "policy"})
    );
}

#[test]
fn rules_for_tools_come_before_those_for_effects_and_the_preset() {
    let place = place();
    let engine = plain_engine(&place.outside);
    let policy = Permissions::workspace()
        .tool("write", Action::Deny)
        .tool("bash", Action::Allow)
        .effect(Effect::Write, Action::Allow)
        .effect(Effect::Read, Action::Deny);
    let session = session(&engine, &place.work, Some(policy), &every_kind(&place.outside));
    let (results, decisions) = go(&session);
    assert_eq!(ids(&results, false), ["bash", "edit-in"]);
    let rules: Vec<_> = decisions.iter().map(|it| (it.call_id.to_string(), it.rule.to_string())).collect();
    for (id, rule) in [
        ("bash", "tool.bash"),
        ("write-in", "tool.write"),
        ("edit-in", "effect.write"),
        ("read-in", "effect.read"),
        // The root is stronger than any rule.
        ("read-out", "root"),
    ] {
        assert!(rules.contains(&(id.to_owned(), rule.to_owned())), "{id} {rules:?}");
    }
}

/// Answers by name, and keeps what it was asked.
fn answering(
    answers: impl Fn(&PermissionRequest) -> Result<PermissionAnswer, ToolError> + Send + Sync + 'static,
) -> (Permissions, Arc<Mutex<Vec<PermissionRequest>>>) {
    let asked: Arc<Mutex<Vec<PermissionRequest>>> = Arc::default();
    let kept = asked.clone();
    let handler = move |request: PermissionRequest| {
        let answer = answers(&request);
        kept.lock().unwrap().push(request);
        async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            answer
        }
    };
    (Permissions::ask().handler(handler), asked)
}

#[test]
fn the_handler_is_asked_in_order_and_gets_the_exact_text() {
    let place = place();
    let engine = plain_engine(&place.outside);
    let (policy, asked) = answering(|request| {
        Ok(match request.tool.as_str() {
            "bash" => PermissionAnswer::Deny(Some("not today".to_owned())),
            _ => PermissionAnswer::Allow,
        })
    });
    let session = session(&engine, &place.work, Some(policy), &every_kind(&place.outside));
    let (results, decisions) = go(&session);
    assert_eq!(ids(&results, true), ["bash"]);
    assert_eq!(results.iter().find(|it| it.0 == "bash").unwrap().1, "Permission denied: not today");
    assert!(place.outside.join("w.txt").exists());
    let asked = asked.lock().unwrap();
    let order: Vec<&str> = asked.iter().map(|request| request.call_id.as_str()).collect();
    assert_eq!(order, ["read-out", "ls-out", "write-in", "edit-in", "write-out", "bash"]);
    let bash = asked.last().unwrap();
    assert_eq!(
        (bash.command.as_deref(), bash.effect, bash.cwd.as_path()),
        (Some("echo ran"), Effect::Execute, &*place.work)
    );
    assert_eq!(bash.session_id, session.id());
    let read = &asked[0];
    assert_eq!((read.paths[0].real.as_path(), read.paths[0].inside), (&*place.outside.join("o.txt"), false));
    let by: Vec<_> = decisions.iter().filter(|it| it.by == DecidedBy::Handler).map(|it| it.allowed).collect();
    assert_eq!(by, [true, true, true, true, true, false]);
}

#[test]
fn no_answer_is_a_denial() {
    let never = |_: PermissionRequest| std::future::pending::<Result<PermissionAnswer, ToolError>>();
    let fails = |_: PermissionRequest| async { Err::<PermissionAnswer, _>(ToolError::new("broken")) };
    let panics = |request: PermissionRequest| async move {
        assert!(request.tool.is_empty(), "a panic of the handler");
        Ok(PermissionAnswer::Allow)
    };
    let blocks = |_: PermissionRequest| {
        std::thread::sleep(Duration::from_millis(400));
        async { Ok(PermissionAnswer::Allow) }
    };
    let short = Duration::from_millis(30);
    for (policy, by) in [
        (Permissions::ask().handler(never).timeout(short), DecidedBy::Timeout),
        (Permissions::ask().handler(blocks).timeout(short), DecidedBy::Timeout),
        (Permissions::ask().handler(fails), DecidedBy::HandlerFailed),
        (Permissions::ask().handler(panics), DecidedBy::HandlerFailed),
    ] {
        let place = place();
        let engine = plain_engine(&place.outside);
        let calls = [call("w", "write", json!({"path": "w.txt", "content": "w"}))];
        let session = session(&engine, &place.work, Some(policy), &calls);
        let (results, decisions) = go(&session);
        assert!(results[0].2 && results[0].1.starts_with("Permission denied: "), "{results:?}");
        assert_eq!((decisions[0].allowed, decisions[0].by), (false, by));
        assert!(!place.work.join("w.txt").exists());
    }
}

#[test]
fn an_abort_ends_a_question() {
    let place = place();
    let engine = plain_engine(&place.outside);
    let (send, waiting) = std::sync::mpsc::channel();
    let handler = move |request: PermissionRequest| {
        let send = send.clone();
        async move {
            send.send(request.cancel.clone()).unwrap();
            std::future::pending::<Result<PermissionAnswer, ToolError>>().await
        }
    };
    let calls = [call("w", "write", json!({"path": "w.txt", "content": "w"}))];
    let session = session(&engine, &place.work, Some(Permissions::ask().handler(handler)), &calls);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let cancel = waiting.recv_timeout(Duration::from_secs(20)).unwrap();
    let begun = Instant::now();
    block_on(session.abort()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(cancel.is_cancelled());
    let events = until_settled(run.events());
    let ends = events.iter().filter_map(|event| match event.kind() {
        EventKind::ToolExecutionEnd { result, .. } => Some(result.content[0]["text"].clone()),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), ["Operation aborted"]);
    assert!(!place.work.join("w.txt").exists());
}

#[test]
fn answers_for_always_hold_as_far_as_they_say() {
    let place = place();
    let engine = plain_engine(&place.outside);
    let below = place.outside.clone();
    let (policy, asked) = answering(move |request| {
        Ok(PermissionAnswer::AllowAlways(match request.tool.as_str() {
            "bash" => Scope::Same,
            "write" => Scope::Tool,
            _ => Scope::Below(below.clone()),
        }))
    });
    let out = |name: &str| place.outside.join(name).display().to_string();
    let calls = [
        call("1", "bash", json!({"command": "true"})),
        call("2", "bash", json!({"command": "true"})),
        call("3", "bash", json!({"command": "true "})),
        call("4", "write", json!({"path": "w.txt", "content": "w"})),
        call("5", "write", json!({"path": out("w.txt"), "content": "w"})),
        call("6", "read", json!({"path": out("o.txt")})),
        call("7", "ls", json!({"path": out("")})),
        call("8", "edit", json!({"path": out("o.txt"), "edits": [{"oldText": "secret", "newText": "x"}]})),
    ];
    let session = session(&engine, &place.work, Some(policy), &calls);
    let (results, decisions) = go(&session);
    assert!(results.iter().all(|it| !it.2), "{results:?}");
    let order = |asked: &[PermissionRequest]| asked.iter().map(|it| it.call_id.clone()).collect::<Vec<_>>();
    // Another command, and a stronger effect, ask again.
    assert_eq!(order(&asked.lock().unwrap()), ["1", "3", "4", "6", "8"]);
    let earlier: Vec<_> =
        decisions.iter().filter(|it| it.by == DecidedBy::Earlier).map(|it| it.call_id.to_string()).collect();
    assert_eq!(earlier, ["2", "5", "7"]);
    asked.lock().unwrap().clear();
    go(&session);
    assert!(order(&asked.lock().unwrap()).is_empty(), "they hold for the session");
}

/// A tool of the host: notes what it is given.
struct Own(ToolDefinition);

impl Tool for Own {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        Box::pin(async move {
            match call.arguments.get("file").and_then(Value::as_str) {
                Some(path) => {
                    let read = call.operations.files.read(Path::new(path)).await;
                    Ok(ToolResult::text(
                        read.map_or_else(|error| error.to_string(), |it| format!("{} bytes", it.len())),
                    ))
                }
                None => Ok(ToolResult::text("ran")),
            }
        })
    }
}

#[test]
fn tools_of_the_host_are_judged_by_the_effect_they_declare() {
    let place = place();
    let engine = plain_engine(&place.outside);
    let schema = json!({"type": "object"});
    let own = |name: &str| ToolDefinition::new(name, "a tool", schema.clone());
    for tool in [
        own("silent"),
        own("looks").with_effect(Effect::Read, &[]),
        own("looks_at").with_effect(Effect::Read, &["file"]),
        own("changes").with_effect(Effect::Write, &["file"]),
    ] {
        engine.add_tool(Arc::new(Own(tool)));
    }
    let out = place.outside.join("o.txt").display().to_string();
    let within = place.work.join("a.txt").display().to_string();
    let calls = [
        call("silent", "silent", json!({})),
        call("looks", "looks", json!({})),
        // It said that it looks only, and not where: its files are held to the working directory.
        call("peeks", "looks", json!({"file": out})),
        call("at-in", "looks_at", json!({"file": within})),
        call("at-out", "looks_at", json!({"file": out})),
        call("changes", "changes", json!({"file": within})),
    ];
    let (session, _) = scripted(&engine, &place.work, calling(&calls));
    let (results, _) = go(&session);
    assert_eq!(ids(&results, true), ["at-out", "changes", "silent"]);
    let text = |id: &str| results.iter().find(|it| it.0 == id).unwrap().1.clone();
    assert!(text("peeks").contains("outside"), "{}", text("peeks"));
    assert_eq!(text("at-in"), "4 bytes");
}

#[test]
fn a_toolbox_allows_everything_until_told_otherwise() {
    let place = place();
    let tools = Toolbox::new(&place.work).unwrap();
    let out = place.outside.join("w.txt");
    let write = || block_on(tools.call("write", json!({"path": out, "content": "w"})));
    assert!(!write().is_error);
    tools.clone().set_permissions(Permissions::workspace());
    let refused = write();
    assert!(refused.is_error && refused.content[0]["text"].as_str().unwrap().starts_with("Permission denied"));
    assert!(!block_on(tools.call("write", json!({"path": "x.txt", "content": "w"}))).is_error);
    let (policy, asked) = answering(|_| Ok(PermissionAnswer::Allow));
    tools.set_permissions(policy);
    assert!(!write().is_error);
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[test]
fn presets_have_names() {
    for preset in Preset::ALL {
        assert_eq!(Preset::from_name(preset.name()).unwrap(), preset);
    }
    let error = Permissions::named("yolo").unwrap_err();
    assert_eq!(error.code().name(), "invalid_argument");
    assert!(error.message().contains("read-only, ask, workspace, allow"));
}
