//! Models that a host written in another language serves: each request for an answer is a [`Request`](super::Request).

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::queue::Asker;
use super::request::{Answer, NoAnswer, Question, Request, RequestKind};
use crate::error::{Error, ErrorCode, Result};
use crate::providers::host::{HostFuture, HostModel, HostProvider, HostRequest, HostResponse};

/// Models whose requests are requests to the host, of kind [`RequestKind::Model`].
///
/// [`Request::name`] is the model's full name, [`Request::arguments`] everything that is asked, in the form of
/// [`HostRequest::to_value`]. The host writes the answer with [`Request::push_value`], in as many pieces as it likes, and ends
/// it with [`Request::complete`]: `null` or `{}` finishes it; a text, an event or a list of them is written first. A request
/// that is [failed](Request::fail), or dropped before its answer was finished, is a failed response, of which what was
/// written stays. When the response is aborted the host hears [`Notice::Cancelled`](super::Notice::Cancelled).
#[derive(Debug, Clone)]
pub struct HostModels {
    asker: Asker,
    target: u64,
}

impl HostModels {
    /// Requests go to `asker`'s queue with the number `target`, by which the host knows them.
    pub fn new(asker: Asker, target: u64) -> HostModels {
        HostModels { asker, target }
    }
}

/// A provider whose models are requests in `asker`'s queue, with the number `target`. The definition is as for
/// [`HostProvider::from_value`].
///
/// Errors: `invalid_argument` when the definition is none.
pub fn provider_from_value(definition: Value, asker: Asker, target: u64) -> Result<HostProvider> {
    HostProvider::from_value(definition, Arc::new(HostModels::new(asker, target)))
}

impl HostModel for HostModels {
    fn respond(&self, request: HostRequest, response: HostResponse) -> Option<HostFuture> {
        let asker = self.asker.clone();
        let question = Question {
            kind: RequestKind::Model,
            target: self.target,
            name: request.model().full_name(),
            call_id: String::new(),
            session_id: request.request().session_id.clone(),
            sibling: request.request().sibling,
            cwd: PathBuf::new(),
            arguments: request.to_value(),
            progress: None,
            response: Some(response.clone()),
        };
        Some(Box::pin(async move {
            // Whoever reads the answer drops this future when it is not wanted any more.
            match asker.ask(question, CancellationToken::new()).await {
                _ if response.is_over() => Ok(()),
                Ok(Answer::Model) | Err(NoAnswer::Cancelled) => Ok(()),
                Ok(_) | Err(NoAnswer::Dropped) => {
                    Err("the host's model stopped without finishing its answer".to_owned())
                }
                Err(NoAnswer::Failed(message)) => Err(message),
                Err(NoAnswer::Closed) => Err("the program that serves this model takes no more requests".to_owned()),
            }
        }))
    }
}

impl Request {
    /// Writes a piece of a model's answer: a text, or one event in the form of
    /// [`HostResponse::push_value`](crate::providers::host::HostResponse::push_value). Never waits.
    ///
    /// Errors: `invalid_argument` for anything else, for a request of another kind, and after the end of the answer;
    /// `too_large` for an endless answer, which is over then; `cancelled` when the answer is not wanted any more.
    pub fn push_value(&self, event: &Value) -> Result<()> {
        self.writable()?.push_value(event)
    }

    /// The same for an event as JSON text.
    pub fn push_json(&self, event: &str) -> Result<()> {
        self.writable()?.push_json(event)
    }

    /// The answer, if there is one that can be written.
    fn writable(&self) -> Result<&HostResponse> {
        let Some(response) = self.response() else {
            return Err(Error::new(ErrorCode::InvalidArgument, "only the answer of a model is written in pieces"));
        };
        self.check_open()?;
        Ok(response)
    }
}

/// Writes what the host says at the end of an answer, and finishes it.
pub(super) fn finish(response: &HostResponse, value: &Value) -> Result<()> {
    match value {
        Value::Null => {}
        Value::Object(object) if object.is_empty() => {}
        Value::Array(pieces) => pieces.iter().try_for_each(|piece| response.push_value(piece))?,
        piece => response.push_value(piece)?,
    }
    if response.is_over() { Ok(()) } else { response.finish() }
}
