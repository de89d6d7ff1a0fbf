//! Where we do something else than the reference on purpose, and what we promise instead.
//!
//! A difference is recognised by the bytes of the input, never by the name of a case, and what we promise is really
//! checked: mostly by running the case again on an input without the oddity, which must come out the same.

use std::collections::{BTreeSet, HashMap};

use branchline::tree::Diagnostic;
use serde_json::{Value, json};

use super::input::{self, Input};
use super::{Case, cycles, outcome};
use crate::compare::{Comparer, Mismatch};
use crate::report::{Outcome, problem};

/// One run of a case.
pub(super) struct Run {
    /// Everything that came out, in the shape of the expected results.
    pub(super) actual: Value,
    /// What did not fit.
    pub(super) comparer: Comparer,
    /// What the library reported about the file.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Lines a migration kept aside.
    pub(super) side_file: Option<Vec<u8>>,
    /// The case's directory.
    pub(super) dir: String,
    /// The input file's bytes at the end; `None` when there is no such file.
    pub(super) original: Option<Vec<u8>>,
}

/// Runs a case on given bytes.
pub(super) type Execute = fn(&Case, &[u8]) -> Run;

const BOM: &str = "D-bom";
const NOT_ENTRIES: &str = "D-not-entries";
const DUPLICATES: &str = "D-duplicate-ids";
const CYCLES: &str = "D-cycles";
const SILENT: &str = "D-no-message";
const FORK_SOURCE: &str = "D-fork-source";
const FORK_MIGRATES: &str = "D-fork-migrates";
const COPIED: &str = "D-copied-lines";
const SIDE_FILE: &str = "D-side-file";

/// Runs a case and decides how it ended.
pub(super) fn judge(case: &Case, bytes: &[u8], execute: Execute) -> Outcome {
    let facts = Input::read(bytes);
    let mut ids = Vec::new();
    let mut run = execute(case, bytes);
    if !run.comparer.mismatches.is_empty() {
        let adjusted = adjust(case, bytes, &facts, &run.actual, &mut ids);
        if let Some(adjusted) = &adjusted {
            run = execute(adjusted, bytes);
        }
        if !run.comparer.mismatches.is_empty() && facts.bom {
            return promise(BOM, ids, without_bom(case, bytes, &run, execute));
        }
        if !run.comparer.mismatches.is_empty() && forks(case) && facts.version < 3.0 {
            return promise(FORK_MIGRATES, ids, fork_of_migrated(case, bytes, &run, execute));
        }
        if !run.comparer.mismatches.is_empty() && !facts.junk.is_empty() {
            return promise(NOT_ENTRIES, ids, without_junk(case, bytes, &facts, &run, execute));
        }
        if !run.comparer.mismatches.is_empty() && !facts.silent.is_empty() {
            return promise(SILENT, ids, without_silent(case, bytes, &facts, &run, execute));
        }
    }
    if run.side_file.is_some() {
        let kept = String::from_utf8_lossy(run.side_file.as_deref().unwrap_or_default()).into_owned();
        let kept: Vec<&str> = kept.strip_suffix('\n').unwrap_or(&kept).split('\n').collect();
        if kept != facts.dropped {
            run.comparer.mismatches.push(problem("side file", &format!("{:?}", facts.dropped), format!("{kept:?}")));
        }
        ids.push(SIDE_FILE);
    }
    if !run.comparer.copied_lines.is_empty() {
        ids.push(COPIED);
    }
    outcome(run.comparer.mismatches, ids)
}

fn promise(id: &'static str, mut ids: Vec<&'static str>, broken: Vec<Mismatch>) -> Outcome {
    ids.push(id);
    outcome(broken, ids)
}

