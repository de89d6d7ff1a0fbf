//! `branchline_toolbox`: the tools in a directory as functions, without a session.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use branchline_core::tools::{PendingCall, Toolbox};
use serde_json::Value;

use crate::boundary::{export, gives_json};
use crate::call::{self, CallTable, branchline_call, branchline_call_callbacks};
use crate::engine::{EngineObject, branchline_engine};
use crate::error::{Failure, branchline_error};
use crate::finished::Threads;
use crate::handle::{self, Handle, Object, Table};
use crate::input;
use crate::options::{self, branchline_toolbox_options};
use crate::output;
use crate::status::branchline_status;
use crate::tool::{self, branchline_tool};

/// The tools of an engine in a directory, to be called by the host.
pub struct branchline_toolbox {
    _opaque: [u8; 0],
}

pub(crate) struct ToolboxObject {
    pub(crate) core: Toolbox,
    threads: Arc<Threads>,
}

static TOOLBOXES: Table<ToolboxObject> = Table::new();

impl Object for ToolboxObject {
    type C = branchline_toolbox;
    const KIND: usize = 7;
    const NAME: &'static str = "toolbox";
    fn table() -> &'static Table<Self> {
        &TOOLBOXES
    }
}

impl ToolboxObject {
    /// Prepares a call; NULL arguments are none.
    fn prepare(&self, name: &str, arguments: Option<&str>) -> Result<PendingCall, Failure> {
        let arguments = match arguments {
            Some(text) => input::json(text, "arguments_json")?,
            None => Value::Object(serde_json::Map::new()),
        };
        if self.core.is_closed() {
            let text = "the engine of this toolbox was shut down; create another";
            return Err(Failure::new(branchline_status::CLOSED, text));
        }
        Ok(self.core.start(name, arguments))
    }
}

/// Makes a toolbox with the tools of an engine: the built-in ones and those it was given. `options` may be NULL.
///
/// Ownership: borrows `engine` and `options`; `out_toolbox` is yours: free it with branchline_toolbox_free. It may outlive
/// the engine, whose end ends its calls.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_toolbox_new(
    engine: *mut branchline_engine,
    options: *const branchline_toolbox_options,
    out_toolbox: *mut *mut branchline_toolbox,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_toolbox, "out_toolbox")?;
        let engine = handle::get::<EngineObject>(engine)?;
        let core = engine.core.toolbox(options::toolbox(options)?);
        output::handle(out_toolbox, Handle::new(ToolboxObject { core, threads: engine.threads.clone() })?);
        Ok(())
    })
}

/// Frees a toolbox. Calls under way go on. NULL is fine.
///
/// Ownership: takes `toolbox`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_toolbox_free(toolbox: *mut branchline_toolbox) -> branchline_status {
    export!(std::ptr::null_mut(), { handle::take::<ToolboxObject>(toolbox).map(drop) })
}

/// Adds a tool of the host's to a toolbox, replacing one of the same name.
///
/// Ownership: borrows everything; the toolbox keeps what it needs of `tool`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_toolbox_add_tool(
    toolbox: *mut branchline_toolbox,
    tool: *mut branchline_tool,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let toolbox = handle::get::<ToolboxObject>(toolbox)?;
        toolbox.core.add(tool::core(tool)?);
        Ok(())
    })
}

/// What can be called, by name: a JSON list of `{"name","description","parameters",...}`, as branchline_tool_new takes
/// them.
///
/// Ownership: borrows `toolbox`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_toolbox_definitions(
    toolbox: *const branchline_toolbox,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, {
        let toolbox = handle::get::<ToolboxObject>(toolbox)?;
        toolbox.core.definitions().iter().map(|tool| tool.to_host_value()).collect::<Vec<Value>>()
    })
}

/// A function that is told of progress.
type OnProgress = Option<unsafe extern "C" fn(user_data: *mut c_void, partial_json: *const c_char)>;

/// # Safety
/// As the header demands of the functions below.
unsafe fn run(
    toolbox: *mut branchline_toolbox,
    name: *const c_char,
    arguments: Option<&str>,
    on_progress: OnProgress,
    user_data: *mut c_void,
    out_json: *mut *mut c_char,
) -> Result<(), Failure> {
    output::required(out_json, "out_json")?;
    let toolbox = handle::get::<ToolboxObject>(toolbox)?;
    // SAFETY: as this function's.
    let call = toolbox.prepare(unsafe { input::text(name, "name") }?, arguments)?;
    let result = call::run(call, |partial| {
        if let Some(on_progress) = on_progress {
            // SAFETY: the host's function, called as the header says.
            unsafe { on_progress(user_data, partial.as_ptr()) };
        }
    });
    // SAFETY: as this function's.
    unsafe { output::string(out_json, Some(call::result_json(&result).into_bytes())) };
    Ok(())
}

