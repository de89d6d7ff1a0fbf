//! Which places a session may read resources from, and what the host adds to its prompt.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::context_files::ContextFile;
use crate::error::{Error, ErrorCode, Result};

/// Which of the usual places are searched for skills, prompt templates, `SYSTEM.md` and `APPEND_SYSTEM.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discover {
    /// None.
    #[default]
    Nothing,
    /// The user's: the agent directory, `~/.agents/skills`, and what the settings name.
    User,
    /// The user's and the project's: `.pi` in the working directory, and `.agents/skills` there and above it up to the
    /// root of the repository. For projects that the user trusts: these files speak to the model in the user's name.
    Project,
}

/// A section of the system prompt that the host adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// A lower-case letter, then lower-case letters, digits, `_` and `-`; not `preamble`. The name of a section that is
    /// there replaces that one (P771).
    pub name: String,
    /// Its text, without the tag around it.
    pub text: String,
}

/// What a session tells the model besides its tools. By default nothing is read from disk.
///
/// Relative paths are relative to the session's working directory, and a leading `~` is the home directory. Files are read
/// from this machine's disk when the session is made, and again with [`reload_resources`](crate::Session::reload_resources);
/// nothing in them is run. As JSON it has the same names in camelCase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ResourceOptions {
    /// Read `AGENTS.md` and its relatives: the agent directory's, and those from the root of the file system down to the
    /// working directory (P700, P701).
    pub context_files: bool,
    /// Texts of the host's own, behind those that were read.
    pub extra_context: Vec<ContextFile>,
    /// The usual places that are searched as well.
    pub discover: Discover,
    /// Directories with skills, or single skill files. They go before the usual places.
    pub skills: Vec<PathBuf>,
    /// Directories with prompt templates, or single template files. They go before the usual places.
    pub prompt_templates: Vec<PathBuf>,
    /// Text behind the system prompt; `None` is `APPEND_SYSTEM.md` of the places to discover.
    pub append_system_prompt: Option<String>,
    /// Where the documentation of the host's program is, for a model that is asked about it.
    pub documentation: Option<String>,
    /// Further rules, one line each.
    pub guidelines: Vec<String>,
    /// Further sections, in this order.
    pub sections: Vec<Section>,
}

impl ResourceOptions {
    /// Reads options from JSON.
    ///
    /// Errors: `invalid_argument`, naming what is wrong.
    pub fn from_json(text: &str) -> Result<ResourceOptions> {
        let options: ResourceOptions = serde_json::from_str(text)
            .map_err(|error| Error::new(ErrorCode::InvalidArgument, format!("the resource options: {error}")))?;
        options.check()?;
        Ok(options)
    }

    /// Whether nothing has to be read.
    pub(crate) fn reads_nothing(&self) -> bool {
        !self.context_files
            && self.discover == Discover::Nothing
            && self.skills.is_empty()
            && self.prompt_templates.is_empty()
    }

    /// Section names are as the format wants them (P771).
    pub(crate) fn check(&self) -> Result<()> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        let good = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(plain) && name != "preamble"
        };
        match self.sections.iter().find(|section| !good(&section.name)) {
            Some(section) => {
                let text = format!(
                    "{:?} is no name for a section of the prompt; use a lower-case letter, then lower-case letters, \
                     digits, \"_\" and \"-\", but not \"preamble\"",
                    section.name
                );
                Err(Error::new(ErrorCode::InvalidArgument, text))
            }
            None => Ok(()),
        }
    }
}
