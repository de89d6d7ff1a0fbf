//! The form of a text in which `edit` compares when the exact text is not there (T131), with the way back.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use super::offsets::Derived;
use crate::blank::is_blank_or_break;

/// Folds a text: compatibility composition, no blanks at line ends, plain quotes, dashes and spaces.
pub(super) fn fold(text: &str) -> Derived {
    let mut out = Derived::default();
    out.text.reserve(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (line, more) = match memchr::memchr(b'\n', rest.as_bytes()) {
            Some(at) => (&rest[..at], &rest[at..=at]),
            None => (rest, ""),
        };
        fold_line(line, &mut out);
        out.same(more);
        rest = &rest[line.len() + more.len()..];
    }
    out
}

/// Only the folded text.
pub(super) fn folded(text: &str) -> String {
    fold(text).text
}

fn fold_line(line: &str, out: &mut Derived) {
    if line.is_ascii() {
        let kept = line.trim_end_matches(is_blank_or_break);
        out.same(kept);
        if kept.len() < line.len() {
            out.other("", line.len() - kept.len());
        }
        return;
    }
    // What composition may join is folded together. A blank at the end of the folded line is dropped with its source.
    let clusters = clusters(line);
    let mut folded: Vec<(String, &str)> = Vec::with_capacity(clusters.len());
    for cluster in clusters {
        folded.push((cluster.nfkc().collect(), cluster));
    }
    while let Some((text, _)) = folded.last_mut() {
        let kept = text.trim_end_matches(is_blank_or_break).len();
        if kept > 0 {
            text.truncate(kept);
            break;
        }
        folded.pop();
    }
    let mut source = 0;
    for (text, cluster) in &folded {
        source += cluster.len();
        let text: String = text.chars().map(plain).collect();
        if text == *cluster { out.same(cluster) } else { out.other(&text, cluster.len()) }
    }
    if source < line.len() {
        out.other("", line.len() - source);
    }
}

/// Quotes, dashes and spaces as they are typed.
fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Cuts a line where composition cannot join the two sides.
fn clusters(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    for (at, c) in line.char_indices() {
        if at > start && begins_cluster(c) {
            out.push(&line[start..at]);
            start = at;
        }
    }
    out.push(&line[start..]);
    out
}

/// Whether a character never joins what stands before it: it is no mark, also when it is decomposed, and no second
/// half of a syllable.
fn begins_cluster(c: char) -> bool {
    if c.is_ascii() {
        return true;
    }
    let first = std::iter::once(c).nfkd().next().unwrap_or(c);
    // Vowels and final consonants of Hangul, and the few starters that compose backwards.
    let joins = matches!(
        first,
        '\u{1161}'
            ..='\u{11c2}'
                | '\u{9be}'
                | '\u{9d7}'
                | '\u{b3e}'
                | '\u{b56}'
                | '\u{b57}'
                | '\u{bbe}'
                | '\u{bd7}'
                | '\u{cc2}'
                | '\u{cd5}'
                | '\u{cd6}'
                | '\u{d3e}'
                | '\u{d57}'
                | '\u{dcf}'
                | '\u{ddf}'
                | '\u{102e}'
                | '\u{1b35}'
                | '\u{11127}'
                | '\u{1133e}'
                | '\u{11357}'
                | '\u{114b0}'
                | '\u{114ba}'
                | '\u{114bd}'
                | '\u{115af}'
                | '\u{11930}'
    );
    canonical_combining_class(first) == 0 && !joins
}

#[cfg(test)]
mod tests {
    use super::{fold, folded};
    use unicode_normalization::UnicodeNormalization;

    #[test]
    fn folds_as_specified() {
        assert_eq!(folded("\u{201c}½ cup\u{201d} – ﬂour\u{a0}"), "\"1\u{2044}2 cup\" - flour");
        assert_eq!(folded("a  \n\tb\t\n  "), "a\n\tb\n");
        assert_eq!(folded("Zu\u{308}rich"), "Zürich");
    }

    #[test]
    fn clusters_compose_like_the_whole() {
        for text in [
            "e\u{301}\u{323}x",
            "\u{1100}\u{1161}\u{11a8}",
            "ﬁ\u{301}",
            "\u{ac00}\u{11a8}",
            "ｶﾞ",
            "a\u{30a}\u{1e0a}\u{323}",
        ] {
            assert_eq!(folded(text), text.nfkc().collect::<String>(), "{text:?}");
        }
    }

    #[test]
    fn the_way_back() {
        let text = "“x” é  \nnext";
        let derived = fold(text);
        assert_eq!(derived.text, "\"x\" é\nnext");
        let at = derived.text.find("\"x\"").unwrap();
        assert_eq!(derived.source_of(&(at..at + 3)).map(|range| &text[range]), Some("“x”"));
        let whole = 0..derived.text.find('\n').unwrap();
        assert_eq!(derived.source_of(&whole).map(|range| &text[range]), Some("“x” é"));
    }
}
