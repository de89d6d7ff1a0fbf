//! What models cost that may answer in place of the one that was asked (P224).

use std::sync::Arc;

use serde_json::{Value, json};

use super::Model;
use super::catalogue::Catalogue;
use super::compat::Compat;

const KEY: &str = "allowedFallbackModels";

/// The model with the prices of its fallbacks: those that come without any have the catalogue's of their provider and id, if it
/// knows them. Reads the catalogue only if there are such.
pub(super) fn priced(model: Arc<Model>, catalogue: &Catalogue) -> Arc<Model> {
    let Some(Value::Array(allowed)) = model.compat.get(KEY) else { return model };
    if allowed.iter().all(|entry| entry.get("cost").is_some()) {
        return model;
    }
    let table = catalogue.table();
    let price = |entry: &Value| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let id = entry.as_str().or_else(|| text("model"))?;
        let provider = text("provider").unwrap_or(&model.provider);
        let known = table.models.iter().find(|known| known.provider == provider && known.id == id)?;
        Some(json!({"provider": provider, "model": id, "cost": known.prices}))
    };
    let priced = |entry: &Value| match entry.get("cost") {
        Some(_) => entry.clone(),
        None => price(entry).unwrap_or_else(|| entry.clone()),
    };
    let allowed: Value = allowed.iter().map(priced).collect();
    let mut flags = model.compat.object().clone();
    flags.insert(KEY.to_owned(), allowed);
    let mut model = Model::clone(&model);
    model.compat = Compat::new(flags);
    Arc::new(model)
}
