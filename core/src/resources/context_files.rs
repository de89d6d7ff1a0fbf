//! Context files: what a project, and its user, want a model to know before it starts (P700–P702).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::diagnostic::ResourceDiagnostic;
use super::read;
use crate::tree::resolve_path;

/// Names of context files, the one that counts first.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];
/// Most bytes of one file. Every request carries these texts, so a file beyond this is a mistake rather than advice.
const FILE_LIMIT: usize = 128 * 1024;
/// Most bytes of all files together.
const TOTAL_LIMIT: usize = 512 * 1024;

/// A text for the model, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextFile {
    /// Where it comes from; the model is told.
    pub path: PathBuf,
    /// The text.
    pub content: String,
}

impl ContextFile {
    /// A text of the host's, with the path the model is told.
    pub fn new(path: impl Into<PathBuf>, content: impl Into<String>) -> ContextFile {
        ContextFile { path: path.into(), content: content.into() }
    }
}

/// Reads the context files for a working directory: the agent directory's, then from the root of the file system down to
/// the working directory, one a directory (P700, P701).
///
/// Of a file only the first 128 KiB count, of all together 512 KiB; what is left out is reported.
pub fn load(agent_dir: Option<&Path>, cwd: &Path) -> (Vec<ContextFile>, Vec<ResourceDiagnostic>) {
    let cwd = resolve_path(cwd);
    let skipped = replaced_by_worktree(&cwd);
    let mut found = Found::default();
    if let Some(dir) = agent_dir {
        found.look_in(&resolve_path(dir), None);
    }
    let mut directories: Vec<&Path> = cwd.ancestors().collect();
    directories.reverse();
    for dir in directories {
        found.look_in(dir, skipped.as_deref());
    }
    (found.files, found.diagnostics)
}

#[derive(Default)]
struct Found {
    files: Vec<ContextFile>,
    diagnostics: Vec<ResourceDiagnostic>,
    bytes: usize,
}

impl Found {
    fn look_in(&mut self, dir: &Path, skipped: Option<&Path>) {
        // A file that cannot be read is passed over, and the next name has its chance.
        for name in NAMES {
            let path = dir.join(name);
            if !path.is_file() {
                continue;
            }
            if skipped == Some(&*path) || self.files.iter().any(|known| known.path == path) {
                return;
            }
            let Ok(read) = read::text(&path, FILE_LIMIT.min(TOTAL_LIMIT - self.bytes)) else { continue };
            if read.cut {
                let text = format!("only the first {} bytes of this context file are used", read.text.len());
                self.diagnostics.push(ResourceDiagnostic::warning(&path, text));
            }
            self.bytes += read.text.len();
            if !(read.cut && read.text.is_empty()) {
                self.files.push(ContextFile { path, content: read.text });
            }
            return;
        }
    }
}

/// The context file in `dir`, by name only.
fn context_file(dir: &Path) -> Option<PathBuf> {
    NAMES.iter().map(|name| dir.join(name)).find(|path| path.is_file())
}

/// A linked worktree that lies inside its main repository has a copy of that repository's root file; then the main
/// repository's own does not count (P702).
fn replaced_by_worktree(cwd: &Path) -> Option<PathBuf> {
    let worktree = cwd.ancestors().find(|dir| dir.join(".git").exists())?;
    let link = worktree.join(".git");
    let text = read::text(&link, 4096).ok()?.text;
    let git_dir = worktree.join(text.trim().strip_prefix("gitdir:")?.trim());
    let git_dir = resolve_path(&git_dir);
    let common = match read::text(&git_dir.join("commondir"), 4096) {
        Ok(common) => resolve_path(&git_dir.join(common.text.trim())),
        Err(_) => git_dir.parent().filter(|parent| parent.ends_with("worktrees"))?.parent()?.to_path_buf(),
    };
    let main = common.parent()?;
    let main = worktree.ancestors().skip(1).find(|dir| same(dir, main))?;
    let (theirs, ours) = (context_file(main)?, context_file(worktree)?);
    (theirs.file_name() == ours.file_name()).then_some(theirs)
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
