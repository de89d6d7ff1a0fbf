//! Bugs other agents had with forks and copies. `bug_NNN` is the number of the record.

mod common;

use std::collections::HashSet;

use branchline::tree::{CreateOptions, Cursor, Tree};
use common::*;
use serde_json::{Value, json};

/// Every parent is in the file, and the leaf's path reaches a root.
fn assert_linked(tree: &Tree) {
    let known: HashSet<String> = ids(tree).into_iter().collect();
    for entry in tree.entries() {
        let entry = entry.expect("readable");
        let parent: Value = serde_json::from_slice(entry.raw("parentId").expect("a parentId")).expect("JSON");
        assert!(parent.is_null() || parent.as_str().is_some_and(|parent| known.contains(parent)), "{}", entry.id());
    }
    let leaf = leaf(tree).expect("a leaf");
    assert_eq!(tree.branch(Some(&leaf)).len(), tree.entry_count());
}

#[test]
fn bug_020_labels_inside_a_path_leave_no_gap() {
    let label = |id, parent, target, label: Option<&str>| {
        let fields = label.map_or(json!({"targetId": target}), |label| json!({"targetId": target, "label": label}));
        entry("label", id, Some(parent), fields)
    };
    let fixture = Fixture::lines([
        user("u1", None, "first"),
        assistant("a1", Some("u1"), "answer"),
        label("L1", "a1", "a1", Some("gone")),
        entry("model_change", "m1", Some("L1"), json!({"provider": "p", "modelId": "m"})),
        label("L2", "m1", "u1", Some("start")),
        label("L3", "L2", "a1", None),
        user("u2", Some("L3"), "second"),
        assistant("a2", Some("u2"), "answer 2"),
    ]);
    let tree = fixture.open();
    let fork = tree.extract_branch("a2").expect("forks");
    assert_linked(&fork);
    let leaf = leaf(&fork).expect("a leaf");
    assert_eq!(branch(&fork, &leaf)[..5], ["u1", "a1", "m1", "u2", "a2"]);
    assert_eq!(fork.label("u1").map(|label| label.text).as_deref(), Some("start"));
    assert!(fork.label("a1").is_none());
    // Before u2: its parent is a label, so what is kept ends with m1; then the label is made again (S94).
    let before = tree.extract_branch(&tree.parent("u2").expect("a parent")).expect("forks");
    assert_linked(&before);
    assert_eq!(ids(&before)[..3], ["u1", "a1", "m1"]);
    assert_eq!(before.entry_count(), 4);
    assert_eq!(before.label("u1").map(|label| label.text).as_deref(), Some("start"));
}

#[test]
fn bug_021_a_fork_writes_to_its_own_file() {
    let fixture = Fixture::lines([
        user("u1", None, "first"),
        assistant("a1", Some("u1"), "answer"),
        user("u2", Some("a1"), "second"),
        assistant("a2", Some("u2"), "answer 2"),
    ]);
    let tree = fixture.open();
    let before = fixture.read();
    let parent_path = fixture.path.display().to_string();
    // Before u2: the path to its parent.
    let fork = tree.extract_branch("a1").expect("forks");
    assert_ne!((fork.path(), fork.session_id()), (tree.path(), tree.session_id()));
    let mut cursor = Cursor::new(fork);
    cursor.append_message(&say("new")).expect("appends");
    let lines = parsed(&cursor.tree().path().expect("a file"));
    assert_eq!(
        (lines.len(), &lines[0]["parentSession"], &lines[3]["parentId"]),
        (4, &json!(parent_path), &json!("a1"))
    );
    // Before u1: nothing is left, so an empty session that names its parent.
    let empty = tree.new_session(true).expect("a new session");
    let mut cursor = Cursor::new(empty);
    cursor.append_message(&say("other")).expect("appends");
    let lines = parsed(&cursor.tree().path().expect("a file"));
    assert_eq!(
        (lines.len(), &lines[0]["parentSession"], &lines[1]["parentId"]),
        (2, &json!(parent_path), &Value::Null)
    );
    assert_eq!(fixture.read(), before);
}

#[test]
fn bug_103_what_is_unknown_stays_as_it_is() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let unknown = format!(
        r#"{{"type":"future_x","id":"f1","parentId":"u1","timestamp":"t","payload":{{"n":12345678901234567890123,"f":1.0,"e":1e2,"s":"\u0000","deep":{deep}}}}}"#
    );
    let known = r#"{"type":"message","id":"a1","parentId":"f1","timestamp":"t","zz":{"b":1.50},"message":{"role":"assistant","content":[],"zz":[1]}}"#;
    let fixture = Fixture::lines([user("u1", None, "hi"), unknown.clone(), known.to_owned()]);
    let tree = fixture.open();
    assert_eq!(branch(&tree, "a1"), ["u1", "f1", "a1"]);
    assert_eq!(tree.context(Some("a1")).expect("a context").messages().count(), 2);
    let next = Cursor::new(tree.clone()).append_message(&say("after")).expect("appends");
    assert_eq!(branch(&tree, &next), ["u1", "f1", "a1", &next]);
    let clone = tree.extract_branch(&next).expect("clones");
    drop(tree);
    let options = CreateOptions { session_dir: Some(fixture.dir.path().join("copies")), ..Default::default() };
    let fork = Tree::fork_from(&fixture.path, "/work/demo", options).expect("forks");
    for copy in [clone, fork, fixture.open()] {
        assert_eq!((raw(&copy, "f1"), raw(&copy, "a1")), (unknown.clone(), known.to_owned()));
        assert_eq!(branch(&copy, "a1"), ["u1", "f1", "a1"]);
    }
}

#[test]
fn bug_103_a_migration_keeps_digits_and_depth() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let unknown = format!(
        r#"{{"type":"future_x","id":"f1","parentId":"u1","timestamp":"t","payload":{{"n":12345678901234567890123,"s":"\u0000","deep":{deep}}}}}"#
    );
    let header = HEADER.replace("\"version\":3", "\"version\":2");
    let fixture = Fixture::bytes(format!("{header}\n{}\n{unknown}\n", user("u1", None, "hi")));
    let tree = fixture.open();
    assert_eq!(raw(&tree, "f1"), unknown);
    assert_eq!(tree.parent("f1").as_deref(), Some("u1"));
}

#[test]
fn a_file_with_nothing_but_a_header_can_be_forked_in_every_version() {
    for version in [1, 2, 3] {
        let fixture =
            Fixture::bytes(format!("{}\n", HEADER.replace("\"version\":3", &format!("\"version\":{version}"))));
        let options = CreateOptions { session_dir: Some(fixture.dir.path().join("copies")), ..Default::default() };
        let fork = Tree::fork_from(&fixture.path, "/work/target", options).expect("forks");
        assert_eq!(fork.entry_count(), 0);
    }
}
