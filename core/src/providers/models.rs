//! The providers and models that a host adds to an engine.

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

    /// The provider of this name that was added, whole or by its models.
    pub(crate) fn provider(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.providers.iter().find(|provider| provider.name() == name).cloned()
    }

    /// Whether the name belongs to a provider that was added as a whole.
    pub(crate) fn is_whole(&self, name: &str) -> bool {
        self.provider(name).is_some() && !self.remote.iter().any(|known| known.name() == name)
    }

    /// The model that was added under exactly this `provider/id`.
    pub(crate) fn added(&self, name: &str) -> Option<Arc<Model>> {
        let (provider, id) = name.split_once('/')?;
        self.provider(provider)?.models().into_iter().find(|model| model.id == id).map(Arc::new)
    }

    /// Every model: those that were added, and those of the catalogue that none of them replaces (P23).
    pub(crate) fn all(&self, catalogue: &[Arc<Model>]) -> Vec<Arc<Model>> {
        let mut all = Vec::new();
        let mut ours: Vec<Arc<Model>> = Vec::new();
        for provider in &self.providers {
            let to = if self.is_whole(provider.name()) { &mut all } else { &mut ours };
            to.extend(provider.models().into_iter().map(Arc::new));
        }
        for known in catalogue.iter().filter(|model| !self.is_whole(&model.provider)) {
            let replaced = ours.iter().position(|model| model.name_parts() == known.name_parts());
            all.push(replaced.map_or_else(|| known.clone(), |at| ours.remove(at)));
        }
        all.append(&mut ours);
        all
    }
}
