//! The corpus for providers: streams of the wire protocols played by a server on loopback, and units under them (see the
//! README of the corpus). Units about what a session knows of its project are `resource_units`' business.

mod compare;
mod stream;
mod units;

use std::path::Path;

use serde_json::Value;

use crate::report::{Outcome, Report, problem};

/// One file of the corpus.
#[derive(Debug)]
pub struct Case {
    /// Its id.
    pub name: String,
    /// The whole file.
    pub value: Value,
}

/// The cases in a folder and in its folder `units`, in order of their paths.
///
/// # Errors
/// A folder cannot be read.
pub fn find(folder: &Path) -> Result<Vec<Case>, String> {
    let mut out = Vec::new();
    for folder in [folder.to_path_buf(), folder.join("units")] {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.extension().is_some_and(|it| it == "json")) {
            let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let Ok(value) = serde_json::from_slice::<Value>(&text) else { continue };
            let Some(id) = value["id"].as_str().map(str::to_owned) else { continue };
            let is_stream = value["model"]["api"].is_string() && value["expect"].is_object();
            if is_stream || (value["items"].is_array() && units::KNOWN.contains(&&*id)) {
                out.push(Case { name: id, value });
            }
        }
    }
    Ok(out)
}

/// Runs one case.
pub fn run(case: &Case, report: &mut Report) {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match case.value["items"].is_array() {
        true => units::run(case),
        false => stream::run(case),
    }));
    let outcome = outcome.unwrap_or_else(|_| Outcome::Failed(vec![problem("", "an ordinary end", "a panic")]));
    report.add(&case.name, case.value["title"].as_str().unwrap_or_default(), outcome);
}
