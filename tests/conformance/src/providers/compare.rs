//! Comparing with what the reference did: exactly, but for words that are ours or a parser's.

use branchline::agent::classify;
use regex::Regex;
use serde_json::{Value, json};

use crate::compare::Mismatch;
use crate::report::{Outcome, problem};

/// In front of the text of arguments that could not be read; what stands before it are the parser's words.
const RECEIVED: &str = "\n\nReceived arguments:\n";
/// What the service's documentation has clients send for calls another model made.
const NOT_SIGNED: &str = "skip_thought_signature_validator";
/// Our words for images a model cannot see, and the reference's.
const NOTICES: [(&str, &str); 2] = [
    (branchline::agent::transform::USER_IMAGE_NOTICE, "(image omitted: model does not support images)"),
    (branchline::agent::transform::TOOL_IMAGE_NOTICE, "(tool image omitted: model does not support images)"),
];

/// What did not fit, and what differs on purpose.
#[derive(Default)]
pub(super) struct Differences {
    mismatches: Vec<Mismatch>,
    on_purpose: Vec<&'static str>,
}

impl Differences {
    /// The outcome; `different` is a difference that holds in any case.
    pub(super) fn outcome(mut self, different: Option<&'static str>) -> Outcome {
        self.on_purpose.extend(different);
        self.on_purpose.dedup();
        if !self.mismatches.is_empty() {
            Outcome::Failed(self.mismatches)
        } else if self.on_purpose.is_empty() {
            Outcome::Same
        } else {
            Outcome::Different(self.on_purpose)
        }
    }

    /// Notes a difference.
    pub(super) fn note(&mut self, path: &str, wanted: &Value, got: &Value) {
        self.mismatches.push(problem(path, &wanted.to_string(), got.to_string()));
    }

    /// Compares two values; `{MS}` and `{N}` in a text stand for any number.
    pub(super) fn value(&mut self, path: &str, wanted: &Value, got: &Value) {
        match (wanted, got) {
            (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
            (Value::String(a), Value::String(b)) if fits(a, b) => {}
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (at, (a, b)) in a.iter().zip(b).enumerate() {
                    self.value(&format!("{path}[{at}]"), a, b);
                }
            }
            (Value::Object(a), Value::Object(b)) => {
                for (key, a) in a {
                    let got = b.get(key).unwrap_or(&Value::Null);
                    match key.as_str() {
                        "argumentsError" => self.value(&format!("{path}.{key}"), &received(a), &received(got)),
                        _ => self.value(&format!("{path}.{key}"), a, got),
                    }
                }
                for (key, b) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                    self.note(&format!("{path}.{key}"), &json!("(absent)"), b);
                }
            }
            (a, b) if a == b => {}
            (a, b) => self.note(path, a, b),
        }
    }

    /// Compares the body of a request.
    pub(super) fn body(&mut self, path: &str, wanted: &Value, got: &Value) {
        let mut plain = got.clone();
        if unsign(&mut plain) {
            self.on_purpose.push("D-gemini-unsigned-calls");
        }
        self.value(path, wanted, &plain);
    }

    /// Puts what we promise instead into what is wanted, where we differ on purpose.
    pub(super) fn on_purpose(&mut self, wanted: &mut Value, got: &Value) {
        let last = &wanted["final"];
        let calls = last["content"].as_array().is_some_and(|blocks| blocks.iter().any(|it| it["type"] == "toolCall"));
        if last["api"] == "openai-completions" && last["stopReason"] == "stop" && calls {
            wanted["final"]["stopReason"] = "toolUse".into();
            if let Some(event) = wanted["events"].as_array_mut().and_then(|events| events.last_mut()) {
                event["reason"] = "toolUse".into();
            }
            self.on_purpose.push("D-stop-with-calls");
        }
        let last = &wanted["final"];
        if last["rawStopReason"] == "failed" && last["usage"]["totalTokens"] == 0 && got["usage"]["totalTokens"] != 0 {
            wanted["final"]["usage"] = got["usage"].clone();
            self.on_purpose.push("D-failed-usage");
        }
    }

    /// Compares the final message. An error must mean the same; its words are exact if `exact`.
    pub(super) fn last(&mut self, wanted: &Value, got: &Value, exact: bool) {
        let (mut wanted, mut got) = (wanted.clone(), got.clone());
        let take = |value: &mut Value| value.as_object_mut().and_then(|object| object.shift_remove("errorMessage"));
        let (error, our_error) = (take(&mut wanted), take(&mut got));
        let provider = wanted["provider"].as_str().unwrap_or_default().to_owned();
        let meaning = |error: &Option<Value>| {
            let text = error.as_ref().and_then(Value::as_str)?;
            Some((classify::is_retryable(text), classify::is_overflow_text(text, &provider)))
        };
        let same = if exact { error == our_error } else { meaning(&error) == meaning(&our_error) };
        let texts = (error.as_ref().and_then(Value::as_str), our_error.as_ref().and_then(Value::as_str));
        // The service's own code in front of its words.
        let coded = matches!(texts, (Some(wanted), Some(got)) if !exact && got.ends_with(&format!(": {wanted}")));
        if !same && coded {
            self.on_purpose.push("D-error-codes");
        } else if !same {
            self.note(".final.errorMessage", &json!(error), &json!(our_error));
        }
        self.value(".final", &wanted, &got);
    }
}

/// A call as it is compared; parser messages are compared where they stand.
pub(super) fn shortened(call: &Value) -> Value {
    call.clone()
}

fn received(error: &Value) -> Value {
    match error.as_str().and_then(|text| text.split_once(RECEIVED)) {
        Some((_, text)) => text.into(),
        None => error.clone(),
    }
}

fn fits(wanted: &str, got: &str) -> bool {
    if wanted == got || NOTICES.contains(&(got, wanted)) {
        return true;
    }
    if !wanted.contains("{MS}") && !wanted.contains("{N}") {
        return false;
    }
    let pattern = regex::escape(wanted).replace(r"\{MS\}", r"\d+").replace(r"\{N\}", r"\d+");
    Regex::new(&format!("^{pattern}$")).is_ok_and(|pattern| pattern.is_match(got))
}

/// Takes the stand-in for signatures away; whether there was one.
fn unsign(value: &mut Value) -> bool {
    match value {
        Value::Object(object) => {
            let found = object.get("thoughtSignature").is_some_and(|it| it == NOT_SIGNED);
            if found {
                object.shift_remove("thoughtSignature");
            }
            object.values_mut().fold(found, |found, value| unsign(value) | found)
        }
        Value::Array(items) => items.iter_mut().fold(false, |found, value| unsign(value) | found),
        _ => false,
    }
}
