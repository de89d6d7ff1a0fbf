//! A copied session knows about itself what a fresh reader of its file finds out: indexes of copies are made without
//! reading the copy, so every fact is compared with a reopened tree, on random sessions.

use branchline::message::Message;
use branchline::tree::*;
use serde_json::{Value, json};

/// A small generator: the same sessions in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Appends `count` entries of all kinds, moving about in the tree.
fn grow(cursor: &mut Cursor, random: &mut Random, count: usize) {
    let mut ids: Vec<String> = Vec::new();
    for n in 0..count {
        if !ids.is_empty() && random.below(8) == 0 {
            cursor.move_to(&ids[random.below(ids.len())].clone()).unwrap();
        }
        let target = ids.get(random.below(ids.len().max(1))).cloned();
        let text = format!("text {n} {}", "é\n".repeat(random.below(200)));
        let id = match (random.below(10), target) {
            (0, Some(target)) => cursor.append_label(&target, Some(["x", "", "y\u{1}"][random.below(3)])),
            (1, Some(target)) => {
                let on_path = cursor.tree().branch(cursor.leaf()).contains(&target);
                let entry = CompactionEntry {
                    summary: text,
                    first_kept_entry_id: Some(target).filter(|_| on_path),
                    ..Default::default()
                };
                cursor.append_compaction(&entry)
            }
            (2, _) => cursor.append_name(&format!("name {n}")),
            (3, _) => cursor.append_model("lantern", &format!("m{n}")),
            (4, _) => cursor.append_custom("state", Some(&json!({"n": n}))),
            (5, _) => cursor.append_custom_message("note", &json!(text), true, None),
            (6, Some(target)) => {
                let entry = BranchSummaryEntry { summary: text, ..Default::default() };
                cursor.move_with_summary(Some(&target), &entry)
            }
            _ => cursor.append_message(&Message::user(&text, vec![], n as i64)),
        };
        ids.push(id.unwrap());
    }
}

/// Everything a tree tells about itself.
fn facts(tree: &Tree) -> Value {
    let last = tree.last_id();
    let context = tree.context(last.as_deref()).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let messages: Vec<String> = context.messages().map(|message| text(&message.raw())).collect();
    let entries: Vec<String> = tree.entries().map(|entry| text(entry.unwrap().json())).collect();
    let labels: Vec<String> = tree.labels().iter().map(|label| format!("{label:?}")).collect();
    let children: Vec<Vec<String>> = tree.entries().map(|entry| tree.children(Some(entry.unwrap().id()))).collect();
    let branch: Vec<String> = tree.branch(last.as_deref()).ids().collect();
    json!({
        "structure": tree.structure().to_json(), "messages": messages, "entries": entries, "labels": labels,
        "children": children, "branch": branch, "name": tree.name(), "id": tree.session_id(),
        "header": tree.header_json(), "model": format!("{:?}", context.model()), "parent": tree.parent_session(),
        "diagnostics": format!("{:?}", tree.diagnostics().iter().map(|d| (d.line, d.kind)).collect::<Vec<_>>()),
    })
}

fn same_as_reopened(tree: &Tree) {
    let reopened = Tree::open(tree.path().unwrap(), OpenOptions { read_only: true, ..Default::default() }).unwrap();
    assert_eq!(facts(tree), facts(&reopened));
}

#[test]
fn copies_know_what_their_files_say() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let into = |name: &str| CreateOptions { session_dir: Some(dir.path().join(name)), ..Default::default() };
        let tree = Tree::create("/work/demo", into("a")).unwrap();
        let mut cursor = Cursor::new(tree.clone());
        cursor.append_message(&Message::user("first", vec![], 0)).unwrap();
        let count = 3 + random.below(60);
        grow(&mut cursor, &mut random, count);
        same_as_reopened(&tree);

        let leaf = tree.entries().nth(random.below(tree.entries_len())).unwrap().unwrap().id().to_owned();
        let branch = tree.extract_branch(&leaf).unwrap();
        if branch.is_saved() {
            same_as_reopened(&branch);
        }
        let fork = Tree::fork_from(tree.path().unwrap(), "/work/other", into("b")).unwrap();
        same_as_reopened(&fork);

        // And they go on working like any other tree.
        for copy in [&branch, &fork] {
            let mut cursor = Cursor::new(copy.clone());
            cursor.append_message(&Message::user("on", vec![], 0)).unwrap();
            grow(&mut cursor, &mut random, 5);
            same_as_reopened(copy);
        }
    }
}

