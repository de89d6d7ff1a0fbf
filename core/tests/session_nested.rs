//! Tools that call other tools (S34, S196): events, the record, hooks and permissions, and ends in the middle.

#[path = "session_support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use branchline::agent::{Decision, HookFuture, HookedCall, ToolHook};
use branchline::permissions::{Action, Effect};
use branchline::tools::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult};
use branchline::{EventKind, Permissions, PromptOptions, Session, block_on};
use serde_json::{Value, json};
use support::*;

type Body = Arc<dyn Fn(ToolCall) -> ToolFuture + Send + Sync>;

struct Own(ToolDefinition, Body);

impl Tool for Own {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        (self.1)(call)
    }
}

fn tool<F>(name: &str, effect: Effect, body: impl Fn(ToolCall) -> F + Send + Sync + 'static) -> Arc<dyn Tool>
where
    F: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let definition = ToolDefinition::new(name, name, schema).with_effect(effect, &[]);
    Arc::new(Own(definition, Arc::new(move |call| Box::pin(body(call)))))
}

fn script() -> Value {
    json!({"replies": [
        {"content": [{"type": "toolCall", "id": "c", "name": "outer", "arguments": {"n": 3}}]},
        {"content": [{"type": "text", "text": "done"}]}], "atEnd": "loop"})
}

/// One prompt: the shapes of tool events, and the stored result of `outer`.
fn go(session: &Session) -> (Vec<String>, Value) {
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let events = until_settled(run.events());
    let told = shapes(&events).into_iter().filter(|it| it.starts_with("tool_exec")).collect();
    let result = events.iter().rev().find_map(|event| match event.kind() {
        EventKind::TurnEnd { tool_results, .. } => tool_results.first().cloned(),
        _ => None,
    });
    (told, serde_json::from_str(&result.unwrap().to_json()).unwrap())
}

#[test]
fn calls_of_calls_are_told_and_recorded_once() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    engine.add_tool(tool("inner", Effect::Read, |call: ToolCall| async move {
        call.progress.update(ToolResult::text("half")).await;
        let n = call.arguments.get("n").and_then(Value::as_u64).unwrap_or(0);
        if n > 0 {
            let below = call.call_tool("inner", json!({"n": n - 1})).await;
            assert!(!below.is_error);
        }
        Ok(ToolResult::text(format!("inner {n}")))
    }));
    engine.add_tool(tool("outer", Effect::Read, |call: ToolCall| async move {
        // Two at once, then one with wrong arguments.
        let (a, b) = futures_join(call.call_tool("inner", json!({"n": 1})), call.call_tool("inner", json!({}))).await;
        let wrong = call.call_tool("inner", json!({"n": "x"})).await;
        assert!(wrong.is_error);
        Ok(ToolResult::text(format!("{} {}", a.content[0]["text"], b.content[0]["text"])))
    }));
    let (session, _) = scripted(&engine, dir.path(), script());
    let (told, result) = go(&session);
    let starts: Vec<&String> = told.iter().filter(|it| it.contains("start")).collect();
    let ends = told.iter().filter(|it| it.contains("end")).count();
    assert_eq!((starts.len(), ends), (5, 5), "{told:?}");
    assert_eq!(
        (told.first().unwrap().as_str(), told.last().unwrap().as_str()),
        ("tool_execution_start c", "tool_execution_end c false")
    );
    let ids: Vec<&str> =
        result["nestedCalls"]["calls"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 4);
    for id in ["c/1", "c/2", "c/1/1", "c/3"] {
        assert!(ids.contains(&id), "{ids:?}");
        let (start, end) = (format!("tool_execution_start {id}"), format!("tool_execution_end {id} "));
        let at = |word: &str| told.iter().position(|it| it.starts_with(word)).unwrap();
        assert!(at(&start) < at(&end));
    }
    assert_eq!(result["nestedCalls"]["complete"], true);
    assert_eq!(result["content"][0]["text"], "\"inner 1\" \"inner 0\"");
}

