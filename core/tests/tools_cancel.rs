//! Cancelled calls on much data end, and nothing of them goes on: whole trees, one large directory, one large file.
//! How fast that is, is measured by `make bench-cancel`.
#![cfg(target_os = "linux")]

mod tool_support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use tool_support::{new_call, tool};

/// Guards against a hang; the calls take milliseconds.
const LONG: Duration = Duration::from_secs(60);

/// Threads of walks in this process.
fn walkers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.map(name).filter(|name| name.starts_with("branchline-walk")).count()
}

fn no_walkers() -> bool {
    let begun = Instant::now();
    while walkers() > 0 {
        if begun.elapsed() > LONG {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Starts a call, ends it in one of several ways and moments, and sees that it is over.
fn ends(name: &str, arguments: &Value, root: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    for (round, delay) in [0, 1, 3, 10, 30].into_iter().enumerate() {
        for dropped in [false, true] {
            let call = new_call(name, arguments.clone(), root);
            let cancel = call.cancel.clone();
            let running = runtime.spawn(tool(name).execute(call));
            std::thread::sleep(Duration::from_millis(delay));
            if dropped {
                // Giving up the future ends its threads as well.
                running.abort();
                let _ = runtime.block_on(running);
            } else {
                cancel.cancel();
                let ended = runtime.block_on(async { tokio::time::timeout(LONG, running).await });
                let result = ended.expect("the call goes on").unwrap();
                // It may have ended before.
                let why = result.err().map(|error| error.0).unwrap_or_default();
                let fine = why.is_empty() || why == "Operation aborted" || why.contains("beyond end of file");
                assert!(fine, "{name} {round}: {why}");
            }
            assert!(no_walkers(), "{name}: threads go on");
        }
    }
}

#[test]
fn searches_and_listings_end_when_they_are_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    for directory in 0..20 {
        let below = dir.path().join(format!("tree/{directory}"));
        fs::create_dir_all(&below).unwrap();
        for file in 0..200 {
            fs::File::create(below.join(format!("f{file}"))).unwrap();
        }
    }
    let wide = dir.path().join("wide");
    fs::create_dir(&wide).unwrap();
    for file in 0..8_000 {
        fs::File::create(wide.join(format!("entry{file}"))).unwrap();
    }
    let big = fs::File::create(dir.path().join("big")).unwrap();
    big.set_len(8 << 30).unwrap(); // a hole: nothing is on the disk
    drop(big);

    for root in ["tree", "wide"] {
        let root = dir.path().join(root);
        ends("grep", &json!({"pattern": "absent"}), &root);
        ends("find", &json!({"pattern": "absent*"}), &root);
        ends("ls", &json!({"limit": 1_000_000}), &root);
    }
    ends("read", &json!({"path": "big", "offset": 1_000_000}), dir.path());
}

/// A file of lines, since a file without any line ends cannot be searched.
#[test]
fn a_search_of_one_large_file_ends_when_it_is_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("big"), "a line of text\n".repeat(4_000_000)).unwrap();
    ends("grep", &json!({"pattern": "absent [a-z]+ text", "path": "big"}), dir.path());
    ends("grep", &json!({"pattern": "absent [a-z]+ text"}), dir.path());
    ends("read", &json!({"path": "big", "offset": 1_000_000_000}), dir.path());
}
