//! What `ls`, `find` and `grep` print: lines up to 50 KB, then notices in brackets (T308, T329, T364).

use std::fmt::Write;

use serde_json::{Value, json};

use super::ToolResult;
use super::truncate::MAX_BYTES;
use crate::message::JsonObject;

/// What the reference's details say where lines are not limited: JavaScript's largest exact integer.
const NO_LINE_LIMIT: u64 = 9_007_199_254_740_991;

/// The `limit` argument: whole, at least 1 (T303, T321, T356).
pub(super) fn limit(arguments: &JsonObject, default: usize) -> usize {
    match arguments.get("limit").and_then(Value::as_f64) {
        // A float becomes the nearest integer a usize has.
        Some(limit) => (limit.floor() as usize).max(1),
        None => default,
    }
}

/// A path or name for a line of its own: invalid UTF-8 replaced, control characters escaped, so that one entry is one
/// line and a terminal obeys none of it.
pub(super) fn path_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(char::is_control) {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Lines, of which the first 50 KB are kept, and notices.
#[derive(Default)]
pub(super) struct Listing {
    text: String,
    shown_lines: usize,
    total_lines: usize,
    total_bytes: usize,
    full: bool,
    notices: Vec<String>,
    details: JsonObject,
}

impl Listing {
    /// Adds a line.
    pub(super) fn line(&mut self, line: &str) {
        self.skip(line.len());
        if self.full {
            return;
        }
        let separator = usize::from(self.shown_lines > 0);
        if self.text.len() + separator + line.len() > MAX_BYTES {
            self.full = true;
            return;
        }
        if separator == 1 {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.shown_lines += 1;
    }

    /// Counts a line of which only the length is known; it cannot be shown, nor can any after it.
    pub(super) fn unshown(&mut self, length: usize) {
        self.skip(length);
        self.full = true;
    }

    fn skip(&mut self, length: usize) {
        self.total_bytes += length + usize::from(self.total_lines > 0);
        self.total_lines += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total_lines == 0
    }

    /// Adds a notice, and the fact behind it to the details. The one about bytes goes where this is called with
    /// [`bytes_notice`](Self::bytes_notice).
    pub(super) fn notice(&mut self, text: String, key: &str, value: Value) {
        self.notices.push(text);
        self.details.insert(key.to_owned(), value);
    }

    /// Adds the notice about the byte limit, if that was reached.
    pub(super) fn bytes_notice(&mut self) {
        if !self.full || self.details.contains_key("truncation") {
            return;
        }
        let truncation = json!({
            "content": self.text,
            "truncated": true,
            "truncatedBy": "bytes",
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.shown_lines,
            "outputBytes": self.text.len(),
            "lastLinePartial": false,
            "firstLineExceedsLimit": self.shown_lines == 0,
            "maxLines": NO_LINE_LIMIT,
            "maxBytes": MAX_BYTES,
        });
        self.notice("50.0KB limit reached".to_owned(), "truncation", truncation);
    }

    /// The result: what is shown, a blank line, and the notices.
    pub(super) fn result(mut self) -> ToolResult {
        self.bytes_notice();
        if self.notices.is_empty() {
            return ToolResult::text(self.text);
        }
        let text = format!("{}\n\n[{}]", self.text, self.notices.join(". "));
        ToolResult { details: Some(Value::Object(self.details)), ..ToolResult::text(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::path_text;

    #[test]
    fn one_entry_is_one_line() {
        assert_eq!(path_text(b"a\nb\x1b]0;x\x07"), "a\\nb\\u001b]0;x\\u0007");
        assert_eq!(path_text("é <script> -rf".as_bytes()), "é <script> -rf");
        assert_eq!(path_text(b"\xff"), "\u{fffd}");
    }
}
