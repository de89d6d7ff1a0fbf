//! A file that a hundred siblings wrote at once, in the real pi. Skipped, with one line, when pi cannot be installed.

use branchline::providers::scripted::Script;
use branchline::tree::{OpenOptions, Tree};
use branchline::{AdoptOptions, Engine, EngineOptions, ExploreOptions, PromptOptions, SessionOptions, block_on};
use branchline_interop::{Peer, State};
use std::path::Path;

fn look(path: &Path) -> Tree {
    let tree = Tree::open(path, OpenOptions { read_only: true, ..Default::default() }).expect("ours opens the file");
    assert_eq!(tree.diagnostics(), []);
    tree
}

#[test]
fn pi_reads_what_a_hundred_siblings_write_at_once() {
    let Some(mut peer) = Peer::start() else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let engine = Engine::new(EngineOptions::default().agent_dir(dir.path().join("agent"))).expect("an engine");
    let script = r#"{"atEnd": "loop", "delayMs": 0, "script": [
        {"content": [{"type": "text", "text": "Ünï\u2028code"},
            {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "."}}]},
        {"content": [{"type": "toolCall", "id": "c2", "name": "ls", "arguments": {"limit": 1}},
            {"type": "toolCall", "id": "c3", "name": "find", "arguments": {"pattern": "*"}}]},
        {"content": [{"type": "text", "text": "done"}]}]}"#;
    engine.add_scripted_model("loop", Script::from_json(script).expect("a script")).expect("a model");
    let options = SessionOptions::new(dir.path()).session_dir(dir.path().join("sessions")).model("scripted/loop");
    let session = block_on(engine.create_session(options)).expect("a session");
    let run = block_on(session.prompt("base", PromptOptions::default())).expect("a run");
    block_on(run.result()).expect("a result");

    let prompts = (0..100).map(|n| format!("sibling {n}"));
    let exploration = block_on(session.explore(prompts, ExploreOptions::default().limit(100))).expect("an exploration");
    let results = block_on(exploration.results()).expect("results");
    assert!(results.iter().all(|result| result.is_complete()));
    let path = session.path().expect("a file");
    let folder = path.parent().expect("a folder");

    let tree = look(&path);
    peer.open(&path, folder);
    State::of(&tree, tree.last_id().as_deref()).assert_is(&peer.state(), "as it is opened");
    for (n, result) in results.iter().enumerate() {
        let leaf = result.leaf.as_deref().expect("a leaf");
        peer.call("branch", &[&format!("\"{leaf}\"")]).expect("pi moves there");
        if n % 10 == 0 {
            State::of(&tree, Some(leaf)).assert_is(&peer.state(), &format!("at the leaf of sibling {n}"));
        }
    }

    let options = AdoptOptions::default().summarize_others(true).others([results[1].leaf.clone().expect("a leaf")]);
    // The looping script may answer with a call, which is no summary; its third reply is one.
    let adopted = (0..3).any(|_| block_on(session.adopt(&results[0].session, options.clone())).is_ok());
    assert!(adopted, "one of three requests gets a text");
    let tree = look(&path);
    peer.open(&path, folder);
    State::of(&tree, session.leaf().as_deref()).assert_is(&peer.state(), "with the summary");
}
