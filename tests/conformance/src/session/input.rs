//! What is unusual about a case's input file, read independently of the library under test.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// The byte order mark in UTF-8.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Facts about a session file.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// Begins with a byte order mark (S53).
    pub(super) bom: bool,
    /// The header's version as the reference compares it (S61).
    pub(super) version: f64,
    /// Lines that are JSON but no entry: not an object, or without a string id (S55, S59).
    pub(super) junk: BTreeSet<usize>,
    /// Lines that are dropped by every rewrite: not JSON, or JSON that stands for nothing (S55).
    pub(super) dropped: Vec<String>,
    /// Entries that break the reference's context: a message without message, an edit without replacement (S138).
    pub(super) silent: BTreeSet<usize>,
    /// Ids that occur more than once, with the parent of their last entry (S67).
    pub(super) duplicates: BTreeMap<String, Option<String>>,
    /// Entries whose path runs into a cycle (S70).
    pub(super) cyclic: BTreeSet<String>,
    /// Each entry's parent.
    pub(super) parents: BTreeMap<String, Option<String>>,
    /// All ids.
    pub(super) ids: BTreeSet<String>,
    /// The last line has no LF (S54).
    pub(super) unsealed: bool,
}

impl Input {
    /// Reads a session file.
    pub(super) fn read(bytes: &[u8]) -> Input {
        let mut out = Input { bom: bytes.starts_with(BOM), version: 3.0, ..Input::default() };
        out.unsealed = !bytes.is_empty() && !bytes.ends_with(b"\n");
        let mut parents: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut header_seen = false;
        for (at, line) in lines(bytes).iter().enumerate() {
            let Some(value) = branchline::json::parse(line) else {
                let text = String::from_utf8_lossy(line);
                if !is_blank(&text) {
                    out.dropped.push(text.into_owned());
                }
                continue;
            };
            if matches!(&value, Value::Null | Value::Bool(false)) || value == "" || value.as_f64() == Some(0.0) {
                out.dropped.push(String::from_utf8_lossy(line).into_owned());
            }
            let string = |key: &str| value.get(key).and_then(Value::as_str);
            if string("type") == Some("session") {
                if !header_seen {
                    header_seen = true;
                    out.version = version(value.get("version"));
                }
                continue;
            }
            let lacks_message =
                string("type") == Some("message") && !value.get("message").is_some_and(Value::is_object);
            let lacks_replacement =
                string("type") == Some("context_edit") && !usable_replacement(value.get("replacement"));
            if lacks_message || lacks_replacement {
                out.silent.insert(at);
            }
            let Some(id) = string("id") else {
                // In front of the header nothing but a header may stand (S52).
                if header_seen && (out.version >= 2.0 || !value.is_object()) {
                    out.junk.insert(at);
                }
                continue;
            };
            let parent = string("parentId").map(str::to_owned);
            if !out.ids.insert(id.to_owned()) {
                out.duplicates.insert(id.to_owned(), None);
            }
            parents.insert(id.to_owned(), parent);
        }
        for (id, parent) in &mut out.duplicates {
            *parent = parents.get(id).cloned().flatten();
        }
        out.cyclic = cyclic(&parents);
        out.parents = parents;
        out
    }
}

/// Nothing but white space, as JavaScript sees it (S51).
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}'))
}

fn usable_replacement(replacement: Option<&Value>) -> bool {
    match replacement {
        Some(Value::Null) => true,
        Some(Value::Object(object)) => {
            object.get("content").is_some_and(|content| content.is_string() || content.is_array())
        }
        _ => false,
    }
}

/// JavaScript's idea of a version compared with a number.
fn version(value: Option<&Value>) -> f64 {
    match value {
        None | Some(Value::Null) => 1.0,
        Some(Value::Number(number)) => number.as_f64().unwrap_or(3.0),
        Some(Value::String(text)) if text.trim().is_empty() => 0.0,
        Some(Value::String(text)) => text.trim().parse().unwrap_or(f64::NAN),
        Some(Value::Bool(flag)) => f64::from(*flag),
        Some(_) => f64::NAN,
    }
}

/// Ids whose path never ends; an entry that is its own parent is a root instead (S69).
fn cyclic(parents: &BTreeMap<String, Option<String>>) -> BTreeSet<String> {
    let next =
        |id: &String| parents.get(id).cloned().flatten().filter(|parent| parent != id && parents.contains_key(parent));
    let endless = |id: &&String| {
        let (mut at, mut seen) = ((*id).clone(), BTreeSet::new());
        while let Some(parent) = next(&at) {
            if !seen.insert(at) {
                return true;
            }
            at = parent;
        }
        false
    };
    parents.keys().filter(endless).cloned().collect()
}

/// The lines of a file, LF and BOM left away.
pub(super) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let text = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() { Vec::new() } else { text.split(|byte| *byte == b'\n').collect() }
}

/// Ids of the entries on some lines.
pub(super) fn ids_of(bytes: &[u8], which: &BTreeSet<usize>) -> BTreeSet<String> {
    let lines = lines(bytes);
    let entries = which.iter().filter_map(|at| branchline::json::parse(lines.get(*at)?));
    entries.filter_map(|entry| Some(entry.get("id")?.as_str()?.to_owned())).collect()
}

/// The file with some lines changed or, where `change` gives nothing, left out. A missing last LF stays missing.
pub(super) fn edit(bytes: &[u8], which: &BTreeSet<usize>, change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    let kept: Vec<Vec<u8>> = lines(bytes)
        .iter()
        .enumerate()
        .filter_map(|(at, line)| if which.contains(&at) { change(line) } else { Some(line.to_vec()) })
        .collect();
    let mut out = kept.join(&b'\n');
    if bytes.ends_with(b"\n") && !kept.is_empty() {
        out.push(b'\n');
    }
    out
}

/// An entry in the same place that contributes nothing to any context.
pub(super) fn neutral(line: &[u8]) -> Option<Vec<u8>> {
    let value = branchline::json::parse(line)?;
    let neutral = json!({
        "type": "custom", "customType": "neutral", "id": value["id"], "parentId": value["parentId"], "timestamp": value["timestamp"],
    });
    Some(branchline::json::to_vec(&neutral))
}
