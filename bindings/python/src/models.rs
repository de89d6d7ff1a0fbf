//! Which models an engine knows, who serves them, and their keys. Functions, as a class has one block of methods.
//! Structured values are JSON in the form of `branchline::providers`.

use std::path::PathBuf;
use std::sync::Arc;

use branchline::host::{self, Asker, HostKeys, HostLogins, HostPayloads};
use branchline::json;
use branchline::providers::{Key, Provider};
use branchline::replay::{self, ReplayOptions};
use branchline::tools::Tool;
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::error::IntoPyResult;
use crate::owned::Owned;
use crate::session::json_value;
use crate::siblings::read;
use crate::tools::{PythonTool, Requests};

/// Every model, as JSON. The first call reads them.
#[pyfunction]
pub(crate) fn models(py: Python<'_>, engine: &Engine) -> PyResult<String> {
    let engine = engine.get(py)?;
    Ok(py.detach(|| json::to_string(&engine.models())))
}

/// Those that can be used, as JSON.
#[pyfunction]
pub(crate) fn available_models(py: Python<'_>, engine: &Engine) -> PyResult<String> {
    let engine = engine.get(py)?;
    Ok(py.detach(|| json::to_string(&engine.available_models())))
}

/// `ModelChoice` as JSON.
#[pyfunction]
pub(crate) fn find_model(py: Python<'_>, engine: &Engine, text: &str) -> PyResult<String> {
    let engine = engine.get(py)?;
    let choice = py.detach(|| engine.find_model(text)).py(py)?;
    Ok(json::to_string(&choice))
}

/// The same, and an unknown id of a known provider is a model, too.
#[pyfunction]
pub(crate) fn find_model_or_custom(py: Python<'_>, engine: &Engine, text: &str) -> PyResult<String> {
    let engine = engine.get(py)?;
    let choice = py.detach(|| engine.find_model_or_custom(text)).py(py)?;
    Ok(json::to_string(&choice))
}

/// A list of `ModelChoice` as JSON, and warnings.
#[pyfunction]
pub(crate) fn models_in_scope(
    py: Python<'_>,
    engine: &Engine,
    patterns: Vec<String>,
) -> PyResult<(String, Vec<String>)> {
    let engine = engine.get(py)?;
    let scope = py.detach(|| engine.models_in_scope(&patterns));
    Ok((json::to_string(&scope.models), scope.warnings))
}

/// Takes the text of a `models.json`.
#[pyfunction]
pub(crate) fn configure_models(py: Python<'_>, engine: &Engine, text: &str) -> PyResult<()> {
    let engine = engine.get(py)?;
    py.detach(|| engine.configure_models(text)).py(py)
}

/// A list of `ModelProblem` as JSON.
#[pyfunction]
pub(crate) fn model_problems(py: Python<'_>, engine: &Engine) -> PyResult<String> {
    let engine = engine.get(py)?;
    Ok(py.detach(|| json::to_string(&engine.model_problems())))
}

#[pyfunction]
pub(crate) fn set_key(
    py: Python<'_>,
    engine: &Engine,
    provider: &str,
    key: Option<String>,
    bearer: bool,
) -> PyResult<()> {
    let key = key.map(|key| if bearer { Key::bearer(key) } else { Key::new(key) });
    engine.get(py)?.set_key(provider, key);
    Ok(())
}

/// A source whose requests go to `requests`; `None` is nobody.
fn source<T>(py: Python<'_>, requests: Option<&Requests>, make: impl FnOnce(Asker) -> T) -> PyResult<Option<Arc<T>>> {
    let asker = requests.map(|requests| requests.asker(py)).transpose()?;
    Ok(asker.map(|asker| Arc::new(make(asker))))
}

/// Requests for keys go to `requests` with the number `target`; `None` is nobody.
#[pyfunction]
pub(crate) fn set_key_source(
    py: Python<'_>,
    engine: &Engine,
    requests: Option<&Requests>,
    target: u64,
) -> PyResult<()> {
    let source = source(py, requests, |asker| HostKeys::new(asker, target))?;
    engine.get(py)?.set_key_source(source.map(|source| source as _));
    Ok(())
}

/// Requests to make logins anew go to `requests` with the number `target`; `None` is nobody.
#[pyfunction]
pub(crate) fn set_login_source(
    py: Python<'_>,
    engine: &Engine,
    requests: Option<&Requests>,
    target: u64,
) -> PyResult<()> {
    let source = source(py, requests, |asker| HostLogins::new(asker, target))?;
    engine.get(py)?.set_login_source(source.map(|source| source as _));
    Ok(())
}

/// Bodies of requests are shown to `requests` with the number `target`; `None` is nobody.
#[pyfunction]
pub(crate) fn set_payload_hook(
    py: Python<'_>,
    engine: &Engine,
    requests: Option<&Requests>,
    target: u64,
) -> PyResult<()> {
    let hook = source(py, requests, |asker| HostPayloads::new(asker, target))?;
    engine.get(py)?.set_payload_hook(hook.map(|hook| hook as _));
    Ok(())
}

/// Requests for answers of its models go to `requests` with the number `target`.
#[pyfunction]
pub(crate) fn add_host_provider(
    py: Python<'_>,
    engine: &Engine,
    definition_json: &str,
    requests: &Requests,
    target: u64,
) -> PyResult<()> {
    let definition = json_value(py, definition_json)?;
    let provider = host::provider_from_value(definition, requests.asker(py)?, target).py(py)?;
    engine.get(py)?.add_provider(Arc::new(provider));
    Ok(())
}

/// Reads a session file as a provider. Blocks, with the interpreter released.
#[pyfunction]
pub(crate) fn add_replay(
    py: Python<'_>,
    engine: &Engine,
    name: String,
    path: PathBuf,
    options_json: &str,
) -> PyResult<Replay> {
    let (engine, options): (_, ReplayOptions) = (engine.get(py)?, read(py, options_json)?);
    let replay = py.detach(|| replay::Replay::open(name, path, options)).py(py)?;
    engine.add_provider(Arc::new(replay.clone()));
    Ok(Replay { replay: Owned::new(replay) })
}

/// `branchline::replay::Replay`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Replay {
    replay: Owned<replay::Replay>,
}

#[pymethods]
impl Replay {
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.replay.get(py)?.name().to_owned())
    }

    /// Its models, as JSON.
    fn models(&self, py: Python<'_>) -> PyResult<String> {
        Ok(json::to_string(&self.replay.get(py)?.models()))
    }

    fn tools(&self, py: Python<'_>) -> PyResult<Vec<PythonTool>> {
        let tools: Vec<Arc<dyn Tool>> = self.replay.get(py)?.tools();
        Ok(tools.into_iter().map(PythonTool::new).collect())
    }

    /// `Divergence` as JSON, and in a sentence.
    fn divergence(&self, py: Python<'_>) -> PyResult<Option<(String, String)>> {
        let divergence = self.replay.get(py)?.divergence();
        Ok(divergence.map(|divergence| (json::to_string(&divergence), divergence.to_string())))
    }
}
