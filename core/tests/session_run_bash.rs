//! Commands of the user in a session (T280–T288, S239–S241): output as events, the record, cancellation.

#[path = "session_support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use branchline::session::RunBashOptions;
use branchline::tools::bash::BashOptions;
use branchline::{EventKind, PromptOptions, SubscribeOptions, block_on};
use serde_json::{Value, json};
use support::*;

fn updates(events: &branchline::Events) -> Vec<Value> {
    std::iter::from_fn(|| events.try_next())
        .filter(|event| event.type_name() == "bash_execution_update")
        .map(|event| serde_json::from_str(&event.to_json()).unwrap())
        .collect()
}

#[test]
fn output_is_told_cleaned_and_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, _) = scripted(&engine, dir.path(), json!([{"content": [{"type": "text", "text": "ok"}]}]));
    let events = session.subscribe(SubscribeOptions::default());
    let options = RunBashOptions::default().id("one").bash(BashOptions::default().prefix("x=7"));
    let ended = block_on(session.run_bash("printf '\\033[31mred\\033[0m %s' $x; exit 3", options)).unwrap();
    assert_eq!((ended.output.as_str(), ended.exit_code, ended.cancelled), ("red 7", Some(3), false));
    let told = updates(&events);
    assert!(told.iter().all(|it| it["id"] == "one"));
    assert_eq!(told.iter().map(|it| it["delta"].as_str().unwrap()).collect::<String>(), "red 7");
    block_on(session.run_bash("echo secret", RunBashOptions::default().exclude_from_context(true))).unwrap();
    assert!(updates(&events)[0].get("id").is_none());
    block_on(block_on(session.prompt("go", PromptOptions::default())).unwrap().result()).unwrap();
    let stored: Vec<Value> = lines(&session.path().unwrap())
        .into_iter()
        .filter(|line| line["message"]["role"] == "bashExecution")
        .map(|line| line["message"].clone())
        .collect();
    assert_eq!(stored.len(), 2);
    assert_eq!(stored[0]["command"], "printf '\\033[31mred\\033[0m %s' $x; exit 3", "as typed, without the prefix");
    assert_eq!((&stored[0]["output"], &stored[0]["exitCode"]), (&json!("red 7"), &json!(3)));
    assert_eq!(stored[1]["excludeFromContext"], true);
}

#[test]
fn one_that_is_ended_says_what_it_printed() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([{"content": [{"type": "text", "text": "partial"}], "hang": true}]);
    let (session, control) = scripted(&engine, dir.path(), script);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    let (events, theirs) = (session.subscribe(SubscribeOptions::default()), session.clone());
    let begun = Instant::now();
    let command = std::thread::spawn(move || {
        block_on(theirs.run_bash("echo early; sleep 60", RunBashOptions::default())).unwrap()
    });
    while !matches!(
        events.next_timeout(Duration::from_secs(20)).unwrap().unwrap().kind(),
        EventKind::BashExecutionUpdate { .. }
    ) {}
    // An abort of the run leaves it alone.
    block_on(session.abort()).unwrap();
    assert!(!command.is_finished());
    assert!(block_on(run.result()).unwrap().aborted);
    session.abort_bash();
    let ended = command.join().unwrap();
    assert!(ended.cancelled && ended.exit_code.is_none() && begun.elapsed() < Duration::from_secs(30));
    assert_eq!(ended.output, "early\n");
    // The next one is not ended with it.
    assert_eq!(block_on(session.run_bash("echo again", RunBashOptions::default())).unwrap().output, "again\n");
}

#[test]
fn a_flood_nobody_reads_is_bounded_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, _) = scripted(&engine, dir.path(), json!([]));
    let _deaf = session.subscribe(SubscribeOptions::default().capacity(1));
    let theirs = session.clone();
    let command = std::thread::spawn(move || block_on(theirs.run_bash("yes", RunBashOptions::default())).unwrap());
    std::thread::sleep(Duration::from_millis(300));
    session.abort_bash();
    assert!(command.join().unwrap().cancelled);
    let ended = block_on(session.run_bash("exit 1", RunBashOptions::default())).unwrap();
    assert_eq!(ended.exit_code, Some(1));
}
