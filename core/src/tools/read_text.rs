//! Which lines of a text `read` shows, and what it says about the others (T83–T90).

use serde_json::{Value, json};

use super::line_index::Lines;
use super::os_error::os_error_without_path;
use super::truncate::{self, Limit, MAX_BYTES};
use super::{ToolError, ToolResult, number};
use crate::json;

/// Selections up to this size are measured as they are decoded; of larger ones the bytes in the file are counted.
const MEASURED: u64 = 16 << 20;
/// So many bytes are enough to see that it is too many, also when the last character is cut.
const SHOWN: u64 = MAX_BYTES as u64 + 8;

/// The lines asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    /// Lines before the first one. May have a fraction, which is shown but not used.
    start: f64,
    limit: Option<f64>,
}

impl Window {
    pub(super) fn new(offset: Option<f64>, limit: Option<f64>) -> Window {
        Window { start: offset.map_or(0.0, |offset| (offset - 1.0).max(0.0)), limit }
    }
}

/// A number in a notice.
fn shown_number(number: f64) -> String {
    json::to_string(&number::to_value(number))
}

/// The result for a text.
pub(super) fn show(lines: &mut Lines, given: &str, window: &Window) -> Result<ToolResult, ToolError> {
    let failed = |error: std::io::Error| os_error_without_path(&error, "read");
    let total = lines.total();
    if window.start >= total as f64 {
        let offset = shown_number(window.start + 1.0);
        return Err(ToolError::new(format!("Offset {offset} is beyond end of file ({total} lines total)")));
    }
    let start = window.start as usize;
    // Where the selection ends, as an index into a list: a negative one counts from the list's end (T84).
    let end_number = window.limit.map(|limit| (window.start + limit).min(total as f64));
    let end = match end_number {
        None => total,
        Some(end) if end >= 0.0 => end as usize,
        Some(end) => total.saturating_sub(-end as usize),
    };
    let selection = select(lines, start, end.max(start)).map_err(failed)?;
    let mut cut = truncate::head(&selection.text);
    if let Some((lines, bytes)) = selection.totals {
        cut.total_lines = lines;
        cut.total_bytes = bytes;
        cut.truncated = true;
    }
    let first = shown_number(window.start + 1.0);
    if cut.first_line_exceeds_limit {
        let size = truncate::size(lines.line_length(start).map_err(failed)?);
        let text = format!(
            "[Line {first} is {size}, exceeds 50.0KB limit. Use bash: sed -n '{first}p' {given} | head -c {MAX_BYTES}]"
        );
        return Ok(with_truncation(text, cut.to_value()));
    }
    if cut.truncated {
        let why = if cut.by == Some(Limit::Bytes) { " (50.0KB limit)" } else { "" };
        let last = window.start + cut.output_lines as f64;
        let (last, next) = (shown_number(last), shown_number(last + 1.0));
        let notice = format!("[Showing lines {first}-{last} of {total}{why}. Use offset={next} to continue.]");
        return Ok(with_truncation(format!("{}\n\n{notice}", cut.content), cut.to_value()));
    }
    if let Some(end) = end_number.filter(|end| *end < total as f64) {
        let (left, next) = (shown_number(total as f64 - end), shown_number(end + 1.0));
        let notice = format!("[{left} more lines in file. Use offset={next} to continue.]");
        return Ok(ToolResult::text(format!("{}\n\n{notice}", cut.content)));
    }
    Ok(ToolResult::text(cut.content))
}

fn with_truncation(text: String, truncation: Value) -> ToolResult {
    ToolResult { details: Some(json!({ "truncation": truncation })), ..ToolResult::text(text) }
}

/// Lines of a text, joined by LFs.
struct Selection {
    /// All of it, or as much as shows that it is too long.
    text: String,
    /// Lines and bytes of all of it, when `text` is not all.
    totals: Option<(usize, usize)>,
}

fn select(lines: &mut Lines, start: usize, end: usize) -> std::io::Result<Selection> {
    if end == start {
        return Ok(Selection { text: String::new(), totals: None });
    }
    let from = lines.start_of(start)?;
    // The LF after the last selected line is not part of what is joined.
    let to = if end < lines.total() { lines.start_of(end)? - 1 } else { lines.length() };
    let bytes = lines.bytes(from, to.min(from + SHOWN))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if from + SHOWN >= to {
        return Ok(Selection { text, totals: None });
    }
    let ends_with_break = lines.bytes(to - 1, to)? == b"\n";
    let count = end - start - usize::from(ends_with_break);
    let size = if to - from <= MEASURED { decoded_size(&lines.bytes(from, to)?) } else { (to - from) as usize };
    Ok(Selection { text, totals: Some((count, size)) })
}

/// Bytes of the text after decoding: what is no UTF-8 takes three bytes then.
fn decoded_size(bytes: &[u8]) -> usize {
    bytes.utf8_chunks().map(|chunk| chunk.valid().len() + if chunk.invalid().is_empty() { 0 } else { 3 }).sum()
}
