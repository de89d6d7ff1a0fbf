//! `branchline_requests`: a queue of requests, for hosts that take them on a thread of their own instead of being called.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use branchline_core::host::{self, Asker, HostTool, Notice, Requests};

use crate::block_on::{Deadline, block_until};
use crate::boundary::export;
use crate::error::{Failure, branchline_error};
use crate::handle::{self, Handle, Object, Table};
use crate::input;
use crate::output;
use crate::request::{RequestObject, branchline_request};
use crate::status::branchline_status;
use crate::tool::{ToolObject, branchline_tool};

/// A queue of questions to the host, for any number of tools and policies.
pub struct branchline_requests {
    _opaque: [u8; 0],
}

pub(crate) struct RequestsObject {
    asker: Asker,
    requests: Requests,
}

impl RequestsObject {
    /// The end that asks.
    pub(crate) fn asker(&self) -> Asker {
        self.asker.clone()
    }
}

static QUEUES: Table<RequestsObject> = Table::new();

impl Object for RequestsObject {
    type C = branchline_requests;
    const KIND: usize = 11;
    const NAME: &'static str = "requests";
    fn table() -> &'static Table<Self> {
        &QUEUES
    }
}

/// Makes an empty queue.
///
/// Ownership: `out_requests` is yours: free it with branchline_requests_free.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_new(
    out_requests: *mut *mut branchline_requests,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_requests, "out_requests")?;
        let (asker, requests) = host::requests();
        output::handle(out_requests, Handle::new(RequestsObject { asker, requests })?);
        Ok(())
    })
}

/// # Safety
/// `out` is NULL or valid for writing.
unsafe fn tool(
    requests: *mut branchline_requests,
    definition: &str,
    out: *mut *mut branchline_tool,
) -> Result<(), Failure> {
    output::required(out, "out_tool")?;
    let requests = handle::get::<RequestsObject>(requests)?;
    let definition = input::json(definition, "definition_json")?;
    let tool = HostTool::new(definition, requests.asker.clone(), 0)?;
    // SAFETY: as this function's.
    unsafe { output::handle(out, Handle::new(ToolObject { core: Arc::new(tool) })?) };
    Ok(())
}

/// Makes a tool of the host's whose calls come to this queue: tell them apart by branchline_request_name. The definition
/// is as for branchline_tool_new. When the queue is freed, calls fail.
///
/// Ownership: borrows everything; `out_tool` is yours: free it with branchline_tool_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_tool(
    requests: *mut branchline_requests,
    definition_json: *const c_char,
    out_tool: *mut *mut branchline_tool,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { tool(requests, input::text(definition_json, "definition_json")?, out_tool) })
}

/// branchline_requests_tool for a definition that is not NUL-terminated.
///
/// Ownership: borrows everything; `out_tool` is yours: free it with branchline_tool_free.
/// Threads: any, also from inside callbacks.
/// Errors: as branchline_requests_tool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_tool_n(
    requests: *mut branchline_requests,
    definition_json: *const c_char,
    length: usize,
    out_tool: *mut *mut branchline_tool,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { tool(requests, input::text_n(definition_json, length, "definition_json")?, out_tool) })
}

/// Waits for the next request, at most `timeout_ms` milliseconds; 0 does not wait, BRANCHLINE_WAIT_FOREVER has no limit.
/// Whether one that was taken is still wanted tells branchline_request_is_cancelled.
///
/// Ownership: borrows `requests`; `out_request` is yours: answer it, and free it with branchline_request_free.
/// Threads: any that may block, also several at once.
/// Errors: TIMEOUT when none came in time, END when the queue was freed meanwhile (neither comes with an error object);
/// INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_next(
    requests: *mut branchline_requests,
    timeout_ms: u32,
    out_request: *mut *mut branchline_request,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_request, "out_request")?;
        let requests = handle::get::<RequestsObject>(requests)?;
        let deadline = Deadline::from_ms(timeout_ms);
        loop {
            match block_until(requests.requests.next(), deadline) {
                None => return Err(branchline_status::TIMEOUT.into()),
                Some(None) => return Err(branchline_status::END.into()),
                Some(Some(Notice::Asked(request))) if !request.is_cancelled() => {
                    output::handle(out_request, Handle::new(RequestObject::new(request))?);
                    return Ok(());
                }
                Some(Some(_)) => {} // nobody waits for that one any more
            }
        }
    })
}

/// A file descriptor to poll in a loop: readable while something is in the queue. Then call branchline_requests_next with a timeout
/// of 0 until it gives TIMEOUT.
///
/// Ownership: the descriptor belongs to `requests` and is closed when that is freed and nothing asks any more: do not read,
/// write or close it.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, STORAGE_FAILED when the process has no descriptor left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_fd(
    requests: *const branchline_requests,
    out_fd: *mut c_int,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_fd, "out_fd")?;
        output::put(out_fd, handle::get::<RequestsObject>(requests)?.requests.fd()?);
        Ok(())
    })
}

/// Frees a queue. What is in it, and calls to come, fail; requests that were taken can be answered. A thread that waits in
/// branchline_requests_next gets END. NULL is fine.
///
/// Ownership: takes `requests`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_free(requests: *mut branchline_requests) -> branchline_status {
    export!(std::ptr::null_mut(), {
        if let Some(requests) = handle::take::<RequestsObject>(requests)? {
            requests.requests.close();
        }
        Ok(())
    })
}
