//! Toolboxes, and tools that are JavaScript functions.
//!
//! A call of a JavaScript tool is a request in a queue that JavaScript waits at with a ticket, as it waits for events; it
//! answers by the request's number. Nothing native ever waits for JavaScript but that request's own future.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use branchline::host::{self, Asker, HostTool, Notice, Request, Requests};
use branchline::tools::{CancelCall, PendingCall, Tool, ToolResult};
use branchline::{Error, ErrorCode, Result, json};
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bridge::Shared;
use crate::engine::Lifeline;
use crate::failure::guard;
use crate::options::value;
use crate::outcome::Outcome;

/// Notices handed over at once.
const BATCH: usize = 64;

/// The requests of an environment.
pub(crate) struct Desk {
    asker: Asker,
    requests: Requests,
    /// Those that JavaScript has and has not answered.
    open: Mutex<HashMap<u64, Arc<Request>>>,
}

/// A tool as JavaScript defines it, and the number by which JavaScript knows it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Function {
    target: u32,
    definition: Value,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        let (asker, requests) = host::requests();
        Desk { asker, requests, open: Mutex::default() }
    }

    pub(crate) fn tool(&self, function: Function) -> Result<Arc<dyn Tool>> {
        Ok(Arc::new(HostTool::new(function.definition, self.asker.clone(), function.target.into())?))
    }

    pub(crate) fn asker(&self) -> Asker {
        self.asker.clone()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Request>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody will answer any more.
    pub(crate) fn end(&self) {
        self.requests.close();
        while self.requests.try_next().is_some() {}
        self.open().clear();
    }

    /// The next notices, a JSON text each; none at the end.
    async fn next(&self, shared: &Shared) -> Vec<String> {
        let mut texts = Vec::new();
        let Some(mut notice) = self.requests.next().await else { return texts };
        loop {
            texts.extend(self.take(notice, shared));
            match self.requests.try_next() {
                Some(next) if texts.len() < BATCH => notice = next,
                Some(next) => {
                    texts.extend(self.take(next, shared));
                    return texts;
                }
                None if texts.is_empty() => match self.requests.next().await {
                    Some(next) => notice = next,
                    None => return texts,
                },
                None => return texts,
            }
        }
    }

    fn take(&self, notice: Notice, shared: &Shared) -> Option<String> {
        let request = match notice {
            Notice::Cancelled(id) => return self.open().remove(&id).map(|_| json!({"cancelled": id}).to_string()),
            Notice::Asked(request) if request.is_cancelled() => return None,
            Notice::Asked(request) => request,
        };
        let text = json::to_string(&json!({
            "id": request.id(),
            "kind": request.kind().name(),
            "target": request.target(),
            "name": request.name(),
            "callId": request.call_id(),
            "sessionId": request.session_id(),
            "sibling": request.sibling(),
            "cwd": request.cwd().to_string_lossy(),
            "arguments": request.arguments(),
        }));
        match shared.text(text) {
            Ok(text) => {
                self.open().insert(request.id(), Arc::new(request));
                Some(text)
            }
            Err(error) => {
                let _ = request.fail(error.message());
                None
            }
        }
    }

    /// Answers a request, unless nobody waits for it any more.
    fn answer(&self, id: u32, answer: impl FnOnce(&Request) -> Result<()>) -> Result<bool> {
        let id = u64::from(id);
        let Some(request) = self.open().get(&id).cloned() else { return Ok(false) };
        match answer(&request) {
            Err(error) if error.code() != ErrorCode::Cancelled => Err(error),
            result => {
                self.open().remove(&id);
                Ok(result.is_ok())
            }
        }
    }
}

/// JavaScript's side of the desk.
#[napi]
pub struct ToolDesk {
    shared: Arc<Shared>,
}

impl ToolDesk {
    pub(crate) fn new(shared: Arc<Shared>) -> ToolDesk {
        ToolDesk { shared }
    }
}

#[napi]
impl ToolDesk {
    /// Waits for notices: requests, and numbers of cancelled ones. None when the environment ends.
    #[napi]
    pub fn next(&self, ticket: u32) {
        let shared = self.shared.clone();
        self.shared.start(ticket, async move { Ok(Outcome::Texts(shared.desk.next(&shared).await)) });
    }

