//! Settings that say where sessions are and which tools they have (S38, S281).

#[path = "session_support/mod.rs"]
mod support;

use branchline::resources::settings::Settings;
use branchline::tree::ListOptions;
use branchline::{EngineOptions, PromptOptions, SessionOptions, block_on};
use serde_json::{Value, json};
use support::*;

fn settings(value: Value) -> Settings {
    Settings::from_values(value.as_object().unwrap().clone())
}

#[test]
fn session_dir_is_where_files_go_and_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("elsewhere");
    let options = EngineOptions::default().agent_dir(dir.path().join("agent"));
    let engine = branchline::Engine::new(options.settings(settings(json!({"sessionDir": there})))).unwrap();
    let make = |options: SessionOptions| block_on(engine.create_session(options.model("scripted/demo").tools([""; 0])));
    let session = make(SessionOptions::new(dir.path())).unwrap();
    block_on(block_on(session.prompt("hi", PromptOptions::default())).unwrap().result()).unwrap();
    assert_eq!(session.path().unwrap().parent().unwrap(), there);
    let listed = block_on(engine.list_sessions(Some(dir.path().to_path_buf()), ListOptions::default())).unwrap();
    assert_eq!(listed.len(), 1);
    // What the host says for one session is stronger.
    let own = make(SessionOptions::new(dir.path()).session_dir(dir.path().join("own"))).unwrap();
    assert_eq!(own.path().unwrap().parent().unwrap(), dir.path().join("own"));
    block_on(session.close()).unwrap();
    let recent = block_on(engine.continue_recent(SessionOptions::new(dir.path()))).unwrap();
    assert_eq!(recent.id(), session.id());
}

#[test]
fn default_tools_are_the_active_ones() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    for (given, active) in [
        (json!({}), vec!["read", "bash", "edit", "write"]),
        (json!({"defaultTools": ["grep", "read", "nosuch", "grep"]}), vec!["grep", "read"]),
        (json!({"defaultTools": []}), vec![]),
    ] {
        let (session, _) = scripted_with(&engine, dir.path(), json!([]), |options| options.settings(settings(given)));
        assert_eq!(session.state().tools, active);
    }
    let (session, _) = scripted_with(&engine, dir.path(), json!([]), |options| {
        options.settings(settings(json!({"defaultTools": ["grep"]}))).tools(["ls"])
    });
    assert_eq!(session.state().tools, ["ls"], "a choice is stronger");
}
