//! Processes that append are killed with SIGKILL, again and again on one file. No acknowledged entry may be lost, and
//! the file must open after every kill (S307).

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use branchline::tree::{DiagnosticKind, OpenOptions, Tree};

/// Appends to the file until a number of entries is acknowledged, then kills; returns all acknowledged ids.
fn append_and_kill(path: &Path, durability: &str, enough: usize) -> Vec<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_appender"))
        .args([path.as_os_str(), durability.as_ref()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged: Vec<String> = lines.by_ref().take(enough).map(Result::unwrap).collect();
    assert_eq!(acknowledged.len(), enough, "the appender works until it is killed");
    child.kill().unwrap();
    // What was printed before the kill counts too; a cut line was not a whole acknowledgement.
    acknowledged.extend(lines.map_while(Result::ok).filter(|id| id.len() == 8));
    child.wait().unwrap();
    acknowledged
}

fn kill_loop(durability: &str, kills: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut acknowledged: Vec<String> = Vec::new();
    for kill in 0..kills {
        acknowledged.extend(append_and_kill(&path, durability, 1 + kill % 9));
        let tree = Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).unwrap();
        let ids: HashSet<String> = tree.entries().map(|entry| entry.unwrap().id().to_owned()).collect();
        assert!(acknowledged.iter().all(|id| ids.contains(id)), "kill {kill}");
        for fault in tree.diagnostics() {
            let torn = matches!(fault.kind, DiagnosticKind::TornTail | DiagnosticKind::InvalidJson);
            assert!(torn, "a kill can only tear a line: {fault}");
        }
        let path_len = tree.branch(tree.last_id().as_deref()).len();
        assert_eq!(path_len, ids.len(), "one unbroken chain");
    }
    assert!(acknowledged.len() >= kills);
}

#[test]
fn durability_entry_loses_no_acknowledged_entry() {
    kill_loop("entry", 200);
}

#[test]
fn a_dead_process_loses_nothing_even_without_syncing() {
    kill_loop("none", 50);
}
