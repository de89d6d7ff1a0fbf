//! `branchline_tool_hook`: questions to the host before and after each tool call of a session.

use std::sync::Arc;

use branchline_core::agent::ToolHook;
use branchline_core::host::HostHook;

use crate::boundary::export;
use crate::engine::{EngineObject, branchline_engine};
use crate::error::{Failure, branchline_error};
use crate::handle::{self, Handle, Object, Table};
use crate::input::invalid;
use crate::output;
use crate::status::branchline_status;
use crate::tool::{self, branchline_tool_callbacks};

/// A hook around the tool calls of sessions.
pub struct branchline_tool_hook {
    _opaque: [u8; 0],
}

/// Which questions a hook wants; several are added.
pub type branchline_hook_point = u32;
/// Before a call.
pub const BRANCHLINE_HOOK_BEFORE_TOOL: branchline_hook_point = 1;
/// After a call.
pub const BRANCHLINE_HOOK_AFTER_TOOL: branchline_hook_point = 2;

pub(crate) struct HookObject {
    core: Arc<dyn ToolHook>,
}

static HOOKS: Table<HookObject> = Table::new();

impl Object for HookObject {
    type C = branchline_tool_hook;
    const KIND: usize = 15;
    const NAME: &'static str = "tool_hook";
    fn table() -> &'static Table<Self> {
        &HOOKS
    }
}

/// The hooks behind a list of handles.
///
/// # Safety
/// `list` is NULL or valid for `count` pointers.
pub(crate) unsafe fn list(
    list: *const *mut branchline_tool_hook,
    count: usize,
) -> Result<Vec<Arc<dyn ToolHook>>, Failure> {
    // SAFETY: as this function's.
    let handles = unsafe { crate::input::handles(list, count, "tool_hooks") }?;
    handles.iter().map(|hook| Ok(handle::get::<HookObject>(*hook)?.core.clone())).collect()
}

/// Makes a hook. `on_call` gets each question as a request: before a call of type BRANCHLINE_REQUEST_BEFORE_TOOL, whose
/// arguments are `{"arguments"}`; the answer is `null` or `true` (it runs), `false` or a text (it does not; the model reads
/// the text), or `{"block"?:REASON or true,"terminate"?,"arguments"?}`. After it of type BRANCHLINE_REQUEST_AFTER_TOOL with
/// `{"arguments","result"}`; the answer is `null` or the parts of the result to replace: `{"content"?,"details"?,
/// "structuredContent"?,"usage"?,"isError"?,"terminate"?}`. A request that fails or is freed without an answer becomes the
/// error result of its call. `points` is a sum of BRANCHLINE_HOOK_BEFORE_TOOL and BRANCHLINE_HOOK_AFTER_TOOL.
///
/// Ownership: borrows `engine` and `callbacks`, whose content is copied; `user_data` is the library's until `destroy`.
/// `out_hook` is yours: free it with branchline_tool_hook_free.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_tool_hook_new(
    engine: *mut branchline_engine,
    points: branchline_hook_point,
    callbacks: *const branchline_tool_callbacks,
    out_hook: *mut *mut branchline_tool_hook,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        // First of all, so that whatever fails below runs `destroy`.
        let Some(table) = tool::table(callbacks)? else { return Err(invalid("callbacks is NULL")) };
        output::required(out_hook, "out_hook")?;
        let both = BRANCHLINE_HOOK_BEFORE_TOOL | BRANCHLINE_HOOK_AFTER_TOOL;
        if points == 0 || points & !both != 0 {
            return Err(invalid(format!("{points} is no sum of branchline_hook_point")));
        }
        let engine = handle::get::<EngineObject>(engine)?;
        let (before, after) = (points & BRANCHLINE_HOOK_BEFORE_TOOL != 0, points & BRANCHLINE_HOOK_AFTER_TOOL != 0);
        let core = Arc::new(HostHook::new(tool::serve(&engine, table)?, 0, before, after));
        output::handle(out_hook, Handle::new(HookObject { core })?);
        Ok(())
    })
}

/// Lets go of a hook. Sessions that have it keep it; `destroy` runs when none does any more, at the latest at the end of
/// its engine. NULL is fine.
///
/// Ownership: takes `hook`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_tool_hook_free(hook: *mut branchline_tool_hook) -> branchline_status {
    export!(std::ptr::null_mut(), { handle::take::<HookObject>(hook).map(drop) })
}
