//! Session files in both directions between branchline and the real pi. Skipped, with one line, when pi cannot be
//! installed because the package registry is out of reach.

use branchline::tree::{CreateOptions, Cursor, ListOptions, OpenOptions, Tree, format_iso, list};
use branchline_interop::{Op, Ops, Peer, State};
use std::path::{Path, PathBuf};

/// Operations of one random session.
const STEPS: usize = 120;
const CWD: &str = "/work/demo";

/// pi and a folder for sessions; `None` means skip.
fn setup() -> Option<(Peer, tempfile::TempDir)> {
    let peer = Peer::start()?;
    Some((peer, tempfile::tempdir().expect("a temporary folder")))
}

fn into(dir: &Path) -> CreateOptions {
    CreateOptions { session_dir: Some(dir.to_path_buf()), ..Default::default() }
}

fn open(path: &Path) -> Tree {
    Tree::open(path, OpenOptions::default()).expect("ours opens the file")
}

/// Opened without the writer's lock, so that a tree open for writing may stay.
fn look(path: &Path) -> Tree {
    Tree::open(path, OpenOptions { read_only: true, ..Default::default() }).expect("ours opens the file")
}

/// Both implementations open the file afresh and must see the same.
fn assert_same_file(peer: &mut Peer, path: &Path, when: &str) {
    let tree = look(path);
    assert_eq!(tree.diagnostics(), [], "{when}");
    peer.open(path, path.parent().expect("a folder"));
    State::of(&tree, tree.last_id().as_deref()).assert_is(&peer.state(), when);
}

fn session_ids(path: &Path) -> Vec<String> {
    look(path).entries().map(|entry| entry.expect("an entry").id().to_owned()).collect()
}

/// Does random things in ours; returns how many were done.
fn write_ours(cursor: &mut Cursor, ops: &mut Ops, ids: &mut Vec<String>, steps: usize) -> usize {
    let mut done = 0;
    for _ in 0..steps {
        if let Ok(id) = ops.next(ids).in_ours(cursor) {
            ids.extend(id);
            done += 1;
        }
    }
    done
}

/// Does random things in pi; returns how many were done.
fn write_pi(peer: &mut Peer, ops: &mut Ops, ids: &mut Vec<String>, steps: usize) -> usize {
    let mut done = 0;
    for _ in 0..steps {
        if let Ok(id) = ops.next(ids).in_pi(peer) {
            ids.extend(id);
            done += 1;
        }
    }
    done
}

#[test]
fn pi_reads_what_we_write() {
    let Some((mut peer, dir)) = setup() else { return };
    for seed in 1..=4 {
        let mut cursor = Cursor::new(Tree::create(CWD, into(dir.path())).expect("a new session"));
        let (mut ops, mut ids) = (Ops::new(seed), Vec::new());
        for part in 0..4 {
            let done = write_ours(&mut cursor, &mut ops, &mut ids, STEPS / 4);
            assert!(done > STEPS / 8, "most operations are accepted");
            let when = format!("seed {seed}, part {part}");
            let path = cursor.tree().path().expect("a file");
            assert_same_file(&mut peer, &path, &when);
            // And where the cursor stands now, which is in no file.
            let leaf = cursor.leaf().map(str::to_owned);
            match &leaf {
                Some(leaf) => Op::MoveTo(leaf.clone()),
                None => Op::Reset,
            }
            .in_pi(&mut peer)
            .expect("pi moves its leaf");
            State::of(cursor.tree(), leaf.as_deref()).assert_is(&peer.state(), &format!("{when}, at the cursor"));
        }
    }
}

