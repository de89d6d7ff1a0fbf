//! The usual places of skills, prompt templates and prompt files (P703, P721, P750).

use std::path::{Path, PathBuf};

use globset::GlobBuilder;

use super::options::{Discover, ResourceOptions};
use super::settings::{Origin, Settings};
use super::skills::{PlainFiles, SkillSource};
use super::templates::TemplateSource;
use crate::tree::{expand_home, resolve_path};

/// The directory of skills that several programs share.
const AGENTS: &str = ".agents";

/// Whose a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The host named it for this session.
    Host,
    /// The project's.
    Project,
    /// The user's.
    User,
}

/// Where things are looked for.
pub(super) struct Places<'a> {
    pub(super) options: &'a ResourceOptions,
    pub(super) settings: &'a Settings,
    pub(super) agent_dir: &'a Path,
    pub(super) cwd: &'a Path,
}

impl Places<'_> {
    fn user(&self) -> bool {
        self.options.discover >= Discover::User
    }

    fn project(&self) -> bool {
        self.options.discover == Discover::Project
    }

    fn given(&self, path: &Path) -> PathBuf {
        resolve_path(&self.cwd.join(expand_home(path)))
    }

    /// The entries of a list in the settings that hold for a side.
    fn entries(&self, key: &str, side: Side) -> impl Iterator<Item = (Origin, &str)> {
        let holds = move |origin: Origin| match side {
            Side::Host => false,
            Side::Project => self.project() && origin != Origin::User,
            Side::User => self.user() && origin != Origin::Project,
        };
        self.settings.places(key).filter(move |(origin, entry)| holds(*origin) && !entry.is_empty())
    }

    /// Where relative entries of a side begin.
    fn base(&self, side: Side) -> PathBuf {
        if side == Side::Project { self.cwd.join(".pi") } else { self.agent_dir.to_path_buf() }
    }

    /// Paths that a list in the settings names. What the host's settings name is the project's where it exists there, else the
    /// user's.
    fn listed(&self, key: &str, side: Side) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for (origin, entry) in self.entries(key, side).filter(|(_, entry)| !entry.starts_with(['!', '-', '+'])) {
            let entry = expand_home(Path::new(entry));
            let theirs = || self.project() && self.base(Side::Project).join(&entry).exists();
            if origin != Origin::Host || (side == Side::Project) == theirs() {
                paths.push(resolve_path(&self.base(side).join(&entry)));
            }
        }
        paths
    }

    /// Where skills are, the place that wins first, and whose places they are.
    pub(super) fn skills(&self) -> Vec<(SkillSource, Side)> {
        let named = self.options.skills.iter().map(|path| (SkillSource::new(self.given(path)), Side::Host));
        let mut sources: Vec<(SkillSource, Side)> = named.collect();
        let mut add = |side: Side, path: PathBuf, plain_files: PlainFiles, required: bool| {
            sources.push((SkillSource { path, plain_files, required }, side));
        };
        for path in self.listed("skills", Side::Project) {
            add(Side::Project, path, PlainFiles::InRoot, true);
        }
        if self.project() {
            add(Side::Project, self.cwd.join(".pi/skills"), PlainFiles::InRoot, false);
            for dir in up_to_repository(self.cwd) {
                add(Side::Project, dir.join(AGENTS).join("skills"), PlainFiles::Below, false);
            }
        }
        for path in self.listed("skills", Side::User) {
            add(Side::User, path, PlainFiles::InRoot, true);
        }
        if self.user() {
            add(Side::User, self.agent_dir.join("skills"), PlainFiles::InRoot, false);
            if let Some(home) = std::env::home_dir().filter(|home| home.is_absolute()) {
                add(Side::User, home.join(AGENTS).join("skills"), PlainFiles::Below, false);
            }
        }
        sources
    }

    /// Where prompt templates are, the place that wins first, and whose places they are.
    pub(super) fn templates(&self) -> Vec<(TemplateSource, Side)> {
        let source = |path: PathBuf, required: bool, side: Side| (TemplateSource { path, required }, side);
        let named = self.options.prompt_templates.iter().map(|path| source(self.given(path), true, Side::Host));
        let mut sources: Vec<(TemplateSource, Side)> = named.collect();
        let listed = |side: Side| self.listed("prompts", side).into_iter().map(move |path| source(path, true, side));
        sources.extend(listed(Side::Project));
        if self.project() {
            sources.push(source(self.cwd.join(".pi/prompts"), false, Side::Project));
        }
        sources.extend(listed(Side::User));
        if self.user() {
            sources.push(source(self.agent_dir.join("prompts"), false, Side::User));
        }
        sources
    }

    /// Whether the settings of a side leave a file of its source in. `!pattern` and `-path` leave out, `+path` takes in again; what
    /// the host named itself always stays.
    pub(super) fn keeps(&self, key: &str, side: Side, source: &Path, file: &Path) -> bool {
        // A skill that has a directory is meant by that as well.
        let own = file.file_name().is_some_and(|name| name == "SKILL.md").then(|| file.parent()).flatten();
        let paths: Vec<&Path> = std::iter::once(file).chain(own).collect();
        // What is written of `.agents` is relative to that directory.
        let agents = source.parent().filter(|dir| dir.file_name().is_some_and(|name| name == AGENTS));
        let mut keep = true;
        for (origin, entry) in self.entries(key, side) {
            let mut bases = match origin {
                Origin::Host => vec![self.base(Side::Project), self.base(Side::User)],
                _ if agents.is_some() => Vec::new(),
                _ => vec![self.base(side)],
            };
            bases.extend(agents.map(Path::to_path_buf));
            let is = |entry: &str| {
                let entry = expand_home(Path::new(entry));
                bases.iter().any(|base| paths.contains(&&*resolve_path(&base.join(&entry))))
            };
            if let Some(pattern) = entry.strip_prefix('!') {
                keep &= !paths.iter().any(|path| matches(pattern, path, &bases));
            } else if let Some(path) = entry.strip_prefix('-') {
                keep &= !is(path);
            } else if let Some(path) = entry.strip_prefix('+')
                && is(path)
            {
                return true;
            }
        }
        keep
    }

    /// The text of `SYSTEM.md` or `APPEND_SYSTEM.md`: the project's, else the user's (P703).
    pub(super) fn prompt_file(&self, name: &str) -> Option<PathBuf> {
        let theirs = self.project().then(|| self.cwd.join(".pi").join(name)).filter(|path| path.is_file());
        theirs.or_else(|| self.user().then(|| self.agent_dir.join(name)).filter(|path| path.is_file()))
    }
}

/// Whether a pattern means a path: by its last part, below one of the bases, or as it stands.
fn matches(pattern: &str, path: &Path, bases: &[PathBuf]) -> bool {
    let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() else { return false };
    let glob = glob.compile_matcher();
    glob.is_match(path)
        || path.file_name().is_some_and(|name| glob.is_match(name))
        || bases.iter().any(|base| path.strip_prefix(base).is_ok_and(|below| glob.is_match(below)))
}

/// The working directory and those above it, up to the root of its repository; without one all of them.
fn up_to_repository(cwd: &Path) -> Vec<&Path> {
    let mut directories = Vec::new();
    for dir in cwd.ancestors() {
        directories.push(dir);
        if dir.join(".git").exists() {
            break;
        }
    }
    directories
}
