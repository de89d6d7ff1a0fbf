//! A text made from another one, and the way back from its bytes to those it was made of.

use std::ops::Range;

/// Text that was derived piece by piece.
#[derive(Debug, Default)]
pub(super) struct Derived {
    pub(super) text: String,
    pieces: Vec<Piece>,
    /// Length of what it was derived from.
    source: usize,
}

/// Where a piece begins on both sides. It ends where the next one begins.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at: usize,
    source: usize,
    /// Byte for byte the same: every position inside has a counterpart. Else only both ends have.
    same: bool,
}

impl Derived {
    /// Appends a piece that is the same on both sides.
    pub(super) fn same(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begin(true);
        self.text.push_str(text);
        self.source += text.len();
    }

    /// Appends a piece that stands for `source` bytes.
    pub(super) fn other(&mut self, text: &str, source: usize) {
        self.begin(false);
        self.text.push_str(text);
        self.source += source;
    }

    fn begin(&mut self, same: bool) {
        if !(same && self.pieces.last().is_some_and(|piece| piece.same)) {
            self.pieces.push(Piece { at: self.text.len(), source: self.source, same });
        }
    }

    /// The source of a non-empty range, or `None` when it begins or ends inside a piece that cannot be taken apart.
    /// Pieces that left nothing (dropped blanks) belong to the range only if they lie inside it.
    pub(super) fn source_of(&self, range: &Range<usize>) -> Option<Range<usize>> {
        // Of several pieces that begin here, all but the last are empty.
        let first = self.pieces.partition_point(|piece| piece.at <= range.start).checked_sub(1)?;
        let piece = self.pieces[first];
        let start = match range.start - piece.at {
            0 => piece.source,
            inside if piece.same => piece.source + inside,
            _ => return None,
        };
        let last = self.pieces.partition_point(|piece| piece.at < range.end).checked_sub(1)?;
        let piece = self.pieces[last];
        let (end, source_end) =
            self.pieces.get(last + 1).map_or((self.text.len(), self.source), |next| (next.at, next.source));
        match end - range.end {
            0 => Some(start..source_end),
            _ if piece.same => Some(start..piece.source + (range.end - piece.at)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Derived;

    #[test]
    fn ranges_map_back() {
        let mut derived = Derived::default();
        derived.same("ab");
        derived.other("", 3);
        derived.other("\n", 2);
        derived.same("cd");
        derived.other("xyz", 2);
        assert_eq!(derived.text, "ab\ncdxyz");
        assert_eq!(derived.source_of(&(1..2)), Some(1..2));
        assert_eq!(derived.source_of(&(1..3)), Some(1..7));
        assert_eq!(derived.source_of(&(2..4)), Some(5..8));
        assert_eq!(derived.source_of(&(3..5)), Some(7..9));
        assert_eq!(derived.source_of(&(4..8)), Some(8..11));
        assert_eq!(derived.source_of(&(4..6)), None);
        assert_eq!(derived.source_of(&(6..8)), None);
    }
}
