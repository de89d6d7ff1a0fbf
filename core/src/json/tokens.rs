//! The tokens of a text that is known to be valid, for those who copy it with changes.

use super::string;
use std::ops::Range;

/// What a token is, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A string literal, be it a value or a name; `reducible` as in [`string::end`].
    String { reducible: bool },
    /// A number.
    Number,
    /// `{` or `[`.
    Open,
    /// `}` or `]`.
    Close,
    /// Comma, colon, `true`, `false` or `null`: copied as it is.
    Other,
}

/// The token at or behind `range.start`, white space skipped. `None` when nothing else is left in the range.
#[inline]
pub(super) fn next(text: &[u8], range: Range<usize>) -> Option<(Token, Range<usize>)> {
    let rest = text.get(range.clone())?;
    let space = rest.iter().take_while(|byte| is_space(**byte)).count();
    let start = range.start + space;
    let rest = rest.get(space..)?;
    let while_within = |part: fn(u8) -> bool| start + rest.iter().take_while(|byte| part(**byte)).count().max(1);
    let (token, end) = match *rest.first()? {
        b'"' => {
            let mut reducible = false;
            let end = string::end(text, start + 1, &mut reducible).unwrap_or(range.end);
            (Token::String { reducible }, end)
        }
        b'-' | b'0'..=b'9' => (Token::Number, while_within(in_number)),
        b'{' | b'[' => (Token::Open, start + 1),
        b'}' | b']' => (Token::Close, start + 1),
        b'a'..=b'z' => (Token::Other, while_within(|byte| byte.is_ascii_lowercase())),
        _ => (Token::Other, start + 1),
    };
    Some((token, start..end))
}

/// White space as JSON has it.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn in_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}
