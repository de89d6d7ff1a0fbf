//! The table an engine keeps of models.

use std::sync::Arc;

use super::remote::{Remote, RemoteProvider};
use super::{Model, Provider};
use crate::error::{Error, ErrorCode, Result};

/// The providers of an engine, in order of registration; a later one replaces an earlier one of the same name.
#[derive(Default)]
pub(crate) struct Models {
    providers: Vec<Arc<dyn Provider>>,
    /// Those of `providers` that take models one by one.
    remote: Vec<Arc<RemoteProvider>>,
}

impl Models {
    pub(crate) fn add(&mut self, provider: Arc<dyn Provider>) {
        self.remote.retain(|known| known.name() != provider.name());
        match self.providers.iter_mut().find(|known| known.name() == provider.name()) {
            Some(known) => *known = provider,
            None => self.providers.push(provider),
        }
    }

    /// Adds a model that is reached over the network.
    ///
    /// Errors: `invalid_argument` if the provider's name belongs to something else.
    pub(crate) fn add_model(&mut self, model: Model, remote: &Arc<Remote>) -> Result<()> {
        if let Some(known) = self.remote.iter().find(|known| known.name() == model.provider) {
            known.put(model);
            return Ok(());
        }
        let name = model.provider.clone();
        if name.is_empty() || model.id.is_empty() || self.provider(&name).is_some() {
            let text = format!("models cannot be added to the provider {name:?}; choose another name");
            return Err(Error::new(ErrorCode::InvalidArgument, text));
        }
        let provider = Arc::new(RemoteProvider::new(name, remote.clone()));
        provider.put(model);
        self.add(provider.clone());
        self.remote.push(provider);
        Ok(())
    }

    pub(crate) fn provider(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.providers.iter().find(|provider| provider.name() == name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Model> {
        self.providers.iter().flat_map(|provider| provider.models()).collect()
    }

    /// The model named `provider/id`, or by an id that only one provider has.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Model>> {
        let models = self.all();
        let mut found = models.iter().filter(|model| {
            name.split_once('/').is_some_and(|(provider, id)| model.provider == provider && model.id == id)
        });
        if let Some(model) = found.next() {
            return Ok(Arc::new(model.clone()));
        }
        let by_id: Vec<&Model> = models.iter().filter(|model| model.id == name).collect();
        match by_id.as_slice() {
            [model] => Ok(Arc::new((*model).clone())),
            [] => {
                let known: Vec<String> = models.iter().take(20).map(Model::full_name).collect();
                let known = known.join(", ");
                Err(Error::new(ErrorCode::UnknownModel, format!("unknown model {name:?}; known models: {known}")))
            }
            _ => {
                let text = format!("several providers have a model {name:?}; write it as \"provider/{name}\"");
                Err(Error::new(ErrorCode::UnknownModel, text))
            }
        }
    }
}
