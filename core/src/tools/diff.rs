//! Line diffs as `edit` shows them (T161–T168).
//!
//! Models have seen many of these, so the choice between equally short diffs is fixed by rule: a greedy forward search
//! (Myers) that prefers removals, in windows around the replacements.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

/// Lines around a change.
const CONTEXT: usize = 4;
/// Lines around a replacement that are compared.
const WINDOW: usize = 32;
/// Edits after which a window counts as replaced altogether. The search takes time and memory with its square.
const MOST_EDITS: usize = 4000;

/// One difference of two texts, for people and for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// For display: numbered lines, no headers (T163).
    pub display: String,
    /// A unified diff (T165).
    pub patch: String,
    /// The first line of the new text that differs, counted from 1; `None` if none does.
    pub first_changed_line: Option<usize>,
}

/// A replacement: byte ranges of the old and the new text that stand for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// Compares two whole texts.
pub fn whole(path: &str, old: &str, new: &str) -> Diff {
    around(path, old, new, &[Replaced { old: 0..old.len(), new: 0..new.len() }])
}

/// Compares two texts that are equal but for `replaced`, which is in order and does not overlap.
pub(super) fn around(path: &str, old: &str, new: &str, replaced: &[Replaced]) -> Diff {
    let (old, new) = (Lines::new(old), Lines::new(new));
    let mut changes = Vec::new();
    for (old_window, new_window) in windows(&old, &new, replaced) {
        compare(&old, old_window, &new, new_window, &mut changes);
    }
    Diff {
        display: display(&old, &new, &changes),
        patch: patch(path, &old, &new, &changes),
        first_changed_line: changes.first().map(|change| change.new.start + 1),
    }
}

/// A text by lines. Each line has its LF; the last may have none.
struct Lines<'a> {
    text: &'a str,
    /// Where lines begin, and the end of the text.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Lines { text, starts }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    fn line(&self, index: usize) -> &'a str {
        &self.text[self.starts[index]..self.starts[index + 1]]
    }

    /// The line that a byte is in.
    fn at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1).min(self.count())
    }

    /// How many lines there are to count with: LFs plus one.
    fn numbers(&self) -> usize {
        self.count() + usize::from(self.text.is_empty() || self.text.ends_with('\n'))
    }
}

/// Line ranges to compare; what lies between them is equal.
fn windows(old: &Lines<'_>, new: &Lines<'_>, replaced: &[Replaced]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut out: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for Replaced { old: old_bytes, new: new_bytes } in replaced {
        let (first_old, first_new) = (old.at(old_bytes.start), new.at(new_bytes.start));
        let before = WINDOW.min(first_old).min(first_new);
        let last_old = (old.at(old_bytes.end) + 1).min(old.count());
        let last_new = (new.at(new_bytes.end) + 1).min(new.count());
        let after = WINDOW.min(old.count() - last_old).min(new.count() - last_new);
        let window = (first_old - before..last_old + after, first_new - before..last_new + after);
        match out.last_mut() {
            Some(last) if last.0.end >= window.0.start || last.1.end >= window.1.start => {
                last.0.end = last.0.end.max(window.0.end);
                last.1.end = last.1.end.max(window.1.end);
            }
            _ => out.push(window),
        }
    }
    out
}

/// Neighbouring lines that were removed, added, or both. Line indices of the whole texts.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
    /// Runs in the order in which the search found them: whether lines are added, and how many.
    runs: Vec<(bool, usize)>,
}

/// A step of the search, linked to the one before.
#[derive(Clone, Copy)]
struct Step {
    kind: Kind,
    count: usize,
    before: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Equal,
    Added,
    Removed,
}

/// The end of the best path on a diagonal: how many old lines are used up, and its last step.
#[derive(Clone, Copy)]
struct Reached {
    old: usize,
    last: Option<usize>,
}

