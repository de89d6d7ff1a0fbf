//! A hundred siblings of a session of a hundred thousand entries. Alone in its process: it looks at memory and threads.
#![cfg(target_os = "linux")]

#[path = "sibling_support/mod.rs"]
mod support;

use std::fmt::Write as _;

use branchline::{BranchOptions, BranchPoint, Session, SessionOptions, block_on};
use support::*;

const ENTRIES: usize = 100_000;
const SIBLINGS: usize = 100;
const TURNS: usize = 20;

/// A number of `/proc/self/status`.
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

/// One path of questions, calls, results and answers.
fn long_session(dir: &std::path::Path) -> std::path::PathBuf {
    let mut text = format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"long\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"{}\"}}\n",
        dir.display()
    );
    let mut parent = "null".to_owned();
    for n in 0..ENTRIES {
        let message = match n % 4 {
            0 => format!(r#"{{"role":"user","content":[{{"type":"text","text":"question {n}"}}],"timestamp":1}}"#),
            1 => format!(
                r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"c{n}","name":"note","arguments":{{"n":{n}}}}}],"api":"many","provider":"many","model":"m","usage":{{"input":1,"output":1,"totalTokens":2}},"stopReason":"toolUse","timestamp":1}}"#
            ),
            2 => format!(
                r#"{{"role":"toolResult","toolCallId":"c{}","toolName":"note","content":[{{"type":"text","text":"result {n}"}}],"isError":false,"timestamp":1}}"#,
                n - 1
            ),
            _ => format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"answer {n}"}}],"api":"many","provider":"many","model":"m","usage":{{"input":1,"output":1,"totalTokens":2}},"stopReason":"stop","timestamp":1}}"#
            ),
        };
        let _ = writeln!(
            text,
            r#"{{"type":"message","id":"{n:08x}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z","message":{message}}}"#
        );
        parent = format!("\"{n:08x}\"");
    }
    let path = dir.join("long.jsonl");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_hundred_siblings_of_a_long_session() {
    let setup = Setup::lean();
    let file = long_session(setup.dir.path());
    let options = SessionOptions::new("").custom_tool(note()).tools(["note"]);
    let session = block_on(setup.engine.open_session(&file, options)).unwrap();
    say(&session, "warm-up turns=1");
    let (memory, threads) = (status("VmRSS"), status("Threads"));

    let peak = || status("VmHWM").saturating_sub(memory);
    let round = |turns: usize| {
        let make = |_| block_on(session.branch(BranchPoint::Leaf, BranchOptions::default())).unwrap();
        let siblings: Vec<Session> = (0..SIBLINGS).map(make).collect();
        let prompt = |n: usize| format!("s{n} turns={}", turns - 1);
        let runs: Vec<_> = siblings.iter().enumerate().map(|(n, sibling)| begin(sibling, &prompt(n))).collect();
        for (n, run) in runs.iter().enumerate() {
            assert_eq!(block_on(run.result()).unwrap().text, format!("s{n}"));
        }
        // Threads for blocking work come and go, at most one for what each sibling does at a time.
        assert!(status("Threads") <= threads + SIBLINGS as u64 + 8, "{} threads", status("Threads"));
    };
    round(TURNS);
    let first = peak();
    assert!(first < 200_000, "{first} kB");
    // Nothing stays of those that are gone: another hundred finds the room.
    round(2);
    assert!(peak() < first + 50_000, "{first} kB, then {} kB", peak());
    let lines = check_file(&file);
    assert_eq!(lines.len() - 1, ENTRIES + 6 + SIBLINGS * 2 * (TURNS + 2));
    assert_eq!(say(&session, "after").text, "after");
}
