//! Bugs other agents had with what the model is sent. `bug_NNN` is the number of the record.

mod common;

use std::collections::HashSet;

use branchline::agent::transform::{TargetModel, drop_orphan_results, repair, to_llm};
use branchline::message::{Block, Message, Role};
use branchline::tree::{Cursor, Tree};
use common::*;
use serde_json::{Value, json};

fn model(images: bool) -> TargetModel {
    TargetModel { provider: "lantern".into(), api: "lantern-chat".into(), id: "small".into(), images }
}

/// What a provider would be sent at a leaf.
fn request(tree: &Tree, leaf: Option<&str>, images: bool) -> Vec<Message> {
    let context = tree.context(leaf).expect("a context");
    let messages: Vec<Message> = context.messages().map(|message| (*message.message()).clone()).collect();
    drop_orphan_results(repair(&to_llm(&messages), &model(images), None))
}

/// Every call has exactly one result behind it, every result its call before it.
fn assert_paired(messages: &[Message]) {
    let mut open = HashSet::new();
    for message in messages {
        for call in message.tool_calls() {
            assert!(open.insert(call.id.to_owned()));
        }
        if message.role() == Role::ToolResult {
            assert!(open.remove(message.get_str("toolCallId").expect("an id")), "a result without its call");
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

fn call(id: &str, parent: &str, text: &str) -> String {
    let content = json!([{"type": "text", "text": text}, {"type": "toolCall", "id": format!("c-{id}"), "name": "look", "arguments": {}}]);
    let message = json!({"role": "assistant", "content": content, "api": "lantern-chat", "provider": "lantern",
        "model": "small", "stopReason": "toolUse", "timestamp": 2});
    common::message(id, Some(parent), message)
}

fn result(id: &str, parent: &str, call: &str, content: Value) -> String {
    let message = json!({"role": "toolResult", "toolCallId": format!("c-{call}"), "toolName": "look", "content": content, "isError": false, "timestamp": 3});
    common::message(id, Some(parent), message)
}

#[test]
fn bug_030_images_become_text_for_a_model_that_cannot_see() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let png = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let fixture = Fixture::lines([
        message("u1", None, json!({"role": "user", "content": [text("look"), png], "timestamp": 1})),
        call("a1", "u1", "looking"),
        result("r1", "a1", "a1", json!([text("seen"), png])),
        call("a2", "r1", "again"),
        result("r2", "a2", "a2", json!([png])),
        user("u2", Some("r2"), "go on"),
    ]);
    let tree = fixture.open();
    let before = fixture.read();
    let blind = request(&tree, Some("u2"), false);
    assert_paired(&blind);
    assert!(blind.iter().flat_map(Message::blocks).all(|block| !matches!(block, Block::Image(_))));
    for at in [0, 2, 4] {
        assert!(blind[at].text("").contains("image"), "a placeholder in {:?}", blind[at]);
    }
    let seeing = request(&tree, Some("u2"), true);
    assert_eq!(seeing.iter().flat_map(Message::blocks).filter(|block| matches!(block, Block::Image(_))).count(), 3);
    assert_eq!(fixture.read(), before);
}

/// u1 – a1 (call) – r1 – a2 – u2 – a3
fn conversation() -> Fixture {
    Fixture::lines([
        user("u1", None, "first"),
        call("a1", "u1", "let me look"),
        result("r1", "a1", "a1", json!([{"type": "text", "text": "found"}])),
        assistant("a2", Some("r1"), "done"),
        user("u2", Some("a2"), "second"),
        assistant("a3", Some("u2"), "done again"),
    ])
}

#[test]
fn bug_101_edits_keep_calls_and_results_paired() {
    let without_call = json!({"content": [{"type": "text", "text": "let me look"}]});
    for (target, replacement) in [("r1", Value::Null), ("a1", Value::Null), ("a1", without_call), ("u1", Value::Null)] {
        let fixture = conversation();
        let stored = fixture.read();
        let mut cursor = Cursor::new(fixture.open());
        cursor.append_context_edit(target, &replacement).expect("edits");
        let sent = request(cursor.tree(), cursor.leaf(), true);
        assert_paired(&sent);
        assert_eq!(sent.iter().any(|message| message.text("") == "first"), target != "u1");
        assert!(fixture.read().starts_with(&stored), "stored entries never change");
    }
}

#[test]
fn bug_101_the_last_edit_wins() {
    let fixture = conversation();
    let mut cursor = Cursor::new(fixture.open());
    cursor.append_context_edit("u1", &Value::Null).expect("edits");
    cursor.append_context_edit("u1", &json!({"content": "second thoughts"})).expect("edits");
    assert_eq!(texts(cursor.tree(), cursor.leaf())[0], "second thoughts");
    cursor.append_context_edit("u1", &json!({"content": "third thoughts"})).expect("edits");
    assert_eq!(texts(cursor.tree(), cursor.leaf())[0], "third thoughts");
}

#[test]
fn bug_101_edits_stay_on_their_branch_and_behind_their_place() {
    let fixture = conversation();
    let tree = fixture.open();
    let mut edited = Cursor::new(tree.clone());
    let edit = edited.append_context_edit("u1", &json!({"content": "changed"})).expect("edits");
    let mut other = Cursor::at(tree.clone(), Some("a2")).expect("moves");
    other.append_message(&say("another branch")).expect("appends");
    assert_eq!(texts(&tree, edited.leaf())[0], "changed");
    assert_eq!(texts(&tree, other.leaf())[0], "first");
    // A fork from before the edit does not have it; a fork from behind it does.
    assert_eq!(texts(&tree.extract_branch("a3").expect("forks"), Some("a3"))[0], "first");
    assert_eq!(texts(&tree.extract_branch(&edit).expect("forks"), Some(&edit))[0], "changed");
    // The target must be on the branch of the leaf.
    assert!(other.append_context_edit("a3", &Value::Null).is_err());
}

#[test]
fn bug_101_an_edit_behind_a_compaction_does_not_bring_its_target_back() {
    let fixture = conversation();
    let mut cursor = Cursor::new(fixture.open());
    let compaction = branchline::tree::CompactionEntry {
        summary: "short".into(),
        first_kept_entry_id: Some("u2".into()),
        ..Default::default()
    };
    cursor.append_compaction(&compaction).expect("compacts");
    cursor.append_context_edit("u1", &json!({"content": "changed"})).expect("edits");
    let context = cursor.tree().context(cursor.leaf()).expect("a context");
    let shown: Vec<String> = context.messages().map(|message| message.role_name()).collect();
    assert_eq!(shown, ["compactionSummary", "user", "assistant"]);
    assert!(!texts(cursor.tree(), cursor.leaf()).iter().any(|text| text == "changed"));
}
