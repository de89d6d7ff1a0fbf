//! Toolboxes, and tools that are Python functions.
//!
//! A call of a Python tool is a request in a queue that a Python thread takes (`branchline._serve`): an engine thread
//! never enters Python, and who waits for a tool waits with the interpreter released.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use branchline::host::{self, Asker, HostTool, Notice};
use branchline::tools::{CancelCall, PendingCall, Tool, ToolResult};
use branchline::{Error, ErrorCode, json};
use pyo3::prelude::*;
use serde_json::Value;

use crate::error::IntoPyResult;
use crate::owned::Owned;
use crate::pending::Pending;
use crate::policy::Permissions;
use crate::session::json_value;

fn result_json(result: &ToolResult) -> String {
    json::to_string(&result.to_host_value())
}

/// `branchline::host::Requests`, with the end that asks.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Requests {
    queue: Owned<(Asker, Arc<host::Requests>)>,
}

impl Requests {
    pub(crate) fn asker(&self, py: Python<'_>) -> PyResult<Asker> {
        Ok(self.queue.get(py)?.0.clone())
    }
}

#[pymethods]
impl Requests {
    #[new]
    fn new() -> Requests {
        let (asker, requests) = host::requests();
        Requests { queue: Owned::new((asker, Arc::new(requests))) }
    }

    /// Blocks for the next notice, with the interpreter released and without looking for signals: `(request, 0)`, or
    /// `(None, id)` when the request with that id was cancelled, or `None` after `close`.
    fn next(&self, py: Python<'_>) -> PyResult<Option<(Option<Request>, u64)>> {
        let requests = self.queue.get(py)?.1.clone();
        let notice = py.detach(|| branchline::block_on(requests.next()));
        Ok(notice.map(|notice| match notice {
            Notice::Asked(request) => (Some(Request { request: Owned::new(request) }), 0),
            Notice::Cancelled(id) => (None, id),
        }))
    }

    /// Takes no more requests.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.queue.get(py)?.1.close();
        Ok(())
    }

    /// A tool whose calls come here, with a number that says whose they are.
    fn tool(&self, py: Python<'_>, definition_json: &str, target: u64) -> PyResult<PythonTool> {
        let definition = json_value(py, definition_json)?;
        let tool = HostTool::new(definition, self.queue.get(py)?.0.clone(), target).py(py)?;
        Ok(PythonTool::new(Arc::new(tool)))
    }
}

/// A tool of the program's, or a recorded one.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct PythonTool {
    tool: Owned<Arc<dyn Tool>>,
}

#[pymethods]
impl PythonTool {
    fn definition_json(&self, py: Python<'_>) -> PyResult<String> {
        Ok(json::to_string(&self.tool.get(py)?.definition().to_host_value()))
    }
}

impl PythonTool {
    pub(crate) fn new(tool: Arc<dyn Tool>) -> PythonTool {
        PythonTool { tool: Owned::new(tool) }
    }

    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<dyn Tool>> {
        Ok(self.tool.get(py)?.clone())
    }
}

/// `branchline::host::Request`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Request {
    request: Owned<host::Request>,
}

#[pymethods]
impl Request {
    fn id(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.request.get(py)?.id())
    }

    /// `tool`, `permission`, `before_tool`, `after_tool`, `model`, `key`, `login`, `payload`, or a newer one.
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.request.get(py)?.kind().name())
    }

    fn target(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.request.get(py)?.target())
    }

    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.request.get(py)?.name().to_owned())
    }

    fn call_id(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.request.get(py)?.call_id().to_owned())
    }

    fn session_id(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.request.get(py)?.session_id().to_owned())
    }

    fn sibling(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.request.get(py)?.sibling())
    }

    fn cwd(&self, py: Python<'_>) -> PyResult<PathBuf> {
        Ok(self.request.get(py)?.cwd().to_owned())
    }

    fn arguments_json(&self, py: Python<'_>) -> PyResult<String> {
        let request = self.request.get(py)?;
        Ok(py.detach(|| json::to_string(request.arguments())))
    }

    fn is_cancelled(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.request.get(py)?.is_cancelled())
    }

    fn complete(&self, py: Python<'_>, result_json: &str) -> PyResult<()> {
        let (request, value) = (self.request.get(py)?, json_value(py, result_json)?);
        py.detach(|| request.complete(value)).py(py)
    }

    fn fail(&self, py: Python<'_>, message: String) -> PyResult<()> {
        self.request.get(py)?.fail(message).py(py)
    }

    /// Writes a piece of a model's answer. Never waits, so the interpreter is kept: a thread that the interpreter leaves
    /// behind at its end must not be in here without it.
    fn push(&self, py: Python<'_>, event_json: &str) -> PyResult<()> {
        self.request.get(py)?.push_json(event_json).py(py)
    }

    /// The same for a piece of text.
    fn push_text(&self, py: Python<'_>, text: String) -> PyResult<()> {
        self.request.get(py)?.push_value(&Value::String(text)).py(py)
    }

    /// Whether there was room for it.
    fn progress(&self, py: Python<'_>, partial_json: &str) -> PyResult<bool> {
        let (request, value) = (self.request.get(py)?, json_value(py, partial_json)?);
        request.progress(value).py(py)
    }
}

