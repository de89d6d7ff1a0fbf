//! What is wrong with a session file that was opened all the same.

use std::fmt;

use serde::Serialize;

/// One fault of a session file. Everything readable around it stays readable, and the file's bytes stay as they are.
/// Serialised, it has these fields, the kind by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Line number, counted from 1 (the header is usually line 1).
    pub line: u64,
    /// Position of the line's first byte in the file.
    pub offset: u64,
    /// What kind of fault.
    pub kind: DiagnosticKind,
    /// One sentence for people.
    pub message: String,
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The last line is incomplete: a write was interrupted. The line is skipped.
    TornTail,
    /// The line holds NUL bytes: the file system lost a page. The line is skipped.
    NulBytes,
    /// The line is not JSON. It is skipped.
    InvalidJson,
    /// The line is JSON, but not an object. It is skipped.
    NotAnObject,
    /// An object without a string `id`. It is skipped.
    MissingId,
    /// The line is longer than 2 GiB. It is skipped.
    LineTooLong,
    /// The id occurred before; lookups see this later entry.
    DuplicateId,
    /// `parentId` names no entry; the entry is shown as a root.
    MissingParent,
    /// Following `parentId` from here comes back here; the entry is shown as a root.
    Cycle,
    /// A second header in the middle of the file; it is skipped.
    ExtraHeader,
}

impl DiagnosticKind {
    /// Stable name, `snake_case`.
    pub fn name(self) -> &'static str {
        match self {
            DiagnosticKind::TornTail => "torn_tail",
            DiagnosticKind::NulBytes => "nul_bytes",
            DiagnosticKind::InvalidJson => "invalid_json",
            DiagnosticKind::NotAnObject => "not_an_object",
            DiagnosticKind::MissingId => "missing_id",
            DiagnosticKind::LineTooLong => "line_too_long",
            DiagnosticKind::DuplicateId => "duplicate_id",
            DiagnosticKind::MissingParent => "missing_parent",
            DiagnosticKind::Cycle => "cycle",
            DiagnosticKind::ExtraHeader => "extra_header",
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// A bounded list of diagnostics: a file of a million bad lines must not fill the memory with sentences.
#[derive(Debug, Clone, Default)]
pub(crate) struct Diagnostics {
    list: Vec<Diagnostic>,
    total: u64,
}

/// Enough to see the pattern of any damage; the total counts the rest.
pub(crate) const KEPT: usize = 1000;

impl Diagnostics {
    pub(crate) fn push(&mut self, line: u64, offset: u64, kind: DiagnosticKind, message: impl Into<String>) {
        self.total += 1;
        if self.list.len() < KEPT {
            self.list.push(Diagnostic { line, offset, kind, message: message.into() });
        }
    }

    /// Counts faults of which nothing more is known.
    pub(crate) fn add_uncounted(&mut self, count: u64) {
        self.total += count;
    }

    pub(crate) fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}
