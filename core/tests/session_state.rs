//! What a session says it is doing, at any moment of a run (S194).

#[path = "session_support/mod.rs"]
mod support;

use branchline::resources::settings::Settings;
use branchline::{Phase, PromptOptions, Session, WhenRunning, block_on};
use serde_json::{Value, json};
use support::*;

fn settings(values: Value) -> Settings {
    Settings::from_values(values.as_object().unwrap().clone())
}

fn phase(session: &Session) -> (Phase, bool) {
    let state = session.state();
    (state.phase, state.running)
}

fn begin(session: &Session) -> branchline::Run {
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    run.events().discard();
    run
}

#[test]
fn the_phases_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let text = |text: &str| json!({"type": "text", "text": text});
    let script = json!([
        {"content": [text(&"word ".repeat(40))]},
        {"content": [text(&"word ".repeat(40))], "waitGate": "reply", "usage": {"input": 120_000, "output": 10}},
        {"content": [text("SUMMARY")], "waitGate": "summary"},
        {"content": [text("queued")]},
        {"immediateError": "overloaded"},
    ]);
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| {
        options.settings(settings(json!({"compaction": {"keepRecentTokens": 51}, "retry": {"baseDelayMs": 60000}})))
    });
    assert_eq!(phase(&session), (Phase::Idle, false));
    block_on(begin(&session).result()).unwrap();

    let run = begin(&session);
    block_on(control.reached(1));
    assert_eq!(phase(&session), (Phase::Running, true));
    control.gates().open("reply");
    // The run makes room by itself: it compacts and is still a run, so a prompt is queued and not refused as busy.
    block_on(control.reached(2));
    assert_eq!(phase(&session), (Phase::Compacting, true));
    let refused = block_on(session.prompt("no", PromptOptions::default())).err().unwrap();
    assert_eq!(refused.code().name(), "running");
    let queued = PromptOptions::default().when_running(WhenRunning::FollowUp);
    drop(block_on(session.prompt("later", queued)).unwrap());
    assert_eq!(session.state().follow_up, ["later"]);
    control.gates().open("summary");
    assert_eq!(block_on(run.result()).unwrap().text, "queued");
    assert_eq!(phase(&session), (Phase::Idle, false));

    let run = begin(&session);
    while session.state().phase != Phase::Retrying {
        std::thread::yield_now();
    }
    assert!(session.state().running);
    assert_eq!(serde_json::to_value(session.state()).unwrap()["phase"], "retrying");
    session.abort_retry();
    block_on(run.result()).unwrap();
    assert_eq!(phase(&session), (Phase::Idle, false));
    block_on(session.close()).unwrap();
    assert_eq!(phase(&session), (Phase::Closed, false));
}
