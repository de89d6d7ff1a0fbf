//! The Rust blocks of the pages run to their end without an error, in an empty directory and without the network.

use std::path::Path;
use std::process::{Command, Output};

fn program(directory: &Path, block: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_branchline-docs"));
    command.args(block).current_dir(directory).env_clear();
    // Nothing of the person's: neither sessions nor keys.
    command.env("HOME", directory).env("PI_CODING_AGENT_DIR", directory.join("agent"));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.output().expect("the program starts")
}

#[test]
fn every_block_of_the_pages_runs() {
    let list = program(Path::new("."), None);
    let list = String::from_utf8(list.stdout).expect("names");
    assert!(list.lines().count() > 8, "few blocks were found: {list}");
    for block in list.lines() {
        let directory = tempfile::tempdir().expect("a directory");
        let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/session.jsonl");
        std::fs::copy(recorded, directory.path().join("recorded.jsonl")).expect("a recording");
        let output = program(directory.path(), Some(block));
        assert!(output.status.success(), "{block}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
