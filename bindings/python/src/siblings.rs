//! Siblings, explorations, and what leads from one session to the next. Functions, as a class has one block of methods.
//! Options are JSON in the form of `branchline::session`.

use std::path::PathBuf;
use std::sync::Arc;

use branchline::session::{AdoptOptions, BranchForm, ExploreOptions, ExplorePrompt, NewSessionOptions, SwitchOptions};
use branchline::{ExploreResult, json};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::engine;
use crate::error;
use crate::owned::Owned;
use crate::pending::Pending;
use crate::policy::Budget;
use crate::run::batch;
use crate::session::{Heir, Session};

/// Reads options.
pub(crate) fn read<T: DeserializeOwned>(py: Python<'_>, text: &str) -> PyResult<T> {
    serde_json::from_str(text).and_then(json::form).map_err(|problem| {
        // The place is one in a text that the caller never saw.
        let text = problem.to_string();
        error::invalid(py, format!("bad options: {}", text.split(" at line ").next().unwrap_or_default()))
    })
}

fn owned(py: Python<'_>, budgets: &[Py<Budget>]) -> PyResult<Vec<branchline::Budget>> {
    budgets.iter().map(|budget| budget.get().get(py)).collect()
}

/// Another live session over the same tree.
#[pyfunction]
pub(crate) fn branch(
    py: Python<'_>,
    session: &Session,
    options_json: &str,
    budgets: Vec<Py<Budget>>,
) -> PyResult<Pending> {
    let mut form: BranchForm = read(py, options_json)?;
    form.options.budgets = owned(py, &budgets)?;
    let (session, heir) = (session.own(py)?, session.heir(py)?);
    Ok(engine::session(async move { session.branch(form.at, form.options).await }, heir))
}

/// The sessions are of one tree.
#[pyfunction]
pub(crate) fn is_sibling_of(py: Python<'_>, session: &Session, other: &Session) -> PyResult<bool> {
    Ok(session.get(py)?.is_sibling_of(other.get(py)?))
}

/// Moves a session to where another one stands; the result is as of `Session.navigate`.
#[pyfunction]
pub(crate) fn adopt(py: Python<'_>, session: &Session, winner: &Session, options_json: &str) -> PyResult<Pending> {
    let options: AdoptOptions = read(py, options_json)?;
    let (session, winner) = (session.own(py)?, winner.own(py)?);
    Ok(Pending::new(async move { session.adopt(&winner, options).await }, |py, result| {
        let row = (result.leaf, result.editor_text, result.cancelled, result.summary_entry);
        Ok(row.into_pyobject(py)?.into_any())
    }))
}

#[pyfunction]
pub(crate) fn new_session(py: Python<'_>, session: &Session, options_json: &str) -> PyResult<Pending> {
    let options: NewSessionOptions = read(py, options_json)?;
    let (session, heir) = (session.own(py)?, session.heir(py)?);
    Ok(engine::session(async move { session.new_session(options).await }, heir))
}

#[pyfunction]
pub(crate) fn switch(py: Python<'_>, session: &Session, path: PathBuf, cwd: Option<PathBuf>) -> PyResult<Pending> {
    let (session, heir) = (session.own(py)?, session.heir(py)?);
    let options = switch_options(cwd);
    Ok(engine::session(async move { session.switch(path, options).await }, heir))
}

#[pyfunction]
pub(crate) fn import_session(
    py: Python<'_>,
    session: &Session,
    path: PathBuf,
    cwd: Option<PathBuf>,
) -> PyResult<Pending> {
    let (session, heir) = (session.own(py)?, session.heir(py)?);
    let options = switch_options(cwd);
    Ok(engine::session(async move { session.import_session(path, options).await }, heir))
}

fn switch_options(cwd: Option<PathBuf>) -> SwitchOptions {
    let options = SwitchOptions::default();
    match cwd {
        Some(cwd) => options.cwd(cwd),
        None => options,
    }
}

/// One prompt for each of several siblings; the result is an `Exploration`.
#[pyfunction]
pub(crate) fn explore(
    py: Python<'_>,
    session: &Session,
    prompts_json: &str,
    options_json: &str,
    budgets: Vec<Py<Budget>>,
) -> PyResult<Pending> {
    let prompts: Vec<ExplorePrompt> = read(py, prompts_json)?;
    let mut options: ExploreOptions = read(py, options_json)?;
    options.branch.budgets = owned(py, &budgets)?;
    let (session, heir) = (session.own(py)?, session.heir(py)?);
    Ok(Pending::new(async move { session.explore(prompts, options).await }, |py, exploration| {
        let exploration = Exploration { exploration: Owned::new(Arc::new(exploration)), heir };
        Ok(Bound::new(py, exploration)?.into_any())
    }))
}

/// `branchline::Exploration`. Letting go of it aborts what still runs.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Exploration {
    exploration: Owned<Arc<branchline::Exploration>>,
    heir: Heir,
}

#[pymethods]
impl Exploration {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.heir.traverse(&visit)
    }

    /// As `Run.next_batch`; empty when all are done.
    fn next_batch(&self, py: Python<'_>, max: usize) -> PyResult<Pending> {
        let exploration = self.exploration.get(py)?.clone();
        Ok(batch(async move { exploration.events().next_batch(max).await }))
    }

    /// Takes no more events.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        self.exploration.get(py)?.events().discard();
        Ok(())
    }

    /// Whether all are done.
    fn settled(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.exploration.get(py)?.try_results().is_some())
    }

    /// The siblings, in the order of their prompts.
    fn siblings(&self, py: Python<'_>) -> PyResult<Vec<Session>> {
        let siblings = self.exploration.get(py)?.siblings();
        Ok(siblings.iter().map(|session| self.heir.clone_ref(py).session(session.clone())).collect())
    }

    /// Waits until all are done; the result is a list of tuples: session, all facts as JSON.
    fn results(&self, py: Python<'_>) -> PyResult<Pending> {
        let exploration = self.exploration.get(py)?.clone();
        let heir = self.heir.clone_ref(py);
        Ok(Pending::new(async move { exploration.results().await }, move |py, results| {
            let row = |result: ExploreResult| {
                let json = result.to_json();
                Ok((Bound::new(py, heir.clone_ref(py).session(result.session))?, json))
            };
            results.into_iter().map(row).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
        }))
    }

    /// Gives the signal at once; waiting for the result waits until all are idle.
    fn abort(&self, py: Python<'_>) -> PyResult<Pending> {
        let idle = self.exploration.get(py)?.abort();
        Ok(Pending::unit(async move {
            idle.await;
            Ok(())
        }))
    }

    /// Aborts one, by the position of its prompt.
    fn abort_one(&self, py: Python<'_>, prompt: usize) -> PyResult<()> {
        use crate::error::IntoPyResult;
        self.exploration.get(py)?.abort_one(prompt).py(py)
    }
}