    /// Answers. False when nobody waits any more.
    #[napi]
    pub fn complete(&self, id: u32, result: String) -> napi::Result<bool> {
        guard(|| {
            let result = value(&result)?;
            self.shared.desk.answer(id, |request| request.complete(result))
        })
    }

    #[napi]
    pub fn fail(&self, id: u32, message: String) -> napi::Result<bool> {
        guard(|| self.shared.desk.answer(id, |request| request.fail(message)))
    }

    /// Writes a piece of a model's answer. False when nobody reads it any more.
    #[napi]
    pub fn push(&self, id: u32, piece: String) -> napi::Result<bool> {
        guard(|| {
            let request = self.shared.desk.open().get(&u64::from(id)).cloned();
            let Some(request) = request else { return Ok(false) };
            match request.push_value(&value(&piece)?) {
                Err(error) if error.code() == ErrorCode::Cancelled => Ok(false),
                result => result.map(|()| true),
            }
        })
    }

    /// Lets go of a request.
    #[napi]
    pub fn drop(&self, id: u32) {
        self.shared.desk.open().remove(&u64::from(id));
    }

    /// Whether there was room for it.
    #[napi]
    pub fn progress(&self, id: u32, partial: String) -> napi::Result<bool> {
        guard(|| {
            let request = self.shared.desk.open().get(&u64::from(id)).cloned();
            request.map_or(Ok(false), |request| request.progress(value(&partial)?))
        })
    }
}

/// `branchline::tools::Toolbox`.
#[napi]
pub struct Toolbox {
    shared: Arc<Shared>,
    /// Its threads are the engine's.
    _lifeline: Arc<Lifeline>,
    toolbox: branchline::tools::Toolbox,
}

impl Toolbox {
    pub(crate) fn new(shared: Arc<Shared>, lifeline: Arc<Lifeline>, cwd: String) -> Toolbox {
        let toolbox = lifeline.engine.toolbox(cwd);
        Toolbox { shared, _lifeline: lifeline, toolbox }
    }
}

#[napi]
impl Toolbox {
    #[napi]
    pub fn add(&self, custom: String) -> napi::Result<()> {
        guard(|| {
            self.toolbox.add(self.shared.tool(crate::options::read(&custom)?)?);
            Ok(())
        })
    }

    /// What calls may do from now on.
    #[napi]
    pub fn set_permissions(&self, policy: String) -> napi::Result<()> {
        guard(|| {
            self.toolbox.set_permissions(self.shared.permissions(crate::options::read(&policy)?)?);
            Ok(())
        })
    }

    #[napi]
    pub fn definitions(&self) -> napi::Result<String> {
        guard(|| {
            let definitions = self.toolbox.definitions();
            let definitions: Vec<Value> = definitions.iter().map(|tool| tool.to_host_value()).collect();
            self.shared.text(json::to_string(&definitions))
        })
    }

    /// Prepares a call, which runs while it is waited for.
    #[napi]
    pub fn start(&self, name: String, arguments: String) -> napi::Result<ToolCall> {
        guard(|| {
            if self.toolbox.is_closed() {
                let text = "the engine of this toolbox was shut down; make another";
                return Err(Error::new(ErrorCode::Closed, text));
            }
            let call = self.toolbox.start(&name, value(&arguments)?);
            let cancel = call.cancel_token();
            Ok(ToolCall { shared: self.shared.clone(), slot: Arc::new(Mutex::new(Some(call))), cancel })
        })
    }
}

/// `branchline::tools::PendingCall`.
#[napi]
pub struct ToolCall {
    shared: Arc<Shared>,
    slot: Arc<Mutex<Option<PendingCall>>>,
    cancel: CancelCall,
}

fn result_json(key: &str, result: &ToolResult) -> String {
    json::to_string(&json!({key: result.to_host_value()}))
}

#[napi]
impl ToolCall {
    /// Waits for `{update}` or, if `updates` are not wanted or all told, `{result}`.
    #[napi]
    pub fn next(&self, ticket: u32, updates: bool) {
        let slot = self.slot.clone();
        self.shared.start(ticket, async move {
            let call = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            let over = || Error::new(ErrorCode::InvalidArgument, "this call was waited for already");
            let mut call = call.ok_or_else(over)?;
            if updates && let Some(update) = call.next_update().await {
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
                return Ok(Outcome::Text(result_json("update", &update)));
            }
            Ok(Outcome::Text(result_json("result", &call.result().await)))
        });
    }

    #[napi]
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}
