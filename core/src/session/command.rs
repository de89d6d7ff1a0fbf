//! What a handle can ask its actor to do.

use serde_json::Value;
use tokio::sync::oneshot;

use super::options::{NavigateOptions, NavigateResult, PromptOptions};
use super::{Events, RunResult};
use crate::error::Result;
use tokio::sync::watch;

/// Where the answer goes. The asker may be gone; nobody minds.
pub(crate) type Reply<T> = oneshot::Sender<Result<T>>;

/// A subscription to the run a prompt joined, and where its result will be.
pub(crate) type Accepted = (Events, watch::Receiver<Option<Result<RunResult>>>);

pub(crate) enum Command {
    Prompt { text: String, options: PromptOptions, reply: Reply<Accepted> },
    Queue { text: String, images: Vec<Value>, steer: bool, reply: Reply<()> },
    ClearQueues { reply: Reply<(Vec<String>, Vec<String>)> },
    SetQueueModes { steer_all: Option<bool>, follow_up_all: Option<bool>, reply: Reply<()> },
    Navigate { target: String, options: NavigateOptions, reply: Reply<NavigateResult> },
    SetLabel { target: String, label: Option<String>, reply: Reply<String> },
    SetName { name: String, reply: Reply<()> },
    SetModel { name: String, reply: Reply<()> },
    SetThinkingLevel { level: String, reply: Reply<()> },
    SetTools { names: Vec<String>, reply: Reply<()> },
    AppendCustom { custom_type: String, data: Option<Value>, reply: Reply<String> },
    AppendCustomMessage { message: CustomMessage, reply: Reply<Option<String>> },
}

/// A message of an extension or host (S24, S37).
pub(crate) struct CustomMessage {
    pub(crate) custom_type: String,
    pub(crate) content: Value,
    pub(crate) display: bool,
    pub(crate) details: Option<Value>,
}
