//! Server-sent events, fed with bytes as they arrive (P227).
//!
//! Lines end with LF, CR or CRLF, wherever the reads fall. A byte is looked at once by the search for line ends and once
//! copied, so a line of a hundred megabytes in reads of one byte costs linear time.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

/// The largest event accepted, in bytes, when nothing else was said. An event holds a whole tool call at the most.
pub const MAX_EVENT: usize = 64 << 20;

/// What went wrong in a stream of events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// An event grew beyond the limit; nothing after it can be trusted.
    #[error("an event of the stream is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Its `event:` field; empty without one.
    pub name: Cow<'a, str>,
    /// Its `data:` lines joined by LF. Bytes that are no UTF-8 are replaced.
    pub data: Cow<'a, str>,
}

/// The reader. Give it bytes with [`push`](Self::push), take events with [`next_event`](Self::next_event) until there is
/// none, and at the end of the stream take the last one with [`finish`](Self::finish).
#[derive(Debug)]
pub struct SseReader {
    /// What has arrived; before `start` it is used up, before `scanned` it holds no line end.
    buffer: Vec<u8>,
    start: usize,
    scanned: usize,
    /// The last line ended with CR: an LF that comes first belongs to it.
    skip_lf: bool,
    at_beginning: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The event in `name` and `data` was handed out.
    taken: bool,
    last_id: String,
    retry_ms: Option<u64>,
    limit: usize,
    failed: bool,
}

impl Default for SseReader {
    fn default() -> SseReader {
        SseReader::new(MAX_EVENT)
    }
}

impl SseReader {
    /// A reader that refuses events of more than `limit` bytes.
    pub fn new(limit: usize) -> SseReader {
        SseReader {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            skip_lf: false,
            at_beginning: true,
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            taken: false,
            last_id: String::new(),
            retry_ms: None,
            limit,
            failed: false,
        }
    }

    /// The last `id:` that was sent; empty without one.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// The last `retry:` that was sent, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Takes in what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
        } else if self.start > self.buffer.len() / 2 {
            // Less is moved than was used up since the last time, so this stays linear.
            self.buffer.drain(..self.start);
        } else {
            self.buffer.extend_from_slice(bytes);
            return;
        }
        self.scanned -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event, `None` if more bytes are needed.
    ///
    /// Errors: an event is too large. The reader gives the same error from then on.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseError> {
        if self.failed {
            return Err(self.too_large());
        }
        self.forget_taken();
        if self.at_beginning && !self.begin() {
            return Ok(None);
        }
        while let Some((from, to)) = self.line() {
            if from == to {
                if self.has_data {
                    return Ok(Some(self.take()));
                }
                self.name.clear();
                continue;
            }
            if let Some(data) = self.only_line(from, to) {
                return Ok(Some(SseEvent { name: Cow::Borrowed(""), data: text(&self.buffer[data]) }));
            }
            if to - from <= self.limit {
                self.field(from, to);
            }
            // A long line is too much when it is complete as well as before, so reads make no difference.
            if (to - from).max(self.data.len() + self.name.len()) > self.limit {
                self.failed = true;
                return Err(self.too_large());
            }
        }
        if self.buffer.len() - self.start > self.limit {
            self.failed = true;
            return Err(self.too_large());
        }
        Ok(None)
    }

    /// The event that the end of the stream completes: a last line counts without its line end, and a last event without
    /// its blank line.
    pub fn finish(&mut self) -> Option<SseEvent<'_>> {
        if self.failed {
            return None;
        }
        self.forget_taken();
        self.at_beginning = false;
        if self.start < self.buffer.len() {
            let (from, to) = (self.start, self.buffer.len());
            let from = if self.skip_lf && self.buffer.get(from) == Some(&b'\n') { from + 1 } else { from };
            self.start = to;
            self.scanned = to;
            self.field(from, to);
        }
        self.has_data.then(|| self.take())
    }

    fn too_large(&self) -> SseError {
        SseError::TooLarge { limit: self.limit }
    }

    fn forget_taken(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.name.clear();
            self.data.clear();
            self.has_data = false;
        }
    }

    fn take(&mut self) -> SseEvent<'_> {
        self.taken = true;
        SseEvent { name: text(&self.name), data: text(&self.data) }
    }

    /// Skips a byte order mark, once. False if it cannot be known yet whether there is one.
    fn begin(&mut self) -> bool {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let bytes = &self.buffer[self.start..];
        if bytes.len() < MARK.len() && MARK.starts_with(bytes) {
            return false;
        }
        if bytes.starts_with(MARK) {
            self.start += MARK.len();
            self.scanned = self.start;
        }
        self.at_beginning = false;
        true
    }

    /// The next complete line without its end, as a range of the buffer.
    fn line(&mut self) -> Option<(usize, usize)> {
        if self.skip_lf && self.start < self.buffer.len() {
            self.skip_lf = false;
            if self.buffer[self.start] == b'\n' {
                self.start += 1;
                self.scanned = self.scanned.max(self.start);
            }
        }
        let Some(found) = memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let (from, to) = (self.start, self.scanned + found);
        self.start = to + 1;
        if self.buffer[to] == b'\r' {
            match self.buffer.get(self.start) {
                Some(b'\n') => self.start += 1,
                Some(_) => {}
                None => self.skip_lf = true,
            }
        }
        self.scanned = self.start;
        Some((from, to))
    }

    /// The data of an event that is this one line and has arrived whole, as most do: it need not be gathered.
    fn only_line(&mut self, from: usize, to: usize) -> Option<Range<usize>> {
        let follows = self.buffer[to..].starts_with(b"\n\n");
        let value = self.buffer[from..to].strip_prefix(b"data:")?;
        if !follows || self.has_data || !self.name.is_empty() || to - from > self.limit {
            return None;
        }
        self.start = to + 2;
        self.scanned = self.start;
        Some(to - value.strip_prefix(b" ").unwrap_or(value).len()..to)
    }

    /// One line that is not blank: `name: value`, a comment, or something to ignore.
    fn field(&mut self, from: usize, to: usize) {
        let line = &self.buffer[from..to];
        let colon = memchr::memchr(b':', line);
        let (name, value) = match colon {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.last_id = String::from_utf8_lossy(value).into_owned(),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry_ms = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            }
            _ => {}
        }
    }
}

