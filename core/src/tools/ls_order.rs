//! The order of a listing: lower-cased names in the root order of Unicode's CLDR (T304).

use std::borrow::Cow;

use icu_collator::CollatorBorrowed;
use icu_collator::options::CollatorOptions;

/// Printable ASCII in that order, after lower-casing. Every character differs from its neighbours in the first level, so
/// plain names need no more than this table.
const ASCII: &[u8] = b" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz";

const RANKS: [u8; 128] = {
    let mut ranks = [0; 128];
    let mut at = 0;
    while at < ASCII.len() {
        ranks[ASCII[at] as usize] = at as u8 + 1;
        ranks[ASCII[at].to_ascii_uppercase() as usize] = at as u8 + 1;
        at += 1;
    }
    ranks
};

/// Sorts by name. Names that are equal there (`a` and `A`) are in the order of their bytes: the reference keeps the order
/// of the directory, which its runtime reads sorted so.
pub(super) fn sort_by_name<T>(items: Vec<T>, name: impl for<'a> Fn(&'a T) -> Cow<'a, str>) -> Vec<T> {
    let plain =
        items.iter().all(|item| name(item).bytes().all(|byte| RANKS.get(usize::from(byte)).is_some_and(|&it| it > 0)));
    let collator = CollatorBorrowed::new_root(CollatorOptions::default());
    let key = |name: &str| -> Vec<u8> {
        if plain {
            return name.bytes().map(|byte| RANKS[usize::from(byte)]).collect();
        }
        let mut key = Vec::with_capacity(name.len() * 3);
        // Writing to memory cannot fail.
        let _ = collator.write_sort_key_to(&name.to_lowercase(), &mut key);
        key
    };
    let mut keyed: Vec<(Vec<u8>, T)> = items.into_iter().map(|item| (key(&name(&item)), item)).collect();
    keyed.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| name(one).cmp(&name(other))));
    keyed.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(names: &[&'static str]) -> Vec<&'static str> {
        sort_by_name(names.to_vec(), |name| Cow::Borrowed(*name))
    }

    #[test]
    fn the_table_is_what_the_collator_says() {
        let collator = CollatorBorrowed::new_root(CollatorOptions::default());
        for pair in ASCII.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|byte| char::from(byte).to_string());
            assert_eq!(collator.compare(&a, &b), std::cmp::Ordering::Less, "{a:?} {b:?}");
        }
        assert_eq!(ASCII.len(), 95 - 26);
    }

    #[test]
    fn punctuation_digits_letters_and_accents() {
        let names = ["Zeta", "alpha", "Beta", "gamma", "_under", "10", "9", "a-b", "a_b", "ab"];
        assert_eq!(sorted(&names), ["_under", "10", "9", "a_b", "a-b", "ab", "alpha", "Beta", "gamma", "Zeta"]);
        assert_eq!(
            sorted(&["zebra", "étude", "etude", "eta", "Éric", "日本"]),
            ["Éric", "eta", "etude", "étude", "zebra", "日本"]
        );
        assert_eq!(sorted(&["B", "b", "a", "A"]), ["A", "a", "B", "b"], "equal names by their bytes");
    }
}
