//! One question and its one answer.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::hook::{self, BeforeTool};
use super::{login, model, payload};
use crate::agent::ResultChange;
use crate::error::{Error, ErrorCode, Result};
use crate::message::JsonObject;
use crate::permissions::PermissionAnswer;
use crate::providers::host::HostResponse;
use crate::providers::{HeldLock, Key};
use crate::tools::{Progress, ToolResult};

/// What a question is about. New kinds are added: refuse what you do not know with [`Request::fail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestKind {
    /// Run a tool of the host's.
    Tool,
    /// May this call of a tool run?
    Permission,
    /// A tool is about to be called.
    BeforeTool,
    /// A tool has been called.
    AfterTool,
    /// Answer as a model of the host's, see [`HostModels`](super::HostModels).
    Model,
    /// Which key is it? See [`HostKeys`](super::HostKeys).
    Key,
    /// Make a login anew. See [`HostLogins`](super::HostLogins).
    Login,
    /// What shall be sent to a service? See [`HostPayloads`](super::HostPayloads).
    Payload,
}

impl RequestKind {
    /// The word for it in every language.
    pub fn name(self) -> &'static str {
        match self {
            RequestKind::Tool => "tool",
            RequestKind::Permission => "permission",
            RequestKind::BeforeTool => "before_tool",
            RequestKind::AfterTool => "after_tool",
            RequestKind::Model => "model",
            RequestKind::Key => "key",
            RequestKind::Login => "login",
            RequestKind::Payload => "payload",
        }
    }
}

/// A question, as whoever asks it fills it in.
pub(crate) struct Question {
    pub(crate) kind: RequestKind,
    pub(crate) target: u64,
    pub(crate) name: String,
    pub(crate) call_id: String,
    pub(crate) session_id: String,
    pub(crate) sibling: u32,
    pub(crate) cwd: PathBuf,
    pub(crate) arguments: Value,
    pub(crate) progress: Option<Progress>,
    /// What the answer of a model is written to.
    pub(crate) response: Option<HostResponse>,
}

impl Question {
    /// One that is about no call and no session.
    pub(super) fn plain(kind: RequestKind, target: u64, name: String, arguments: Value) -> Question {
        Question {
            kind,
            target,
            name,
            call_id: String::new(),
            session_id: String::new(),
            sibling: 0,
            cwd: PathBuf::new(),
            arguments,
            progress: None,
            response: None,
        }
    }
}

/// What a host may answer, by [`RequestKind`].
pub(crate) enum Answer {
    Tool(ToolResult),
    Permission(PermissionAnswer),
    BeforeTool(BeforeTool),
    AfterTool(ResultChange),
    /// The response has been written.
    Model,
    Key(Option<Key>),
    Login(JsonObject),
    Payload(Option<Value>),
}

