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
        Cow::Borrowed(plain) => String::from_utf8_lossy(plain).into_owned(),
        Cow::Owned(bytes) => {
            String::from_utf8(bytes).unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned())
        }
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
    String::from_utf8_lossy(&unescape(between_quotes)) == text
}

/// Appends the JSON string literal of `text` (S3).
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut plain = 0;
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let (mut special, step) = match rest.first_chunk::<LEN>() {
            Some(whole) => (block::special(whole), LEN),
            // The filling counts as special; it is cut off again.
            None => (block::special(&block::padded(rest)) & !(u32::MAX << rest.len()), rest.len()),
        };
        while special != 0 {
            let escaped = at + special.trailing_zeros() as usize;
            out.extend_from_slice(bytes.get(plain..escaped).unwrap_or_default());
            write_escaped(out, bytes.get(escaped).copied().unwrap_or_default());
            plain = escaped + 1;
            special &= special - 1;
        }
        at += step;
    }
    out.extend_from_slice(bytes.get(plain..).unwrap_or_default());
    out.push(b'"');
}

/// Length in UTF-16 code units, which is how the specification counts.
pub fn utf16_len(text: &str) -> usize {
    // Every character counts once, by its first byte, and those of four bytes twice. A sum in bytes holds for 127
    // bytes and lets the compiler work on many of them at once.
    let units = |byte: &u8| u8::from(*byte & 0xc0 != 0x80) + u8::from(*byte >= 0xf0);
    text.as_bytes().chunks(127).map(|chunk| usize::from(chunk.iter().map(units).sum::<u8>())).sum()
}

/// The text between the quotes of a string literal.
pub(super) fn body(raw: &[u8]) -> Option<&[u8]> {
    if raw.first() != Some(&b'"') || string::end(raw, 1) != Ok(raw.len()) {
        return None;
    }
    raw.get(1..raw.len() - 1)
}

/// A part of a string literal.
pub(super) enum Piece<'a> {
    /// Bytes that stand for themselves, not checked to be UTF-8.
    Plain(&'a [u8]),
    /// What an escape, or a pair of escapes for a surrogate pair, stands for.
    Char(char),
    /// The escape of an unpaired surrogate.
    Lone(u16),
}

/// Splits the text between the quotes of a valid literal.
pub(super) fn pieces(body: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let plain = match rest.first()? {
            b'\\' => 0,
            _ => memchr(b'\\', rest).unwrap_or(rest.len()),
        };
        if plain != 0 {
            let (piece, after) = rest.split_at(plain);
            rest = after;
            return Some(Piece::Plain(piece));
        }
        let letter = *rest.get(1)?;
        if letter != b'u' {
            rest = rest.get(2..)?;
            return Some(Piece::Char(short_escape(letter)));
        }
        let first = code_unit(rest)?;
        rest = rest.get(6..)?;
        if let Some(char) = char::from_u32(u32::from(first)) {
            return Some(Piece::Char(char));
        }
        if let Some(second) = code_unit(rest)
            && let Some(Ok(char)) = char::decode_utf16([first, second]).next()
        {
            rest = rest.get(6..)?;
            return Some(Piece::Char(char));
        }
        Some(Piece::Lone(first))
    })
}

/// The bytes a string body stands for, lone surrogates as U+FFFD; the body itself when it has no escapes.
fn unescape(body: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\\', body).is_none() {
        return Cow::Borrowed(body);
    }
    let mut out = Vec::with_capacity(body.len());
    for piece in pieces(body) {
        match piece {
            Piece::Plain(bytes) => out.extend_from_slice(bytes),
            Piece::Char(char) => push_char(&mut out, char),
            Piece::Lone(_) => push_char(&mut out, char::REPLACEMENT_CHARACTER),
        }
    }
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

/// Appends the escape of a byte that needs one.
pub(super) fn write_escaped(out: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => return write_unicode_escape(out, u16::from(byte)),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Appends `\uxxxx` in lower case.
pub(super) fn write_unicode_escape(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let digit = (unit >> shift & 0xf) as u8;
        out.push(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
    }
}

fn short_escape(letter: u8) -> char {
    match letter {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        itself => char::from(itself),
    }
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
