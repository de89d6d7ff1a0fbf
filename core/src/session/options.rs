//! What a host may ask of a session, and what it gets back.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::Session;
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

/// What a prompt does when a run is active (S202).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenRunning {
    /// It is refused with `running`.
    #[default]
    Refuse,
    /// It is delivered before the next request of the run.
    Steer,
    /// It is delivered when the run would end.
    FollowUp,
}

/// Details of a prompt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromptOptions {
    /// Image blocks `{type:"image", data, mimeType}` (base64) behind the text.
    pub images: Vec<Value>,
    /// What happens when a run is active.
    pub when_running: WhenRunning,
    /// `/skill:name` and `/name` at the start of the text are replaced by the skill or prompt template they call, if there
    /// is one (P726, P751). Default true.
    pub expand: bool,
    /// A system prompt for this run alone, in the place of the session's; one text, without sections, stored nowhere (S305,
    /// P777). Tools stay. Only for a prompt that begins a run.
    pub forced_prompt: Option<String>,
    /// Events the [`Run`](super::Run) holds before the session waits for its reader. Default 1024.
    pub capacity: usize,
}

impl Default for PromptOptions {
    fn default() -> Self {
        PromptOptions {
            images: Vec::new(),
            when_running: WhenRunning::Refuse,
            expand: true,
            forced_prompt: None,
            capacity: DEFAULT_CAPACITY,
        }
    }
}

impl PromptOptions {
    /// Sets [`images`](Self::images).
    pub fn images(mut self, images: Vec<Value>) -> Self {
        self.images = images;
        self
    }

    /// Sets [`when_running`](Self::when_running).
    pub fn when_running(mut self, when_running: WhenRunning) -> Self {
        self.when_running = when_running;
        self
    }

    /// Sets [`capacity`](Self::capacity).
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }
}

/// Events a subscription holds unless told otherwise: some seconds of a fast stream, a few hundred kilobytes.
const DEFAULT_CAPACITY: usize = 1024;

/// Details of a subscription.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SubscribeOptions {
    /// Events held before the session waits for the reader. At least 1; default 1024.
    pub capacity: usize,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        SubscribeOptions { capacity: DEFAULT_CAPACITY }
    }
}

impl SubscribeOptions {
    /// Sets [`capacity`](Self::capacity).
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }
}

/// Details of [`Session::navigate`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NavigateOptions {
    /// Label for the summary entry, or the target when there is none (S171).
    pub label: Option<String>,
    /// Store a summary of what is left behind (S166).
    pub summarize: bool,
    /// What the summary should pay attention to.
    pub instructions: Option<String>,
    /// `instructions` replace the usual ones instead of adding to them.
    pub replace_instructions: bool,
}

impl NavigateOptions {
    /// Sets [`label`](Self::label).
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets [`summarize`](Self::summarize).
    pub fn summarize(mut self, summarize: bool) -> Self {
        self.summarize = summarize;
        self
    }

    /// Sets [`instructions`](Self::instructions).
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets [`replace_instructions`](Self::replace_instructions).
    pub fn replace_instructions(mut self, replace: bool) -> Self {
        self.replace_instructions = replace;
        self
    }
}

/// Where [`Session::navigate`] arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NavigateResult {
    /// The leaf now.
    pub leaf: Option<String>,
    /// The text of the user message that was chosen, to be edited and sent again (S169).
    pub editor_text: Option<String>,
    /// Nothing was changed, because the summary was aborted.
    pub cancelled: bool,
    /// Id of the summary entry.
    pub summary_entry: Option<String>,
}

/// A message of the host that the model sees, as if a user had said it (S24, S37).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CustomMessage {
    /// What kind it is, for the host.
    pub custom_type: String,
    /// A string, or a list of text and image blocks.
    pub content: Value,
    /// Whether people should see it. The model does in any case.
    pub display: bool,
    /// Data of the host that the model does not see.
    pub details: Option<Value>,
}

impl CustomMessage {
    /// A displayed message.
    pub fn new(custom_type: impl Into<String>, content: impl Into<Value>) -> Self {
        CustomMessage { custom_type: custom_type.into(), content: content.into(), display: true, details: None }
    }

    /// Sets [`display`](Self::display).
    pub fn display(mut self, display: bool) -> Self {
        self.display = display;
        self
    }

    /// Sets [`details`](Self::details).
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

/// When a custom message reaches the model (S238).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Delivery {
    /// It is stored: at once on an idle session, after the current turn during a run.
    #[default]
    Store,
    /// During a run it is delivered before the next request; on an idle session it is stored at once.
    Steer,
    /// During a run it is delivered when the run would end; on an idle session it is stored at once.
    FollowUp,
    /// It follows the message of the next prompt. It is lost when none comes.
    NextTurn,
}

/// A user message to fork before (S183).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ForkMessage {
    /// Its entry.
    pub entry_id: String,
    /// Its text.
    pub text: String,
}

/// Which side of an entry a fork takes (S184).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkPosition {
    /// Everything before a user message; its text is returned for editing.
    #[default]
    Before,
    /// Everything up to and including any entry.
    At,
}

/// A session made by [`Session::fork`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fork {
    /// The new session, with a file of its own.
    pub session: Session,
    /// The text of the user message it was forked before.
    pub editor_text: Option<String>,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Nothing; it takes a prompt.
    Idle,
    /// A run: from an accepted prompt to `agent_settled`.
    Running,
    /// A run that waits before it makes a failed request again (S243).
    Retrying,
    /// A compaction, also one in the middle of a run; a branch summary or navigation (S194).
    Compacting,
    /// Over.
    Closed,
}

impl Phase {
    /// The word for it in every language, `snake_case`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Running => "running",
            Phase::Retrying => "retrying",
            Phase::Compacting => "compacting",
            Phase::Closed => "closed",
        }
    }
}

/// A snapshot of a session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionState {
    /// What it is doing.
    pub phase: Phase,
    /// A run is active, whatever it is doing just now: a prompt must be queued.
    pub running: bool,
    /// Which of the sessions over its file it is, see [`Session::sibling`].
    pub sibling: u32,
    /// The entry it stands on.
    pub leaf: Option<String>,
    /// `provider/model`.
    pub model: Option<String>,
    /// Why it is another one than the file says, if it is: that one is not known or has no key (S292). Gone when a model is
    /// chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_notice: Option<String>,
    /// The effective thinking level.
    pub thinking_level: String,
    /// Names of the active tools.
    pub tools: Vec<String>,
    /// Texts waiting to steer the run.
    pub steering: Vec<String>,
    /// Texts waiting for its end.
    pub follow_up: Vec<String>,
    /// Shell runs that wait for the end of what runs.
    pub pending_bash: usize,
    /// Messages in the model's context.
    pub context_messages: usize,
}
