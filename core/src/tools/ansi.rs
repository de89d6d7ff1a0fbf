//! What terminals obey, taken out of text (T283–T285).

use std::sync::LazyLock;

use regex::Regex;

/// How far back the beginning of an unfinished sequence is looked for, in characters.
const LOOK_BACK: usize = 256;

static SEQUENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let title = r"\x1b\].*?(?:\x07|\x1b\\|\x{9c})";
    let start = r"(?:(?:\x1b\[|\x{9b})[<=>]?|[\x1b\x{9b}])[\[\]()#;?]*";
    let rest = r"(?:[0-9]{1,4}(?:[;:][0-9]{0,4})*)?[0-9A-PR-TZcf-nq-uy=><~]";
    Regex::new(&format!("(?s){title}|{start}{rest}")).ok()
});

static UNFINISHED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:(?:\x1b\[|\x{9b})[<=>]?|\x1b)[\[\]()#;?]*(?:[0-9]{1,4}(?:[;:][0-9]{0,4})*)?$").ok()
});

/// Removes complete control sequences.
pub fn strip(text: &str) -> String {
    match &*SEQUENCE {
        Some(sequence) if text.contains(['\x1b', '\u{9b}']) => sequence.replace_all(text, "").into_owned(),
        _ => text.to_owned(),
    }
}

/// Splits off a sequence that has begun and not ended at the end of a text.
pub fn split_unfinished(text: &str) -> (&str, &str) {
    let start = text.char_indices().rev().take(LOOK_BACK).last().map_or(0, |(at, _)| at);
    let mut at = start;
    while let Some(next) = text[at..].find(['\x1b', '\u{9b}']) {
        at += next;
        let rest = &text[at..];
        if let Some(title) = rest.strip_prefix("\x1b]") {
            let ends = ["\x07", "\x1b\\", "\u{9c}"].iter().filter_map(|end| Some(title.find(end)? + end.len())).min();
            match ends {
                Some(end) => at += 2 + end,
                None => return text.split_at(at),
            }
        } else if UNFINISHED.as_ref().is_some_and(|unfinished| unfinished.is_match(rest)) {
            return text.split_at(at);
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    (text, "")
}

/// Removes control characters but TAB and LF, and with them every CR.
pub fn remove_controls(text: &str) -> String {
    let bad = |c: char| matches!(c, '\0'..='\x08' | '\x0b'..='\r' | '\x0e'..='\x1f' | '\u{fff9}'..='\u{fffb}');
    if text.contains(bad) { text.chars().filter(|&c| !bad(c)).collect() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_and_text_stays() {
        for (text, plain) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\u{9b}31mC1", "C1"),
            ("\x1b=\x1b>1234", "1234"),
            ("\x1b[<35;59;1Mmouse", "mouse"),
            ("\x1b[38:2::1:2:3mcolon", "colon"),
            ("\x1b[12345mlong", "mlong"),
            ("\x1b[", "\x1b["),
        ] {
            assert_eq!(strip(text), plain, "{text:?}");
        }
        assert_eq!(remove_controls("a\0b\tc\r\nd\x7f"), "ab\tc\nd\x7f");
    }

    #[test]
    fn unfinished_sequences_are_held_back() {
        for (text, complete) in [
            ("abc\x1b[3", "abc"),
            ("abc\x1b]0;titl", "abc"),
            ("abc\x1b[31m", "abc\x1b[31m"),
            ("x\x1b", "x"),
            ("x\x1b]0;t\x1b", "x"),
            ("abc", "abc"),
        ] {
            assert_eq!(split_unfinished(text).0, complete, "{text:?}");
        }
    }
}
