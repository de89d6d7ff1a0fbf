//! Odd but possible files: numbers beyond all counts, empty ids, labels behind a compaction, changed parents, places that
//! the environment names.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use branchline::tree::*;
use branchline::{Engine, EngineOptions, PromptOptions, SessionOptions, block_on};
use serde_json::{Value, json};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-05T08:00:00.000Z","cwd":"/work/demo"}"#;

fn write(path: &Path, lines: &[&str]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

fn session(dir: &Path, lines: &[&str]) -> PathBuf {
    let path = dir.join("s.jsonl");
    write(&path, &[&[HEADER], lines].concat());
    path
}

fn entry(id: &str, parent: Option<&str>) -> String {
    json!({"type": "custom", "customType": "x", "id": id, "parentId": parent, "timestamp": ""}).to_string()
}

fn read_only(path: &Path) -> Tree {
    Tree::open(path, OpenOptions { read_only: true, ..Default::default() }).unwrap()
}

fn lines_of(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// S30, S114, S258: sums stay at the largest count.
#[test]
fn usage_beyond_all_counts_is_no_overflow() {
    let dir = tempfile::tempdir().unwrap();
    let usage = r#"{"input":1e19,"output":1e19,"cacheRead":1e20,"cacheWrite":5,"totalTokens":0,"cost":{"total":1}}"#;
    let answer = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"","message":{{"role":"assistant","content":[{{"type":"text","text":"a"}}],"provider":"scripted","model":"demo","usage":{usage},"stopReason":"stop","timestamp":1}}}}"#
        )
    };
    let user = r#"{"type":"message","id":"u","parentId":null,"timestamp":"","message":{"role":"user","content":"q","timestamp":1}}"#;
    let path = session(dir.path(), &[user, &answer("a", "u"), &answer("b", "a")]);
    let engine = Engine::new(EngineOptions::default().agent_dir(dir.path().join("agent"))).unwrap();
    let options = SessionOptions::new(dir.path()).model("scripted/demo").tools(Vec::<String>::new());
    let session = block_on(engine.open_session(&path, options)).unwrap();
    assert_eq!(block_on(session.stats()).unwrap().tokens.total(), u64::MAX);
    let result = block_on(session.run("and now?", PromptOptions::default()));
    assert!(result.is_ok(), "{result:?}");
}

/// S60, S67–S70: after a refresh the tree is the one that a new reader sees.
#[test]
fn a_later_line_of_an_id_mends_or_moves_a_cycle() {
    type Lines<'a> = &'a [(&'a str, Option<&'a str>)];
    let cases: [(Lines<'_>, Lines<'_>); 6] = [
        (&[("a", Some("a"))], &[("a", Some("a"))]),
        (&[("a", Some("a"))], &[("a", None)]),
        (&[("a", Some("b")), ("b", Some("a"))], &[("a", Some("b")), ("b", Some("c")), ("c", None)]),
        (&[("a", Some("b")), ("b", Some("a"))], &[("b", None)]),
        (&[("a", Some("b")), ("b", Some("c")), ("c", Some("a"))], &[("c", Some("b")), ("d", Some("a"))]),
        (&[("a", Some("b")), ("b", Some("a")), ("x", Some("y"))], &[("y", Some("x")), ("a", Some("x"))]),
    ];
    for (before, after) in cases {
        let dir = tempfile::tempdir().unwrap();
        let first: Vec<String> = before.iter().map(|(id, parent)| entry(id, *parent)).collect();
        let path = session(dir.path(), &first.iter().map(String::as_str).collect::<Vec<_>>());
        let live = read_only(&path);
        let _ = live.children(Some("a"));
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        for (id, parent) in after {
            writeln!(file, "{}", entry(id, *parent)).unwrap();
        }
        live.refresh().unwrap();
        let fresh = read_only(&path);
        assert_eq!(live.structure().to_json(), fresh.structure().to_json(), "{before:?} {after:?}");
        for id in ["a", "b", "c", "d", "x", "y"].into_iter().filter(|id| fresh.contains(id)) {
            assert_eq!(live.children(Some(id)), fresh.children(Some(id)), "{id}: {before:?} {after:?}");
            let path = |tree: &Tree| tree.branch(Some(id)).ids().collect::<Vec<_>>();
            assert_eq!(path(&live), path(&fresh), "{id}: {before:?} {after:?}");
        }
    }
}

/// S68, S79: an empty `parentId` names nobody.
#[test]
fn an_entry_below_an_empty_id_is_a_root() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), &[&entry("", None)]);
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    let id = Cursor::new(tree.clone()).append_custom("y", None).unwrap();
    assert_eq!(lines_of(&path)[2]["parentId"], "");
    for tree in [tree, read_only(&path)] {
        assert_eq!(tree.branch(Some(&id)).ids().collect::<Vec<_>>(), [&*id]);
    }
}

