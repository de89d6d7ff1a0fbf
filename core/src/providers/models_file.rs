//! Configuration of providers and models, in the shape of pi's `models.json` (P20–P25).

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::{lenient_config, models_shape};
use crate::json;
use crate::message::JsonObject;

/// Most bytes of a file.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Most faults that an error names.
const SHOWN: usize = 8;

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
        Some(text) => checked(&text, false).map_err(|message| problem(path, message)),
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
    let bytes =
        std::fs::read(path).map_err(|error| problem(format!("cannot read the configuration of models: {error}")))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads a configuration that the host gives as a text.
///
/// Errors: what is wrong with it, naming the places.
pub(super) fn parse(text: &str) -> Result<Vec<ProviderConfig>, String> {
    checked(text, true)
}

/// `host` says that it is no file, but the host's.
fn checked(text: &str, host: bool) -> Result<Vec<ProviderConfig>, String> {
    let value: Value = serde_json::from_str(&json::to_serde(lenient_config::plain(text).as_bytes()))
        .map_err(|error| format!("the configuration of models is no JSON: {error}"))?;
    let faults = models_shape::faults(&value, host);
    if !faults.is_empty() {
        let (shown, more) = faults.split_at(faults.len().min(SHOWN));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        return Err(format!("the configuration of models is wrong: {}{more}", shown.join("; ")));
    }
    let providers = value.get("providers").and_then(Value::as_object).into_iter().flatten();
    Ok(providers
        .filter_map(|(id, values)| Some(ProviderConfig { id: id.clone(), values: values.as_object()?.clone() }))
        .collect())
}
