//! Calls that tools make to other tools (S34, S196): the same way as the model's, with events that name the call they
//! belong to, and a record on the result of the call that made them.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::perform::perform;
use super::tool_call::{Call, Outcome, Running, elapsed_ms};
use crate::json;
use crate::message::{Message, Usage};
use crate::session::Actor;
use crate::tools::ToolResult;
use crate::tools::nested::{Begun, Nested};

/// How deep calls may be nested. Each level waits for the next, and nobody means to go this far.
const MAX_DEPTH: usize = 8;
/// Calls recorded on one result.
const MAX_RECORDED: usize = 1000;
/// Bytes of arguments recorded; of longer ones only the length is.
const MAX_ARGUMENTS: usize = 8 * 1024;

/// The calls of a batch: the model's, then those that were made by them.
pub(super) struct Family {
    pub(super) calls: Vec<Call>,
    /// What is known of each of the latter.
    nested: Vec<NestedCall>,
    /// How many calls each call made.
    made: Vec<usize>,
    /// How many of `calls` are the model's.
    model: usize,
}

struct NestedCall {
    /// The model's call it goes back to.
    origin: usize,
    depth: usize,
    begun: Instant,
    end: Option<End>,
}

struct End {
    result: Arc<ToolResult>,
    duration_ms: u64,
}

impl Family {
    pub(super) fn new(calls: Vec<Call>) -> Family {
        let model = calls.len();
        Family { made: vec![0; model], calls, nested: Vec::new(), model }
    }

    /// Adds a call made by another. `Err` is the call, which is too deep.
    fn add(&mut self, parent: usize, name: &str, arguments: Value) -> (usize, bool) {
        self.made[parent] += 1;
        let id: Arc<str> = format!("{}/{}", self.calls[parent].id, self.made[parent]).into();
        let above = parent.checked_sub(self.model).map(|at| &self.nested[at]);
        let (origin, depth) = above.map_or((parent, 1), |above| (above.origin, above.depth + 1));
        self.nested.push(NestedCall { origin, depth, begun: Instant::now(), end: None });
        let parent_id = Some(self.calls[parent].id.clone());
        self.calls.push(Call { id, name: name.into(), args: Arc::new(arguments), args_error: None, parent: parent_id });
        self.made.push(0);
        (self.calls.len() - 1, depth <= MAX_DEPTH)
    }

    fn end(&mut self, index: usize, result: &Arc<ToolResult>) {
        if let Some(call) = index.checked_sub(self.model).and_then(|at| self.nested.get_mut(at)) {
            call.end = Some(End { result: result.clone(), duration_ms: elapsed_ms(call.begun) });
        }
    }

    /// Calls that go back to one of the model's and have not ended, the innermost first.
    fn open(&self, origin: usize) -> Vec<usize> {
        let open = self.nested.iter().enumerate().filter(|(_, nested)| nested.origin == origin && nested.end.is_none());
        open.map(|(at, _)| self.model + at).rev().collect()
    }

    /// The record of the calls that go back to one of the model's, and what it and they spent together.
    pub(super) fn record(&self, origin: usize, own: Option<&Value>) -> (Option<Value>, Option<Value>) {
        let mut calls = Vec::new();
        let mut complete = true;
        let mut spent = own.and_then(Usage::from_value);
        for (at, nested) in self.nested.iter().enumerate().filter(|(_, nested)| nested.origin == origin) {
            if let Some(usage) = nested.end.as_ref().and_then(|end| Usage::from_value(end.result.usage.as_ref()?)) {
                spent = Some(spent.map_or(usage, |spent| spent.add(&usage)));
            }
            complete &= nested.end.is_some();
            if calls.len() < MAX_RECORDED {
                calls.push(entry(&self.calls[self.model + at], nested));
            } else {
                complete = false;
            }
        }
        if calls.is_empty() {
            return (None, own.cloned());
        }
        (Some(json!({"calls": calls, "complete": complete})), spent.map(|spent| spent.to_value()))
    }
}

/// `{id, name, arguments?, argumentsBytes?, status, durationMs?, error?}` (S34).
fn entry(call: &Call, nested: &NestedCall) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| drop(out.insert(key.to_owned(), value));
    put("id", (*call.id).into());
    put("name", (*call.name).into());
    let bytes = json::to_string(&*call.args).len();
    match bytes <= MAX_ARGUMENTS {
        true => put("arguments", Value::clone(&call.args)),
        false => put("argumentsBytes", bytes.into()),
    }
    match &nested.end {
        Some(end) => {
            put("status", if end.result.is_error { "error" } else { "ok" }.into());
            put("durationMs", end.duration_ms.into());
            if end.result.is_error {
                let first = end.result.content.first().and_then(|block| block.get("text")).and_then(Value::as_str);
                put("error", first.unwrap_or_default().into());
            }
        }
        None => put("status", "aborted".into()),
    }
    Value::Object(out)
}

impl Actor {
    /// What a running call says about one that it makes.
    pub(super) async fn nested(&mut self, response: &Arc<Message>, running: &mut Running, told: Nested) {
        match told {
            // Nobody waits for a call whose maker has ended.
            Nested::Begin { parent, .. } if running.outcomes[parent].is_some() => {}
            Nested::Ended { index, .. } if running.outcomes[index].is_some() => {}
            Nested::Begin { parent, name, arguments, reply } => {
                let (index, shallow) = running.family.add(parent, &name, arguments);
                running.outcomes.push(None);
                self.call_starts(&running.family.calls[index]).await;
                let prepared = match shallow {
                    true => self.prepare(response, index, &running.family.calls[index].clone()).await,
                    false => Err(Outcome::refused("Tools call each other too deeply.")),
                };
                let begun = match prepared {
                    Ok(accepted) => {
                        let (tool, call, hooked) = self.tool_call(accepted, running);
                        let work = perform(tool, call, hooked, self.shared.choices_made().hooks.clone());
                        Begun::Runs { index, work: Box::pin(work) }
                    }
                    Err(outcome) => {
                        let result = outcome.result.clone();
                        self.nested_ends(running, index, outcome).await;
                        Begun::Refused(result)
                    }
                };
                let _ = reply.send(begun);
            }
            Nested::Ended { index, result, duration_ms, reply } => {
                self.drain_updates(running).await;
                let result = Arc::new(result);
                let outcome = Outcome { result: result.clone(), duration_ms: Some(duration_ms) };
                self.nested_ends(running, index, outcome).await;
                let _ = reply.send(result);
            }
        }
    }

    async fn nested_ends(&mut self, running: &mut Running, index: usize, outcome: Outcome) {
        running.family.end(index, &outcome.result);
        self.call_ends(running, index, outcome).await;
    }

    /// A call of the model's has ended: so have those it made, also if it did not wait for them.
    pub(super) async fn end_nested(&mut self, running: &mut Running, origin: usize) {
        for index in running.family.open(origin) {
            self.call_ends(running, index, Outcome::aborted()).await;
        }
    }
}
