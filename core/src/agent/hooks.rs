//! The host's say before and after each tool call (S218, S220).

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures::FutureExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::grace_over;
use crate::message::{JsonObject, Message};
use crate::session::Actor;
use crate::tools::{ToolError, ToolResult};

/// The future a hook's answer is.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// Looks at every tool call of a session: permissions, logging, redaction.
///
/// `before` is asked one call after the other, in the order of the calls, when the arguments are known to be valid;
/// `after` when the tool has ended, beside other calls. Several hooks are asked in the order in which they were given.
/// An error becomes the call's error result. After an abort an answer is waited for a short grace only.
pub trait ToolHook: Send + Sync {
    /// Decides whether a call runs. It may change `call.arguments`; the stored call keeps the model's own.
    fn before<'a>(&'a self, call: &'a mut HookedCall) -> HookFuture<'a, Decision> {
        let _ = call;
        Box::pin(async { Ok(Decision::Run) })
    }

    /// Looks at a result and may replace parts of it.
    fn after<'a>(&'a self, call: &'a HookedCall, result: &'a ToolResult) -> HookFuture<'a, ResultChange> {
        let _ = (call, result);
        Box::pin(async { Ok(ResultChange::default()) })
    }
}

/// A call as hooks see it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HookedCall {
    /// The session's id.
    pub session_id: String,
    /// Which of the sessions over its tree it is, see [`Session::sibling`](crate::Session::sibling); 0 without a session.
    pub sibling: u32,
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments the tool will get.
    pub arguments: JsonObject,
    /// The response that asked for the call.
    pub response: Arc<Message>,
    /// Fires when the run is aborted.
    pub cancel: CancellationToken,
}

/// What a hook decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The call runs.
    #[default]
    Run,
    /// It does not; the model reads the reason.
    Block {
        /// Why; `None` gives a sentence that says no more than that.
        reason: Option<String>,
        /// Counts as [`ToolResult::terminate`].
        terminate: bool,
    },
}

/// Parts of a result to replace; `None` leaves a part as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultChange {
    /// What the model reads. Structured content goes with the old one unless it is replaced, too.
    pub content: Option<Vec<Value>>,
    /// Facts for the host.
    pub details: Option<Value>,
    /// The result for programs.
    pub structured_content: Option<Value>,
    /// Tokens the tool spent.
    pub usage: Option<Value>,
    /// Whether the call counts as failed.
    pub is_error: Option<bool>,
    /// Whether the batch may end the run.
    pub terminate: Option<bool>,
}

impl ResultChange {
    fn apply(self, result: &mut ToolResult) {
        if let Some(content) = self.content {
            result.content = content;
            result.structured_content = None;
        }
        let replace = |old: &mut Option<Value>, new: Option<Value>| {
            if new.is_some() {
                *old = new;
            }
        };
        replace(&mut result.details, self.details);
        replace(&mut result.structured_content, self.structured_content);
        replace(&mut result.usage, self.usage);
        result.is_error = self.is_error.unwrap_or(result.is_error);
        result.terminate = self.terminate.unwrap_or(result.terminate);
    }
}

/// Asks every hook about a result.
pub(super) async fn after_all(
    hooks: &[Arc<dyn ToolHook>],
    call: &HookedCall,
    result: Result<ToolResult, ToolError>,
) -> Result<ToolResult, ToolError> {
    if hooks.is_empty() {
        return result;
    }
    let mut result = result.unwrap_or_else(|error| ToolResult::error(error.0));
    for hook in hooks {
        hook.after(call, &result).await?.apply(&mut result);
    }
    Ok(result)
}

impl Actor {
    /// Asks every hook about a call. `Err` is the result of a call that does not run.
    pub(super) async fn before_all(&mut self, call: &mut HookedCall) -> Result<(), ToolResult> {
        let hooks = self.shared.choices_made().hooks.clone();
        for hook in hooks {
            let token = call.cancel.clone();
            let answer = AssertUnwindSafe(async { hook.before(call).await }).catch_unwind();
            let decision = self
                .wait(async {
                    tokio::select! {
                        biased;
                        answer = answer => {
                            answer.unwrap_or_else(|_| Err(ToolError::new("A check of the call failed inside the program.")))
                        }
                        () = grace_over(token) => Err(ToolError::aborted()),
                    }
                })
                .await;
            match decision {
                Ok(Decision::Run) => {}
                Ok(Decision::Block { reason, terminate }) => {
                    let reason = reason.unwrap_or_else(|| "The call was not allowed.".to_owned());
                    return Err(ToolResult { terminate, ..ToolResult::error(reason) });
                }
                Err(error) => return Err(ToolResult::error(error.0)),
            }
        }
        if self.aborted() { Err(ToolResult::error(ToolError::aborted().0)) } else { Ok(()) }
    }
}
