//! Schemas of the everyday kind (types, properties, required members, items, enums), answered without a validator.
//!
//! Almost every call fits its schema, and almost every schema is of this kind, the built-in ones included. For those a
//! validator need not be made: it takes a millisecond to compile, and its library keeps a megabyte of specifications for
//! the rest of the process. Only "it fits" is decided here; everything else is left to the validator and its messages.

use serde_json::Value;

/// Whether a schema holds nothing but what [`fits`] understands.
pub(super) fn is_plain(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return false };
    schema.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value.as_str().is_some_and(|name| TYPES.contains(&name)),
        "properties" => value.as_object().is_some_and(|properties| properties.values().all(is_plain)),
        "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
        "items" => is_plain(value),
        "enum" => value.is_array(),
        "additionalProperties" => value.is_boolean(),
        "title" | "description" => value.is_string(),
        "default" | "examples" => true,
        _ => false,
    })
}

const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Whether a value surely fits a [plain](is_plain) schema. `false` may only mean that this is not the place to say.
pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    let part = |keyword: &str| schema.get(keyword);
    if part("type").and_then(Value::as_str).is_some_and(|name| !is_of_type(name, value)) {
        return false;
    }
    if part("enum").and_then(Value::as_array).is_some_and(|allowed| !allowed.contains(value)) {
        return false;
    }
    match value {
        Value::Object(object) => {
            let properties = part("properties").and_then(Value::as_object);
            let closed = part("additionalProperties") == Some(&Value::Bool(false));
            let required = part("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            required.iter().filter_map(Value::as_str).all(|name| object.contains_key(name))
                && object.iter().all(|(name, value)| match properties.and_then(|properties| properties.get(name)) {
                    Some(schema) => fits(schema, value),
                    None => !closed,
                })
        }
        Value::Array(items) => part("items").is_none_or(|schema| items.iter().all(|item| fits(schema, item))),
        _ => true,
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_fits_here_fits_the_validator() {
        let schemas = [
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1, null]}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}, "additionalProperties": false}),
            json!({"properties": {"a": {"type": "number"}}, "required": ["b"]}),
            json!({"items": {"type": "boolean"}, "description": "d"}),
        ];
        let values = [
            json!({"a": 1}),
            json!({"a": 1.0}),
            json!({"a": 1.5, "b": null}),
            json!({"a": ["x"]}),
            json!({"a": ["x", 1]}),
            json!({"a": [], "c": 1}),
            json!({"b": "y"}),
            json!([true, false]),
            json!([1]),
            json!("text"),
            json!(null),
        ];
        for schema in &schemas {
            assert!(is_plain(schema), "{schema}");
            let validator = super::super::validate::compile(schema).unwrap();
            for value in &values {
                let (here, there) = (fits(schema, value), validator.is_valid(value));
                assert!(!here || there, "{schema} {value}");
                // 1.0 is an integer to the validator; nothing else is left to it here.
                assert!(here == there || value == &json!({"a": 1.0}), "{schema} {value}");
            }
        }
    }

    #[test]
    fn anything_else_is_not_plain() {
        let schemas = [
            json!(true),
            json!({"type": ["string", "null"]}),
            json!({"anyOf": []}),
            json!({"properties": {"a": {"$ref": "#"}}}),
            json!({"minLength": 1}),
            json!({"type": "word"}),
            json!({"additionalProperties": {"type": "string"}}),
        ];
        for schema in schemas {
            assert!(!is_plain(&schema), "{schema}");
        }
    }
}
