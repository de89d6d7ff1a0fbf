//! `read`: part of a text file, from a line on (T80–T91).
//!
//! The file is read once in chunks: lines that cannot be shown are counted, not kept, so a file of any size takes
//! bounded memory. Images are not recognised yet.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::os_error::os_error;
use super::truncate::{self, Limit, MAX_BYTES, MAX_LINES};
use super::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, blocking, path};

const DESCRIPTION: &str = "Read a text file. Shows at most 2000 lines or 50 KB, whichever comes first; for a longer file \
go on with offset and limit.";

/// The tool.
pub struct ReadTool {
    definition: ToolDefinition,
}

impl ReadTool {
    /// The tool with its standard definition.
    pub fn new() -> ReadTool {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to read, relative to the working directory or absolute"},
                "offset": {"type": "number", "description": "First line to show, counted from 1. Default 1"},
                "limit": {"type": "number", "description": "How many lines to show. Default: as many as fit"}
            },
            "required": ["path"]
        });
        let mut definition = ToolDefinition::new("read", DESCRIPTION, parameters);
        definition.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
        definition.snippet = Some("show a file, or part of it".to_owned());
        definition.guidelines = vec!["To look at a file use read; do not print it with a command.".to_owned()];
        ReadTool { definition }
    }
}

impl Default for ReadTool {
    fn default() -> Self {
        ReadTool::new()
    }
}

impl Tool for ReadTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        Box::pin(async move {
            let cancel = call.cancel.clone();
            let reading = blocking(move || read(&call));
            tokio::select! {
                biased;
                // The read itself looks at the token too, and ends in its own time.
                () = cancel.cancelled() => Err(ToolError::aborted()),
                result = reading => result,
            }
        })
    }
}

fn read(call: &ToolCall) -> Result<ToolResult, ToolError> {
    let given = call.arguments.get("path").and_then(Value::as_str);
    let given = given.ok_or_else(|| ToolError::new("path must be a string"))?;
    let number = |key: &str| call.arguments.get(key).and_then(Value::as_f64);
    let start = number("offset").map_or(0, |offset| (offset.max(1.0) as usize) - 1);
    let limit = number("limit").map(|limit| limit.max(0.0) as usize);
    let path = path::existing_variant(path::resolve(given, &call.cwd)?);
    let selection = select(&path, start, limit, &call.cancel)?;
    show(given, &path, start, limit, &selection)
}

/// The wanted lines of a file, as far as they can be shown, and the totals.
struct Selection {
    kept: Vec<u8>,
    /// Everything wanted was kept.
    complete: bool,
    /// Wanted lines and their bytes with the LFs between them.
    lines: usize,
    bytes: usize,
    first_line: usize,
    /// Lines of the whole file, the empty piece after a last LF included (T84).
    total_lines: usize,
    ends_with_break: bool,
}

fn select(path: &Path, start: usize, limit: Option<usize>, cancel: &CancellationToken) -> Result<Selection, ToolError> {
    let mut file = File::open(path).map_err(|error| os_error(&error, "access", path))?;
    let end = limit.map_or(usize::MAX, |limit| start.saturating_add(limit));
    let mut out = Selection {
        kept: Vec::new(),
        complete: true,
        lines: 0,
        bytes: 0,
        first_line: 0,
        total_lines: 1,
        ends_with_break: false,
    };
    let mut buffer = vec![0; 256 * 1024];
    loop {
        if cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        let length = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(os_error(&error, "read", path)),
        };
        out.take(&buffer[..length], start, end);
    }
    let last = out.total_lines.min(end);
    out.lines = last.saturating_sub(start);
    // A LF that follows the last wanted line was counted with it.
    if out.total_lines > end && out.lines > 0 {
        out.bytes -= 1;
        if out.kept.len() > out.bytes {
            out.kept.pop();
        }
    }
    out.ends_with_break = out.kept.last() == Some(&b'\n');
    Ok(out)
}

impl Selection {
    fn take(&mut self, mut data: &[u8], start: usize, end: usize) {
        while !data.is_empty() {
            let line = self.total_lines - 1;
            if line < start || line >= end {
                // Only the number of lines matters here.
                let skip = if line < start { start - line } else { usize::MAX };
                match memchr::memchr_iter(b'\n', data).take(skip).enumerate().last() {
                    Some((count, at)) => {
                        self.total_lines += count + 1;
                        data = if count + 1 == skip { &data[at + 1..] } else { &[] };
                    }
                    None => data = &[],
                }
                continue;
            }
            let (piece, rest) = match memchr::memchr(b'\n', data) {
                Some(at) => data.split_at(at + 1),
                None => (data, &[][..]),
            };
            let broken = piece.last() == Some(&b'\n');
            self.bytes += piece.len();
            if line == start {
                self.first_line += piece.len() - usize::from(broken);
            }
            // One line and one byte more than can be shown is enough to know that it was too much.
            let room = (MAX_BYTES + 2).saturating_sub(self.kept.len());
            if line - start <= MAX_LINES && room > 0 {
                self.complete &= piece.len() <= room;
                self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
            } else {
                self.complete = false;
            }
            self.total_lines += usize::from(broken);
            data = rest;
        }
    }
}

fn show(given: &str, path: &Path, start: usize, limit: Option<usize>, it: &Selection) -> Result<ToolResult, ToolError> {
    let total = it.total_lines;
    if start >= total {
        let text = format!("Offset {} is beyond end of file ({total} lines total): {}", start + 1, path.display());
        return Err(ToolError::new(text));
    }
    let text = String::from_utf8_lossy(&it.kept);
    let mut shown = truncate::head(&text);
    if !it.complete {
        shown.total_lines = it.lines - usize::from(limit.is_none() && it.ends_with_break && it.lines > 0);
        shown.total_bytes = it.bytes;
        shown.truncated = true;
    }
    let (first, next) = (start + 1, start + shown.output_lines + 1);
    if shown.first_line_exceeds_limit {
        shown.total_bytes = it.bytes;
        let size = truncate::size(it.first_line);
        let text = format!(
            "[Line {first} is {size}, exceeds 50.0KB limit. Use bash: sed -n '{first}p' {given} | head -c {MAX_BYTES}]"
        );
        return Ok(ToolResult { details: Some(json!({"truncation": shown.to_value()})), ..ToolResult::text(text) });
    }
    if shown.truncated {
        let why = if shown.by == Some(Limit::Bytes) { " (50.0KB limit)" } else { "" };
        let last = next - 1;
        let notice = format!("[Showing lines {first}-{last} of {total}{why}. Use offset={next} to continue.]");
        let text = format!("{}\n\n{notice}", shown.content);
        return Ok(ToolResult { details: Some(json!({"truncation": shown.to_value()})), ..ToolResult::text(text) });
    }
    let left = total - (start + it.lines);
    if limit.is_some() && left > 0 {
        let next = start + it.lines + 1;
        let notice = format!("[{left} more lines in file. Use offset={next} to continue.]");
        return Ok(ToolResult::text(format!("{text}\n\n{notice}")));
    }
    Ok(ToolResult::text(text))
}
