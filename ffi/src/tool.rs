//! `branchline_tool`: a tool of the host's, for the sessions and toolboxes of an engine.
//!
//! Each tool has an ordinary thread of its own that takes its requests and calls the host, as a subscription has: a
//! callback that takes long holds up its own tool and nothing else.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Weak};

use branchline_core::host::{self, Asker, HostTool, Notice, RequestKind, Requests};
use branchline_core::tools::{Tool, ToolDefinition};

use crate::block_on::{Deadline, block_on};
use crate::boundary::export;
use crate::callbacks;
use crate::engine::{EngineObject, branchline_engine};
use crate::error::{Failure, branchline_error};
use crate::finished::{self, Flag, Worker};
use crate::handle::{self, Handle, Object, Table};
use crate::input::{self, Versioned, invalid};
use crate::output;
use crate::request::{RequestObject, branchline_request};
use crate::status::branchline_status;

/// A tool of the host's. It may be used in any number of sessions and toolboxes of its engine.
pub struct branchline_tool {
    _opaque: [u8; 0],
}

/// The functions of a host for one tool, or for the questions of one policy. Start from `BRANCHLINE_TOOL_CALLBACKS_INIT`.
///
/// They are called on a thread of the library, one at a time for each tool, so a call that takes long holds up the next
/// call of the same tool: to have them side by side, keep the request, return, and answer from elsewhere. Everything may
/// be called from inside, but waiting for the session that made the call is refused. They must return normally: no
/// exception, no longjmp.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_tool_callbacks {
    /// `sizeof(branchline_tool_callbacks)`.
    pub struct_size: usize,
    /// Passed to the functions below; the library does not look at it.
    pub user_data: *mut c_void,
    /// Called for each call of the tool, or each question. The request is the host's: it must be answered and freed, here or later.
    pub on_call: Option<unsafe extern "C" fn(user_data: *mut c_void, request: *mut branchline_request)>,
    /// Called when the answer to a request that was not freed yet is not wanted any more; may be NULL. The request still
    /// has to be freed.
    pub on_cancel: Option<unsafe extern "C" fn(user_data: *mut c_void, request: *mut branchline_request)>,
    /// Called exactly once when the library will not use this table any more, also when branchline_tool_new failed; may
    /// be NULL.
    pub destroy: Option<unsafe extern "C" fn(user_data: *mut c_void)>,
}

// SAFETY: repr(C), size first, pointers and integers only, laid out without padding; all zeros is valid.
unsafe impl Versioned for branchline_tool_callbacks {
    const NAME: &'static str = "branchline_tool_callbacks";
}

/// A host's table. Dropping it runs `destroy`: that is how it runs exactly once on every path.
pub(crate) struct ToolTable(branchline_tool_callbacks);

// SAFETY: the contract of the table is that the library may call it from its own threads.
unsafe impl Send for ToolTable {}

impl Drop for ToolTable {
    fn drop(&mut self) {
        if let Some(destroy) = self.0.destroy {
            // SAFETY: the host's function, called as the header says.
            unsafe { destroy(self.0.user_data) };
        }
    }
}

impl ToolTable {
    fn on_call(&self, request: *mut branchline_request) {
        if let Some(on_call) = self.0.on_call {
            // SAFETY: the host's function, called as the header says.
            unsafe { on_call(self.0.user_data, request) };
        }
    }

    fn on_cancel(&self, request: *mut branchline_request) {
        if let Some(on_cancel) = self.0.on_cancel {
            // SAFETY: the host's function, called as the header says.
            unsafe { on_cancel(self.0.user_data, request) };
        }
    }
}

/// Where a tool's requests are handed to the host. It ends when nothing can call the tool any more, or with its engine.
struct Desk {
    requests: Requests,
    finished: Flag,
}

impl Worker for Desk {
    fn stop(&self) {
        self.requests.close();
    }

    fn wait_finished(&self, deadline: Deadline) -> bool {
        self.finished.wait(deadline)
    }
}

impl Desk {
    fn run(&self, table: &ToolTable, key: u64) {
        // The requests the host has not freed, so that it can be told of a cancellation by the handle it knows.
        let mut open: HashMap<u64, (usize, Weak<RequestObject>)> = HashMap::new();
        while let Some(notice) = block_on(self.requests.next()) {
            match notice {
                Notice::Asked(request) if request.is_cancelled() => {}
                Notice::Asked(request) => {
                    let session = match request.kind() {
                        RequestKind::Key | RequestKind::Login | RequestKind::Payload => callbacks::ANY,
                        _ => request.session_id(),
                    };
                    let (id, session, sibling) = (request.id(), session.to_owned(), request.sibling());
                    request.within(|request| {
                        let object = Arc::new(RequestObject::new(request));
                        let weak = Arc::downgrade(&object);
                        let Ok(handle) = Handle::from_arc(object) else { return };
                        open.retain(|_, (_, request)| request.strong_count() > 0);
                        open.insert(id, (handle.token().addr(), weak));
                        let call = || table.on_call(handle.into_token());
                        callbacks::inside(key, || callbacks::serving(session, sibling, call));
                    });
                }
                Notice::Cancelled(id) => {
                    let Some((token, request)) = open.remove(&id) else { continue };
                    if request.strong_count() > 0 {
                        let token = std::ptr::without_provenance_mut(token);
                        callbacks::inside(key, || table.on_cancel(token));
                    }
                }
            }
        }
    }
}

pub(crate) struct ToolObject {
    pub(crate) core: Arc<dyn Tool>,
}

static TOOLS: Table<ToolObject> = Table::new();

