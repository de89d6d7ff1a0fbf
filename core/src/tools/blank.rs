//! What counts as blank: JavaScript's set, not Unicode's (T132, P722, P752).

/// Blank, including line breaks: what `trim` removes.
pub(crate) fn is_blank_or_break(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}'
        | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}')
}
