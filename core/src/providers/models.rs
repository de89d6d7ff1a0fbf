//! Models and the table an engine keeps of them.

use std::sync::Arc;

use super::Provider;
use crate::error::{Error, ErrorCode, Result};

/// Facts about one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The provider's name.
    pub provider: String,
    /// The model's id within the provider.
    pub id: String,
    /// The wire protocol, for example `anthropic-messages`.
    pub api: String,
    /// The thinking levels it supports, least first; `off` alone for a model that does not reason.
    pub thinking_levels: Vec<String>,
    /// Whether it accepts images.
    pub images: bool,
    /// Size of its context in tokens; 0 when unknown.
    pub context_window: u64,
    /// Longest answer in tokens; 0 when unknown.
    pub max_tokens: u64,
}

impl Model {
    /// A model that does not reason and reads text only.
    pub fn new(provider: impl Into<String>, id: impl Into<String>, api: impl Into<String>) -> Model {
        Model {
            provider: provider.into(),
            id: id.into(),
            api: api.into(),
            thinking_levels: vec!["off".to_owned()],
            images: false,
            context_window: 0,
            max_tokens: 0,
        }
    }

    /// The same model, reasoning at the levels `off`, `minimal`, `low`, `medium` and `high`.
    pub fn reasoning(mut self) -> Model {
        self.thinking_levels = ["off", "minimal", "low", "medium", "high"].map(str::to_owned).to_vec();
        self
    }

    /// Provider and id.
    pub(crate) fn name_parts(&self) -> (&str, &str) {
        (&self.provider, &self.id)
    }

    /// `provider/id`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}

/// The providers of an engine, in order of registration; a later one replaces an earlier one of the same name.
#[derive(Default)]
pub(crate) struct Models {
    providers: Vec<Arc<dyn Provider>>,
}

impl Models {
    pub(crate) fn add(&mut self, provider: Arc<dyn Provider>) {
        match self.providers.iter_mut().find(|known| known.name() == provider.name()) {
            Some(known) => *known = provider,
            None => self.providers.push(provider),
        }
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
