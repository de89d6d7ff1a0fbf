//! The tools without a session: functions for a host, and for scripts that compose them.
//!
//! A [`Toolbox`] does with a call what a session does with a model's (T10): it repairs, converts and checks the arguments
//! and runs the tool with progress and cancellation. A failure is a result with `is_error`, as the model would see it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use serde_json::Value;
use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::under_way::UnderWay;
use super::{Operations, Progress, Tool, ToolCall, ToolDefinition, ToolError, ToolResult};
use crate::error::{Error, ErrorCode, Result};
use crate::permissions::{Asking, Gate, Permissions};

/// Updates that wait for the host before new ones are left out.
const PROGRESS_CAPACITY: usize = 32;
/// How long a cancelled call may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// Tools in a working directory. Cheap to clone; all clones share their tools. Legal from any thread, and its futures
/// may be driven by any executor or by [`block_on`](crate::block_on).
#[derive(Clone)]
pub struct Toolbox {
    shared: Arc<Shared>,
}

struct Shared {
    cwd: PathBuf,
    operations: Operations,
    tools: RwLock<BTreeMap<String, Arc<dyn Tool>>>,
    gate: RwLock<Arc<Gate>>,
    /// Where commands find the agent's own programs (T207).
    program_dir: Option<PathBuf>,
    handle: Handle,
    /// Fires when the engine it runs on ends.
    closing: CancellationToken,
    /// Its calls, which that engine waits for.
    under_way: UnderWay,
    /// Its own threads, unless it runs on an engine's.
    runtime: Option<Runtime>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last clone may go away on a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}

impl Toolbox {
    /// The built-in tools in a directory of this machine, with a thread of their own.
    ///
    /// Errors: `internal` when the thread cannot be started.
    pub fn new(cwd: impl Into<PathBuf>) -> Result<Toolbox> {
        Toolbox::with_operations(cwd, Operations::local())
    }

    /// The built-in tools with files and commands of the host's choice.
    ///
    /// Errors: `internal` when the thread cannot be started.
    pub fn with_operations(cwd: impl Into<PathBuf>, operations: Operations) -> Result<Toolbox> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("branchline-tools")
            .enable_time()
            .build()
            .map_err(|error| Error::new(ErrorCode::Internal, format!("cannot start a worker thread: {error}")))?;
        let handle = runtime.handle().clone();
        Ok(Toolbox::on(handle, Some(runtime), cwd.into(), operations, super::builtin()))
    }

    /// Tools that run on somebody else's threads.
    pub(crate) fn on(
        handle: Handle,
        runtime: Option<Runtime>,
        cwd: PathBuf,
        operations: Operations,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Toolbox {
        let cwd = std::path::absolute(&cwd).unwrap_or(cwd);
        let tools = tools.into_iter().map(|tool| (tool.definition().name.clone(), tool)).collect();
        // Who calls a tool as a function has decided that it runs.
        let gate = RwLock::new(Arc::new(Gate::new(Permissions::allow(), &cwd)));
        let (tools, closing, under_way) = (RwLock::new(tools), CancellationToken::new(), UnderWay::new());
        let program_dir = None;
        let shared = Shared { cwd, operations, tools, gate, program_dir, handle, closing, under_way, runtime };
        Toolbox { shared: Arc::new(shared) }
    }

    /// Ends its calls when `closing` fires, and counts them. Only for one that was just made.
    pub(crate) fn until(mut self, closing: CancellationToken, under_way: UnderWay) -> Toolbox {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.closing = closing;
            shared.under_way = under_way;
        }
        self
    }

    /// Lets commands find programs in a directory. Only for one that was just made.
    pub(crate) fn finding(mut self, program_dir: Option<PathBuf>) -> Toolbox {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.program_dir = program_dir;
        }
        self
    }

    /// Whether the engine it runs on was shut down: all calls fail.
    pub fn is_closed(&self) -> bool {
        self.shared.closing.is_cancelled()
    }

    /// Adds a tool, replacing one of the same name.
    pub fn add(&self, tool: Arc<dyn Tool>) {
        let name = tool.definition().name.clone();
        self.shared.tools.write().unwrap_or_else(PoisonError::into_inner).insert(name, tool);
    }

    /// Sets what calls may do from now on, in all clones. Everything is allowed until then, since who calls a tool as a
    /// function has decided that it runs. Answers given for always are forgotten. Looks at the disk.
    pub fn set_permissions(&self, permissions: impl Into<Permissions>) {
        let gate = Arc::new(Gate::new(permissions.into(), &self.shared.cwd));
        *self.shared.gate.write().unwrap_or_else(PoisonError::into_inner) = gate;
    }

    /// What can be called, by name.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        let tools = self.shared.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools.values().map(|tool| tool.definition().clone()).collect()
    }

    /// Calls a tool and waits for its result. Dropping the future cancels the call.
    ///
    /// Every failure is a result with `is_error`: an unknown tool, wrong arguments, a tool that fails.
    pub async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        self.start(name, arguments).result().await
    }

    /// Prepares a call whose progress is of interest. It runs while the [`PendingCall`] is asked for something.
    pub fn start(&self, name: &str, arguments: Value) -> PendingCall {
        let cancel = self.shared.closing.child_token();
        let (sender, updates) = async_channel::bounded(PROGRESS_CAPACITY);
        let progress = Progress { call: 0, sender };
        let running = self.clone().run(name.to_owned(), arguments, cancel.clone(), progress);
        let running = OnRuntime { handle: self.shared.handle.clone(), future: Box::pin(running) };
        PendingCall { running: Some(running), ended: None, updates, cancel: cancel.drop_guard() }
    }

    async fn run(self, name: String, arguments: Value, cancel: CancellationToken, progress: Progress) -> ToolResult {
        let _one = self.shared.under_way.begin();
        // Caught: when the engine ends meanwhile there are no timers any more.
        let grace = AssertUnwindSafe(async {
            cancel.cancelled().await;
            tokio::time::sleep(GRACE).await;
        });
        let accepted = || {
            if self.is_closed() {
                return Err(ToolError::new("The engine of this toolbox was shut down; make another."));
            }
            if cancel.is_cancelled() {
                return Err(ToolError::aborted());
            }
            let tools = self.shared.tools.read().unwrap_or_else(PoisonError::into_inner);
            let tool = tools.get(&name).cloned().ok_or_else(|| ToolError::new(format!("Tool {name} not found")))?;
            let arguments = tool.definition().check(&tool.prepare(arguments)).map_err(ToolError::new)?;
            Ok((tool, arguments))
        };
        let ended = match accepted() {
            Err(error) => Err(error),
            Ok((tool, arguments)) => {
                let mut call = ToolCall::detached(&name, arguments, &self.shared.cwd);
                call.cancel = cancel.clone();
                call.progress = progress;
                call.program_dir.clone_from(&self.shared.program_dir);
                tokio::select! {
                    biased;
                    ended = AssertUnwindSafe(self.permitted(tool, call)).catch_unwind() => ended.unwrap_or_else(|_| {
                        Err(ToolError::new("The tool failed inside the program that provides it."))
                    }),
                    _ = grace.catch_unwind() => Err(ToolError::aborted()),
                }
            }
        };
        ended.unwrap_or_else(|error| ToolResult::error(error.0))
    }
}

