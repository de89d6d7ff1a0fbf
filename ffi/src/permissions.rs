//! `branchline_permissions`: what tool calls may do, and who is asked where the policy does not say.

use std::ffi::c_char;

use branchline_core::host::HostPermissions;
use branchline_core::permissions::Permissions;

use crate::boundary::export;
use crate::engine::{EngineObject, branchline_engine};
use crate::error::{Failure, branchline_error};
use crate::handle::{self, Handle, Object, Table};
use crate::input;
use crate::output;
use crate::requests::{RequestsObject, branchline_requests};
use crate::status::branchline_status;
use crate::tool::{self, branchline_tool_callbacks};
use crate::toolbox::{ToolboxObject, branchline_toolbox};

/// A policy for the tool calls of sessions and toolboxes.
pub struct branchline_permissions {
    _opaque: [u8; 0],
}

pub(crate) struct PermissionsObject {
    pub(crate) core: Permissions,
}

static POLICIES: Table<PermissionsObject> = Table::new();

impl Object for PermissionsObject {
    type C = branchline_permissions;
    const KIND: usize = 13;
    const NAME: &'static str = "permissions";
    fn table() -> &'static Table<Self> {
        &POLICIES
    }
}

/// # Safety
/// `policy_json` is as the header demands.
unsafe fn policy(policy_json: *const c_char) -> Result<Permissions, Failure> {
    // SAFETY: as this function's.
    let value = input::json(unsafe { input::text(policy_json, "policy_json") }?, "policy_json")?;
    Ok(Permissions::from_host_value(value)?)
}

/// Makes a policy. `policy_json` is a preset as a JSON text ("read-only", "ask", "workspace", "allow", with its quotes) or
/// `{"preset"?,"tools"?:{NAME:ACTION},"effects"?:{EFFECT:ACTION},"roots"?:[DIRECTORY],"timeoutMs"?}`, where an action is
/// "allow", "ask" or "deny" and an effect "read", "write" or "execute". Paths outside of the roots are refused whatever
/// else is said. `callbacks` may be NULL: then nobody is asked, and what asks is denied. Otherwise `on_call` gets each
/// question as a request of type BRANCHLINE_REQUEST_PERMISSION; its arguments are `{"tool","effect","arguments",
/// "command"?,"paths":[{"given","path","real","inside"}],"rule"}`. Answer with branchline_request_complete and `"allow"`,
/// `"deny"`, `"allowAlways"` or `{"decision","reason"?,"scope"?}`, the scope being "same", "tool" or `{"below":DIRECTORY}`.
/// A request that fails, is freed without an answer, or is answered too late is a denial.
///
/// Ownership: borrows `engine`, `policy_json` and `callbacks`, whose content is copied; `user_data` is the library's until
/// `destroy`. `out_permissions` is yours: free it with branchline_permissions_free.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_permissions_new(
    engine: *mut branchline_engine,
    policy_json: *const c_char,
    callbacks: *const branchline_tool_callbacks,
    out_permissions: *mut *mut branchline_permissions,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        // First of all, so that whatever fails below runs `destroy`.
        let table = tool::table(callbacks)?;
        output::required(out_permissions, "out_permissions")?;
        let engine = handle::get::<EngineObject>(engine)?;
        let mut core = policy(policy_json)?;
        if let Some(table) = table {
            core = core.handler(HostPermissions::new(tool::serve(&engine, table)?, 0));
        }
        output::handle(out_permissions, Handle::new(PermissionsObject { core })?);
        Ok(())
    })
}

/// Makes a policy whose questions come to a queue of requests. `policy_json` and the answers are as for
/// branchline_permissions_new. When the queue is freed, what asks is denied.
///
/// Ownership: borrows everything; `out_permissions` is yours: free it with branchline_permissions_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_permissions(
    requests: *mut branchline_requests,
    policy_json: *const c_char,
    out_permissions: *mut *mut branchline_permissions,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_permissions, "out_permissions")?;
        let requests = handle::get::<RequestsObject>(requests)?;
        let core = policy(policy_json)?.handler(HostPermissions::new(requests.asker(), 0));
        output::handle(out_permissions, Handle::new(PermissionsObject { core })?);
        Ok(())
    })
}

/// Sets what the calls of a toolbox may do from now on; without it they may do everything. Answers that hold for longer
/// than a call are forgotten.
///
/// Ownership: borrows everything; the toolbox keeps what it needs of `permissions`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_toolbox_set_permissions(
    toolbox: *mut branchline_toolbox,
    permissions: *const branchline_permissions,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let toolbox = handle::get::<ToolboxObject>(toolbox)?;
        toolbox.core.set_permissions(handle::get::<PermissionsObject>(permissions)?.core.clone());
        Ok(())
    })
}

/// Lets go of a policy. What uses it goes on using it; `destroy` runs when nothing does any more, at the latest at the
/// end of its engine. NULL is fine.
///
/// Ownership: takes `permissions`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_permissions_free(permissions: *mut branchline_permissions) -> branchline_status {
    export!(std::ptr::null_mut(), { handle::take::<PermissionsObject>(permissions).map(drop) })
}
