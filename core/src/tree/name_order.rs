//! The order of file names in listings: the root order of Unicode's CLDR, not that of their bytes.

use std::cmp::Ordering;
use std::path::Path;

use icu_collator::CollatorBorrowed;
use icu_collator::options::CollatorOptions;

/// Compares files by their names. Names that are equal in that order are in the order of their bytes.
pub(crate) struct NameOrder(CollatorBorrowed<'static>);

impl NameOrder {
    pub(crate) fn new() -> NameOrder {
        NameOrder(CollatorBorrowed::new_root(CollatorOptions::default()))
    }

    pub(crate) fn compare(&self, a: &Path, b: &Path) -> Ordering {
        let [a, b] = [a, b].map(|path| path.file_name().unwrap_or_default().to_string_lossy());
        self.0.compare(&a, &b).then_with(|| a.cmp(&b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_letters_come_first_where_all_else_is_equal() {
        let mut names =
            ["B", "b2", "a1", "a-1", "b", "a_1", "A1", "9", "a.1", "é", "10", "ab", "a", "f"].map(Path::new);
        let order = NameOrder::new();
        names.sort_by(|a, b| order.compare(a, b));
        let sorted = ["10", "9", "a", "a_1", "a-1", "a.1", "a1", "A1", "ab", "b", "B", "b2", "é", "f"];
        assert_eq!(names, sorted.map(Path::new));
    }
}
