//! Parts of the tools by themselves, for the conformance runner. Not for hosts: they may change at any time.

/// The form in which `edit` compares (T131).
pub fn normalize_for_fuzzy_match(text: &str) -> String {
    super::fold::folded(text)
}

/// Every line break an LF (T127).
pub fn normalize_to_lf(text: &str) -> String {
    super::edit_text::with_line_feeds(text).into_owned()
}
