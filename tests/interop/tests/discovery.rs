//! Agent directories and session directories of all shapes: listings, the most recent session and ids are found alike by pi
//! and by us. What the files themselves may hold is in `sessions.rs`. Skipped, with one line, when pi cannot be installed.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use branchline::tree::{self, CreateOptions, IdMatch, ListOptions, OsStorage, SessionInfo, Tree};
use branchline_interop::Peer;
use branchline_interop::generated::{Dice, ask};
use serde_json::{Value, json};

const CWDS: [&str; 4] = ["/work/demo", "/work/other", "/", "/work/demo/sub dir"];

/// A session file: mostly a good one.
fn session(dice: &mut Dice, n: usize) -> String {
    let cwd = *dice.pick(&["/work/demo", "/work/demo", "/work/other", "/work/demo/", "/work/./demo", "", "relative"]);
    let id = dice.pick(&["same", "a", "b"]).to_string() + ["", &n.to_string()][dice.roll(2)];
    let time = format!("2025-01-15T09:00:0{}.000Z", dice.roll(3));
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": time, "cwd": cwd}).to_string();
    let message = json!({"type": "message", "id": "e1", "parentId": null, "timestamp": time,
        "message": {"role": "user", "content": format!("text {n}"), "timestamp": 1_736_931_600_000u64 + dice.roll(3) as u64}});
    match dice.roll(12) {
        0 => String::new(),
        1 => "junk\n".to_owned(),
        2 => format!("{message}\n{header}\n"),
        3 => format!("\n{{bad\n{header}\n{message}\n"),
        4 => header,
        _ => format!("{header}\n{message}\n"),
    }
}

/// A directory with some sessions and some other things in it.
fn fill(dice: &mut Dice, directory: &Path) {
    fs::create_dir_all(directory).expect("a directory");
    for n in 0..dice.roll(6) {
        let name = dice.pick(&["a", "B", "b-1", "b_1", "2025-01-15T09-00-00-000Z_x"]).to_string() + &n.to_string();
        let path = directory
            .join(name + *dice.pick(&[".jsonl", ".jsonl", ".jsonl", ".jsonl", ".json", ".jsonl.bak", ".JSONL"]));
        fs::write(&path, session(dice, n)).expect("a file");
        let time = UNIX_EPOCH + Duration::from_secs(1_700_000_000 + dice.roll(3) as u64);
        let file = File::options().write(true).open(&path).expect("just written");
        file.set_times(FileTimes::new().set_modified(time)).expect("times can be set");
    }
    if dice.roll(4) == 0 {
        fs::create_dir_all(directory.join("folder.jsonl")).expect("a directory");
    }
}

/// An agent directory.
fn agent(dice: &mut Dice, root: &Path) {
    let sessions = root.join("sessions");
    for cwd in CWDS {
        if dice.roll(3) > 0 {
            fill(dice, &tree::session_dir(root, Path::new(cwd)));
        }
    }
    if dice.roll(2) == 0 {
        fill(dice, &sessions.join("strange name"));
        fill(dice, &sessions.join("strange name/nested"));
    }
    if dice.roll(3) == 0 {
        fill(dice, &sessions); // files that are in no working directory's folder
    }
    #[cfg(unix)]
    if dice.roll(3) == 0 {
        fill(dice, &root.join("elsewhere"));
        let _ = fs::create_dir_all(&sessions);
        let _ = std::os::unix::fs::symlink(root.join("elsewhere"), sessions.join("link"));
    }
}

fn ours(list: Vec<SessionInfo>) -> Vec<Value> {
    list.into_iter()
        .map(|info| {
            json!([
                info.path,
                info.id,
                info.cwd,
                info.message_count,
                info.first_message,
                tree::format_iso(info.modified)
            ])
        })
        .collect()
}

fn theirs(list: &Value) -> Vec<Value> {
    let row = |info: &Value| {
        json!([info["path"], info["id"], info["cwd"], info["messageCount"], info["firstMessage"], info["modified"]])
    };
    list.as_array().into_iter().flatten().map(row).collect()
}

#[test]
fn sessions_are_found_alike() {
    let Some(mut peer) = Peer::start() else { return };
    for seed in 0..100 {
        let dice = &mut Dice(seed);
        let root = tempfile::tempdir().expect("a temporary folder");
        let root = root.path();
        agent(dice, root);
        let custom = root.join("custom");
        if dice.roll(4) > 0 {
            fill(dice, &custom);
        }
        ask(&mut peer, json!({"do": "agent", "dir": root})).expect("pi takes it");
        for dir in [None, Some(&custom)] {
            let location = CreateOptions {
                agent_dir: Some(root.to_path_buf()),
                session_dir: dir.cloned(),
                storage: std::sync::Arc::new(OsStorage),
                ..Default::default()
            };
            let options = ListOptions { location: location.clone(), ..Default::default() };
            let mut pi = |mut request: Value| {
                if let Some(dir) = dir {
                    request["dir"] = json!(dir);
                }
                ask(&mut peer, request).expect("pi answers")
            };
            let when = format!("seed {seed}, {dir:?}");
            let all = ours(tree::list_all(&options).expect("ours lists"));
            assert_eq!(all, theirs(&pi(json!({"do": "listAll"}))), "{when}: all");
            for cwd in CWDS {
                let list = ours(tree::list(cwd, &options).expect("ours lists"));
                assert_eq!(list, theirs(&pi(json!({"do": "list", "cwd": cwd}))), "{when}: {cwd}");
                for id in ["same", "a1", "a", "b2", "none"] {
                    let found = tree::find_by_id(Path::new(cwd), id, IdMatch::Exact, &location);
                    let wanted: Option<PathBuf> =
                        serde_json::from_value(pi(json!({"do": "find", "cwd": cwd, "id": id}))).expect("a path");
                    assert_eq!(found, wanted, "{when}: {cwd}, {id}");
                }
                let recent = Tree::continue_recent(cwd, location.clone()).expect("ours goes on");
                let recent = recent.path().filter(|path| path.exists());
                let wanted: Option<PathBuf> =
                    serde_json::from_value(pi(json!({"do": "recent", "cwd": cwd}))).expect("a path");
                assert_eq!(recent, wanted, "{when}: recent in {cwd}");
            }
        }
    }
}
