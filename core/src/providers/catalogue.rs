//! The models an engine knows of services: built-in ones, and what configuration makes of them (P1–P25).
//!
//! The built-in ones are data that was compiled in, of [`DATE`]. They are read when the first model is asked for, so an
//! engine that needs none pays nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::models_file::{self, ModelProblem, ProviderConfig};
use super::services::service;
use super::{Model, catalogue_merge as merge};
use crate::error::{Error, ErrorCode, Result};
use crate::message::JsonObject;

/// The state of the built-in models.
pub const DATE: &str = "2026-11";

const BUILTIN: &str = include_str!("data/models.jsonl");

/// Which models an engine knows besides those of the providers that the host adds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CatalogueOptions {
    /// The built-in ones. Default true.
    pub builtin: bool,
    /// A newer list of models than the built-in one, a model as JSON on each line (P1): one of the same provider and id takes
    /// the place of the built-in one, others are added (P7). Models of other types than `chat` are passed over (P5). It is
    /// read when the first model is asked for.
    pub newer_list: Option<PathBuf>,
    /// A `models.json` (P20). It is read when the first model is asked for.
    pub models_file: Option<PathBuf>,
}

impl Default for CatalogueOptions {
    fn default() -> CatalogueOptions {
        CatalogueOptions { builtin: true, newer_list: None, models_file: None }
    }
}

impl CatalogueOptions {
    /// Sets [`builtin`](Self::builtin).
    pub fn builtin(mut self, known: bool) -> Self {
        self.builtin = known;
        self
    }

    /// Sets [`newer_list`](Self::newer_list).
    pub fn newer_list(mut self, path: impl Into<PathBuf>) -> Self {
        self.newer_list = Some(path.into());
        self
    }

    /// Sets [`models_file`](Self::models_file).
    pub fn models_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.models_file = Some(path.into());
        self
    }
}

/// What configuration says about reaching a model. Values are in the form of P34.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    pub(super) api_key: Option<String>,
    /// The key is sent as `Authorization: Bearer` as well.
    pub(super) auth_header: bool,
    /// Later ones win; `None` removes a header (P24).
    pub(super) headers: Vec<(String, Option<String>)>,
    /// The addresses that are the provider's, as data or configuration has it.
    pub(super) addresses: Vec<String>,
}

/// The models of services.
pub(crate) struct Catalogue {
    options: CatalogueOptions,
    /// Configurations that the host gave as a text, later ones above earlier ones.
    given: Mutex<Vec<ProviderConfig>>,
    table: Mutex<Option<Arc<Table>>>,
    configuring: Mutex<()>,
}

/// Everything, composed.
#[derive(Default)]
pub(crate) struct Table {
    /// In the order of data and configuration.
    pub(crate) models: Vec<Arc<Model>>,
    access: BTreeMap<String, ProviderAccess>,
    pub(crate) problems: Vec<ModelProblem>,
}

#[derive(Default)]
struct ProviderAccess {
    all: Access,
    /// Headers of single models.
    headers: BTreeMap<String, Vec<(String, Option<String>)>>,
}

impl Catalogue {
    pub(crate) fn new(options: CatalogueOptions) -> Catalogue {
        Catalogue { options, given: Mutex::default(), table: Mutex::default(), configuring: Mutex::default() }
    }

    /// Adds configuration in the shape of `models.json`.
    ///
    /// Errors: `invalid_argument`, naming the places that are wrong; nothing changes then.
    pub(crate) fn configure(&self, text: &str) -> Result<()> {
        let wrong = |message: String| Error::new(ErrorCode::InvalidArgument, message);
        let configs = models_file::parse(text).map_err(wrong)?;
        let _one_at_a_time = lock(&self.configuring);
        let before = self.table();
        let kept = lock(&self.given).clone();
        lock(&self.given).extend(configs);
        *lock(&self.table) = None;
        match self.table().problems.iter().find(|problem| !before.problems.contains(problem)) {
            None => Ok(()),
            Some(problem) => {
                *lock(&self.given) = kept;
                *lock(&self.table) = Some(before);
                Err(wrong(problem.message.clone()))
            }
        }
    }

    /// The models, composed when they are asked for. May read a file.
    pub(crate) fn table(&self) -> Arc<Table> {
        let mut table = lock(&self.table);
        table.get_or_insert_with(|| Arc::new(self.compose())).clone()
    }

    /// What configuration says about reaching a model.
    pub(super) fn access(&self, model: &Model) -> Access {
        let table = self.table();
        let Some(provider) = table.access.get(&model.provider) else { return Access::default() };
        let mut access = provider.all.clone();
        access.headers.extend(provider.headers.get(&model.id).into_iter().flatten().cloned());
        access
    }

