//! Runs and subscriptions: where events come from.

use std::sync::Arc;

use branchline::RunResult;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::event;
use crate::owned::Owned;
use crate::pending::Pending;

/// `branchline::Run`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Run {
    run: Owned<Arc<branchline::Run>>,
}

/// `branchline::Events`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Events {
    events: Owned<Arc<branchline::Events>>,
}

pub(crate) fn batch(future: impl Future<Output = Vec<branchline::Event>> + Send + 'static) -> Pending {
    Pending::new(async move { Ok(future.await) }, |py, events| {
        let rows = events.into_iter().map(|event| event::row(py, event)).collect::<PyResult<Vec<_>>>()?;
        rows.into_pyobject(py)
    })
}

impl Run {
    pub(crate) fn new(run: branchline::Run) -> Run {
        Run { run: Owned::new(Arc::new(run)) }
    }
}

#[pymethods]
impl Run {
    /// The next events as rows (see `RawEvent`), at least one; empty after the last.
    fn next_batch(&self, py: Python<'_>, max: usize) -> PyResult<Pending> {
        let run = self.run.get(py)?.clone();
        Ok(batch(async move { run.events().next_batch(max).await }))
    }

    /// Whether the run has settled.
    fn settled(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.run.get(py)?.try_result().is_some())
    }

    /// Takes no more events.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        self.run.get(py)?.events().discard();
        Ok(())
    }

    /// Waits until the run has settled; events not read yet are lost. The result is keywords of `RunResult`.
    fn result(&self, py: Python<'_>) -> PyResult<Pending> {
        let run = self.run.get(py)?.clone();
        Ok(Pending::new(async move { run.result().await }, |py, result| Ok(outcome(py, &result)?.into_any())))
    }
}

fn outcome<'py>(py: Python<'py>, result: &RunResult) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let messages: Vec<String> = result.messages.iter().map(|message| message.to_json()).collect();
    dict.set_item("text", &result.text)?;
    dict.set_item("messages", messages)?;
    dict.set_item("usage", branchline::json::to_string(&result.usage.to_value()))?;
    dict.set_item("stop_reason", result.stop_reason.map(|reason| reason.name()))?;
    dict.set_item("error_message", result.error_message.as_deref())?;
    dict.set_item("leaf", result.leaf.as_deref())?;
    dict.set_item("aborted", result.aborted)?;
    let over = result.budget_exceeded.map(|over| (over.limit.name(), over.used, over.max, over.price_unknown));
    dict.set_item("budget_exceeded", over)?;
    Ok(dict)
}

impl Events {
    pub(crate) fn new(events: branchline::Events) -> Events {
        Events { events: Owned::new(Arc::new(events)) }
    }
}

#[pymethods]
impl Events {
    /// As `Run.next_batch`; empty when the session is closed.
    fn next_batch(&self, py: Python<'_>, max: usize) -> PyResult<Pending> {
        let events = self.events.get(py)?.clone();
        Ok(batch(async move { events.next_batch(max).await }))
    }

    /// Takes no more events.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        self.events.get(py)?.discard();
        Ok(())
    }
}
