//! A file as `edit` compares it: decoded, without a byte order mark, every line break an LF; and its bytes (T126–T129).

use std::borrow::Cow;
use std::ops::Range;

use super::offsets::Derived;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A file's bytes and the text made of them.
pub(super) struct FileText<'a> {
    bytes: &'a [u8],
    bom: usize,
    view: View<'a>,
}

enum View<'a> {
    /// The bytes are the text.
    Same(&'a str),
    Derived(Derived),
}

impl<'a> FileText<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> FileText<'a> {
        let bom = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let body = &bytes[bom..];
        let view = match std::str::from_utf8(body) {
            Ok(text) if memchr::memchr(b'\r', body).is_none() => View::Same(text),
            _ => View::Derived(derive(body)),
        };
        FileText { bytes, bom, view }
    }

    /// The text to compare with.
    pub(super) fn text(&self) -> &str {
        match &self.view {
            View::Same(text) => text,
            View::Derived(derived) => &derived.text,
        }
    }

    /// The bytes a range of the text stands for.
    fn source_of(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let source = match &self.view {
            View::Same(_) => range.clone(),
            View::Derived(derived) => derived.source_of(range)?,
        };
        Some(source.start + self.bom..source.end + self.bom)
    }

    /// The file with ranges of its text replaced. Ranges are in order, not empty, and do not overlap. Bytes outside of
    /// them are kept as they are; line breaks of a new text are written as the line where the range begins ends.
    pub(super) fn replace(&self, replacements: &[(Range<usize>, &str)]) -> Option<Vec<u8>> {
        let grown: usize = replacements.iter().map(|(_, new)| new.len()).sum();
        let mut out = Vec::with_capacity(self.bytes.len() + grown);
        let mut kept = 0;
        for (range, new) in replacements {
            let source = self.source_of(range)?;
            append(&mut out, &self.bytes[kept..source.start]);
            append(&mut out, with_breaks(new, self.line_break_at(source.start)).as_bytes());
            kept = source.end;
        }
        append(&mut out, &self.bytes[kept..]);
        Some(out)
    }

    /// How the line that a byte is in ends (T151, T152).
    fn line_break_at(&self, at: usize) -> &'static str {
        let bytes = self.bytes;
        let kind = |at: usize| if at > 0 && bytes[at - 1] == b'\r' { "\r\n" } else { "\n" };
        let own = memchr::memchr(b'\n', &bytes[at..]).map(|found| at + found);
        match own.or_else(|| memchr::memrchr(b'\n', &bytes[..at])) {
            Some(found) => kind(found),
            None if memchr::memchr(b'\r', bytes).is_some() => "\r",
            None => "\n",
        }
    }
}

/// Appends a part without making a CRLF out of two breaks that meet (T153).
fn append(out: &mut Vec<u8>, part: &[u8]) {
    if out.last() == Some(&b'\r') && part.first() == Some(&b'\n') {
        out.push(b'\n');
    }
    out.extend_from_slice(part);
}

fn with_breaks<'t>(text: &'t str, line_break: &str) -> Cow<'t, str> {
    match line_break {
        "\n" => Cow::Borrowed(text),
        other => Cow::Owned(text.replace('\n', other)),
    }
}

/// Every line break an LF (T127).
pub(super) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
}

fn derive(body: &[u8]) -> Derived {
    let mut out = Derived::default();
    out.text.reserve(body.len());
    for chunk in body.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = memchr::memchr(b'\r', rest.as_bytes()) {
            out.same(&rest[..at]);
            let broken = if rest[at + 1..].starts_with('\n') { 2 } else { 1 };
            out.other("\n", broken);
            rest = &rest[at + broken..];
        }
        out.same(rest);
        if !chunk.invalid().is_empty() {
            out.other("\u{fffd}", chunk.invalid().len());
        }
    }
    out
}
