//! Providers whose models are reached over the network: one for each provider name, whatever protocols its models have.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::anthropic::Anthropic;
use super::catalogue::Catalogue;
use super::drive::{Services, drive, failed};
use super::google::Google;
use super::openai_chat::OpenAiChat;
use super::openai_responses::OpenAiResponses;
use super::protocol::Protocol;
use super::{Model, PayloadHook, Provider, Request, ResponseStream, fallbacks};

/// Every protocol there is.
pub(crate) fn protocols() -> Vec<Arc<dyn Protocol>> {
    vec![Arc::new(Anthropic::default()), Arc::new(OpenAiChat), Arc::new(OpenAiResponses), Arc::new(Google::default())]
}

/// Protocols by name, and what their requests share. One for each engine.
pub(crate) struct Remote {
    protocols: Vec<Arc<dyn Protocol>>,
    services: Arc<Services>,
    catalogue: Arc<Catalogue>,
}

impl Remote {
    pub(crate) fn new(services: Services, catalogue: Arc<Catalogue>) -> Remote {
        Remote { protocols: protocols(), services: Arc::new(services), catalogue }
    }

    /// Who is asked about every body from the next request on.
    pub(crate) fn set_payload_hook(&self, hook: Option<Arc<dyn PayloadHook>>) {
        *self.services.payload_hook.lock().unwrap_or_else(PoisonError::into_inner) = hook;
    }

    fn stream(&self, mut request: Request) -> ResponseStream {
        request.model = fallbacks::priced(request.model, &self.catalogue);
        let api = &request.model.api;
        match self.protocols.iter().find(|protocol| protocol.api() == api) {
            Some(protocol) => drive(protocol.clone(), self.services.clone(), request),
            None => {
                let known: Vec<&str> = self.protocols.iter().map(|protocol| protocol.api()).collect();
                let text = format!(
                    "the model {} speaks {api:?}, which is not implemented; implemented are {}",
                    request.model.full_name(),
                    known.join(", ")
                );
                failed(&request, &text)
            }
        }
    }
}

/// One provider name and its models.
pub(crate) struct RemoteProvider {
    name: String,
    models: Mutex<Vec<Model>>,
    remote: Arc<Remote>,
}

impl RemoteProvider {
    pub(crate) fn new(name: String, remote: Arc<Remote>) -> RemoteProvider {
        RemoteProvider { name, models: Mutex::new(Vec::new()), remote }
    }

    /// Adds a model, replacing one of the same id in its place.
    pub(crate) fn put(&self, model: Model) {
        let mut models = lock(&self.models);
        match models.iter_mut().find(|known| known.id == model.id) {
            Some(known) => *known = model,
            None => models.push(model),
        }
    }
}

impl Provider for RemoteProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn models(&self) -> Vec<Model> {
        lock(&self.models).clone()
    }

    fn stream(&self, request: Request) -> ResponseStream {
        self.remote.stream(request)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
