//! The models and keys of an engine.

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;

use crate::engine::{Engine, EngineOptions, EngineShared, lock};
use crate::error::{Error, ErrorCode, Result};
use crate::providers::{
    self, CatalogueOptions, Credentials, Key, KeyOptions, KeySource, Model, ModelChoice, ModelProblem, PayloadHook,
    Provider, RemoteProvider,
};

impl EngineOptions {
    /// Sets [`catalogue`](Self::catalogue).
    pub fn catalogue(mut self, options: CatalogueOptions) -> Self {
        self.catalogue = options;
        self
    }

    /// Sets [`keys`](Self::keys).
    pub fn keys(mut self, options: KeyOptions) -> Self {
        self.keys = options;
        self
    }

    /// Adds a provider's key to [`keys`](Self::keys).
    pub fn key(mut self, provider: impl Into<String>, key: impl Into<SecretString>) -> Self {
        self.keys = self.keys.key(provider, key);
        self
    }

    /// Sets the [`source`](KeyOptions::source) of [`keys`](Self::keys).
    pub fn key_source(mut self, source: Arc<dyn KeySource>) -> Self {
        self.keys.source = Some(source);
        self
    }

    /// Sets [`record`](Self::record).
    pub fn record(mut self, path: impl Into<PathBuf>) -> Self {
        self.record = Some(path.into());
        self
    }

    /// Reads `models.json` and `auth.json` of an agent directory, for example [`crate::tree::agent_dir`]: the models and
    /// keys that a person set up for pi.
    pub fn agent_files(mut self, dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        self.catalogue.models_file = Some(dir.join("models.json"));
        self.keys.auth_file = Some(dir.join("auth.json"));
        self
    }
}

impl Engine {
    /// Every model known: built-in ones, those of configuration, and those that were added. The first call reads them.
    pub fn models(&self) -> Vec<Model> {
        self.shared().models().iter().map(|model| Model::clone(model)).collect()
    }

    /// The models that can be used: those whose provider has a key, and those that need none (P36). Nothing is asked and
    /// no command is run to find out.
    pub fn available_models(&self) -> Vec<Model> {
        let shared = self.shared();
        shared.models().iter().filter(|model| shared.is_usable(model)).map(|model| Model::clone(model)).collect()
    }

    /// The model that a text of a person means (P90): `provider/id`, an id, or a part of an id or name; `:level` behind it
    /// chooses the thinking level.
    ///
    /// Errors: `unknown_model`, naming what is near or between what to choose.
    pub fn find_model(&self, text: &str) -> Result<ModelChoice> {
        let shared = self.shared();
        providers::choose(&shared.models(), text, |model| shared.is_usable(model))
    }

    /// Adds providers and models in the shape of `models.json` (P20–P24), above what is known. Sessions that are open go on
    /// with the models they have.
    ///
    /// Errors: `invalid_argument`, naming the places that are wrong; then nothing changes.
    pub fn configure_models(&self, json: &str) -> Result<()> {
        self.shared().catalogue.configure(json)
    }

    /// What is wrong with `models.json`. The rest of it is in use.
    pub fn model_problems(&self) -> Vec<ModelProblem> {
        self.shared().catalogue.table().problems.clone()
    }

    /// The keys of this engine, for providers of the host's own.
    pub fn credentials(&self) -> Arc<dyn Credentials> {
        let shared = self.shared();
        shared.options.credentials.clone().unwrap_or_else(|| shared.keyring.clone())
    }

    /// Sets or, with `None`, takes away whom this engine asks for keys, from the next request on.
    pub fn set_key_source(&self, source: Option<Arc<dyn KeySource>>) {
        self.shared().keyring.set_source(source);
    }

    /// Sets or, with `None`, takes away who may replace the bodies of requests, from the next request on (P40).
    pub fn set_payload_hook(&self, hook: Option<Arc<dyn PayloadHook>>) {
        self.shared().remote.set_payload_hook(hook);
    }

    /// Sets or, with `None`, forgets the key of a provider, from the next request on. It wins over every other.
    pub fn set_key(&self, provider: &str, key: Option<Key>) {
        self.shared().keyring.set(provider, key);
    }
}

impl EngineShared {
    pub(crate) fn models(&self) -> Vec<Arc<Model>> {
        let table = self.catalogue.table();
        lock(&self.models).all(&table.models)
    }

    /// The model named `provider/id`, or by an id that only one provider has.
    pub(crate) fn model(&self, name: &str) -> Result<Arc<Model>> {
        // A model of the host's must not cost the reading of all others.
        if let Some(model) = lock(&self.models).added(name) {
            return Ok(model);
        }
        providers::find(&self.models(), name, |model| self.is_usable(model))
    }

    pub(crate) fn provider(&self, name: &str) -> Option<Arc<dyn Provider>> {
        if let Some(provider) = lock(&self.models).provider(name) {
            return Some(provider);
        }
        let known = self.catalogue.table().models.iter().any(|model| model.provider == name);
        known.then(|| Arc::new(RemoteProvider::new(name.to_owned(), self.remote.clone())) as Arc<dyn Provider>)
    }

    pub(crate) fn is_usable(&self, model: &Model) -> bool {
        self.needs_no_key(model) || self.keyring.is_configured(model)
    }

    fn needs_no_key(&self, model: &Model) -> bool {
        self.options.credentials.is_some()
            || providers::is_local(&model.base_url)
            || lock(&self.models).is_whole(&model.provider)
    }

    /// Says before a run what would fail in it: there is no key (P30). Commands and callbacks are not asked.
    ///
    /// Errors: `no_credentials`.
    pub(crate) async fn check_key(&self, name: &str) -> Result<()> {
        // A model that is gone is the run's to tell.
        let Ok(model) = self.model(name) else { return Ok(()) };
        if self.needs_no_key(&model) {
            return Ok(());
        }
        let keyring = self.keyring.clone();
        let asked = model.clone();
        let configured = match self.options.keys.auth_file {
            Some(_) => self.blocking(move || Ok(keyring.is_configured(&asked))).await?,
            None => keyring.is_configured(&asked),
        };
        if configured {
            return Ok(());
        }
        let provider = &model.provider;
        let how = match providers::variables(provider) {
            names if self.options.keys.environment && !names.is_empty() => {
                format!("set {} in the environment, or give the engine a key", names.join(" or "))
            }
            _ => "give the engine a key".to_owned(),
        };
        Err(Error::new(ErrorCode::NoCredentials, format!("No API key for provider: {provider}; {how}")))
    }
}
