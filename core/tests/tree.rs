//! The tree through its public interface: format, loading, appending, forking. Each test names its rules.

use std::fs;
use std::path::Path;

use branchline::ErrorCode;
use branchline::message::Message;
use branchline::tree::*;
use serde_json::json;

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2025-01-15T09:00:00.000Z","cwd":"/work/demo"}"#;

fn user(id: &str, parent: Option<&str>, text: &str) -> String {
    let message = json!({"role": "user", "content": text, "timestamp": 1});
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2025-01-15T09:00:01.000Z", "message": message})
        .to_string()
}

fn write(dir: &Path, lines: &[&str]) -> std::path::PathBuf {
    let path = dir.join("s.jsonl");
    fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

fn ids(tree: &Tree, leaf: Option<&str>) -> Vec<String> {
    tree.branch(leaf).ids().collect()
}

#[test]
fn s42_the_file_appears_with_the_first_conversation_entry() {
    let dir = tempfile::tempdir().unwrap();
    let sessions = dir.path().join("deep/sessions");
    let options = CreateOptions { session_dir: Some(sessions.clone()), ..Default::default() };
    let tree = Tree::create("/work/demo", options).unwrap();
    let path = tree.path().unwrap();
    let mut cursor = Cursor::new(tree.clone());
    cursor.append_model("lantern", "small").unwrap();
    cursor.append_name(" a\r\n\nb ").unwrap();
    assert!(sessions.is_dir() && !path.exists() && !tree.is_saved());
    cursor.append_message(&Message::user("hello", vec![], 5)).unwrap();
    assert!(tree.is_saved());
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with(r#"{"type":"session","version":3,"id":""#));
    assert!(lines[2].ends_with(r#","name":"a b"}"#), "{}", lines[2]);
    assert!(
        lines[3].ends_with(r#","message":{"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":5}}"#)
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&sessions).unwrap().permissions().mode() & 0o777, 0o700);
    }
    drop((cursor, tree));
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    assert_eq!(tree.entries_len(), 3);
    assert_eq!(tree.name().as_deref(), Some("a b"));
    assert!(tree.diagnostics().is_empty());
}

#[test]
fn one_writer_and_any_number_of_readers() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), &[HEADER, &user("a", None, "x")]);
    let writer = Tree::open(&path, OpenOptions::default()).unwrap();
    assert_eq!(Tree::open(&path, OpenOptions::default()).unwrap_err().code(), ErrorCode::SessionLocked);
    let reader = Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).unwrap();
    let refused = Cursor::new(reader.clone()).append_name("n").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ReadOnly);
    let mut cursor = Cursor::new(writer.clone());
    let id = cursor.append_message(&Message::user("y", vec![], 1)).unwrap();
    assert_eq!(reader.refresh().unwrap(), 1);
    assert_eq!(reader.last_id(), Some(id));
    drop((cursor, writer));
    Tree::open(&path, OpenOptions::default()).unwrap();
}

#[test]
fn foreign_appends_are_taken_in_before_ours() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), &[HEADER, &user("a", None, "x")]);
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    let mut cursor = Cursor::new(tree.clone());
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(&format!("{}\n{}", user("b", Some("a"), "foreign"), r#"{"torn":"#));
    fs::write(&path, &text).unwrap();
    let id = cursor.append_message(&Message::user("ours", vec![], 1)).unwrap();
    assert_eq!(ids(&tree, Some(&id)), ["a", &id]);
    assert_eq!(tree.children(Some("a")), ["b", &id]);
    let now = fs::read_to_string(&path).unwrap();
    assert!(now.starts_with(&text) && now[text.len()..].starts_with("\n{"));
    drop((cursor, tree));
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    assert_eq!(tree.entries_len(), 3);
    assert_eq!(tree.diagnostics()[0].kind, DiagnosticKind::InvalidJson);
    assert_eq!(tree.diagnostics()[0].line, 4);
}

#[test]
fn a_deleted_file_is_written_again_and_a_replaced_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), &[HEADER, &user("a", None, "x")]);
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    let mut cursor = Cursor::new(tree.clone());
    fs::remove_file(&path).unwrap();
    cursor.append_message(&Message::user("y", vec![], 1)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
    let other = dir.path().join("other");
    fs::write(&other, "something else\n").unwrap();
    fs::rename(&other, &path).unwrap();
    let refused = cursor.append_message(&Message::user("z", vec![], 1)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StorageChanged);
    assert_eq!(fs::read_to_string(&path).unwrap(), "something else\n");
    assert_eq!(tree.entries_len(), 2);
}

