//! The trait every tool implements, and what goes in and out of it (T2, T3, S219).

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Operations;
use super::image::ImageTarget;
use super::nested::Caller;
use super::validate::Checker;
use crate::message::JsonObject;
use crate::permissions::Effect;

/// The future a tool's execution is.
pub type ToolFuture = Pin<Box<dyn Future<Output = Result<ToolResult, ToolError>> + Send>>;

/// Something the model may call.
///
/// `execute` is called on a worker thread of the engine and must return at once; the future does the work. It runs
/// beside other calls of the same batch unless [`ToolDefinition::mode`] says otherwise, must end soon after
/// [`ToolCall::cancel`] fires (a call that does not is given up after a short grace), and must not block its thread:
/// hand blocking work to a thread of your own or `tokio::task::spawn_blocking`.
pub trait Tool: Send + Sync {
    /// Name, description and parameters. The same value must be returned for the life of the tool.
    fn definition(&self) -> &ToolDefinition;
    /// Repairs arguments before they are converted and checked (T10), for forms of the schema that models mix up.
    fn prepare(&self, arguments: Value) -> Value {
        arguments
    }
    /// Whether the images of its results already are as models take them; others are looked at after the call (T16).
    fn prepares_images(&self) -> bool {
        false
    }
    /// Starts one call.
    fn execute(&self, call: ToolCall) -> ToolFuture;
}

/// How a batch of calls that contains this tool is run (S211).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExecutionMode {
    /// Beside the other calls.
    #[default]
    Parallel,
    /// The whole batch runs one call after the other.
    Sequential,
}

/// What the model is told of a tool.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// Unique within a session: letters, digits, `_` and `-`.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments, an object schema.
    pub parameters: Value,
    /// Whether calls may run beside others.
    pub mode: ExecutionMode,
    /// How providers should constrain sampling (T4), for example `{"type":"json_schema","strict":"prefer"}`.
    pub constrained_sampling: Option<Value>,
    /// One line for the list of tools in the system prompt; `None` keeps the tool out of that list.
    pub snippet: Option<String>,
    /// Lines for the rules section of the system prompt.
    pub guidelines: Vec<String>,
    /// What calls do, at most; what permissions go by. A tool that does not say may do [anything](Effect::Execute).
    pub effect: Effect,
    /// Arguments that are paths (or lists of them), by name. Permissions look at where they lead, and hold the files of a
    /// call to that. One that a call leaves out is the working directory.
    pub path_arguments: Vec<String>,
    /// `parameters`, read when the first call is checked.
    checker: OnceLock<Result<Arc<Checker>, String>>,
}

impl ToolDefinition {
    /// A parallel tool with a name, a description and an argument schema.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        ToolDefinition {
            name: name.into(),
            description: description.into(),
            parameters,
            mode: ExecutionMode::Parallel,
            constrained_sampling: None,
            snippet: None,
            guidelines: Vec::new(),
            effect: Effect::Execute,
            path_arguments: Vec::new(),
            checker: OnceLock::new(),
        }
    }

    /// The same tool with an effect, and the names of the arguments that are paths.
    pub fn with_effect(mut self, effect: Effect, path_arguments: &[&str]) -> Self {
        self.effect = effect;
        self.path_arguments = path_arguments.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Converts and checks arguments (T11, T12). The schema is read once, so `parameters` must not change any more.
    ///
    /// Errors: the text for the model: what is wrong with the arguments, or with the schema.
    pub fn check(&self, arguments: &Value) -> Result<JsonObject, String> {
        match self.checker.get_or_init(|| Checker::new(&self.parameters).map(Arc::new)) {
            Ok(checker) => checker.check(&self.name, arguments),
            Err(problem) => {
                Err(format!("The parameters of tool \"{}\" are no valid JSON Schema: {problem}", self.name))
            }
        }
    }

    /// The declaration stored in system messages: `{name, description, parameters, constrainedSampling?}` (S35).
    pub fn declaration(&self) -> Value {
        let mut value = json!({"name": self.name, "description": self.description, "parameters": self.parameters});
        if let (Some(sampling), Some(object)) = (&self.constrained_sampling, value.as_object_mut()) {
            object.insert("constrainedSampling".to_owned(), sampling.clone());
        }
        value
    }
}

