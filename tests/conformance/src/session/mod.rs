//! The corpus for session files: kinds `load`, `ops`, `dir` and `table` (see the README of the corpus).

mod clock;
mod cycles;
mod difference;
mod dir;
mod extra;
mod input;
mod load;
mod manager;
mod ops;
mod state;
mod table;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compare::{Comparer, Mismatch};
use crate::report::{Outcome, Report, problem};

/// One case of the corpus.
#[derive(Debug)]
pub struct Case {
    /// Base name of its files.
    pub name: String,
    /// `NAME.expected.json`.
    pub expected: Value,
    /// The folder that holds the case.
    pub folder: PathBuf,
}

/// Keys that describe a case instead of stating a result.
const DESCRIPTION: &[&str] = &["name", "title", "rules", "kind", "quirk", "open", "input"];

impl Case {
    fn text(&self, key: &str) -> &str {
        self.expected.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The bytes of `NAME.jsonl`.
    fn input(&self) -> Vec<u8> {
        std::fs::read(self.folder.join(format!("{}.jsonl", self.name))).unwrap_or_default()
    }

    /// The stated results.
    fn results(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.expected.as_object().into_iter().flatten().filter(|(key, _)| !DESCRIPTION.contains(&key.as_str()))
    }
}

/// The cases in a folder, in order of their names.
///
/// # Errors
/// The folder or a file in it cannot be read.
pub fn find(folder: &Path) -> Result<Vec<Case>, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut cases = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let Some(name) =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".expected.json"))
        else {
            continue;
        };
        let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let expected = crate::deep::parse(&text).ok_or_else(|| format!("{}: not JSON", path.display()))?;
        if matches!(expected.get("kind").and_then(Value::as_str), Some("load" | "ops" | "dir" | "table")) {
            cases.push(Case { name: name.to_owned(), expected, folder: folder.to_path_buf() });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

/// Runs one case.
pub fn run(case: &Case, report: &mut Report) {
    // A panic is a failure of this case, not of the run.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match case.text("kind") {
        "load" => load::run(case),
        "ops" => ops::run(case),
        "dir" => dir::run(case),
        _ => table::run(case),
    }));
    let outcome = outcome.unwrap_or_else(|_| Outcome::Failed(vec![problem("", "an ordinary end", "a panic")]));
    report.add(&case.name, case.text("title"), outcome);
}

/// Compares all stated results but those `skip`ped with what came out.
fn compare_results(case: &Case, actual: &Value, comparer: &mut Comparer, skip: &[&str]) {
    for (key, expected) in case.results().filter(|(key, _)| !skip.contains(&key.as_str())) {
        match key.as_str() {
            "files" => compare_files(expected, actual.get("files"), comparer),
            _ => comparer.value(&format!(".{key}"), expected, actual.get(key)),
        }
    }
}

/// File names hold placeholders, so they are matched before the contents are.
fn compare_files(expected: &Value, actual: Option<&Value>, comparer: &mut Comparer) {
    let none = serde_json::Map::new();
    let expected = expected.as_object().unwrap_or(&none);
    let mut rest: Vec<(&String, &Value)> = actual.and_then(Value::as_object).unwrap_or(&none).iter().collect();
    for (name, content) in expected {
        match rest.iter().position(|(actual, _)| comparer.text(name, actual)) {
            Some(at) => comparer.value(&format!(".files[{name}]"), content, Some(rest.remove(at).1)),
            None => comparer.mismatch(&format!(".files[{name}]"), Some(content), None),
        }
    }
    for (name, content) in rest {
        comparer.mismatch(&format!(".files[{name}]"), None, Some(content));
    }
}

/// `Same` when nothing was noted.
fn outcome(mismatches: Vec<Mismatch>, differences: Vec<&'static str>) -> Outcome {
    match (mismatches.is_empty(), differences.is_empty()) {
        (true, true) => Outcome::Same,
        (true, false) => Outcome::Different(differences),
        (false, _) => Outcome::Failed(mismatches),
    }
}
