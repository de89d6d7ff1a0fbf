//! Data that the pages show is what they say it is.

use std::fs;
use std::path::Path;

use branchline::tree::{OpenOptions, Tree};
use branchline::{Engine, EngineOptions};
use serde_json::Value;

/// The fenced blocks of a page in a language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = fs::read_to_string(path).expect("a page");
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(named) = line.strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if named == language {
                found.push(body.join("\n"));
            }
        }
    }
    found
}

#[test]
fn the_session_file_is_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("example.jsonl");
    let example = blocks("session-format.md", "").pop().expect("the example");
    fs::write(&file, example + "\n").expect("a file");
    let tree = Tree::open(&file, OpenOptions { read_only: true, ..OpenOptions::default() }).expect("a session");
    assert_eq!(tree.diagnostics(), []);
    assert_eq!(tree.last_id().as_deref(), Some("0a000007"));
    let context = tree.context(Some("0a000007")).expect("a context");
    assert_eq!(context.messages().count(), 2, "the system message and the second question");
    assert_eq!(tree.label("0a000005").map(|label| label.text).as_deref(), Some("first try"));
}

#[test]
fn the_models_are_taken() {
    let engine = Engine::new(EngineOptions::default()).expect("an engine");
    engine.configure_models(&blocks("models.md", "json")[0]).expect("models.json");
    assert_eq!(engine.find_model("ollama/qwen3:8b").expect("the model").model.context_window, 32768);
    assert_eq!(engine.find_model("anthropic/claude-sonnet-5").expect("the model").model.max_tokens, 32000);
    assert!(engine.find_model("openrouter/vendor/model").is_ok());
}

#[test]
fn the_events_are_json() {
    for line in blocks("events.md", "json").concat().lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        assert!(event["type"].is_string(), "{line}");
    }
}
