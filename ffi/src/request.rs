//! `branchline_request`: a question to the host, which it answers when it likes, from any thread.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use branchline_core::host::{Request, RequestKind};
use branchline_core::json;

use crate::boundary::{export, peek};
use crate::error::{Failure, branchline_error};
use crate::handle::{self, Object, Table};
use crate::input;
use crate::output::c_string;
use crate::status::branchline_status;

/// A question to the host: run this tool, answer as this model. It is answered once, from any thread, inside the callback that brought it or
/// any time later, and freed once. Freed without an answer, what it is about fails. The accessors never fail: for what is
/// no live request they give 0, false or NULL.
pub struct branchline_request {
    _opaque: [u8; 0],
}

/// What a question is about. New numbers are added: answer what you do not know with branchline_request_fail.
/// cbindgen:prefix-with-name=false
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum branchline_request_kind {
    /// Not a live request.
    BRANCHLINE_REQUEST_NONE = 0,
    /// Run a tool. The answer is its result.
    BRANCHLINE_REQUEST_TOOL = 1,
    /// May this call of a tool run? See branchline_permissions_new.
    BRANCHLINE_REQUEST_PERMISSION = 2,
    /// A tool is about to be called. See branchline_tool_hook_new.
    BRANCHLINE_REQUEST_BEFORE_TOOL = 3,
    /// A tool has been called. See branchline_tool_hook_new.
    BRANCHLINE_REQUEST_AFTER_TOOL = 4,
    /// Answer as a model of the host's. See branchline_engine_add_host_provider.
    BRANCHLINE_REQUEST_MODEL = 5,
    /// Which key is it? See branchline_engine_set_key_source.
    BRANCHLINE_REQUEST_KEY = 6,
    /// Make a login anew. See branchline_engine_set_login_source.
    BRANCHLINE_REQUEST_LOGIN = 7,
    /// What shall be sent to a service? See branchline_engine_set_payload_hook.
    BRANCHLINE_REQUEST_PAYLOAD = 8,
    /// Something this header has no number for.
    BRANCHLINE_REQUEST_OTHER = 1000,
}

pub(crate) struct RequestObject {
    core: Request,
    strings: [OnceLock<CString>; 5],
}

/// Places in `strings`.
const NAME: usize = 0;
const CALL_ID: usize = 1;
const SESSION_ID: usize = 2;
const CWD: usize = 3;
const ARGUMENTS: usize = 4;

static REQUESTS: Table<RequestObject> = Table::new();

impl Object for RequestObject {
    type C = branchline_request;
    const KIND: usize = 9;
    const NAME: &'static str = "request";
    fn table() -> &'static Table<Self> {
        &REQUESTS
    }
}

impl RequestObject {
    pub(crate) fn new(core: Request) -> RequestObject {
        RequestObject { core, strings: [const { OnceLock::new() }; 5] }
    }

    pub(crate) fn core(&self) -> &Request {
        &self.core
    }

    fn string(&self, place: usize) -> *const c_char {
        let make = || match place {
            NAME => c_string(self.core.name()),
            CALL_ID => c_string(self.core.call_id()),
            SESSION_ID => c_string(self.core.session_id()),
            CWD => c_string(self.core.cwd().as_os_str().as_bytes()),
            _ => c_string(json::to_string(self.core.arguments())),
        };
        self.strings[place].get_or_init(make).as_ptr()
    }
}

/// An accessor of a text: NULL for what is no live request.
fn text(request: *const branchline_request, place: usize) -> Option<*const c_char> {
    handle::peek::<RequestObject>(request).map(|request| request.string(place))
}

/// What it is about.
///
/// Ownership: borrows `request`.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_type(request: *const branchline_request) -> branchline_request_kind {
    use branchline_request_kind as Kind;
    peek(Kind::BRANCHLINE_REQUEST_NONE, || {
        handle::peek::<RequestObject>(request).map(|request| match request.core.kind() {
            RequestKind::Tool => Kind::BRANCHLINE_REQUEST_TOOL,
            RequestKind::Permission => Kind::BRANCHLINE_REQUEST_PERMISSION,
            RequestKind::BeforeTool => Kind::BRANCHLINE_REQUEST_BEFORE_TOOL,
            RequestKind::AfterTool => Kind::BRANCHLINE_REQUEST_AFTER_TOOL,
            RequestKind::Model => Kind::BRANCHLINE_REQUEST_MODEL,
            RequestKind::Key => Kind::BRANCHLINE_REQUEST_KEY,
            RequestKind::Login => Kind::BRANCHLINE_REQUEST_LOGIN,
            RequestKind::Payload => Kind::BRANCHLINE_REQUEST_PAYLOAD,
            _ => Kind::BRANCHLINE_REQUEST_OTHER,
        })
    })
}

