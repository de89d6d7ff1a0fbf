//! A view of foreign JSON that `serde_json` reads without complaint.

use super::block::LEN;
use super::number;
use super::scan::{Sink, SyntaxError, scan_noting};
use super::text::{
    Escape, copy_body, decode_string, has_lone_surrogate, lossy, lossy_owned, push_char, write_escaped, write_string,
    write_unicode_escape,
};
use super::tokens::{self, Token};
use memchr::memchr;
use std::borrow::Cow;
use std::ops::Range;

/// How many containers may be open at once in what [`to_serde`] returns.
pub const MAX_DEPTH: usize = 100;

/// Names that begin so have a meaning of their own for `serde_json`.
const RESERVED: &str = "$serde_json::private::";

/// The text, changed only where `serde_json` would fail on valid JSON (and borrowed when nothing is):
///
/// * invalid UTF-8 and the escapes of lone surrogates are U+FFFD (S3, S51);
/// * containers inside [`MAX_DEPTH`] others are `null`;
/// * numbers too large for a double are `null`;
/// * the `$` of a name that `serde_json` reserves for itself is U+FFFD.
///
/// Repeated names stay: a `serde_json::Value` takes the last, as JavaScript does, but a derived struct refuses them.
/// A text that is not JSON stays not JSON.
pub fn to_serde(text: &[u8]) -> Cow<'_, str> {
    readable(text).map_or_else(|_| lossy(text), |(text, _)| text)
}

/// The value of a JSON text, read through [`to_serde`]; `None` when it is not JSON.
pub fn parse(text: &[u8]) -> Option<serde_json::Value> {
    serde_json::from_str(&readable(text).ok()?.0).ok()
}

/// The value of a JSON text of a host. What [`to_serde`] would leave out of a text that is nested too deeply is refused
/// here: nobody's data may be lost in a call that succeeds.
///
/// # Errors
/// A sentence without its subject: what is wrong with the text.
pub fn parse_given(text: &[u8]) -> Result<serde_json::Value, String> {
    let (text, depth) = readable(text).map_err(|error| format!("is not JSON: wrong at offset {}", error.offset))?;
    if depth > MAX_DEPTH {
        return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
    }
    serde_json::from_str(&text).map_err(|error| format!("is not JSON: {error}"))
}

/// [`to_serde`] of a JSON text, and how deeply the text is nested.
fn readable(text: &[u8]) -> Result<(Cow<'_, str>, usize), SyntaxError> {
    let text = lossy(text);
    let bytes = text.as_bytes();
    let mut survey = Survey { text: bytes, depth: 0, deepest: 0, change: false };
    let (_, reducible) = scan_noting(bytes, &mut survey)?;
    // Hardly any text has an escape of the kind that could be a lone surrogate, so few are read a second time.
    let change = survey.change || survey.deepest > MAX_DEPTH || (reducible && has_lone_surrogate(bytes));
    let depth = survey.deepest;
    Ok((if change { Cow::Owned(lossy_owned(copy(bytes))) } else { text }, depth))
}

/// Finds out whether anything in a text has to change.
struct Survey<'a> {
    text: &'a [u8],
    depth: usize,
    deepest: usize,
    change: bool,
}

impl Sink for Survey<'_> {
    fn open(&mut self, _object: bool, _at: usize) {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    fn close(&mut self, _object: bool, _at: usize) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn key(&mut self, literal: Range<usize>) {
        self.change |= self.text.get(literal).is_some_and(is_reserved);
    }

    fn number(&mut self, literal: Range<usize>) {
        self.change |= self.text.get(literal).is_some_and(is_extreme);
    }
}

/// The text with its changes; it is valid.
fn copy(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + LEN);
    let mut depth = 0usize;
    let mut at = 0;
    while let Some((token, range)) = tokens::next(text, at..text.len()) {
        at = range.end;
        let literal = text.get(range).unwrap_or_default();
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        match token {
            Token::Open if depth == MAX_DEPTH + 1 => out.extend_from_slice(b"null"),
            // The end of the container that was just written as null.
            Token::Close if depth == MAX_DEPTH => {}
            _ if depth > MAX_DEPTH => {}
            Token::String { .. } if is_reserved(literal) && is_key(text, at) => copy_reserved(literal, &mut out),
            Token::String { reducible: true } => copy_string(literal, &mut out),
            Token::Number if is_extreme(literal) => {
                out.extend_from_slice(number::as_double(literal, &mut ryu_js::Buffer::new()));
            }
            _ => out.extend_from_slice(literal),
        }
    }
    out
}

/// May the number be too large for a double? Hardly any is: it takes more than a hundred digits or an exponent of
/// three.
fn is_extreme(literal: &[u8]) -> bool {
    if literal.len() < 4 {
        return false;
    }
    let exponent = literal.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    literal.len() > 100 || (exponent > 2 && literal.iter().any(|byte| matches!(byte, b'e' | b'E')))
}

