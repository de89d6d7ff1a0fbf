//! Models that the host serves, keys that it hands out, its say in what is sent: requests, given to callbacks or put into a
//! queue.

use std::ffi::c_char;
use std::sync::Arc;

use branchline_core::host::{self, Asker, HostKeys, HostPayloads, provider_from_value};
use branchline_core::providers::host::HostProvider;

use crate::boundary::export;
use crate::engine::{EngineObject, branchline_engine};
use crate::error::{Failure, branchline_error};
use crate::handle;
use crate::input::{self, invalid};
use crate::request::{RequestObject, branchline_request};
use crate::requests::{RequestsObject, branchline_requests};
use crate::status::branchline_status;
use crate::tool::{self, branchline_tool_callbacks};

/// The provider of a definition.
///
/// # Safety
/// `definition_json` is NULL or a string.
unsafe fn provider(definition_json: *const c_char, asker: Asker) -> Result<Arc<HostProvider>, Failure> {
    // SAFETY: as this function's.
    let definition = unsafe { input::text(definition_json, "definition_json") }?;
    let definition = input::json(definition, "definition_json")?;
    Ok(Arc::new(provider_from_value(definition, asker, 0)?))
}

/// Adds a provider whose models the host answers, replacing one of the same name. `definition_json` is `{"name","models":[ID
/// or {"id","name"?,"contextWindow"?,"maxTokens"?,"input"?:["text","image"],"reasoning"?,"thinkingLevels"?:[...],
/// "cost"?:{...},"api"?}]}`; sessions choose "NAME/ID". `on_call` gets each request of a session as a request of type
/// BRANCHLINE_REQUEST_MODEL: its name is the model's, its arguments are `{"provider","model","api","systemPrompt",
/// "messages","tools","thinkingLevel","sessionId","purpose","maxTokens"?,"temperature"?}`. Write the answer with
/// branchline_request_push as it comes, and end it with branchline_request_complete: `null` ends it, a text or an event, or
/// a list of them, is written first. One that fails, or is freed before its answer was ended, is a failed response.
///
/// Ownership: borrows `engine`, `definition_json` and `callbacks`, whose content is copied; `user_data` is the library's
/// until `destroy`, which runs when the provider was replaced and answers nothing any more, or with the engine.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one request at a time: keep the
/// request and return to answer several at once. `on_cancel` tells of aborts.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_add_host_provider(
    engine: *mut branchline_engine,
    definition_json: *const c_char,
    callbacks: *const branchline_tool_callbacks,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        // First of all, so that whatever fails below runs `destroy`.
        let Some(table) = tool::table(callbacks)? else { return Err(invalid("callbacks is NULL")) };
        let engine = handle::get::<EngineObject>(engine)?;
        let (asker, requests) = host::requests();
        let provider = provider(definition_json, asker)?;
        tool::serve_queue(&engine, table, requests)?;
        engine.core.add_provider(provider);
        Ok(())
    })
}

/// Adds a provider whose models are answered by whoever takes requests from a queue. The definition, the requests and the
/// answers are as for branchline_engine_add_host_provider. When the queue is freed, responses fail.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_host_provider(
    requests: *mut branchline_requests,
    engine: *mut branchline_engine,
    definition_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let requests = handle::get::<RequestsObject>(requests)?;
        handle::get::<EngineObject>(engine)?.core.add_provider(provider(definition_json, requests.asker())?);
        Ok(())
    })
}

/// An engine, and the queue that `callbacks` serve on a thread of it; none for NULL.
pub(crate) unsafe fn asker(
    engine: *mut branchline_engine,
    callbacks: *const branchline_tool_callbacks,
) -> Result<(Arc<EngineObject>, Option<Asker>), Failure> {
    // SAFETY: as this function's.
    let table = unsafe { tool::table(callbacks) }?;
    let engine = handle::get::<EngineObject>(engine)?;
    let asker = table.map(|table| tool::serve(&engine, table)).transpose()?;
    Ok((engine, asker))
}

