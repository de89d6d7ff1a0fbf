//! Bugs other agents had with their session files. `bug_NNN` is the number of the record; each test covers all variants of
//! its input.

mod common;

use std::time::{Duration, Instant};

use branchline::ErrorCode;
use branchline::tree::{CreateOptions, Cursor, DiagnosticKind, ListOptions, OpenOptions, Tree, list, repair};
use common::*;
use serde_json::json;

#[test]
fn bug_001_a_torn_tail_costs_one_record() {
    let torn: [&[u8]; 4] = [
        b"{\"type\":\"message\",\"id\":\"u2\",\"parentId\":\"a1\"\n\n",
        b"{\"type\":\"message\",\"id\":\"u2\",\"parentId\":\"a1\"",
        "{\"type\":\"message\",\"id\":\"u2\",\"x\":\"€".as_bytes().split_last().expect("not empty").1,
        br#"{"type":"message","id":"u2","x":"\uD8"#,
    ];
    let good = format!("{HEADER}\n{}\n{}\n", user("u1", None, "hi"), assistant("a1", Some("u1"), "hello"));
    for torn in torn {
        let fixture = Fixture::bytes([good.as_bytes(), torn].concat());
        let tree = fixture.open();
        assert_eq!(ids(&tree), ["u1", "a1"]);
        assert_eq!(leaf(&tree).as_deref(), Some("a1"));
        assert_eq!(tree.diagnostics().len(), 1, "{:?}", tree.diagnostics());
        assert!(fixture.read().starts_with(good.as_bytes()));
        let u3 = Cursor::new(tree.clone()).append_message(&say("still here")).expect("appends");
        drop(tree);
        let tree = fixture.open();
        assert_eq!(ids(&tree), ["u1", "a1", &u3]);
        assert_eq!(tree.parent(&u3).as_deref(), Some("a1"));
    }
}

#[test]
fn bug_002_joined_lines_cost_one_line_and_are_reported() {
    let e1 = user("e1", None, "a }{ b");
    let joined = [e1, user("e2", Some("e1"), "two"), user("e3", Some("e2"), "three")].concat();
    let fixture = Fixture::lines([joined, user("e4", Some("e3"), "four")]);
    let tree = fixture.open();
    let line_2: Vec<_> = tree.diagnostics().into_iter().filter(|fault| fault.line == 2).collect();
    assert_eq!(line_2.len(), 1, "{:?}", tree.diagnostics());
    assert_eq!(ids(&tree), ["e4"]);
    assert_eq!(branch(&tree, "e4"), ["e4"]);
    assert_eq!(nodes(&tree), ["e4"]);
    assert_eq!(texts(&tree, Some("e4")), ["four"]);
    assert!(tree.diagnostics().iter().any(|fault| fault.kind == DiagnosticKind::MissingParent));
}

#[test]
fn bug_004_a_run_of_nul_bytes_stays_local() {
    let nul = "\0".repeat(512);
    let u1 = user("u1", None, "hi");
    let a1 = assistant("a1", Some("u1"), "hello");
    let fixture = Fixture::lines([u1.clone(), nul.clone(), a1.clone()]);
    let tree = fixture.open();
    assert_eq!(ids(&tree), ["u1", "a1"]);
    assert!(tree.diagnostics().iter().any(|fault| fault.line == 3 && fault.kind == DiagnosticKind::NulBytes));
    let fixture = Fixture::lines([u1, format!("{nul}{a1}")]);
    let tree = fixture.open();
    assert_eq!(ids(&tree)[0], "u1");
    assert!(tree.contains("a1") || tree.diagnostics().iter().any(|fault| fault.line == 3));
}

#[test]
fn bug_005_two_writers_do_not_interleave() {
    let fixture = Fixture::lines([user("x", None, "hi")]);
    let first = fixture.open();
    let before = fixture.read();
    let second = Tree::open(&fixture.path, OpenOptions::default()).expect_err("in use");
    assert_eq!(second.code(), ErrorCode::SessionLocked);
    assert_eq!(fixture.read(), before);
    let mut alpha = Cursor::new(first.clone());
    let alpha_1 = alpha.append_message(&say("alpha")).expect("appends");
    alpha.append_message(&reply("alpha-reply")).expect("appends");
    let reader =
        Tree::open(&fixture.path, OpenOptions { read_only: true, ..Default::default() }).expect("reading works");
    assert_eq!(reader.branch(alpha.leaf()).len(), 3);
    assert!(reader.contains(&alpha_1));
    drop(first);
    drop(alpha);
    fixture.open();
}

