//! Asking the host.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::Effect;
use crate::message::JsonObject;
use crate::tools::ToolError;

/// The future a handler's answer is. An error means deny.
pub type PermissionFuture = Pin<Box<dyn Future<Output = Result<PermissionAnswer, ToolError>> + Send>>;

/// Decides about calls that the policy does not decide.
///
/// Called on a thread of its own, one call of a session after the other, in the order of the calls. It may block, and so
/// may its future; both may wait for a person. An error, a panic, or no answer in time is a denial. After an abort or the
/// time limit the answer is no longer waited for.
pub trait PermissionHandler: Send + Sync {
    /// Answers one question.
    fn ask(&self, request: PermissionRequest) -> PermissionFuture;
}

impl<F, Answer> PermissionHandler for F
where
    F: Fn(PermissionRequest) -> Answer + Send + Sync,
    Answer: Future<Output = Result<PermissionAnswer, ToolError>> + Send + 'static,
{
    fn ask(&self, request: PermissionRequest) -> PermissionFuture {
        Box::pin(self(request))
    }
}

/// A call that asks for permission.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The session's id; empty in a toolbox.
    pub session_id: String,
    /// Which of the sessions over its tree it is, see [`Session::sibling`](crate::Session::sibling); 0 without a session.
    pub sibling: u32,
    /// The call's id; empty in a toolbox.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// What the call does, at most.
    pub effect: Effect,
    /// The arguments the tool will get, after conversion and hooks.
    pub arguments: JsonObject,
    /// The exact text of a command.
    pub command: Option<String>,
    /// The paths the call names.
    pub paths: Vec<RequestedPath>,
    /// Where the call works.
    pub cwd: PathBuf,
    /// The rule that asks.
    pub rule: String,
    /// Fires when nobody waits for the answer any more.
    pub cancel: CancellationToken,
}

/// A path as a call names it, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestedPath {
    /// As the model wrote it.
    pub given: String,
    /// Absolute, without `.` and `..`.
    pub path: PathBuf,
    /// With every link followed. It need not exist. This is what will be opened if the call is allowed.
    pub real: PathBuf,
    /// It lies below the working directory, or below the root where one is set.
    pub inside: bool,
}

/// What a handler decides.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionAnswer {
    /// This call runs.
    Allow,
    /// It does not; the model reads the reason.
    Deny(Option<String>),
    /// It runs, and so do others of this session without a question.
    AllowAlways(Scope),
}

/// Which calls of the session need not ask again. Rules that deny, and the root, stay in force.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The same tool with the same command and the same paths.
    Same,
    /// Every call of the tool.
    Tool,
    /// Calls of any tool with this effect or a weaker one, all of whose paths lead below this directory.
    Below(PathBuf),
}

/// What came of a question.
pub(super) enum Asked {
    Answered(PermissionAnswer),
    /// With the handler's text.
    Failed(String),
    Late,
    Aborted,
}

/// Asks, on a thread of its own, so that a handler that blocks its thread holds up nobody who could give up on it.
pub(super) async fn ask(handler: Arc<dyn PermissionHandler>, mut request: PermissionRequest, limit: Duration) -> Asked {
    let cancel = request.cancel.clone();
    // Fires as well when the answer comes too late, so that the handler can take its question back.
    request.cancel = cancel.child_token();
    let over = request.cancel.clone();
    let _guard = over.clone().drop_guard();
    let runtime = tokio::runtime::Handle::current();
    let answer = async move {
        let answer = AssertUnwindSafe(async { handler.ask(request).await }).catch_unwind();
        tokio::select! {
            biased;
            () = over.cancelled() => Asked::Aborted,
            answer = answer => match answer {
                Ok(Ok(answer)) => Asked::Answered(answer),
                Ok(Err(error)) => Asked::Failed(error.0),
                Err(_) => Asked::Failed("the permission handler panicked".to_owned()),
            },
        }
    };
    let task = tokio::task::spawn_blocking(move || runtime.block_on(answer));
    tokio::select! {
        biased;
        () = cancel.cancelled() => Asked::Aborted,
        asked = task => asked.unwrap_or_else(|_| Asked::Failed("the permission handler gave no answer".to_owned())),
        () = tokio::time::sleep(limit) => Asked::Late,
    }
}
