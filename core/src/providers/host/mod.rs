//! Models that the host serves: its own access to a model, a local runtime, a test.
//!
//! A host implements [`HostModel`], or gives an async closure to [`HostProvider::from_fn`]. It gets the conversation as
//! [`HostRequest`], also as JSON, and writes its answer into a [`HostResponse`] from any thread, at once or over time.
//!
//! ```
//! use branchline::providers::Model;
//! use branchline::providers::host::HostProvider;
//!
//! let provider = HostProvider::from_fn("ide", [Model::new("ide", "echo", "host")], |request, answer| async move {
//!     answer.text("You said: ")?;
//!     answer.text(&request.last_text())?;
//!     answer.finish()
//! });
//! # let _ = provider;
//! ```

mod definition;
mod json;
mod response;
mod stream;

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use definition::check_name;
pub use response::HostResponse;

use super::repair::{TargetModel, repair};
use super::{Model, Provider, Purpose, Request, ResponseStream};
use crate::message::{Message, Role};
use crate::tree::{fold_system, prompt_text};

/// The work of answering one request; the error becomes the error of the response.
pub type HostFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A model of the host's.
pub trait HostModel: Send + Sync {
    /// Answers a request.
    ///
    /// Called on a worker thread of the engine; must return at once. Either the future does the work: it is driven on the
    /// engine's threads, must not block them, and is dropped when the request is aborted. Or, with `None`, somebody else
    /// does and keeps the response: it may be written from any thread, and the request waits until it is finished or the
    /// last clone of it is dropped.
    fn respond(&self, request: HostRequest, response: HostResponse) -> Option<HostFuture>;
}

/// A provider whose models are answered by the host.
pub struct HostProvider {
    name: String,
    models: Vec<Model>,
    model: Arc<dyn HostModel>,
}

impl HostProvider {
    /// A provider named `name`, which all `models` get as their provider.
    pub fn new(
        name: impl Into<String>,
        models: impl IntoIterator<Item = Model>,
        model: Arc<dyn HostModel>,
    ) -> HostProvider {
        let name = name.into();
        let own = |mut model: Model| {
            model.provider.clone_from(&name);
            model
        };
        HostProvider { models: models.into_iter().map(own).collect(), model, name }
    }

    /// The same with an async closure. An answer that the closure did not finish is finished when it returns.
    pub fn from_fn<F, W, E>(name: impl Into<String>, models: impl IntoIterator<Item = Model>, answer: F) -> HostProvider
    where
        F: Fn(HostRequest, HostResponse) -> W + Send + Sync + 'static,
        W: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        HostProvider::new(name, models, Arc::new(FromFn(answer)))
    }
}

impl Provider for HostProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn models(&self) -> Vec<Model> {
        self.models.clone()
    }

    fn stream(&self, request: Request) -> ResponseStream {
        let (response, stream) = response::pair(&request);
        let work = self.model.respond(HostRequest { request }, response);
        Box::pin(stream.with_work(work))
    }
}

struct FromFn<F>(F);

impl<F, W, E> HostModel for FromFn<F>
where
    F: Fn(HostRequest, HostResponse) -> W + Send + Sync,
    W: Future<Output = Result<(), E>> + Send + 'static,
    E: Display,
{
    fn respond(&self, request: HostRequest, response: HostResponse) -> Option<HostFuture> {
        let work = (self.0)(request, response.clone());
        Some(Box::pin(async move {
            work.await.map_err(|error| error.to_string())?;
            if !response.is_over() {
                let _ = response.finish(); // refused only if it was aborted meanwhile
            }
            Ok(())
        }))
    }
}

/// What the host is asked.
#[derive(Debug, Clone)]
pub struct HostRequest {
    request: Request,
}

impl HostRequest {
    /// The request as providers get it.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The model that is asked.
    pub fn model(&self) -> &Model {
        &self.request.model
    }

    /// The system prompt in force, its sections joined; empty without one.
    pub fn system_prompt(&self) -> String {
        let messages = self.request.messages.iter().map(|message| &**message);
        fold_system(messages).map(|system| prompt_text(&system)).unwrap_or_default()
    }

    /// The conversation without system messages, fit for any model: user, assistant and tool-result messages, every call
    /// with its result, no images if the model takes none, thinking of other models as text.
    pub fn messages(&self) -> Vec<Message> {
        let rest = self.request.messages.iter().filter(|message| message.role() != Role::System);
        let model = &self.request.model;
        let target = TargetModel {
            provider: model.provider.clone(),
            api: model.api.clone(),
            id: model.id.clone(),
            images: model.images,
        };
        repair(rest.map(|message| &**message), &target, None)
    }

    /// The text of the last user message.
    pub fn last_text(&self) -> String {
        let last = self.request.messages.iter().rev().find(|message| message.role() == Role::User);
        last.map(|message| message.text("\n")).unwrap_or_default()
    }

    /// Everything as JSON: `{model, provider, api, systemPrompt, messages, tools, thinkingLevel, sessionId, purpose,
    /// maxTokens?, temperature?}`. `purpose` is `turn` or `summary`; messages and tools are as session files have them.
    pub fn to_value(&self) -> Value {
        let request = &self.request;
        let mut value = json!({
            "provider": request.model.provider,
            "model": request.model.id,
            "api": request.model.api,
            "systemPrompt": self.system_prompt(),
            "messages": self.messages(),
            "tools": *request.tools,
            "thinkingLevel": request.thinking_level,
            "sessionId": request.session_id,
            "purpose": match request.purpose {
                Purpose::Summary => "summary",
                Purpose::Turn => "turn",
            },
        });
        if let Some(limit) = request.options.max_tokens {
            value["maxTokens"] = limit.into();
        }
        if let Some(temperature) = request.options.temperature {
            value["temperature"] = temperature.into();
        }
        value
    }

    /// [`to_value`](HostRequest::to_value) as text.
    pub fn to_json(&self) -> String {
        crate::json::to_string(&self.to_value())
    }
}
