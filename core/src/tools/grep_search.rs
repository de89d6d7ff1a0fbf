//! Searching the files of a walk for a pattern.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use tokio_util::sync::CancellationToken;

use super::truncate::MAX_BYTES;
use super::walk::{Bound, Entry, Key, Visit};
use super::walk_source::{Content, Source};

/// Characters (UTF-16 units) shown of a line.
const LINE: usize = 500;
/// Files up to this size are read at once.
const WHOLE: usize = 1024 * 1024;
/// A NUL byte in this much of a file's start makes it a binary file.
const START: usize = 64 * 1024;
/// A file with a longer line is not searched to its end: a line must fit in memory.
const LONGEST_LINE: usize = 256 * 1024 * 1024;
/// Text kept of all files together before what cannot be shown is dropped.
const KEEP: usize = 4 * 1024 * 1024;

/// A search, and what it found so far.
pub(super) struct Search<'a> {
    matcher: RegexMatcher,
    context: usize,
    limit: usize,
    source: &'a Source,
    cancel: &'a CancellationToken,
    root: PathBuf,
    anchor: Option<OwnedFd>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    files: BTreeMap<Key, FileMatches>,
    matches: usize,
    /// Bytes of text in `files`.
    kept: usize,
}

/// The lines found in one file, in order.
pub(super) struct FileMatches {
    pub(super) key: Key,
    pub(super) lines: Vec<Line>,
    /// The file has further matches.
    pub(super) more: bool,
    matches: usize,
    text: String,
}

/// A line found.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) is_match: bool,
    /// It was too long.
    pub(super) cut: bool,
    /// Bytes to show: a few thousand at most.
    length: u32,
    /// Where in the file's text it is, if it is there; only the first 50 KB are kept.
    start: Option<u32>,
}

impl Line {
    /// Bytes to show.
    pub(super) fn length(&self) -> usize {
        self.length as usize
    }
}

impl FileMatches {
    /// What to show of a line, if that was kept.
    pub(super) fn text(&self, line: &Line) -> Option<&str> {
        let start = line.start? as usize;
        self.text.get(start..start + line.length as usize)
    }

    fn drop_text(&mut self) {
        self.text = String::new();
        for line in &mut self.lines {
            line.start = None;
        }
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(
        pattern: &str,
        literal: bool,
        ignore_case: bool,
        context: usize,
        limit: usize,
        source: &'a Source,
        cancel: &'a CancellationToken,
    ) -> Result<Search<'a>, grep_regex::Error> {
        let matcher = RegexMatcherBuilder::new()
            .multi_line(true)
            .fixed_strings(literal)
            .case_insensitive(ignore_case)
            .line_terminator(Some(b'\n'))
            .build(pattern)?;
        Ok(Search {
            matcher,
            context,
            limit,
            source,
            cancel,
            root: PathBuf::new(),
            anchor: None,
            found: Mutex::default(),
        })
    }

    /// The same search for the files below a directory.
    pub(super) fn below(self, root: &Path) -> Search<'a> {
        Search { root: root.to_path_buf(), anchor: self.source.anchor(root), ..self }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn context(&self) -> usize {
        self.context
    }

    /// Everything found, in the order of paths.
    pub(super) fn found(self) -> Vec<FileMatches> {
        self.found.into_inner().unwrap_or_else(PoisonError::into_inner).files.into_values().collect()
    }

    /// Searches one file outside of a walk. Fails with `Interrupted` when the token fired.
    pub(super) fn file_alone(&self, entry: &Entry, directory: &Path) -> io::Result<Option<FileMatches>> {
        // One that is named is searched also when it is binary.
        let mut local = self.local_with(BinaryDetection::none());
        let found = self.search(&mut local, entry, directory)?;
        if self.cancel.is_cancelled() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(found) }
    }

    fn search(&self, local: &mut Local, entry: &Entry, root: &Path) -> io::Result<Option<FileMatches>> {
        let mut sink = Lines {
            limit: self.limit,
            context: self.context as u64,
            last: 0,
            out: FileMatches {
                key: entry.key.clone(),
                lines: Vec::new(),
                more: false,
                matches: 0,
                text: String::new(),
            },
        };
        match self.source.open_below(root, self.anchor.as_ref(), &entry.relative())? {
            Content::Bytes(bytes) => self.slice(&mut local.searcher, local.skips_binary, &bytes, &mut sink)?,
            Content::Disk(mut file) => {
                let length = fill(&mut file, &mut local.buffer)?;
                if length < WHOLE {
                    self.slice(&mut local.searcher, local.skips_binary, &local.buffer[..length], &mut sink)?;
                } else {
                    let rest = Cancellable { file, cancel: self.cancel };
                    local.searcher.search_reader(&self.matcher, local.buffer.chain(rest), &mut sink)?;
                }
            }
        }
        if sink.out.matches == 0 {
            return Ok(None);
        }
        sink.out.key = entry.key.clone();
        Ok(Some(sink.out))
    }

    fn local_with(&self, binary: BinaryDetection) -> Local {
        let skips_binary = binary.quit_byte().is_some();
        let searcher = SearcherBuilder::new()
            .binary_detection(binary)
            .heap_limit(Some(LONGEST_LINE))
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .build();
        Local { searcher, skips_binary, buffer: vec![0; WHOLE].into_boxed_slice() }
    }

    /// Searches a file in memory, as it would be searched piece by piece: binary files end at the first NUL, and one in
    /// their start makes them uninteresting.
    fn slice(&self, searcher: &mut Searcher, skips_binary: bool, bytes: &[u8], sink: &mut Lines) -> io::Result<()> {
        if !skips_binary {
            return searcher.search_slice(&self.matcher, bytes, sink);
        }
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            return searcher.search_reader(&self.matcher, bytes, sink); // UTF-16 is full of NULs
        }
        let bytes = match memchr::memchr(0, bytes) {
            Some(at) if at < START => return Ok(()),
            Some(at) => &bytes[..memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1)],
            None => bytes,
        };
        searcher.search_slice(&self.matcher, bytes, sink)
    }

    fn add(&self, file: FileMatches, bound: &Bound) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found = &mut *found;
        found.matches += file.matches;
        found.kept += file.text.len();
        found.files.insert(file.key.clone(), file);
        // The files that hold the first matches, and one more match as the proof that there are more.
        while let Some(last) = found.files.last_entry() {
            if found.matches - last.get().matches <= self.limit {
                break;
            }
            let last = last.remove();
            found.matches -= last.matches;
            found.kept -= last.text.len();
        }
        if found.matches > self.limit
            && let Some((last, _)) = found.files.last_key_value()
        {
            bound.lower(last);
        }
        if found.kept > KEEP {
            let mut shown = 0;
            found.kept = 0;
            for file in found.files.values_mut() {
                if shown > MAX_BYTES {
                    file.drop_text();
                }
                shown += file.text.len();
                found.kept += file.text.len();
            }
        }
    }
}

