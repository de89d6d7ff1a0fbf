//! The corpus for tools: calls of one tool with their results, and units under the tools (see the README of the corpus).

mod call;
mod difference;
mod expect;
mod setup;
mod units;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::report::{Outcome, Report, problem};

/// One case of the corpus.
#[derive(Debug)]
pub struct Case {
    /// Its id.
    pub name: String,
    /// The whole file.
    pub value: Value,
}

impl Case {
    fn text(&self, key: &str) -> &str {
        self.value[key].as_str().unwrap_or_default()
    }
}

/// The cases in a folder and the folders in it, in order of their paths.
///
/// # Errors
/// A folder or file cannot be read.
pub fn find(folder: &Path) -> Result<Vec<Case>, String> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    for path in entries(folder) {
        if path.is_dir() {
            folders.push(path);
        }
    }
    for folder in folders {
        for path in entries(&folder).into_iter().filter(|path| path.extension().is_some_and(|it| it == "json")) {
            let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let Ok(value) = serde_json::from_slice::<Value>(&text) else { continue };
            let is_case = value["id"].is_string()
                && (value["tool"].is_string() || value["unit"].is_string())
                && value.get("expect").is_some();
            if is_case {
                out.push(Case { name: value["id"].as_str().unwrap_or_default().to_owned(), value });
            }
        }
    }
    Ok(out)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Runs one case.
pub fn run(case: &Case, report: &mut Report) {
    // A panic is a failure of this case, not of the run.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match case.value["unit"].is_string() {
        true => units::run(case),
        false => call::run(case),
    }));
    let outcome = outcome.unwrap_or_else(|_| Outcome::Failed(vec![problem("", "an ordinary end", "a panic")]));
    report.add(&case.name, case.text("title"), outcome);
}
