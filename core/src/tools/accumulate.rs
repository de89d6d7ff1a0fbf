//! The output of a command in bounded memory: its end, its totals, and a file with all of it once it is long (T260–T268).

use std::io;
use std::path::{Path, PathBuf};

use super::spill::{self, SpillFile};
use super::truncate::{self, Limit, Limits, Truncation};
use super::utf8_stream::Utf8Stream;

/// Output as it arrives. Its file goes with it, unless [`keep`](Accumulator::keep) was called.
pub struct Accumulator {
    limits: Limits,
    prefix: &'static str,
    decoder: Utf8Stream,
    /// The end of the decoded text, from `clipped` on.
    tail: String,
    /// Decoded bytes so far.
    decoded: usize,
    /// Raw bytes so far.
    raw: usize,
    breaks: usize,
    /// Decoded bytes of the last line so far.
    line: usize,
    /// The start of `tail` is inside a line whose beginning is gone.
    clipped: bool,
    /// Everything so far, as long as there is no file.
    chunks: Vec<u8>,
    spill: Spill,
    /// Most bytes of the file.
    most_in_file: usize,
    kept: bool,
}

impl Drop for Accumulator {
    fn drop(&mut self) {
        if let Spill::File(file) = &self.spill
            && !self.kept
        {
            file.remove();
        }
    }
}

enum Spill {
    /// Not needed yet.
    None,
    File(SpillFile),
    /// It could not be made or written; the reason.
    Failed(String),
}

impl Accumulator {
    /// Nothing yet. `prefix` begins the name of the file that long output goes to.
    pub fn new(prefix: &'static str, limits: Limits) -> Accumulator {
        Accumulator {
            limits,
            prefix,
            decoder: Utf8Stream::default(),
            tail: String::new(),
            decoded: 0,
            raw: 0,
            breaks: 0,
            line: 0,
            clipped: false,
            chunks: Vec::new(),
            spill: Spill::None,
            most_in_file: spill::MOST,
            kept: false,
        }
    }

    /// Bounds the file; 1 GiB otherwise. What is longer keeps its beginning there.
    pub fn most_in_file(mut self, bytes: usize) -> Accumulator {
        self.most_in_file = bytes;
        self
    }

    /// Adds bytes as they were written.
    pub fn push(&mut self, data: &[u8]) {
        self.raw += data.len();
        match &mut self.spill {
            Spill::None => self.chunks.extend_from_slice(data),
            Spill::File(file) => {
                if let Err(error) = file.write(data) {
                    file.remove();
                    self.spill = Spill::Failed(error.to_string());
                }
            }
            Spill::Failed(_) => {}
        }
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.push(data, |text| self.add(text));
        self.decoder = decoder;
        self.spill_if_long();
    }

    /// Says that no more comes.
    pub fn finish(&mut self) {
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.finish(|text| self.add(text));
        self.decoder = decoder;
        self.spill_if_long();
    }

    fn add(&mut self, text: &str) {
        self.decoded += text.len();
        self.breaks += memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.line = match memchr::memrchr(b'\n', text.as_bytes()) {
            Some(at) => text.len() - at - 1,
            None => self.line + text.len(),
        };
        let keep = 2 * self.limits.bytes;
        if text.len() >= 2 * keep {
            // Longer than anything that is kept: what was before it is gone.
            let cut = self.clip(text, keep);
            self.tail.clear();
            self.tail.push_str(&text[cut..]);
            return;
        }
        self.tail.push_str(text);
        if self.tail.len() > 2 * keep {
            let tail = std::mem::take(&mut self.tail);
            let cut = self.clip(&tail, keep);
            self.tail = tail;
            self.tail.drain(..cut);
        }
    }

    /// Where to cut a text so that its last `keep` bytes are left, or a little less.
    fn clip(&mut self, text: &str, keep: usize) -> usize {
        let mut cut = text.len() - keep;
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        self.clipped = text.as_bytes()[cut - 1] != b'\n';
        cut
    }

    fn is_long(&self) -> bool {
        self.decoded > self.limits.bytes || self.lines() > self.limits.lines
    }

    fn spill_if_long(&mut self) {
        if !matches!(self.spill, Spill::None) || !(self.raw > self.limits.bytes || self.is_long()) {
            return;
        }
        self.spill = match SpillFile::create(self.prefix, &std::mem::take(&mut self.chunks), self.most_in_file) {
            Ok(file) => Spill::File(file),
            Err(error) => Spill::Failed(error.to_string()),
        };
    }

    /// Bytes so far, as they were written.
    pub fn total(&self) -> usize {
        self.raw
    }

    fn lines(&self) -> usize {
        self.breaks + usize::from(self.line > 0)
    }

