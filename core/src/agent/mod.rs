//! The agent loop: from a prompt through responses and tool calls to rest (S193–S238).
//!
//! `turn` is the loop, `respond` one response, `tool_call` one batch of calls, which `perform` runs; `projection` is what the model
//! sees, kept up to date message by message so that a turn costs what is new in it and not what went before.

mod budget;
mod budget_form;
pub mod classify;
mod forced;
mod foresight;
mod gauge;
mod hooks;
mod nested;
mod partial;
mod perform;
mod permit;
mod projection;
mod recovery;
mod request_options;
mod respond;
mod spending;
mod system_state;
mod tool_call;
mod toolset;
pub mod transform;
mod turn;

pub use crate::providers::call_id;
pub use budget::{Budget, BudgetExceeded, BudgetLimit, BudgetLimits, BudgetUse};
pub use hooks::{Decision, HookFuture, HookedCall, ResultChange, ToolHook};
pub(crate) use projection::{Projection, Response};
pub(crate) use recovery::Recovery;
pub(crate) use spending::Spending;
pub(crate) use system_state::SystemState;
pub(crate) use toolset::Toolset;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How long a response or a tool may take to end by itself after an abort. Long enough to stop a process tree and to
/// store what there is; short enough for a person who waits for "stop" to stop.
const ABORT_GRACE: Duration = Duration::from_secs(2);

/// Ends when an abort was asked for and the grace is over.
async fn grace_over(token: CancellationToken) {
    token.cancelled().await;
    tokio::time::sleep(ABORT_GRACE).await;
}

/// Why a run broke off (S225).
enum Broken {
    /// The request could not be made; the reason becomes a message.
    Request(String),
    /// Something could not be stored.
    Storage(crate::Error),
    /// The request would break a limit.
    Budget(BudgetExceeded),
}

impl From<crate::Error> for Broken {
    fn from(error: crate::Error) -> Broken {
        Broken::Storage(error)
    }
}
