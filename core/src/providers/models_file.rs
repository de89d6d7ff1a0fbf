//! Configuration of providers and models, in the shape of pi's `models.json` (P20–P25).

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::lenient_config;
use crate::message::JsonObject;

/// Most bytes of a file.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Configuration of models that is not in use, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelProblem {
    /// The file; `None` for configuration that the host gave as a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The provider it is about; `None` when nothing of the file is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What is wrong, in a sentence. Holds no values of the configuration.
    pub message: String,
}

impl fmt::Display for ModelProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.path {
            Some(path) => write!(f, " ({})", path.display()),
            None => Ok(()),
        }
    }
}

/// The configuration of one provider, checked for types.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ProviderConfig {
    pub(super) id: String,
    pub(super) values: JsonObject,
}

impl ProviderConfig {
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub(super) fn object(&self, key: &str) -> Option<&JsonObject> {
        self.values.get(key).and_then(Value::as_object)
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.values.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The entries of `models`.
    pub(super) fn models(&self) -> impl Iterator<Item = &JsonObject> {
        self.values.get("models").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
    }
}

/// Reads a file; a missing one configures nothing. Blocks.
///
/// Errors: what is wrong with it; then nothing of it counts.
pub(super) fn read(path: &Path) -> Result<Vec<ProviderConfig>, ModelProblem> {
    match text(path)? {
        Some(text) => parse(&text).map_err(|message| problem(path, message)),
        None => Ok(Vec::new()),
    }
}

/// Reads a list of models, one on each line. Blocks.
///
/// Errors: the first line that is wrong; then nothing of it counts.
pub(super) fn read_list(path: &Path) -> Result<Vec<JsonObject>, ModelProblem> {
    let Some(text) = text(path)? else {
        return Err(problem(path, "the list of models is not there".to_owned()));
    };
    let mut models = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |why: &str| problem(path, format!("line {} of the list of models: {why}", at + 1));
        let model: JsonObject = serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
        if model.get("type").is_some_and(|kind| kind != "chat") {
            continue;
        }
        let named = ["provider", "id", "api"].map(|key| model.get(key).and_then(Value::as_str).unwrap_or_default());
        if named.contains(&"") {
            return Err(wrong("a model needs a provider, an id and an api"));
        }
        models.push(model);
    }
    Ok(models)
}

fn problem(path: &Path, message: String) -> ModelProblem {
    ModelProblem { path: Some(path.to_path_buf()), provider: None, message }
}

/// The text of a file; `None` if there is none.
fn text(path: &Path) -> Result<Option<String>, ModelProblem> {
    let problem = |message: String| problem(path, message);
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(problem(format!("cannot read the configuration of models: {error}"))),
    };
    if !metadata.is_file() || metadata.len() > LIMIT {
        return Err(problem("the configuration of models is no regular file, or a very large one".to_owned()));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| problem(format!("cannot read the configuration of models: {error}")))?;
    Ok(Some(text))
}

/// Reads a configuration.
///
/// Errors: what is wrong with it, naming the places.
pub(super) fn parse(text: &str) -> Result<Vec<ProviderConfig>, String> {
    let value: Value = serde_json::from_str(&lenient_config::plain(text))
        .map_err(|error| format!("the configuration of models is no JSON: {error}"))?;
    let mut check = Check::default();
    check.file(&value);
    if !check.wrong.is_empty() {
        let (shown, more) = check.wrong.split_at(check.wrong.len().min(8));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        return Err(format!("the configuration of models is wrong: {}{more}", shown.join("; ")));
    }
    let providers = value.get("providers").and_then(Value::as_object).into_iter().flatten();
    Ok(providers
        .filter_map(|(id, values)| Some(ProviderConfig { id: id.clone(), values: values.as_object()?.clone() }))
        .collect())
}

/// Collects the places where something of the wrong type stands.
#[derive(Default)]
struct Check {
    wrong: Vec<String>,
}

impl Check {
    fn expect(&mut self, ok: bool, path: &str, what: &str) -> bool {
        if !ok {
            self.wrong.push(format!("{path} must be {what}"));
        }
        ok
    }

