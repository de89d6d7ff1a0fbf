//! Commands leave nothing behind in the host: no descriptors, no threads, no zombies.
#![cfg(target_os = "linux")]

#[path = "tool_support/mod.rs"]
mod support;

use serde_json::json;
use support::*;

fn many(count: usize) {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        ok("bash", json!({"command": "true"}), dir.path());
    }
    let before = held();
    for number in 0..count {
        let result = call("bash", json!({"command": format!("exit {}", number % 3)}), dir.path()).unwrap();
        assert_eq!(result.structured_content.unwrap()["exit_code"], number % 3);
    }
    let after = held();
    assert!(after.0 <= before.0 + 4, "descriptors: {before:?} {after:?}");
    assert!(after.1 <= before.1 + 4, "threads: {before:?} {after:?}");
    assert_eq!(after.2, 0, "zombies");
}

#[test]
fn five_hundred_commands_leave_nothing_behind() {
    many(500);
}

#[test]
#[ignore = "takes half a minute"]
fn ten_thousand_commands_leave_nothing_behind() {
    many(10_000);
}
