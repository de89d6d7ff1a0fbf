//! What a command printed: for the model, for programs, and as progress.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Number, Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::accumulate::Accumulator;
use super::truncate::{self, Limit, Limits, Truncation};
use super::{Progress, ToolResult};

/// Time between progress updates.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes of output that programs get.
const STRUCTURED: usize = 1024 * 1024;

/// What differs between `bash` and `powershell`.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) shell: &'static str,
    /// The start of the names of files with long output.
    pub(super) files: &'static str,
}

/// Output that one thread adds to and another looks at.
pub(super) struct Output {
    all: Mutex<Accumulator>,
    more: Notify,
}

impl Output {
    pub(super) fn new(files: &'static str) -> Output {
        Output { all: Mutex::new(Accumulator::new(files, Limits::default())), more: Notify::new() }
    }

    fn all(&self) -> MutexGuard<'_, Accumulator> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, data: &[u8]) {
        self.all().push(data);
        self.more.notify_one();
    }

    pub(super) fn finish(&self) {
        self.all().finish();
    }

    /// Leaves the file with all of it, if there is one, to the caller.
    pub(super) fn keep(&self) -> Option<std::path::PathBuf> {
        self.all().keep()
    }

    /// For the model: the end, with a notice if that is not all; and the details (T250).
    pub(super) fn shown(&self) -> (String, Option<Value>) {
        let all = self.all();
        let shown = all.snapshot();
        if !shown.truncated {
            return (shown.content, None);
        }
        let text = format!("{}\n\n{}", shown.content, notice(&shown, &all));
        let details = details(&shown, &all);
        (text, Some(details))
    }

    /// For programs: all of it, up to a megabyte (T247).
    pub(super) fn structured(&self, code: Option<i32>, seconds: &Number) -> Value {
        let mut all = self.all();
        let (text, truncated) = all.full_text(STRUCTURED);
        let mut out = json!({"output": text, "truncated": truncated, "exit_code": code, "wall_time_seconds": seconds});
        if let (true, Some(path)) = (truncated, all.full_output()) {
            out["full_output_path"] = path.display().to_string().into();
        }
        out
    }
}

fn details(shown: &Truncation, all: &Accumulator) -> Value {
    let mut details = json!({"truncation": shown.to_value()});
    if let Some(path) = all.full_output() {
        details["fullOutputPath"] = path.display().to_string().into();
    }
    details
}

/// What the model reads when output was cut (T251–T253).
fn notice(shown: &Truncation, all: &Accumulator) -> String {
    let total = shown.total_lines;
    let first = total.saturating_sub(shown.output_lines) + 1;
    let mut text = if shown.last_line_partial {
        let (part, line) = (truncate::size(shown.output_bytes), truncate::size(all.last_line()));
        format!("[Showing last {part} of line {total} (line is {line}).")
    } else if shown.by == Some(Limit::Bytes) {
        format!("[Showing lines {first}-{total} of {total} (50.0KB limit).")
    } else {
        format!("[Showing lines {first}-{total} of {total}.")
    };
    match (all.full_output(), all.failure()) {
        (Some(path), _) if all.is_file_cut() => {
            text.push_str(&format!(" Too long to be saved whole; its beginning: {}", path.display()));
        }
        (Some(path), _) => text.push_str(&format!(" Full output: {}", path.display())),
        (None, Some(reason)) => text.push_str(&format!(" The full output could not be saved: {reason}")),
        (None, None) => {}
    }
    text + "]"
}

/// Sends the current end of the output now and then (T215).
pub(super) struct Report<'a> {
    progress: &'a Progress,
    output: &'a Output,
    last: Option<Instant>,
    told: usize,
}

impl<'a> Report<'a> {
    pub(super) fn new(progress: &'a Progress, output: &'a Output) -> Report<'a> {
        Report { progress, output, last: None, told: 0 }
    }

    /// Waits until there is something to tell and the time for it.
    pub(super) async fn due(&self) {
        if self.progress.sender.is_closed() {
            return std::future::pending().await; // nobody listens
        }
        self.output.more.notified().await;
        if let Some(last) = self.last {
            tokio::time::sleep_until(last + PAUSE).await;
        }
    }

    /// Tells what is new, if anything.
    pub(super) fn tell(&mut self) {
        let all = self.output.all();
        let total = all.total();
        if total == self.told || self.progress.sender.is_closed() {
            return;
        }
        let shown = all.snapshot();
        let details = shown.truncated.then(|| details(&shown, &all));
        drop(all);
        // A busy session skips this update; the next one says more.
        let details = Some(details.unwrap_or_else(|| json!({})));
        if self.progress.offer(ToolResult { details, ..ToolResult::text(shown.content) }) {
            self.told = total;
        }
        self.last = Some(Instant::now());
    }
}
