//! A host's say in the body of a request before it is sent (P40, `onPayload`).

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use futures::FutureExt;
use serde_json::Value;

use super::Model;
use super::http::{Failure, Outgoing};
use crate::json;

/// A request that is about to be sent to a service. Neither its address nor its headers, where keys are, belong to it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Payload {
    /// The model's provider.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// The wire protocol, for example `anthropic-messages`: it says what the body means.
    pub api: String,
    /// The JSON body, an object.
    pub body: Value,
}

/// The answer of a [`PayloadHook`]: another body, a JSON object, or `None` to send what there is. An error becomes the failure
/// of the request.
pub type PayloadFuture = Pin<Box<dyn Future<Output = Result<Option<Value>, String>> + Send>>;

/// Sees the JSON body of every request to a service before it is sent, and may replace it.
///
/// Asked on a worker thread of the engine, once for each body: not again when the same one is sent again, but again when another
/// takes its place, for example without something the service refused. `payload` must return at once and the future must not
/// block its thread; when the request is aborted meanwhile the future is dropped. A panic, an error, or a value that is no JSON
/// object fails this request, and nothing is sent. What the answer means is read by what the protocol usually asks for: a body
/// that turns streaming off gives an answer nobody can read. What lies deeper than [`json::to_serde`] goes is null in a body that
/// was replaced; one that was not is sent byte for byte.
///
/// Models that the host serves, scripted ones and replays have no body and are not asked about.
pub trait PayloadHook: Send + Sync {
    /// What to send in place of a body.
    fn payload(&self, payload: Payload) -> PayloadFuture;
}

impl<F: Fn(Payload) -> PayloadFuture + Send + Sync> PayloadHook for F {
    fn payload(&self, payload: Payload) -> PayloadFuture {
        self(payload)
    }
}

impl fmt::Debug for dyn PayloadHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PayloadHook")
    }
}

/// Asks the hook about a request, and changes its body if that is wished.
///
/// Errors: why it cannot be sent.
pub(super) async fn ask(hook: &dyn PayloadHook, model: &Model, out: &mut Outgoing) -> Result<(), Failure> {
    let failed = |why: &str| Failure::Setup(format!("the payload hook {why}; nothing was sent"));
    let body = json::parse(&out.body).ok_or_else(|| failed("cannot be asked: the body is no JSON"))?;
    let (provider, model, api) = (model.provider.clone(), model.id.clone(), model.api.clone());
    let answer = AssertUnwindSafe(async { hook.payload(Payload { provider, model, api, body }).await });
    match answer.catch_unwind().await {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(Value::Object(body)))) => {
            let mut text = Vec::with_capacity(out.body.len());
            json::write_object(&mut text, &body);
            out.body = text.into();
            Ok(())
        }
        Ok(Ok(Some(_))) => Err(failed("gave a body that is no JSON object")),
        Ok(Err(error)) => Err(failed(&format!("failed: {error}"))),
        Err(_) => Err(failed("panicked")),
    }
}
