//! JSON as people write it into configuration files: `//` comments, commas before a closing bracket, a byte order mark (P20).

use std::borrow::Cow;

/// The text as plain JSON. Every byte keeps its line and column, so that a parser's complaint points to the right place.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out: Option<Vec<u8>> = None;
    let bytes = text.as_bytes();
    let mut at = 0;
    // The last comma outside of strings and comments that nothing but blanks has followed.
    let mut comma = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length);
                out.get_or_insert_with(|| bytes.to_vec())[at..end].fill(b' ');
                at = end;
            }
            b',' => {
                comma = Some(at);
                at += 1;
            }
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    out.get_or_insert_with(|| bytes.to_vec())[comma] = b' ';
                }
                at += 1;
            }
            byte => {
                if !byte.is_ascii_whitespace() {
                    comma = None;
                }
                at += 1;
            }
        }
    }
    match out {
        // Only ASCII, and whole comments, were replaced by ASCII.
        Some(out) => String::from_utf8_lossy(&out).into_owned().into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn p20_comments_and_commas() {
        let text = "\u{feff}{ // {\"a\": 1}\n \"url\": \"http://x\\\"//y\", // é ,\n \"l\": [1, 2, // x\n ],\n}";
        let value: serde_json::Value = serde_json::from_str(&plain(text)).unwrap();
        assert_eq!(value, serde_json::json!({"url": "http://x\"//y", "l": [1, 2]}));
        assert_eq!(plain("{\"a\": [1,, 2]}"), "{\"a\": [1,, 2]}", "two commas stay an error");
        assert_eq!(plain("[1, /* 2 */]"), "[1, /* 2 */]");
        assert_eq!(plain("\"\\"), "\"\\");
    }
}
