//! Choosing a model for somebody: by patterns, by an id that nobody described, or when nobody chose (P91, P92).

use std::sync::Arc;

use crate::engine::{Engine, EngineShared, lock};
use crate::error::Result;
use crate::providers::{self, Model, ModelChoice, ModelScope};
use crate::resources::settings::Settings;

impl Engine {
    /// As [`find_model`](Engine::find_model), but an unknown id of a known provider, `provider/id`, is a model as well (P91):
    /// one that came out yesterday, or that only this person has. It has the facts of the provider's default model, the
    /// choice has a warning that says so, and the engine knows it by its name from then on.
    ///
    /// Errors: `unknown_model`, naming what is near or between what to choose.
    pub fn find_model_or_custom(&self, text: &str) -> Result<ModelChoice> {
        let shared = self.shared();
        let models = shared.models();
        if let Some(choice) = providers::meant(&models, text, &|model: &Model| shared.is_usable(model))? {
            return Ok(choice);
        }
        let unknown = providers::unknown(&models, text.trim());
        let Some((model, thinking_level)) = providers::custom(&models, text) else { return Err(unknown) };
        if lock(&shared.models).add_model(model.clone(), &shared.remote).is_err() {
            return Err(unknown); // a provider that serves only what it names itself
        }
        let near = unknown.message().split_once("; did you mean ").map(|(_, near)| format!("; did you mean {near}"));
        let warning = format!(
            "nothing is known of the model {}; it is used as it is named, with the facts of another one{}",
            model.full_name(),
            near.unwrap_or_default()
        );
        Ok(ModelChoice { thinking_level, warning: Some(warning), ..ModelChoice::of(Arc::new(model)) })
    }

    /// The available models that patterns mean (P91): globs on `provider/id` or `id` in any case, `*` within a part, or texts
    /// as [`find_model`](Engine::find_model) takes them; `:level` behind a pattern chooses the thinking level. The setting
    /// `enabledModels` is such a list.
    pub fn models_in_scope<S: AsRef<str>>(&self, patterns: &[S]) -> ModelScope {
        let shared = self.shared();
        let mut models = shared.models();
        models.retain(|model| shared.is_usable(model));
        providers::scope(&models, patterns)
    }
}

impl EngineShared {
    /// The model for a session that nobody chose one for (P92): the first one of the setting `enabledModels`, for a new
    /// session; that of `defaultModel`, if it has a key; one that the host added; the default of the first service with a key;
    /// any other with one. Not the scripted ones: an answer from a script must not pass for a model's. If nothing has a key,
    /// that of `defaultModel` all the same: a prompt then says what is missing.
    pub(crate) fn initial_model(&self, settings: &Settings, new: bool) -> Option<ModelChoice> {
        let preferred = self.preferred_model(settings);
        let patterns = settings.enabled_models().filter(|_| new);
        if patterns.is_none()
            && let Some(model) = preferred.as_ref().filter(|model| self.is_usable(model))
        {
            return Some(ModelChoice::of(model.clone()));
        }
        let mut models = self.models();
        models.retain(|model| model.api != "scripted" && self.has_key(model));
        if let Some(patterns) = patterns
            && let Some(first) = providers::scope(&models, &patterns).models.into_iter().next()
        {
            return Some(first);
        }
        let preferred_usable = preferred.as_ref().filter(|model| self.is_usable(model)).cloned();
        let hosts = || {
            let host = lock(&self.models);
            models.iter().find(|model| host.provider(&model.provider).is_some()).cloned()
        };
        let found = preferred_usable.or_else(hosts).or_else(|| providers::first_model(&models, |_| true)).or(preferred);
        found.map(ModelChoice::of)
    }

    /// The model that the settings name, if it is known (S292).
    fn preferred_model(&self, settings: &Settings) -> Option<Arc<Model>> {
        let name = settings.default_model()?;
        let name = settings.default_provider().map_or_else(|| name.to_owned(), |provider| format!("{provider}/{name}"));
        self.model(&name).ok()
    }

    /// Whether the model needs no key or has one, without the hope that the host's own code finds one.
    pub(crate) fn has_key(&self, model: &Model) -> bool {
        providers::is_local(&model.base_url)
            || lock(&self.models).is_whole(&model.provider)
            || (self.options.credentials.is_none() && self.keyring.holds(model))
    }
}
