//! The output of a command in bounded memory: its end, its totals, and a file with all of it once it is long (T260–T266).

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::truncate::{self, Limit, MAX_BYTES, MAX_LINES, Truncation};

/// The end is cut back to this when it has grown to twice as much.
const KEEP: usize = 2 * MAX_BYTES;

#[derive(Default)]
pub(super) struct Accumulator {
    tail: Vec<u8>,
    bytes: usize,
    breaks: usize,
    /// Bytes of the last line so far.
    line: usize,
    /// The start of `tail` is inside a line whose beginning is gone.
    clipped: bool,
    spill: Option<Spill>,
    spill_failed: bool,
}

struct Spill {
    file: File,
    path: PathBuf,
}

impl Accumulator {
    pub(super) fn push(&mut self, data: &[u8]) {
        self.bytes += data.len();
        self.breaks += memchr::memchr_iter(b'\n', data).count();
        self.line = match memchr::memrchr(b'\n', data) {
            Some(at) => data.len() - at - 1,
            None => self.line + data.len(),
        };
        self.tail.extend_from_slice(data);
        if let Some(spill) = &mut self.spill {
            self.spill_failed |= spill.file.write_all(data).is_err();
        } else if !self.spill_failed && (self.bytes > MAX_BYTES || self.lines() > MAX_LINES) {
            // Nothing was cut from the tail before this point: it holds everything so far.
            match Spill::new(&self.tail) {
                Ok(spill) => self.spill = Some(spill),
                Err(_) => self.spill_failed = true,
            }
        }
        if self.tail.len() > 2 * KEEP {
            let cut = self.tail.len() - KEEP;
            self.clipped = self.tail[cut - 1] != b'\n';
            self.tail.drain(..cut);
        }
    }

    /// Bytes so far.
    pub(super) fn total(&self) -> usize {
        self.bytes
    }

    fn lines(&self) -> usize {
        self.breaks + usize::from(self.line > 0)
    }

    /// The file with everything, if there is one and it is complete.
    pub(super) fn full_output(&self) -> Option<&Path> {
        self.spill.as_ref().filter(|_| !self.spill_failed).map(|spill| spill.path.as_path())
    }

    /// The size of the last line.
    pub(super) fn last_line(&self) -> usize {
        self.line
    }

    /// What to show now.
    pub(super) fn snapshot(&self) -> Truncation {
        let mut tail = self.tail.as_slice();
        if self.clipped
            && let Some(at) = memchr::memchr(b'\n', tail)
            && at + 1 < tail.len()
        {
            tail = &tail[at + 1..];
        }
        let text = String::from_utf8_lossy(tail);
        let text = if self.bytes == self.tail.len() { text.trim_start_matches('\u{feff}') } else { &text };
        let mut shown = truncate::tail(text);
        shown.total_lines = self.lines();
        shown.total_bytes = self.bytes.max(shown.total_bytes);
        if !shown.truncated && (self.lines() > MAX_LINES || self.bytes > MAX_BYTES) {
            shown.truncated = true;
            shown.by = Some(if self.bytes > MAX_BYTES { Limit::Bytes } else { Limit::Lines });
        }
        shown
    }
}

impl Spill {
    fn new(start: &[u8]) -> std::io::Result<Spill> {
        let file = tempfile::Builder::new().prefix("branchline-bash-").suffix(".log").rand_bytes(16).tempfile()?;
        let (mut file, path) = file.keep()?;
        file.write_all(start)?;
        Ok(Spill { file, path })
    }
}
