//! The data of a script, and its JSON form.

use serde::Deserialize;
use serde_json::Value;

use super::ScriptControl;
use crate::error::{Error, ErrorCode, Result};
use crate::message::Usage;

/// Characters per delta when a script does not say: short, as real services send them.
const CHUNK: usize = 12;
/// Milliseconds before a reply when a script does not say.
const DELAY_MS: u64 = 2;

/// Replies and how they are streamed.
///
/// As JSON either a list of replies or an object with the fields below in `camelCase`. Cloning a script shares its
/// [`control`](Script::control) but not its position.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Script {
    /// The replies, used up one a request.
    #[serde(alias = "script")]
    pub replies: Vec<Reply>,
    /// Characters per delta; 0 sends each block in one delta. Default 12.
    #[serde(default = "default_chunk")]
    pub chunk: usize,
    /// Milliseconds between the request and the first event. Default 2: with less, a response can carry the same
    /// millisecond as what came right before it, and order by time is used when histories are compared.
    #[serde(default = "default_delay")]
    pub delay_ms: u64,
    /// Milliseconds between deltas. Default 0.
    #[serde(default)]
    pub chunk_delay_ms: u64,
    /// What follows the last reply.
    #[serde(default)]
    pub at_end: AtEnd,
    #[serde(skip)]
    control: ScriptControl,
}

/// What a request gets when the script is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AtEnd {
    /// An error that says so.
    #[default]
    Fail,
    /// The last reply again.
    RepeatLast,
    /// The first reply, and so on around.
    Loop,
}

/// One reply of the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reply {
    /// Blocks to stream: text, thinking and tool calls, as they are stored (S29).
    #[serde(default)]
    pub content: Vec<Value>,
    /// Tokens; default 100 in, 10 out.
    pub usage: Option<ShortUsage>,
    /// Stop reason; default `toolUse` when there is a call, else `stop`.
    pub stop: Option<String>,
    /// Error text of the final message, for use with `stop: "error"`.
    pub error: Option<String>,
    /// The response is one error with this text: no start, no content.
    pub immediate_error: Option<String>,
    /// After the content, wait for an abort.
    #[serde(default)]
    pub hang: bool,
    /// After the content, wait for this gate (or an abort).
    pub wait_gate: Option<String>,
    /// The request fails with this text before there is a response.
    pub throw: Option<String>,
    /// The script's `delayMs`, for this reply.
    pub delay_ms: Option<u64>,
    /// The script's `chunkDelayMs`, for this reply.
    pub chunk_delay_ms: Option<u64>,
    /// The script's `chunk`, for this reply.
    pub chunk: Option<usize>,
    /// How many requests this reply serves. Default 1.
    pub times: Option<u64>,
}

/// Token counts of a reply; `totalTokens` is their sum and nothing costs anything.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShortUsage {
    /// Prompt tokens.
    #[serde(default)]
    pub input: u64,
    /// Produced tokens.
    #[serde(default)]
    pub output: u64,
    /// Prompt tokens read from the cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Prompt tokens written to the cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl ShortUsage {
    /// The full usage.
    pub fn usage(self) -> Usage {
        Usage {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            total_tokens: self.input + self.output + self.cache_read + self.cache_write,
            ..Usage::default()
        }
    }
}

fn default_delay() -> u64 {
    DELAY_MS
}

fn default_chunk() -> usize {
    CHUNK
}

impl Script {
    /// A script of these replies with the default pace.
    pub fn new(replies: Vec<Reply>) -> Script {
        Script {
            replies,
            chunk: CHUNK,
            delay_ms: DELAY_MS,
            chunk_delay_ms: 0,
            at_end: AtEnd::Fail,
            control: ScriptControl::default(),
        }
    }

    /// Reads a script from JSON; see [`Script`] for its form. Errors: `invalid_argument`.
    pub fn from_json(text: &str) -> Result<Script> {
        let value: Value = serde_json::from_str(text).map_err(invalid)?;
        Script::from_value(value)
    }

    /// Reads a script from a JSON value. Errors: `invalid_argument`.
    pub fn from_value(value: Value) -> Result<Script> {
        match value {
            Value::Array(_) => crate::json::form(value).map(Script::new).map_err(invalid),
            _ => crate::json::form(value).map_err(invalid),
        }
    }

    /// The same script with another number of characters per delta; 0 sends each block in one delta.
    pub fn with_chunk(mut self, chunk: usize) -> Script {
        self.chunk = chunk;
        self
    }

    /// The host's hand on this script while it plays.
    pub fn control(&self) -> ScriptControl {
        self.control.clone()
    }
}

fn invalid(error: serde_json::Error) -> Error {
    Error::new(ErrorCode::InvalidArgument, format!("this is not a script: {error}"))
}
