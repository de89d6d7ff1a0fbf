//! Calls that a tool makes to other tools, by way of who runs it.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use super::{ToolCall, ToolResult};

/// Calls that may wait for the session before tools wait.
pub(crate) const CAPACITY: usize = 16;

/// Whom a running call asks to make another.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The number of the running call.
    pub(crate) parent: usize,
    pub(crate) sender: async_channel::Sender<Nested>,
}

/// What a call that makes others tells.
#[derive(Debug)]
pub(crate) enum Nested {
    /// It wants to call a tool.
    Begin { parent: usize, name: String, arguments: Value, reply: oneshot::Sender<Begun> },
    /// The other call has ended.
    Ended { index: usize, result: ToolResult, duration_ms: u64, reply: oneshot::Sender<Arc<ToolResult>> },
}

/// What came of wanting to.
pub(crate) enum Begun {
    /// It does not run.
    Refused(Arc<ToolResult>),
    /// It runs once this is driven, under this number.
    Runs { index: usize, work: Work },
}

/// A call to drive: gives its result and the milliseconds it took.
pub(crate) type Work = std::pin::Pin<Box<dyn Future<Output = (ToolResult, u64)> + Send>>;

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Begun::Refused(_) => "Refused",
            Begun::Runs { .. } => "Runs",
        })
    }
}

impl ToolCall {
    /// Calls another tool of the same session and waits for it: arguments are repaired and checked, hooks and
    /// permissions asked, events sent (with `parentToolCallId`) and the call noted on this call's result, as if the model
    /// had made it. It runs beside this call and ends with it.
    ///
    /// Every failure is a result with `is_error`: an unknown tool, wrong arguments, a denial, a tool that fails. Outside
    /// of a session there are no others to call, and the result says so.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> ToolResult {
        let Some(caller) = &self.caller else {
            return ToolResult::error("There are no other tools to call here.");
        };
        let aborted = || ToolResult::error("Operation aborted");
        let (reply, answer) = oneshot::channel();
        let begin = Nested::Begin { parent: caller.parent, name: name.to_owned(), arguments, reply };
        if caller.sender.send(begin).await.is_err() {
            return aborted();
        }
        let (index, work) = match answer.await {
            Ok(Begun::Refused(result)) => return ToolResult::clone(&result),
            Ok(Begun::Runs { index, work }) => (index, work),
            Err(_) => return aborted(),
        };
        let (result, duration_ms) = work.await;
        let (reply, told) = oneshot::channel();
        if caller.sender.send(Nested::Ended { index, result, duration_ms, reply }).await.is_err() {
            return aborted();
        }
        told.await.map_or_else(|_| aborted(), Arc::unwrap_or_clone)
    }
}
