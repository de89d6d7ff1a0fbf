//! Comparing what came out with what the reference did (section 8 of the corpus' README).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{host, record, steps};
use crate::compare::Mismatch;
use crate::report::problem;

/// Runs a trace; what does not fit is returned.
pub(super) fn run(trace: &Value) -> Vec<Mismatch> {
    let scenario = &trace["scenario"];
    let detail = scenario["detail"].as_u64().unwrap_or(1);
    let mut host = match host::Host::new(scenario, detail) {
        Ok(host) => host,
        Err(error) => return vec![problem(".scenario", "a session", error)],
    };
    let mut mismatches = Vec::new();
    for (at, step) in scenario["steps"].as_array().into_iter().flatten().enumerate() {
        if let Err(mismatch) = steps::run(&mut host, step) {
            mismatches.push(Mismatch { path: format!("step {at} {step}{}", mismatch.path), ..mismatch });
        }
    }
    host.finish();
    if scenario["form"] == "replacement" {
        let actual = host.replacement();
        let check = Check::new(scenario);
        for (key, actual) in &actual {
            check.value(&format!("/{key}"), &trace[key], Some(actual), &mut mismatches);
        }
        return mismatches;
    }
    let mut actual = record::results(&host, detail);
    if trace.get("session").is_some() {
        actual.extend(host.replaced());
    }
    Check::new(scenario).results(trace, actual, &mut mismatches);
    mismatches
}

/// The exceptions a trace allows.
pub(super) struct Check<'a> {
    loose: Option<&'a Map<String, Value>>,
    inexact: BTreeSet<&'a str>,
    groups: Vec<Vec<&'a str>>,
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