#[test]
fn bug_005_two_threads_on_one_tree() {
    const EACH: usize = 1000;
    let fixture = Fixture::lines([user("x", None, "hi")]);
    let tree = fixture.open();
    let body = "y".repeat(8 << 10);
    let leaves: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (tree, body) = (tree.clone(), &body);
                scope.spawn(move || {
                    let mut cursor = Cursor::at(tree, Some("x")).expect("x is there");
                    for n in 0..EACH {
                        cursor.append_message(&say(&format!("{writer} {n} {body}"))).expect("appends");
                    }
                    cursor.leaf().expect("a leaf").to_owned()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
    });
    drop(tree);
    let lines = parsed(&fixture.path);
    let unique: std::collections::HashSet<&str> = lines.iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!((lines.len(), unique.len()), (2 * EACH + 2, 2 * EACH + 2));
    let tree = fixture.open();
    for (writer, leaf) in leaves.iter().enumerate() {
        let own = texts(&tree, Some(leaf));
        assert_eq!(own.len(), EACH + 1);
        for (n, text) in own[1..].iter().enumerate() {
            assert!(text.starts_with(&format!("{writer} {n} ")));
        }
    }
}

#[test]
fn bug_005_a_writer_without_a_lock_is_noticed() {
    use std::io::Write;
    let fixture = Fixture::lines([user("x", None, "hi")]);
    let tree = fixture.open();
    let mut cursor = Cursor::new(tree.clone());
    let mut stranger = std::fs::File::options().append(true).open(&fixture.path).expect("opens");
    writeln!(stranger, "{}", user("beta", Some("x"), "beta")).expect("writes");
    let alpha = cursor.append_message(&say("alpha")).expect("appends");
    assert!(tree.contains("beta"));
    assert_eq!(tree.parent(&alpha).as_deref(), Some("x"));
    assert_eq!(parsed(&fixture.path).len(), 4);
}

#[test]
fn bug_007_nothing_is_written_twice() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = CreateOptions { session_dir: Some(dir.path().to_owned()), ..Default::default() };
    let mut cursor = Cursor::new(Tree::create("/work/demo", options).expect("creates"));
    cursor.append_custom("state", None).expect("appends");
    cursor.append_model("lantern", "small").expect("appends");
    cursor.append_message(&say("hi")).expect("appends");
    cursor.append_message(&reply("hello")).expect("appends");
    once_each(&cursor.tree().path().expect("a file"), 4);
    // The file exists before the conversation does: an older file that was migrated.
    let fixture = Fixture::bytes("{\"type\":\"session\",\"id\":\"old\",\"timestamp\":\"t\",\"cwd\":\"/work/demo\"}\n");
    let mut cursor = Cursor::new(fixture.open());
    cursor.append_custom("state", None).expect("appends");
    cursor.append_message(&reply("hello")).expect("appends");
    once_each(&fixture.path, 2);
}

fn once_each(path: &std::path::Path, entries: usize) {
    let lines = parsed(path);
    assert_eq!(lines.iter().filter(|line| line["type"] == "session").count(), 1);
    let unique: std::collections::HashSet<&str> = lines.iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!((lines.len(), unique.len()), (entries + 1, entries + 1));
}

#[test]
fn bug_007_a_file_with_its_start_twice_reads_once() {
    let c1 = entry("custom", "c1", None, json!({"customType": "state"}));
    let u1 = user("u1", Some("c1"), "hi");
    let lines = [c1.clone(), u1.clone(), HEADER.to_owned(), c1, u1, assistant("a1", Some("u1"), "hello")];
    let fixture = Fixture::lines(lines);
    let tree = fixture.open();
    assert_eq!(branch(&tree, "a1"), ["c1", "u1", "a1"]);
    assert_eq!(nodes(&tree), ["c1", "u1", "a1"]);
    assert_eq!((tree.entry_count(), tree.entries_len()), (3, 5));
    let next = Cursor::new(tree.clone()).append_message(&say("more")).expect("appends");
    assert_eq!(tree.parent(&next).as_deref(), Some("a1"));
}

