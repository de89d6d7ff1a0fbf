//! How a session is made or opened.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::{Budget, ToolHook};
use crate::permissions::Permissions;
use crate::resources::ResourceOptions;
use crate::resources::settings::Settings;
use crate::tools::Tool;
use crate::tree::{Durability, Storage};

/// How a session is made or opened.
///
/// ```
/// use branchline::SessionOptions;
/// let options = SessionOptions::new(".").model("scripted/demo").in_memory(true);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Working directory: tools run here, and a new file is filed under it. When opening, empty means the file's own.
    pub cwd: PathBuf,
    /// Where session files are; `None` is the default directory for `cwd` (S38, S39).
    pub session_dir: Option<PathBuf>,
    /// Keep the session in memory only.
    pub in_memory: bool,
    /// Id of a new session (S16); `None` draws one.
    pub id: Option<String>,
    /// Name of the session (S290).
    pub name: Option<String>,
    /// Path to record in a new session's header as the one it came from (S10).
    pub parent_session: Option<String>,
    /// `provider/model`; `None` is the file's own choice, else the engine's default, else the first that has a key (P92).
    pub model: Option<String>,
    /// `off`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`, clamped to the model (S293).
    pub thinking_level: Option<String>,
    /// Names of the active tools; `None` is the file's own choice (S304), else the setting `defaultTools` (`read`, `bash`, `edit`
    /// and `write`) and the host's own.
    pub tools: Option<Vec<String>>,
    /// Tools of this session alone, besides those of its engine.
    pub custom_tools: Vec<Arc<dyn Tool>>,
    /// Asked about every tool call, in this order (S218, S220).
    pub tool_hooks: Vec<Arc<dyn ToolHook>>,
    /// What its tool calls may do; `None` is the engine's choice, by default [`Preset::Ask`](crate::permissions::Preset).
    pub permissions: Option<Permissions>,
    /// Limits of what it may spend; all of them hold. Sessions may share one; forks and clones do.
    pub budgets: Vec<Budget>,
    /// Replaces the built-in system prompt (S300).
    pub system_prompt: Option<String>,
    /// What the session reads of its project and tells the model; by default nothing.
    pub resources: ResourceOptions,
    /// Settings (S281); `None` is the engine's. Nothing is read from a settings file unless the host does so, see
    /// [`Settings::load`].
    pub settings: Option<Settings>,
    /// When entries are forced to disk.
    pub durability: Durability,
    /// The file system of the session file; `None` is the operating system's.
    pub storage: Option<Arc<dyn Storage>>,
    /// Open without the right to write: everything that would append fails with `read_only`.
    pub read_only: bool,
}

impl SessionOptions {
    /// Defaults for a working directory.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        SessionOptions {
            cwd: cwd.into(),
            session_dir: None,
            in_memory: false,
            id: None,
            name: None,
            parent_session: None,
            model: None,
            thinking_level: None,
            tools: None,
            custom_tools: Vec::new(),
            tool_hooks: Vec::new(),
            permissions: None,
            budgets: Vec::new(),
            system_prompt: None,
            resources: ResourceOptions::default(),
            settings: None,
            durability: Durability::default(),
            storage: None,
            read_only: false,
        }
    }

    /// Sets [`session_dir`](Self::session_dir).
    pub fn session_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.session_dir = Some(dir.into());
        self
    }

    /// Sets [`in_memory`](Self::in_memory).
    pub fn in_memory(mut self, in_memory: bool) -> Self {
        self.in_memory = in_memory;
        self
    }

    /// Sets [`id`](Self::id).
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets [`name`](Self::name).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets [`parent_session`](Self::parent_session).
    pub fn parent_session(mut self, path: impl Into<String>) -> Self {
        self.parent_session = Some(path.into());
        self
    }

    /// Sets [`model`](Self::model).
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets [`thinking_level`](Self::thinking_level).
    pub fn thinking_level(mut self, level: impl Into<String>) -> Self {
        self.thinking_level = Some(level.into());
        self
    }

    /// Sets [`tools`](Self::tools).
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Adds one of the [`custom_tools`](Self::custom_tools).
    pub fn custom_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.custom_tools.push(tool);
        self
    }

    /// Adds one of the [`tool_hooks`](Self::tool_hooks).
    pub fn tool_hook(mut self, hook: Arc<dyn ToolHook>) -> Self {
        self.tool_hooks.push(hook);
        self
    }

    /// Sets [`permissions`](Self::permissions).
    pub fn permissions(mut self, permissions: impl Into<Permissions>) -> Self {
        self.permissions = Some(permissions.into());
        self
    }

    /// Adds one of the [`budgets`](Self::budgets).
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.budgets.push(budget.clone());
        self
    }

    /// Sets [`system_prompt`](Self::system_prompt).
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }

    /// Sets [`settings`](Self::settings).
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Sets [`durability`](Self::durability).
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets [`storage`](Self::storage).
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Sets [`read_only`](Self::read_only).
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }
}
