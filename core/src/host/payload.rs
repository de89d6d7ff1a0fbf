//! The say of a host written in another language in what is sent to services: each is a [`Request`](super::Request).

use serde_json::{Value, json};

use super::queue::Asker;
use super::request::{Answer, Question, RequestKind};
use crate::providers::{Payload, PayloadFuture, PayloadHook};

/// A payload hook whose questions are requests to the host, of kind [`RequestKind::Payload`], one for each body that is about to
/// be sent to a service.
///
/// [`Request::name`](super::Request::name) is the model's full name, [`Request::arguments`](super::Request::arguments) is
/// `{provider, model, api, body}`. The answer is the body that takes its place, an object, or `null` for "send it as it is". A
/// question that fails, or is dropped, fails the request to the service.
#[derive(Debug, Clone)]
pub struct HostPayloads {
    asker: Asker,
    target: u64,
}

impl HostPayloads {
    /// Questions go to `asker`'s queue with the number `target`, by which the host knows them.
    pub fn new(asker: Asker, target: u64) -> HostPayloads {
        HostPayloads { asker, target }
    }
}

impl PayloadHook for HostPayloads {
    fn payload(&self, payload: Payload) -> PayloadFuture {
        let Payload { provider, model, api, body } = payload;
        let name = format!("{provider}/{model}");
        let mut arguments = json!({"provider": provider, "model": model, "api": api});
        arguments["body"] = body; // moved: it can be large
        let question = Question::plain(RequestKind::Payload, self.target, name, arguments);
        // Dropped when the request is aborted.
        Box::pin(self.asker.clone().ask_for(question, "the program that looks at requests", |answer| match answer {
            Answer::Payload(given) => Some(given),
            _ => None,
        }))
    }
}

/// Reads the body that a host gives.
///
/// Errors: what it is instead.
pub(super) fn read(value: Value) -> Result<Option<Value>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Object(_) => Ok(Some(value)),
        _ => Err("the body of a request is an object, or null to send it as it is".to_owned()),
    }
}