/// `branchline::tools::Toolbox`, with the engine it runs on.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Toolbox {
    toolbox: Owned<(branchline::tools::Toolbox, branchline::Engine)>,
}

impl Toolbox {
    pub(crate) fn new(engine: branchline::Engine, cwd: PathBuf) -> Toolbox {
        Toolbox { toolbox: Owned::new((engine.toolbox(cwd), engine)) }
    }
}

#[pymethods]
impl Toolbox {
    fn add(&self, py: Python<'_>, tool: &PythonTool) -> PyResult<()> {
        self.toolbox.get(py)?.0.add(tool.get(py)?);
        Ok(())
    }

    /// What calls may do from now on.
    fn set_permissions(&self, py: Python<'_>, permissions: &Permissions) -> PyResult<()> {
        let (toolbox, permissions) = (&self.toolbox.get(py)?.0, permissions.get(py)?);
        py.detach(|| toolbox.set_permissions(permissions));
        Ok(())
    }

    fn definitions_json(&self, py: Python<'_>) -> PyResult<String> {
        let definitions = self.toolbox.get(py)?.0.definitions();
        let definitions: Vec<Value> = definitions.iter().map(|tool| tool.to_host_value()).collect();
        Ok(json::to_string(&definitions))
    }

    /// Prepares a call, which runs while it is waited for.
    fn start(&self, py: Python<'_>, name: &str, arguments_json: &str) -> PyResult<ToolCall> {
        let (toolbox, _) = self.toolbox.get(py)?;
        if toolbox.is_closed() {
            let closed = Error::new(ErrorCode::Closed, "the engine of this toolbox was closed; make another");
            return Err(closed).py(py);
        }
        let call = toolbox.start(name, json_value(py, arguments_json)?);
        let cancel = call.cancel_token();
        Ok(ToolCall { call: Owned::new((Arc::new(Mutex::new(Some(call))), cancel)) })
    }
}

type Slot = Arc<Mutex<Option<PendingCall>>>;

/// `branchline::tools::PendingCall`. Giving up a wait for it cancels it.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct ToolCall {
    call: Owned<(Slot, CancelCall)>,
}

fn take(slot: &Slot) -> branchline::Result<PendingCall> {
    let call = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    call.ok_or_else(|| Error::new(ErrorCode::InvalidArgument, "this call was waited for already"))
}

#[pymethods]
impl ToolCall {
    /// The next update or the result, as JSON, and whether it is the result.
    fn step(&self, py: Python<'_>) -> PyResult<Pending> {
        let slot = self.call.get(py)?.0.clone();
        let step = async move {
            let mut call = take(&slot)?;
            Ok(match call.next_update().await {
                Some(update) => {
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
                    (result_json(&update), false)
                }
                None => (result_json(&call.result().await), true),
            })
        };
        Ok(Pending::new(step, |py, row| Ok(row.into_pyobject(py)?.into_any())))
    }

    /// The result, as JSON. Updates are left out.
    fn result(&self, py: Python<'_>) -> PyResult<Pending> {
        let slot = self.call.get(py)?.0.clone();
        let result = async move { Ok(result_json(&take(&slot)?.result().await)) };
        Ok(Pending::new(result, |py, json| Ok(json.into_pyobject(py)?.into_any())))
    }

    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let (slot, cancel) = self.call.get(py)?;
        cancel.cancel();
        let left = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(left));
        Ok(())
    }
}