pub(super) fn forks(case: &Case) -> bool {
    case.expected["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|step| step["op"] == "forkFrom" && step.get("throws").is_none())
}

/// Whether a step opens the input file for writing, which seals it (S54).
fn opens_input(case: &Case) -> bool {
    let path = |step: &Value| step["args"][0].as_str().unwrap_or("@undefined").to_owned();
    case.expected["steps"].as_array().into_iter().flatten().any(|step| {
        matches!(step["op"].as_str(), Some("open" | "setSessionFile"))
            && matches!(&*path(step), "@undefined" | "@file" | "@dir/session.jsonl")
            || step["op"] == "continueRecent"
    })
}

/// Differences that only change what is expected: repeated ids, cycles, and the untouched source of a fork.
fn adjust(case: &Case, bytes: &[u8], facts: &Input, actual: &Value, ids: &mut Vec<&'static str>) -> Option<Case> {
    let mut expected = case.expected.clone();
    if !facts.duplicates.is_empty() {
        each_tree(&mut expected, &mut |tree| *tree = once_each(tree, None, facts, &mut BTreeSet::new()));
        ids.push(DUPLICATES);
    }
    if !facts.cyclic.is_empty() && cycles::put_back(&mut expected, actual, facts) {
        ids.push(CYCLES);
    }
    let opened = opens_input(case);
    let tried = case.expected["steps"].as_array().into_iter().flatten().any(|step| step["op"] == "forkFrom");
    if tried && facts.unsealed && !opened && !(forks(case) && facts.version < 3.0) {
        expected["files"]["session.jsonl"] = super::state::file_value(bytes);
        ids.push(FORK_SOURCE);
    }
    (!ids.is_empty()).then(|| Case { name: case.name.clone(), expected, folder: case.folder.clone() })
}

/// Every tree that is stated somewhere.
pub(super) fn each_tree(expected: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    for pointer in ["/tree", "/after/tree"] {
        if let Some(tree) = expected.pointer_mut(pointer) {
            change(tree);
        }
    }
    for step in expected.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
        if step["op"] == "getTree"
            && let Some(tree) = step.get_mut("returns")
        {
            change(tree);
        }
    }
}

/// A list of nodes in which each id stays once: below the parent that its last entry names (S67), in its last place.
fn once_each(nodes: &Value, parent: Option<&str>, facts: &Input, seen: &mut BTreeSet<String>) -> Value {
    let mut out = Vec::new();
    let nodes = nodes.as_array().map_or(&[][..], Vec::as_slice);
    for (at, node) in nodes.iter().enumerate() {
        let id = node["id"].as_str().unwrap_or_default();
        if let Some(wanted) = facts.duplicates.get(id) {
            let known = wanted.as_deref().filter(|wanted| facts.ids.contains(*wanted) && *wanted != id);
            let again = nodes[at + 1..].iter().any(|later| later["id"] == id);
            if known != parent || again || !seen.insert(id.to_owned()) {
                continue;
            }
        }
        let mut node = node.clone();
        node["children"] = once_each(&node["children"], Some(id), facts, seen);
        out.push(node);
    }
    Value::Array(out)
}

/// S53: the file opens as if the mark were not there.
fn without_bom(case: &Case, bytes: &[u8], run: &Run, execute: Execute) -> Vec<Mismatch> {
    let plain = execute(case, &bytes[input::BOM.len()..]);
    let mut broken = same_outcome(run, &plain, &Apart::default());
    if run.actual.get("error").is_some() || plain.actual.get("error").is_some() {
        broken.push(problem("open", "the file opens", run.actual["error"].to_string()));
    }
    broken.extend(untouched(bytes, run));
    broken
}

/// S55, S59: skipped and reported, as if the lines were not there.
fn without_junk(case: &Case, bytes: &[u8], facts: &Input, run: &Run, execute: Execute) -> Vec<Mismatch> {
    let plain = execute(case, &input::edit(bytes, &facts.junk, |_| None));
    let junk: BTreeSet<String> =
        facts.junk.iter().map(|at| String::from_utf8_lossy(input::lines(bytes)[*at]).into_owned()).collect();
    let mut broken = same_outcome(run, &plain, &Apart { lines: junk, ..Apart::default() });
    for at in &facts.junk {
        let line = *at as u64 + 1;
        // After a fork or extraction the diagnostics are those of the new file, where the lines stand elsewhere.
        if case.text("kind") == "load"
            && facts.version >= 3.0
            && !run.diagnostics.iter().any(|diagnostic| diagnostic.line == line)
        {
            broken.push(problem("diagnostics", &format!("line {line} is reported"), format!("{:?}", run.diagnostics)));
        }
    }
    broken.extend(unaffected(run, &["header", "sessionId", "cwd", "sessionName"], case));
    broken.extend(untouched(bytes, run));
    broken
}

