//! Strict forms of tool schemas (P130, P131).

use serde_json::{Map, Value, json};

/// Keywords that make a schema more than a plain one.
const REFUSED: [&str; 14] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "prefixItems",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
];
/// What Anthropic refuses besides.
const REFUSED_BY_ANTHROPIC: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];
const FORMATS_OF_ANTHROPIC: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// Deeper schemas are not made strict.
const DEPTH: usize = 64;

/// Whether a tool asks for strict arguments, and whether it must have them (P130).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    None,
    Prefer,
    Require,
}

/// What a tool's declaration asks for.
pub(crate) fn wish(tool: &Value) -> Wish {
    let sampling = &tool["constrainedSampling"];
    match (sampling["type"].as_str(), sampling["strict"].as_str()) {
        (Some("json_schema"), Some("prefer")) => Wish::Prefer,
        (Some("json_schema"), Some("require")) => Wish::Require,
        _ => Wish::None,
    }
}

/// The strict form of a tool's schema; `None` if it has none.
pub fn strict_schema(schema: &Value) -> Option<Value> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return None;
    }
    strict(schema, 0)
}

/// Whether Anthropic takes a strict schema: it refuses sizes, ranges and unusual formats.
pub(crate) fn anthropic_takes(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => object.iter().all(|(key, value)| match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values().all(anthropic_takes),
            ("enum" | "const" | "default" | "description" | "examples", _) => true,
            ("format", Value::String(format)) => FORMATS_OF_ANTHROPIC.contains(&format.as_str()),
            (key, value) => !REFUSED_BY_ANTHROPIC.contains(&key) && anthropic_takes(value),
        }),
        Value::Array(items) => items.iter().all(anthropic_takes),
        _ => true,
    }
}

fn strict(schema: &Value, depth: usize) -> Option<Value> {
    let object = schema.as_object().filter(|_| depth < DEPTH)?;
    if REFUSED.iter().any(|key| object.contains_key(*key)) {
        return None;
    }
    if let Some(choices) = object.get("anyOf") {
        let choices = choices.as_array()?;
        let choices: Option<Vec<Value>> =
            choices.iter().map(|choice| if is_container(choice) { None } else { strict(choice, depth + 1) }).collect();
        let mut out = object.clone();
        out.insert("anyOf".to_owned(), choices?.into());
        return Some(Value::Object(out));
    }
    match object.get("type") {
        Some(Value::String(name)) if name == "object" => strict_object(object, depth),
        Some(Value::String(name)) if name == "array" => {
            let mut out = object.clone();
            out.insert("items".to_owned(), strict(object.get("items")?, depth + 1)?);
            Some(Value::Object(out))
        }
        Some(Value::Array(names)) if names.iter().any(|name| name == "object" || name == "array") => None,
        Some(Value::String(_) | Value::Array(_)) => Some(schema.clone()),
        None if object.contains_key("enum") => Some(schema.clone()),
        _ => None,
    }
}

fn strict_object(object: &Map<String, Value>, depth: usize) -> Option<Value> {
    if object.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) {
        return None;
    }
    let empty = Map::new();
    let properties = match object.get("properties") {
        Some(properties) => properties.as_object()?,
        None => &empty,
    };
    let required: Vec<&str> =
        object.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut members = Map::new();
    for (name, schema) in properties {
        let schema = strict(schema, depth + 1)?;
        let optional = !required.contains(&name.as_str()) && !allows_null(&schema);
        members.insert(name.clone(), if optional { json!({"anyOf": [schema, {"type": "null"}]}) } else { schema });
    }
    let names: Vec<Value> = members.keys().map(|name| name.as_str().into()).collect();
    let mut out = object.clone();
    out.insert("properties".to_owned(), members.into());
    out.insert("required".to_owned(), names.into());
    out.insert("additionalProperties".to_owned(), false.into());
    Some(Value::Object(out))
}

fn is_container(schema: &Value) -> bool {
    let container = |name: &Value| name == "object" || name == "array";
    match &schema["type"] {
        Value::Array(names) => names.iter().any(container),
        name => container(name) || schema.get("properties").is_some() || schema.get("items").is_some(),
    }
}

fn allows_null(schema: &Value) -> bool {
    let null = |value: &Value| value == "null";
    match &schema["type"] {
        Value::Array(names) => names.iter().any(null),
        name if null(name) => true,
        _ => {
            let choices = schema["anyOf"].as_array();
            let values = schema["enum"].as_array();
            choices.into_iter().flatten().any(allows_null) || values.into_iter().flatten().any(Value::is_null)
        }
    }
}
