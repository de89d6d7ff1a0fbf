//! What is printed: failures with a readable difference, deliberate differences with their reason, and one last line.

use std::fmt::Write as _;

use crate::compare::Mismatch;

/// How a case ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// As the reference.
    Same,
    /// Different on purpose; what we promise instead was checked. Ids of sections of `docs/differences.md`.
    Different(Vec<&'static str>),
    /// Not what was expected.
    Failed(Vec<Mismatch>),
    /// The case needs something optional that is not there.
    Skipped(&'static str),
}

/// Results of all cases of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases that passed.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
    /// Cases that need something optional.
    pub skipped: usize,
    text: String,
}

/// The reasons for deliberate differences.
const DIFFERENCES: &str = include_str!("../../../docs/differences.md");
/// A long value is cut to this many characters around the first difference.
const WIDTH: usize = 320;

impl Report {
    /// Adds a case.
    pub fn add(&mut self, name: &str, title: &str, outcome: Outcome) {
        match outcome {
            Outcome::Same => self.passed += 1,
            Outcome::Different(ids) => {
                self.passed += 1;
                for id in ids {
                    let reason = reason(id).unwrap_or_else(|| "docs/differences.md has no such section".to_owned());
                    let _ = writeln!(self.text, "different on purpose: {name}: {id}: {reason}");
                }
            }
            Outcome::Skipped(reason) => {
                self.skipped += 1;
                let _ = writeln!(self.text, "skipped: {name}: {reason}");
            }
            Outcome::Failed(mismatches) => {
                self.failed += 1;
                let _ = writeln!(self.text, "FAILED {name}: {title}");
                for mismatch in mismatches.iter().take(8) {
                    let (expected, actual) = focus(&mismatch.expected, &mismatch.actual);
                    let _ =
                        writeln!(self.text, "  at {}\n    expected {expected}\n    actual   {actual}", mismatch.path);
                }
                if mismatches.len() > 8 {
                    let _ = writeln!(self.text, "  … and {} more", mismatches.len() - 8);
                }
            }
        }
    }

    /// Number of cases.
    pub fn total(&self) -> usize {
        self.passed + self.failed + self.skipped
    }

    /// Everything to print, without the last line.
    pub fn details(&self) -> &str {
        &self.text
    }

    /// The last line.
    pub fn last_line(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

/// A failure that is not a difference of two values.
pub fn problem(path: &str, expected: &str, actual: impl Into<String>) -> Mismatch {
    Mismatch { path: path.to_owned(), expected: expected.to_owned(), actual: actual.into() }
}

/// The `Why` paragraph of a section of `docs/differences.md`.
pub fn reason(id: &str) -> Option<String> {
    let section = DIFFERENCES.split("\n## ").find(|section| section.split([' ', ':', '\n']).next() == Some(id))?;
    let why = section.split("\n\n").find_map(|part| part.trim().strip_prefix("**Why.**"))?;
    Some(why.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The parts of two long texts around their first difference.
fn focus(expected: &str, actual: &str) -> (String, String) {
    let same = expected.chars().zip(actual.chars()).take_while(|(a, b)| a == b).count();
    let start = if expected.len().max(actual.len()) <= WIDTH { 0 } else { same.saturating_sub(60) };
    let cut = |text: &str| {
        let body: String = text.chars().skip(start).take(WIDTH).collect();
        let (head, tail) =
            (if start > 0 { "…" } else { "" }, if text.chars().count() > start + WIDTH { "…" } else { "" });
        format!("{head}{body}{tail}")
    };
    (cut(expected), cut(actual))
}