/// What one thread needs.
pub(super) struct Local {
    searcher: Searcher,
    /// Binary files are passed over.
    skips_binary: bool,
    buffer: Box<[u8]>,
}

impl Visit for Search<'_> {
    type Local = Local;
    const FILES: bool = true;

    fn local(&self) -> Local {
        self.local_with(BinaryDetection::quit(0))
    }

    fn file(&self, local: &mut Local, file: &Entry, bound: &Bound) {
        // What cannot be read is passed over, like what is not there any more.
        if let Ok(Some(found)) = self.search(local, file, &self.root) {
            self.add(found, bound);
        }
    }
}

/// Reads until the buffer is full or the file is over.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// A file that seems to end when the token fires.
struct Cancellable<'a> {
    file: std::fs::File,
    cancel: &'a CancellationToken,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() { Ok(0) } else { self.file.read(buffer) }
    }
}

/// Collects the lines of one file: as many matches as may be shown, the lines around them, and whether there are more.
struct Lines {
    limit: usize,
    context: u64,
    /// Number of the last match that may be shown.
    last: u64,
    out: FileMatches,
}

impl Lines {
    fn push(&mut self, number: u64, is_match: bool, bytes: &[u8]) {
        let (text, cut) = cut(bytes);
        let kept = self.out.text.len() <= MAX_BYTES;
        let start = self.out.text.len();
        if kept {
            self.out.text.push_str(&text);
        }
        let start = kept.then_some(start as u32);
        self.out.lines.push(Line { number, is_match, cut, length: text.len() as u32, start });
    }

    /// Whether a line after the last match still belongs to it.
    fn trails(&self, number: u64) -> bool {
        number <= self.last.saturating_add(self.context)
    }
}

impl Sink for Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        for (number, line) in (found.line_number().unwrap_or_default()..).zip(found.lines()) {
            if self.out.matches < self.limit {
                self.out.matches += 1;
                self.last = number;
                self.push(number, true, line);
            } else {
                self.out.matches = self.limit.saturating_add(1);
                self.out.more = true;
                if !self.trails(number) {
                    return Ok(false);
                }
                self.push(number, true, line);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let number = context.line_number().unwrap_or_default();
        if self.out.matches < self.limit || self.trails(number) {
            self.push(number, false, context.bytes());
        }
        Ok(!self.out.more || self.trails(number))
    }
}

/// A line without its end, cut to [`LINE`] characters, and whether it was longer (T48, T359, T360).
fn cut(line: &[u8]) -> (Cow<'_, str>, bool) {
    let line = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
    if line.len() <= LINE {
        return (String::from_utf8_lossy(line), false);
    }
    // Three bytes are at least one character: more need not be looked at.
    let text = String::from_utf8_lossy(&line[..line.len().min(3 * LINE + 8)]);
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > LINE {
            return (Cow::Owned(format!("{}... [truncated]", &text[..at])), true);
        }
    }
    (Cow::Owned(text.into_owned()), false)
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_lines() {
        assert_eq!(cut(b"a\rb\r\n"), ("a\rb".into(), false));
        assert_eq!(cut(&[b'x'; 500]), ("x".repeat(500).into(), false));
        assert_eq!(cut(&[b'x'; 501]), (format!("{}... [truncated]", "x".repeat(500)).into(), true));
        assert!(!cut("日".repeat(500).as_bytes()).1);
        let odd = format!("x{}", "😀".repeat(300));
        assert_eq!(cut(odd.as_bytes()).0, format!("x{}... [truncated]", "😀".repeat(249)));
        assert!(cut(&[0xff; 4000]).0.starts_with('\u{fffd}'));
    }
}
