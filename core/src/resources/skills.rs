//! Skills: instructions for a kind of work, that a model reads when it needs them (P720–P726).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::diagnostic::ResourceDiagnostic;
use super::frontmatter;
use super::read;
use super::skill_scan::{self, Candidate};
use crate::blank::{self, is_blank_or_break as is_blank};
use crate::json::utf16_len;

/// Most bytes of a skill's file that are read.
pub(super) const FILE_LIMIT: usize = 1024 * 1024;
/// Most characters of a name (P723).
const NAME_LIMIT: usize = 64;
/// Most characters of a description (P723).
const DESCRIPTION_LIMIT: usize = 1024;

/// One skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Skill {
    /// Its name: what stands behind `/skill:`.
    pub name: String,
    /// What it is for and when to use it, for the model.
    pub description: String,
    /// Its file, absolute.
    pub path: PathBuf,
    /// The model is not told of it; only people can call it.
    pub disable_model_invocation: bool,
}

impl Skill {
    /// The directory that paths in the skill are relative to.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// Which plain markdown files of a directory are skills besides those named `SKILL.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlainFiles {
    /// Those directly in it (P720).
    #[default]
    InRoot,
    /// Those in directories below it, as `.agents/skills` has them (P721).
    Below,
}

/// A place where skills are: a directory to search, or one markdown file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSource {
    /// The directory or file.
    pub path: PathBuf,
    /// Which plain markdown files count.
    pub plain_files: PlainFiles,
    /// It is reported when it does not exist.
    pub required: bool,
}

impl SkillSource {
    /// A place that the host named: it has to exist.
    pub fn new(path: impl Into<PathBuf>) -> SkillSource {
        SkillSource { path: path.into(), plain_files: PlainFiles::InRoot, required: true }
    }
}

/// Loads skills. Of equal names the first wins, and the other is reported; a file found twice counts once (P724).
///
/// Directories are searched in order of names, links followed, each directory once. No more than 10,000 directories are
/// looked at for one source.
pub fn load(sources: &[SkillSource]) -> (Vec<Skill>, Vec<ResourceDiagnostic>) {
    load_some(sources, |_, _| true)
}

/// The same, without files that `keep` does not want: it gets the number of the source, and the file.
pub(super) fn load_some(
    sources: &[SkillSource],
    keep: impl Fn(usize, &Path) -> bool,
) -> (Vec<Skill>, Vec<ResourceDiagnostic>) {
    let mut found = Found::default();
    for (at, source) in sources.iter().enumerate() {
        let (candidates, mut diagnostics) = skill_scan::candidates(source);
        found.diagnostics.append(&mut diagnostics);
        candidates.iter().filter(|candidate| keep(at, &candidate.path)).for_each(|candidate| found.take(candidate));
    }
    (found.skills, found.diagnostics)
}

#[derive(Default)]
struct Found {
    skills: Vec<Skill>,
    diagnostics: Vec<ResourceDiagnostic>,
    /// Real paths of files that were looked at.
    files: Vec<PathBuf>,
    names: HashMap<String, usize>,
}

impl Found {
    fn take(&mut self, candidate: &Candidate) {
        let path = &candidate.path;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if self.files.contains(&real) {
            return;
        }
        self.files.push(real);
        let mut warn = |text: String| self.diagnostics.push(ResourceDiagnostic::warning(path, text));
        let document = match read::text(path, FILE_LIMIT) {
            Ok(read) => frontmatter::parse(&read.text),
            Err(error) => Err(format!("cannot read the skill: {error}")),
        };
        let document = match document {
            Ok(document) => document,
            Err(problem) => {
                if candidate.declared {
                    warn(format!("the skill is not loaded: {problem}"));
                }
                return;
            }
        };
        let folder = || path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let name = document.text("name").filter(|name| !name.is_empty()).map_or_else(folder, str::to_owned);
        let description = document.text("description").unwrap_or_default().to_owned();
        if blank::trim(&description).is_empty() {
            if candidate.declared {
                warn("the skill is not loaded: its frontmatter has no description".to_owned());
                // Both are put right in one go.
                problems(&name, "").into_iter().for_each(warn);
            }
            return;
        }
        problems(&name, &description).into_iter().for_each(&mut warn);
        if let Some(winner) = self.names.get(&name) {
            let winner = &self.skills[*winner].path;
            self.diagnostics.push(ResourceDiagnostic::collision("skill", &name, winner, path));
            return;
        }
        self.names.insert(name.clone(), self.skills.len());
        let disable_model_invocation = document.fields.get("disable-model-invocation") == Some(&true.into());
        self.skills.push(Skill { name, description, path: path.clone(), disable_model_invocation });
    }
}

/// What the format asks of names and descriptions (P723).
fn problems(name: &str, description: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if utf16_len(description) > DESCRIPTION_LIMIT {
        problems.push(format!("the skill's description has more than {DESCRIPTION_LIMIT} characters"));
    }
    if utf16_len(name) > NAME_LIMIT {
        problems.push(format!("the skill's name has more than {NAME_LIMIT} characters"));
    }
    if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        problems.push(format!("the skill's name {name:?} has other characters than a-z, 0-9 and \"-\""));
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push(format!("the skill's name {name:?} begins or ends with \"-\""));
    }
    if name.contains("--") {
        problems.push(format!("the skill's name {name:?} has two \"-\" in a row"));
    }
    problems
}

/// The skill a text calls with `/skill:NAME`, and what stands behind the name (P726).
pub fn called<'a>(text: &'a str, skills: &'a [Skill]) -> Option<(&'a Skill, &'a str)> {
    let rest = text.strip_prefix("/skill:")?;
    let (name, arguments) = rest.split_once(is_blank).unwrap_or((rest, ""));
    let skill = skills.iter().find(|skill| skill.name == name)?;
    Some((skill, blank::trim(arguments)))
}

/// What a call of a skill becomes: its text with a note where its files are, then the arguments (P726). Reads its file.
///
/// Errors: what is wrong with the file.
pub fn expand(skill: &Skill, arguments: &str) -> Result<String, String> {
    let read = read::text(&skill.path, FILE_LIMIT).map_err(|error| format!("cannot read the skill: {error}"))?;
    let body = frontmatter::parse(&read.text)?.body;
    let mut text = format!(
        "<skill name=\"{}\" location=\"{}\">\nPaths in this skill are relative to {}.\n\n{}\n</skill>",
        skill.name,
        skill.path.display(),
        skill.directory().display(),
        blank::trim(&body)
    );
    if !arguments.is_empty() {
        text.push_str("\n\n");
        text.push_str(arguments);
    }
    Ok(text)
}
