//! One batch of tool calls (S209–S223).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use async_channel::Receiver;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::Value;
use tokio::task::JoinSet;

use super::grace_over;
use super::hooks::{HookedCall, ToolHook, after_all};
use crate::error::Result;
use crate::message::{Message, StopReason, ToolResultMessage};
use crate::session::{Actor, EventKind};
use crate::system::clock::now_ms;
use crate::tools::image::{ImageTarget, ResizeProfile};
use crate::tools::{self, ExecutionMode, Operations, Progress, Tool, ToolCall, ToolError, ToolResult};

/// Updates that may wait for the session before tools wait.
const PROGRESS_CAPACITY: usize = 32;

/// What a batch came to.
pub(super) struct Batch {
    /// Result messages in the order of the calls.
    pub(super) results: Vec<Arc<Message>>,
    /// Another turn should follow.
    pub(super) more: bool,
}

/// A call as the model asked for it.
struct Call {
    id: Arc<str>,
    name: Arc<str>,
    args: Arc<Value>,
    args_error: Option<String>,
}

/// How it ended.
pub(super) struct Outcome {
    result: Arc<ToolResult>,
    duration_ms: Option<u64>,
}

impl Outcome {
    /// The call did not run.
    pub(super) fn refused(text: impl Into<String>) -> Outcome {
        Outcome { result: Arc::new(ToolResult::error(text)), duration_ms: None }
    }

    pub(super) fn aborted() -> Outcome {
        Outcome::refused(ToolError::aborted().0)
    }
}

/// A call that passed preparation.
struct Accepted {
    index: usize,
    tool: Arc<dyn Tool>,
    call: HookedCall,
    /// The files and commands it may use.
    operations: Operations,
}

/// A call that has ended.
struct Ended {
    index: usize,
    result: std::result::Result<ToolResult, ToolError>,
    duration_ms: u64,
}

enum Step {
    Update(usize, ToolResult),
    Ended(Ended),
    /// The abort grace is over.
    GaveUp,
}

