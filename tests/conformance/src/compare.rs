//! Compares what came out with what was expected, binding the corpus' placeholders (`@1`, `@ts`, `{{…}}`) as it goes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Expected and actual value at one place.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// Where, for example `.context.messages[2].content`.
    pub path: String,
    /// What was expected, as compact text.
    pub expected: String,
    /// What came out, as compact text.
    pub actual: String,
}

/// What the placeholders of one case stand for, and what did not fit.
#[derive(Debug, Clone, Default)]
pub struct Comparer {
    bound: BTreeMap<String, String>,
    /// Ids of entries that were in the input: their lines are copied, not written anew (S6).
    pub copied_ids: BTreeSet<String>,
    /// Lines may be copies whatever their id is: a migration draws new ids for old lines.
    pub all_copied: bool,
    /// Copied lines that are equal as JSON but not as text.
    pub copied_lines: Vec<String>,
    /// Everything that did not fit.
    pub mismatches: Vec<Mismatch>,
}

impl Comparer {
    /// A comparer that knows these placeholders, written with their `@` or braces.
    pub fn new<'a>(known: impl IntoIterator<Item = (&'a str, String)>) -> Comparer {
        Comparer {
            bound: known.into_iter().map(|(name, text)| (name.to_owned(), text)).collect(),
            ..Comparer::default()
        }
    }

    /// Compares a value; `actual` is `None` when the key is absent.
    pub fn value(&mut self, path: &str, expected: &Value, actual: Option<&Value>) {
        let fits = match (expected, actual) {
            (Value::String(text), _) if text == "@undefined" => actual.is_none_or(Value::is_null),
            (Value::String(text), _) if text == "@NaN" || text == "@InvalidDate" => actual.is_none_or(Value::is_null),
            (Value::String(text), Some(Value::Number(_))) => text == "@ms",
            (Value::String(expected), Some(Value::String(actual))) => self.text(expected, actual),
            (Value::Number(expected), Some(Value::Number(actual))) => expected.as_f64() == actual.as_f64(),
            (Value::Array(expected), Some(Value::Array(actual))) if expected.len() == actual.len() => {
                for (at, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                    self.value(&format!("{path}[{at}]"), expected, Some(actual));
                }
                true
            }
            (Value::Object(expected), Some(Value::Object(actual))) => {
                for (key, value) in expected {
                    self.value(&format!("{path}.{key}"), value, actual.get(key));
                }
                // `files` names its keys by placeholders, so keys are matched by the caller there.
                for (key, value) in actual.iter().filter(|(key, _)| !expected.contains_key(*key)) {
                    self.mismatch(&format!("{path}.{key}"), None, Some(value));
                }
                true
            }
            (expected, actual) => Some(expected) == actual,
        };
        if !fits {
            self.mismatch(path, Some(expected), actual);
        }
    }

    /// Notes a difference by hand.
    pub fn mismatch(&mut self, path: &str, expected: Option<&Value>, actual: Option<&Value>) {
        let show = |value: Option<&Value>| value.map_or_else(|| "(absent)".to_owned(), Value::to_string);
        self.mismatches.push(Mismatch { path: path.to_owned(), expected: show(expected), actual: show(actual) });
    }

    /// Whether `actual` fits the text, binding new placeholders if it does.
    pub fn text(&mut self, expected: &str, actual: &str) -> bool {
        if self.fits(expected, actual) {
            return true;
        }
        // A copied line may differ in spelling, never in meaning (S6).
        if !expected.starts_with('{') || !actual.starts_with('{') {
            return false;
        }
        let canonical =
            |text: &str| String::from_utf8_lossy(&branchline::json::canonical(text.as_bytes())).into_owned();
        let copied = branchline::json::parse(actual.as_bytes()).and_then(|line| {
            line.get("id").and_then(Value::as_str).map(|id| self.all_copied || self.copied_ids.contains(id))
        });
        let equal = copied == Some(true) && self.fits(&canonical(expected), &canonical(actual));
        if equal {
            self.copied_lines.push(actual.to_owned());
        }
        equal
    }

    fn fits(&mut self, expected: &str, actual: &str) -> bool {
        let mut bound = self.bound.clone();
        let fits = fits(&pieces(expected), actual, &mut bound);
        if fits {
            self.bound = bound;
        }
        fits
    }

    /// `text` with every bound placeholder replaced.
    pub fn resolve(&self, text: &str) -> String {
        let mut out = String::new();
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Hole(name) => out.push_str(self.bound.get(name).map_or(name, String::as_str)),
            }
        }
        out
    }
}

#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    Hole(&'a str),
}

/// Cuts a text at its placeholders.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut out, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = text[at..].find(['@', '{', '"']) {
        at += found;
        match hole(&text[at..]) {
            Some(len) => {
                if at > start {
                    out.push(Piece::Text(&text[start..at]));
                }
                out.push(Piece::Hole(&text[at..at + len]));
                at += len;
                start = at;
            }
            None => at += 1,
        }
    }
    if start < text.len() || out.is_empty() {
        out.push(Piece::Text(&text[start..]));
    }
    out
}

