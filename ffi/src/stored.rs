//! Keys and logins in the file that an engine reads, `auth.json`: storing them, and making logins anew.

use std::ffi::c_char;
use std::sync::Arc;

use branchline_core::host::HostLogins;
use branchline_core::providers::{Login, StoredKey};
use serde_json::Value;

use crate::block_on::block_on;
use crate::boundary::{export, gives_json};
use crate::engine::{EngineObject, branchline_engine};
use crate::error::{Failure, branchline_error};
use crate::handle;
use crate::host_models::asker;
use crate::input::{self, invalid};
use crate::requests::{RequestsObject, branchline_requests};
use crate::status::branchline_status;
use crate::tool::branchline_tool_callbacks;

/// # Safety
/// `key` and `options_json` are NULL or strings.
unsafe fn stored_key(key: *const c_char, options_json: *const c_char) -> Result<StoredKey, Failure> {
    // SAFETY: as this function's.
    let (key, options) =
        unsafe { (input::optional_text(key, "key")?, input::optional_text(options_json, "options_json")?) };
    let mut value = match options.map(|options| input::json(options, "options_json")).transpose()? {
        None => serde_json::Map::new(),
        Some(Value::Object(options)) if !options.contains_key("key") => options,
        Some(_) => return Err(invalid("options_json is an object with configured and variables")),
    };
    value.insert("key".to_owned(), key.into());
    StoredKey::from_host_value(Value::Object(value)).map_err(invalid)
}

/// Stores a key for a provider in the engine's file with keys ("authFile" or "agentFiles" of its options), in the place of
/// what was stored for it. Other entries stay; the file and its directory are made if they are not there, readable by their
/// owner only. It is the file of pi, and is changed under pi's lock. From the next request on the key is used. `key` may be
/// NULL, to store only variables. `options_json` may be NULL: `{"configured"?,"variables"?:{NAME:TEXT}}`. With "configured"
/// true the key is in the form of configured values: "$NAME" is a variable, one that begins with "!" is a command.
///
/// Ownership: borrows everything.
/// Threads: any, but not to be waited for where a login is made anew: that holds the lock. Blocks while files are written
/// and other programs have the lock, 30 seconds at most.
/// Errors: INVALID_ARGUMENT, also for an engine without such a file; STORAGE_FAILED, and then the file is what it was;
/// WOULD_DEADLOCK inside the `on_call` of a login source; CLOSED, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_store_key(
    engine: *mut branchline_engine,
    provider: *const c_char,
    key: *const c_char,
    options_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let engine = handle::get::<EngineObject>(engine)?;
        let (provider, key) = (input::text(provider, "provider")?, stored_key(key, options_json)?);
        Ok(block_on(engine.core.store_key(provider, key))?)
    })
}

/// The same for a login: `{"access","refresh"?,"expires", ...}`, an access token and when it ends, in milliseconds since
/// 1970. Whatever else is in it stays in it. It is used by an engine with a login source, see
/// branchline_engine_set_login_source.
///
/// Ownership: borrows everything.
/// Threads: as branchline_engine_store_key.
/// Errors: as branchline_engine_store_key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_store_login(
    engine: *mut branchline_engine,
    provider: *const c_char,
    login_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let engine = handle::get::<EngineObject>(engine)?;
        let provider = input::text(provider, "provider")?;
        let Value::Object(entry) = input::json(input::text(login_json, "login_json")?, "login_json")? else {
            return Err(invalid("login_json is no object"));
        };
        Ok(block_on(engine.core.store_login(Login::new(provider, entry)))?)
    })
}

/// Removes what is stored for a provider. `out_removed`, which may be NULL, tells whether something was.
///
/// Ownership: borrows everything.
/// Threads: as branchline_engine_store_key.
/// Errors: as branchline_engine_store_key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_forget_stored(
    engine: *mut branchline_engine,
    provider: *const c_char,
    out_removed: *mut bool,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let engine = handle::get::<EngineObject>(engine)?;
        let removed = block_on(engine.core.forget_stored(input::text(provider, "provider")?))?;
        if !out_removed.is_null() {
            out_removed.write(removed);
        }
        Ok(())
    })
}

/// What is stored, in the order of the file, as a JSON list of `{"provider","type"}`: "api_key", "oauth", or what another
/// program wrote. Secrets are not told.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: as branchline_engine_store_key.
/// Errors: as branchline_engine_store_key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_stored_keys(
    engine: *const branchline_engine,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, {
        let engine = handle::get::<EngineObject>(engine)?;
        block_on(engine.core.stored_keys())?
    })
}

/// Has the host make stored logins anew, from the next request to a service on; with NULL nobody does, and they are of no
/// use. `on_call` gets each question as a request of type BRANCHLINE_REQUEST_LOGIN, when fewer than five minutes of a login
/// remain and by one program at a time: its name is the provider's, its arguments are `{"provider","login"}`, the entry of
/// the file with its secrets. Answer within 15 seconds with branchline_request_complete and the entry that takes its place,
/// an object with a new "access" and "expires" (milliseconds since 1970): it is stored, and "access" is sent as a bearer
/// token. A question that fails, or is freed without an answer, fails the request to the service, unless the login is good
/// for a moment yet. An abort of that request does not cancel the question: what comes of it is stored.
///
/// Ownership: borrows `engine` and `callbacks`, whose content is copied; `user_data` is the library's until `destroy`, which
/// runs when another source took its place, or with the engine.
/// Threads: any, also from inside callbacks. `on_call` is called on a thread of the library, one question at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when a thread cannot be started. `destroy` has run then,
/// unless the table itself cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_set_login_source(
    engine: *mut branchline_engine,
    callbacks: *const branchline_tool_callbacks,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let (engine, asker) = asker(engine, callbacks)?;
        engine.core.set_login_source(asker.map(|asker| Arc::new(HostLogins::new(asker, 0)) as _));
        Ok(())
    })
}

/// The same for whoever takes requests from a queue. When the queue is freed, logins cannot be made anew until there is
/// another source.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_requests_login_source(
    requests: *mut branchline_requests,
    engine: *mut branchline_engine,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let source = HostLogins::new(handle::get::<RequestsObject>(requests)?.asker(), 0);
        handle::get::<EngineObject>(engine)?.core.set_login_source(Some(Arc::new(source)));
        Ok(())
    })
}