/// S138: the entry contributes nothing, as if an entry without context stood in its place.
fn without_silent(case: &Case, bytes: &[u8], facts: &Input, run: &Run, execute: Execute) -> Vec<Mismatch> {
    let plain = execute(case, &input::edit(bytes, &facts.silent, input::neutral));
    let silent = input::ids_of(bytes, &facts.silent);
    let mut broken = same_outcome(run, &plain, &Apart { input_file: true, silent, ..Apart::default() });
    let unaffected_keys =
        ["header", "sessionId", "cwd", "leafId", "entryCount", "entriesLength", "branch", "tree", "sessionName"];
    broken.extend(unaffected(run, &unaffected_keys, case));
    broken.extend(untouched(bytes, run));
    broken
}

/// S98: forking an old file is migrating a copy, then forking that; the source stays as it is.
fn fork_of_migrated(case: &Case, bytes: &[u8], run: &Run, execute: Execute) -> Vec<Mismatch> {
    let migrated = match migrated(case, bytes) {
        Ok(migrated) => migrated,
        Err(message) => return vec![problem("migration of a copy", "works", message)],
    };
    let plain = execute(case, &migrated);
    let mut broken = same_outcome(run, &plain, &Apart { input_file: true, ..Apart::default() });
    if !opens_input(case) && run.original.as_deref() != Some(bytes) {
        broken.push(problem("source", "bytes as before", "changed"));
    }
    let lines = run.actual["files"].to_string();
    let has_entries = plain.actual["after"]["entriesLength"] != 0;
    if has_entries && Input::read(bytes).version < 2.0 && !lines.contains("\\\"parentId\\\"") {
        broken.push(problem("fork", "entries with ids", lines));
    }
    broken
}

/// What opening a copy of the file makes of it.
fn migrated(case: &Case, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let _ = case;
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = dir.path().join("copy.jsonl");
    std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
    super::manager::Manager::apart(dir.path()).open(&path, None, None).map_err(|error| error.to_string())?;
    std::fs::read(&path).map_err(|error| error.to_string())
}

/// The stated results under these keys hold although others differ.
fn unaffected(run: &Run, keys: &[&str], case: &Case) -> Vec<Mismatch> {
    let stated: Vec<String> = case.results().map(|(key, _)| format!(".{key}")).collect();
    let mismatches = run.comparer.mismatches.iter();
    let broken = mismatches.filter(|mismatch| {
        let key = mismatch.path.split(['.', '[']).nth(1).unwrap_or_default();
        keys.contains(&key) && stated.iter().any(|stated| stated[1..] == *key)
    });
    broken.cloned().collect()
}

/// Opening changed nothing that was there; a migration rewrites the file and is judged by its lines.
fn untouched(bytes: &[u8], run: &Run) -> Option<Mismatch> {
    let rewritten = Input::read(bytes).version < 3.0;
    let kept = rewritten || run.original.as_deref().is_none_or(|now| now.starts_with(bytes));
    (!kept).then(|| problem("file", "begins with the bytes it had", "it does not"))
}

/// What two runs may differ in.
#[derive(Default)]
struct Apart {
    /// Lines that only the first run has.
    lines: BTreeSet<String>,
    /// The input file, where it differs by more than those lines.
    input_file: bool,
    /// Entries that stand in the second run for others; both are shown by their ids alone.
    silent: BTreeSet<String>,
}

