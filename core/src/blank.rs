//! What counts as blank: JavaScript's set, not Unicode's (S51, S74, S85, T132, P722, P752).

/// Blank, including line breaks: what `trim` removes.
pub(crate) fn is_blank_or_break(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}'
        | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}')
}

/// `text` without blanks and line breaks at its ends, as JavaScript's `trim` gives it.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(is_blank_or_break)
}
