//! What a handle can ask its actor to do.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use super::adopt::AdoptOptions;
use super::asked::{CustomMessage, Delivery, NavigateOptions, NavigateResult, PromptOptions};
use super::event::CompactionResult;
use super::{Events, RunResult};
use crate::agent::Projection;
use crate::error::Result;
use crate::message::{BashExecution, Message};
use crate::resources::{ResourceOptions, Resources};
use crate::system::clock::now_ms;
use tokio::sync::watch;

/// Where the answer goes. The asker may be gone; nobody minds.
pub(crate) type Reply<T> = oneshot::Sender<Result<T>>;

/// A subscription to the run a prompt joined, and where its result will be.
pub(crate) type Accepted = (Events, watch::Receiver<Option<Result<RunResult>>>);

pub(crate) enum Command {
    Prompt { input: Input, options: PromptOptions, reply: Reply<Accepted> },
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
    SendCustom { message: CustomMessage, delivery: Delivery, reply: Reply<Option<String>> },
    RecordBash { execution: BashExecution, reply: Reply<Option<String>> },
    EditContext { target: String, replacement: Value, reply: Reply<String> },
    Adopt { target: Option<String>, others: Vec<String>, options: AdoptOptions, reply: Reply<NavigateResult> },
    Context { leaf: Option<String>, reply: Reply<Option<Projection>> },
    Compact { instructions: Option<String>, reply: Reply<CompactionResult> },
    SetResources { options: ResourceOptions, resources: Arc<Resources>, reply: Reply<()> },
}

/// What starts a run.
pub(crate) enum Input {
    Text(String),
    Custom(CustomMessage),
}

impl Input {
    /// The message it becomes.
    pub(crate) fn message(self, images: Vec<Value>) -> Result<Message> {
        match self {
            Input::Text(text) => Ok(Message::user(&text, images, now_ms())),
            Input::Custom(message) => message.message(),
        }
    }
}
