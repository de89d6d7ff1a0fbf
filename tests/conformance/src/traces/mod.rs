//! The corpus of traces: whole sessions with a scripted model, and what the reference did with them (see the README of
//! the corpus).

mod check;
mod host;
mod play;
mod record;
mod short;
mod steps;
mod tool;

pub use play::play;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::report::{Outcome, Report, problem};

/// Far longer than any scenario takes.
const LIMIT: Duration = Duration::from_secs(60);

/// One trace.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Scenario and results.
    pub trace: Value,
}

/// The traces in a folder, in order of their names.
///
/// # Errors
/// A file in it cannot be read.
pub fn find(folder: &Path) -> Result<Vec<Case>, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let Some(name) = path.file_name().and_then(|name| name.to_str()).and_then(|it| it.strip_suffix(".trace.json"))
        else {
            continue;
        };
        let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let trace = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        cases.push(Case { name: name.to_owned(), trace });
    }
    Ok(cases)
}

/// Runs one trace.
pub fn run(case: &Case, report: &mut Report) {
    let title = case.trace["title"].as_str().unwrap_or_default();
    // A hang or a panic is a failure of this trace, not of the run.
    let (sender, receiver) = mpsc::channel();
    let trace = case.trace.clone();
    let spawned = std::thread::Builder::new().name(case.name.clone()).spawn(move || {
        let _ = sender.send(check::run(&trace));
    });
    let mismatches = match (spawned, receiver.recv_timeout(LIMIT)) {
        (Ok(_), Ok(mismatches)) => mismatches,
        (Ok(thread), Err(_)) if thread.is_finished() => vec![problem("", "an ordinary end", "a panic")],
        _ => vec![problem("", "an end", "none in a minute")],
    };
    let outcome = if mismatches.is_empty() { Outcome::Same } else { Outcome::Failed(mismatches) };
    report.add(&case.name, title, outcome);
}