/// `String::from_utf8_lossy`, which is slow where nothing is lost.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = Vec<(String, String)>;

    fn read(pieces: &[&[u8]]) -> Read {
        let mut reader = SseReader::default();
        let mut out = Vec::new();
        for piece in pieces {
            reader.push(piece);
            while let Some(event) = reader.next_event().unwrap() {
                out.push((event.name.into_owned(), event.data.into_owned()));
            }
        }
        if let Some(event) = reader.finish() {
            out.push((event.name.into_owned(), event.data.into_owned()));
        }
        out
    }

    /// The same events whole, in every split in two, and byte by byte.
    fn everywhere(text: &[u8]) -> Read {
        let whole = read(&[text]);
        for at in 0..=text.len() {
            assert_eq!(read(&[&text[..at], &text[at..]]), whole, "split at {at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&bytes), whole, "byte by byte");
        whole
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn p227_line_ends() {
        for text in
            ["data: A\r\ndata: B\r\n\r\n", "data: A\rdata: B\r\r", "data: A\ndata: B\n\n", "data: A\rdata: B\n\r\n"]
        {
            assert_eq!(everywhere(text.as_bytes()), [event("", "A\nB")], "{text:?}");
        }
    }

    #[test]
    fn bug_69_grammar() {
        let text = "\u{feff}: hello\n\nevent: a\ndata:no-space\n\ndata\n\nid: 7\nretry: 250\ndata:  two\n: between\ndata\ndata: x\n\n\
            event: lonely\n\nfoo: bar\ndata: [DONE]  \n\n";
        assert_eq!(
            everywhere(text.as_bytes()),
            [event("a", "no-space"), event("", ""), event("", " two\n\nx"), event("", "[DONE]  ")]
        );
        let mut reader = SseReader::default();
        reader.push(text.as_bytes());
        while reader.next_event().unwrap().is_some() {}
        assert_eq!((reader.last_id(), reader.retry_ms()), ("7", Some(250)));
        assert_eq!(everywhere("\u{feff}\u{feff}data: x\n\n".as_bytes()), []);
    }

    #[test]
    fn p227_a_last_event_counts_without_its_blank_line() {
        assert_eq!(everywhere(b"data: a\n\nevent: e\ndata: b"), [event("", "a"), event("e", "b")]);
        assert_eq!(everywhere(b"data: a\r"), [event("", "a")]);
        assert_eq!(everywhere(b"event: e\n"), []);
        assert_eq!(everywhere(b""), []);
    }

    #[test]
    fn characters_may_be_cut_anywhere() {
        assert_eq!(everywhere("data: é🍋字\n\n".as_bytes()), [event("", "é🍋字")]);
        assert_eq!(everywhere(b"data: \xff!\n\n"), [event("", "\u{fffd}!")]);
    }

    #[test]
    fn events_are_bounded() {
        let mut reader = SseReader::new(100);
        reader.push(&[b'x'; 101]);
        assert_eq!(reader.next_event(), Err(SseError::TooLarge { limit: 100 }));
        let mut reader = SseReader::new(100);
        for _ in 0..50 {
            reader.push(b"data: 0123456789\n");
        }
        assert!(reader.next_event().is_err());
        assert!(reader.next_event().is_err());
        assert!(reader.finish().is_none());
        let mut reader = SseReader::new(100);
        for _ in 0..1000 {
            reader.push(b"data: 0123456789\n\n: comment\n");
            while reader.next_event().unwrap().is_some() {}
        }
    }

    #[test]
    fn what_is_too_large_does_not_depend_on_reads() {
        for line in ["data: 0123456789", ": 01234567890123", "other: 012345678"] {
            for limit in [9, 15, 16] {
                let text = format!("{line}\n\n");
                let read = |size: usize| {
                    let mut reader = SseReader::new(limit);
                    text.as_bytes().chunks(size).all(|piece| {
                        reader.push(piece);
                        reader.next_event().is_ok()
                    })
                };
                assert_eq!((read(1), read(99)), (limit > 15, limit > 15), "{line:?}, {limit}");
            }
        }
    }

    #[test]
    fn long_lines_in_small_reads_take_linear_time() {
        let mut reader = SseReader::default();
        reader.push(b"data: ");
        for _ in 0..2_000_000 {
            reader.push(b"x");
            assert!(reader.next_event().unwrap().is_none());
        }
        reader.push(b"\n\n");
        assert_eq!(reader.next_event().unwrap().map(|event| event.data.len()), Some(2_000_000));
    }
}