/// Calls a tool and waits for its result, however long that takes: `{"content":[...],"details"?,"structuredContent"?,
/// "usage"?,"terminate"?,"isError"}`. `arguments_json` is an object; NULL is an empty one. A call that could be cancelled,
/// or that others should not wait for, is branchline_toolbox_start.
///
/// `on_progress` (may be NULL) is called with partial results on the calling thread, each replacing the ones before it;
/// the string lives until it returns. It must return normally.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any that may block, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED. An unknown tool, arguments that do not fit and a tool that
/// fails are results with `"isError":true`, and OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_toolbox_call(
    toolbox: *mut branchline_toolbox,
    name: *const c_char,
    arguments_json: *const c_char,
    on_progress: Option<unsafe extern "C" fn(user_data: *mut c_void, partial_json: *const c_char)>,
    user_data: *mut c_void,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let arguments = input::optional_text(arguments_json, "arguments_json")?;
        run(toolbox, name, arguments, on_progress, user_data, out_json)
    })
}

/// branchline_toolbox_call for arguments that are not NUL-terminated.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any that may block, also from inside callbacks.
/// Errors: as branchline_toolbox_call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_toolbox_call_n(
    toolbox: *mut branchline_toolbox,
    name: *const c_char,
    arguments_json: *const c_char,
    arguments_length: usize,
    on_progress: Option<unsafe extern "C" fn(user_data: *mut c_void, partial_json: *const c_char)>,
    user_data: *mut c_void,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let arguments = input::text_n(arguments_json, arguments_length, "arguments_json")?;
        run(toolbox, name, Some(arguments), on_progress, user_data, out_json)
    })
}

/// # Safety
/// As the header demands of the functions below.
unsafe fn start<'a>(
    toolbox: *mut branchline_toolbox,
    name: *const c_char,
    arguments: impl FnOnce() -> Result<Option<&'a str>, Failure>,
    callbacks: *const branchline_call_callbacks,
    out_call: *mut *mut branchline_call,
) -> Result<(), Failure> {
    // SAFETY: as this function's.
    unsafe {
        // First of all, so that whatever fails below runs `destroy`.
        let table = CallTable::read(callbacks)?;
        let toolbox = handle::get::<ToolboxObject>(toolbox)?;
        let call = toolbox.prepare(input::text(name, "name")?, arguments()?)?;
        call::start(&toolbox.threads, call, table, out_call)
    }
}

/// Starts a call that runs by itself. `callbacks` (may be NULL) are told of progress and of the result; or ask with
/// branchline_call_wait. `arguments_json` is an object; NULL is an empty one.
///
/// Ownership: borrows everything; `callbacks` are copied, `user_data` is the library's until `destroy`. `out_call` (may be
/// NULL) is yours: free it with branchline_call_free, which ends the call.
/// Threads: any, also from inside callbacks. Does not wait. Callbacks may be called before it returns.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED, INTERNAL when a thread cannot be started. `destroy` has run
/// then, unless the table itself cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_toolbox_start(
    toolbox: *mut branchline_toolbox,
    name: *const c_char,
    arguments_json: *const c_char,
    callbacks: *const branchline_call_callbacks,
    out_call: *mut *mut branchline_call,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let arguments = || input::optional_text(arguments_json, "arguments_json");
        start(toolbox, name, arguments, callbacks, out_call)
    })
}

/// branchline_toolbox_start for arguments that are not NUL-terminated.
///
/// Ownership: as branchline_toolbox_start.
/// Threads: any, also from inside callbacks. Does not wait. Callbacks may be called before it returns.
/// Errors: as branchline_toolbox_start.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_toolbox_start_n(
    toolbox: *mut branchline_toolbox,
    name: *const c_char,
    arguments_json: *const c_char,
    arguments_length: usize,
    callbacks: *const branchline_call_callbacks,
    out_call: *mut *mut branchline_call,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let arguments = || input::text_n(arguments_json, arguments_length, "arguments_json").map(Some);
        start(toolbox, name, arguments, callbacks, out_call)
    })
}