#[test]
fn a_fork_of_a_damaged_file_takes_what_is_json() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let lines = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#,
        r#"{"type":"custom","customType":"x","id":"a","parentId":null,"timestamp":""}"#,
        "{bad",
        "",
        r#"{"type":"vendor_marker","uuid":"k1"}"#,
        r#"[1,2]"#,
        r#"{"type":"session","version":3,"id":"again"}"#,
        r#"{"type":"custom","customType":"x","id":"b","parentId":"a","timestamp":""}"#,
        r#"{"type":"custom","customType":"x","id":"b","parentId":"missing","timestamp":""}"#,
        "\0\0",
        r#"{"torn"#,
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let before = std::fs::read(&path).unwrap();
    let options = CreateOptions { session_dir: Some(dir.path().join("b")), ..Default::default() };
    let fork = Tree::fork_from(&path, "/work/other", options).unwrap();
    let text = std::fs::read_to_string(fork.path().unwrap()).unwrap();
    let got: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(got, [lines[1], lines[4], lines[5], lines[7], lines[8]]);
    same_as_reopened(&fork);
    assert_eq!(std::fs::read(&path).unwrap(), before, "the source is as it was");
}

/// Runs of lines that are longer than what is copied at a time: every line is in its place, and the copy can be written
/// to (S97).
#[test]
fn a_long_file_with_faults_is_copied_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.jsonl");
    let header =
        r#"{"type":"session","version":3,"id":"long","timestamp":"2026-01-05T08:00:00.000Z","cwd":"/work/demo"}"#;
    let mut lines = vec![header.to_owned()];
    for n in 0..6000 {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"e{}\"", n - 1) };
        let message = json!({"role": "user", "content": format!("{n} {}", "words ".repeat(n % 160)), "timestamp": n});
        lines.push(format!(
            r#"{{"type":"message","id":"e{n}","parentId":{parent},"timestamp":"2026-01-05T08:00:00.000Z","message":{message}}}"#
        ));
        if n == 1000 || n == 4999 {
            lines.push("{torn".to_owned());
        }
    }
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let options = CreateOptions { session_dir: Some(dir.path().join("forks")), ..Default::default() };
    let fork = Tree::fork_from(&path, "/work/other", options).unwrap();
    let last = fork.last_id();
    assert_eq!((fork.entry_count(), last.as_deref()), (6000, Some("e5999")));
    for n in [0, 999, 1001, 4998, 5001, 5999] {
        assert_eq!(fork.entry(&format!("e{n}")).unwrap().unwrap().json(), lines_of(&lines, n).as_bytes());
    }
    let appended = Cursor::new(fork.clone()).append_message(&Message::user("more", vec![], 1)).unwrap();
    let copy = std::fs::read_to_string(fork.path().unwrap()).unwrap();
    let copied: Vec<&str> = copy.lines().skip(1).take(6000).collect();
    let kept: Vec<&str> = lines[1..].iter().map(String::as_str).filter(|line| *line != "{torn").collect();
    assert!(copied == kept && copy.lines().count() == 6002 && copy.lines().last().unwrap().contains(&appended));
}

fn lines_of(lines: &[String], n: usize) -> String {
    let wanted = format!("\"id\":\"e{n}\"");
    lines.iter().find(|line| line.contains(&wanted)).cloned().unwrap()
}
