//! Strings: decoding, comparing, measuring and writing them (S3).

use super::block::{self, LEN};
use super::string;
use memchr::memchr;
use std::borrow::Cow;

/// The string that a raw literal (with its quotes) stands for; `None` when `raw` is not a string literal.
///
/// Lone surrogates and invalid UTF-8 become U+FFFD (S3, S51).
pub fn decode_string(raw: &[u8]) -> Option<String> {
    let body = body(raw)?;
    Some(match unescape(body) {
        Cow::Borrowed(plain) => lossy(plain).into_owned(),
        Cow::Owned(bytes) => lossy_owned(bytes),
    })
}

/// Does the raw text between the quotes of a string literal stand for `text`?
#[inline]
pub fn raw_str_eq(between_quotes: &[u8], text: &str) -> bool {
    if between_quotes == text.as_bytes() {
        // An escape is longer than what it stands for, so a literal with one never equals its own text.
        return memchr(b'\\', between_quotes).is_none();
    }
    if memchr(b'\\', between_quotes).is_none() && (between_quotes.is_ascii() || !text.contains('\u{fffd}')) {
        return false;
    }
    lossy(&unescape(between_quotes)) == text
}

/// Appends the JSON string literal of `text` (S3).
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    // A block more than the text, since whole blocks are copied.
    out.reserve(text.len() + LEN);
    out.push(b'"');
    if text.len() < LEN && block::is_plain(text.as_bytes()) {
        // Keys, ids and words: copying a block for each would be most of the work.
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    block::copy_replacing(out, text.as_bytes(), block::special, |out, rest| {
        write_escaped(out, rest.first().copied().unwrap_or_default());
        1
    });
    out.push(b'"');
}

/// Length in UTF-16 code units, which is how the specification counts.
pub fn utf16_len(text: &str) -> usize {
    // Every character counts once, by its first byte, and those of four bytes twice. Blocks of a fixed size, summed in
    // bytes, are what the compiler can work on many bytes at a time with.
    let units = |byte: &u8| u8::from(*byte & 0xc0 != 0x80) + u8::from(*byte >= 0xf0);
    let (blocks, rest) = text.as_bytes().as_chunks::<64>();
    let whole: usize = blocks.iter().map(|block| usize::from(block.iter().map(units).sum::<u8>())).sum();
    whole + usize::from(rest.iter().map(units).sum::<u8>())
}

/// Bytes as text, with replacement characters for what is not UTF-8 (S51).
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    // The check alone is many times faster than the search for what to replace.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// [`lossy`] without a copy in the usual case.
pub(super) fn lossy_owned(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned())
}

/// The text between the quotes of a string literal.
pub(super) fn body(raw: &[u8]) -> Option<&[u8]> {
    if raw.first() != Some(&b'"') || string::end(raw, 1, &mut false) != Ok(raw.len()) {
        return None;
    }
    raw.get(1..raw.len() - 1)
}

/// What an escape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// A character, from one escape or from two for a surrogate pair.
    Char(char),
    /// An unpaired surrogate.
    Lone(u16),
}

/// Copies the text between the quotes of a valid literal, leaving the escapes to `write`.
#[inline]
pub(super) fn copy_body(out: &mut Vec<u8>, body: &[u8], mut write: impl FnMut(&mut Vec<u8>, Escape)) {
    block::copy_replacing(
        out,
        body,
        |block| block::masks(block).backslash,
        |out, rest| match escape(rest) {
            Some((escape, len)) => {
                write(out, escape);
                len
            }
            None => rest.len(),
        },
    );
}

/// Does a literal hold the escape of an unpaired surrogate?
pub(super) fn has_lone_surrogate(literal: &[u8]) -> bool {
    let mut rest = literal;
    while let Some((found, after)) = memchr(b'\\', rest).and_then(|at| {
        let (found, len) = escape(rest.get(at..)?)?;
        Some((found, rest.get(at + len..)?))
    }) {
        if matches!(found, Escape::Lone(_)) {
            return true;
        }
        rest = after;
    }
    false
}

/// The bytes a string body stands for, lone surrogates as U+FFFD; the body itself when it has no escapes.
fn unescape(body: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\\', body).is_none() {
        return Cow::Borrowed(body);
    }
    // A block more than the body, since whole blocks are copied.
    let mut out = Vec::with_capacity(body.len() + LEN);
    copy_body(&mut out, body, |out, escape| match escape {
        Escape::Char(char) => push_char(out, char),
        Escape::Lone(_) => push_char(out, char::REPLACEMENT_CHARACTER),
    });
    Cow::Owned(out)
}

