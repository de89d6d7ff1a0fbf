//! `branchline_call`: a tool call that runs by itself, on a thread of its own.

use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, OnceLock};

use branchline_core::json;
use branchline_core::tools::{CancelCall, PendingCall, ToolResult};

use crate::block_on::{BRANCHLINE_WAIT_FOREVER, Deadline, block_on};
use crate::boundary::export;
use crate::callbacks;
use crate::error::{Failure, branchline_error};
use crate::finished::{self, Flag, Threads, Worker};
use crate::handle::{self, Handle, Object, Table};
use crate::input::{self, Versioned};
use crate::output::{self, c_string};
use crate::status::branchline_status;

/// A tool call under way, or over.
pub struct branchline_call {
    _opaque: [u8; 0],
}

/// The functions of a host for one tool call. Start from `BRANCHLINE_CALL_CALLBACKS_INIT`; each may be NULL.
///
/// They are called on a thread of the library, one at a time. Everything may be called from inside. They must return
/// normally: no exception, no longjmp.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_call_callbacks {
    /// `sizeof(branchline_call_callbacks)`.
    pub struct_size: usize,
    /// Passed to the functions below; the library does not look at it.
    pub user_data: *mut c_void,
    /// Called with partial results, each of which replaces the ones before it. The string lives until it returns.
    pub on_progress: Option<unsafe extern "C" fn(user_data: *mut c_void, partial_json: *const c_char)>,
    /// Called once with the result. The string lives until it returns.
    pub on_done: Option<unsafe extern "C" fn(user_data: *mut c_void, result_json: *const c_char)>,
    /// Called exactly once when the library will not use this table any more, also when the call could not be started.
    pub destroy: Option<unsafe extern "C" fn(user_data: *mut c_void)>,
}

// SAFETY: repr(C), size first, pointers and integers only, laid out without padding; all zeros is valid.
unsafe impl Versioned for branchline_call_callbacks {
    const NAME: &'static str = "branchline_call_callbacks";
}

/// A host's table. Dropping it runs `destroy`: that is how it runs exactly once on every path.
pub(crate) struct CallTable(branchline_call_callbacks);

// SAFETY: the contract of the table is that the library may call it from its own threads.
unsafe impl Send for CallTable {}

impl Drop for CallTable {
    fn drop(&mut self) {
        if let Some(destroy) = self.0.destroy {
            // SAFETY: the host's function, called as the header says.
            unsafe { destroy(self.0.user_data) };
        }
    }
}

impl CallTable {
    /// # Safety
    /// `table` is NULL or as the header demands.
    pub(crate) unsafe fn read(table: *const branchline_call_callbacks) -> Result<Option<CallTable>, Failure> {
        // SAFETY: as this function's.
        Ok(unsafe { input::read(table) }?.map(CallTable))
    }
}

/// A result or partial result as the host gets it.
pub(crate) fn result_json(result: &ToolResult) -> CString {
    c_string(json::to_string(&result.to_host_value()))
}

/// Runs a call on the calling thread, telling of progress.
pub(crate) fn run(mut call: PendingCall, mut progress: impl FnMut(&CString)) -> ToolResult {
    while let Some(partial) = block_on(call.next_update()) {
        progress(&result_json(&partial));
    }
    block_on(call.result())
}

/// What the thread and those who wait for it share.
struct Running {
    key: u64,
    cancel: CancelCall,
    result: OnceLock<CString>,
    done: Flag,
    finished: Flag,
}

impl Running {
    fn run(&self, call: PendingCall, table: Option<&CallTable>) {
        let tell = |tell: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>, json: &CString| {
            if let (Some(tell), Some(table)) = (tell, table) {
                // SAFETY: the host's function, called as the header says.
                callbacks::inside(self.key, || unsafe { tell(table.0.user_data, json.as_ptr()) });
            }
        };
        let on_progress = table.and_then(|table| table.0.on_progress);
        let result = match on_progress {
            Some(_) => run(call, |partial| tell(on_progress, partial)),
            None => block_on(call.result()),
        };
        let json = self.result.get_or_init(|| result_json(&result));
        self.done.set();
        tell(table.and_then(|table| table.0.on_done), json);
    }
}

