//! Where several texts are in one file, found in one pass over it.
//!
//! Fifty edits of ten megabytes searched one by one are half a gigabyte to look at. Few texts, small files and very long
//! texts are searched one by one all the same: that is quicker than making the table for the one pass.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use memchr::memmem;

/// Fewer texts are searched one by one.
const FEW: usize = 4;
/// In a smaller file they are searched one by one.
const SMALL: usize = 256 << 10;
/// Most bytes of all texts together for the one pass: its table may take a thousand times as much.
const TABLE: usize = 16 << 10;

/// The places of one text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// Where the first one begins.
    pub(super) first: Option<usize>,
    /// How many there are that do not overlap, taken from the start.
    pub(super) count: usize,
}

/// The places of each text. An empty one has none.
pub(super) fn all(file: &str, texts: &[&str]) -> Vec<Places> {
    let length: usize = texts.iter().map(|text| text.len()).sum();
    let one_pass = texts.len() >= FEW && file.len() >= SMALL && length <= TABLE;
    match one_pass.then(|| together(file, texts)).flatten() {
        Some(places) => places,
        None => texts.iter().map(|text| alone(file, text)).collect(),
    }
}

fn alone(file: &str, text: &str) -> Places {
    if text.is_empty() {
        return Places::default();
    }
    let mut places = memmem::find_iter(file.as_bytes(), text.as_bytes());
    let first = places.next();
    Places { first, count: usize::from(first.is_some()) + places.count() }
}

/// `None` when the texts are such that this is the longer way: one that overlaps itself again and again.
fn together(file: &str, texts: &[&str]) -> Option<Vec<Places>> {
    let wanted: Vec<usize> = (0..texts.len()).filter(|at| !texts[*at].is_empty()).collect();
    let table = AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(wanted.iter().map(|at| texts[*at]))
        .ok()?;
    let mut out = vec![Places::default(); texts.len()];
    let mut ends = vec![0; texts.len()];
    let mut left = file.len();
    for found in table.try_find_overlapping_iter(file).ok()? {
        left = left.checked_sub(1)?;
        let at = wanted[found.pattern().as_usize()];
        let places = &mut out[at];
        if places.first.is_none() || found.start() >= ends[at] {
            places.first = places.first.or(Some(found.start()));
            places.count += 1;
            ends[at] = found.end();
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{Places, alone, together};

    #[test]
    fn one_pass_finds_what_single_searches_find() {
        let file = "aaaa abcabcabc xéyéx\n".repeat(50) + "only once";
        let texts = ["aa", "abc", "bcab", "", "é", "yéx\na", "only once", "nowhere", "a", "aa"];
        let expected: Vec<Places> = texts.iter().map(|text| alone(&file, text)).collect();
        assert_eq!(together(&file, &texts), Some(expected.clone()));
        assert_eq!(expected[0].count, 100);
        assert_eq!(expected[6], Places { first: file.find("only"), count: 1 });
        assert_eq!(expected[3], Places::default());
        // A text that overlaps itself everywhere is left to the single searches.
        assert_eq!(together(&"a".repeat(1000), &["a", "aa", "aaa", "aaaa"]), None);
    }
}
