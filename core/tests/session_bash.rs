//! The `bash` and `read` tools inside a session and alone.

#[path = "session_support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use branchline::tools::bash::{BashOptions, BashTool};
use branchline::tools::{self, ToolCall, ToolError, ToolResult};
use branchline::{EventKind, PromptOptions, block_on};
use serde_json::{Value, json};
use support::*;

/// Runs one call on a runtime of its own. Files with long output stay, though the tool goes.
fn call(name: &str, arguments: Value, cwd: &Path) -> Result<ToolResult, ToolError> {
    let keeping = BashTool::with_options(BashOptions::default().keep_output(true));
    let mut tools = tools::builtin();
    tools.insert(0, Arc::new(keeping));
    let tool = tools.into_iter().find(|tool| tool.definition().name == name).unwrap();
    let call = ToolCall::detached(name, arguments.as_object().unwrap().clone(), cwd);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(tool.execute(call))
}

fn text(result: &ToolResult) -> &str {
    result.content[0]["text"].as_str().unwrap()
}

/// Whether a process runs (a zombie does not).
#[cfg(target_os = "linux")]
fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).is_some_and(|state| state != 'Z')
}

#[cfg(target_os = "linux")]
#[test]
fn an_abort_kills_children_and_grandchildren() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    // The grandchild ignores the polite signal, too.
    let command = "bash -c 'trap \"\" TERM; echo $$ > grandchild; while :; do sleep 1; done' & echo $! > child; wait";
    let script =
        json!([{"content": [{"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": command}}]}]);
    let (session, _) = scripted(&engine, dir.path(), script);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let begun = Instant::now();
    let pid = loop {
        let pid = std::fs::read_to_string(dir.path().join("grandchild")).unwrap_or_default();
        if pid.ends_with('\n') {
            break pid.trim().to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(alive(&pid));
    let begun = Instant::now();
    block_on(session.abort()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    std::thread::sleep(Duration::from_millis(50));
    assert!(!alive(&pid), "the grandchild is gone");
    assert!(block_on(run.result()).unwrap().aborted);
}

#[test]
fn output_codes_and_limits() {
    let dir = tempfile::tempdir().unwrap();
    let run = |command: &str| call("bash", json!({"command": command}), dir.path());
    assert_eq!(text(&run("echo out; echo err >&2").unwrap()), "out\nerr\n");
    assert_eq!(text(&run("true").unwrap()), "(no output)");
    assert_eq!(text(&run("pwd").unwrap()).trim(), dir.path().canonicalize().unwrap().to_str().unwrap());
    let failed = run("echo partial; exit 3").unwrap();
    assert!(failed.is_error);
    assert_eq!(text(&failed), "partial\n\n\nCommand exited with code 3");
    assert_eq!(text(&run("kill -9 $$").unwrap()), "(no output)\n\nCommand exited with code 137");
    assert_eq!(text(&run("cat").unwrap()), "(no output)", "there is no input");

    let long = run("seq 1 5000").unwrap();
    assert!(text(&long).starts_with("3001\n"), "{}", &text(&long)[..20]);
    assert!(text(&long).contains("[Showing lines 3001-5000 of 5000. Full output: "));
    let details = long.details.unwrap();
    assert_eq!(details["truncation"]["totalLines"], 5000);
    let path = details["fullOutputPath"].as_str().unwrap();
    let full = std::fs::read_to_string(path).unwrap();
    assert_eq!(full.lines().count(), 5000);
    std::fs::remove_file(path).unwrap();

    let slow = call("bash", json!({"command": "echo begun; sleep 60", "timeout": 0.2}), dir.path()).unwrap_err();
    assert_eq!(slow.0, "begun\n\n\nCommand timed out after 0.2 seconds");
    let begun = Instant::now();
    assert_eq!(text(&run("sleep 30 & echo done").unwrap()), "done\n", "a background process does not hold the result");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(call("bash", json!({"command": "true", "timeout": 0}), dir.path()).is_err());
}

#[test]
fn secrets_stay_here() {
    // SAFETY: tests of this file that read the environment do so through `std`, which locks it.
    unsafe { std::env::set_var("BRANCHLINE_TEST_API_KEY", "hush") };
    let dir = tempfile::tempdir().unwrap();
    let result = call("bash", json!({"command": "env"}), dir.path()).unwrap();
    assert!(text(&result).contains("PATH=") && !text(&result).contains("hush"));
}

#[test]
fn parts_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let read = |arguments: Value| call("read", arguments, dir.path());
    write("two", "one\ntwo\n");
    write("many", &(1..=2500).map(|n| format!("{n}\n")).collect::<String>());
    write("wide", &format!("{}\n", "x".repeat(123)).repeat(900));
    write("huge", &"y".repeat(60_000));
    write("empty", "");
    assert_eq!(text(&read(json!({"path": "two"})).unwrap()), "one\ntwo\n");
    assert_eq!(text(&read(json!({"path": "empty"})).unwrap()), "");
    assert_eq!(text(&read(json!({"path": "two", "offset": 2})).unwrap()), "two\n");
    let limited = read(json!({"path": "two", "limit": 2})).unwrap();
    assert_eq!(text(&limited), "one\ntwo\n\n[1 more lines in file. Use offset=3 to continue.]");
    assert_eq!(
        text(&read(json!({"path": "two", "offset": 2, "limit": 1})).unwrap()),
        "two\n\n[1 more lines in file. Use offset=3 to continue.]"
    );
    assert_eq!(
        read(json!({"path": "two", "offset": 4})).unwrap_err().0.split(':').next().unwrap(),
        "Offset 4 is beyond end of file (3 lines total)"
    );
    let many = read(json!({"path": "many"})).unwrap();
    assert!(text(&many).ends_with("\n2000\n\n[Showing lines 1-2000 of 2501. Use offset=2001 to continue.]"));
    assert_eq!(many.details.unwrap()["truncation"]["totalLines"], 2500);
    let wide = read(json!({"path": "wide"})).unwrap();
    assert!(
        text(&wide).ends_with("[Showing lines 1-412 of 901 (50.0KB limit). Use offset=413 to continue.]"),
        "{}",
        &text(&wide)[text(&wide).len() - 90..]
    );
    let huge = read(json!({"path": "huge"})).unwrap();
    assert_eq!(text(&huge), "[Line 1 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '1p' huge | head -c 51200]");
    assert!(read(json!({"path": "none"})).unwrap_err().0.starts_with("ENOENT: no such file or directory, access '"));
    assert!(read(json!({"path": "."})).unwrap_err().0.starts_with("EISDIR"));
}

/// Progress of a long command comes as updates that carry the output so far.
#[test]
fn bash_reports_progress() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([
        {"content": [{"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "echo a; sleep 0.3; echo b"}}]},
        {"content": [{"type": "text", "text": "ok"}]}
    ]);
    let (session, _) = scripted(&engine, dir.path(), script);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let updates: Vec<String> = until_settled(run.events())
        .iter()
        .filter_map(|event| match event.kind() {
            EventKind::ToolExecutionUpdate { partial, .. } => Some(
                partial.content.first().map_or_else(String::new, |block| block["text"].as_str().unwrap().to_owned()),
            ),
            _ => None,
        })
        .collect();
    assert_eq!(updates, ["", "a\n", "a\nb\n"]);
}

/// The process's signals belong to the host.
#[cfg(target_os = "linux")]
#[test]
fn no_signal_handler_is_installed() {
    let signals = || -> Vec<String> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let wanted = |line: &&str| line.starts_with("SigCgt") || line.starts_with("SigIgn");
        status.lines().filter(wanted).map(str::to_owned).collect()
    };
    let before = signals();
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let options = branchline::SessionOptions::new(dir.path()).model("scripted/demo").in_memory(true);
    let session = block_on(engine.create_session(options)).unwrap();
    block_on(block_on(session.prompt("hello", PromptOptions::default())).unwrap().result()).unwrap();
    block_on(engine.shutdown());
    assert_eq!(signals(), before);
}