#[test]
fn s69_s70_cycles_end_and_everything_is_shown_once() {
    let dir = tempfile::tempdir().unwrap();
    let lines = [
        HEADER,
        &user("a", Some("c"), ""),
        &user("b", Some("a"), ""),
        &user("c", Some("b"), ""),
        &user("self", Some("self"), ""),
        &user("d", Some("c"), ""),
    ];
    let tree = Tree::open(write(dir.path(), &lines), OpenOptions::default()).unwrap();
    assert_eq!(ids(&tree, Some("d")), ["a", "b", "c", "d"]);
    let structure = tree.structure();
    let walk: Vec<String> = structure.walk().map(|(node, _)| structure.id(node)).collect();
    assert_eq!(walk, ["a", "b", "c", "d", "self"]);
    assert_eq!(tree.children(Some("self")), ["self"], "S80 looks at parentId alone");
    let kinds: Vec<_> = tree.diagnostics().iter().map(|d| (d.line, d.kind)).collect();
    assert_eq!(kinds, [(2, DiagnosticKind::Cycle), (5, DiagnosticKind::Cycle)]);
    assert_eq!(tree.context(Some("d")).unwrap().messages().count(), 4);
}

#[test]
fn hard_lines_load_and_survive_a_fork_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let big = format!("\"{}\"", "x".repeat(20 << 20));
    let hard = [
        r#"{"type":"message","id":"u","parentId":null,"timestamp":"2025-01-15T09:00:01.000Z","message":{"role":"user","content":"lone \ud83d end","timestamp":1}}"#.to_owned(),
        format!(r#"{{"type":"future","id":"deep","parentId":"u","payload":{{"n":12345678901234567890123,"f":1.0,"e":1e2,"s":"\u0000","deep":{deep}}}}}"#),
        format!(r#"{{"type":"custom","customType":"big","data":{big},"id":"big","parentId":"deep","timestamp":"t"}}"#),
        format!(r#"{{"type":"message","id":"a","parentId":"big","timestamp":"","zz":{deep},"message":{{"role":"assistant","content":[],"odd":{deep}}}}}"#),
    ];
    let lines: Vec<&str> = [HEADER].into_iter().chain(hard.iter().map(String::as_str)).collect();
    let path = write(dir.path(), &lines);
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    assert!(tree.diagnostics().is_empty(), "{:?}", tree.diagnostics());
    assert_eq!(ids(&tree, tree.last_id().as_deref()), ["u", "deep", "big", "a"]);
    let copy = tree.extract_branch("a").unwrap();
    let target = dir.path().join("forked");
    let options = CreateOptions { session_dir: Some(target), ..Default::default() };
    let fork = Tree::fork_from(&path, "/work/other", options).unwrap();
    for copied in [&copy, &fork] {
        let text = fs::read_to_string(copied.path().unwrap()).unwrap();
        let got: Vec<&str> = text.lines().skip(1).collect();
        assert!(got == hard, "every line byte for byte");
        assert_eq!(copied.entry("a").unwrap().unwrap().json(), hard[3].as_bytes());
    }
    let context = copy.context(Some("a")).unwrap();
    let texts: Vec<String> = context.messages().map(|m| m.message().text("")).collect();
    assert_eq!(texts, ["lone \u{fffd} end", ""]);
}

#[test]
fn s50_what_is_no_session_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    let files =
        [&b"{broken\n{\"type\":\"message\",\"id\":\"m1\"}\n"[..], b" \n \n", b"\0\0\0", b"{\"type\":\"session\"}"];
    for bytes in files {
        fs::write(&path, bytes).unwrap();
        let error = Tree::open(&path, OpenOptions::default()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidSessionFile);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    let error = Tree::open(dir.path(), OpenOptions::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidSessionFile, "a directory");
}

#[test]
fn repair_moves_bad_lines_aside() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), &[HEADER, "{bad", &user("a", None, "x"), "null", "\0\0"]);
    let report = repair(&path, &OpenOptions::default()).unwrap();
    assert_eq!(report.moved_lines, 2);
    assert_eq!(fs::read(report.side_file.unwrap()).unwrap(), b"{bad\n\0\0\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{HEADER}\n{}\nnull\n", user("a", None, "x")));
    let again = repair(&path, &OpenOptions::default()).unwrap();
    assert_eq!(again, Repair { moved_lines: 0, side_file: None });
}