async fn futures_join<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (Box::pin(a), Box::pin(b));
    let (mut one, mut two) = (None, None);
    std::future::poll_fn(move |cx| {
        if one.is_none()
            && let std::task::Poll::Ready(value) = a.as_mut().poll(cx)
        {
            one = Some(value);
        }
        if two.is_none()
            && let std::task::Poll::Ready(value) = b.as_mut().poll(cx)
        {
            two = Some(value);
        }
        match (one.take(), two.take()) {
            (Some(one), Some(two)) => std::task::Poll::Ready((one, two)),
            (first, second) => {
                (one, two) = (first, second);
                std::task::Poll::Pending
            }
        }
    })
    .await
}

struct Watching(AtomicUsize);

impl ToolHook for Watching {
    fn before<'a>(&'a self, call: &'a mut HookedCall) -> HookFuture<'a, Decision> {
        Box::pin(async move {
            self.0.fetch_add(1, Ordering::SeqCst);
            match call.id.as_str() {
                "c/1" => Ok(Decision::Block { reason: Some("not this one".to_owned()), terminate: false }),
                _ => Ok(Decision::Run),
            }
        })
    }
}

#[test]
fn hooks_and_permissions_see_them() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    engine.add_tool(tool("inner", Effect::Execute, move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolResult::text("ran")) }
    }));
    engine.add_tool(tool("outer", Effect::Read, |call: ToolCall| async move {
        let blocked = call.call_tool("inner", json!({})).await;
        let denied = call.call_tool("inner", json!({})).await;
        Ok(ToolResult::text(format!("{} / {}", blocked.content[0]["text"], denied.content[0]["text"])))
    }));
    let hook = Arc::new(Watching(AtomicUsize::new(0)));
    let theirs = hook.clone();
    let (session, _) = scripted_with(&engine, dir.path(), script(), |options| {
        options.tool_hook(theirs).permissions(Permissions::ask().tool("outer", Action::Allow))
    });
    let (_, result) = go(&session);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("\"not this one\" / \"Permission denied: "), "{text}");
    assert_eq!((hook.0.load(Ordering::SeqCst), ran.load(Ordering::SeqCst)), (3, 0));
    assert_eq!(result["nestedCalls"]["calls"][1]["status"], "error");
}

#[test]
fn calls_do_not_nest_without_end() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    engine.add_tool(tool("outer", Effect::Read, |call: ToolCall| async move {
        let below = call.call_tool("outer", json!({})).await;
        Ok(ToolResult::text(below.content[0]["text"].as_str().unwrap_or_default()))
    }));
    let (session, _) = scripted(&engine, dir.path(), script());
    let (_, result) = go(&session);
    assert_eq!(result["content"][0]["text"], "Tools call each other too deeply.");
    assert_eq!(result["nestedCalls"]["calls"].as_array().unwrap().len(), 9);
}

#[test]
fn an_abort_ends_them_with_their_maker() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (send, waiting) = std::sync::mpsc::channel();
    engine.add_tool(tool("inner", Effect::Read, move |call: ToolCall| {
        send.send(()).unwrap();
        async move {
            call.cancel.cancelled().await;
            std::future::pending().await
        }
    }));
    engine.add_tool(tool("outer", Effect::Read, |call: ToolCall| async move {
        let result = call.call_tool("inner", json!({})).await;
        Ok(ToolResult::text(result.content[0]["text"].as_str().unwrap_or_default()))
    }));
    let (session, _) = scripted(&engine, dir.path(), script());
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    waiting.recv().unwrap();
    block_on(session.abort()).unwrap();
    let told = shapes(&until_settled(run.events()));
    let ends: Vec<&String> = told.iter().filter(|it| it.contains("execution_end")).collect();
    assert_eq!(ends, ["tool_execution_end c/1 true", "tool_execution_end c true"]);
    let stored = lines(&session.path().unwrap());
    let result = stored.iter().find(|line| line["message"]["role"] == "toolResult").unwrap();
    assert_eq!(result["message"]["nestedCalls"]["calls"][0]["status"], "aborted");
    assert_eq!(result["message"]["nestedCalls"]["complete"], false);
}