#[test]
fn bug_008_repeated_rows_do_not_multiply_children() {
    let chain = |count: usize, twice: &dyn Fn(usize) -> bool| {
        let mut lines = Vec::new();
        for n in 0..count {
            let parent = n.checked_sub(1).map(|parent| format!("e{parent}"));
            let line = user(&format!("e{n}"), parent.as_deref(), "x");
            lines.extend(std::iter::repeat_n(line, 1 + usize::from(twice(n))));
        }
        Fixture::lines(lines)
    };
    let fixture = chain(60, &|n| (10..=50).contains(&n));
    let tree = fixture.open();
    assert_eq!(nodes(&tree).len(), 60);
    assert_eq!(branch(&tree, "e59").len(), 60);
    for n in 0..59 {
        assert_eq!(tree.children(Some(&format!("e{n}"))), [format!("e{}", n + 1)]);
    }
    let large = chain(10_000, &|n| n % 20 == 0);
    let start = Instant::now();
    let tree = large.open();
    assert_eq!(nodes(&tree).len(), 10_000);
    assert_eq!(branch(&tree, "e9999").len(), 10_000);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn bug_010_foreign_lines_never_become_the_leaf() {
    for foreign in
        [r#"{"type":"vendor_marker","uuid":"k1"}"#, "[1,2]", "\"text\"", "17", "null", "{}", r#"{"type":"x","id":7}"#]
    {
        let fixture =
            Fixture::lines([user("u1", None, "hi"), assistant("a1", Some("u1"), "hello"), foreign.to_owned()]);
        let tree = fixture.open();
        assert_eq!(leaf(&tree).as_deref(), Some("a1"), "{foreign}");
        assert_eq!(tree.entries_len(), 2, "{foreign}");
        assert_eq!(texts(&tree, Some("a1")), ["hi", "hello"], "{foreign}");
        let next = Cursor::new(tree.clone()).append_message(&say("more")).expect("appends");
        assert_eq!(tree.parent(&next).as_deref(), Some("a1"), "{foreign}");
        drop(tree);
        let options = CreateOptions { session_dir: Some(fixture.dir.path().join("copies")), ..Default::default() };
        let copy = Tree::fork_from(&fixture.path, "/work/demo", options).expect("forks");
        let text = std::fs::read_to_string(copy.path().expect("a file")).expect("reads");
        assert!(text.lines().any(|line| line == foreign), "{foreign} was lost");
    }
}

#[test]
fn bug_010_foreign_lines_survive_a_migration() {
    let header = HEADER.replace("\"version\":3", "\"version\":2");
    let fixture = Fixture::bytes(format!(
        "{header}\n{}\n{{\"type\":\"vendor_marker\",\"uuid\":\"k1\"}}\n",
        user("u1", None, "hi")
    ));
    assert_eq!(ids(&fixture.open()), ["u1"]);
    assert!(
        String::from_utf8(fixture.read()).expect("text").contains("\n{\"type\":\"vendor_marker\",\"uuid\":\"k1\"}\n")
    );
}

#[test]
fn bug_011_what_stands_before_the_header() {
    let u1 = user("u1", None, "hi");
    // As in pi, a foreign object before the header is refused; nothing is written.
    let fixture = Fixture::bytes(format!("{{\"type\":\"title\",\"title\":\"demo\"}}\n{HEADER}\n{u1}\n"));
    let before = fixture.read();
    let error = Tree::open(&fixture.path, OpenOptions::default()).expect_err("no session");
    assert_eq!(error.code(), ErrorCode::InvalidSessionFile);
    assert_eq!(fixture.read(), before);
    // A blank line or a byte order mark alone never turns a session into something else.
    for start in ["\n", "  \r\n", "\u{feff}"] {
        let fixture = Fixture::bytes(format!("{start}{HEADER}\n{u1}\n"));
        let location = CreateOptions { session_dir: Some(fixture.dir.path().to_owned()), ..Default::default() };
        let found = list("/work/demo", &ListOptions { location, ..Default::default() }).expect("lists");
        assert_eq!(found.len(), 1, "{start:?}");
        let before = fixture.read();
        assert_eq!(ids(&fixture.open()), ["u1"], "{start:?}");
        assert_eq!(fixture.read(), before);
    }
}

#[test]
fn bug_013_empty_and_header_only_files() {
    let fixture = Fixture::bytes("");
    let mut cursor = Cursor::new(fixture.open());
    let id = cursor.tree().session_id();
    cursor.append_message(&say("hi")).expect("appends");
    cursor.append_message(&reply("hello")).expect("appends");
    drop(cursor);
    let tree = fixture.open();
    assert_eq!((tree.session_id(), tree.entry_count()), (id, 2));
    assert_eq!(parsed(&fixture.path)[0]["version"], 3);
    // S50: only white space is no session, and stays as it is.
    let fixture = Fixture::bytes("\n");
    assert_eq!(
        Tree::open(&fixture.path, OpenOptions::default()).expect_err("no session").code(),
        ErrorCode::InvalidSessionFile
    );
    assert_eq!(fixture.read(), b"\n");
    let fixture = Fixture::lines::<&str>([]);
    let tree = fixture.open();
    assert_eq!((tree.entry_count(), leaf(&tree)), (0, None));
    let first = Cursor::new(tree.clone()).append_message(&say("hi")).expect("appends");
    assert_eq!(tree.parent(&first), None);
    let lines = parsed(&fixture.path);
    assert_eq!((lines.len(), &lines[0]["id"], &lines[1]["parentId"]), (2, &json!("fixture"), &json!(null)));
}

#[cfg(unix)]
#[test]
fn bug_013_a_file_deleted_while_open_comes_back_whole() {
    let fixture = Fixture::lines([user("u1", None, "hi")]);
    let tree = fixture.open();
    std::fs::remove_file(&fixture.path).expect("removes");
    let a1 = Cursor::new(tree.clone()).append_message(&reply("hello")).expect("appends");
    drop(tree);
    let tree = fixture.open();
    assert_eq!((tree.session_id().as_str(), ids(&tree)), ("fixture", vec!["u1".to_owned(), a1]));
}

#[test]
fn bug_014_a_broken_header_discards_nothing() {
    let text = format!("{{broken\n{}\n{}\n", user("m1", None, "keep me"), assistant("m2", Some("m1"), "kept"));
    let fixture = Fixture::bytes(&text);
    for read_only in [false, true] {
        let error = Tree::open(&fixture.path, OpenOptions { read_only, ..Default::default() }).expect_err("no header");
        assert_eq!(error.code(), ErrorCode::InvalidSessionFile);
        assert_eq!(fixture.read(), text.as_bytes());
    }
    let options = CreateOptions { session_dir: Some(fixture.dir.path().to_owned()), ..Default::default() };
    let recent = Tree::continue_recent("/work/demo", options).expect("a new session");
    assert_ne!(recent.path().as_deref(), Some(&*fixture.path));
    let _ = repair(&fixture.path, &OpenOptions::default());
    assert_eq!(fixture.read(), text.as_bytes());
}

#[test]
fn bug_016_large_files_with_one_very_long_line() {
    const LONG: usize = 20 << 20;
    let body = "z".repeat(9 << 10);
    let mut text = format!("{HEADER}\n");
    let mut last = None;
    for n in 0..4500 {
        let id = format!("e{n}");
        let line = match n {
            3000 => user(&id, last.as_deref(), &"L".repeat(LONG)),
            _ => user(&id, last.as_deref(), &body),
        };
        text.push_str(&line);
        text.push('\n');
        last = Some(id);
    }
    let fixture = Fixture::bytes(&text);
    let size = text.len();
    drop(text);
    let resident = resident_bytes();
    let tree = fixture.open();
    assert_eq!(tree.entry_count(), 4500);
    let grown = resident_bytes().saturating_sub(resident);
    assert!(grown < size / 2, "{grown} bytes of memory for a file of {size}");
    let newest: Vec<String> =
        tree.branch(Some("e4499")).entries().rev().take(5).map(|entry| entry.expect("reads").id().to_owned()).collect();
    assert_eq!(newest, ["e4499", "e4498", "e4497", "e4496", "e4495"]);
    assert_eq!(tree.entry("e3000").expect("reads").expect("known").message().expect("a message").text("").len(), LONG);
    let location = CreateOptions { session_dir: Some(fixture.dir.path().to_owned()), ..Default::default() };
    let found = list("/work/demo", &ListOptions { location, ..Default::default() }).expect("lists");
    assert_eq!(found[0].message_count, 4500);
    let start = Instant::now();
    Cursor::new(tree.clone()).append_message(&say("short")).expect("appends");
    assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
    assert!(fixture.read().len() < size + 1000);
}

/// Memory of this process; 0 where that is unknown.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).map_or(0, |pages| pages * 4096)
}

#[test]
fn bug_017_settings_follow_the_path() {
    let fixture = Fixture::lines([
        entry("model_change", "m1", None, json!({"provider": "prov-a", "modelId": "model-1"})),
        user("u1", Some("m1"), "hi"),
        answer("a1", Some("u1"), "hello", "prov-a/model-1"),
        entry("model_change", "m2", Some("u1"), json!({"provider": "prov-x", "modelId": "sibling"})),
        entry("model_change", "m3", Some("a1"), json!({"provider": "prov-b", "modelId": "model-2"})),
        entry("thinking_level_change", "t1", Some("m3"), json!({"thinkingLevel": "high"})),
    ]);
    let tree = fixture.open();
    let at = |leaf: &str| {
        let context = tree.context(Some(leaf)).expect("a context");
        let model = context.model().map(|(provider, model)| format!("{provider}/{model}")).unwrap_or_default();
        // The quick answer and the full context agree.
        let (level, short) = tree.settings_at(Some(leaf)).expect("settings");
        assert_eq!(
            (level.as_str(), short.map(|(provider, model)| format!("{provider}/{model}")).unwrap_or_default()),
            (context.thinking_level(), model.clone())
        );
        (model, context.thinking_level().to_owned())
    };
    assert_eq!(at("t1"), ("prov-b/model-2".to_owned(), "high".to_owned()));
    assert_eq!(at("a1"), ("prov-a/model-1".to_owned(), "off".to_owned()));
    assert_eq!(at("m2"), ("prov-x/sibling".to_owned(), "off".to_owned()));
    let mut cursor = Cursor::new(tree.clone());
    assert_eq!(cursor.leaf(), Some("t1"));
    cursor.move_to("a1").expect("moves");
    assert_eq!(at(cursor.leaf().expect("a leaf")).0, "prov-a/model-1");
}

#[test]
fn bug_097_forward_references() {
    let fixture = Fixture::lines([user("b", Some("a"), "b"), user("c", Some("b"), "c"), user("a", None, "a")]);
    let tree = fixture.open();
    assert_eq!(branch(&tree, "c"), ["a", "b", "c"]);
    assert_eq!(nodes(&tree), ["a", "b", "c"]);
    assert_eq!(tree.children(Some("a")), ["b"]);
    // S58: the leaf is the last line.
    assert_eq!(leaf(&tree).as_deref(), Some("a"));
    let missing_key = r#"{"type":"custom","customType":"x","id":"m","timestamp":"t"}"#.to_owned();
    let fixture =
        Fixture::lines([user("a", None, "a"), user("o", Some("ghost"), "o"), user("e", Some(""), "e"), missing_key]);
    let tree = fixture.open();
    for id in ["o", "e", "m"] {
        assert_eq!(branch(&tree, id), [id]);
    }
    assert_eq!(nodes(&tree), ["a", "o", "e", "m"]);
    // S80: children of null are those whose parentId is exactly null.
    assert_eq!(tree.children(None), ["a"]);
    assert!(tree.diagnostics().iter().any(|fault| fault.kind == DiagnosticKind::MissingParent));
}

#[test]
fn a_byte_order_mark_does_not_cost_an_old_file_its_header() {
    let header = HEADER.replace("\"version\":3", "\"version\":2");
    let fixture = Fixture::bytes(format!("\u{feff}{header}\n{}\n", user("u1", None, "hi")));
    assert_eq!(ids(&fixture.open()), ["u1"]);
    let lines = parsed(&fixture.path);
    assert_eq!((lines.len(), &lines[0]["id"], &lines[0]["version"]), (2, &json!("fixture"), &json!(3)));
    assert_eq!(fixture.open().session_id(), "fixture");
}

#[test]
fn a_compaction_snapshot_has_the_time_of_its_compaction() {
    let system = message("s1", None, json!({"role": "system", "content": "Be brief.", "timestamp": 5}));
    let fixture = Fixture::lines([system, user("u1", Some("s1"), "hi")]);
    let mut cursor = Cursor::new(fixture.open());
    let id = cursor
        .append_compaction(&branchline::tree::CompactionEntry { summary: "s".into(), ..Default::default() })
        .expect("appends");
    let entry = cursor.tree().entry(&id).expect("reads").expect("known");
    let time = branchline::tree::parse_iso(&entry.timestamp()).expect("a time");
    assert_eq!(entry.value()["systemMessage"]["timestamp"], json!(time));
}
