//! One batch of tool calls (S209–S223).

use std::sync::Arc;
use std::time::Instant;

use async_channel::{Receiver, Sender};
use serde_json::Value;

use super::grace_over;
use super::hooks::HookedCall;
use super::nested::Family;
use super::perform::{Ended, spawn_batch};
use crate::error::Result;
use crate::message::{Message, StopReason, ToolResultMessage};
use crate::session::{Actor, EventKind};
use crate::system::clock::now_ms;
use crate::tools::image::{ImageTarget, ResizeProfile};
use crate::tools::nested::{self, Caller, Nested};
use crate::tools::{ExecutionMode, Operations, Progress, Tool, ToolCall, ToolError, ToolResult};

/// Updates that may wait for the session before tools wait.
const PROGRESS_CAPACITY: usize = 32;

/// What a batch came to.
pub(super) struct Batch {
    /// Result messages in the order of the calls.
    pub(super) results: Vec<Arc<Message>>,
    /// Another turn should follow.
    pub(super) more: bool,
}

/// A call as the model, or a tool, asked for it.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) args: Arc<Value>,
    pub(super) args_error: Option<String>,
    /// The call that made it, if the model did not.
    pub(super) parent: Option<Arc<str>>,
}

/// Both ends, so that it stays open.
type Channel<T> = (Sender<T>, Receiver<T>);

/// A batch under way.
pub(super) struct Running {
    pub(super) family: Family,
    /// One for each call, those of tools included.
    pub(super) outcomes: Vec<Option<Outcome>>,
    progress: Channel<(usize, ToolResult)>,
    nested: Channel<Nested>,
}

impl Running {
    fn new(calls: Vec<Call>) -> Running {
        Running {
            outcomes: calls.iter().map(|_| None).collect(),
            family: Family::new(calls),
            progress: async_channel::bounded(PROGRESS_CAPACITY),
            nested: async_channel::bounded(nested::CAPACITY),
        }
    }

    fn call(&self, index: usize) -> Call {
        self.family.calls[index].clone()
    }
}