#[inline]
pub(super) fn push_char(out: &mut Vec<u8>, char: char) {
    if char.is_ascii() {
        out.push(char as u8);
    } else {
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// The letters of the short escapes of control characters, 0 where there is none.
const SHORT: [u8; 32] = {
    let mut letters = [0; 32];
    letters[0x08] = b'b';
    letters[0x09] = b't';
    letters[0x0a] = b'n';
    letters[0x0c] = b'f';
    letters[0x0d] = b'r';
    letters
};

/// Appends the escape of a byte that needs one.
#[inline]
pub(super) fn write_escaped(out: &mut Vec<u8>, byte: u8) {
    // Tables and not a `match`: which escape comes next is hard to foretell for the processor too.
    match SHORT.get(usize::from(byte)).copied().unwrap_or(byte) {
        0 => write_unicode_escape(out, u16::from(byte)),
        letter => out.extend_from_slice(&[b'\\', letter]),
    }
}

/// Appends `\uxxxx` in lower case.
pub(super) fn write_unicode_escape(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let digit = (unit >> shift & 0xf) as u8;
        out.push(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
    }
}

/// What the letter of a short escape stands for: itself, except for five.
const STANDS_FOR: [u8; 128] = {
    let mut stands_for = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        stands_for[byte as usize] = byte;
        byte += 1;
    }
    stands_for[b'b' as usize] = 0x08;
    stands_for[b't' as usize] = b'\t';
    stands_for[b'n' as usize] = b'\n';
    stands_for[b'f' as usize] = 0x0c;
    stands_for[b'r' as usize] = b'\r';
    stands_for
};

/// The escape that `text` begins with, and its length; `None` when it is cut.
#[inline]
fn escape(text: &[u8]) -> Option<(Escape, usize)> {
    let letter = *text.get(1)?;
    if letter == b'u' {
        return unicode_escape(text);
    }
    Some((Escape::Char(char::from(*STANDS_FOR.get(usize::from(letter))?)), 2))
}

fn unicode_escape(text: &[u8]) -> Option<(Escape, usize)> {
    let first = code_unit(text)?;
    if let Some(char) = char::from_u32(u32::from(first)) {
        return Some((Escape::Char(char), 6));
    }
    if let Some(second) = text.get(6..).and_then(code_unit)
        && let Some(Ok(char)) = char::decode_utf16([first, second]).next()
    {
        return Some((Escape::Char(char), 12));
    }
    Some((Escape::Lone(first), 6))
}

/// The code unit of the `\uXXXX` that `text` begins with.
fn code_unit(text: &[u8]) -> Option<u16> {
    let [b'\\', b'u', digits @ ..] = text.first_chunk::<6>()? else { return None };
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)? as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_strings_are_written_as_javascript_writes_them() {
        let mut out = Vec::new();
        write_string(&mut out, "\"\\/\u{8}\t\n\u{c}\r\u{0}\u{1}\u{1f} \u{7f}\u{80}é\u{2028}\u{2029}🍵");
        let expected = "\"\\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u0001\\u001f \u{7f}\u{80}é\u{2028}\u{2029}🍵\"";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn s3_serde_json_escapes_the_same_at_every_length() {
        for len in 0..100 {
            for special in ["", "\n", "\"", "\\", "\u{1f}", "é", "\u{7f}"] {
                let text = format!("{}{special}{}{special}", "x".repeat(len), "y".repeat(len / 3));
                let mut out = b"before".to_vec();
                write_string(&mut out, &text);
                assert_eq!(out[6..], *serde_json::to_vec(&text).unwrap());
                assert_eq!(decode_string(&out[6..]).as_deref(), Some(&*text));
            }
        }
    }

    #[test]
    fn s51_what_cannot_be_decoded_is_replaced() {
        let decode = |raw: &[u8]| decode_string(raw);
        assert_eq!(decode(br#""\ud83d""#).unwrap(), "\u{fffd}");
        assert_eq!(decode(br#""a\ud83c\udf75b""#).unwrap(), "a🍵b");
        assert_eq!(decode(br#""\ud83c\ud83c\udf75""#).unwrap(), "\u{fffd}🍵");
        assert_eq!(decode(br#""\udf75\ud83c""#).unwrap(), "\u{fffd}\u{fffd}");
        assert_eq!(decode(br#""\ud83cx\u0041""#).unwrap(), "\u{fffd}xA");
        assert_eq!(decode(br#""\ud83c\n""#).unwrap(), "\u{fffd}\n");
        assert_eq!(decode(b"\"a\xffb\xc3\\n\xa9\"").unwrap(), "a\u{fffd}b\u{fffd}\n\u{fffd}");
        assert_eq!(decode(b"\"\xf0\x9f\x8d\"").unwrap(), "\u{fffd}");
        assert_eq!(decode(br#""\"\\\/\b\f\n\r\t""#).unwrap(), "\"\\/\u{8}\u{c}\n\r\t");
    }

    #[test]
    fn only_string_literals_are_decoded() {
        let wrong = ["", "\"", "x", "\"a", "\"a\"b", "\"a\\\"", "\"\\x\"", "\"\\u12g4\"", "\"\n\"", "1", " \"a\""];
        assert!(wrong.iter().all(|raw| decode_string(raw.as_bytes()).is_none()));
    }

    #[test]
    fn raw_text_is_compared_as_decoded() {
        assert!(raw_str_eq(b"type", "type"));
        assert!(raw_str_eq(b"", ""));
        assert!(!raw_str_eq(b"typE", "type"));
        assert!(!raw_str_eq(b"types", "type"));
        assert!(raw_str_eq(br"\u0074ype", "type"));
        assert!(raw_str_eq(br"a\\n", r"a\n"));
        assert!(!raw_str_eq(br"a\n", r"a\n"));
        assert!(raw_str_eq(br"a\n", "a\n"));
        assert!(raw_str_eq(b"\xff", "\u{fffd}"));
        assert!(!raw_str_eq(b"\xff", "\u{ff}"));
        assert!(raw_str_eq(br"\ud800", "\u{fffd}"));
        // Not a string body at all, and still no panic.
        for odd in [&b"\\"[..], b"\\u", b"\\u12", b"\\ud800\\u", b"a\\"] {
            assert!(!raw_str_eq(odd, "type"));
        }
    }

    #[test]
    fn lengths_count_utf16_code_units() {
        for text in ["", "abc", "é\u{7ff}\u{800}\u{ffff}", "🍵", &"aé🍵\u{2028}".repeat(100)] {
            assert_eq!(utf16_len(text), text.encode_utf16().count());
        }
    }
}
