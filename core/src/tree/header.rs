//! The first line of a session file (S7–S10, S61).

use crate::blank;
use crate::json;

use super::fact::{RawEntry, string_is};
use super::time::format_iso;

/// Version this library writes.
pub(crate) const VERSION: u32 = 3;

/// A session's header.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    /// The line as it stands, without LF.
    pub(crate) line: Vec<u8>,
    pub(crate) id: String,
    /// Working directory, when it is a string (S9).
    pub(crate) cwd: Option<String>,
    pub(crate) parent_session: Option<String>,
}

impl Header {
    /// A fresh header in the written order of S7.
    pub(crate) fn new(id: &str, created_ms: i64, cwd: &str, parent_session: Option<&str>) -> Header {
        let timestamp = format_iso(created_ms);
        let mut line = format!("{{\"type\":\"session\",\"version\":{VERSION},\"id\":").into_bytes();
        json::write_string(&mut line, id);
        line.extend_from_slice(b",\"timestamp\":");
        json::write_string(&mut line, &timestamp);
        line.extend_from_slice(b",\"cwd\":");
        json::write_string(&mut line, cwd);
        if let Some(parent) = parent_session {
            line.extend_from_slice(b",\"parentSession\":");
            json::write_string(&mut line, parent);
        }
        line.push(b'}');
        Header { line, id: id.to_owned(), cwd: Some(cwd.to_owned()), parent_session: parent_session.map(str::to_owned) }
    }

    /// Reads a line that is known to be a JSON object. `None` if it is not a valid header (S8).
    pub(crate) fn read(line: &[u8]) -> Option<Header> {
        let string = |key| json::get(line, key).and_then(json::decode_string);
        if !string_is(json::get(line, "type")?, "session") {
            return None;
        }
        Some(Header {
            line: line.to_vec(),
            id: string("id")?,
            cwd: string("cwd"),
            parent_session: string("parentSession"),
        })
    }

    /// The version as the loose comparison of S61 sees it; NaN for what is no number.
    pub(crate) fn version(&self) -> f64 {
        let text = match json::get(&self.line, "version") {
            None | Some(b"null") => return 1.0,
            Some(b"true") => return 1.0,
            Some(b"false") => return 0.0,
            Some(raw) if raw.starts_with(b"\"") => json::decode_string(raw).unwrap_or_default(),
            Some(raw) => String::from_utf8_lossy(raw).into_owned(),
        };
        match blank::trim(&text) {
            "" => 0.0,
            number => js_number(number),
        }
    }
}

/// A number as JavaScript reads it from a text: with hexadecimal digits, and with one spelling of the infinite.
fn js_number(text: &str) -> f64 {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).map_or(f64::NAN, |number| number as f64);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned == "Infinity" || unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        true => text.parse().unwrap_or(f64::NAN),
        false => f64::NAN,
    }
}

/// What the first parsed line of a file says (S8, S50, S52).
pub(crate) enum FirstLine<'a> {
    /// A JSON object that may be a header.
    Object(&'a [u8]),
    /// JSON, but no object.
    Value,
    /// Nothing parsed yet.
    Nothing,
}

/// Looks at one line for a header. Values that count as nothing (S55) are passed over like blank lines.
pub(crate) fn first_line(line: &[u8]) -> FirstLine<'_> {
    match json::members(line, &mut RawEntry::default()) {
        Ok(()) => FirstLine::Object(line),
        Err(json::ObjectError::NotAnObject(_)) => match line.trim_ascii() {
            b"null" | b"false" | b"\"\"" => FirstLine::Nothing,
            // Zero has many spellings.
            value => match std::str::from_utf8(value).ok().and_then(|text| text.parse::<f64>().ok()) {
                Some(0.0) => FirstLine::Nothing,
                _ => FirstLine::Value,
            },
        },
        Err(json::ObjectError::Syntax(_)) => FirstLine::Nothing,
    }
}
