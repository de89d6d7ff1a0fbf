//! What a session knows of its project. Structured values are JSON in the form of `branchline::resources`.

use branchline::json;
use branchline::resources::ResourceOptions;
use pyo3::prelude::*;

use crate::context::told;
use crate::error::IntoPyResult;
use crate::pending::Pending;
use crate::session::Session;

/// Reads options.
pub(crate) fn options(py: Python<'_>, options_json: &str) -> PyResult<ResourceOptions> {
    ResourceOptions::from_json(options_json).py(py)
}

/// `Resources` as JSON.
#[pyfunction]
pub(crate) fn resources(py: Python<'_>, session: &Session) -> PyResult<String> {
    let session = session.get(py)?;
    Ok(py.detach(|| json::to_string(&*session.resources())))
}

/// The files read again; `Resources` as JSON.
#[pyfunction]
pub(crate) fn reload_resources(py: Python<'_>, session: &Session) -> PyResult<Pending> {
    let session = session.own(py)?;
    Ok(told(async move { session.reload_resources().await.map(|resources| resources.as_ref().clone()) }))
}

/// Others chosen; `Resources` as JSON.
#[pyfunction]
pub(crate) fn set_resources(py: Python<'_>, session: &Session, options_json: &str) -> PyResult<Pending> {
    let (session, options) = (session.own(py)?, options(py, options_json)?);
    Ok(told(async move { session.set_resources(options).await.map(|resources| resources.as_ref().clone()) }))
}