/// One call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The call's id, as the model gave it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Arguments after validation; a copy, the stored call keeps the model's own.
    pub arguments: JsonObject,
    /// The session's working directory.
    pub cwd: PathBuf,
    /// The files and commands to work with.
    pub operations: Operations,
    /// What the model can do with images; `None` when no model calls.
    pub images: Option<ImageTarget>,
    /// The calling session's id.
    pub session_id: String,
    /// Which of the sessions over its tree it is, see [`Session::sibling`](crate::Session::sibling); 0 without a session.
    pub sibling: u32,
    /// What commands are told of the session, as environment variables: `PI_SESSION_ID` and its relatives (T207).
    pub session_variables: Vec<(&'static str, String)>,
    /// The agent's own programs, which commands find first: `bin` in the agent directory that the host named for the
    /// engine (T207).
    pub program_dir: Option<PathBuf>,
    /// Fires when the run is aborted.
    pub cancel: CancellationToken,
    /// Where progress goes.
    pub progress: Progress,
    /// Where calls of other tools go.
    pub(crate) caller: Option<Caller>,
}

impl ToolCall {
    /// A call outside of any session: nothing listens to its progress, nothing cancels it unless `cancel` is replaced.
    pub fn detached(name: &str, arguments: JsonObject, cwd: impl Into<PathBuf>) -> ToolCall {
        ToolCall {
            id: String::new(),
            name: name.to_owned(),
            arguments,
            cwd: cwd.into(),
            operations: Operations::local(),
            images: None,
            session_id: String::new(),
            sibling: 0,
            session_variables: Vec::new(),
            program_dir: None,
            cancel: CancellationToken::new(),
            progress: Progress { call: 0, sender: async_channel::bounded(1).0 },
            caller: None,
        }
    }
}

/// Sends partial results of a running call. Cheap to clone; legal on any thread.
#[derive(Debug, Clone)]
pub struct Progress {
    pub(crate) call: usize,
    pub(crate) sender: async_channel::Sender<(usize, ToolResult)>,
}

impl Progress {
    /// Sends an update, waiting for room when the session is busy. Updates after the call's end go nowhere.
    pub async fn update(&self, partial: ToolResult) {
        let _ = self.sender.send((self.call, partial)).await;
    }

    /// Sends an update if there is room for it now, and says whether it did.
    pub fn offer(&self, partial: ToolResult) -> bool {
        self.sender.try_send((self.call, partial)).is_ok()
    }
}

/// What a call came to (T3).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolResult {
    /// Text and image blocks for the model.
    pub content: Vec<Value>,
    /// Facts for the host and the session file; the model does not see them.
    pub details: Option<Value>,
    /// The result for programs that call tools; not stored.
    pub structured_content: Option<Value>,
    /// Tokens the tool itself spent (S30).
    pub usage: Option<Value>,
    /// The call failed.
    pub is_error: bool,
    /// It failed without a result of the tool's own: this one was made of an error ([`ToolResult::error`]).
    pub thrown: bool,
    /// When every result of a batch says so, the batch asks for no further turn (S222).
    pub terminate: bool,
}

impl ToolResult {
    /// A result of one text block.
    pub fn text(text: impl Into<String>) -> ToolResult {
        ToolResult { content: vec![text_block(text)], ..ToolResult::default() }
    }

    /// The error result of a call that failed: one text block, empty details (S215).
    pub fn error(message: impl Into<String>) -> ToolResult {
        ToolResult {
            content: vec![text_block(message)],
            details: Some(json!({})),
            is_error: true,
            thrown: true,
            ..ToolResult::default()
        }
    }

    /// The result as events carry it: `{content, details?, structuredContent?, usage?, isError?, terminate?}` (R116). `isError`
    /// is there when the tool itself gave its result as that of a failure.
    pub fn to_value(&self) -> Value {
        let mut object = JsonObject::new();
        object.insert("content".to_owned(), Value::Array(self.content.clone()));
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(key.to_owned(), value);
            }
        };
        put("details", self.details.clone());
        put("structuredContent", self.structured_content.clone());
        put("usage", self.usage.clone());
        put("isError", (self.is_error && !self.thrown).then_some(Value::Bool(true)));
        put("terminate", self.terminate.then_some(Value::Bool(true)));
        Value::Object(object)
    }
}

/// A text content block.
pub(crate) fn text_block(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

/// A call that failed: the sentence the model reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(pub String);

impl ToolError {
    /// A failure with a sentence for the model.
    pub fn new(message: impl Into<String>) -> ToolError {
        ToolError(message.into())
    }

    /// The failure of a call that was aborted (T14).
    pub fn aborted() -> ToolError {
        ToolError("Operation aborted".to_owned())
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ToolError {}
