//! Ends of sessions and engines: nothing hangs, nothing is left behind.

#[path = "session_support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use branchline::{PromptOptions, SessionOptions, SubscribeOptions, block_on};
use serde_json::json;
use support::*;

fn hanging() -> serde_json::Value {
    json!([{"content": [{"type": "text", "text": "partial"}], "hang": true}])
}

#[test]
fn closing_a_running_session_stores_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, control) = scripted(&engine, dir.path(), hanging());
    let events = session.subscribe(SubscribeOptions::default());
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    block_on(session.close()).unwrap();
    block_on(session.close()).unwrap();
    assert!(block_on(run.result()).unwrap().aborted);
    let last = std::iter::from_fn(|| events.try_next()).last().unwrap();
    assert_eq!(shape(&last), "agent_settled true");
    assert!(block_on(events.next()).is_none());
    let file = session.path().unwrap();
    assert_eq!(lines(&file).last().unwrap()["message"]["stopReason"], "aborted");
    let refused = block_on(session.prompt("more", PromptOptions::default()));
    assert_eq!(refused.err().unwrap().code().name(), "closed");
    block_on(engine.open_session(&file, SessionOptions::new(""))).expect("the lock is free");
}

#[test]
fn dropping_the_last_handle_ends_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, control) = scripted(&engine, dir.path(), hanging());
    let events = session.subscribe(SubscribeOptions::default());
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    let file = session.path().unwrap();
    drop(session);
    assert!(events.next_timeout(Duration::from_millis(50)).is_ok(), "the run keeps the session");
    drop(run);
    while events.next_timeout(Duration::from_secs(5)).expect("the end comes by itself").is_some() {}
    block_on(engine.open_session(&file, SessionOptions::new(""))).expect("the lock is free");
}

#[test]
fn shutting_the_engine_down_ends_everything() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, control) = scripted(&engine, dir.path(), hanging());
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    let begun = Instant::now();
    block_on(engine.shutdown());
    block_on(engine.shutdown());
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(block_on(run.result()).unwrap().aborted);
    assert_eq!(block_on(session.set_name("x")).unwrap_err().code().name(), "closed");
    let refused = block_on(engine.create_session(SessionOptions::new(dir.path())));
    assert_eq!(refused.err().unwrap().code().name(), "closed");
}

#[test]
fn dropping_the_engine_does_not_wait_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, control) = scripted(&engine, dir.path(), hanging());
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    let begun = Instant::now();
    drop(engine);
    assert!(begun.elapsed() < Duration::from_millis(100));
    assert!(block_on(run.result()).unwrap().aborted);
    assert_eq!(lines(&session.path().unwrap()).last().unwrap()["message"]["stopReason"], "aborted");
    block_on(session.close()).unwrap();
    assert_eq!(block_on(session.wait_idle()).unwrap_err().code().name(), "closed");
}

#[test]
fn two_engines_live_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (engine(dir.path()), engine(dir.path()));
    let reply = |text: &str| json!([{"content": [{"type": "text", "text": text}]}]);
    let (a, _) = scripted(&first, dir.path(), reply("one"));
    let (b, _) = scripted(&second, dir.path(), reply("two"));
    let run = block_on(a.prompt("go", PromptOptions::default())).unwrap();
    block_on(run.result()).unwrap();
    drop(first);
    let run = block_on(b.prompt("go", PromptOptions::default())).unwrap();
    assert_eq!(block_on(run.result()).unwrap().text, "two");
}

#[test]
fn errors_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let options = SessionOptions::new(dir.path()).in_memory(true);
    let unknown = block_on(engine.create_session(options.clone().model("nobody/nothing"))).err().unwrap();
    assert_eq!(unknown.code().name(), "unknown_model");
    assert!(unknown.message().contains("scripted/demo"));
    let tool = block_on(engine.create_session(options.clone().tools(["hammer"]))).err().unwrap();
    assert_eq!(tool.code().name(), "unknown_tool");
    let session = block_on(engine.create_session(options)).unwrap();
    let none = block_on(session.prompt("go", PromptOptions::default())).err().unwrap();
    assert_eq!(none.code().name(), "no_model");
    block_on(session.set_model("scripted/demo")).unwrap();
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(run.result()).unwrap();
}

/// Whatever is asked while a session ends gets its answer, though nobody is left to give one.
#[test]
fn calls_that_race_with_the_end_return() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (done, all_done) = std::sync::mpsc::channel();
    for _ in 0..1000 {
        let options = SessionOptions::new(dir.path()).model("scripted/demo").in_memory(true);
        let session = block_on(engine.create_session(options)).unwrap();
        let (other, done) = (session.clone(), done.clone());
        std::thread::spawn(move || {
            block_on(other.close()).unwrap();
            let refused = block_on(other.steer("x")).unwrap_err();
            done.send(refused.code().name()).unwrap();
        });
        while block_on(session.steer("y")).is_ok() {}
        assert_eq!(all_done.recv_timeout(Duration::from_secs(60)), Ok("closed"), "a call hangs");
    }
}
