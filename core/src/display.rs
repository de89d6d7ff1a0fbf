//! Text of models, tools and files on its way to a person's screen.

use std::borrow::Cow;

/// The text without what a terminal would obey and what changes the order in which it is read: escape sequences with their
/// content (colours, titles, links), other C0 and C1 controls, and the controls of bidirectional text.
///
/// LF and TAB stay, CR LF becomes LF, and so does a CR by itself, which would let a line be written over. A sequence of text
/// (OSC, DCS and their like) that does not end in its line loses only its beginning, so that nobody can hide the lines after
/// it. Linear in the length of the text; nothing is copied when there is nothing to remove. For HTML escape what comes out.
///
/// The library itself never does that: it stores and tells text as it came.
pub fn sanitize_for_display(text: &str) -> Cow<'_, str> {
    let Some((first, _)) = text.char_indices().find(|(_, c)| is_control(*c)) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = Rest { text: &text[first..], behind_endless: usize::MAX };
    while let Some(c) = rest.take() {
        match c {
            '\r' => {
                if !rest.text.starts_with('\n') {
                    out.push('\n');
                }
            }
            ESC => rest.escape(),
            '\u{9b}' => rest.parameters(),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => rest.string(),
            c if is_control(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

const ESC: char = '\x1b';

fn is_control(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// What is to be read yet.
struct Rest<'a> {
    text: &'a str,
    /// How much will be left behind the last line that was found to hold no end of a string sequence.
    behind_endless: usize,
}

impl Rest<'_> {
    fn take(&mut self) -> Option<char> {
        let c = self.text.chars().next()?;
        self.skip(c.len_utf8());
        Some(c)
    }

    fn skip(&mut self, bytes: usize) {
        self.text = self.text.get(bytes..).unwrap_or_default();
    }

    fn skip_while(&mut self, is: impl Fn(&u8) -> bool) {
        self.skip(self.text.bytes().take_while(is).count());
    }

    fn skip_one(&mut self, is: impl Fn(&u8) -> bool) {
        self.skip(self.text.bytes().take(1).filter(is).count());
    }

    /// Behind ESC.
    fn escape(&mut self) {
        match self.text.bytes().next() {
            Some(b'[') => {
                self.skip(1);
                self.parameters();
            }
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                self.skip(1);
                self.string();
            }
            _ => {
                self.skip_while(|byte| matches!(byte, b' '..=b'/'));
                self.skip_one(|byte| matches!(byte, b'0'..=b'~'));
            }
        }
    }

    /// Behind CSI: parameters, intermediates and the final byte.
    fn parameters(&mut self) {
        self.skip_while(|byte| matches!(byte, b'0'..=b'?'));
        self.skip_while(|byte| matches!(byte, b' '..=b'/'));
        self.skip_one(|byte| matches!(byte, b'@'..=b'~'));
    }

    /// Behind OSC, DCS, SOS, PM or APC: text up to BEL or ST, if the line has one.
    fn string(&mut self) {
        if self.text.len() >= self.behind_endless {
            return; // still in that line
        }
        let mut before = 0;
        for (at, byte) in self.text.bytes().enumerate() {
            match (before, byte) {
                (_, b'\n') => {
                    self.behind_endless = self.text.len() - at;
                    return;
                }
                // BEL, ESC and backslash, and the two bytes of U+009C.
                (_, 0x07) | (0x1b, b'\\') | (0xc2, 0x9c) => return self.skip(at + 1),
                _ => before = byte,
            }
        }
        self.behind_endless = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_obey_goes_and_text_stays() {
        for (text, shown) in [
            ("plain, ünï, 👩‍👩‍👧, \u{200b}\u{ad}", "plain, ünï, 👩‍👩‍👧, \u{200b}\u{ad}"),
            ("", ""),
            ("\x1b[1;31mred\x1b[0m\tand\n", "red\tand\n"),
            ("\x1b[38:2::1:2:3 qx\x1b[?25l\x1b[<1;2Mz", "xz"),
            ("\u{9b}2Jc1", "c1"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://bad\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\u{9d}52;c;cm0gLXJm\u{9c}ok \x1bPq#1\x1b\\ok \x1b_apc\x1b\\ok", "ok ok ok"),
            ("\x1bc\x1b(B\x1b#8\x1b7up\x1b", "up"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("a\0\x07\x08\x7f\u{85}b", "ab"),
            ("user\u{202e}txt.exe\u{2066}\u{200f}\u{61c}", "usertxt.exe"),
            // Nothing is hidden by what does not end.
            ("\x1b]0;a\nrm -rf /\x07", "0;a\nrm -rf /"),
            ("\x1b]a\n\x1b]0;title\x07text", "a\ntext"),
            ("\x1b[12", ""),
            ("\x1b[\u{1b}[31mx", "x"),
            ("\x1b[31ü", "ü"),
        ] {
            assert_eq!(sanitize_for_display(text), shown, "{text:?}");
            assert_eq!(sanitize_for_display(shown), shown, "once is enough");
        }
        assert!(matches!(sanitize_for_display("plain\n"), Cow::Borrowed(_)));
    }

    /// Would take hours if every beginning were followed to the end of the text.
    #[test]
    fn a_million_beginnings_without_an_end() {
        let text = "\x1b]0".repeat(1_000_000);
        assert_eq!(sanitize_for_display(&text).len(), 1_000_000);
        let ended = "\x1b]0;a\x07b".repeat(1_000_000);
        assert_eq!(sanitize_for_display(&ended).len(), 1_000_000);
        let lines = "\x1b]a\n".repeat(1_000_000);
        assert_eq!(sanitize_for_display(&lines).len(), 2_000_000);
    }
}
