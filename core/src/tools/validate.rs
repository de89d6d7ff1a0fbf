//! Checking a call's arguments against the tool's schema (S216, S217, T11, T12).
//!
//! A first cut: the arguments must be an object that has what the schema requires. Coercion and the other problems of
//! T12 go behind the same function.

use serde_json::Value;

use crate::json;
use crate::message::JsonObject;

/// The arguments a tool gets, or the text the model reads: one line for each problem, then the arguments as received.
pub fn validate(tool: &str, schema: &Value, arguments: &Value) -> Result<JsonObject, String> {
    let Some(object) = arguments.as_object() else {
        return Err(failure(tool, &["root: expected object".to_owned()], arguments));
    };
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let missing = required.iter().filter_map(Value::as_str).filter(|name| !object.contains_key(*name));
    let problems: Vec<String> = missing.map(|name| format!("{name}: missing")).collect();
    if problems.is_empty() { Ok(object.clone()) } else { Err(failure(tool, &problems, arguments)) }
}

fn failure(tool: &str, problems: &[String], arguments: &Value) -> String {
    let mut text = format!("Validation failed for tool \"{tool}\":\n");
    for problem in problems {
        text.push_str(&format!("  - {problem}\n"));
    }
    let received = serde_json::to_string_pretty(arguments).unwrap_or_else(|_| json::to_string(arguments));
    text + "\nReceived arguments:\n" + &received
}
