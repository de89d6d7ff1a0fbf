//! Which entries of a tree are passed over: `.gitignore` and its relatives (T323, T351).
//!
//! The rules are git's and those of the programs the reference runs: a directory's own files before its parents', the
//! tool's own ignore file before `.ignore`, that before `.gitignore`, that before `.git/info/exclude` and the user's
//! global file. Git's files count only inside a repository (unless told otherwise), and those above a repository do not
//! count inside it. Only directories that have such files cost anything.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::Override;

use super::operations::FileKind;
use super::walk_source::Source;

/// The rules of one search.
pub(super) struct Rules {
    /// The tool's own ignore file.
    own: &'static str,
    /// Git's ignore files count only inside a repository.
    require_git: bool,
    global: Gitignore,
    /// The caller's own choice of files, which no ignore file overrides.
    overrides: Override,
}

/// The rules of a directory; those of the directories above it are in `above`.
pub(super) struct Level {
    above: Option<Arc<Level>>,
    own: Gitignore,
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
    /// This directory or one above it is a repository.
    in_repository: bool,
    /// Any rule is here or above.
    any: bool,
}

impl Rules {
    /// The rules of a search below `root`.
    pub(super) fn new(root: &Path, own: &'static str, require_git: bool, overrides: Override) -> Rules {
        let (global, _) = GitignoreBuilder::new(root).build_global();
        Rules { own, require_git, global, overrides }
    }

    /// The rules of the directories above `root`, which has no links in it.
    pub(super) fn parents(&self, root: &Path, source: &Source) -> Arc<Level> {
        let none = Gitignore::empty;
        let mut level = Arc::new(Level {
            above: None,
            own: none(),
            ignore: none(),
            git: none(),
            exclude: none(),
            is_repository: false,
            in_repository: false,
            any: false,
        });
        let mut above: Vec<&Path> = root.ancestors().skip(1).collect();
        above.reverse();
        for directory in above {
            // Not listed, since it may be huge: each file is asked for.
            let names = [self.own, ".ignore", ".gitignore", ".git", ".jj"];
            let there = |name: &&str| source.kind(&directory.join(name)).is_ok();
            let found: Vec<_> = names.into_iter().filter(there).map(|name| (name.into(), FileKind::File)).collect();
            level = self.level(&level, directory, &found, source);
        }
        level
    }

    /// The rules of a directory with these entries.
    pub(super) fn level(
        &self,
        above: &Arc<Level>,
        directory: &Path,
        entries: &[(OsString, FileKind)],
        source: &Source,
    ) -> Arc<Level> {
        let (mut own, mut ignore, mut git, mut repository) = (false, false, false, None);
        for (name, _) in entries {
            match name.to_str() {
                Some(".ignore") => ignore = true,
                Some(".gitignore") => git = true,
                Some(".git") => repository = Some(true),
                Some(".jj") => repository = repository.or(Some(false)),
                Some(name) if name == self.own => own = true,
                _ => {}
            }
        }
        if !(own || ignore || git || repository.is_some()) {
            return above.clone();
        }
        let file =
            |there: bool, path: PathBuf| if there { parse(directory, &path, source) } else { Gitignore::empty() };
        let level = Level {
            above: Some(above.clone()),
            own: file(own, directory.join(self.own)),
            ignore: file(ignore, directory.join(".ignore")),
            git: file(git, directory.join(".gitignore")),
            exclude: match repository {
                Some(true) => parse(directory, &common_directory(directory, source).join("info/exclude"), source),
                _ => Gitignore::empty(),
            },
            is_repository: self.require_git && repository.is_some(),
            in_repository: above.in_repository || (self.require_git && repository.is_some()),
            any: false,
        };
        let empty = level.own.is_empty() && level.ignore.is_empty() && level.git.is_empty() && level.exclude.is_empty();
        Arc::new(Level { any: above.any || !empty, ..level })
    }

    /// Whether any rule can say anything about what is in a directory.
    pub(super) fn matter(&self, level: &Level) -> bool {
        level.any || !self.overrides.is_empty() || !self.global.is_empty()
    }

    /// Whether an entry takes part. `level` is its directory's.
    pub(super) fn allows(&self, level: &Level, path: &Path, is_directory: bool) -> bool {
        match self.overrides.matched(path, is_directory) {
            Match::Ignore(_) => return false,
            Match::Whitelist(_) => return true,
            Match::None => {}
        }
        let git_counts = !self.require_git || level.in_repository;
        let (mut own, mut ignore, mut git, mut exclude) = (Match::None, Match::None, Match::None, Match::None);
        let mut left_repository = false;
        let mut next = Some(level);
        while let Some(level) = next {
            let ask = |so_far: &mut Match<()>, rules: &Gitignore| {
                if so_far.is_none() && !rules.is_empty() {
                    *so_far = rules.matched(path, is_directory).map(|_| ());
                }
            };
            ask(&mut own, &level.own);
            ask(&mut ignore, &level.ignore);
            if git_counts && !left_repository {
                ask(&mut git, &level.git);
                ask(&mut exclude, &level.exclude);
            }
            left_repository |= level.is_repository;
            next = level.above.as_deref();
        }
        let global = match git_counts {
            true => self.global.matched(path, is_directory).map(|_| ()),
            false => Match::None,
        };
        !own.or(ignore).or(git).or(exclude).or(global).is_ignore()
    }
}

/// Reads an ignore file. Lines that are no patterns are passed over.
fn parse(directory: &Path, path: &Path, source: &Source) -> Gitignore {
    let Ok(bytes) = source.read(path) else { return Gitignore::empty() };
    let mut builder = GitignoreBuilder::new(directory);
    let text = String::from_utf8_lossy(&bytes);
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Where a repository keeps what all its work trees share: `.git` is a file in a linked work tree.
fn common_directory(directory: &Path, source: &Source) -> PathBuf {
    let git = directory.join(".git");
    let Ok(text) = source.read(&git) else { return git };
    let text = String::from_utf8_lossy(&text);
    let Some(linked) = text.strip_prefix("gitdir:") else { return git };
    let linked = directory.join(linked.trim_matches([' ', '\r', '\n']));
    match source.read(&linked.join("commondir")) {
        Ok(common) => linked.join(String::from_utf8_lossy(&common).trim_end_matches(['\r', '\n'])),
        Err(_) => linked,
    }
}
