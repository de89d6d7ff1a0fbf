//! Keys in the file that an engine reads, `auth.json`. Functions, as a class has one block of methods.

use branchline::json;
use branchline::providers::{Login, StoredKey};
use pyo3::prelude::*;
use serde_json::Value;

use crate::context::told;
use crate::engine::Engine;
use crate::error;
use crate::pending::Pending;

/// `configured`: the key is in the form with variables and commands.
#[pyfunction]
pub(crate) fn store_key(
    py: Python<'_>,
    engine: &Engine,
    provider: String,
    key: Option<String>,
    configured: bool,
    variables: Vec<(String, String)>,
) -> PyResult<Pending> {
    let engine = engine.get(py)?.clone();
    let mut stored = match key {
        Some(key) if configured => StoredKey::configured(key),
        Some(key) => StoredKey::new(key),
        None => StoredKey::variables(),
    };
    for (name, value) in variables {
        stored = stored.variable(name, value);
    }
    Ok(Pending::unit(async move { engine.store_key(&provider, stored).await }))
}

#[pyfunction]
pub(crate) fn store_login(py: Python<'_>, engine: &Engine, provider: String, entry_json: &str) -> PyResult<Pending> {
    let engine = engine.get(py)?.clone();
    let Some(Value::Object(entry)) = json::parse(entry_json.as_bytes()) else {
        return Err(error::invalid(py, "a login is a dictionary"));
    };
    let login = Login::new(provider, entry);
    Ok(Pending::unit(async move { engine.store_login(login).await }))
}

/// Whether something was stored.
#[pyfunction]
pub(crate) fn forget_stored(py: Python<'_>, engine: &Engine, provider: String) -> PyResult<Pending> {
    let engine = engine.get(py)?.clone();
    Ok(Pending::new(async move { engine.forget_stored(&provider).await }, |py, was| {
        Ok(was.into_pyobject(py)?.to_owned().into_any())
    }))
}

/// A list of `StoredEntry` as JSON.
#[pyfunction]
pub(crate) fn stored_keys(py: Python<'_>, engine: &Engine) -> PyResult<Pending> {
    let engine = engine.get(py)?.clone();
    Ok(told(async move { engine.stored_keys().await }))
}
