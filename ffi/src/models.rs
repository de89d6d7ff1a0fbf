//! The models and keys of an engine: which ones it knows, what a person's text means, and what configuration adds.

use std::ffi::c_char;

use branchline_core::providers::Key;
use serde_json::json;

use crate::boundary::{export, gives_json};
use crate::engine::{EngineObject, branchline_engine};
use crate::error::{Failure, branchline_error};
use crate::handle;
use crate::input::{self, invalid};
use crate::status::branchline_status;

/// Every model known, as a JSON list of `{"name","provider","id","displayName","api","baseUrl","reasoning",
/// "thinkingLevels","images","contextWindow","maxTokens","cost":{"input","output","cacheRead","cacheWrite","tiers"?}}`. The
/// name is "provider/id"; 0 is unknown; prices are US dollars per million tokens.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read a file the first time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_models(
    engine: *const branchline_engine,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, handle::get::<EngineObject>(engine)?.core.models())
}

/// The models that can be used: those whose provider has a key, and those that need none. Nobody is asked for a key and
/// no command is run to find out. The form is that of branchline_engine_models.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read small files.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_available_models(
    engine: *const branchline_engine,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, handle::get::<EngineObject>(engine)?.core.available_models())
}

/// The model that a text of a person means: "provider/id", an id, or a part of an id or name, with ":LEVEL" behind it for a
/// thinking level. As JSON: `{"model":{...},"thinkingLevel"}`, the latter null if the text names none.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read small files.
/// Errors: UNKNOWN_MODEL, naming what is near or between what to choose; INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_find_model(
    engine: *const branchline_engine,
    text: *const c_char,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, {
        let engine = handle::get::<EngineObject>(engine)?;
        engine.core.find_model(input::text(text, "text")?)?
    })
}

/// As branchline_engine_find_model, but an unknown id of a known provider, "provider/id", is a model as well: one that came
/// out yesterday, or that only this person has. It has the facts of the provider's default model, `"warning"` in the JSON
/// says so in a sentence, and the engine knows it by its name from then on.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read small files.
/// Errors: as branchline_engine_find_model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_find_model_or_custom(
    engine: *mut branchline_engine,
    text: *const c_char,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, {
        let engine = handle::get::<EngineObject>(engine)?;
        engine.core.find_model_or_custom(input::text(text, "text")?)?
    })
}

/// The available models that patterns mean: "google/*", "*haiku*:low", or texts as of branchline_engine_find_model; ":LEVEL"
/// behind a pattern chooses the thinking level. As JSON: `{"models":[...],"warnings":[...]}`, the models each as of
/// branchline_engine_find_model, in the order of the patterns, and what was wrong with patterns, a sentence each.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read small files.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_models_in_scope(
    engine: *const branchline_engine,
    patterns: *const *const c_char,
    pattern_count: usize,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, {
        let engine = handle::get::<EngineObject>(engine)?;
        engine.core.models_in_scope(&input::texts(patterns, pattern_count, "patterns")?.unwrap_or_default())
    })
}

/// What is wrong with the configuration of models that was read from a file, as a JSON list of `{"path"?,"provider"?,
/// "message"}`. The rest of it is in use.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. May read a file the first time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_model_problems(
    engine: *const branchline_engine,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, handle::get::<EngineObject>(engine)?.core.model_problems())
}

/// Adds providers and models in the shape of models.json, above what is known: `{"providers":{NAME:{"baseUrl"?,"api"?,
/// "apiKey"?,"headers"?,"models"?:[...], ...}}}`, see docs/models.md. Sessions that are open go on with the models they have.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks. May read a file the first time.
/// Errors: INVALID_ARGUMENT, naming the places that are wrong, and then nothing changes; INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_configure_models(
    engine: *mut branchline_engine,
    models_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let engine = handle::get::<EngineObject>(engine)?;
        Ok(engine.core.configure_models(input::text(models_json, "models_json")?)?)
    })
}

/// # Safety
/// `key` is NULL or a string.
unsafe fn key(key: *const c_char, bearer: bool) -> Result<Option<Key>, Failure> {
    // SAFETY: as this function's.
    match unsafe { input::optional_text(key, "key") }? {
        None => Ok(None),
        Some(key) => Key::from_host_value(json!({"key": key, "bearer": bearer})).map_err(invalid),
    }
}

/// Sets the key of a provider from the next request on, or forgets it with NULL. It wins over every other. `bearer` sends
/// it as "Authorization: Bearer" also where the protocol has a header of its own for keys.
///
/// Ownership: borrows everything. The key is copied to memory that is wiped.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_set_key(
    engine: *mut branchline_engine,
    provider: *const c_char,
    key: *const c_char,
    bearer: bool,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let engine = handle::get::<EngineObject>(engine)?;
        engine.core.set_key(input::text(provider, "provider")?, self::key(key, bearer)?);
        Ok(())
    })
}