/// Runs calls on a task of their own, so that a tool that blocks its thread does not block the session. They share the
/// task: what they start in one order they start, and when equally fast end, in that order. Dropping the set gives up
/// what still runs.
fn spawn_batch(
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
                    let begun = Instant::now();
                    let ready = tool.prepares_images() && hooks.is_empty();
                    let target = call.images.clone();
                    let result = caught(async move { tool.execute(call).await }).await;
                    let duration_ms = elapsed_ms(begun);
                    let result = caught(async move { after_all(&hooks, &hooked, result).await }).await;
                    let result = if ready { result } else { tools::fit_images(result, target).await };
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

/// A panic of a tool or hook is an error of its call.
async fn caught(
    work: impl Future<Output = std::result::Result<ToolResult, ToolError>>,
) -> std::result::Result<ToolResult, ToolError> {
    let panicked = |_| Err(ToolError::new("The tool failed inside the program that provides it."));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(panicked)
}

impl Actor {
    /// Runs the calls of a response and stores their results.
    pub(super) async fn run_tools(&mut self, response: &Arc<Message>) -> Result<Batch> {
        let stop = response.stop_reason();
        if matches!(stop, Some(StopReason::Error | StopReason::Aborted)) {
            return Ok(Batch { results: Vec::new(), more: false });
        }
        let calls: Vec<Call> = response
            .tool_calls()
            .map(|call| Call {
                id: call.id.into(),
                name: call.name.into(),
                args: Arc::new(call.arguments.clone()),
                args_error: call.arguments_error.map(str::to_owned),
            })
            .collect();
        let sequential = stop == Some(StopReason::Length)
            || calls
                .iter()
                .filter_map(|call| self.tools.find(&call.name))
                .any(|tool| tool.definition().mode == ExecutionMode::Sequential);
        let (results, terminate) = match sequential {
            true => self.one_by_one(response, &calls, stop == Some(StopReason::Length)).await?,
            false => self.together(response, &calls).await?,
        };
        let more = !results.is_empty() && !terminate;
        Ok(Batch { results, more })
    }

    async fn one_by_one(
        &mut self,
        response: &Arc<Message>,
        calls: &[Call],
        cut_off: bool,
    ) -> Result<(Vec<Arc<Message>>, bool)> {
        let mut results = Vec::with_capacity(calls.len());
        let mut terminate = true;
        for (index, call) in calls.iter().enumerate() {
            self.call_starts(call).await;
            let mut outcomes: Vec<Option<Outcome>> = calls.iter().map(|_| None).collect();
            let prepared = match cut_off {
                true => Err(Outcome::refused(
                    "Not executed: the response hit the output limit, so this call may be incomplete. Issue it again.",
                )),
                false => self.prepare(response, index, call).await,
            };
            match prepared {
                Ok(accepted) => self.execute(calls, vec![accepted], &mut outcomes).await,
                Err(outcome) => self.call_ends(call, outcome, &mut outcomes[index]).await,
            }
            let outcome = outcomes[index].take().unwrap_or_else(Outcome::aborted);
            terminate &= outcome.result.terminate;
            results.push(self.result(call, &outcome).await?);
        }
        Ok((results, terminate))
    }

    async fn together(&mut self, response: &Arc<Message>, calls: &[Call]) -> Result<(Vec<Arc<Message>>, bool)> {
        let mut outcomes: Vec<Option<Outcome>> = calls.iter().map(|_| None).collect();
        let mut accepted = Vec::with_capacity(calls.len());
        for (index, call) in calls.iter().enumerate() {
            self.call_starts(call).await;
            match self.prepare(response, index, call).await {
                Ok(ready) => accepted.push(ready),
                Err(outcome) => self.call_ends(call, outcome, &mut outcomes[index]).await,
            }
        }
        self.execute(calls, accepted, &mut outcomes).await;
        let mut results = Vec::with_capacity(calls.len());
        let mut terminate = true;
        for (call, outcome) in calls.iter().zip(outcomes) {
            let outcome = outcome.unwrap_or_else(Outcome::aborted);
            terminate &= outcome.result.terminate;
            results.push(self.result(call, &outcome).await?);
        }
        Ok((results, terminate))
    }

    /// Finds the tool, checks the arguments and asks the hooks (S214, S217, S218).
    async fn prepare(
        &mut self,
        response: &Arc<Message>,
        index: usize,
        call: &Call,
    ) -> std::result::Result<Accepted, Outcome> {
        if self.aborted() {
            return Err(Outcome::aborted());
        }
        let name = &call.name;
        let Some(tool) = self.tools.find(name).cloned() else {
            return Err(Outcome::refused(format!("Tool {name} not found")));
        };
        if let Some(error) = &call.args_error {
            return Err(Outcome::refused(format!("Invalid arguments for tool \"{name}\": {error}")));
        }
        let arguments = tool.definition().check(&tool.prepare((*call.args).clone())).map_err(Outcome::refused)?;
        let mut call = HookedCall {
            session_id: self.shared.id.to_string(),
            id: call.id.to_string(),
            name: name.to_string(),
            arguments,
            response: response.clone(),
            cancel: self.token(),
        };
        if let Err(result) = self.before_all(&mut call).await {
            return Err(Outcome { result: Arc::new(result), duration_ms: None });
        }
        let operations = self.permit(&*tool, &call).await?;
        Ok(Accepted { index, tool, call, operations })
    }

    /// The session as commands see it.
    fn session_variables(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![("PI_SESSION_ID", self.shared.id.to_string())];
        if let Some(path) = self.shared.tree.path() {
            out.push(("PI_SESSION_FILE", path.display().to_string()));
        }
        if let Some(model) = &self.model {
            out.push(("PI_PROVIDER", model.provider.clone()));
            out.push(("PI_MODEL", model.id.clone()));
            out.push(("PI_REASONING_LEVEL", self.level.clone()));
        }
        out
    }

    /// Runs accepted calls beside each other and tells of their progress and ends.
    async fn execute(&mut self, calls: &[Call], accepted: Vec<Accepted>, outcomes: &mut [Option<Outcome>]) {
        let token = self.token();
        let (sender, updates) = async_channel::bounded(PROGRESS_CAPACITY);
        let mut running = Vec::with_capacity(accepted.len());
        for Accepted { index, tool, call: hooked, operations } in accepted {
            if token.is_cancelled() {
                self.call_ends(&calls[index], Outcome::aborted(), &mut outcomes[index]).await;
                continue;
            }
            let call = ToolCall {
                id: calls[index].id.to_string(),
                name: calls[index].name.to_string(),
                arguments: hooked.arguments.clone(),
                cwd: self.shared.cwd.clone(),
                operations,
                images: self.image_target(),
                session_id: self.shared.id.to_string(),
                session_variables: self.session_variables(),
                cancel: token.clone(),
                progress: Progress { call: index, sender: sender.clone() },
            };
            running.push((index, tool, call, hooked));
        }
        let begun = Instant::now();
        let mut waiting: Vec<usize> = running.iter().map(|(index, ..)| *index).collect();
        let (task, ends) = spawn_batch(running, self.shared.choices_made().hooks.clone());
        while !waiting.is_empty() {
            let token = token.clone();
            let step = self
                .wait(async {
                    tokio::select! {
                        biased;
                        Ok((index, partial)) = updates.recv() => Step::Update(index, partial),
                        ended = ends.recv() => ended.map_or(Step::GaveUp, Step::Ended),
                        () = grace_over(token) => Step::GaveUp,
                    }
                })
                .await;
            match step {
                Step::Update(index, partial) => self.call_proceeds(&calls[index], partial, &outcomes[index]).await,
                Step::Ended(Ended { index, result, duration_ms }) => {
                    // All that was sent before the end is told before it.
                    while let Ok((index, partial)) = updates.try_recv() {
                        self.call_proceeds(&calls[index], partial, &outcomes[index]).await;
                    }
                    waiting.retain(|waiting| *waiting != index);
                    let result = result.unwrap_or_else(|error| ToolResult::error(error.0));
                    let outcome = Outcome { result: Arc::new(result), duration_ms: Some(duration_ms) };
                    self.call_ends(&calls[index], outcome, &mut outcomes[index]).await;
                }
                Step::GaveUp => {
                    for index in std::mem::take(&mut waiting) {
                        let outcome = Outcome { duration_ms: Some(elapsed_ms(begun)), ..Outcome::aborted() };
                        self.call_ends(&calls[index], outcome, &mut outcomes[index]).await;
                    }
                }
            }
        }
        drop(task); // with it whatever was given up
    }

    /// What the current model does with images (T102, T104).
    fn image_target(&self) -> Option<ImageTarget> {
        let model = self.model.as_ref()?;
        Some(ImageTarget { model: model.id.clone(), accepted: model.images, resize: ResizeProfile::of_model(model) })
    }

    async fn call_starts(&mut self, call: &Call) {
        let (id, name, args) = (call.id.clone(), call.name.clone(), call.args.clone());
        self.emit(EventKind::ToolExecutionStart { id, name, args }).await;
    }

    async fn call_proceeds(&mut self, call: &Call, partial: ToolResult, outcome: &Option<Outcome>) {
        if outcome.is_some() {
            return; // too late
        }
        let (id, name, args) = (call.id.clone(), call.name.clone(), call.args.clone());
        self.emit(EventKind::ToolExecutionUpdate { id, name, args, partial: Arc::new(partial) }).await;
    }

    async fn call_ends(&mut self, call: &Call, outcome: Outcome, slot: &mut Option<Outcome>) {
        let kind = EventKind::ToolExecutionEnd {
            id: call.id.clone(),
            name: call.name.clone(),
            result: outcome.result.clone(),
            is_error: outcome.result.is_error,
            duration_ms: outcome.duration_ms,
        };
        *slot = Some(outcome);
        self.emit(kind).await;
    }

    /// Stores the result message of a call.
    async fn result(&mut self, call: &Call, outcome: &Outcome) -> Result<Arc<Message>> {
        let result = &outcome.result;
        let message = ToolResultMessage {
            tool_call_id: &call.id,
            tool_name: &call.name,
            content: result.content.clone(),
            details: result.details.clone(),
            usage: result.usage.clone(),
            is_error: result.is_error,
            duration_ms: outcome.duration_ms,
            timestamp: now_ms(),
            nested_calls: None,
        };
        let message = Arc::new(message.message());
        self.emit(EventKind::MessageStart { message: message.clone() }).await;
        self.message_end(message.clone()).await?;
        Ok(message)
    }
}

fn elapsed_ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