/// Both runs came out the same, apart from the directory, drawn ids, counts of lines, and what `apart` says.
fn same_outcome(run: &Run, plain: &Run, apart: &Apart) -> Vec<Mismatch> {
    let (ours, wanted) = (normalised(run, apart), normalised(plain, apart));
    let mut broken = Vec::new();
    let keys: BTreeSet<&String> =
        ours.as_object().into_iter().chain(wanted.as_object()).flat_map(|object| object.keys()).collect();
    for key in keys {
        if ours.get(key) != wanted.get(key) {
            let show = |value: &Value| value.get(key).map_or_else(|| "(absent)".to_owned(), Value::to_string);
            broken.push(problem(
                &format!(".{key} (compared with the file without the oddity)"),
                &show(&wanted),
                show(&ours),
            ));
        }
    }
    broken
}

fn normalised(run: &Run, apart: &Apart) -> Value {
    let text = run.actual.to_string().replace(&run.dir, "@dir");
    let mut value: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
    for step in value.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
        step.as_object_mut().map(|step| step.shift_remove("fileLines"));
    }
    if apart.input_file {
        value.get_mut("files").and_then(Value::as_object_mut).map(|files| files.shift_remove("session.jsonl"));
        value.as_object_mut().map(|value| value.shift_remove("fileAfterLoad"));
    }
    if let Some(after) = value.get_mut("fileAfterLoad") {
        without_lines(after, &apart.lines);
    }
    for file in value.get_mut("files").and_then(Value::as_object_mut).into_iter().flat_map(|files| files.values_mut()) {
        without_lines(file, &apart.lines);
    }
    by_id_alone(&mut value, &apart.silent);
    // Only now: ids of what was left out have no number.
    let text = numbered_ids(&value.to_string());
    serde_json::from_str(&text).unwrap_or_else(|_| json!(text))
}

/// Entries and lines of entries with these ids, wherever they are shown.
fn by_id_alone(value: &mut Value, ids: &BTreeSet<String>) {
    let named = |value: &Value| match value.get("id") {
        Some(Value::String(id)) if ids.contains(id) && value.get("type").is_some() => {
            Some(Value::from(format!("@silent {id}")))
        }
        _ => None,
    };
    match value {
        Value::String(line) if line.starts_with('{') => {
            let entry = branchline::json::parse(line.as_bytes());
            if let Some(name) = entry.as_ref().and_then(named) {
                *value = name;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| by_id_alone(value, ids)),
        Value::Object(_) => match named(value) {
            Some(name) => *value = name,
            None => value.as_object_mut().into_iter().flatten().for_each(|(_, value)| by_id_alone(value, ids)),
        },
        _ => {}
    }
}

fn without_lines(file: &mut Value, ignored: &BTreeSet<String>) {
    if let Some(lines) = file.get_mut("lines").and_then(Value::as_array_mut) {
        // A line may have been written anew by a migration.
        let canonical =
            |line: &str| String::from_utf8_lossy(&branchline::json::canonical(line.as_bytes())).into_owned();
        let ignored: BTreeSet<String> = ignored.iter().map(|line| canonical(line)).collect();
        lines.retain(|line| !ignored.contains(&canonical(line.as_str().unwrap_or_default())));
        if let Some(first) =
            lines.first_mut().filter(|first| first.as_str().is_some_and(|first| first.starts_with('\u{feff}')))
        {
            *first = first.as_str().unwrap_or_default().trim_start_matches('\u{feff}').into();
        }
    }
}

/// Ids drawn in a run, numbered by first appearance: two runs may draw a different number of them.
fn numbered_ids(text: &str) -> String {
    let mut names: HashMap<&str, usize> = HashMap::new();
    let parts: Vec<String> = text
        .split('"')
        .map(|part| {
            // In a line inside a text the closing quote is escaped.
            let id = part.trim_end_matches('\\');
            if !matches!(id.len(), 8 | 36) || !id.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f' | b'-'))
            {
                return part.to_owned();
            }
            let next = names.len();
            format!("#{}{}", names.entry(id).or_insert(next), &part[id.len()..])
        })
        .collect();
    parts.join("\"")
}