impl<'a> Check<'a> {
    pub(super) fn new(scenario: &'a Value) -> Check<'a> {
        let groups = scenario["anyOrder"].as_array().into_iter().flatten();
        Check {
            loose: scenario["loose"].as_object(),
            inexact: texts(&scenario["inexact"]).collect(),
            groups: groups.map(|group| texts(group).collect()).collect(),
        }
    }

    fn results(&self, trace: &Value, mut actual: Map<String, Value>, mismatches: &mut Vec<Mismatch>) {
        let empty = Vec::new();
        let list = |value: Option<&Value>| value.and_then(Value::as_array).unwrap_or(&empty).clone();
        let expected = self.ordered(list(trace.get("events")));
        let events = self.ordered(list(actual.get("events")));
        self.list("/events", &expected, &events, mismatches);
        let requests = list(actual.get("requests"));
        let expected = present(list(trace.get("requests")), &requests);
        self.list("/requests", &expected, &requests, mismatches);
        self.list("/entries", &list(trace.get("entries")), &list(actual.get("entries")), mismatches);
        for key in ["events", "requests", "entries"] {
            actual.remove(key);
        }
        for (key, actual) in &actual {
            self.value(&format!("/{key}"), &trace[key], Some(actual), mismatches);
        }
    }

    /// Lists are told apart at their first difference; what follows is usually shifted.
    fn list(&self, path: &str, expected: &[Value], actual: &[Value], mismatches: &mut Vec<Mismatch>) {
        for at in 0..expected.len().max(actual.len()) {
            let before = mismatches.len();
            match expected.get(at) {
                Some(expected) => self.value(&format!("{path}/{at}"), expected, actual.get(at), mismatches),
                None => mismatches.push(problem(&format!("{path}/{at}"), "(absent)", actual[at].to_string())),
            }
            if mismatches.len() > before {
                return;
            }
        }
    }

    /// Progress and ends of calls of one group may swap places: they are put in the order of the calls.
    fn ordered(&self, mut events: Vec<Value>) -> Vec<Value> {
        for group in &self.groups {
            let rank = |event: &Value| {
                let moves = matches!(event["type"].as_str(), Some("tool_execution_update" | "tool_execution_end"));
                group.iter().position(|call| moves && event["toolCallId"] == *call)
            };
            let places: Vec<usize> = (0..events.len()).filter(|at| rank(&events[*at]).is_some()).collect();
            let mut sorted: Vec<Value> = places.iter().map(|at| events[*at].clone()).collect();
            sorted.sort_by_key(rank);
            for (at, event) in places.into_iter().zip(sorted) {
                events[at] = event;
            }
        }
        events
    }

    pub(super) fn value(&self, path: &str, expected: &Value, actual: Option<&Value>, mismatches: &mut Vec<Mismatch>) {
        let fits = match (expected, actual) {
            (Value::String(_), Some(Value::String(actual))) if self.loose_parts(path).is_some() => {
                self.loose_parts(path).is_some_and(|parts| parts.iter().all(|part| actual.contains(part)))
            }
            (Value::String(expected), Some(Value::String(actual))) => fits(expected, actual),
            (Value::Number(_), Some(Value::Number(_))) if self.inexact.contains(path) => true,
            (Value::Number(expected), Some(Value::Number(actual))) => expected.as_f64() == actual.as_f64(),
            (Value::Array(expected), Some(Value::Array(actual))) if expected.len() == actual.len() => {
                for (at, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                    self.value(&format!("{path}/{at}"), expected, Some(actual), mismatches);
                }
                true
            }
            (Value::Object(expected), Some(Value::Object(actual))) => {
                for (key, expected) in expected {
                    self.value(&format!("{path}/{key}"), expected, actual.get(key), mismatches);
                }
                for (key, actual) in actual.iter().filter(|(key, _)| !expected.contains_key(*key)) {
                    mismatches.push(problem(&format!("{path}/{key}"), "(absent)", actual.to_string()));
                }
                true
            }
            (expected, actual) => Some(expected) == actual,
        };
        if !fits {
            let actual = actual.map_or_else(|| "(absent)".to_owned(), Value::to_string);
            mismatches.push(problem(path, &expected.to_string(), actual));
        }
    }

    fn loose_parts(&self, path: &str) -> Option<Vec<&str>> {
        Some(texts(self.loose?.get(path)?).collect())
    }
}

/// A request made with its signal already set may be missing.
fn present(expected: Vec<Value>, actual: &[Value]) -> Vec<Value> {
    let mut at = 0;
    let mut kept = Vec::new();
    for request in expected {
        if request["aborted"] == true && actual.get(at).is_none_or(|actual| actual["aborted"] != true) {
            continue;
        }
        kept.push(request);
        at += 1;
    }
    kept
}

/// Whether a text fits one in which `{{NAME}}` stands for any text.
fn fits(expected: &str, actual: &str) -> bool {
    let mut parts = Vec::new();
    let mut rest = expected;
    while let Some((before, after)) = rest.split_once("{{").and_then(|(before, tail)| {
        let (name, after) = tail.split_once("}}")?;
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_').then_some((before, after))
    }) {
        parts.push(before);
        rest = after;
    }
    let Some(first) = parts.first() else { return expected == actual };
    let Some(mut left) = actual.strip_prefix(first) else { return false };
    for part in &parts[1..] {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn placeholders_stand_for_any_text() {
        assert!(fits("{{A}}{{B}}x{{C}}", "some x more"));
        assert!(fits("a {{A}} b", "a c b b"));
        assert!(!fits("a {{A}} b", "a c"));
        assert!(!fits("a", "a b"));
        assert!(fits("{*} {{", "{*} {{"));
    }

    #[test]
    fn exceptions_are_exceptions() {
        let scenario = json!({"loose": {"/a": ["x", "y"]}, "inexact": ["/n"], "anyOrder": [["c1", "c2"]]});
        let check = Check::new(&scenario);
        let compare = |expected: Value, actual: Value| {
            let mut mismatches = Vec::new();
            check.value("", &expected, Some(&actual), &mut mismatches);
            mismatches.len()
        };
        assert_eq!(compare(json!({"a": "free", "n": 1}), json!({"a": "y or x", "n": 2})), 0);
        assert_eq!(compare(json!({"a": "free", "b": 1}), json!({"a": "x", "c": 2})), 3);
        let end = |call: &str| json!({"type": "tool_execution_end", "toolCallId": call});
        let note = json!({"type": "turn_start"});
        assert_eq!(check.ordered(vec![end("c2"), note.clone(), end("c1")]), [end("c1"), note, end("c2")]);
    }
}
