//! The result of a tool in JSON: what hosts of other languages answer and get.

use serde_json::Value;

use crate::error::{Error, ErrorCode};
use crate::json;
use crate::message::JsonObject;
use crate::tools::ToolResult;

/// What the model reads of a tool that had nothing to say: an empty text is refused by some services.
const NOTHING: &str = "(no output)";

/// The keys of a result in full.
const KEYS: [&str; 6] = ["content", "details", "structuredContent", "usage", "isError", "terminate"];

impl ToolResult {
    /// Reads a host's answer. A text is the content; a list of content blocks is that; an object with `content` is a
    /// result in full; `null` is no output; anything else is given to the model as JSON and to programs as
    /// `structuredContent`.
    ///
    /// Errors: what is wrong with a result in full or its blocks.
    pub fn from_host_value(value: Value) -> Result<ToolResult, String> {
        match value {
            Value::Null => Ok(ToolResult::text(NOTHING)),
            Value::String(text) => Ok(ToolResult::text(text)),
            Value::Array(blocks) if looks_like_blocks(&blocks) => {
                Ok(ToolResult { content: checked(blocks)?, ..ToolResult::default() })
            }
            Value::Object(object) if object.contains_key("content") => in_full(object),
            other => Ok(structured(other)),
        }
    }

    /// The result with everything in it: `{content, details?, structuredContent?, usage?, terminate?, isError}`.
    pub fn to_host_value(&self) -> Value {
        let mut value = self.to_value();
        if let Value::Object(object) = &mut value {
            object.insert("isError".to_owned(), Value::Bool(self.is_error));
        }
        value
    }

    /// The text of its blocks, one below the other.
    pub fn joined_text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The result, unless it is that of a failure.
    ///
    /// Errors: `tool_failed` with the text of the result.
    pub fn into_result(self) -> crate::error::Result<ToolResult> {
        match self.is_error {
            true => Err(Error::new(ErrorCode::ToolFailed, self.joined_text())),
            false => Ok(self),
        }
    }
}

fn structured(value: Value) -> ToolResult {
    let mut result = ToolResult::text(json::to_string(&value));
    result.structured_content = Some(value);
    result
}

fn in_full(mut object: JsonObject) -> Result<ToolResult, String> {
    if let Some(key) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!(
            "a result has no {key:?}; it has content, details, structuredContent, usage, isError, terminate"
        ));
    }
    let content = match object.remove("content") {
        Some(Value::String(text)) => ToolResult::text(text).content,
        Some(Value::Array(blocks)) => checked(blocks)?,
        _ => return Err("the content of a result is a text or a list of blocks".to_owned()),
    };
    let mut flag = |key: &str| match object.remove(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(format!("{key} is true or false")),
    };
    let (is_error, terminate) = (flag("isError")?, flag("terminate")?);
    let mut take = |key: &str| object.remove(key).filter(|value| !value.is_null());
    let (details, structured_content, usage) = (take("details"), take("structuredContent"), take("usage"));
    if usage.as_ref().is_some_and(|usage| !usage.is_object()) {
        return Err("usage is an object".to_owned());
    }
    Ok(ToolResult { content, details, structured_content, usage, is_error, terminate, thrown: false })
}

fn kind(block: &Value) -> Option<&str> {
    block.get("type").and_then(Value::as_str)
}

fn looks_like_blocks(blocks: &[Value]) -> bool {
    !blocks.is_empty() && blocks.iter().all(|block| matches!(kind(block), Some("text" | "image")))
}

fn checked(blocks: Vec<Value>) -> Result<Vec<Value>, String> {
    for (n, block) in blocks.iter().enumerate() {
        let text = |key: &str| block.get(key).is_some_and(Value::is_string);
        let fine = match kind(block) {
            Some("text") => text("text"),
            Some("image") => text("data") && text("mimeType"),
            _ => false,
        };
        if !fine {
            let text = "a block is {type: \"text\", text} or {type: \"image\", data, mimeType}";
            return Err(format!("content[{n}] is no block: {text}"));
        }
    }
    Ok(blocks)
}
