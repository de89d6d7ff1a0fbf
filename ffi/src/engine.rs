//! `branchline_engine`: worker threads, models, and the end of everything that was made from it.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use branchline_core::Engine;
use branchline_core::providers::scripted::Script;
use branchline_core::replay::Replay;

use crate::block_on::{Deadline, block_on};
use crate::boundary::{export, gives_text, silence_panics};
use crate::callbacks;
use crate::error::{Failure, branchline_error};
use crate::finished::Threads;
use crate::handle::{self, Handle, Object, Table};
use crate::input;
use crate::options::{self, branchline_engine_options, branchline_list_options};
use crate::status::branchline_status;
use crate::{json, output};

/// What a host creates first: worker threads, models and tools. Two engines can live in one process.
pub struct branchline_engine {
    _opaque: [u8; 0],
}

pub(crate) struct EngineObject {
    pub(crate) core: Engine,
    /// Threads that run callbacks: of its sessions, tools and calls.
    pub(crate) threads: Arc<Threads>,
    /// Its replays by the names of their providers.
    pub(crate) replays: Mutex<HashMap<String, Replay>>,
}

static ENGINES: Table<EngineObject> = Table::new();

impl Object for EngineObject {
    type C = branchline_engine;
    const KIND: usize = 2;
    const NAME: &'static str = "engine";
    fn table() -> &'static Table<Self> {
        &ENGINES
    }
}

/// How long freeing may take: as long as an engine's sessions get to store what they have.
pub(crate) const FREE_LIMIT: Duration = Duration::from_secs(5);

impl Drop for EngineObject {
    /// The host let go of the engine inside a callback: nobody waits, but everything ends.
    fn drop(&mut self) {
        self.threads.stop();
    }
}

impl EngineObject {
    /// Ends everything and waits for it. Never from inside a callback, which it would wait for.
    fn end(&self, deadline: Deadline) -> Result<(), Failure> {
        self.core.shutdown_blocking(deadline.left())?;
        self.threads.stop();
        match self.threads.join(deadline) {
            true => Ok(()),
            false => Err(branchline_status::TIMEOUT.into()),
        }
    }
}

/// Starts an engine. `options` may be NULL.
///
/// Ownership: `out_engine` is yours: free it with branchline_engine_free.
/// Threads: any.
/// Errors: INVALID_ARGUMENT, FORKED, INTERNAL when threads cannot be started; FILE_EXISTS and STORAGE_FAILED of a file to
/// record to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_new(
    options: *const branchline_engine_options,
    out_engine: *mut *mut branchline_engine,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        silence_panics();
        output::required(out_engine, "out_engine")?;
        let (options, form) = options::engine(options)?;
        let core = form.start(options)?;
        let engine = EngineObject { core, threads: Arc::default(), replays: Mutex::default() };
        output::handle(out_engine, Handle::new(engine)?);
        Ok(())
    })
}

/// Aborts and closes every session of the engine and waits, at most `timeout_ms` milliseconds, until their files are
/// released, every callback has returned, every `destroy` has run and all threads have ended. Calls to its sessions fail
/// with CLOSED from then on; what is stored can still be read.
///
/// Ownership: borrows `engine`, which still has to be freed.
/// Threads: any that may block, but hold no lock that one of your callbacks takes.
/// Errors: TIMEOUT (what was begun goes on), INVALID_ARGUMENT, INVALID_HANDLE, FORKED, WOULD_DEADLOCK from inside a
/// callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_shutdown(
    engine: *mut branchline_engine,
    timeout_ms: u32,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let engine = handle::get::<EngineObject>(engine)?;
        if callbacks::current().is_some() {
            let text = "shutting down waits for this callback to return; do it elsewhere, or free the engine here";
            return Err(Failure::new(branchline_status::WOULD_DEADLOCK, text));
        }
        engine.end(Deadline::from_ms(timeout_ms))
    })
}

/// Frees an engine: what branchline_engine_shutdown does, for at most 5 seconds; from inside a callback without waiting.
/// Handles of its sessions stay valid until they are freed too, in any order. NULL is fine.
///
/// Ownership: takes `engine`.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_free(engine: *mut branchline_engine) -> branchline_status {
    export!(std::ptr::null_mut(), {
        if let Some(engine) = handle::take::<EngineObject>(engine)?
            && callbacks::current().is_none()
        {
            // What could not be waited for ends by itself.
            let _ = engine.end(Deadline::after(Some(FREE_LIMIT)));
        }
        Ok(())
    })
}

unsafe fn add_script(engine: *mut branchline_engine, name: *const c_char, script: &str) -> Result<(), Failure> {
    // SAFETY: as the header demands of the functions below.
    let name = unsafe { input::text(name, "name") }?;
    let engine = handle::get::<EngineObject>(engine)?;
    Ok(engine.core.add_scripted_model(name, Script::from_json(script)?)?)
}

/// Adds the model "scripted/NAME", which answers from a script: for tests, demos and offline work. `script_json` is a
/// list of replies, each `{"content":[...]}` with text, thinking and toolCall blocks, or an object with these as `replies`.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_add_scripted_model(
    engine: *mut branchline_engine,
    name: *const c_char,
    script_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { add_script(engine, name, input::text(script_json, "script_json")?) })
}

/// branchline_engine_add_scripted_model for a text that is not NUL-terminated.
///
/// Ownership: borrows everything.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_add_scripted_model_n(
    engine: *mut branchline_engine,
    name: *const c_char,
    script_json: *const c_char,
    script_length: usize,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { add_script(engine, name, input::text_n(script_json, script_length, "script_json")?) })
}

/// Lists session files, most recent first, as a JSON list of `{"path","id","cwd","name","parentSessionPath","created",
/// "modified","messageCount","firstMessage","allMessagesText"}`, times in milliseconds since 1970, missing values null. `options` may be NULL.
///
/// Ownership: `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, CLOSED, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_list_sessions(
    engine: *mut branchline_engine,
    options: *const branchline_list_options,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_text!(error, out_json, {
        let engine = handle::get::<EngineObject>(engine)?;
        let (cwd, options) = options::list(options)?;
        json::sessions(&block_on(engine.core.list_sessions(cwd, options))?)
    })
}
