//! Everything a session found, and what a text of a person becomes with it.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;

use super::context_files::{self, ContextFile};
use super::diagnostic::ResourceDiagnostic;
use super::discover::Places;
use super::options::{ResourceOptions, Section};
use super::read;
use super::settings::Settings;
use super::skills::{self, Skill};
use super::templates::{self, PromptTemplate};
use crate::error::{Error, ErrorCode, Result};
use crate::tree::{expand_home, resolve_path};

/// Most bytes of a prompt file.
const PROMPT_FILE_LIMIT: usize = 256 * 1024;

/// What a session knows of its project and its people. Plain data: it does not change by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resources {
    /// Context files, the one that was read last is the nearest.
    pub context_files: Vec<ContextFile>,
    /// Skills, those included that the model is not told of.
    pub skills: Vec<Skill>,
    /// Prompt templates.
    pub prompt_templates: Vec<PromptTemplate>,
    /// The text of `SYSTEM.md`. A prompt of the host's own goes before it.
    pub system_prompt: Option<String>,
    /// Text behind the system prompt.
    pub append_system_prompt: Option<String>,
    /// Where the documentation of the host's program is.
    pub documentation: Option<String>,
    /// Further rules.
    pub guidelines: Vec<String>,
    /// Further sections.
    pub sections: Vec<Section>,
    /// What was wrong.
    pub diagnostics: Vec<ResourceDiagnostic>,
    /// `/skill:name` calls a skill (`enableSkillCommands`).
    pub skill_commands: bool,
}

impl Resources {
    /// Reads what the options name, for a session in `cwd`. Blocks; nothing that is wrong with a file is an error.
    pub fn load(options: &ResourceOptions, settings: &Settings, agent_dir: &Path, cwd: &Path) -> Resources {
        let mut resources = Resources {
            append_system_prompt: options.append_system_prompt.clone(),
            documentation: options.documentation.clone(),
            guidelines: options.guidelines.clone(),
            sections: options.sections.clone(),
            skill_commands: settings.values().get("enableSkillCommands") != Some(&false.into()),
            ..Resources::default()
        };
        if !options.reads_nothing() {
            resources.read(options, settings, &resolve_path(&expand_home(agent_dir)), &resolve_path(cwd));
        }
        resources.context_files.extend(options.extra_context.iter().cloned());
        resources
    }

    fn read(&mut self, options: &ResourceOptions, settings: &Settings, agent_dir: &Path, cwd: &Path) {
        if options.context_files {
            let (files, mut diagnostics) = context_files::load(Some(agent_dir), cwd);
            self.context_files = files;
            self.diagnostics.append(&mut diagnostics);
        }
        let places = Places { options, settings, agent_dir, cwd };
        let (sources, sides): (Vec<_>, Vec<_>) = places.skills().into_iter().unzip();
        let (found, mut diagnostics) =
            skills::load_some(&sources, |at, file| places.keeps("skills", sides[at], &sources[at].path, file));
        self.skills = found;
        self.diagnostics.append(&mut diagnostics);
        let (sources, sides): (Vec<_>, Vec<_>) = places.templates().into_iter().unzip();
        let (found, mut diagnostics) =
            templates::load_some(&sources, |at, file| places.keeps("prompts", sides[at], &sources[at].path, file));
        self.prompt_templates = found;
        self.diagnostics.append(&mut diagnostics);
        self.system_prompt = self.prompt_file(&places, "SYSTEM.md");
        if self.append_system_prompt.is_none() {
            self.append_system_prompt = self.prompt_file(&places, "APPEND_SYSTEM.md");
        }
    }

    fn prompt_file(&mut self, places: &Places<'_>, name: &str) -> Option<String> {
        let path = places.prompt_file(name)?;
        let problem = match read::text(&path, PROMPT_FILE_LIMIT) {
            Ok(read) if !read.cut => return Some(read.text),
            Ok(_) => format!("the file is not used: it has more than {PROMPT_FILE_LIMIT} bytes"),
            Err(error) => format!("the file is not used: {error}"),
        };
        self.diagnostics.push(ResourceDiagnostic::warning(&path, problem));
        None
    }

    /// Whether [`expand`](Resources::expand) may have something to do with this text.
    pub(crate) fn may_expand(&self, text: &str) -> bool {
        text.starts_with('/') && !(self.skills.is_empty() && self.prompt_templates.is_empty())
    }

    /// What a person's text becomes: `/skill:name` and `/name` at its start are replaced by what they stand for, skills
    /// first; anything else stays as it is (P726, P751). Reads the skill's file.
    ///
    /// Errors: `storage_failed` when a skill that is called can no longer be read.
    pub fn expand<'a>(&self, text: &'a str) -> Result<Cow<'a, str>> {
        if self.skill_commands
            && let Some((skill, arguments)) = skills::called(text, &self.skills)
        {
            let expanded = skills::expand(skill, arguments);
            return expanded.map(Cow::Owned).map_err(|problem| {
                let text = format!("the skill {:?} cannot be used: {problem}", skill.name);
                Error::new(ErrorCode::StorageFailed, text).at(&skill.path)
            });
        }
        Ok(templates::expand(text, &self.prompt_templates))
    }
}