#[test]
fn we_read_what_pi_writes() {
    let Some((mut peer, dir)) = setup() else { return };
    for seed in 11..=14 {
        peer.create(CWD, dir.path());
        let (mut ops, mut ids) = (Ops::new(seed), Vec::new());
        // Only JavaScript can write half a surrogate pair.
        let half = r#"{"role":"user","content":"half \ud83d of a pair","timestamp":1}"#;
        ids.extend(Op::Message(half.into()).in_pi(&mut peer).expect("pi appends"));
        for part in 0..4 {
            let done = write_pi(&mut peer, &mut ops, &mut ids, STEPS / 4);
            assert!(done > STEPS / 8, "most operations are accepted");
            let when = format!("seed {seed}, part {part}");
            let (path, live) = (peer.file(), peer.state());
            let tree = look(&path);
            let leaf = branchline::json::decode_string(live.leaf.as_bytes());
            State::of(&tree, leaf.as_deref()).assert_is(&live, &format!("{when}, at pi's leaf"));
        }
        let path = peer.file();
        assert_same_file(&mut peer, &path, &format!("seed {seed}"));
    }
}

#[test]
fn both_take_turns_on_one_file() {
    let Some((mut peer, dir)) = setup() else { return };
    for seed in 21..=23 {
        let mut ops = Ops::new(seed);
        let mut ids = Vec::new();
        let path: PathBuf = {
            let mut cursor = Cursor::new(Tree::create(CWD, into(dir.path())).expect("a new session"));
            write_ours(&mut cursor, &mut ops, &mut ids, 10);
            cursor.tree().path().expect("a file")
        };
        for round in 0..8 {
            assert_same_file(&mut peer, &path, &format!("seed {seed}, round {round}, after ours"));
            write_pi(&mut peer, &mut ops, &mut ids, 10);
            assert_same_file(&mut peer, &path, &format!("seed {seed}, round {round}, after pi"));
            let mut cursor = Cursor::new(open(&path));
            write_ours(&mut cursor, &mut ops, &mut ids, 10);
        }
        assert_eq!(session_ids(&path).len(), ids.len(), "no entry was lost");
    }
}