/// The name of the tool, of the model that is to answer or that a payload is for, or of the provider whose key or login is
/// wanted.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_name(request: *const branchline_request) -> *const c_char {
    peek(std::ptr::null(), || text(request, NAME))
}

/// What is asked, as JSON. Of a tool call its arguments: an object that fits the tool's schema.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_arguments(request: *const branchline_request) -> *const c_char {
    peek(std::ptr::null(), || text(request, ARGUMENTS))
}

/// The id of the tool call, as the model gave it and events carry it; empty when no model calls.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_call_id(request: *const branchline_request) -> *const c_char {
    peek(std::ptr::null(), || text(request, CALL_ID))
}

/// The id of the session that asks; empty for a toolbox and for a key.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_session_id(request: *const branchline_request) -> *const c_char {
    peek(std::ptr::null(), || text(request, SESSION_ID))
}

/// Which of the sessions over its tree asks: they share one id, see branchline_event_sibling. 0 for a toolbox and for a key.
///
/// Ownership: none.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_sibling(request: *const branchline_request) -> u32 {
    peek(0, || handle::peek::<RequestObject>(request).map(|request| request.core.sibling()))
}

/// The working directory of the session or toolbox that calls a tool, an absolute path as the operating system takes it;
/// empty for other questions.
///
/// Ownership: the string belongs to `request` and lives as long as it.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_cwd(request: *const branchline_request) -> *const c_char {
    peek(std::ptr::null(), || text(request, CWD))
}

/// Whether the answer is not wanted any more: the call was aborted or its session closed. Stop the work and free the
/// request; an answer would go nowhere.
///
/// Ownership: borrows `request`.
/// Threads: any.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_is_cancelled(request: *const branchline_request) -> bool {
    peek(false, || handle::peek::<RequestObject>(request).map(|request| request.core.is_cancelled()))
}

fn complete(request: *mut branchline_request, json: &str) -> Result<(), Failure> {
    let request = handle::get::<RequestObject>(request)?;
    Ok(request.core.complete(input::json(json, "result_json")?)?)
}

/// Answers. The result of a tool is JSON: a string; a list of content blocks `{"type":"text","text":...}` or
/// `{"type":"image","data":...,"mimeType":...}`; `{"content":..., "details"?, "structuredContent"?, "isError"?,
/// "terminate"?}`; or any other value, which the model gets as JSON text. Answers to other questions are described where
/// those come from.
///
/// Ownership: borrows everything; `request` still has to be freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_ARGUMENT when it is no result (the request stays open) or was answered before; CANCELLED when nobody
/// waits any more; INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_complete(
    request: *mut branchline_request,
    result_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { complete(request, input::text(result_json, "result_json")?) })
}

/// branchline_request_complete for a text that is not NUL-terminated.
///
/// Ownership: borrows everything; `request` still has to be freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: as branchline_request_complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_complete_n(
    request: *mut branchline_request,
    result_json: *const c_char,
    length: usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { complete(request, input::text_n(result_json, length, "result_json")?) })
}

fn fail(request: *mut branchline_request, message: &str) -> Result<(), Failure> {
    Ok(handle::get::<RequestObject>(request)?.core.fail(message)?)
}

/// Answers that it failed. The model reads the message of a tool.
///
/// Ownership: borrows everything; `request` still has to be freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_ARGUMENT when it was answered before; CANCELLED when nobody waits any more; INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_fail(
    request: *mut branchline_request,
    message: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { fail(request, input::text(message, "message")?) })
}

/// branchline_request_fail for a text that is not NUL-terminated or holds NUL.
///
/// Ownership: borrows everything; `request` still has to be freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: as branchline_request_fail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_fail_n(
    request: *mut branchline_request,
    message: *const c_char,
    length: usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { fail(request, input::text_n(message, length, "message")?) })
}

fn progress(request: *mut branchline_request, json: &str) -> Result<(), Failure> {
    let request = handle::get::<RequestObject>(request)?;
    // An update that found no room is replaced by the next one anyway.
    request.core.progress(input::json(json, "partial_json")?)?;
    Ok(())
}

/// Tells how far a tool is, in the form of a result. Each update replaces the ones before it; one is left out when the
/// reader is behind or the request is over. Does not wait.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_progress(
    request: *mut branchline_request,
    partial_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { progress(request, input::text(partial_json, "partial_json")?) })
}

/// branchline_request_progress for a text that is not NUL-terminated.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: as branchline_request_progress.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_progress_n(
    request: *mut branchline_request,
    partial_json: *const c_char,
    length: usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { progress(request, input::text_n(partial_json, length, "partial_json")?) })
}

/// Frees a request. If it was not answered, what it is about fails. NULL is fine.
///
/// Ownership: takes `request` and with it its strings.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_free(request: *mut branchline_request) -> branchline_status {
    export!(std::ptr::null_mut(), { handle::take::<RequestObject>(request).map(drop) })
}