    fn compose(&self) -> Table {
        let mut table = Table::default();
        let mut bases: Vec<(String, Vec<JsonObject>)> = Vec::new();
        if self.options.builtin {
            builtin().for_each(|model| take_in(&mut bases, model));
        }
        if let Some(path) = &self.options.newer_list {
            match models_file::read_list(path) {
                Ok(models) => models.into_iter().for_each(|model| take_in(&mut bases, model)),
                Err(problem) => table.problems.push(problem),
            }
        }
        let mut configs: Vec<(Option<PathBuf>, ProviderConfig)> = Vec::new();
        if let Some(path) = &self.options.models_file {
            match models_file::read(path) {
                Ok(found) => configs.extend(found.into_iter().map(|config| (Some(path.clone()), config))),
                Err(problem) => table.problems.push(problem),
            }
        }
        configs.extend(lock(&self.given).iter().map(|config| (None, config.clone())));
        for (_, config) in &configs {
            if !bases.iter().any(|(name, _)| *name == config.id) {
                bases.push((config.id.clone(), Vec::new()));
            }
        }
        for (name, models) in bases {
            table.provider(&name, models, configs.iter().filter(|(_, config)| config.id == name));
        }
        table
    }
}

/// Adds a model to those of its provider, in the place of one with the same id.
fn take_in(bases: &mut Vec<(String, Vec<JsonObject>)>, model: JsonObject) {
    let provider = model.get("provider").and_then(Value::as_str).unwrap_or_default();
    let models = match bases.iter().position(|(name, _)| name == provider) {
        Some(at) => &mut bases[at].1,
        None => {
            bases.push((provider.to_owned(), Vec::new()));
            let at = bases.len() - 1;
            &mut bases[at].1
        }
    };
    match models.iter_mut().find(|known| known.get("id") == model.get("id")) {
        Some(known) => *known = model,
        None => models.push(model),
    }
}

/// The built-in models as data.
fn builtin() -> impl Iterator<Item = JsonObject> {
    BUILTIN.lines().filter_map(|line| serde_json::from_str(line).ok())
}

impl Table {
    /// Composes one provider; a layer that fails leaves what is below it (P25).
    fn provider<'a>(
        &mut self,
        name: &str,
        base: Vec<JsonObject>,
        configs: impl Iterator<Item = &'a (Option<PathBuf>, ProviderConfig)>,
    ) {
        let mut models = base;
        let mut access = ProviderAccess::default();
        let usual = service(name).and_then(|service| service.usual);
        access.all.addresses.extend(models.iter().filter_map(merge::base_url));
        access.all.addresses.extend(usual.map(|(_, url)| url.to_owned()));
        let mut overrides = Vec::new();
        for (path, config) in configs {
            match merge::layer(&models, config, usual) {
                Ok(composed) => models = composed,
                Err(message) => {
                    let (path, provider) = (path.clone(), Some(name.to_owned()));
                    self.problems.push(ModelProblem { path, provider, message });
                    continue;
                }
            }
            access.configure(config);
            overrides.extend(config.object("modelOverrides"));
        }
        for (id, changes) in overrides.into_iter().flatten() {
            let found = models.iter_mut().find(|model| model.get("id").and_then(Value::as_str) == Some(id));
            if let (Some(model), Some(changes)) = (found, changes.as_object()) {
                merge::change(model, changes);
            }
        }
        access.all.addresses.extend(models.iter().filter_map(merge::base_url));
        access.all.addresses.sort();
        access.all.addresses.dedup();
        for mut model in models {
            model.insert("provider".to_owned(), name.into());
            // Headers may hold keys: they come from the access, resolved for each request.
            model.shift_remove("headers");
            self.models.extend(Model::from_json(&Value::Object(model)).map(Arc::new));
        }
        self.access.insert(name.to_owned(), access);
    }
}

impl ProviderAccess {
    /// Takes over keys and headers: the provider's, then of overrides, then of entries (P24).
    fn configure(&mut self, config: &ProviderConfig) {
        if let Some(key) = config.text("apiKey") {
            self.all.api_key = Some(key.to_owned());
        }
        self.all.auth_header |= config.flag("authHeader");
        self.all.headers.extend(config.object("headers").into_iter().flat_map(merge::headers));
        let overrides = config.object("modelOverrides").into_iter().flatten();
        let overrides = overrides.filter_map(|(id, changes)| Some((id.as_str(), changes.as_object()?)));
        let entries = config.models().filter_map(|model| Some((model.get("id")?.as_str()?, model)));
        for (id, model) in overrides.chain(entries) {
            if let Some(headers) = model.get("headers").and_then(Value::as_object) {
                self.headers.entry(id.to_owned()).or_default().extend(merge::headers(headers));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
