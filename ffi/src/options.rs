//! The structs a host fills in. Each begins with its size, so that fields can be added without breaking anyone; zero
//! always means the default. No field may stand where an older version had padding: that is why there are `reserved`
//! ones, which must be zero until they have a meaning.

use std::ffi::c_char;

use branchline_core::tree::{CreateOptions, Durability, ListOptions};
use branchline_core::{
    EngineForm, EngineOptions, NavigateOptions, Permissions, PromptOptions, SessionOptions, SubscribeOptions,
    WhenRunning,
};
use std::path::PathBuf;

use crate::budget::{self, branchline_budget};
use crate::error::Failure;
use crate::handle;
use crate::input::{self, Versioned, invalid};
use crate::permissions::{PermissionsObject, branchline_permissions};
use crate::tool::{self, branchline_tool};
use crate::tool_hook::{self, branchline_tool_hook};

/// Settings of an engine. Start from `BRANCHLINE_ENGINE_OPTIONS_INIT`; all strings are copied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_engine_options {
    /// `sizeof(branchline_engine_options)`.
    pub struct_size: usize,
    /// Worker threads; 0 is one for each processor, at most 4.
    pub worker_threads: usize,
    /// Where sessions live; NULL is `$PI_CODING_AGENT_DIR` or `~/.pi/agent`.
    pub agent_dir: *const c_char,
    /// "provider/model" for sessions that choose none; NULL is none.
    pub default_model: *const c_char,
    /// Models, keys, network, recording and settings, as JSON, or NULL: `{"agentFiles"?:true or DIRECTORY,"modelsFile"?,"authFile"?,
    /// "builtinModels"?,"models"?:{...},"keys"?:{PROVIDER:KEY or {"key","bearer"?}},"environment"?,"commands"?,
    /// "network"?:{"proxy"?:"environment", "direct" or an address,"caFile"?,"connectTimeoutMs"?,"idleTimeoutMs"?,
    /// "maxRequestsPerOrigin"?,"headers"?},"record"?:PATH,"settings"?:{...}}`; also the fields above as "workerThreads",
    /// "agentDir" and "defaultModel". See docs/models.md and docs/settings.md.
    pub config_json: *const c_char,
}

/// When an appended entry is on the disk and not only with the operating system.
pub type branchline_durability = u32;
/// Whenever the operating system likes. The default.
pub const BRANCHLINE_DURABILITY_NONE: branchline_durability = 0;
/// When a turn ends.
pub const BRANCHLINE_DURABILITY_TURN: branchline_durability = 1;
/// Before the append returns.
pub const BRANCHLINE_DURABILITY_ENTRY: branchline_durability = 2;

