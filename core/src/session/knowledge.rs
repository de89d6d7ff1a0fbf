//! What a session knows of its project, while it is open: choosing what is read, reading it again, and using it on texts.

use std::path::PathBuf;
use std::sync::Arc;

use super::Session;
use super::actor::Actor;
use super::asked::PromptOptions;
use super::command::Command;
use super::open::Choices;
use super::options::SessionOptions;
use crate::error::Result;
use crate::resources::{Discover, ResourceOptions, Resources};

impl SessionOptions {
    /// Sets [`resources`](Self::resources).
    pub fn resources(mut self, resources: ResourceOptions) -> Self {
        self.resources = resources;
        self
    }

    /// Sets [`ResourceOptions::context_files`].
    pub fn context_files(mut self, read: bool) -> Self {
        self.resources.context_files = read;
        self
    }

    /// Sets [`ResourceOptions::discover`].
    pub fn discover(mut self, discover: Discover) -> Self {
        self.resources.discover = discover;
        self
    }

    /// Adds one of the [`ResourceOptions::skills`].
    pub fn skill(mut self, path: impl Into<PathBuf>) -> Self {
        self.resources.skills.push(path.into());
        self
    }

    /// Adds one of the [`ResourceOptions::prompt_templates`].
    pub fn prompt_template(mut self, path: impl Into<PathBuf>) -> Self {
        self.resources.prompt_templates.push(path.into());
        self
    }

    /// Sets [`ResourceOptions::append_system_prompt`].
    pub fn append_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.resources.append_system_prompt = Some(text.into());
        self
    }
}

impl Choices {
    /// The same choices for a session somewhere else: that a project is trusted says nothing of another one.
    pub(super) fn in_another_project(mut self) -> Choices {
        self.resources.discover = self.resources.discover.min(Discover::User);
        self
    }
}

impl PromptOptions {
    /// Sets [`forced_prompt`](Self::forced_prompt).
    pub fn forced_prompt(mut self, text: impl Into<String>) -> Self {
        self.forced_prompt = Some(text.into());
        self
    }

    /// Sets [`expand`](Self::expand).
    pub fn expand(mut self, expand: bool) -> Self {
        self.expand = expand;
        self
    }
}

impl Session {
    /// What the session knows: context files, skills, prompt templates, and what was wrong with them.
    pub fn resources(&self) -> Arc<Resources> {
        self.shared().resources()
    }

    /// Reads the files again that the session was allowed to read. What changed in the prompt is told to the model, and
    /// stored, before its next request (S299).
    pub async fn reload_resources(&self) -> Result<Arc<Resources>> {
        self.read_resources(self.shared().resource_options()).await
    }

    /// Chooses anew what the session reads and tells the model, and reads it.
    ///
    /// Errors: `invalid_argument` for a section name that is none.
    pub async fn set_resources(&self, options: ResourceOptions) -> Result<Arc<Resources>> {
        options.check()?;
        self.read_resources(options).await
    }

    async fn read_resources(&self, options: ResourceOptions) -> Result<Arc<Resources>> {
        let shared = self.shared();
        let (settings, cwd) = (shared.choices_made().settings.clone(), shared.cwd.clone());
        let agent_dir = self.engine().agent_dir();
        let wanted = options.clone();
        let load = move || Ok(Arc::new(Resources::load(&wanted, &settings, &agent_dir, &cwd)));
        let resources = self.engine().blocking(load).await?;
        let loaded = resources.clone();
        self.ask(|reply| Command::SetResources { options, resources: loaded, reply }).await?;
        Ok(resources)
    }

    /// A person's text with the skill or template it calls.
    pub(super) async fn expanded(&self, text: String) -> Result<String> {
        let resources = self.shared().resources();
        if !resources.may_expand(&text) {
            return Ok(text);
        }
        self.engine().blocking(move || resources.expand(&text).map(|text| text.into_owned())).await
    }
}

impl Actor {
    pub(super) fn set_resources(&mut self, options: ResourceOptions, resources: Arc<Resources>) {
        self.prompt.resources = resources.clone();
        self.projection.system_mut().recheck();
        self.shared.set_resources(options, resources);
    }
}
