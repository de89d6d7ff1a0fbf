//! Kind `load`: open a file, state what it is.

use std::path::PathBuf;

use branchline::tree::Cursor;
use serde_json::{Value, json};

use super::difference::{self, Run};
use super::manager::Manager;
use super::{Case, clock, compare_results, extra, input, state};
use crate::compare::Comparer;
use crate::report::Outcome;

/// Runs a case.
pub(super) fn run(case: &Case) -> Outcome {
    difference::judge(case, &case.input(), execute)
}

/// Opens `bytes` as the case's file and compares.
pub(super) fn execute(case: &Case, bytes: &[u8]) -> Run {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("session.jsonl");
    std::fs::write(&path, bytes).expect("a writable directory");
    let mut manager = Manager::new(dir.path());
    let cwd = case.expected["open"].get("cwdOverride").and_then(Value::as_str).map(PathBuf::from);
    let mut actual = match manager.open(&path, None, cwd) {
        Err(error) => json!({"error": error.code().name().to_uppercase()}),
        Ok(()) => state::state(manager.cursor.as_ref().expect("just opened"), &case.expected),
    };
    let mut comparer = Comparer::new(clock::placeholders(&dir.path().display().to_string()));
    let facts = input::Input::read(bytes);
    comparer.all_copied = facts.version < 3.0;
    comparer.copied_ids = facts.ids;
    // The file is looked at while it is open: nothing may be left for later.
    let after = std::fs::read(&path).unwrap_or_default();
    actual["fileAfterLoad"] = if after == bytes { "unchanged".into() } else { state::file_value(&after) };
    compare_results(case, &actual, &mut comparer, &["extra"]);
    if let (Some(expected), Some(cursor)) = (case.expected.get("extra"), &manager.cursor)
        && !extra::answers(cursor, expected, &comparer)
    {
        comparer.mismatch(".extra", Some(expected), None);
    }
    let diagnostics =
        manager.cursor.as_ref().map(Cursor::tree).map(branchline::tree::Tree::diagnostics).unwrap_or_default();
    Run {
        actual,
        comparer,
        diagnostics,
        side_file: side_file(dir.path()),
        dir: dir.path().display().to_string(),
        original: Some(after),
    }
}

/// Lines that a migration kept aside.
pub(super) fn side_file(dir: &std::path::Path) -> Option<Vec<u8>> {
    std::fs::read(dir.join("session.jsonl.damaged")).ok()
}
