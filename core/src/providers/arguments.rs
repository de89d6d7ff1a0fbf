//! The complete arguments of a tool call (P46, P47).

use std::borrow::Cow;

use serde_json::Value;

use crate::message::JsonObject;

/// Arguments as they are stored: an object, and what was wrong with the text if it was none.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// The arguments; empty if the text held none.
    pub object: JsonObject,
    /// For the model: why the text could not be read, and the text.
    pub error: Option<String>,
}

/// Reads the complete text of a call's arguments (P46).
pub fn parse_arguments(text: &str) -> Arguments {
    if text.trim().is_empty() {
        return Arguments { object: JsonObject::new(), error: None };
    }
    let problem = match parse_repaired(text) {
        Ok(Value::Object(object)) => return Arguments { object, error: None },
        Ok(_) => "Tool arguments must be a JSON object".to_owned(),
        Err(problem) => problem,
    };
    Arguments { object: JsonObject::new(), error: Some(format!("{problem}\n\nReceived arguments:\n{text}")) }
}

/// Parses JSON, repaired if it is none as it stands.
///
/// Errors: the parser's words for the text as it was sent.
pub(crate) fn parse_repaired(text: &str) -> Result<Value, String> {
    let first = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error.to_string(),
    };
    let repaired = repair_strings(text);
    // Half a surrogate pair and very deep nesting are valid, though serde_json refuses them.
    crate::json::parse(repaired.as_bytes()).ok_or(first)
}

/// Inside strings: raw control characters are escaped, a backslash that starts no escape is doubled (P47).
pub fn repair_strings(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out: Option<String> = None;
    let (mut copied, mut at, mut inside) = (0, 0, false);
    // Copies what is fine up to here, then the replacement of the byte at `at`.
    let mut replace = |at: usize, with: &str, copied: &mut usize| {
        let out = out.get_or_insert_with(|| String::with_capacity(text.len() + 16));
        out.push_str(&text[*copied..at]);
        out.push_str(with);
        *copied = at + 1;
    };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => inside = !inside,
            b'\\' if inside => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 1,
                Some(b'u')
                    if bytes.get(at + 2..at + 6).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) =>
                {
                    at += 5;
                }
                _ => replace(at, "\\\\", &mut copied),
            },
            0..0x20 if inside => {
                let escape = match byte {
                    b'\n' => "\\n",
                    b'\r' => "\\r",
                    b'\t' => "\\t",
                    0x08 => "\\b",
                    0x0c => "\\f",
                    other => &format!("\\u{other:04x}"),
                };
                replace(at, escape, &mut copied);
            }
            _ => {}
        }
        at += 1;
    }
    match out {
        Some(mut out) => {
            out.push_str(&text[copied..]);
            Cow::Owned(out)
        }
        None => Cow::Borrowed(text),
    }
}
