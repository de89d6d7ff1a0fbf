//! Cutting texts to what a model should read (T40–T49).

use serde_json::{Value, json};

/// Most lines shown.
pub const MAX_LINES: usize = 2000;
/// Most bytes shown.
pub const MAX_BYTES: usize = 50 * 1024;

/// How much of a text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most lines.
    pub lines: usize,
    /// Most bytes.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { lines: MAX_LINES, bytes: MAX_BYTES }
    }
}

/// A text that may have been cut, and what was cut (T42).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncation {
    /// What is left.
    pub content: String,
    /// Whether anything was cut.
    pub truncated: bool,
    /// Which limit cut it.
    pub by: Option<Limit>,
    /// Lines before.
    pub total_lines: usize,
    /// Bytes before.
    pub total_bytes: usize,
    /// Lines after.
    pub output_lines: usize,
    /// Bytes after.
    pub output_bytes: usize,
    /// The last line alone was too long, and only its end is left (tail only).
    pub last_line_partial: bool,
    /// The first line alone was too long, and nothing is left (head only).
    pub first_line_exceeds_limit: bool,
    /// What it was cut to.
    pub limits: Limits,
}

/// A limit on texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`MAX_LINES`].
    Lines,
    /// [`MAX_BYTES`].
    Bytes,
}

impl Truncation {
    /// The facts as they are stored in a result's details.
    pub fn to_value(&self) -> Value {
        let by = self.by.map(|limit| match limit {
            Limit::Lines => "lines",
            Limit::Bytes => "bytes",
        });
        json!({
            "content": self.content,
            "truncated": self.truncated,
            "truncatedBy": by,
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.output_lines,
            "outputBytes": self.output_bytes,
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": self.limits.lines,
            "maxBytes": self.limits.bytes,
        })
    }

    fn whole(text: &str, lines: usize, limits: Limits) -> Truncation {
        Truncation {
            content: text.to_owned(),
            truncated: false,
            by: None,
            total_lines: lines,
            total_bytes: text.len(),
            output_lines: lines,
            output_bytes: text.len(),
            last_line_partial: false,
            first_line_exceeds_limit: false,
            limits,
        }
    }

    fn cut(mut self, content: String, lines: usize, by: Limit) -> Truncation {
        self.truncated = true;
        self.by = Some(by);
        self.output_lines = lines;
        self.output_bytes = content.len();
        self.content = content;
        self
    }
}

/// Number of lines: pieces between LFs, without an empty last one (T41).
pub fn count_lines(text: &str) -> usize {
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    breaks + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Whole lines from the start (T43, T44), within the usual limits.
pub fn head(text: &str) -> Truncation {
    head_within(text, Limits::default())
}

/// The same with other limits.
pub fn head_within(text: &str, limits: Limits) -> Truncation {
    let total = count_lines(text);
    let out = Truncation::whole(text, total, limits);
    if total <= limits.lines && text.len() <= limits.bytes {
        return out;
    }
    let mut lines = 0;
    let mut end = 0;
    let mut by = Limit::Lines;
    for line in text.split('\n').take(total.min(limits.lines)) {
        let start = if lines == 0 { 0 } else { end + 1 };
        if start + line.len() > limits.bytes {
            by = Limit::Bytes;
            break;
        }
        end = start + line.len();
        lines += 1;
    }
    let mut out = out.cut(text[..end].to_owned(), lines, by);
    out.first_line_exceeds_limit = lines == 0;
    out
}

/// Whole lines from the end, or the end of the last line when that alone is too long (T45–T47).
pub fn tail(text: &str) -> Truncation {
    tail_within(text, Limits::default())
}

/// The same with other limits.
pub fn tail_within(text: &str, limits: Limits) -> Truncation {
    let total = count_lines(text);
    let out = Truncation::whole(text, total, limits);
    if total <= limits.lines && text.len() <= limits.bytes {
        return out;
    }
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut lines = 0;
    let mut start = text.len();
    let mut by = Limit::Lines;
    for line in text.rsplit('\n').take(limits.lines) {
        let end = if lines == 0 { text.len() } else { start - 1 };
        if text.len() - (end - line.len()) > limits.bytes {
            by = Limit::Bytes;
            break;
        }
        start = end - line.len();
        lines += 1;
    }
    if lines > 0 {
        return out.cut(text[start..].to_owned(), lines, by);
    }
    let mut start = text.len().saturating_sub(limits.bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let mut out = out.cut(text[start..].to_owned(), 1, Limit::Bytes);
    out.last_line_partial = true;
    out
}

/// A line of at most `most` UTF-16 units and whether it was cut; a cut one ends with a mark (T48).
pub fn line(text: &str, most: usize) -> (String, bool) {
    let mut units = 0;
    let first_too_far = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > most
    });
    let end = first_too_far.map_or(text.len(), |(at, _)| at);
    match end == text.len() {
        true => (text.to_owned(), false),
        false => (format!("{}... [truncated]", &text[..end]), true),
    }
}

/// A size for people: `12B`, `50.0KB`, `1.5MB` (T49).
pub fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{:.1}KB", bytes as f64 / 1024.0),
        _ => format!("{:.1}MB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_keeps_whole_lines() {
        let text = format!("{}\n", "x".repeat(MAX_BYTES));
        let cut = head(&text);
        assert_eq!((cut.truncated, cut.by, cut.output_lines), (true, Some(Limit::Lines), 1));
        let long = head(&"y".repeat(MAX_BYTES + 1));
        assert!(long.first_line_exceeds_limit && long.content.is_empty());
        let many = head(&"a\n".repeat(2500));
        assert_eq!((many.output_lines, many.total_lines, many.by), (2000, 2500, Some(Limit::Lines)));
    }

    #[test]
    fn tail_keeps_whole_lines_or_the_end_of_one() {
        let many = tail(&"a\n".repeat(2500));
        assert_eq!((many.output_lines, many.content.len()), (2000, 3999));
        let long = tail(&"€".repeat(MAX_BYTES));
        assert!(long.last_line_partial && long.content.len() <= MAX_BYTES && long.content.starts_with('€'));
        assert_eq!(size(1_048_575), "1024.0KB");
    }
}