fn compare(old: &Lines<'_>, at_old: Range<usize>, new: &Lines<'_>, at_new: Range<usize>, out: &mut Vec<Change>) {
    let mut ids: HashMap<&str, u32> = HashMap::new();
    let mut intern = |line| {
        let next = ids.len() as u32;
        *ids.entry(line).or_insert(next)
    };
    let old_ids: Vec<u32> = at_old.clone().map(|line| intern(old.line(line))).collect();
    let new_ids: Vec<u32> = at_new.clone().map(|line| intern(new.line(line))).collect();
    let steps = search(&old_ids, &new_ids).unwrap_or_else(|| replaced_altogether(&old_ids, &new_ids));
    let (mut old_line, mut new_line) = (at_old.start, at_new.start);
    let mut inside = false;
    for (kind, count) in steps {
        if kind == Kind::Equal {
            old_line += count;
            new_line += count;
            inside = false;
            continue;
        }
        if !inside {
            out.push(Change { old: old_line..old_line, new: new_line..new_line, runs: Vec::new() });
            inside = true;
        }
        let Some(change) = out.last_mut() else { continue };
        if kind == Kind::Added {
            new_line += count;
        } else {
            old_line += count;
        }
        change.old.end = old_line;
        change.new.end = new_line;
        change.runs.push((kind == Kind::Added, count));
    }
}

/// The steps of the first shortest path in the order of T161, or `None` when it is too long.
fn search(old: &[u32], new: &[u32]) -> Option<Vec<(Kind, usize)>> {
    let mut steps: Vec<Step> = Vec::new();
    // Diagonals run from -distance to distance; each is the number of old lines less that of new ones.
    let limit = (old.len() + new.len()).min(MOST_EDITS);
    let width = limit as isize + 1;
    let slot = |diagonal: isize| (diagonal + width) as usize;
    let mut best: Vec<Option<Reached>> = vec![None; 2 * width as usize + 1];
    let (mut lowest, mut highest) = (-width, width);
    for distance in 0..=limit as isize {
        let mut diagonal = lowest.max(-distance);
        while diagonal <= highest.min(distance) {
            let mut path = if distance == 0 {
                Reached { old: 0, last: None }
            } else {
                let removing = best[slot(diagonal - 1)].take();
                let adding = best[slot(diagonal + 1)];
                let removing = removing.filter(|path| path.old < old.len());
                let adding = adding.filter(|path| {
                    let used = path.old as isize - (diagonal + 1);
                    (0..new.len() as isize).contains(&used)
                });
                match (removing, adding) {
                    (None, None) => {
                        best[slot(diagonal)] = None;
                        diagonal += 2;
                        continue;
                    }
                    (Some(removing), adding) if adding.is_none_or(|adding| removing.old >= adding.old) => Reached {
                        old: removing.old + 1,
                        last: Some(extend(&mut steps, Kind::Removed, 1, removing.last)),
                    },
                    (_, Some(adding)) => {
                        Reached { old: adding.old, last: Some(extend(&mut steps, Kind::Added, 1, adding.last)) }
                    }
                    (Some(_), None) => unreachable!("taken by the arm for removals"),
                }
            };
            let mut used = (path.old as isize - diagonal) as usize;
            let equal = old[path.old..].iter().zip(&new[used..]).take_while(|(old, new)| old == new).count();
            if equal > 0 {
                path.old += equal;
                used += equal;
                path.last = Some(extend(&mut steps, Kind::Equal, equal, path.last));
            }
            if path.old >= old.len() && used >= new.len() {
                return Some(unwind(&steps, path.last));
            }
            if path.old >= old.len() {
                highest = highest.min(diagonal - 1);
            }
            if used >= new.len() {
                lowest = lowest.max(diagonal + 1);
            }
            best[slot(diagonal)] = Some(path);
            diagonal += 2;
        }
    }
    None
}

/// Adds to a path; neighbouring steps of one kind are one.
fn extend(steps: &mut Vec<Step>, kind: Kind, count: usize, last: Option<usize>) -> usize {
    let step = match last.map(|last| steps[last]) {
        Some(step) if step.kind == kind => Step { count: step.count + count, ..step },
        _ => Step { kind, count, before: last },
    };
    steps.push(step);
    steps.len() - 1
}

fn unwind(steps: &[Step], last: Option<usize>) -> Vec<(Kind, usize)> {
    let mut out = Vec::new();
    let mut at = last;
    while let Some(index) = at {
        let step = steps[index];
        out.push((step.kind, step.count));
        at = step.before;
    }
    out.reverse();
    out
}