    fn file(&mut self, value: &Value) {
        let Some(file) = value.as_object() else {
            self.expect(false, "the file", "an object");
            return;
        };
        let Some(providers) = file.get("providers").and_then(Value::as_object) else {
            self.expect(false, "providers", "an object");
            return;
        };
        for (id, provider) in providers {
            let path = format!("providers.{id}");
            let Some(provider) = provider.as_object() else {
                self.expect(false, &path, "an object");
                continue;
            };
            self.texts(provider, &path, &["name", "baseUrl", "apiKey", "api", "oauth"]);
            self.headers(provider, &path);
            self.objects(provider, &path, &["compat", "modelOverrides"]);
            self.flags(provider, &path, &["authHeader"]);
            match provider.get("models") {
                None => {}
                Some(Value::Array(models)) => {
                    for (at, model) in models.iter().enumerate() {
                        self.model(model, &format!("{path}.models.{at}"), true);
                    }
                }
                Some(_) => drop(self.expect(false, &format!("{path}.models"), "a list")),
            }
            let overrides = provider.get("modelOverrides").and_then(Value::as_object).into_iter().flatten();
            for (model, changes) in overrides {
                self.model(changes, &format!("{path}.modelOverrides.{model}"), false);
            }
        }
    }

    fn model(&mut self, model: &Value, path: &str, needs_id: bool) {
        let Some(model) = model.as_object() else {
            self.expect(false, path, "an object");
            return;
        };
        if needs_id {
            let id = model.get("id").and_then(Value::as_str);
            self.expect(id.is_some_and(|id| !id.is_empty()), &format!("{path}.id"), "a text");
        }
        // An override has neither api nor baseUrl; what stands there does not count.
        self.texts(model, path, if needs_id { &["name", "api", "baseUrl"] } else { &["name"] });
        self.flags(model, path, &["reasoning"]);
        self.headers(model, path);
        let objects = [
            "compat",
            "cost",
            "thinkingLevelMap",
            "promptCache",
            "inputLimits",
            "samplingParams",
            "samplingParamsByThinkingLevel",
        ];
        self.objects(model, path, &objects);
        self.numbers(model, path, &["contextWindow", "maxTokens"]);
        if let Some(cost) = model.get("cost").and_then(Value::as_object) {
            self.numbers(cost, &format!("{path}.cost"), &["input", "output", "cacheRead", "cacheWrite"]);
        }
        if let Some(map) = model.get("thinkingLevelMap").and_then(Value::as_object) {
            for (level, word) in map {
                self.expect(
                    word.is_string() || word.is_null(),
                    &format!("{path}.thinkingLevelMap.{level}"),
                    "a text or null",
                );
            }
        }
        if let Some(input) = model.get("input") {
            let known = |kind: &Value| matches!(kind.as_str(), Some("text" | "image"));
            let ok = input.as_array().is_some_and(|input| input.iter().all(known));
            self.expect(ok, &format!("{path}.input"), "a list of \"text\" and \"image\"");
        }
    }

    fn texts(&mut self, object: &JsonObject, path: &str, keys: &[&str]) {
        self.each(object, path, keys, "a text", Value::is_string);
    }

    fn flags(&mut self, object: &JsonObject, path: &str, keys: &[&str]) {
        self.each(object, path, keys, "true or false", Value::is_boolean);
    }

    fn objects(&mut self, object: &JsonObject, path: &str, keys: &[&str]) {
        self.each(object, path, keys, "an object", Value::is_object);
    }

    fn numbers(&mut self, object: &JsonObject, path: &str, keys: &[&str]) {
        let ok = |value: &Value| value.as_f64().is_some_and(|number| number >= 0.0);
        self.each(object, path, keys, "a number that is not negative", ok);
    }

    fn headers(&mut self, object: &JsonObject, path: &str) {
        self.objects(object, path, &["headers"]);
        for (name, value) in object.get("headers").and_then(Value::as_object).into_iter().flatten() {
            self.expect(value.is_string() || value.is_null(), &format!("{path}.headers.{name}"), "a text or null");
        }
    }

    fn each(&mut self, object: &JsonObject, path: &str, keys: &[&str], what: &str, ok: impl Fn(&Value) -> bool) {
        for key in keys {
            if let Some(value) = object.get(*key) {
                self.expect(ok(value), &format!("{path}.{key}"), what);
            }
        }
    }
}