/// How a session is made or opened. Start from `BRANCHLINE_SESSION_OPTIONS_INIT`; all strings are copied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_session_options {
    /// `sizeof(branchline_session_options)`.
    pub struct_size: usize,
    /// Working directory: tools run here and a new file is filed under it. NULL is "." for a new session and the
    /// file's own when opening.
    pub cwd: *const c_char,
    /// Where session files are; NULL is the default directory for `cwd`.
    pub session_dir: *const c_char,
    /// Id of a new session; NULL draws one.
    pub id: *const c_char,
    /// Name of the session, or NULL.
    pub name: *const c_char,
    /// Path to record in a new session's header as the one it came from, or NULL.
    pub parent_session: *const c_char,
    /// "provider/model"; NULL is the file's own choice, else the engine's default.
    pub model: *const c_char,
    /// "off", "minimal", "low", "medium", "high", "xhigh" or "max"; NULL is the file's own choice, else "medium".
    pub thinking_level: *const c_char,
    /// Names of the active tools; NULL is the file's own choice, else read, bash, edit, write and the host's own. Not NULL with
    /// a count of 0 is none.
    pub tools: *const *const c_char,
    /// How many names there are.
    pub tool_count: usize,
    /// Replaces the built-in system prompt; NULL does not.
    pub system_prompt: *const c_char,
    /// When entries are forced to disk.
    pub durability: branchline_durability,
    /// Not 0: keep the session in memory only.
    pub in_memory: u32,
    /// Not 0: open without the right to write.
    pub read_only: u32,
    /// 0.
    pub reserved: u32,
    /// Tools of this session alone, besides those of its engine, or NULL. They are borrowed; the session keeps what it
    /// needs. To make them active where `tools` is not NULL, name them there.
    pub custom_tools: *const *mut branchline_tool,
    /// How many there are.
    pub custom_tool_count: usize,
    /// What tool calls may do: "read-only", "ask", "workspace" or "allow". NULL is "ask": reading below the working
    /// directory is allowed, and everything else is denied as long as nobody answers questions.
    pub permissions: *const c_char,
    /// A policy with rules and questions, in the place of `permissions`, or NULL. It is borrowed; the session keeps what
    /// it needs.
    pub permission_policy: *const branchline_permissions,
    /// Limits for what the session may spend, or NULL. They are borrowed; the session keeps to all of them.
    pub budgets: *const *mut branchline_budget,
    /// How many there are.
    pub budget_count: usize,
    /// Hooks around the session's tool calls, asked in this order, or NULL. They are borrowed; the session keeps what it
    /// needs.
    pub tool_hooks: *const *mut branchline_tool_hook,
    /// How many there are.
    pub tool_hook_count: usize,
    /// What the session reads of its project and tells the model, as JSON, or NULL for nothing: `{"contextFiles"?,
    /// "extraContext"?:[{"path","content"}],"discover"?:"nothing", "user" or "project","skills"?:[PATH],
    /// "promptTemplates"?:[PATH],"appendSystemPrompt"?,"documentation"?,"guidelines"?:[TEXT],
    /// "sections"?:[{"name","text"}]}`. See docs/prompts.md.
    pub resources_json: *const c_char,
}

/// How a toolbox is made. Start from `BRANCHLINE_TOOLBOX_OPTIONS_INIT`; all strings are copied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_toolbox_options {
    /// `sizeof(branchline_toolbox_options)`.
    pub struct_size: usize,
    /// Working directory: tools run here; NULL is ".".
    pub cwd: *const c_char,
}

/// What a prompt does when a run is active.
pub type branchline_when_running = u32;
/// It is refused with RUNNING. The default.
pub const BRANCHLINE_WHEN_RUNNING_REFUSE: branchline_when_running = 0;
/// It is delivered before the next request of the run.
pub const BRANCHLINE_WHEN_RUNNING_STEER: branchline_when_running = 1;
/// It is delivered when the run would end.
pub const BRANCHLINE_WHEN_RUNNING_FOLLOW_UP: branchline_when_running = 2;

/// Details of a prompt. Start from `BRANCHLINE_PROMPT_OPTIONS_INIT`; all strings are copied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_prompt_options {
    /// `sizeof(branchline_prompt_options)`.
    pub struct_size: usize,
    /// JSON list of image blocks `{"type":"image","data":...,"mimeType":...}` (base64), or NULL.
    pub images_json: *const c_char,
    /// What happens when a run is active.
    pub when_running: branchline_when_running,
    /// Not 0: the text is sent as it is, also when it begins with the "/name" of a skill or prompt template.
    pub literal: u32,
    /// A system prompt for this run alone, in the place of the session's; one text, stored nowhere. Only for a prompt that
    /// begins a run, else INVALID_ARGUMENT. NULL is none.
    pub forced_prompt: *const c_char,
}

/// Details of a subscription. Start from `BRANCHLINE_EVENTS_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_events_options {
    /// `sizeof(branchline_events_options)`.
    pub struct_size: usize,
    /// Events held before the session waits for the reader; 0 is 1024.
    pub capacity: usize,
}

