//! Finding what an edit names, and replacing it (T121, T128–T142).
//!
//! Texts are searched as they are first. Only what that does not decide is folded: an edit that is not there exactly, and
//! whether there is a second place that reads the same.

use std::ops::Range;

use memchr::memmem;

use super::ToolError;
use super::diff::{self, Diff, Replaced};
use super::edit_places;
use super::edit_text::{FileText, with_line_feeds};
use super::fold::{fold, folded};
use super::offsets::Derived;

/// A text and what is to stand in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is in the file, once.
    pub old: String,
    /// What replaces it.
    pub new: String,
}

/// What edits come to.
#[derive(Debug)]
pub(super) struct Edited {
    pub(super) bytes: Vec<u8>,
    pub(super) diff: Diff,
}

/// A place in the file that an edit names.
struct Match {
    /// The edit's place in the call.
    index: usize,
    /// In the text that was searched.
    at: Range<usize>,
}

/// Applies edits to the bytes of a file. `path` is for messages and the patch.
pub(super) fn apply(path: &str, bytes: &[u8], edits: &[Edit]) -> Result<Edited, ToolError> {
    let file = FileText::new(bytes);
    let text = file.text();
    let edits: Vec<(String, String)> = edits
        .iter()
        .map(|edit| (with_line_feeds(&edit.old).into_owned(), with_line_feeds(&edit.new).into_owned()))
        .collect();
    let says = Words { path, single: edits.len() == 1 };
    if let Some(index) = edits.iter().position(|(old, _)| old.is_empty()) {
        let name = if says.single { "oldText".to_owned() } else { format!("edits[{index}].oldText") };
        return Err(ToolError::new(format!("{name} must not be empty in {path}.")));
    }
    let folded_file = fold(text);
    let mut matches = locate(text, &folded_file, &edits, &says)?;
    matches.sort_by_key(|it| it.at.start);
    for pair in matches.windows(2) {
        if pair[0].at.end > pair[1].at.start {
            let (one, other) = (pair[0].index, pair[1].index);
            return Err(ToolError::new(format!(
                "edits[{one}] and edits[{other}] overlap in {path}. Make one edit of them."
            )));
        }
    }
    let replacements: Vec<(Range<usize>, &str)> =
        matches.iter().map(|it| (it.at.clone(), edits[it.index].1.as_str())).collect();
    let taken_apart =
        || ToolError::new(format!("Could not find the exact text in {path}: it ends inside a character."));
    let bytes_after = file.replace(&replacements).ok_or_else(taken_apart)?;
    if bytes_after == bytes {
        return Err(ToolError::new(format!("No changes made to {path}. The new text equals the old one.")));
    }
    Ok(Edited { bytes: bytes_after, diff: difference(path, text, &replacements) })
}

/// How messages name an edit.
struct Words<'a> {
    path: &'a str,
    single: bool,
}

impl Words<'_> {
    fn not_found(&self, index: usize) -> ToolError {
        let what = if self.single { "the exact text".to_owned() } else { format!("edits[{index}]") };
        let path = self.path;
        ToolError::new(format!(
            "Could not find {what} in {path}. The old text must match the file exactly, with all blanks and line breaks."
        ))
    }

    fn not_unique(&self, index: usize, count: usize) -> ToolError {
        let what = if self.single { "the text".to_owned() } else { format!("edits[{index}]") };
        let path = self.path;
        ToolError::new(format!(
            "Found {count} occurrences of {what} in {path}. It must be unique: add lines around it."
        ))
    }

    fn inside_character(&self, index: usize) -> ToolError {
        let what = if self.single { "the text".to_owned() } else { format!("edits[{index}]") };
        let path = self.path;
        ToolError::new(format!(
            "Could not find {what} in {path} exactly: it matches only a part of a character there. Copy the text from the file."
        ))
    }
}

/// Finds every edit, in ranges of `text`.
fn locate(
    text: &str,
    folded_file: &Derived,
    edits: &[(String, String)],
    says: &Words<'_>,
) -> Result<Vec<Match>, ToolError> {
    let folded_olds: Vec<String> = edits.iter().map(|(old, _)| folded(old)).collect();
    let in_folded = edit_places::all(&folded_file.text, &folded_olds.iter().map(String::as_str).collect::<Vec<_>>());
    // Where folding changes nothing, what was found there was found here.
    let same_text = folded_file.text == text;
    let exact: Vec<Option<usize>> = edits
        .iter()
        .enumerate()
        .map(|(index, (old, _))| match same_text && folded_olds[index] == *old {
            true => in_folded[index].first,
            false => memmem::find(text.as_bytes(), old.as_bytes()),
        })
        .collect();
    let by_folding = exact.iter().any(Option::is_none);
    let mut out = Vec::with_capacity(edits.len());
    for (index, (old, _)) in edits.iter().enumerate() {
        let at = if by_folding {
            let file = folded_file.text.as_bytes();
            let as_given = memmem::find(file, old.as_bytes()).map(|at| at..at + old.len());
            let found = as_given.or_else(|| in_folded[index].first.map(|at| at..at + folded_olds[index].len()));
            found.ok_or_else(|| says.not_found(index))?
        } else {
            let at = exact[index].unwrap_or_default();
            at..at + old.len()
        };
        let count = match folded_olds[index].is_empty() {
            true => positions(&folded_file.text),
            false => in_folded[index].count,
        };
        if count > 1 {
            return Err(says.not_unique(index, count));
        }
        let at = match by_folding {
            true => folded_file.source_of(&at).ok_or_else(|| says.inside_character(index))?,
            false => at,
        };
        out.push(Match { index, at });
    }
    if by_folding && last_line_vanishes(text) {
        let path = says.path;
        return Err(ToolError::new(format!(
            "Could not edit {path}: its last line is blank and has no end, so the lines to compare do not match up."
        )));
    }
    Ok(out)
}

/// Whether folding changes the number of lines (T142): it takes away a last line of blanks alone.
fn last_line_vanishes(text: &str) -> bool {
    let last = text.rsplit('\n').next().unwrap_or_default();
    !last.is_empty() && last.chars().all(crate::blank::is_blank_or_break)
}

/// A text that folds to nothing counts every place between characters (T139).
fn positions(file: &str) -> usize {
    file.encode_utf16().count().saturating_sub(1)
}

fn difference(path: &str, text: &str, replacements: &[(Range<usize>, &str)]) -> Diff {
    let mut after = String::with_capacity(text.len());
    let mut replaced = Vec::with_capacity(replacements.len());
    let mut kept = 0;
    for (range, new) in replacements {
        after.push_str(&text[kept..range.start]);
        let start = after.len();
        after.push_str(new);
        replaced.push(Replaced { old: range.clone(), new: start..after.len() });
        kept = range.end;
    }
    after.push_str(&text[kept..]);
    diff::around(path, text, &after, &replaced)
}
