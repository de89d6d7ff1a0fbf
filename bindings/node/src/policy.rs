//! Permissions, hooks around tool calls, and budgets.
//!
//! Options are JSON, so what is a function or shared crosses as a number: functions by the number under which JavaScript
//! answers requests, budgets by the number they got here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use branchline::host::{HostHook, HostPermissions};
use branchline::{Error, ErrorCode, Permissions, Result, SessionOptions};
use napi_derive::napi;
use serde::Deserialize;
use serde_json::Value;

use crate::bridge::Shared;
use crate::failure::guard;
use crate::options;

/// A policy, and who is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    policy: Value,
    target: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hook {
    target: u32,
    before: bool,
    after: bool,
}

/// What a session may do and spend, as JavaScript gives it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Bounds {
    permissions: Option<Policy>,
    tool_hooks: Vec<Hook>,
    budgets: Vec<u32>,
}

/// The budgets of an environment.
#[derive(Default)]
pub(crate) struct Budgets {
    known: Mutex<HashMap<u32, branchline::Budget>>,
    last: AtomicU32,
}

impl Budgets {
    fn known(&self) -> MutexGuard<'_, HashMap<u32, branchline::Budget>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    pub(crate) fn permissions(&self, given: Policy) -> Result<Permissions> {
        let permissions = Permissions::from_host_value(given.policy)?;
        Ok(match given.target {
            Some(target) => permissions.handler(HostPermissions::new(self.desk.asker(), target.into())),
            None => permissions,
        })
    }

    pub(crate) fn bound(&self, given: Bounds, options: &mut SessionOptions) -> Result<()> {
        options.permissions = given.permissions.map(|policy| self.permissions(policy)).transpose()?;
        for Hook { target, before, after } in given.tool_hooks {
            options.tool_hooks.push(Arc::new(HostHook::new(self.desk.asker(), target.into(), before, after)));
        }
        options.budgets = self.budgets(&given.budgets)?;
        Ok(())
    }

    pub(crate) fn budgets(&self, numbers: &[u32]) -> Result<Vec<branchline::Budget>> {
        let unknown = || Error::new(ErrorCode::InvalidArgument, "there is no such budget");
        numbers.iter().map(|number| self.budgets.known().get(number).cloned().ok_or_else(unknown)).collect()
    }
}

/// `branchline::Budget`.
#[napi]
pub struct Budget {
    shared: Arc<Shared>,
    budget: branchline::Budget,
    number: u32,
}

impl Budget {
    pub(crate) fn new(shared: Arc<Shared>, limits: &str) -> Result<Budget> {
        let budget = branchline::Budget::new(options::read(limits)?);
        let number = shared.budgets.last.fetch_add(1, Ordering::Relaxed) + 1;
        shared.budgets.known().insert(number, budget.clone());
        Ok(Budget { shared, budget, number })
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.shared.budgets.known().remove(&self.number);
    }
}

#[napi]
impl Budget {
    #[napi(getter)]
    pub fn number(&self) -> u32 {
        self.number
    }

    #[napi(getter)]
    pub fn limits(&self) -> String {
        branchline::json::to_string(&self.budget.limits())
    }

    #[napi]
    pub fn set_limits(&self, limits: String) -> napi::Result<()> {
        guard(|| {
            self.budget.set_limits(options::read(&limits)?);
            Ok(())
        })
    }

    #[napi(getter)]
    pub fn used(&self) -> String {
        branchline::json::to_string(&self.budget.used())
    }
}