#[test]
fn s66_a_migration_keeps_damaged_lines_aside() {
    let dir = tempfile::tempdir().unwrap();
    let v1 = r#"{"type":"session","id":"s","timestamp":"2025-01-15T09:00:00.000Z","cwd":"/work/demo"}"#;
    let hook = r#"{"type":"message","message":{"role":"hookMessage","n":9007199254740993}}"#;
    let path = write(dir.path(), &[v1, "{lost?", hook]);
    let before = fs::read(&path).unwrap();
    let reader = Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).unwrap();
    assert_eq!(reader.entries_len(), 1);
    assert_eq!(fs::read(&path).unwrap(), before);
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    let entry = tree.entries().next().unwrap().unwrap();
    assert_eq!(entry.message().unwrap().get_str("role"), Some("custom"));
    assert!(String::from_utf8_lossy(entry.json()).contains("9007199254740993"));
    assert_eq!(fs::read(dir.path().join("s.jsonl.damaged")).unwrap(), b"{lost?\n");
    assert_eq!(Tree::open(&path, OpenOptions::default()).unwrap_err().code(), ErrorCode::SessionLocked);
}

#[test]
fn s53_a_byte_order_mark_survives_migration_and_repair() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let v1 = r#"{"type":"session","id":"s","cwd":"/work/demo"}"#;
    fs::write(&path, format!("\u{feff}{v1}\n{{\"type\":\"message\",\"message\":{{\"role\":\"user\"}}}}\n")).unwrap();
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    assert_eq!((tree.session_id().as_str(), tree.entries_len()), ("s", 1));
    drop(tree);
    assert_eq!(Tree::open(&path, OpenOptions::default()).unwrap().entries_len(), 1);

    fs::write(&path, format!("\u{feff}{HEADER}\n\n{{bad\n{}", user("a", None, "x"))).unwrap();
    assert_eq!(repair(&path, &OpenOptions::default()).unwrap().moved_lines, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("\u{feff}{HEADER}\n\n{}\n", user("a", None, "x")));
    assert_eq!(Tree::open(&path, OpenOptions::default()).unwrap().entries_len(), 1);
}

#[test]
fn s70_a_cycle_made_by_a_later_line_of_the_same_id_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), &[HEADER, &user("n", None, ""), &user("p", Some("n"), "")]);
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(&format!("{}\n", user("n", Some("p"), "again")));
    fs::write(&path, &text).unwrap();
    assert_eq!(tree.refresh().unwrap(), 1);
    assert_eq!(ids(&tree, Some("p")), ["n", "p"]);
    assert_eq!(tree.structure().walk().count(), 2);
    let fresh = Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).unwrap();
    assert_eq!(ids(&fresh, Some("p")), ["n", "p"]);
}

#[test]
fn every_kind_of_damage_is_reported_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let lines =
        ["{torn", "\0\0", HEADER, &user("a", Some("ghost"), ""), "[1]", "{}", &user("a", None, ""), HEADER, "x"];
    let path = dir.path().join("s.jsonl");
    fs::write(&path, lines.join("\n")).unwrap();
    let tree = Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).unwrap();
    let mut found: Vec<_> = tree.diagnostics().iter().map(|d| (d.line, d.kind)).collect();
    found.sort_by_key(|(line, _)| *line);
    use DiagnosticKind::*;
    let expected = [
        (1, InvalidJson),
        (2, NulBytes),
        (5, NotAnObject),
        (6, MissingId),
        (7, DuplicateId),
        (8, ExtraHeader),
        (9, TornTail),
    ];
    assert_eq!(found, expected, "the ghost parent is void: a later line of the same id has none");
    fs::write(&path, format!("{HEADER}\n{}\n", user("a", Some("ghost"), ""))).unwrap();
    let tree = Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).unwrap();
    assert_eq!(tree.diagnostics().iter().map(|d| (d.line, d.kind)).collect::<Vec<_>>(), [(2, MissingParent)]);
    let v1 = "{\"type\":\"session\",\"id\":\"s\"}\n\n{lost\n{\"type\":\"x\"}\n";
    fs::write(&path, v1).unwrap();
    let tree = Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).unwrap();
    assert_eq!(tree.diagnostics().iter().map(|d| (d.line, d.kind)).collect::<Vec<_>>(), [(3, InvalidJson)]);
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions_and_links() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("real.jsonl");
    fs::write(&path, "{\"type\":\"session\",\"id\":\"s\"}\n{lost\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = dir.path().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let tree = Tree::open(&link, OpenOptions::default()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(dir.path().join("real.jsonl.damaged").exists());
    // The lock is on the new file, under both names.
    assert_eq!(Tree::open(&path, OpenOptions::default()).unwrap_err().code(), ErrorCode::SessionLocked);
    drop(tree);
}