impl Toolbox {
    /// Runs a call if it may run.
    async fn permitted(&self, tool: Arc<dyn Tool>, mut call: ToolCall) -> std::result::Result<ToolResult, ToolError> {
        let gate = self.shared.gate.read().unwrap_or_else(PoisonError::into_inner).clone();
        let asking = Asking {
            session_id: "",
            sibling: 0,
            call_id: "",
            definition: tool.definition(),
            arguments: &call.arguments,
            operations: &self.shared.operations,
            cancel: &call.cancel,
        };
        call.operations = gate.judge(asking).await.outcome?;
        execute(tool, call).await
    }
}

async fn execute(tool: Arc<dyn Tool>, call: ToolCall) -> std::result::Result<ToolResult, ToolError> {
    let target = call.images.clone();
    let result = tool.execute(call).await;
    if tool.prepares_images() { result } else { super::fit_images(result, target).await }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox").field("cwd", &self.shared.cwd).finish_non_exhaustive()
    }
}

/// A call that was prepared or runs. It proceeds while one of its futures is polled; dropping it cancels the call.
pub struct PendingCall {
    running: Option<OnRuntime>,
    ended: Option<ToolResult>,
    updates: async_channel::Receiver<(usize, ToolResult)>,
    cancel: DropGuard,
}

impl PendingCall {
    /// The next update, or `None` when there will be no more. Each update replaces the ones before it (T216).
    pub async fn next_update(&mut self) -> Option<ToolResult> {
        if let Some(running) = &mut self.running {
            tokio::select! {
                biased;
                Ok((_, update)) = self.updates.recv() => return Some(update),
                ended = running => {
                    self.ended = Some(ended);
                    self.running = None;
                }
            }
        }
        self.updates.try_recv().ok().map(|(_, update)| update)
    }

    /// The result. Updates nobody asked for are dropped.
    pub async fn result(mut self) -> ToolResult {
        // A tool that waits for room must not wait for ever.
        while self.next_update().await.is_some() {}
        self.ended.take().unwrap_or_else(|| ToolResult::error(ToolError::aborted().0))
    }

    /// Fires when the call is to end; for cancelling from elsewhere. The call then ends with an error result.
    pub fn cancel_token(&self) -> CancelCall {
        CancelCall { token: self.cancel.token().clone() }
    }
}

impl fmt::Debug for PendingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCall").finish_non_exhaustive()
    }
}

/// Cancels one call, from any thread.
#[derive(Debug, Clone)]
pub struct CancelCall {
    token: CancellationToken,
}

impl CancelCall {
    /// Tells the call to end. More than once is fine.
    pub fn cancel(&self) {
        self.token.cancel();
    }
}

/// A future that finds the runtime's threads and timers, whoever drives it.
struct OnRuntime {
    handle: Handle,
    future: Pin<Box<dyn Future<Output = ToolResult> + Send>>,
}

impl Future for OnRuntime {
    type Output = ToolResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ToolResult> {
        let handle = self.handle.clone();
        let _inside = handle.enter();
        self.future.as_mut().poll(context)
    }
}
