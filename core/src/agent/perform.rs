//! Running accepted calls: each tool with the hooks after it, on a task of their own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use async_channel::Receiver;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::task::JoinSet;

use super::hooks::{HookedCall, ToolHook, after_all};
use super::tool_call::elapsed_ms;
use crate::tools::{self, Tool, ToolCall, ToolError, ToolResult};

/// A call that has ended.
pub(super) struct Ended {
    pub(super) index: usize,
    pub(super) result: ToolResult,
    pub(super) duration_ms: u64,
}

/// Runs calls on a task of their own, so that a tool that blocks its thread does not block the session. They share the
/// task: what they start in one order they start, and when equally fast end, in that order. Dropping the set gives up
/// what still runs.
pub(super) fn spawn_batch(
    calls: Vec<(usize, Arc<dyn Tool>, ToolCall, HookedCall)>,
    hooks: Vec<Arc<dyn ToolHook>>,
) -> (JoinSet<()>, Receiver<Ended>) {
    let (sender, ends) = async_channel::bounded(calls.len().max(1));
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut running: FuturesUnordered<_> = calls
            .into_iter()
            .map(|(index, tool, call, hooked)| {
                let hooks = hooks.clone();
                async move {
                    let (result, duration_ms) = perform(tool, call, hooked, hooks).await;
                    Ended { index, result, duration_ms }
                }
            })
            .collect();
        while let Some(ended) = running.next().await {
            let _ = sender.send(ended).await;
        }
    });
    (task, ends)
}

/// Runs one call: the tool, the hooks after it, its images. Gives the result and the milliseconds the tool took.
pub(super) async fn perform(
    tool: Arc<dyn Tool>,
    call: ToolCall,
    hooked: HookedCall,
    hooks: Vec<Arc<dyn ToolHook>>,
) -> (ToolResult, u64) {
    let begun = Instant::now();
    let ready = tool.prepares_images() && hooks.is_empty();
    let target = call.images.clone();
    let result = caught(async move { tool.execute(call).await }).await;
    let duration_ms = elapsed_ms(begun);
    let result = caught(async move { after_all(&hooks, &hooked, result).await }).await;
    let result = if ready { result } else { tools::fit_images(result, target).await };
    (result.unwrap_or_else(|error| ToolResult::error(error.0)), duration_ms)
}

/// A panic of a tool or hook is an error of its call.
async fn caught(
    work: impl Future<Output = std::result::Result<ToolResult, ToolError>>,
) -> std::result::Result<ToolResult, ToolError> {
    let panicked = |_| Err(ToolError::new("The tool failed inside the program that provides it."));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(panicked)
}
