//! What was wrong with a resource. Never fatal, never silent.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// What kind of thing was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResourceFault {
    /// Something is wrong with the file, or with what it says. It may be in use all the same.
    Warning,
    /// Its name was taken by another file; it is not in use.
    Collision,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceDiagnostic {
    /// What kind it is.
    pub fault: ResourceFault,
    /// The file or directory it is about; of a collision the one that lost.
    pub path: PathBuf,
    /// What was wrong, in a sentence.
    pub message: String,
    /// The file that has the name, of a collision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<PathBuf>,
}

impl ResourceDiagnostic {
    pub(crate) fn warning(path: &Path, message: impl Into<String>) -> ResourceDiagnostic {
        let (path, message) = (path.to_path_buf(), message.into());
        ResourceDiagnostic { fault: ResourceFault::Warning, path, message, winner: None }
    }

    pub(crate) fn collision(what: &str, name: &str, winner: &Path, loser: &Path) -> ResourceDiagnostic {
        let message = format!("the {what} {name:?} of {} is used instead", winner.display());
        let (path, winner) = (loser.to_path_buf(), Some(winner.to_path_buf()));
        ResourceDiagnostic { fault: ResourceFault::Collision, path, message, winner }
    }
}

impl fmt::Display for ResourceDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.path.display())
    }
}