#[test]
fn s17_what_is_never_stored_is_refused() {
    let options = CreateOptions { in_memory: true, ..Default::default() };
    let mut cursor = Cursor::new(Tree::create("/work/demo", options).unwrap());
    let pending = Message::from_value(json!({"role": "assistant", "content": [], "stopReason": "pending"})).unwrap();
    for message in [Message::branch_summary("s", "x", 1.0), Message::compaction_summary("s", json!(1), 1.0), pending] {
        assert_eq!(cursor.append_message(&message).unwrap_err().code(), ErrorCode::InvalidArgument);
    }
    assert_eq!(cursor.leaf(), None);
}

#[test]
fn a_shortened_file_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), &[HEADER, &user("a", None, "x"), &user("b", Some("a"), "y")]);
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    let mut cursor = Cursor::new(tree.clone());
    let short = format!("{HEADER}\n{}\n", user("a", None, "x"));
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(short.len() as u64).unwrap();
    assert_eq!(cursor.append_name("n").unwrap_err().code(), ErrorCode::StorageChanged);
    assert_eq!(tree.refresh().unwrap_err().code(), ErrorCode::StorageChanged);
    assert_eq!(tree.entry("b").unwrap_err().code(), ErrorCode::StorageChanged);
    assert_eq!(tree.entry("a").unwrap().unwrap().id(), "a", "what is still there is still read");
    assert_eq!(fs::read_to_string(&path).unwrap(), short);
}

#[test]
fn damage_without_end_is_counted_and_not_collected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut text = "x\n".repeat(300_000);
    text.push_str(HEADER);
    text.push('\n');
    text.push_str(&"[]\n".repeat(300_000));
    for n in 0..50_000 {
        // An orphan and an entry that is its own parent, each of them a fault of its own.
        text.push_str(&format!(
            "{}\n{}\n",
            user(&format!("o{n}"), Some("ghost"), ""),
            user(&format!("s{n}"), Some(&format!("s{n}")), "")
        ));
    }
    fs::write(&path, text).unwrap();
    let tree = Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).unwrap();
    assert_eq!(tree.diagnostics().len(), 1000);
    assert_eq!(tree.diagnostics_total(), 700_000);
    assert_eq!(tree.structure().roots().len(), 100_000);
    for n in [0, 49_999] {
        let id = format!("s{n}");
        assert_eq!(tree.children(Some(&id)), [id]);
    }
}

/// S80: also the children of a parent that is not there, each once, as its last line has it.
#[test]
fn s80_children_of_a_missing_parent() {
    let dir = tempfile::tempdir().unwrap();
    let entry = |id: &str, parent: &str| {
        format!(r#"{{"type":"custom","customType":"x","id":"{id}","parentId":"{parent}","timestamp":""}}"#)
    };
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#;
    let lines = [
        header.to_owned(),
        entry("b", "gone"),
        entry("a", "gone"),
        entry("moved", "gone"),
        entry("moved", "a"),
        entry("b", "gone"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let tree = Tree::open(write(dir.path(), &lines), OpenOptions::default()).unwrap();
    assert_eq!(tree.children(Some("gone")), ["b", "a"]);
    assert_eq!(tree.children(Some("a")), ["moved"]);
    assert_eq!(tree.children(Some("never")), [""; 0]);
}
