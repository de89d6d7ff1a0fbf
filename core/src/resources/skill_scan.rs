//! Searching directories for files that may be skills (P720).

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::diagnostic::ResourceDiagnostic;
use super::skills::{PlainFiles, SkillSource};
use crate::blank::{self, is_blank_or_break as is_blank};

/// Files whose patterns leave paths out, the last one counting most.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];
/// Most directories looked at for one source.
const DIRECTORY_LIMIT: usize = 10_000;
/// Most directories inside one another.
const DEPTH_LIMIT: usize = 32;

/// A file that may be a skill.
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    /// It says that it is one: by its name.
    pub(super) declared: bool,
}

impl Candidate {
    fn new(path: PathBuf) -> Candidate {
        Candidate { declared: path.file_name().is_some_and(|name| name == "SKILL.md"), path }
    }
}

/// The candidates of a source, in order.
pub(super) fn candidates(source: &SkillSource) -> (Vec<Candidate>, Vec<ResourceDiagnostic>) {
    let mut scan = Scan {
        plain: source.plain_files,
        seen: HashSet::new(),
        candidates: Vec::new(),
        diagnostics: Vec::new(),
        full: false,
    };
    let root = &source.path;
    match std::fs::metadata(root) {
        Ok(metadata) if metadata.is_dir() => scan.directory(root, 0, &None),
        Ok(metadata) if metadata.is_file() && is_markdown(root) => scan.candidates.push(Candidate::new(root.clone())),
        Ok(_) => scan.warn(root, "neither a directory nor a markdown file"),
        Err(error) if source.required => scan.warn(root, &format!("cannot look for skills here: {error}")),
        Err(_) => {}
    }
    if scan.full {
        scan.warn(root, &format!("only the first {DIRECTORY_LIMIT} directories were searched for skills"));
    }
    (scan.candidates, scan.diagnostics)
}

/// The ignore patterns of a directory and those above it, up to the root of the search.
struct Level {
    above: Option<Arc<Level>>,
    patterns: Gitignore,
}

struct Scan {
    plain: PlainFiles,
    /// Real paths of the directories looked at: links may lead in circles.
    seen: HashSet<PathBuf>,
    candidates: Vec<Candidate>,
    diagnostics: Vec<ResourceDiagnostic>,
    full: bool,
}

impl Scan {
    fn warn(&mut self, path: &Path, text: &str) {
        self.diagnostics.push(ResourceDiagnostic::warning(path, text));
    }

    fn directory(&mut self, dir: &Path, depth: usize, above: &Option<Arc<Level>>) {
        let Ok(real) = dir.canonicalize() else { return };
        if self.seen.len() >= DIRECTORY_LIMIT || depth > DEPTH_LIMIT {
            self.full = true;
            return;
        }
        if !self.seen.insert(real) {
            return;
        }
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        let level = level(dir, &names, above, depth == 0);
        let declared = dir.join("SKILL.md");
        if declared.is_file() && !is_ignored(&level, &declared, false) {
            self.candidates.push(Candidate::new(declared));
            return;
        }
        let plain_here = match self.plain {
            PlainFiles::InRoot => depth == 0,
            PlainFiles::Below => depth > 0,
        };
        for name in names {
            if name.to_string_lossy().starts_with('.') || name == "node_modules" {
                continue;
            }
            let path = dir.join(&name);
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            if metadata.is_dir() && !is_ignored(&level, &path, true) {
                self.directory(&path, depth + 1, &level);
            } else if metadata.is_file() && plain_here && is_markdown(&path) && !is_ignored(&level, &path, false) {
                self.candidates.push(Candidate::new(path));
            }
        }
    }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn level(dir: &Path, names: &[std::ffi::OsString], above: &Option<Arc<Level>>, root: bool) -> Option<Arc<Level>> {
    let files: Vec<&str> = IGNORE_FILES.into_iter().filter(|file| names.iter().any(|name| name == file)).collect();
    if files.is_empty() {
        return above.clone();
    }
    let mut builder = GitignoreBuilder::new(dir);
    let _ = builder.case_insensitive(true); // as pi has it; fails for no pattern, since there is none yet
    for file in files {
        let Ok(read) = super::read::text(&dir.join(file), 256 * 1024) else { continue };
        for line in read.text.lines() {
            let line = if root { line.into() } else { anchored(line) };
            let _ = builder.add_line(None, &line); // a pattern that is none counts for nothing
        }
    }
    let Ok(patterns) = builder.build() else { return above.clone() };
    Some(Arc::new(Level { above: above.clone(), patterns }))
}

/// A pattern that means a path of its own directory. Below the root of the search every pattern does, also one without a
/// slash, which git would apply at any depth (P720: patterns are relative to their directory).
fn anchored(line: &str) -> Cow<'_, str> {
    let (not, pattern) = line.strip_prefix('!').map_or(("", line), |rest| ("!", rest));
    let bare = !pattern.trim_end_matches(is_blank).trim_end_matches('/').contains('/');
    match bare && !pattern.starts_with('#') && !blank::trim(pattern).is_empty() {
        true => format!("{not}/{pattern}").into(),
        false => line.into(),
    }
}

fn is_ignored(level: &Option<Arc<Level>>, path: &Path, is_dir: bool) -> bool {
    let mut level = level.as_ref();
    while let Some(here) = level {
        match here.patterns.matched(path, is_dir) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => level = here.above.as_ref(),
        }
    }
    false
}