/// pi takes no lock and does not look at the file again. Ours must, before it appends.
#[test]
fn both_write_while_both_have_it_open() {
    let Some((mut peer, dir)) = setup() else { return };
    let mut cursor = Cursor::new(Tree::create(CWD, into(dir.path())).expect("a new session"));
    let mut ids = Vec::new();
    write_ours(&mut cursor, &mut Ops::new(31), &mut ids, 20);
    let path = cursor.tree().path().expect("a file");
    peer.open(&path, dir.path());
    let message = |n: usize| Op::Message(format!(r#"{{"role":"user","content":"turn {n}","timestamp":{n}}}"#));
    for turn in 0..40 {
        let id = match turn % 5 {
            0 | 1 | 3 => message(turn).in_pi(&mut peer).expect("pi appends"),
            _ => message(turn).in_ours(&mut cursor).expect("ours appends"),
        };
        ids.extend(id);
    }
    // Ours has seen pi's entries by now, and may name them.
    let by_pi = message(99).in_pi(&mut peer).expect("pi appends").expect("an id");
    cursor.tree().refresh().expect("ours looks again");
    ids.push(by_pi.clone());
    ids.push(cursor.append_label(&by_pi, Some("theirs")).expect("ours labels pi's entry"));
    let live = State::of(cursor.tree(), cursor.leaf());
    assert_same_file(&mut peer, &path, "after writing together");
    live.assert_is(&peer.state(), "the tree that was open all the time");
    assert_eq!(session_ids(&path), ids, "every entry is there, in the order it was written");
}

/// An entry without what is fresh in every extraction: ids of new labels, and the parents among them.
fn without_fresh(entry: &str) -> String {
    let mut entry: serde_json::Value = serde_json::from_str(entry).expect("JSON");
    if entry["type"] == "label" {
        entry["id"] = "fresh".into();
        entry["parentId"] = "fresh".into();
    }
    entry.to_string()
}

#[test]
fn extracted_paths_and_forks_agree() {
    let Some((mut peer, dir)) = setup() else { return };
    for seed in 41..=43 {
        let mut cursor = Cursor::new(Tree::create(CWD, into(dir.path())).expect("a new session"));
        let mut ids = Vec::new();
        write_ours(&mut cursor, &mut Ops::new(seed), &mut ids, STEPS);
        let tree = cursor.tree().clone();
        let source = tree.path().expect("a file");
        for leaf in [tree.last_id().expect("a leaf"), ids[ids.len() / 2].clone(), ids[ids.len() / 3].clone()] {
            let when = format!("seed {seed}, path to {leaf}");
            let ours = tree.extract_branch(&leaf).expect("ours extracts");
            peer.open(&source, dir.path());
            let quoted = format!("{leaf:?}");
            peer.call("createBranchedSession", &[&quoted]).expect("pi extracts");
            let (theirs, theirs_path) = (peer.state(), peer.file());
            let fresh = |entries: &[String]| entries.iter().map(|entry| without_fresh(entry)).collect::<Vec<_>>();
            let state = State::of(&ours, ours.last_id().as_deref());
            assert_eq!(fresh(&state.entries), fresh(&theirs.entries), "{when}");
            assert_eq!(state.messages, theirs.messages, "{when}");
            assert_eq!(state.settings, theirs.settings, "{when}");
            // Each file in the other implementation. A path without a conversation has no file yet.
            assert_eq!(ours.is_saved(), theirs_path.exists(), "{when}");
            if ours.is_saved() {
                assert_same_file(&mut peer, &ours.path().expect("a file"), &format!("{when}, extracted by ours"));
                assert_same_file(&mut peer, &theirs_path, &format!("{when}, extracted by pi"));
            }
        }
        let ours = Tree::fork_from(&source, "/work/other", into(dir.path())).expect("ours forks");
        assert_same_file(&mut peer, &ours.path().expect("a file"), "forked by ours");
        let request = serde_json::json!({"do": "fork", "path": source, "cwd": "/work/other", "dir": dir.path()});
        peer.ask(&request.to_string()).expect("pi forks");
        let path = peer.file();
        assert_same_file(&mut peer, &path, "forked by pi");
        assert_eq!(State::of(&ours, ours.last_id().as_deref()).entries, peer.state().entries, "the same entries");
    }
}

#[test]
fn listings_agree() {
    let Some((mut peer, dir)) = setup() else { return };
    for seed in 51..=56 {
        let (mut ops, mut ids) = (Ops::new(seed), Vec::new());
        if seed % 2 == 0 {
            let mut cursor = Cursor::new(Tree::create(CWD, into(dir.path())).expect("a new session"));
            write_ours(&mut cursor, &mut ops, &mut ids, 30);
        } else {
            peer.create(CWD, dir.path());
            write_pi(&mut peer, &mut ops, &mut ids, 30);
        }
    }
    let options = ListOptions { location: into(dir.path()), text: true, ..Default::default() };
    let mut ours: Vec<serde_json::Value> = list(CWD, &options)
        .expect("ours lists")
        .into_iter()
        .map(|s| {
            serde_json::json!({
                "path": s.path, "id": s.id, "cwd": s.cwd, "name": s.name, "parentSessionPath": s.parent_session_path,
                "created": s.created.map(format_iso), "modified": format_iso(s.modified), "messageCount": s.message_count,
                "firstMessage": s.first_message, "allMessagesText": s.all_messages_text,
            })
        })
        .collect();
    let request = serde_json::json!({"do": "list", "cwd": CWD, "dir": dir.path()});
    let theirs = peer.ask(&request.to_string()).expect("pi lists");
    let mut theirs: Vec<serde_json::Value> = serde_json::from_str(&theirs).expect("a list");
    for info in &mut theirs {
        for name in ["name", "parentSessionPath"] {
            info[name] = info[name].take(); // absent is null here
        }
    }
    assert_eq!(ours.len(), 6);
    // Equal times leave the order open.
    for list in [&mut ours, &mut theirs] {
        list.sort_by_key(|info| info["path"].to_string());
    }
    assert_eq!(ours, theirs);
}