impl Answer {
    fn read(kind: RequestKind, value: Value) -> std::result::Result<Answer, String> {
        match kind {
            RequestKind::Tool => ToolResult::from_host_value(value).map(Answer::Tool),
            RequestKind::Permission => PermissionAnswer::from_host_value(value).map(Answer::Permission),
            RequestKind::BeforeTool => hook::read_before(value).map(Answer::BeforeTool),
            RequestKind::AfterTool => hook::read_after(value).map(Answer::AfterTool),
            RequestKind::Key => Key::from_host_value(value).map(Answer::Key),
            RequestKind::Login => login::read(value).map(Answer::Login),
            RequestKind::Payload => payload::read(value).map(Answer::Payload),
            RequestKind::Model => Ok(Answer::Model),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The host says that it failed, with a sentence for people and models.
    Failed(String),
    /// The host let go of the request.
    Dropped,
    /// Nobody takes requests any more.
    Closed,
    /// Whoever asked does not want to know any more.
    Cancelled,
}

pub(super) type Reply = std::result::Result<Answer, String>;

/// A question that was put to the host. It is answered once; dropped without an answer it fails. Legal from any thread.
pub struct Request {
    id: u64,
    question: Box<Question>,
    /// What is locked until it is answered.
    lock: Option<HeldLock>,
    cancelled: CancellationToken,
    reply: Mutex<Option<oneshot::Sender<Reply>>>,
}

impl Request {
    /// `cancelled` fires when the answer, which goes to `reply`, is not wanted any more.
    pub(super) fn new(
        id: u64,
        question: Question,
        cancelled: CancellationToken,
        reply: oneshot::Sender<Reply>,
    ) -> Request {
        let (question, lock) = (Box::new(question), HeldLock::current());
        Request { id, question, lock, cancelled, reply: Mutex::new(Some(reply)) }
    }

    /// Tells the requests of one queue apart.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What it is about.
    pub fn kind(&self) -> RequestKind {
        self.question.kind
    }

    /// The number that the host gave to what is asked, see [`HostTool::new`](super::HostTool::new).
    pub fn target(&self) -> u64 {
        self.question.target
    }

    /// Name of the tool; of a model's request and of a payload the model's full name, of a question for a key or a login the
    /// provider's.
    pub fn name(&self) -> &str {
        &self.question.name
    }

    /// Id of the tool call, as the model gave it; empty if it is about no tool call of a model.
    pub fn call_id(&self) -> &str {
        &self.question.call_id
    }

    /// What this thread does from now on, as long as `work` runs, is done about this request: a call in it that would wait
    /// for the answer fails with `would_deadlock` where that can be known, which is for the storing of keys and logins by who
    /// makes a login anew. The work gets the request.
    pub fn within<T>(self, work: impl FnOnce(Request) -> T) -> T {
        match self.lock.clone() {
            Some(lock) => lock.enter(|| work(self)),
            None => work(self),
        }
    }

    /// Id of the session; empty without one.
    pub fn session_id(&self) -> &str {
        &self.question.session_id
    }

    /// Which of the sessions over its tree asks, which have one id; 0 without a session.
    pub fn sibling(&self) -> u32 {
        self.question.sibling
    }

    /// The working directory of whoever asks; empty if that does not matter.
    pub fn cwd(&self) -> &Path {
        &self.question.cwd
    }

    /// The arguments of the call: an object that fits the tool's schema. Of a permission question all that is to be
    /// decided on, see [`HostPermissions`](super::HostPermissions), and likewise of the other kinds.
    pub fn arguments(&self) -> &Value {
        &self.question.arguments
    }

    /// Whether the answer is not wanted any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits until the answer is not wanted any more. Pending for ever when it came.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Tells how far the work is, in the form of a result. Each update replaces the ones before it. False when it was
    /// left out, because the reader is behind or the request is over.
    ///
    /// Errors: `invalid_argument` when the value is no result.
    pub fn progress(&self, value: Value) -> Result<bool> {
        if self.kind() != RequestKind::Tool {
            return Err(invalid("only the work of a tool has progress".to_owned()));
        }
        let partial = ToolResult::from_host_value(value).map_err(invalid)?;
        let open = !self.is_cancelled() && self.reply().is_some();
        Ok(open && self.question.progress.as_ref().is_some_and(|progress| progress.offer(partial)))
    }

    /// Answers. For a tool: a text, a list of content blocks, `{content, details?, structuredContent?, isError?,
    /// terminate?}`, or any other value, which the model gets as JSON. For a permission see
    /// [`HostPermissions`](super::HostPermissions), for a hook [`HostHook`](super::HostHook), for a model
    /// [`HostModels`](super::HostModels), for a key [`HostKeys`](super::HostKeys), for a login
    /// [`HostLogins`](super::HostLogins), for a payload [`HostPayloads`](super::HostPayloads).
    ///
    /// Errors: `invalid_argument` when the value is no answer (it can be answered again) or it was answered before;
    /// `cancelled` when the answer is not wanted any more.
    pub fn complete(&self, value: Value) -> Result<()> {
        if let Some(response) = self.response() {
            return self.write(|| model::finish(response, &value));
        }
        let answer = Answer::read(self.kind(), value).map_err(invalid)?;
        self.answer(Ok(answer))
    }

    /// Says that it failed. The message is for whoever asked: a model reads that of a tool.
    ///
    /// Errors: `invalid_argument` when it was answered before; `cancelled` when the answer is not wanted any more.
    pub fn fail(&self, message: impl Into<String>) -> Result<()> {
        if let Some(response) = self.response() {
            return self.write(|| response.fail(&message.into()));
        }
        self.answer(Err(message.into()))
    }

    /// What the answer is written to, of a model.
    pub(super) fn response(&self) -> Option<&HostResponse> {
        self.question.response.as_ref()
    }

    /// Errors: as [`complete`](Self::complete) when there is nothing to answer any more.
    pub(super) fn check_open(&self) -> Result<()> {
        if self.reply().is_none() || self.is_cancelled() {
            return Err(self.over());
        }
        Ok(())
    }

    /// Writes the end of a model's answer; if that fails it can be done again.
    fn write(&self, end: impl FnOnce() -> Result<()>) -> Result<()> {
        self.check_open()?;
        end()?;
        if let Some(sender) = self.reply().take() {
            // Its reader may have seen the end and be gone.
            let _ = sender.send(Ok(Answer::Model));
        }
        Ok(())
    }

    fn answer(&self, reply: Reply) -> Result<()> {
        let Some(sender) = self.reply().take() else {
            return Err(self.over());
        };
        match sender.send(reply) {
            Ok(()) => Ok(()),
            Err(_) => Err(unwanted()),
        }
    }

    /// Why there is nothing to answer any more.
    fn over(&self) -> Error {
        if self.is_cancelled() { unwanted() } else { invalid("the request was answered before".to_owned()) }
    }

    fn reply(&self) -> std::sync::MutexGuard<'_, Option<oneshot::Sender<Reply>>> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("id", &self.id).field("name", &self.name()).finish_non_exhaustive()
    }
}

fn unwanted() -> Error {
    Error::new(ErrorCode::Cancelled, "nobody waits for the answer any more; stop the work")
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}
