//! Options as JavaScript writes them. A misspelt one is an error, not a silence.

use branchline::tree::{CreateOptions, Durability, ListOptions};
use branchline::{Error, ErrorCode, ForkPosition, NavigateOptions, PromptOptions, Result, json};
use branchline::{ResourceOptions, SessionOptions, WhenRunning};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::policy::{Bounds, Policy};
use crate::replay::Custom;

/// Reads an options object.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).and_then(json::form).map_err(|error| {
        // The place is one in a text that the caller never saw.
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        Error::new(ErrorCode::InvalidArgument, format!("bad options: {text}"))
    })
}

/// Reads any JSON value.
pub(crate) fn value(text: &str) -> Result<Value> {
    json::parse_given(text.as_bytes())
        .map_err(|problem| Error::new(ErrorCode::InvalidArgument, format!("the value {problem}")))
}

/// Options of an engine: what is data, and what is a function on the other side.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Engine {
    pub(crate) form: Value,
    pub(crate) permissions: Option<Policy>,
    pub(crate) key_source: Option<u32>,
    pub(crate) login_source: Option<u32>,
    pub(crate) payload_hook: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Session {
    cwd: Option<String>,
    session_dir: Option<String>,
    #[serde(default)]
    in_memory: bool,
    id: Option<String>,
    name: Option<String>,
    parent_session: Option<String>,
    model: Option<String>,
    thinking_level: Option<String>,
    tools: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) custom_tools: Vec<Custom>,
    #[serde(default)]
    pub(crate) bounds: Bounds,
    system_prompt: Option<String>,
    #[serde(default)]
    resources: ResourceOptions,
    durability: Option<Durability>,
    #[serde(default)]
    read_only: bool,
}

impl From<Session> for SessionOptions {
    fn from(given: Session) -> SessionOptions {
        // Without a directory the file's own counts; only opening a file leaves it out.
        let mut options = SessionOptions::new(given.cwd.unwrap_or_default());
        options.session_dir = given.session_dir.map(Into::into);
        options.in_memory = given.in_memory;
        options.id = given.id;
        options.name = given.name;
        options.parent_session = given.parent_session;
        options.model = given.model;
        options.thinking_level = given.thinking_level;
        options.tools = given.tools;
        options.system_prompt = given.system_prompt;
        options.resources = given.resources;
        options.durability = given.durability.unwrap_or_default();
        options.read_only = given.read_only;
        options
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct List {
    pub(crate) cwd: Option<String>,
    session_dir: Option<String>,
    agent_dir: Option<String>,
    #[serde(default)]
    text: bool,
}

impl From<List> for ListOptions {
    fn from(given: List) -> ListOptions {
        let location = CreateOptions {
            session_dir: given.session_dir.map(Into::into),
            agent_dir: given.agent_dir.map(Into::into),
            ..CreateOptions::default()
        };
        ListOptions { location, text: given.text, ..ListOptions::default() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Prompt {
    #[serde(default)]
    images: Vec<Value>,
    #[serde(default)]
    when_running: Running,
    expand: Option<bool>,
    forced_prompt: Option<String>,
    capacity: Option<usize>,
}

/// What a prompt's options are for a message of the host: its images are in its content, its text is sent as it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CustomPrompt {
    #[serde(default)]
    when_running: Running,
    forced_prompt: Option<String>,
    capacity: Option<usize>,
}

impl From<CustomPrompt> for PromptOptions {
    fn from(given: CustomPrompt) -> PromptOptions {
        let CustomPrompt { when_running, forced_prompt, capacity } = given;
        Prompt { images: Vec::new(), when_running, expand: None, forced_prompt, capacity }.into()
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
enum Running {
    #[default]
    Refuse,
    Steer,
    FollowUp,
}

impl From<Prompt> for PromptOptions {
    fn from(given: Prompt) -> PromptOptions {
        let when = match given.when_running {
            Running::Refuse => WhenRunning::Refuse,
            Running::Steer => WhenRunning::Steer,
            Running::FollowUp => WhenRunning::FollowUp,
        };
        let options = PromptOptions::default().images(given.images).when_running(when);
        let mut options = options.expand(given.expand.unwrap_or(true));
        options.forced_prompt = given.forced_prompt;
        match given.capacity {
            Some(capacity) => options.capacity(capacity),
            None => options,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Navigate {
    label: Option<String>,
    #[serde(default)]
    summarize: bool,
    instructions: Option<String>,
    #[serde(default)]
    replace_instructions: bool,
}

impl From<Navigate> for NavigateOptions {
    fn from(given: Navigate) -> NavigateOptions {
        let mut options = NavigateOptions::default();
        options.label = given.label;
        options.summarize = given.summarize;
        options.instructions = given.instructions;
        options.replace_instructions = given.replace_instructions;
        options
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Fork {
    position: Option<Side>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Side {
    Before,
    At,
}

impl From<Fork> for ForkPosition {
    fn from(given: Fork) -> ForkPosition {
        match given.position {
            None | Some(Side::Before) => ForkPosition::Before,
            Some(Side::At) => ForkPosition::At,
        }
    }
}
