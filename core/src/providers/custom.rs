//! Models that nobody described: an id that is not known, of a provider that is (P91).

use std::sync::Arc;

use super::choose::split_level;
use super::services::service;
use super::{Model, initial};

/// Context and answer of a model of which nothing is known (P22).
const WINDOW: u64 = 128_000;
const ANSWER: u64 = 16_384;

/// What `provider/id` means when no model is called so: a model with the facts of the provider's default, or of a service
/// that is known without any models; and the thinking level behind the id. `None` when the provider is not known.
pub(crate) fn custom(models: &[Arc<Model>], text: &str) -> Option<(Model, Option<String>)> {
    let (wanted, rest) = text.trim().split_once('/')?;
    let (id, level) = split_level(rest).map_or((rest, None), |(id, level)| (id, Some(level.to_owned())));
    if id.is_empty() || id.contains(char::is_whitespace) {
        return None;
    }
    let named = models.iter().find(|model| model.provider.eq_ignore_ascii_case(wanted));
    let mut model = match named {
        Some(named) => Model::clone(initial::default_of(models, &named.provider)?),
        None => {
            let provider = wanted.to_ascii_lowercase();
            let (api, url) = service(&provider)?.usual?;
            let mut model = Model::new(provider, id, api);
            model.base_url = url.to_owned();
            (model.context_window, model.max_tokens) = (WINDOW, ANSWER);
            model
        }
    };
    model.name = id.to_owned();
    model.id = id.to_owned();
    Some((model, level))
}