/// How it ended.
pub(super) struct Outcome {
    pub(super) result: Arc<ToolResult>,
    pub(super) duration_ms: Option<u64>,
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
pub(super) struct Accepted {
    index: usize,
    tool: Arc<dyn Tool>,
    call: HookedCall,
    /// The files and commands it may use.
    operations: Operations,
}

enum Step {
    Update(usize, ToolResult),
    Nested(Nested),
    Ended(Ended),
    /// The abort grace is over.
    GaveUp,
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
                parent: None,
            })
            .collect();
        let sequential = stop == Some(StopReason::Length)
            || calls
                .iter()
                .filter_map(|call| self.tools.offered(&call.name))
                .any(|tool| tool.definition().mode == ExecutionMode::Sequential);
        let count = calls.len();
        let mut running = Running::new(calls);
        let mut results = Vec::with_capacity(count);
        if sequential {
            for index in 0..count {
                self.one(response, &mut running, index, stop == Some(StopReason::Length)).await;
                results.push(self.result(&mut running, index).await?);
            }
        } else {
            self.together(response, &mut running, count).await;
            for index in 0..count {
                results.push(self.result(&mut running, index).await?);
            }
        }
        let terminates = |outcome: &Option<Outcome>| outcome.as_ref().is_some_and(|it| it.result.terminate);
        let more = !results.is_empty() && !running.outcomes[..count].iter().all(terminates);
        Ok(Batch { results, more })
    }

    /// One call of a batch in which they follow each other.
    async fn one(&mut self, response: &Arc<Message>, running: &mut Running, index: usize, cut_off: bool) {
        let call = running.call(index);
        self.call_starts(&call).await;
        let prepared = match cut_off {
            true => Err(Outcome::refused(
                "Not executed: the response hit the output limit, so this call may be incomplete. Issue it again.",
            )),
            false => self.prepare(response, index, &call).await,
        };
        match prepared {
            Ok(accepted) => self.execute(response, running, vec![accepted]).await,
            Err(outcome) => self.call_ends(running, index, outcome).await,
        }
    }

    async fn together(&mut self, response: &Arc<Message>, running: &mut Running, count: usize) {
        let mut accepted = Vec::with_capacity(count);
        for index in 0..count {
            let call = running.call(index);
            self.call_starts(&call).await;
            match self.prepare(response, index, &call).await {
                Ok(ready) => accepted.push(ready),
                Err(outcome) => self.call_ends(running, index, outcome).await,
            }
        }
        self.execute(response, running, accepted).await;
    }

    /// Finds the tool, checks the arguments and asks the hooks (S214, S217, S218).
    pub(super) async fn prepare(
        &mut self,
        response: &Arc<Message>,
        index: usize,
        call: &Call,
    ) -> std::result::Result<Accepted, Outcome> {
        if self.aborted() {
            return Err(Outcome::aborted());
        }
        let name = &call.name;
        let tool = match call.parent {
            Some(_) => self.tools.find(name),
            None => self.tools.offered(name),
        };
        let Some(tool) = tool.cloned() else {
            return Err(Outcome::refused(format!("Tool {name} not found")));
        };
        if let Some(error) = &call.args_error {
            return Err(Outcome::refused(format!("Invalid arguments for tool \"{name}\": {error}")));
        }
        let arguments = tool.definition().check(&tool.prepare((*call.args).clone())).map_err(Outcome::refused)?;
        let mut call = HookedCall {
            session_id: self.shared.id.to_string(),
            sibling: self.shared.sibling,
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

    /// A call that was accepted, as its tool gets it.
    pub(super) fn tool_call(&self, accepted: Accepted, running: &Running) -> (Arc<dyn Tool>, ToolCall, HookedCall) {
        let Accepted { index, tool, call: hooked, operations } = accepted;
        let call = ToolCall {
            id: hooked.id.clone(),
            name: hooked.name.clone(),
            arguments: hooked.arguments.clone(),
            cwd: self.shared.cwd.clone(),
            operations,
            images: self.image_target(),
            session_id: self.shared.id.to_string(),
            sibling: self.shared.sibling,
            session_variables: self.session_variables(),
            program_dir: self.engine.program_dir.clone(),
            cancel: self.token(),
            progress: Progress { call: index, sender: running.progress.0.clone() },
            caller: Some(Caller { parent: index, sender: running.nested.0.clone() }),
        };
        (tool, call, hooked)
    }

    /// Runs accepted calls beside each other and tells of their progress and ends.
    async fn execute(&mut self, response: &Arc<Message>, running: &mut Running, accepted: Vec<Accepted>) {
        let token = self.token();
        let mut calls = Vec::with_capacity(accepted.len());
        for accepted in accepted {
            if token.is_cancelled() {
                self.call_ends(running, accepted.index, Outcome::aborted()).await;
                continue;
            }
            let index = accepted.index;
            let (tool, call, hooked) = self.tool_call(accepted, running);
            calls.push((index, tool, call, hooked));
        }
        let begun = Instant::now();
        let mut waiting: Vec<usize> = calls.iter().map(|(index, ..)| *index).collect();
        let (task, ends) = spawn_batch(calls, self.shared.choices_made().hooks.clone());
        while !waiting.is_empty() {
            let token = token.clone();
            let (updates, nested) = (running.progress.1.clone(), running.nested.1.clone());
            let step = self
                .wait(async {
                    tokio::select! {
                        biased;
                        Ok((index, partial)) = updates.recv() => Step::Update(index, partial),
                        Ok(told) = nested.recv() => Step::Nested(told),
                        ended = ends.recv() => ended.map_or(Step::GaveUp, Step::Ended),
                        () = grace_over(token) => Step::GaveUp,
                    }
                })
                .await;
            match step {
                Step::Update(index, partial) => self.call_proceeds(running, index, partial).await,
                Step::Nested(told) => self.nested(response, running, told).await,
                Step::Ended(Ended { index, result, duration_ms }) => {
                    self.drain_updates(running).await;
                    waiting.retain(|waiting| *waiting != index);
                    self.end_nested(running, index).await;
                    let outcome = Outcome { result: Arc::new(result), duration_ms: Some(duration_ms) };
                    self.call_ends(running, index, outcome).await;
                }
                Step::GaveUp => {
                    for index in std::mem::take(&mut waiting) {
                        self.end_nested(running, index).await;
                        let outcome = Outcome { duration_ms: Some(elapsed_ms(begun)), ..Outcome::aborted() };
                        self.call_ends(running, index, outcome).await;
                    }
                }
            }
        }
        drop(task); // with it whatever was given up
    }

    /// All that was sent before an end is told before it.
    pub(super) async fn drain_updates(&mut self, running: &mut Running) {
        while let Ok((index, partial)) = running.progress.1.try_recv() {
            self.call_proceeds(running, index, partial).await;
        }
    }

    /// What the current model does with images (T102, T104).
    fn image_target(&self) -> Option<ImageTarget> {
        let model = self.model.as_ref()?;
        Some(ImageTarget { model: model.id.clone(), accepted: model.images, resize: ResizeProfile::of_model(model) })
    }

    pub(super) async fn call_starts(&mut self, call: &Call) {
        let Call { id, name, args, parent, .. } = call.clone();
        self.emit(EventKind::ToolExecutionStart { id, name, args, parent }).await;
    }

    async fn call_proceeds(&mut self, running: &Running, index: usize, partial: ToolResult) {
        if running.outcomes[index].is_some() {
            return; // too late
        }
        let Call { id, name, args, parent, .. } = running.call(index);
        self.emit(EventKind::ToolExecutionUpdate { id, name, args, partial: Arc::new(partial), parent }).await;
    }

    pub(super) async fn call_ends(&mut self, running: &mut Running, index: usize, outcome: Outcome) {
        let call = &running.family.calls[index];
        let kind = EventKind::ToolExecutionEnd {
            id: call.id.clone(),
            name: call.name.clone(),
            result: outcome.result.clone(),
            is_error: outcome.result.is_error,
            duration_ms: outcome.duration_ms,
            parent: call.parent.clone(),
        };
        running.outcomes[index] = Some(outcome);
        self.emit(kind).await;
    }

    /// Stores the result message of a call of the model's.
    async fn result(&mut self, running: &mut Running, index: usize) -> Result<Arc<Message>> {
        let outcome = running.outcomes[index].get_or_insert_with(Outcome::aborted);
        let result = outcome.result.clone();
        let duration_ms = outcome.duration_ms;
        let (nested_calls, usage) = running.family.record(index, result.usage.as_ref());
        self.count_tool_usage(usage.as_ref());
        let call = &running.family.calls[index];
        let message = ToolResultMessage {
            tool_call_id: &call.id,
            tool_name: &call.name,
            content: result.content.clone(),
            details: result.details.clone(),
            usage,
            is_error: result.is_error,
            duration_ms,
            timestamp: now_ms(),
            nested_calls,
        };
        let message = Arc::new(message.message());
        self.emit(EventKind::MessageStart { message: message.clone() }).await;
        self.message_end(message.clone()).await?;
        Ok(message)
    }
}

pub(super) fn elapsed_ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