/// A name, with its quotes, that `serde_json` would not take as a name.
fn is_reserved(literal: &[u8]) -> bool {
    let Some(body) = literal.get(1..) else { return false };
    match body.first() {
        Some(b'$') | Some(b'\\') if body.len() > RESERVED.len() => {
            body.starts_with(RESERVED.as_bytes())
                || (memchr(b'\\', body).is_some()
                    && decode_string(literal).is_some_and(|name| name.starts_with(RESERVED)))
        }
        _ => false,
    }
}

/// Is the string that ends at `end` a member's name?
fn is_key(text: &[u8], end: usize) -> bool {
    tokens::next(text, end..text.len()).is_some_and(|(_, range)| text.get(range) == Some(b":"))
}

fn copy_reserved(literal: &[u8], out: &mut Vec<u8>) {
    let name = decode_string(literal).unwrap_or_default().replacen('$', "\u{fffd}", 1);
    write_string(out, &name);
}

/// Copies a literal; when a surrogate is unpaired, with the escape of U+FFFD for it.
fn copy_string(literal: &[u8], out: &mut Vec<u8>) {
    if !has_lone_surrogate(literal) {
        return out.extend_from_slice(literal);
    }
    copy_body(out, literal, |out, escape| match escape {
        Escape::Char(char @ ('"' | '\\' | '\0'..='\x1f')) => write_escaped(out, char as u8),
        Escape::Char(char) => push_char(out, char),
        Escape::Lone(_) => write_unicode_escape(out, 0xfffd),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn view(text: &[u8]) -> (bool, String) {
        let view = to_serde(text);
        assert!(serde_json::from_str::<Value>(&view).is_ok(), "{view}");
        (matches!(view, Cow::Borrowed(_)), view.into_owned())
    }

    #[test]
    fn an_ordinary_text_is_borrowed() {
        let texts =
            [r#"{ "a" : "\u00e9\ud83c\udf75\\ud800" , "b":[1.50,-0,1e9,12345678901234567890123]}"#, "\"$serde\"", "1"];
        for text in texts {
            assert_eq!(view(text.as_bytes()), (true, text.to_owned()));
        }
    }

    #[test]
    fn s51_invalid_utf8_is_replaced() {
        assert_eq!(view(b"{\"a\xff\":\"\xc3\"}"), (false, "{\"a\u{fffd}\":\"\u{fffd}\"}".to_owned()));
    }

    #[test]
    fn s3_lone_surrogates_are_replaced() {
        let text = br#"{"\ud800":["\uDC00\n\"","\ud83c\udf75\\ud800"]}"#;
        let expected = "{\"\\ufffd\":[\"\\ufffd\\n\\\"\",\"\\ud83c\\udf75\\\\ud800\"]}";
        assert_eq!(view(text), (false, expected.to_owned()));
        let mixed = br#""\ud800\u001f\u0022\u00e9\ud83c\udf75""#;
        assert_eq!(parse(mixed), Some(json!("\u{fffd}\u{1f}\"é🍵")));
    }

    #[test]
    fn too_deep_values_are_null() {
        let nested = |depth: usize, inside: &str| format!("{}{inside}{}", "[".repeat(depth), "]".repeat(depth));
        let allowed = nested(MAX_DEPTH, "1");
        assert_eq!(view(allowed.as_bytes()), (true, allowed));
        let cut = nested(MAX_DEPTH, "null,2,null");
        assert_eq!(view(nested(MAX_DEPTH, "[1,{\"a\":[3]}],2,{}").as_bytes()), (false, cut));
        assert_eq!(view(nested(5000, "").as_bytes()), (false, nested(MAX_DEPTH, "null")));
        // Braces inside strings are not depth.
        assert!(view(format!("\"{}\"", "[{".repeat(500)).as_bytes()).0);
    }

    #[test]
    fn numbers_beyond_a_double_are_null() {
        let digits = "9".repeat(400);
        let text = format!("[1e400,-1e400,{digits},1e308,0e999,1e-999,{}e99]", &digits[..250]);
        assert_eq!(view(text.as_bytes()), (false, "[null,null,null,1e+308,0,0,null]".to_owned()));
    }

    #[test]
    fn reserved_names_are_disarmed() {
        let text = br#"{"$serde_json::private::RawValue":"{","a":"$serde_json::private::RawValue"}"#;
        let value = parse(text).unwrap();
        assert_eq!(value["\u{fffd}serde_json::private::RawValue"], "{");
        assert_eq!(value["a"], "$serde_json::private::RawValue");
        assert!(parse(br#"[{"\u0024serde_json::private\u003a:Number" : 1}]"#).is_some());
    }

    #[test]
    fn only_json_is_parsed() {
        assert_eq!(parse(b"{\"a\":1,\"a\":2}"), Some(json!({"a": 2})));
        assert_eq!(parse(b"{\"a\":1"), None);
        assert_eq!(parse(b""), None);
    }
}