/// Length of the placeholder that `text` begins with.
fn hole(text: &str) -> Option<usize> {
    // In a physical line a time in milliseconds is shown with quotes it does not have.
    if text.starts_with("\"@ms\"") {
        return Some(5);
    }
    if text.starts_with("{{") {
        let end = text.find("}}")?;
        let name = &text[2..end];
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        return is_name.then_some(end + 2);
    }
    let rest = text.strip_prefix('@')?;
    let word: usize = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let name = &rest[..word];
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let known = matches!(name, "ts" | "fts" | "ms" | "dir" | "file" | "cwd") || numbered("") || numbered("sid");
    known.then_some(word + 1)
}

fn fits(pieces: &[Piece<'_>], actual: &str, bound: &mut BTreeMap<String, String>) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return actual.is_empty() };
    match piece {
        Piece::Text(text) => actual.strip_prefix(text).is_some_and(|actual| fits(rest, actual, bound)),
        Piece::Hole(name) => {
            if let Some(known) = bound.get(*name).cloned() {
                return actual.strip_prefix(known.as_str()).is_some_and(|actual| fits(rest, actual, bound));
            }
            let Some(len) = shape(name, rest, actual) else { return false };
            let (value, tail) = actual.split_at(len);
            // Times may be read many times; ids are bound once, and two names never stand for one id.
            if !matches!(*name, "@ts" | "@fts" | "\"@ms\"" | "@ms") {
                if name.starts_with('@') && bound.iter().any(|(other, text)| other.starts_with('@') && text == value) {
                    return false;
                }
                bound.insert((*name).to_owned(), value.to_owned());
            }
            fits(rest, tail, bound)
        }
    }
}

/// How much of `actual` a placeholder that is not bound yet may stand for.
fn shape(name: &str, rest: &[Piece<'_>], actual: &str) -> Option<usize> {
    let like = |pattern: &str| {
        let ok = actual.len() >= pattern.len()
            && actual.bytes().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
                b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
                b'0' => byte.is_ascii_digit(),
                _ => byte == wanted,
            });
        ok.then_some(pattern.len())
    };
    match name {
        "@ts" => like("0000-00-00T00:00:00.000Z"),
        "@fts" => like("0000-00-00T00-00-00-000Z"),
        "@ms" | "\"@ms\"" => Some(actual.bytes().take_while(u8::is_ascii_digit).count()).filter(|len| *len > 0),
        _ if name.starts_with("@sid") => like("xxxxxxxx-xxxx-7xxx-xxxx-xxxxxxxxxxxx"),
        // After too many collisions it is a whole UUID, which a case may have chosen (S13).
        _ if name.starts_with('@') => like("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx").or_else(|| like("xxxxxxxx")),
        // Prose of our own that has no constant: up to the next fixed text.
        _ => match rest.first() {
            Some(Piece::Text(next)) => actual.find(next),
            _ => Some(actual.len()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn placeholders_are_bound_once() {
        let mut comparer = Comparer::new([("@dir", "/tmp/x".to_owned())]);
        assert!(comparer.text(
            "@dir/@fts_@sid1.jsonl",
            "/tmp/x/2025-01-15T09-00-01-000Z_01234567-89ab-7def-8123-456789abcdef.jsonl"
        ));
        assert!(comparer.text("@sid1", "01234567-89ab-7def-8123-456789abcdef"));
        assert!(!comparer.text("@sid2", "01234567-89ab-7def-8123-456789abcdef"));
        assert!(comparer.text("@1", "0123abcd"));
        assert!(!comparer.text("@2", "0123abcd"));
        assert!(comparer.text("{\"id\":\"@1\",\"t\":\"@ms\"}", "{\"id\":\"0123abcd\",\"t\":17}"));
        assert!(!comparer.text("{\"id\":\"@1\"}", "{\"id\":\"0123abce\"}"));
        assert!(comparer.text("mail me@1.example {{x}}", "mail me0123abcd.example {{x}}"));
    }

    #[test]
    fn values() {
        let mut comparer = Comparer::default();
        comparer.value(
            "",
            &json!({"a": "@undefined", "b": 1, "c": "@NaN", "d": "@ms"}),
            Some(&json!({"b": 1.0, "c": null, "d": 5})),
        );
        assert!(comparer.mismatches.is_empty(), "{:?}", comparer.mismatches);
        comparer.value("", &json!({"a": [1]}), Some(&json!({"a": [1, 2], "b": 1})));
        assert_eq!(comparer.mismatches.len(), 2);
    }

    #[test]
    fn copied_lines_may_be_spelled_differently() {
        let mut comparer = Comparer { copied_ids: BTreeSet::from(["c1".to_owned()]), ..Comparer::default() };
        let ours = r#"{"id":"c1","n":12345678901234567890,"e":1E3}"#;
        assert!(comparer.text(r#"{"id":"c1","n":12345678901234567000,"e":1000}"#, ours));
        assert_eq!(comparer.copied_lines, [ours]);
        assert!(!comparer.text(r#"{"id":"c2","e":1000}"#, r#"{"id":"c2","e":1E3}"#));
    }
}
