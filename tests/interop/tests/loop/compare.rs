//! Comparing what both programs made of a scenario: ids, times and places are replaced, all else must be the same.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

/// The results of one program in a form that does not depend on when and where it ran.
pub(super) fn settled(mut results: Value, scenario: &Value, dir: &str) -> Value {
    let mut known = HashMap::new();
    let paths: Vec<String> = texts(&results["paths"]).map(str::to_owned).collect();
    for (at, path) in paths.iter().enumerate() {
        known.insert(path.clone(), format!("{{SESSION {at}}}"));
    }
    let files = results["files"].as_array().into_iter().flatten();
    for line in files.flat_map(|file| file.as_array().into_iter().flatten()) {
        if let Some(id) = line["id"].as_str() {
            let label = format!("@{}", known.len());
            known.entry(id.to_owned()).or_insert(label);
        }
    }
    results["paths"] = paths.len().into();
    let builtins: HashSet<&str> = texts(&scenario["builtins"]).collect();
    let mut out = walk(&results, &Context { known: &known, builtins: &builtins, dir });
    // A request after an abort need not be made (S228).
    if let Some(requests) = out["requests"].as_array_mut() {
        requests.retain(|request| request["aborted"] != true);
        requests.iter_mut().for_each(without_orphans);
    }
    if let Some(events) = out["events"].as_array_mut() {
        // pi forgets it when the repeated request for a summary throws (S248).
        let throws = scenario["script"].as_array().into_iter().flatten().any(|reply| reply.get("throw").is_some());
        events.retain(|event| !throws || event["type"] != "summarization_retry_finished");
        order(events, &builtins);
    }
    out
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Results whose call is not there are sent by pi alone (D-orphan-results).
fn without_orphans(request: &mut Value) {
    let Some(messages) = request["messages"].as_array_mut() else { return };
    let mut calls = HashSet::new();
    messages.retain(|message| {
        if message["role"] == "assistant" && message["stopReason"] != "error" && message["stopReason"] != "aborted" {
            let ids = message["content"].as_array().into_iter().flatten().map(|block| block["id"].to_string());
            calls.extend(ids);
        }
        message["role"] != "toolResult" || calls.contains(&message["toolCallId"].to_string())
    });
}

struct Context<'a> {
    known: &'a HashMap<String, String>,
    builtins: &'a HashSet<&'a str>,
    dir: &'a str,
}

fn walk(value: &Value, context: &Context<'_>) -> Value {
    match value {
        Value::String(text) => match context.known.get(text) {
            Some(label) => label.as_str().into(),
            // An entry of a session that has no file yet.
            None if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => "{ID}".into(),
            None => text.replace(context.dir, "{DIR}").into(),
        },
        Value::Array(list) => list.iter().map(|item| walk(item, context)).collect(),
        Value::Object(object) => {
            let builtin =
                object.get("name").and_then(Value::as_str).is_some_and(|name| context.builtins.contains(name));
            if builtin && object.contains_key("parameters") {
                // Its words are everybody's own.
                return json!({"name": object["name"]});
            }
            let mut out = Map::new();
            for (key, value) in object {
                let value = match (key.as_str(), value) {
                    ("timestamp" | "durationMs" | "wall_time_seconds", Value::Number(_)) => json!("{NUMBER}"),
                    ("timestamp", Value::String(_)) => json!("{TIME}"),
                    _ => walk(value, context),
                };
                out.insert(key.clone(), value);
            }
            out.into()
        }
        _ => value.clone(),
    }
}