impl Object for ToolObject {
    type C = branchline_tool;
    const KIND: usize = 10;
    const NAME: &'static str = "tool";
    fn table() -> &'static Table<Self> {
        &TOOLS
    }
}

/// The tool behind a handle.
pub(crate) fn core(tool: *const branchline_tool) -> Result<Arc<dyn Tool>, Failure> {
    Ok(handle::get::<ToolObject>(tool)?.core.clone())
}

/// The tools behind a list of handles.
///
/// # Safety
/// `list` is NULL or valid for `count` pointers.
pub(crate) unsafe fn list(list: *const *mut branchline_tool, count: usize) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    // SAFETY: as this function's.
    unsafe { input::handles(list, count, "custom_tools") }?.iter().map(|tool| core(*tool)).collect()
}

/// # Safety
/// `table` and `out` are NULL or as the header demands.
unsafe fn make<'a>(
    engine: *mut branchline_engine,
    definition: impl FnOnce() -> Result<&'a str, Failure>,
    table: *const branchline_tool_callbacks,
    out: *mut *mut branchline_tool,
) -> Result<(), Failure> {
    // First of all, so that whatever fails below runs `destroy`.
    // SAFETY: as this function's.
    let Some(table) = unsafe { self::table(table) }? else { return Err(invalid("callbacks is NULL")) };
    output::required(out, "out_tool")?;
    let engine = handle::get::<EngineObject>(engine)?;
    let definition = ToolDefinition::from_host_value(input::json(definition()?, "definition_json")?)?;
    let core = HostTool::with_definition(definition, serve(&engine, table)?, 0);
    let tool = Handle::new(ToolObject { core: Arc::new(core) })?;
    // SAFETY: as this function's.
    unsafe { output::handle(out, tool) };
    Ok(())
}

/// A host's table; `None` for NULL.
///
/// # Safety
/// `table` is NULL or as the header demands.
pub(crate) unsafe fn table(table: *const branchline_tool_callbacks) -> Result<Option<ToolTable>, Failure> {
    // SAFETY: as this function's.
    let Some(table) = unsafe { input::read(table) }?.map(ToolTable) else { return Ok(None) };
    match table.0.on_call {
        Some(_) => Ok(Some(table)),
        None => Err(invalid("on_call is NULL")),
    }
}

/// Has a thread hand over what is asked to the functions of `table`, until nobody can ask any more.
pub(crate) fn serve(engine: &EngineObject, table: ToolTable) -> Result<Asker, Failure> {
    let (asker, requests) = host::requests();
    serve_queue(engine, table, requests)?;
    Ok(asker)
}

/// The same for a queue that is there.
pub(crate) fn serve_queue(engine: &EngineObject, table: ToolTable, requests: Requests) -> Result<(), Failure> {
    let desk = Arc::new(Desk { requests, finished: Flag::default() });
    let theirs = desk.clone();
    let thread = finished::spawn(move || {
        // Set up as a guard, so that a fault of ours cannot leave someone waiting for ever.
        struct Finished(Arc<Desk>);
        impl Drop for Finished {
            fn drop(&mut self) {
                self.0.finished.set();
            }
        }
        let finished = Finished(theirs);
        let key = callbacks::next_key();
        finished.0.run(&table, key);
        callbacks::inside(key, || drop(table));
    })?;
    engine.threads.add(desk, thread);
    Ok(())
}

/// Makes a tool of the host's. `definition_json` is `{"name","description","parameters"?,"executionMode"?,"snippet"?,
/// "guidelines"?,"effect"?,"pathArguments"?}`: `parameters` is the JSON schema of an object; `executionMode` is "parallel" (the default) or
/// "sequential", which makes a model's calls run one after the other when this tool is among them; `snippet` and
/// `guidelines` go to the system prompt. Permissions go by `effect`, "read", "write" or "execute" (anything, the
/// default), and look at where the arguments named in `pathArguments` lead.
///
/// Ownership: borrows `engine`, `definition_json` and `callbacks`, whose content is copied; `user_data` is the library's
/// until `destroy`. `out_tool` is yours: free it with branchline_tool_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_tool_new(
    engine: *mut branchline_engine,
    definition_json: *const c_char,
    callbacks: *const branchline_tool_callbacks,
    out_tool: *mut *mut branchline_tool,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { make(engine, || input::text(definition_json, "definition_json"), callbacks, out_tool) })
}

/// branchline_tool_new for a definition that is not NUL-terminated.
///
/// Ownership: as branchline_tool_new.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_tool_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_tool_new_n(
    engine: *mut branchline_engine,
    definition_json: *const c_char,
    length: usize,
    callbacks: *const branchline_tool_callbacks,
    out_tool: *mut *mut branchline_tool,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { make(engine, || input::text_n(definition_json, length, "definition_json"), callbacks, out_tool) })
}

/// Adds a tool for the sessions and toolboxes made from now on, replacing one of the same name, also a built-in one.
///
/// Ownership: borrows everything; the engine keeps what it needs of `tool`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_add_tool(
    engine: *mut branchline_engine,
    tool: *mut branchline_tool,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let engine = handle::get::<EngineObject>(engine)?;
        engine.core.add_tool(core(tool)?);
        Ok(())
    })
}

/// Lets go of a tool. What uses it goes on using it; `destroy` runs when nothing does any more, at the latest at the end
/// of its engine. NULL is fine.
///
/// Ownership: takes `tool`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_tool_free(tool: *mut branchline_tool) -> branchline_status {
    export!(std::ptr::null_mut(), { handle::take::<ToolObject>(tool).map(drop) })
}
