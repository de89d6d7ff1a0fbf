//! The grammar of JSON, as JavaScript's `JSON.parse` accepts it, in one pass and without recursion.

use super::string;
use std::ops::Range;

/// A text is not JSON; the first byte that cannot be right is at `offset` (the length of the text when it is cut).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    /// Offset in bytes.
    pub offset: usize,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not JSON at byte {}", self.offset)
    }
}

impl std::error::Error for SyntaxError {}

/// What a JSON value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number of any size and form.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
}

/// Checks that `text` is one JSON value (RFC 8259, nothing but white space around it), of any depth.
///
/// UTF-8 is not checked: invalid bytes inside strings count as the replacement characters they are read as (S51).
/// Escapes of lone surrogates are fine.
pub fn validate(text: &[u8]) -> Result<Kind, SyntaxError> {
    scan(text, &mut Ignore)
}

/// [`validate`], telling `sink` what is found on the way.
pub(super) fn scan<S: Sink>(text: &[u8], sink: &mut S) -> Result<Kind, SyntaxError> {
    scan_noting(text, sink).map(|(kind, _)| kind)
}

/// [`scan`]; also whether any string holds an escape that can be written in another way, as [`string::end`] says.
pub(super) fn scan_noting<S: Sink>(text: &[u8], sink: &mut S) -> Result<(Kind, bool), SyntaxError> {
    let mut scanner = Scanner::new(text);
    scanner.skip_space();
    let kind = scanner.value(sink)?;
    scanner.finish()?;
    Ok((kind, scanner.reducible))
}

/// Hears of the parts of a value in the order of the text. Ranges are offsets in the text, quotes included.
pub(super) trait Sink {
    /// An object or array begins at `at`.
    fn open(&mut self, _object: bool, _at: usize) {}
    /// The innermost open object or array ends with the byte at `at`.
    fn close(&mut self, _object: bool, _at: usize) {}
    /// A member's name.
    fn key(&mut self, _literal: Range<usize>) {}
    /// A number.
    fn number(&mut self, _literal: Range<usize>) {}
}

/// A sink for those who only want to know whether the text is right.
pub(super) struct Ignore;

impl Sink for Ignore {}

/// Which of the open containers are objects, innermost last: one bit each, in a single word up to 64 levels.
#[derive(Default)]
struct Nesting {
    depth: usize,
    innermost: u64,
    outer: Vec<u64>,
}

impl Nesting {
    #[inline]
    fn push(&mut self, object: bool) {
        if self.depth.is_multiple_of(64) && self.depth != 0 {
            self.outer.push(self.innermost);
        }
        self.innermost = (self.innermost << 1) | u64::from(object);
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.innermost >>= 1;
        if self.depth.is_multiple_of(64) {
            self.innermost = self.outer.pop().unwrap_or_default();
        }
    }

    /// Is the innermost container an object? `None` when none is open.
    #[inline]
    fn top(&self) -> Option<bool> {
        (self.depth != 0).then_some(self.innermost & 1 == 1)
    }
}

/// A position in a text and the productions of the grammar from there.
pub(super) struct Scanner<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    reducible: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Scanner { text, at: 0, reducible: false }
    }

    /// The current byte, or 0, which is wrong everywhere, at the end.
    #[inline(always)]
    pub(super) fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn slice(&self, range: Range<usize>) -> &'a [u8] {
        self.text.get(range).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn skip_space(&mut self) {
        // One comparison decides in compact texts, the usual ones.
        while self.peek() <= b' ' && matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    #[cold]
    fn wrong<T>(&self) -> Result<T, SyntaxError> {
        Err(SyntaxError { offset: self.at })
    }

    /// Steps over `byte`.
    #[inline(always)]
    pub(super) fn expect(&mut self, byte: u8) -> Result<(), SyntaxError> {
        if self.peek() != byte {
            return self.wrong();
        }
        self.at += 1;
        Ok(())
    }

    /// Nothing but white space is left.
    pub(super) fn finish(&mut self) -> Result<(), SyntaxError> {
        self.skip_space();
        if self.at < self.text.len() { self.wrong() } else { Ok(()) }
    }

    /// A value of any kind, without white space around it.
    #[inline]
    pub(super) fn value<S: Sink>(&mut self, sink: &mut S) -> Result<Kind, SyntaxError> {
        match self.peek() {
            b'{' => self.container(sink).map(|()| Kind::Object),
            b'[' => self.container(sink).map(|()| Kind::Array),
            byte => self.scalar(byte, sink),
        }
    }

    /// A member's name, the colon and the white space around it; the range of the name with its quotes.
    #[inline]
    pub(super) fn key(&mut self) -> Result<Range<usize>, SyntaxError> {
        let start = self.at;
        self.expect(b'"')?;
        self.at = string::end(self.text, self.at, &mut self.reducible)?;
        let key = start..self.at;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(key)
    }

    /// What follows a value in a container that ends with `closer`: true for a comma (it and the white space are
    /// stepped over), false for the closer, which stays the current byte.
    #[inline]
    pub(super) fn comma(&mut self, closer: u8) -> Result<bool, SyntaxError> {
        self.skip_space();
        let byte = self.peek();
        if byte == b',' {
            self.at += 1;
            self.skip_space();
            Ok(true)
        } else if byte == closer {
            Ok(false)
        } else {
            self.wrong()
        }
    }

    fn container<S: Sink>(&mut self, sink: &mut S) -> Result<(), SyntaxError> {
        let mut open = Nesting::default();
        loop {
            match self.peek() {
                byte @ (b'{' | b'[') => {
                    let object = byte == b'{';
                    sink.open(object, self.at);
                    self.at += 1;
                    self.skip_space();
                    if self.peek() == closer(object) {
                        sink.close(object, self.at);
                        self.at += 1;
                    } else {
                        open.push(object);
                        if object {
                            sink.key(self.key()?);
                        }
                        continue;
                    }
                }
                byte => {
                    self.scalar(byte, sink)?;
                }
            }
            // A value has ended; close what ends with it.
            loop {
                let Some(object) = open.top() else { return Ok(()) };
                if self.comma(closer(object))? {
                    if object {
                        sink.key(self.key()?);
                    }
                    break;
                }
                sink.close(object, self.at);
                self.at += 1;
                open.pop();
            }
        }
    }

    #[inline]
    fn scalar<S: Sink>(&mut self, first: u8, sink: &mut S) -> Result<Kind, SyntaxError> {
        let start = self.at;
        match first {
            b'"' => {
                self.at = string::end(self.text, start + 1, &mut self.reducible)?;
                Ok(Kind::String)
            }
            b'-' | b'0'..=b'9' => {
                self.number()?;
                sink.number(start..self.at);
                Ok(Kind::Number)
            }
            b't' => self.word(b"true", Kind::True),
            b'f' => self.word(b"false", Kind::False),
            b'n' => self.word(b"null", Kind::Null),
            _ => self.wrong(),
        }
    }

    #[inline]
    fn word(&mut self, word: &[u8], kind: Kind) -> Result<Kind, SyntaxError> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(kind);
        }
        for byte in word {
            self.expect(*byte)?;
        }
        Ok(kind)
    }

    #[inline]
    fn number(&mut self) -> Result<(), SyntaxError> {
        if self.peek() == b'-' {
            self.at += 1;
        }
        // A leading zero stands alone.
        if self.peek() == b'0' {
            self.at += 1
        } else {
            self.digits()?
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    #[inline]
    fn digits(&mut self) -> Result<(), SyntaxError> {
        if !self.peek().is_ascii_digit() {
            return self.wrong();
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }
}

#[inline]
fn closer(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}
