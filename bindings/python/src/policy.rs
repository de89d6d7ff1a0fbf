//! Permissions, hooks around tool calls, and budgets.

use std::sync::Arc;

use branchline::agent::ToolHook;
use branchline::host::{HostHook, HostPermissions};
use branchline::{BudgetLimits, json};
use pyo3::prelude::*;

use crate::error::{self, IntoPyResult};
use crate::owned::Owned;
use crate::siblings::read;
use crate::tools::Requests;

/// `branchline::Permissions`. Questions go to `requests` with the number `target`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Permissions {
    permissions: Owned<branchline::Permissions>,
}

impl Permissions {
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<branchline::Permissions> {
        Ok(self.permissions.get(py)?.clone())
    }
}

#[pymethods]
impl Permissions {
    #[new]
    #[pyo3(signature = (policy_json, requests = None, target = 0))]
    fn new(py: Python<'_>, policy_json: &str, requests: Option<&Requests>, target: u64) -> PyResult<Permissions> {
        let policy = json::parse(policy_json.as_bytes())
            .ok_or_else(|| error::invalid(py, "permissions cannot be written as JSON"))?;
        let mut permissions = branchline::Permissions::from_host_value(policy).py(py)?;
        if let Some(requests) = requests {
            permissions = permissions.handler(HostPermissions::new(requests.asker(py)?, target));
        }
        Ok(Permissions { permissions: Owned::new(permissions) })
    }
}

/// `branchline::host::HostHook`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Hook {
    hook: Owned<Arc<HostHook>>,
}

impl Hook {
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<dyn ToolHook>> {
        Ok(self.hook.get(py)?.clone())
    }
}

#[pymethods]
impl Hook {
    #[new]
    fn new(py: Python<'_>, requests: &Requests, target: u64, before: bool, after: bool) -> PyResult<Hook> {
        let hook = HostHook::new(requests.asker(py)?, target, before, after);
        Ok(Hook { hook: Owned::new(Arc::new(hook)) })
    }
}

/// `branchline::Budget`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Budget {
    budget: Owned<branchline::Budget>,
}

impl Budget {
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<branchline::Budget> {
        Ok(self.budget.get(py)?.clone())
    }
}

#[pymethods]
impl Budget {
    #[new]
    fn new(py: Python<'_>, limits_json: &str) -> PyResult<Budget> {
        let limits: BudgetLimits = read(py, limits_json)?;
        Ok(Budget { budget: Owned::new(branchline::Budget::new(limits)) })
    }

    fn limits(&self, py: Python<'_>) -> PyResult<String> {
        Ok(json::to_string(&self.budget.get(py)?.limits()))
    }

    fn set_limits(&self, py: Python<'_>, limits_json: &str) -> PyResult<()> {
        self.budget.get(py)?.set_limits(read(py, limits_json)?);
        Ok(())
    }

    fn used(&self, py: Python<'_>) -> PyResult<String> {
        Ok(json::to_string(&self.budget.get(py)?.used()))
    }
}