/// Asks the host for keys from the next request to a service on, after those of branchline_engine_set_key and before all
/// others; with NULL it is not asked any more. `on_call` gets each question as a request of type BRANCHLINE_REQUEST_KEY: its
/// name is the provider's, its arguments are `{"provider","model","baseUrl"}`. Answer with branchline_request_complete and the
/// key as a JSON text, `{"key","bearer"?}`, or `null` for "look elsewhere". A question that fails, or is freed without an
/// answer, fails the request to the service. Keys are in no error, event, recording or session file.
///
/// Ownership: borrows `engine` and `callbacks`, whose content is copied; `user_data` is the library's until `destroy`, which
/// runs when another source took its place, or with the engine.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_set_key_source(
    engine: *mut branchline_engine,
    callbacks: *const branchline_tool_callbacks,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let (engine, asker) = asker(engine, callbacks)?;
        engine.core.set_key_source(asker.map(|asker| Arc::new(HostKeys::new(asker, 0)) as _));
        Ok(())
    })
}

/// The same for whoever takes requests from a queue. When the queue is freed, requests to services fail until there is
/// another source, or none: branchline_engine_set_key_source with NULL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_key_source(
    requests: *mut branchline_requests,
    engine: *mut branchline_engine,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let source = HostKeys::new(handle::get::<RequestsObject>(requests)?.asker(), 0);
        handle::get::<EngineObject>(engine)?.core.set_key_source(Some(Arc::new(source)));
        Ok(())
    })
}

/// Has the host look at the JSON body of every request to a service, from the next one on, before it is sent; with NULL it is not
/// asked any more. `on_call` gets each as a request of type BRANCHLINE_REQUEST_PAYLOAD: its name is the model's, its arguments are
/// `{"provider","model","api","body"}`. Answer with branchline_request_complete and the body that takes its place, an object, or
/// `null` for "send it as it is". It is asked once for each body, not again when the same one is sent again. A question that
/// fails, or is freed without an answer, fails the request to the service, and nothing is sent. Keys are no part of a body. The
/// host's own models, scripted ones and replays have none.
///
/// Ownership: borrows `engine` and `callbacks`, whose content is copied; `user_data` is the library's until `destroy`, which
/// runs when another hook took its place, or with the engine.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// `on_cancel` tells of aborts.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_set_payload_hook(
    engine: *mut branchline_engine,
    callbacks: *const branchline_tool_callbacks,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let (engine, asker) = asker(engine, callbacks)?;
        engine.core.set_payload_hook(asker.map(|asker| Arc::new(HostPayloads::new(asker, 0)) as _));
        Ok(())
    })
}

/// The same for whoever takes requests from a queue. When the queue is freed, requests to services fail until there is
/// another hook, or none: branchline_engine_set_payload_hook with NULL.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_payload_hook(
    requests: *mut branchline_requests,
    engine: *mut branchline_engine,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let hook = HostPayloads::new(handle::get::<RequestsObject>(requests)?.asker(), 0);
        handle::get::<EngineObject>(engine)?.core.set_payload_hook(Some(Arc::new(hook)));
        Ok(())
    })
}

fn push(request: *mut branchline_request, event: &str) -> Result<(), Failure> {
    let request = handle::get::<RequestObject>(request)?;
    Ok(request.core().push_value(&input::json(event, "event_json")?)?)
}

/// Writes a piece of a model's answer: a JSON text is text of it; an event is `{"type":"text_delta","delta"}`,
/// `{"type":"thinking_delta","delta"}`, `{"type":"toolcall","id"?,"name","arguments"}`, `{"type":"usage","usage"}`,
/// `{"type":"done","reason"?}`, `{"type":"error","error","retryAfterMs"?}` or another in the table of docs/models.md. Never
/// waits: what a slow reader has not taken is joined.
///
/// Ownership: borrows everything; `request` still has to be completed and freed.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: INVALID_ARGUMENT when it is no event, for a request of another kind, and after the end of the answer; CANCELLED
/// when nobody waits any more: stop the model; TOO_LARGE when the answer does not end, which fails it; INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_push(
    request: *mut branchline_request,
    event_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { push(request, input::text(event_json, "event_json")?) })
}

/// branchline_request_push for a text that is not NUL-terminated.
///
/// Ownership: as branchline_request_push.
/// Threads: any, also from inside the callback that brought the request.
/// Errors: as branchline_request_push.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_request_push_n(
    request: *mut branchline_request,
    event_json: *const c_char,
    length: usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { push(request, input::text_n(event_json, length, "event_json")?) })
}
