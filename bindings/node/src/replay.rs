//! Recorded sessions that answer again, and their tools.
//!
//! A recorded tool is native. In the options of a session it crosses as the number of its replay and its name.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use branchline::providers::Provider;
use branchline::replay::ReplayOptions;
use branchline::tools::Tool;
use branchline::{Error, ErrorCode, Result, json, replay};
use napi_derive::napi;
use serde::Deserialize;
use serde_json::Value;

use crate::bridge::Shared;
use crate::engine::Engine;
use crate::failure::guard;
use crate::options;
use crate::outcome::Outcome;
use crate::tools::Function;

/// A tool that is no built-in one, as JavaScript gives it.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Custom {
    Function(Function),
    Recorded(Recorded),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recorded {
    replay: u32,
    name: String,
}

/// The replays of an environment.
#[derive(Default)]
pub(crate) struct Replays {
    known: Mutex<HashMap<u32, replay::Replay>>,
    last: AtomicU32,
}

impl Replays {
    fn known(&self) -> MutexGuard<'_, HashMap<u32, replay::Replay>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    pub(crate) fn tool(&self, custom: Custom) -> Result<Arc<dyn Tool>> {
        match custom {
            Custom::Function(function) => self.desk.tool(function),
            Custom::Recorded(Recorded { replay, name }) => {
                let tools = self.replays.known().get(&replay).map(replay::Replay::tools).unwrap_or_default();
                let unknown = || Error::new(ErrorCode::UnknownTool, format!("no recording has a tool {name:?}"));
                tools.into_iter().find(|tool| tool.definition().name == name).ok_or_else(unknown)
            }
        }
    }
}

#[napi]
impl Engine {
    #[napi]
    pub fn add_replay(&self, ticket: u32, path: String, name: String, options: String) -> napi::Result<()> {
        let options: ReplayOptions = guard(|| options::read(&options))?;
        let (shared, lifeline) = (self.shared.clone(), self.lifeline.clone());
        self.shared.start_blocking(ticket, move || {
            let replay = replay::Replay::open(name, path, options)?;
            lifeline.engine.add_provider(Arc::new(replay.clone()));
            Ok(Outcome::Replay(Replay::new(shared, replay)))
        });
        Ok(())
    }
}

/// `branchline::replay::Replay`.
#[napi]
pub struct Replay {
    shared: Arc<Shared>,
    replay: replay::Replay,
    number: u32,
}

impl Replay {
    fn new(shared: Arc<Shared>, replay: replay::Replay) -> Replay {
        let number = shared.replays.last.fetch_add(1, Ordering::Relaxed) + 1;
        shared.replays.known().insert(number, replay.clone());
        Replay { shared, replay, number }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.shared.replays.known().remove(&self.number);
    }
}

#[napi]
impl Replay {
    #[napi(getter)]
    pub fn number(&self) -> u32 {
        self.number
    }

    #[napi(getter)]
    pub fn models(&self) -> napi::Result<String> {
        guard(|| self.shared.text(json::to_string(&self.replay.models())))
    }

    /// `null`, or where the conversation left the recording.
    #[napi(getter)]
    pub fn divergence(&self) -> napi::Result<String> {
        guard(|| self.shared.text(json::to_string(&self.replay.divergence())))
    }

    #[napi(getter)]
    pub fn tools(&self) -> napi::Result<String> {
        guard(|| {
            let tools = self.replay.tools();
            let definitions: Vec<Value> = tools.iter().map(|tool| tool.definition().to_host_value()).collect();
            self.shared.text(json::to_string(&definitions))
        })
    }
}