    /// The file with everything, or with the [beginning](Accumulator::is_file_cut) of it, if there is one.
    pub fn full_output(&self) -> Option<&Path> {
        match &self.spill {
            Spill::File(file) => Some(file.path()),
            _ => None,
        }
    }

    /// There was more than the file takes: it has the beginning only.
    pub fn is_file_cut(&self) -> bool {
        matches!(&self.spill, Spill::File(file) if file.is_cut())
    }

    /// Leaves the file, if there is one, to the caller.
    pub fn keep(&mut self) -> Option<PathBuf> {
        self.kept = true;
        self.full_output().map(Path::to_path_buf)
    }

    /// Why there is no file although the output is long.
    pub fn failure(&self) -> Option<&str> {
        match &self.spill {
            Spill::Failed(reason) => Some(reason),
            _ => None,
        }
    }

    /// The size of the last line.
    pub fn last_line(&self) -> usize {
        self.line
    }

    /// What to show now: the end, within the limits (T266).
    pub fn snapshot(&self) -> Truncation {
        let mut tail = self.tail.as_str();
        if self.clipped
            && let Some(at) = memchr::memchr(b'\n', tail.as_bytes())
            && at + 1 < tail.len()
        {
            tail = &tail[at + 1..];
        }
        let mut shown = truncate::tail_within(tail, self.limits);
        if self.is_long() && !shown.truncated {
            shown.by = Some(if self.decoded > self.limits.bytes { Limit::Bytes } else { Limit::Lines });
        }
        shown.truncated = self.is_long();
        shown.total_lines = self.lines();
        shown.total_bytes = self.decoded;
        shown
    }

    /// All of the text up to `most` bytes, and whether that was all: of more its two ends (T268).
    pub fn full_text(&mut self, most: usize) -> (String, bool) {
        let file = match &mut self.spill {
            Spill::None => return (decode(&self.chunks), false),
            Spill::File(file) => file,
            Spill::Failed(_) => return (self.tail.clone(), self.decoded > self.tail.len()),
        };
        match ends(file, self.raw, most, self.tail.as_bytes()) {
            Ok((head, tail)) if self.raw > most => {
                let head = &head[..complete(&head)];
                let start = tail.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
                let omitted = self.raw - most / 2 - tail.len();
                let text = format!(
                    "{}\n\n[... {omitted} bytes omitted ...]\n\n{}",
                    decode(head),
                    String::from_utf8_lossy(&tail[start..])
                );
                (text, true)
            }
            Ok((all, _)) => (decode(&all), false),
            Err(error) => {
                self.spill = Spill::Failed(format!("{}: {error}", file.path().display()));
                (self.tail.clone(), true)
            }
        }
    }
}

/// The first and last `most / 2` bytes, or everything in the first. Of the end that is not in the file there is `tail`.
fn ends(file: &mut SpillFile, size: usize, most: usize, tail: &[u8]) -> io::Result<(Vec<u8>, Vec<u8>)> {
    if size <= most && !file.is_cut() {
        return Ok((file.read(0, size)?, Vec::new()));
    }
    let half = most / 2;
    let tail = match file.is_cut() {
        true => tail[tail.len().saturating_sub(most - half)..].to_vec(),
        false => file.read(size - (most - half), most - half)?,
    };
    Ok((file.read(0, half)?, tail))
}

/// How many bytes are left without an incomplete character at the end.
fn complete(bytes: &[u8]) -> usize {
    let back = bytes.iter().rev().take(4).position(|byte| byte & 0xc0 != 0x80);
    let Some(start) = back.map(|back| bytes.len() - back - 1) else { return bytes.len() };
    let needed = match bytes[start] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if bytes.len() - start < needed { start } else { bytes.len() }
}

/// As [`Utf8Stream`] decodes.
fn decode(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_without_end_does_not_fill_the_disk() {
        let mut output = Accumulator::new("branchline-test", Limits { lines: 10, bytes: 1000 }).most_in_file(5000);
        let start: String = (0..300).map(|number| format!("line {number:04}\n")).collect();
        output.push(start.as_bytes());
        assert!(!output.is_file_cut());
        for _ in 0..100 {
            output.push(&[b'x'; 1000]);
        }
        output.push(b"\nthe end");
        output.finish();
        let path = output.full_output().unwrap().to_path_buf();
        let saved = std::fs::read_to_string(&path).unwrap();
        assert!(output.is_file_cut());
        assert_eq!((saved.len(), &saved[..start.len()]), (5000, &*start));
        let (text, cut) = output.full_text(4000);
        assert!(
            cut && text.starts_with("line 0000\n")
                && text.contains(" bytes omitted ...]")
                && text.ends_with("\nthe end")
        );
        drop(output);
        assert!(!path.exists());
    }
}
