//! Changes of one file at the same time: none is lost, whatever names the file is called by and whoever calls (T60–T63).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use branchline::tools::operations::LocalFiles;
use branchline::tools::{ToolResult, Toolbox, mutation_queue};
use branchline::{Engine, EngineOptions, block_on};
use futures::future::join_all;
use serde_json::{Value, json};

/// As often as the issue asks for.
const RUNS: usize = 200;

fn edit(name: &str, from: &str, to: &str) -> Value {
    json!({"path": name, "edits": [{"oldText": from, "newText": to}]})
}

fn good(result: &ToolResult) {
    assert!(!result.is_error, "{}", result.content[0]["text"]);
}

/// A file with three keys; `link.txt` and `alias/` lead to it, and `a/../` is a detour.
fn place() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("real/a")).unwrap();
    fs::write(dir.path().join("real/f.txt"), "A=0\nB=0\nC=0\nD=0\n").unwrap();
    symlink(dir.path().join("real"), dir.path().join("alias")).unwrap();
    symlink("real/f.txt", dir.path().join("link.txt")).unwrap();
    dir
}

fn content(dir: &Path) -> String {
    fs::read_to_string(dir.join("real/f.txt")).unwrap()
}

/// The file is replaced by every edit, so it has another number each time: only its name holds the queue together.
#[test]
fn two_hundred_runs_of_parallel_edits_keep_all() {
    let names = ["real/f.txt", "link.txt", "real/a/../f.txt", "alias/f.txt"];
    for run in 0..RUNS {
        let dir = place();
        let tools = Toolbox::new(dir.path()).unwrap();
        let calls = ["A", "B", "C", "D"].into_iter().enumerate().map(|(at, key)| {
            // Every name comes first once in a while.
            let name = names[(at + run) % names.len()];
            tools.call("edit", edit(name, &format!("{key}=0"), &format!("{key}=1")))
        });
        block_on(join_all(calls)).iter().for_each(good);
        assert_eq!(content(dir.path()), "A=1\nB=1\nC=1\nD=1\n", "run {run}");
    }
}

/// The same from threads of their own, with nothing that puts the calls in an order: two toolboxes of one engine, one of
/// another engine, and one without an engine.
#[test]
fn two_hundred_runs_of_parallel_edits_from_four_toolboxes_keep_all() {
    let engine = Engine::new(EngineOptions::default()).unwrap();
    let other = Engine::new(EngineOptions::default()).unwrap();
    let dir = place();
    let boxes = [
        engine.toolbox(dir.path()),
        engine.toolbox(dir.path().join("alias")),
        other.toolbox(dir.path().join("real/a")),
        Toolbox::new(dir.path()).unwrap(),
    ];
    let names = ["link.txt", "f.txt", "../f.txt", "real/a/../f.txt"];
    for run in 0..RUNS {
        let (from, to) = (run % 2, (run + 1) % 2);
        std::thread::scope(|scope| {
            for ((tools, name), key) in boxes.iter().zip(names).zip(["A", "B", "C", "D"]) {
                scope.spawn(move || {
                    let arguments = edit(name, &format!("{key}={from}"), &format!("{key}={to}"));
                    good(&block_on(tools.call("edit", arguments)));
                });
            }
        });
        assert_eq!(content(dir.path()), format!("A={to}\nB={to}\nC={to}\nD={to}\n"), "run {run}");
    }
}

/// `write` is in the same queue, small or large, and a call that was started later has the last word.
#[test]
fn writes_and_edits_go_in_the_order_of_their_calls() {
    let large = format!("A=0\n{}\n", "x".repeat(300_000));
    for run in 0..RUNS {
        let dir = place();
        let tools = Toolbox::new(dir.path()).unwrap();
        let text = if run % 2 == 0 { "A=0\n" } else { &large };
        let first = tools.call("write", json!({"path": "alias/new/f.txt", "content": text}));
        let second = tools.call("edit", edit("real/new/f.txt", "A=0", "A=1"));
        let (first, second) = block_on(futures::future::join(first, second));
        good(&first);
        good(&second);
        let written = fs::read_to_string(dir.path().join("real/new/f.txt")).unwrap();
        assert!(written.starts_with("A=1\n") && written.len() == text.len(), "run {run}");
    }
}

/// A link to nothing stands for the file it will make.
#[test]
fn a_link_to_nothing_is_the_name_of_its_target() {
    let dir = place();
    symlink("real/later.txt", dir.path().join("dangling")).unwrap();
    block_on(async {
        let first = mutation_queue::turn(&LocalFiles, &dir.path().join("dangling")).await.unwrap();
        let target = dir.path().join("real/later.txt");
        let mut second = Box::pin(mutation_queue::turn(&LocalFiles, &target));
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(first);
        drop(second.await.unwrap());
    });
    let tools = Toolbox::new(dir.path()).unwrap();
    good(&block_on(tools.call("write", json!({"path": "dangling", "content": "made"}))));
    assert_eq!(fs::read_to_string(dir.path().join("real/later.txt")).unwrap(), "made");
    assert!(fs::symlink_metadata(dir.path().join("dangling")).unwrap().is_symlink());
}

/// A loop of links has no file behind it, and says so (T62).
#[test]
fn a_loop_of_links_is_an_error() {
    let dir = place();
    symlink("two", dir.path().join("one")).unwrap();
    symlink("one", dir.path().join("two")).unwrap();
    let tools = Toolbox::new(dir.path()).unwrap();
    for call in [json!({"path": "one", "content": "x"}), json!({"path": "one/f", "content": "x"})] {
        let result = block_on(tools.call("write", call));
        assert!(result.is_error && result.content[0]["text"].as_str().unwrap().contains("ELOOP"));
    }
}
