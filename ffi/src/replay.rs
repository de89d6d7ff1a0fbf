//! Session files that answer again: the replays of an engine, known by the names of their providers.

use std::ffi::c_char;
use std::sync::{Arc, PoisonError};

use branchline_core::replay::{Replay, ReplayOptions};
use serde_json::Value;

use crate::boundary::{export, gives_json};
use crate::engine::{EngineObject, branchline_engine};
use crate::error::{Failure, branchline_error};
use crate::handle;
use crate::input::{self, invalid};
use crate::status::branchline_status;

/// What is said of a replay besides how it compares.
struct Options {
    tools: bool,
    compare: ReplayOptions,
}

impl Options {
    fn read(json: Option<&str>) -> Result<Options, Failure> {
        let Some(json) = json else { return Ok(Options { tools: false, compare: ReplayOptions::default() }) };
        let Value::Object(mut given) = input::json(json, "options_json")? else {
            return Err(invalid("options_json is no object"));
        };
        let tools = match given.remove("tools") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(tools)) => tools,
            Some(_) => return Err(invalid("options_json: tools is true or false")),
        };
        let compare = branchline_core::json::form(Value::Object(given));
        Ok(Options { tools, compare: compare.map_err(|error| invalid(format!("options_json: {error}")))? })
    }
}

/// Adds a recorded session as the provider `name`, replacing one of that name: to the same conversation it gives the
/// recorded answers again. Its models are those that answered in the file, see branchline_engine_models. `options_json` may
/// be NULL: `{"compareToolResults"?,"tools"?}`. Tool results have to be the recorded ones unless "compareToolResults" is
/// false; with "tools" true the recorded tools are added to the engine, as branchline_engine_add_tool does, and give their
/// recorded results.
///
/// Ownership: borrows everything. The file is read at once and not kept open for writing.
/// Threads: any, also from inside callbacks. Blocks while the file is read.
/// Errors: INVALID_SESSION_FILE, STORAGE_FAILED, INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_add_replay(
    engine: *mut branchline_engine,
    name: *const c_char,
    path: *const c_char,
    options_json: *const c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        let engine = handle::get::<EngineObject>(engine)?;
        let name = input::text(name, "name")?;
        let path = input::optional_path(path).ok_or_else(|| invalid("path is NULL"))?;
        let options = Options::read(input::optional_text(options_json, "options_json")?)?;
        let replay = Replay::open(name, path, options.compare)?;
        if options.tools {
            replay.tools().into_iter().for_each(|tool| engine.core.add_tool(tool));
        }
        engine.core.add_provider(Arc::new(replay.clone()));
        engine.replays.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), replay);
        Ok(())
    })
}

/// The first place where a conversation left the recording of this name, as JSON: null as long as it has not, else
/// `{"at","recorded":[{"entryId","message"}],"actual"}`. `at` counts the messages of the conversation from 0, `recorded` is
/// what follows there in the file, on all branches, and `actual` what the session had instead, null if it asked for an answer
/// that was not recorded.
///
/// Ownership: borrows everything; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, also when there is no such replay; INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_engine_replay_divergence(
    engine: *const branchline_engine,
    name: *const c_char,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    gives_json!(error, out_json, {
        let engine = handle::get::<EngineObject>(engine)?;
        let name = input::text(name, "name")?;
        let replays = engine.replays.lock().unwrap_or_else(PoisonError::into_inner);
        let replay = replays.get(name).ok_or_else(|| invalid(format!("no replay is called {name:?}")))?;
        replay.divergence()
    })
}