/// Equal lines at both ends, and everything between them replaced.
fn replaced_altogether(old: &[u32], new: &[u32]) -> Vec<(Kind, usize)> {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let rest = (&old[start..], &new[start..]);
    let end = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(|(old, new)| old == new).count();
    let steps = [
        (Kind::Equal, start),
        (Kind::Removed, rest.0.len() - end),
        (Kind::Added, rest.1.len() - end),
        (Kind::Equal, end),
    ];
    steps.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// The lines of a change in order: whether added, and the index of the line in its text.
fn changed_lines(change: &Change) -> impl Iterator<Item = (bool, usize)> + '_ {
    let (mut old, mut new) = (change.old.start, change.new.start);
    change.runs.iter().flat_map(move |(added, count)| {
        let from = if *added { &mut new } else { &mut old };
        let lines = *from..*from + count;
        *from += count;
        lines.map(|line| (*added, line))
    })
}

fn display(old: &Lines<'_>, new: &Lines<'_>, changes: &[Change]) -> String {
    let width = old.numbers().max(new.numbers()).to_string().len();
    let marker = format!(" {:width$} ...", "");
    let numbered = |sign: char, line: usize, text: &str| {
        format!("{sign}{:>width$} {}", line + 1, text.strip_suffix('\n').unwrap_or(text))
    };
    let equal = |lines: Range<usize>| lines.map(|line| numbered(' ', line, old.line(line)));
    let mut out: Vec<String> = Vec::new();
    let mut shown = 0;
    for (index, change) in changes.iter().enumerate() {
        let gap = change.old.start - shown;
        let (after, before) = match index {
            0 => (0, CONTEXT.min(gap)),
            _ if gap <= 2 * CONTEXT => (gap, 0),
            _ => (CONTEXT, CONTEXT),
        };
        out.extend(equal(shown..shown + after));
        if gap > after + before {
            out.push(marker.clone());
        }
        out.extend(equal(change.old.start - before..change.old.start));
        out.extend(changed_lines(change).map(|(added, line)| match added {
            true => numbered('+', line, new.line(line)),
            false => numbered('-', line, old.line(line)),
        }));
        shown = change.old.end;
    }
    if !changes.is_empty() {
        let after = CONTEXT.min(old.count() - shown);
        out.extend(equal(shown..shown + after));
        if old.count() > shown + after {
            out.push(marker);
        }
    }
    out.join("\n")
}

fn patch(path: &str, old: &Lines<'_>, new: &Lines<'_>, changes: &[Change]) -> String {
    let mut out = format!("--- {path}\n+++ {path}\n");
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let near = |pair: &[Change]| pair[1].old.start - pair[0].old.end <= 2 * CONTEXT;
        let count = 1 + rest.windows(2).take_while(|pair| near(pair)).count();
        let (hunk, later) = rest.split_at(count);
        let last = &hunk[count - 1];
        let before = CONTEXT.min(first.old.start);
        let after = CONTEXT.min(old.count() - last.old.end);
        let old_lines = first.old.start - before..last.old.end + after;
        let new_lines = first.new.start - before..last.new.end + after;
        let start = |lines: &Range<usize>| lines.start + usize::from(!lines.is_empty());
        let (old_start, new_start) = (start(&old_lines), start(&new_lines));
        let _ = writeln!(out, "@@ -{old_start},{} +{new_start},{} @@", old_lines.len(), new_lines.len());
        let mut equal = old_lines.start;
        for change in hunk {
            for line in equal..change.old.start {
                put(&mut out, ' ', old.line(line));
            }
            for (added, line) in changed_lines(change) {
                match added {
                    true => put(&mut out, '+', new.line(line)),
                    false => put(&mut out, '-', old.line(line)),
                }
            }
            equal = change.old.end;
        }
        for line in equal..old_lines.end {
            put(&mut out, ' ', old.line(line));
        }
        rest = later;
    }
    out
}

fn put(out: &mut String, sign: char, line: &str) {
    out.push(sign);
    out.push_str(line);
    if !line.ends_with('\n') {
        out.push_str("\n\\ No newline at end of file\n");
    }
}