/// S92: only what a label stands before can be kept by a compaction.
#[test]
fn a_compaction_that_names_a_later_label_is_copied_as_it_is() {
    let label = |id: &str, parent: &str| {
        json!({"type": "label", "id": id, "parentId": parent, "timestamp": "", "targetId": "a", "label": "x"})
            .to_string()
    };
    let compaction = |id: &str, parent: &str, kept: &str| {
        json!({"type": "compaction", "id": id, "parentId": parent, "timestamp": "", "summary": "s",
            "firstKeptEntryId": kept, "tokensBefore": 1})
        .to_string()
    };
    let dir = tempfile::tempdir().unwrap();
    let lines = [
        entry("a", None),
        label("k", "a"),
        entry("b", Some("k")),
        compaction("c", "b", "k"),
        compaction("d", "c", "l"),
        label("l", "d"),
        entry("e", Some("l")),
    ];
    let path = session(dir.path(), &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let mut out = Vec::new();
    let copy = read_only(&path).extract_branch("e").unwrap();
    copy.export_branch(None, &mut out).unwrap();
    let kept: Vec<String> = copy
        .entries()
        .map(|entry| entry.unwrap())
        .filter_map(|entry| entry.string("firstKeptEntryId").map(|id| id.to_string()))
        .collect();
    assert_eq!(kept, ["b", "l"]);
}

/// S63, S64: an index that names no entry leaves no id, whatever id stood there before.
#[test]
fn a_migrated_compaction_keeps_no_stale_id() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.jsonl");
    let compaction = r#"{"type":"compaction","timestamp":"","summary":"s","firstKeptEntryIndex":9,"firstKeptEntryId":"old","tokensBefore":1}"#;
    write(&path, &[r#"{"type":"session","id":"s","timestamp":"","cwd":"/w"}"#, compaction]);
    let somebodys = dir.path().join("old.jsonl.tmp");
    std::fs::write(&somebodys, "precious").unwrap();
    drop(Tree::open(&path, OpenOptions::default()).unwrap());
    let lines = lines_of(&path);
    assert_eq!((&lines[0]["version"], lines[1].get("firstKeptEntryId")), (&json!(3), None));
    assert_eq!(std::fs::read_to_string(somebodys).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
}

/// S61: a version is compared as JavaScript compares it.
#[test]
fn versions_as_javascript_reads_them() {
    for (version, migrated) in [
        (r#""0x2""#, true),
        (r#"" 2 ""#, true),
        (r#""-Infinity""#, true),
        (r#""-inf""#, false),
        (r#""nan""#, false),
        (r#""3""#, false),
        (r#""0x3""#, false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.jsonl");
        let header = format!(r#"{{"type":"session","version":{version},"id":"s","timestamp":"","cwd":"/w"}}"#);
        write(&path, &[&header, &entry("a", None)]);
        drop(Tree::open(&path, OpenOptions::default()).unwrap());
        assert_eq!(lines_of(&path)[0]["version"] == json!(3), migrated, "{version}");
    }
}

/// S104: of several sessions whose ids begin so, the one that a listing shows first; file times do not matter.
#[test]
fn the_beginning_of_an_id_finds_the_most_recently_used() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, id: &str, time: u64| {
        let header = format!(r#"{{"type":"session","version":3,"id":"{id}","timestamp":"","cwd":"/work/demo"}}"#);
        let message = json!({"role": "user", "content": "q", "timestamp": time});
        let line = json!({"type": "message", "id": "u", "parentId": null, "timestamp": "", "message": message});
        write(&dir.path().join(name), &[&header, &line.to_string()]);
    };
    file("a.jsonl", "abc1", 1_800_000_000_000);
    file("b.jsonl", "abc2", 1_700_000_000_000);
    file("c.jsonl", "other", 1_900_000_000_000);
    let options = CreateOptions { session_dir: Some(dir.path().to_path_buf()), ..Default::default() };
    let found = find_by_id(Path::new("/work/demo"), "abc", IdMatch::Prefix, &options);
    assert_eq!(found, Some(dir.path().join("a.jsonl")));
    let listed = list("/work/demo", &ListOptions { location: options, ..Default::default() }).unwrap();
    assert_eq!(listed[1].path, dir.path().join("a.jsonl"));
}

const HERE: &str = "BRANCHLINE_TEST_HERE";

#[test]
#[ignore = "run by places_that_the_environment_names"]
fn in_an_environment_of_its_own() {
    let Some(here) = std::env::var_os(HERE).map(PathBuf::from) else { return };
    // S38: every listing looks where sessions are made.
    let tree = Tree::create("~/project", CreateOptions::default()).unwrap();
    Cursor::new(tree.clone()).append_message(&branchline::message::Message::user("q", vec![], 1)).unwrap();
    let path = tree.path().unwrap();
    assert!(path.starts_with(here.join("sessions")), "{path:?}");
    assert_eq!(lines_of(&path)[0]["cwd"], json!(here.join("home/project")));
    drop(tree);
    let paths = |list: Vec<SessionInfo>| list.into_iter().map(|info| info.path).collect::<Vec<_>>();
    assert_eq!(paths(list_all(&ListOptions::default()).unwrap()), [&*path]);
    assert_eq!(paths(list("~/project", &ListOptions::default()).unwrap()), [&*path]);
    assert_eq!(find_by_id(Path::new("~/project"), "", IdMatch::Prefix, &CreateOptions::default()), Some(path));
    // S47: a leading `~` is the home directory.
    std::fs::write(here.join("home/mine.jsonl"), format!("{HEADER}\n")).unwrap();
    let tree = Tree::open("~/mine.jsonl", OpenOptions::default()).unwrap();
    assert_eq!(tree.path(), Some(here.join("home/mine.jsonl")));
    assert!(!here.join("~").exists());
}

#[test]
fn places_that_the_environment_names() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(here.join("home")).unwrap();
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "in_an_environment_of_its_own", "--ignored"])
        .current_dir(&here)
        .env(HERE, &here)
        .env("HOME", here.join("home"))
        .env("PI_CODING_AGENT_SESSION_DIR", here.join("sessions"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