impl Worker for Running {
    fn stop(&self) {
        self.cancel.cancel();
    }

    fn wait_finished(&self, deadline: Deadline) -> bool {
        self.finished.wait(deadline)
    }
}

pub(crate) struct CallObject(Arc<Running>);

impl Drop for CallObject {
    /// The host let go of the call.
    fn drop(&mut self) {
        self.0.cancel.cancel();
    }
}

static CALLS: Table<CallObject> = Table::new();

impl Object for CallObject {
    type C = branchline_call;
    const KIND: usize = 8;
    const NAME: &'static str = "call";
    fn table() -> &'static Table<Self> {
        &CALLS
    }
}

/// Starts the thread of a call. On failure the table is dropped, which runs `destroy`.
///
/// # Safety
/// `out` is NULL or valid for writing.
pub(crate) unsafe fn start(
    threads: &Threads,
    call: PendingCall,
    table: Option<CallTable>,
    out: *mut *mut branchline_call,
) -> Result<(), Failure> {
    let running = Arc::new(Running {
        key: callbacks::next_key(),
        cancel: call.cancel_token(),
        result: OnceLock::new(),
        done: Flag::default(),
        finished: Flag::default(),
    });
    // Made first: what is handed out must exist when the thread begins.
    let handle = (!out.is_null()).then(|| Handle::new(CallObject(running.clone()))).transpose()?;
    let theirs = running.clone();
    let thread = finished::spawn(move || {
        // Set up as a guard, so that a fault of ours cannot leave someone waiting for ever.
        struct Ended(Arc<Running>);
        impl Drop for Ended {
            fn drop(&mut self) {
                self.0.done.set();
                self.0.finished.set();
            }
        }
        let ended = Ended(theirs);
        ended.0.run(call, table.as_ref());
        callbacks::inside(ended.0.key, || drop(table));
    })?;
    threads.add(running, thread);
    if let Some(handle) = handle {
        // SAFETY: as this function's.
        unsafe { output::handle(out, handle) };
    }
    Ok(())
}

/// Waits for the result of a call, at most `timeout_ms` milliseconds; 0 asks whether it is there. It may be asked for
/// again.
///
/// Ownership: borrows `call`; `out_json` (may be NULL) is yours: free it with branchline_string_free.
/// Threads: any that may block, also from inside `on_done` of the same call.
/// Errors: TIMEOUT without an error object; INTERNAL, INVALID_HANDLE, INVALID_ARGUMENT, FORKED, WOULD_DEADLOCK for waiting
/// inside `on_progress` of the same call. A tool that failed is a result with `"isError":true`, and OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_call_wait(
    call: *const branchline_call,
    timeout_ms: u32,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let call = handle::get::<CallObject>(call)?;
        if timeout_ms == BRANCHLINE_WAIT_FOREVER && callbacks::current() == Some(call.0.key) && !call.0.done.is_set() {
            let text = "waiting here would wait for this callback; return from it and wait on another thread";
            return Err(Failure::new(branchline_status::WOULD_DEADLOCK, text));
        }
        if !call.0.done.wait(Deadline::from_ms(timeout_ms)) {
            return Err(branchline_status::TIMEOUT.into());
        }
        let lost = || Failure::new(branchline_status::INTERNAL, "the call ended without a result");
        output::string(out_json, Some(call.0.result.get().ok_or_else(lost)?.to_bytes()));
        Ok(())
    })
}

/// Tells a call to end. It then has an error result, soon. More than once is fine, and so is a call that is over.
///
/// Ownership: borrows `call`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, INVALID_ARGUMENT, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_call_cancel(
    call: *mut branchline_call,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        handle::get::<CallObject>(call)?.0.cancel.cancel();
        Ok(())
    })
}

/// Frees a call. One that is not over is told to end; its callbacks are called for what happens until then. NULL is fine.
///
/// Ownership: takes `call`.
/// Threads: any, also from inside callbacks. Does not wait.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_call_free(call: *mut branchline_call) -> branchline_status {
    export!(std::ptr::null_mut(), { handle::take::<CallObject>(call).map(drop) })
}
