//! `bash`: a command in a shell (T200–T253).
//!
//! The command runs on a thread of its own kind (see `system::process`) in a process group of its own, without
//! input and without the host's secrets. Its output is kept in bounded memory and shown from the end.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::accumulate::Accumulator;
use super::truncate::{self, Limit, Truncation};
use super::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, blocking, environment};
use crate::system::process::{self, End};

const DESCRIPTION: &str = "Run a command with bash in the working directory and get what it writes to stdout and stderr. \
Shows the last 2000 lines or 50 KB, whichever is less; longer output is kept in a temporary file that the result names. \
There is no input. Give a timeout in seconds for commands that may not end.";

/// Time between progress updates.
const PROGRESS: Duration = Duration::from_millis(100);
/// Longest timeout in seconds.
const MAX_TIMEOUT: f64 = 2_147_483.647;

/// The tool.
pub struct BashTool {
    definition: ToolDefinition,
}

impl BashTool {
    /// The tool with its standard definition.
    pub fn new() -> BashTool {
        let parameters = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "Command to run"},
                "timeout": {"type": "number", "description": "Seconds after which it is stopped. Default: never"}
            },
            "required": ["command"]
        });
        let mut definition = ToolDefinition::new("bash", DESCRIPTION, parameters);
        definition.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
        definition.snippet = Some("run a command".to_owned());
        BashTool { definition }
    }
}

impl Default for BashTool {
    fn default() -> Self {
        BashTool::new()
    }
}

impl Tool for BashTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        Box::pin(blocking(move || run(&call)))
    }
}

fn run(call: &ToolCall) -> Result<ToolResult, ToolError> {
    let command = call.arguments.get("command").and_then(Value::as_str);
    let command = command.ok_or_else(|| ToolError::new("command must be a string"))?;
    let timeout = timeout(call.arguments.get("timeout"))?;
    if call.cancel.is_cancelled() {
        return Err(ToolError::aborted());
    }
    if !call.cwd.is_dir() {
        let text = format!("Working directory does not exist: {}\nCannot execute bash commands.", call.cwd.display());
        return Err(ToolError::new(text));
    }
    let mut shell = Command::new(shell());
    shell.arg("-c").arg(command).current_dir(&call.cwd);
    environment::scrub(&mut shell, &call.session_id);

    let output = std::cell::RefCell::new(Accumulator::default());
    let mut report = Report { call, last: None, seen: 0 };
    call.progress.offer(ToolResult::default());
    let limit = timeout.map(Duration::from_secs_f64);
    let take = |data: &[u8]| output.borrow_mut().push(data);
    let ended = process::run(shell, &call.cancel, limit, PROGRESS, take, || report.tell(&output.borrow(), false))
        .map_err(|error| ToolError::new(format!("cannot run the shell: {error}")))?;
    let output = output.into_inner();
    report.tell(&output, true);
    result(&output, &ended, call.arguments.get("timeout"))
}

/// `/bin/bash`, else whatever `sh` is (T201).
fn shell() -> &'static str {
    if Path::new("/bin/bash").exists() { "/bin/bash" } else { "sh" }
}

fn timeout(value: Option<&Value>) -> Result<Option<f64>, ToolError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    match value.as_f64() {
        Some(seconds) if seconds > MAX_TIMEOUT => {
            Err(ToolError::new(format!("timeout must be at most {MAX_TIMEOUT} seconds")))
        }
        Some(seconds) if seconds > 0.0 => Ok(Some(seconds)),
        _ => Err(ToolError::new("timeout must be a finite number of seconds above 0")),
    }
}

/// Sends the current end of the output now and then (T215).
struct Report<'a> {
    call: &'a ToolCall,
    last: Option<Instant>,
    seen: usize,
}

impl Report<'_> {
    fn tell(&mut self, output: &Accumulator, last: bool) {
        let due = last || self.last.is_none_or(|last| last.elapsed() >= PROGRESS);
        let total = output.total();
        if !due || total == self.seen {
            return;
        }
        let shown = output.snapshot();
        let details = shown.truncated.then(|| details(&shown, output));
        // A busy session skips this update; the next one says more.
        if self.call.progress.offer(ToolResult { details, ..ToolResult::text(shown.content) }) {
            self.seen = total;
        }
        self.last = Some(Instant::now());
    }
}

fn details(shown: &Truncation, output: &Accumulator) -> Value {
    let mut details = json!({"truncation": shown.to_value()});
    if let (Some(path), Some(object)) = (output.full_output(), details.as_object_mut()) {
        object.insert("fullOutputPath".to_owned(), path.display().to_string().into());
    }
    details
}

fn result(output: &Accumulator, ended: &process::Ended, timeout: Option<&Value>) -> Result<ToolResult, ToolError> {
    let shown = output.snapshot();
    let mut text = shown.content.clone();
    if shown.truncated {
        text.push_str("\n\n");
        text.push_str(&notice(&shown, output));
    }
    let separate = |text: &str, line: String| if text.is_empty() { line } else { format!("{text}\n\n{line}") };
    match ended.end {
        End::TimedOut => {
            let seconds = timeout.map(crate::json::to_string).unwrap_or_default();
            return Err(ToolError::new(separate(&text, format!("Command timed out after {seconds} seconds"))));
        }
        End::Cancelled => return Err(ToolError::new(separate(&text, "Command aborted".to_owned()))),
        End::Finished => {}
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    let failure = match ended.code {
        Some(0) => None,
        Some(code) => Some(format!("Command exited with code {code}")),
        None => Some("The command ended without an exit code.".to_owned()),
    };
    let is_error = failure.is_some();
    if let Some(failure) = failure {
        text = separate(&text, failure);
    }
    let details = shown.truncated.then(|| details(&shown, output));
    Ok(ToolResult { details, is_error, ..ToolResult::text(text) })
}

/// What the model reads when output was cut (T250–T253).
fn notice(shown: &Truncation, output: &Accumulator) -> String {
    let total = shown.total_lines;
    let first = total.saturating_sub(shown.output_lines) + 1;
    let mut text = if shown.last_line_partial {
        let (part, line) = (truncate::size(shown.output_bytes), truncate::size(output.last_line()));
        format!("[Showing last {part} of line {total} (line is {line}).")
    } else if shown.by == Some(Limit::Bytes) {
        format!("[Showing lines {first}-{total} of {total} (50.0KB limit).")
    } else {
        format!("[Showing lines {first}-{total} of {total}.")
    };
    if let Some(path) = output.full_output() {
        text.push_str(&format!(" Full output: {}", path.display()));
    }
    text + "]"
}
