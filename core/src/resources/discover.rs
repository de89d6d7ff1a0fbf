//! The usual places of skills, prompt templates and prompt files (P703, P721, P750).

use std::path::{Path, PathBuf};

use globset::GlobBuilder;

use super::options::{Discover, ResourceOptions};
use super::settings::Settings;
use super::skills::{PlainFiles, Skill, SkillSource};
use super::templates::{PromptTemplate, TemplateSource};
use crate::tree::{expand_home, resolve_path};

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

    /// Paths that a list in the settings names. Relative ones are the project's where they exist there, else the user's.
    fn listed(&self, key: &str) -> Vec<PathBuf> {
        let plain = self.entries(key).filter_map(|entry| match entry.strip_prefix(['!', '-']) {
            Some(_) => None,
            None => Some(entry.strip_prefix('+').unwrap_or(entry)),
        });
        let resolve = |entry: &str| {
            let path = expand_home(Path::new(entry));
            let theirs = self.cwd.join(".pi").join(&path);
            let found = if self.project() && theirs.exists() { theirs } else { self.agent_dir.join(&path) };
            resolve_path(&found)
        };
        plain.map(resolve).collect()
    }

    fn entries(&self, key: &str) -> impl Iterator<Item = &str> {
        let list = self.settings.values().get(key).filter(|_| self.user()).and_then(|list| list.as_array());
        list.into_iter().flatten().filter_map(|entry| entry.as_str()).filter(|entry| !entry.is_empty())
    }

    /// Where skills are, the place that wins first.
    pub(super) fn skills(&self) -> Vec<SkillSource> {
        let mut sources: Vec<SkillSource> =
            self.options.skills.iter().map(|path| SkillSource::new(self.given(path))).collect();
        let mut add = |path: PathBuf, plain_files: PlainFiles, required: bool| {
            sources.push(SkillSource { path, plain_files, required });
        };
        let (theirs, users): (Vec<PathBuf>, Vec<PathBuf>) =
            self.listed("skills").into_iter().partition(|path| self.project() && path.starts_with(self.cwd));
        theirs.into_iter().for_each(|path| add(path, PlainFiles::InRoot, true));
        if self.project() {
            add(self.cwd.join(".pi/skills"), PlainFiles::InRoot, false);
            for dir in up_to_repository(self.cwd) {
                add(dir.join(".agents/skills"), PlainFiles::Below, false);
            }
        }
        users.into_iter().for_each(|path| add(path, PlainFiles::InRoot, true));
        if self.user() {
            add(self.agent_dir.join("skills"), PlainFiles::InRoot, false);
            if let Some(home) = std::env::home_dir().filter(|home| home.is_absolute()) {
                add(home.join(".agents/skills"), PlainFiles::Below, false);
            }
        }
        sources
    }

    /// Whether the settings leave a skill out.
    pub(super) fn leaves_out_skill(&self, skill: &Skill) -> bool {
        self.leaves_out("skills", &skill.path, &[skill.directory(), &skill.path], &self.options.skills)
    }

    /// Where prompt templates are, the place that wins first.
    pub(super) fn templates(&self) -> Vec<TemplateSource> {
        let required = |path: PathBuf| TemplateSource { path, required: true };
        let mut sources: Vec<TemplateSource> =
            self.options.prompt_templates.iter().map(|path| required(self.given(path))).collect();
        let mut usual = |path: PathBuf| sources.push(TemplateSource { path, required: false });
        if self.project() {
            usual(self.cwd.join(".pi/prompts"));
        }
        if self.user() {
            usual(self.agent_dir.join("prompts"));
        }
        sources.extend(self.listed("prompts").into_iter().map(required));
        sources
    }

    /// Whether the settings leave a template out.
    pub(super) fn leaves_out_template(&self, template: &PromptTemplate) -> bool {
        let Some(path) = &template.path else { return false };
        self.leaves_out("prompts", path, &[path], &self.options.prompt_templates)
    }

    /// `!pattern` and `-path` leave out, `+path` takes in again; what the host named itself always stays.
    fn leaves_out(&self, key: &str, file: &Path, paths: &[&Path], given: &[PathBuf]) -> bool {
        if given.iter().any(|path| file.starts_with(self.given(path))) {
            return false;
        }
        let bases = [self.cwd.join(".pi"), self.agent_dir.to_path_buf()];
        let is = |entry: &str| {
            let entry = expand_home(Path::new(entry));
            bases.iter().any(|base| paths.contains(&&*resolve_path(&base.join(&entry))))
        };
        let mut out = false;
        for entry in self.entries(key) {
            if let Some(pattern) = entry.strip_prefix('!') {
                out |= paths.iter().any(|path| matches(pattern, path, &bases));
            } else if let Some(path) = entry.strip_prefix('-') {
                out |= is(path);
            } else if let Some(path) = entry.strip_prefix('+')
                && is(path)
            {
                return false;
            }
        }
        out
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
