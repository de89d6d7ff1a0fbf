//! Kind `ops`: perform steps, compare each.

use std::path::Path;

use branchline::tree::{Cursor, Tree};
use serde_json::{Map, Value, json};

use super::difference::{self, Run};
use super::manager::{Args, Manager, Refusal};
use super::{Case, clock, compare_results, input, load, state};
use crate::compare::Comparer;
use crate::report::Outcome;

/// Runs a case.
pub(super) fn run(case: &Case) -> Outcome {
    difference::judge(case, &case.input(), execute)
}

/// Performs the steps on `bytes` and compares.
pub(super) fn execute(case: &Case, bytes: &[u8]) -> Run {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("session.jsonl");
    if case.text("input") == "file" {
        std::fs::write(&path, bytes).expect("a writable directory");
    }
    let mut comparer = Comparer::new(clock::placeholders(&dir.path().display().to_string()));
    let facts = input::Input::read(bytes);
    let version = facts.version;
    comparer.all_copied = version < 3.0;
    comparer.copied_ids = facts.ids;
    // A fork that is migrated draws ids that the reference does not draw.
    let draws_more = version < 3.0 && difference::forks(case);
    let mut manager = Manager::new(dir.path());
    let mut steps = Vec::new();
    for (at, expected) in case.expected["steps"].as_array().into_iter().flatten().enumerate() {
        if !draws_more {
            manager.name_drawn_ids(&expected["args"], &mut comparer);
        }
        let step = perform(&mut manager, expected, &comparer);
        // Comparing step by step binds the ids that later steps name.
        let mut stated = expected.clone();
        stated.as_object_mut().map(|stated| stated.shift_remove("args"));
        comparer.value(&format!(".steps[{at}]"), &stated, Some(&step));
        steps.push(step);
    }
    let mut actual = json!({"steps": steps});
    let none = Value::Null;
    if let Some(cursor) = &manager.cursor {
        actual["after"] = state::state(cursor, case.expected.get("after").unwrap_or(&none));
        // The state of a case may leave out what is absent there.
        if let (Some(wanted), Some(after)) = (case.expected["after"].as_object(), actual["after"].as_object_mut()) {
            after.retain(|key, _| wanted.contains_key(key));
        }
        actual["sessionFile"] = manager.path().into();
        actual["persisted"] = cursor.tree().path().is_some().into();
    }
    actual["files"] = files(dir.path(), dir.path());
    compare_results(case, &actual, &mut comparer, &["steps"]);
    let diagnostics = manager.cursor.as_ref().map(Cursor::tree).map(Tree::diagnostics).unwrap_or_default();
    let original = std::fs::read(&path).ok();
    Run {
        actual,
        comparer,
        diagnostics,
        side_file: load::side_file(dir.path()),
        dir: dir.path().display().to_string(),
        original,
    }
}

fn perform(manager: &mut Manager, expected: &Value, comparer: &Comparer) -> Value {
    let op = expected["op"].as_str().unwrap_or_default();
    let given = expected["args"].as_array().cloned().unwrap_or_default();
    let args = Args(given.iter().map(|value| resolve(value, comparer)).collect());
    let mut step = Map::new();
    step.insert("op".to_owned(), op.into());
    match manager.perform(op, &args, expected.get("returns")) {
        // Nothing found is shown as null, nothing returned not at all.
        Ok(None | Some(Value::Null)) => {
            if expected.get("returns").is_some() {
                step.insert("returns".to_owned(), Value::Null);
            }
        }
        Ok(Some(value)) => {
            step.insert("returns".to_owned(), value);
        }
        Err(Refusal::Code(code)) => {
            step.insert("throws".to_owned(), code.name().to_uppercase().into());
        }
        Err(Refusal::Unknown(message)) => {
            step.insert("runner".to_owned(), message.into());
        }
    }
    if let Some(cursor) = &manager.cursor {
        step.insert("leaf".to_owned(), cursor.leaf().into());
        step.insert("fileLines".to_owned(), manager.file_lines());
    }
    Value::Object(step)
}

/// Arguments name ids and paths by their placeholders.
pub(super) fn resolve(value: &Value, comparer: &Comparer) -> Value {
    match value {
        Value::String(text) => comparer.resolve(text).into(),
        Value::Array(list) => list.iter().map(|value| resolve(value, comparer)).collect(),
        Value::Object(object) => {
            let given = object.iter().filter(|(_, value)| *value != "@undefined");
            given.map(|(key, value)| (key.clone(), resolve(value, comparer))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// All files below the case's directory; lines kept aside are judged elsewhere.
fn files(root: &Path, dir: &Path) -> Value {
    let mut out = Map::new();
    let mut entries: Vec<_> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            out.extend(files(root, &path).as_object().cloned().unwrap_or_default());
        } else if path.extension().is_none_or(|extension| extension != "damaged") {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            out.insert(name, state::file_value(&std::fs::read(&path).unwrap_or_default()));
        }
    }
    Value::Object(out)
}