/// Calls of one batch end when they end: their updates and ends are put in the order of the calls, behind the last start.
/// How often a command of the real `bash` tells what it printed is left to chance; these updates are dropped.
fn order(events: &mut Vec<Value>, builtins: &HashSet<&str>) {
    let name = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
    events.retain(|event| {
        name(event) != "tool_execution_update" || !builtins.contains(event["toolName"].as_str().unwrap_or_default())
    });
    events.retain(|event| name(event) != "bash_execution_update");
    for turn in events.split_mut(|event| event["type"] == "turn_end") {
        let calls: Vec<Value> = turn
            .iter()
            .filter(|event| name(event) == "tool_execution_start")
            .map(|event| event["toolCallId"].clone())
            .collect();
        let last = turn.iter().rposition(|event| name(event) == "tool_execution_start").unwrap_or(turn.len());
        let places: Vec<usize> = (last..turn.len())
            .filter(|at| matches!(name(&turn[*at]).as_str(), "tool_execution_update" | "tool_execution_end"))
            .collect();
        let mut sorted: Vec<Value> = places.iter().map(|at| turn[*at].clone()).collect();
        sorted.sort_by_key(|event| calls.iter().position(|call| *call == event["toolCallId"]));
        for (at, event) in places.into_iter().zip(sorted) {
            turn[at] = event;
        }
    }
}

/// Where both differ first: a path, ours and pi's. `about` is how far numbers of estimated tokens may lie apart.
pub(super) fn difference(path: &str, ours: &Value, pi: &Value, about: f64) -> Option<String> {
    let differs = |ours: &dyn std::fmt::Display, pi: &dyn std::fmt::Display| {
        Some(format!("{path}\n  ours: {ours:.1500}\n  pi:   {pi:.1500}"))
    };
    match (ours, pi) {
        (Value::Object(a), Value::Object(b)) => {
            let (keys, theirs): (Vec<&String>, Vec<&String>) = (a.keys().collect(), b.keys().collect());
            let (mut sorted, mut sorted_theirs) = (keys.clone(), theirs.clone());
            sorted.sort();
            sorted_theirs.sort();
            if sorted == sorted_theirs && (keys == theirs || !path.contains("files")) {
                return a.iter().find_map(|(key, value)| difference(&format!("{path}/{key}"), value, &b[key], about));
            }
            let both = a.iter().filter(|(key, _)| b.contains_key(*key));
            let mut inner = both.filter_map(|(key, value)| difference(&format!("{path}/{key}"), value, &b[key], about));
            if let Some(found) = inner.next() {
                return Some(found);
            }
            differs(&ours, &pi)
        }
        (Value::Array(a), Value::Array(b)) => {
            for (at, (one, other)) in a.iter().zip(b).enumerate() {
                if let Some(found) = difference(&format!("{path}/{at}"), one, other, about) {
                    return Some(found);
                }
            }
            match (a.len(), b.len()) {
                (ours, theirs) if ours == theirs => None,
                (ours, theirs) => {
                    let at = ours.min(theirs);
                    let none = json!("(absent)");
                    difference(&format!("{path}/{at}"), a.get(at).unwrap_or(&none), b.get(at).unwrap_or(&none), about)
                        .or_else(|| differs(&ours, &theirs))
                }
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let estimate =
                ["tokensBefore", "estimatedTokensAfter", "contextTokens"].iter().any(|key| path.ends_with(key));
            let apart = (a.as_f64()? - b.as_f64()?).abs();
            if apart <= if estimate { about } else { 0.0 } { None } else { differs(&ours, &pi) }
        }
        (Value::String(a), Value::String(b)) if fits(b, a) => None,
        (a, b) if a == b => None,
        _ => differs(&ours, &pi),
    }
}

/// Whether our text fits one of pi's in which `{{NAME}}` stands for any text.
fn fits(pi: &str, ours: &str) -> bool {
    let mut parts = Vec::new();
    let mut rest = pi;
    while let Some((before, tail)) = rest.split_once("{{") {
        let Some((name, after)) = tail.split_once("}}") else { break };
        if !name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') {
            break;
        }
        parts.push(before);
        rest = after;
    }
    let Some((first, others)) = parts.split_first() else { return pi == ours };
    let Some(mut left) = ours.strip_prefix(first) else { return false };
    for part in others {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(rest)
}
