//! Small session files for the tests of known bugs.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses part of it")]

use std::path::{Path, PathBuf};

use branchline::message::Message;
use branchline::tree::{Cursor, Entry, OpenOptions, Tree};
use serde_json::{Value, json};

pub const HEADER: &str =
    r#"{"type":"session","version":3,"id":"fixture","timestamp":"2025-01-15T09:00:00.000Z","cwd":"/work/demo"}"#;

/// A message entry with a user's text.
pub fn user(id: &str, parent: Option<&str>, text: &str) -> String {
    message(id, parent, json!({"role": "user", "content": text, "timestamp": 1}))
}

/// A message entry with an answer of `provider`/`model`.
pub fn answer(id: &str, parent: Option<&str>, text: &str, model: &str) -> String {
    let (provider, model) = model.split_once('/').unwrap_or(("lantern", model));
    message(
        id,
        parent,
        json!({
            "role": "assistant", "content": [{"type": "text", "text": text}], "api": "lantern-chat", "provider": provider,
            "model": model, "stopReason": "stop", "timestamp": 2,
        }),
    )
}

pub fn assistant(id: &str, parent: Option<&str>, text: &str) -> String {
    answer(id, parent, text, "lantern/small")
}

pub fn message(id: &str, parent: Option<&str>, message: Value) -> String {
    entry("message", id, parent, json!({"message": message}))
}

pub fn entry(kind: &str, id: &str, parent: Option<&str>, fields: Value) -> String {
    let mut line = json!({"type": kind, "id": id, "parentId": parent, "timestamp": "2025-01-15T09:00:01.000Z"});
    for (key, value) in fields.as_object().into_iter().flatten() {
        line[key] = value.clone();
    }
    line.to_string()
}

/// A directory with one session file.
pub struct Fixture {
    pub dir: tempfile::TempDir,
    pub path: PathBuf,
}

impl Fixture {
    pub fn bytes(bytes: impl AsRef<[u8]>) -> Fixture {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("session.jsonl");
        std::fs::write(&path, bytes).expect("a writable directory");
        Fixture { dir, path }
    }

    /// Header and lines, each ended.
    pub fn lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> Fixture {
        let mut text = format!("{HEADER}\n");
        for line in lines {
            text.push_str(line.as_ref());
            text.push('\n');
        }
        Fixture::bytes(text)
    }

    pub fn open(&self) -> Tree {
        Tree::open(&self.path, OpenOptions::default()).expect("the file opens")
    }

    pub fn read(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("the file can be read")
    }
}

pub fn say(text: &str) -> Message {
    Message::user(text, vec![], 3)
}

pub fn reply(text: &str) -> Message {
    let mut message =
        branchline::message::AssistantStart { api: "a", provider: "lantern", model: "small", timestamp: 4 }.message();
    message.set("content", json!([{"type": "text", "text": text}]));
    message.set("stopReason", "stop");
    message
}

pub fn ids(tree: &Tree) -> Vec<String> {
    tree.entries().map(|entry| entry.expect("readable").id().to_owned()).collect()
}

pub fn branch(tree: &Tree, leaf: &str) -> Vec<String> {
    tree.branch(Some(leaf)).ids().collect()
}

/// Texts of the context at a leaf.
pub fn texts(tree: &Tree, leaf: Option<&str>) -> Vec<String> {
    let context = tree.context(leaf).expect("a context");
    context.messages().map(|message| message.message().text("")).collect()
}

pub fn leaf(tree: &Tree) -> Option<String> {
    Cursor::new(tree.clone()).leaf().map(str::to_owned)
}

pub fn raw(tree: &Tree, id: &str) -> String {
    let entry: Entry = tree.entry(id).expect("readable").expect("known");
    String::from_utf8_lossy(entry.json()).into_owned()
}

/// Every node of the tree with its children, each id as often as it appears.
pub fn nodes(tree: &Tree) -> Vec<String> {
    let structure = tree.structure();
    structure.walk().map(|(node, _)| structure.id(node)).collect()
}

/// Every line of a file, parsed; panics on a line that is not JSON.
pub fn parsed(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the file can be read");
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}
