//! Laying configuration over models (P21–P24).

use serde_json::{Value, json};

use super::models_file::ProviderConfig;
use crate::message::JsonObject;

/// Fields of a model that are merged key by key; others are replaced (P23).
const MERGED: [&str; 4] = ["thinkingLevelMap", "promptCache", "samplingParams", "cost"];

/// The models of a provider with one more layer of configuration. `usual` is the protocol and address of a service that is
/// known by name.
///
/// Errors: why this layer cannot be used.
pub(super) fn layer(
    base: &[JsonObject],
    config: &ProviderConfig,
    usual: Option<(&str, &str)>,
) -> Result<Vec<JsonObject>, String> {
    check(config)?;
    let mut models = base.to_vec();
    for model in &mut models {
        if let Some(url) = config.text("baseUrl") {
            model.insert("baseUrl".to_owned(), url.into());
        }
        if let Some(compat) = config.object("compat") {
            merge(model, "compat", compat, 2);
        }
    }
    for entry in config.models() {
        let model = complete(entry, &models, config, usual)?;
        match models.iter_mut().find(|known| known.get("id") == model.get("id")) {
            Some(known) => *known = model,
            None => models.push(model),
        }
    }
    Ok(models)
}

fn check(config: &ProviderConfig) -> Result<(), String> {
    let id = &config.id;
    let filled = |key: &str| match config.values.get(key) {
        Some(Value::Object(object)) => key == "headers" || key == "compat" || !object.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
        None => false,
    };
    let needed = ["baseUrl", "headers", "compat", "modelOverrides", "models", "apiKey", "oauth", "authHeader"];
    if !needed.into_iter().any(filled) {
        return Err(format!("the provider {id:?} configures nothing; set one of {}", needed.join(", ")));
    }
    if config.values.contains_key("oauth") {
        let text = match config.text("baseUrl") {
            None => "oauth needs a baseUrl".to_owned(),
            Some(_) => "logins by oauth are not supported; give the provider an apiKey".to_owned(),
        };
        return Err(format!("the provider {id:?}: {text}"));
    }
    Ok(())
}

/// A model entry with everything that it leaves out (P22). `base` is what is known of the provider, earlier entries too.
fn complete(
    entry: &JsonObject,
    base: &[JsonObject],
    config: &ProviderConfig,
    usual: Option<(&str, &str)>,
) -> Result<JsonObject, String> {
    let text = |object: &JsonObject, key: &str| {
        object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let id = text(entry, "id").unwrap_or_default();
    let wanted = text(entry, "api").or_else(|| config.text("api").map(str::to_owned));
    let with = |key: &str, value: &str| base.iter().find(|model| text(model, key).as_deref() == Some(value));
    let like = with("id", &id)
        .or_else(|| wanted.as_deref().and_then(|api| with("api", api)))
        .or_else(|| with("api", "openai-completions"))
        .or_else(|| base.first());
    let usual_of = |which: fn((&str, &str)) -> String| usual.map(which);
    let api =
        wanted.or_else(|| like.and_then(|model| text(model, "api"))).or_else(|| usual_of(|(api, _)| api.to_owned()));
    let url = text(entry, "baseUrl")
        .or_else(|| config.text("baseUrl").map(str::to_owned))
        .or_else(|| like.and_then(|model| text(model, "baseUrl")))
        .or_else(|| usual_of(|(_, url)| url.to_owned()));
    let provider = &config.id;
    let Some(api) = api else { return Err(format!("the model {id:?} of the provider {provider:?} has no api")) };
    let Some(url) = url else {
        return Err(format!("the model {id:?} of the provider {provider:?}: baseUrl is required"));
    };
    let defaults = json!({
        "id": id, "name": id, "reasoning": false, "input": ["text"], "contextWindow": 128_000, "maxTokens": 16_384,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    });
    let mut model = match defaults {
        Value::Object(defaults) => defaults,
        _ => JsonObject::new(),
    };
    if let Some(compat) = config.object("compat") {
        merge(&mut model, "compat", compat, 2);
    }
    for (key, value) in entry {
        match (key.as_str(), value) {
            ("compat" | "cost", Value::Object(value)) => merge(&mut model, key, value, 2),
            _ => drop(model.insert(key.clone(), value.clone())),
        }
    }
    model.insert("api".to_owned(), api.into());
    model.insert("baseUrl".to_owned(), url.into());
    Ok(model)
}

/// Changes single fields of a model (P23). Which model it is and where it is are no such fields; headers are the access's.
pub(super) fn change(model: &mut JsonObject, changes: &JsonObject) {
    for (key, value) in changes {
        match (key.as_str(), value) {
            ("id" | "type" | "provider" | "api" | "baseUrl" | "headers", _) => {}
            ("compat", Value::Object(value)) => merge(model, key, value, 2),
            ("samplingParamsByThinkingLevel", Value::Object(value)) => merge(model, key, value, 2),
            ("inputLimits", Value::Object(value)) => merge(model, key, value, 3),
            (field, Value::Object(value)) if MERGED.contains(&field) => merge(model, key, value, 1),
            _ => drop(model.insert(key.clone(), value.clone())),
        }
    }
}

/// Merges an object into a field, key by key, and objects in it as well for `depth` levels.
fn merge(model: &mut JsonObject, key: &str, over: &JsonObject, depth: usize) {
    let under = model.entry(key).or_insert_with(|| Value::Object(JsonObject::new()));
    if !under.is_object() {
        *under = Value::Object(JsonObject::new());
    }
    if let Value::Object(under) = under {
        for (key, value) in over {
            match value {
                Value::Object(value) if depth > 1 => merge(under, key, value, depth - 1),
                value => drop(under.insert(key.clone(), value.clone())),
            }
        }
    }
}

pub(super) fn base_url(model: &JsonObject) -> Option<String> {
    model.get("baseUrl").and_then(Value::as_str).filter(|url| !url.is_empty()).map(str::to_owned)
}

pub(super) fn headers(headers: &JsonObject) -> impl Iterator<Item = (String, Option<String>)> {
    headers.iter().map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned)))
}