/// Details of a navigation. Start from `BRANCHLINE_NAVIGATE_OPTIONS_INIT`; all strings are copied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_navigate_options {
    /// `sizeof(branchline_navigate_options)`.
    pub struct_size: usize,
    /// Label for the summary entry, or for the target when there is none; NULL is none.
    pub label: *const c_char,
    /// What the summary should pay attention to, or NULL.
    pub instructions: *const c_char,
    /// Not 0: store a summary of what is left behind.
    pub summarize: u32,
    /// Not 0: `instructions` replace the usual ones instead of adding to them.
    pub replace_instructions: u32,
}

/// Which sessions to list. Start from `BRANCHLINE_LIST_OPTIONS_INIT`; all strings are copied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_list_options {
    /// `sizeof(branchline_list_options)`.
    pub struct_size: usize,
    /// The working directory whose sessions are listed; NULL lists those of all.
    pub cwd: *const c_char,
    /// The directory to look in; NULL is the default one.
    pub session_dir: *const c_char,
    /// Not 0: also collect all text of each session, for searching.
    pub include_text: u32,
    /// 0.
    pub reserved: u32,
}

macro_rules! versioned {
    ($($name:ident)*) => {$(
        // SAFETY: repr(C), size first, pointers and integers only, laid out without padding; all zeros is the default.
        unsafe impl Versioned for $name { const NAME: &'static str = stringify!($name); }
    )*};
}

versioned! {
    branchline_engine_options branchline_session_options branchline_prompt_options branchline_events_options
    branchline_navigate_options branchline_list_options branchline_toolbox_options
}

fn unused(reserved: u32) -> Result<(), Failure> {
    match reserved {
        0 => Ok(()),
        _ => Err(invalid("a reserved field is not 0; start from the _INIT macro")),
    }
}

/// # Safety
/// `options` is NULL or as the header demands. The same goes for all functions below.
pub(crate) unsafe fn engine(options: *const branchline_engine_options) -> Result<(EngineOptions, EngineForm), Failure> {
    let (mut out, mut form) = (EngineOptions::default(), EngineForm::default());
    // SAFETY: as the header demands.
    unsafe {
        let Some(options) = input::read(options)? else { return Ok((out, form)) };
        out.worker_threads = (options.worker_threads != 0).then_some(options.worker_threads.min(MOST_THREADS));
        out.agent_dir = input::optional_path(options.agent_dir);
        out.default_model = owned(options.default_model, "default_model")?;
        if let Some(config) = input::optional_text(options.config_json, "config_json")? {
            form = EngineForm::from_value(input::json(config, "config_json")?)?;
        }
    }
    Ok((out, form))
}

/// More threads than any machine has use for; a stray number must not start a million.
const MOST_THREADS: usize = 512;

unsafe fn owned(text: *const c_char, name: &str) -> Result<Option<String>, Failure> {
    // SAFETY: NULL or a string, as the header demands.
    Ok(unsafe { input::optional_text(text, name) }?.map(str::to_owned))
}

pub(crate) unsafe fn session(
    options: *const branchline_session_options,
    default_cwd: &str,
) -> Result<SessionOptions, Failure> {
    let mut out = SessionOptions::new(default_cwd);
    // SAFETY: as the header demands.
    unsafe {
        let Some(options) = input::read(options)? else { return Ok(out) };
        unused(options.reserved)?;
        if let Some(cwd) = input::optional_path(options.cwd) {
            out.cwd = cwd;
        }
        out.session_dir = input::optional_path(options.session_dir);
        out.in_memory = options.in_memory != 0;
        out.id = owned(options.id, "id")?;
        out.name = owned(options.name, "name")?;
        out.parent_session = owned(options.parent_session, "parent_session")?;
        out.model = owned(options.model, "model")?;
        out.thinking_level = owned(options.thinking_level, "thinking_level")?;
        out.tools = input::texts(options.tools, options.tool_count, "tools")?;
        out.system_prompt = owned(options.system_prompt, "system_prompt")?;
        out.read_only = options.read_only != 0;
        out.custom_tools = tool::list(options.custom_tools, options.custom_tool_count)?;
        out.permissions = match input::optional_text(options.permissions, "permissions")? {
            Some(name) => Some(Permissions::named(name)?),
            None => None,
        };
        if !options.permission_policy.is_null() {
            out.permissions = Some(handle::get::<PermissionsObject>(options.permission_policy)?.core.clone());
        }
        out.tool_hooks = tool_hook::list(options.tool_hooks, options.tool_hook_count)?;
        out.budgets = budget::list(options.budgets, options.budget_count)?;
        out.resources = input::form(options.resources_json, "resources_json")?;
        out.durability = match options.durability {
            BRANCHLINE_DURABILITY_NONE => Durability::None,
            BRANCHLINE_DURABILITY_TURN => Durability::Turn,
            BRANCHLINE_DURABILITY_ENTRY => Durability::Entry,
            other => return Err(invalid(format!("{other} is no branchline_durability"))),
        };
    }
    Ok(out)
}

/// The working directory of a toolbox.
pub(crate) unsafe fn toolbox(options: *const branchline_toolbox_options) -> Result<PathBuf, Failure> {
    // SAFETY: as the header demands.
    let cwd = unsafe { input::read(options)?.and_then(|options| input::optional_path(options.cwd)) };
    Ok(cwd.unwrap_or_else(|| PathBuf::from(".")))
}

pub(crate) unsafe fn prompt(options: *const branchline_prompt_options) -> Result<PromptOptions, Failure> {
    let mut out = PromptOptions::default();
    // SAFETY: as the header demands.
    unsafe {
        let Some(options) = input::read(options)? else { return Ok(out) };
        out.expand = options.literal == 0;
        out.forced_prompt = owned(options.forced_prompt, "forced_prompt")?;
        if let Some(images) = input::optional_text(options.images_json, "images_json")? {
            let serde_json::Value::Array(images) = input::json(images, "images_json")? else {
                return Err(invalid("images_json is no list"));
            };
            out.images = images;
        }
        out.when_running = match options.when_running {
            BRANCHLINE_WHEN_RUNNING_REFUSE => WhenRunning::Refuse,
            BRANCHLINE_WHEN_RUNNING_STEER => WhenRunning::Steer,
            BRANCHLINE_WHEN_RUNNING_FOLLOW_UP => WhenRunning::FollowUp,
            other => return Err(invalid(format!("{other} is no branchline_when_running"))),
        };
    }
    Ok(out)
}

pub(crate) unsafe fn events(options: *const branchline_events_options) -> Result<SubscribeOptions, Failure> {
    // SAFETY: as the header demands.
    let capacity = unsafe { input::read(options) }?.map_or(0, |options| options.capacity);
    Ok(subscribe(capacity))
}

/// A subscription of a given capacity, 0 being the default.
pub(crate) fn subscribe(capacity: usize) -> SubscribeOptions {
    match capacity {
        0 => SubscribeOptions::default(),
        capacity => SubscribeOptions::default().capacity(capacity),
    }
}

pub(crate) unsafe fn navigate(options: *const branchline_navigate_options) -> Result<NavigateOptions, Failure> {
    let mut out = NavigateOptions::default();
    // SAFETY: as the header demands.
    unsafe {
        let Some(options) = input::read(options)? else { return Ok(out) };
        out.label = owned(options.label, "label")?;
        out.instructions = owned(options.instructions, "instructions")?;
        out.summarize = options.summarize != 0;
        out.replace_instructions = options.replace_instructions != 0;
    }
    Ok(out)
}

pub(crate) unsafe fn list(options: *const branchline_list_options) -> Result<(Option<PathBuf>, ListOptions), Failure> {
    let mut out = ListOptions::default();
    // SAFETY: as the header demands.
    let cwd = unsafe {
        let Some(options) = input::read(options)? else { return Ok((None, out)) };
        unused(options.reserved)?;
        out.location = CreateOptions { session_dir: input::optional_path(options.session_dir), ..Default::default() };
        out.text = options.include_text != 0;
        input::optional_path(options.cwd)
    };
    Ok((cwd, out))
}
