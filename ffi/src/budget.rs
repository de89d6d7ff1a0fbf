//! `branchline_budget`: hard limits for what sessions may spend, and what was spent.

use std::ffi::c_char;

use branchline_core::Budget;

use crate::boundary::{export, gives_json};
use crate::error::{Failure, branchline_error};
use crate::handle::{self, Handle, Object, Table};
use crate::input;
use crate::output;
use crate::status::branchline_status;

/// Limits, and what was spent of them. Several sessions may share one.
pub struct branchline_budget {
    _opaque: [u8; 0],
}

pub(crate) struct BudgetObject {
    core: Budget,
}

static BUDGETS: Table<BudgetObject> = Table::new();

impl Object for BudgetObject {
    type C = branchline_budget;
    const KIND: usize = 14;
    const NAME: &'static str = "budget";
    fn table() -> &'static Table<Self> {
        &BUDGETS
    }
}

/// The budgets behind a list of handles.
///
/// # Safety
/// `list` is NULL or valid for `count` pointers.
pub(crate) unsafe fn list(list: *const *mut branchline_budget, count: usize) -> Result<Vec<Budget>, Failure> {
    // SAFETY: as this function's.
    let list = unsafe { input::handles(list, count, "budgets") }?;
    list.iter().map(|budget| Ok(handle::get::<BudgetObject>(*budget)?.core.clone())).collect()
}

/// Makes a budget of which nothing is spent. `limits_json` may be NULL, which is no limit: `{"requests"?,"turns"?,
/// "tokens"?,"cost"?,"wallTimeMs"?,"ignoreUnknownPrices"?}`, the cost in US dollars. A request that would go over a limit
/// is not sent, and one whose price nobody knows is not sent where the cost is limited, unless that is to be ignored.
///
/// Ownership: borrows `limits_json`; `out_budget` is yours: free it with branchline_budget_free.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_budget_new(
    limits_json: *const c_char,
    out_budget: *mut *mut branchline_budget,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_budget, "out_budget")?;
        let core = Budget::new(input::form(limits_json, "limits_json")?);
        output::handle(out_budget, Handle::new(BudgetObject { core })?);
        Ok(())
    })
}

/// Replaces the limits, also while sessions run. What was spent stays spent; a session that was stopped goes on with its
/// next prompt.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_budget_set_limits(
    budget: *mut branchline_budget,
    limits_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        handle::get::<BudgetObject>(budget)?.core.set_limits(input::form(limits_json, "limits_json")?);
        Ok(())
    })
}

/// The limits now, as JSON: every key of branchline_budget_new, null for what is not limited.
///
/// Ownership: borrows `budget`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_budget_limits(
    budget: *const branchline_budget,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, handle::get::<BudgetObject>(budget)?.core.limits())
}

/// What was spent so far, as JSON: `{"requests","turns","tokens","cost","unpricedRequests","wallTimeMs"}`.
///
/// Ownership: borrows `budget`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_budget_used(
    budget: *const branchline_budget,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, handle::get::<BudgetObject>(budget)?.core.used())
}

/// Lets go of a budget. Sessions that have it keep to it. NULL is fine.
///
/// Ownership: takes `budget`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_budget_free(budget: *mut branchline_budget) -> branchline_status {
    export!(std::ptr::null_mut(), { handle::take::<BudgetObject>(budget).map(drop) })
}
