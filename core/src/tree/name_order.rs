//! The order of file names in listings: that of a dictionary, not of their bytes.

use std::cmp::Ordering;
use std::path::Path;

/// Marks in the order in which collation puts them, all before digits and letters.
const MARKS: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Compares two files by their names: marks, digits, letters; small and capital letters differ only where all else is
/// equal, small ones first. Letters beyond ASCII come last, by their numbers.
pub(crate) fn name_order(a: &Path, b: &Path) -> Ordering {
    let (a, b) =
        (a.file_name().unwrap_or_default().to_string_lossy(), b.file_name().unwrap_or_default().to_string_lossy());
    let keys = a.chars().map(key).cmp(b.chars().map(key));
    keys.then_with(|| a.chars().map(|c| c.is_ascii_uppercase()).cmp(b.chars().map(|c| c.is_ascii_uppercase())))
        .then_with(|| a.cmp(&b))
}

fn key(c: char) -> (u8, u32) {
    match c {
        '0'..='9' => (1, u32::from(c)),
        'a'..='z' | 'A'..='Z' => (2, u32::from(c.to_ascii_lowercase())),
        _ => match MARKS.find(c) {
            Some(at) => (0, at as u32),
            None => (3, u32::from(c)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_letters_come_first_where_all_else_is_equal() {
        let mut names = ["B", "b2", "a1", "a-1", "b", "a_1", "A1", "9", "a.1", "é", "10", "ab", "a"].map(Path::new);
        names.sort_by(|a, b| name_order(a, b));
        assert_eq!(names, ["10", "9", "a", "a_1", "a-1", "a.1", "a1", "A1", "ab", "b", "B", "b2", "é"].map(Path::new));
    }
}
