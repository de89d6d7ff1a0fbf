//! The JSON form of an engine's options: the same in every language that has no structs of ours.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::engine::{Engine, EngineOptions};
use crate::error::{Error, ErrorCode, Result};
use crate::json;
use crate::message::JsonObject;
use crate::providers::{Key, NetworkOptions, ProxyChoice};
use crate::tree;

/// Options of an engine as JSON: `{workerThreads?, agentDir?, defaultModel?, agentFiles?: true or a directory, modelsFile?,
/// authFile?, builtinModels?, models?: in the shape of models.json, keys?: {provider: key or {key, bearer?}}, environment?,
/// commands?, network?: {proxy?: "environment", "direct" or an address, caFile?, connectTimeoutMs?, idleTimeoutMs?: null for
/// none, maxRequestsPerOrigin?, headers?}, record?, settings?: in the shape of settings.json}`. An unknown key is an error, not a silence, and no error tells a value.
#[derive(Clone, Default)]
pub struct EngineForm {
    given: Given,
}

#[derive(Deserialize, Clone, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Given {
    worker_threads: Option<usize>,
    agent_dir: Option<PathBuf>,
    default_model: Option<String>,
    agent_files: Option<AgentFiles>,
    models_file: Option<PathBuf>,
    auth_file: Option<PathBuf>,
    builtin_models: Option<bool>,
    models: Option<JsonObject>,
    // Read by hand, for what serde says of a wrong value holds the value.
    keys: Option<Value>,
    environment: Option<bool>,
    commands: Option<bool>,
    network: Option<Network>,
    record: Option<PathBuf>,
    settings: Option<Value>,
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum AgentFiles {
    Usual(bool),
    Of(PathBuf),
}

#[derive(Deserialize, Clone, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Network {
    proxy: Option<String>,
    ca_file: Option<PathBuf>,
    connect_timeout_ms: Option<u64>,
    #[serde(deserialize_with = "given")]
    idle_timeout_ms: Option<Option<u64>>,
    max_requests_per_origin: Option<usize>,
    headers: Option<Value>,
}

/// Tells `null` from what is absent.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::<u64>::deserialize(from).map(Some)
}

impl EngineForm {
    /// Reads the form.
    ///
    /// Errors: `invalid_argument`, naming what is wrong.
    pub fn from_value(value: Value) -> Result<EngineForm> {
        if !value.is_object() {
            return Err(invalid("bad engine options: they are an object".to_owned()));
        }
        let given: Given = json::form(value).map_err(|error| invalid(format!("bad engine options: {error}")))?;
        Ok(EngineForm { given })
    }

    /// The same for a text.
    pub fn from_json(text: &str) -> Result<EngineForm> {
        let value = serde_json::from_str(text)
            .map_err(|error| invalid(format!("bad engine options: they are no JSON: {error}")))?;
        EngineForm::from_value(value)
    }

    /// Starts an engine with these options above those of `base`.
    ///
    /// Errors: `invalid_argument` for what cannot be, `file_exists` and `storage_failed` of the file to record to, `internal`.
    pub fn start(self, base: EngineOptions) -> Result<Engine> {
        let models = self.given.models.clone().map(Value::Object);
        let options = self.options(base)?;
        let record = options.record.clone();
        let engine = Engine::new(options)?;
        let configured = models.map_or(Ok(()), |models| engine.configure_models(&json::to_string(&models)));
        if configured.is_err()
            && let Some(record) = record
        {
            // It is ours and empty, and would be in the way of the next try.
            let _ = std::fs::remove_file(record);
        }
        configured.map(|()| engine)
    }

    fn options(self, mut options: EngineOptions) -> Result<EngineOptions> {
        let given = self.given;
        options.worker_threads = given.worker_threads.or(options.worker_threads);
        options.agent_dir = path(given.agent_dir).or(options.agent_dir);
        options.default_model = given.default_model.or(options.default_model);
        options = match given.agent_files {
            None | Some(AgentFiles::Usual(false)) => options,
            Some(AgentFiles::Of(dir)) => options.agent_files(tree::expand_home(&dir)),
            Some(AgentFiles::Usual(true)) => {
                let dir = options.agent_dir.clone().unwrap_or_else(tree::agent_dir);
                options.agent_files(dir)
            }
        };
        options.catalogue.models_file = path(given.models_file).or(options.catalogue.models_file);
        options.catalogue.builtin = given.builtin_models.unwrap_or(options.catalogue.builtin);
        options.keys.auth_file = path(given.auth_file).or(options.keys.auth_file);
        options.keys.environment = given.environment.unwrap_or(options.keys.environment);
        options.keys.commands = given.commands.unwrap_or(options.keys.commands);
        options.keys.keys.extend(keys(given.keys)?);
        if let Some(network) = given.network {
            network.apply(&mut options.network)?;
        }
        options.record = path(given.record).or(options.record);
        match given.settings {
            None | Some(Value::Null) => {}
            Some(Value::Object(settings)) => options.settings.merge(settings),
            Some(_) => {
                let text = "bad engine options: settings is an object in the shape of settings.json";
                return Err(invalid(text.to_owned()));
            }
        }
        Ok(options)
    }
}

/// A leading `~` is the home directory.
fn path(given: Option<PathBuf>) -> Option<PathBuf> {
    given.map(|path| tree::expand_home(&path))
}

fn keys(given: Option<Value>) -> Result<Vec<(String, Key)>> {
    let keys = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(keys)) => keys,
        Some(_) => return Err(invalid("bad engine options: keys is an object of providers and keys".to_owned())),
    };
    let mut read = Vec::new();
    for (provider, value) in keys {
        let key = Key::from_host_value(value)
            .map_err(|problem| invalid(format!("bad engine options: keys.{provider}: {problem}")))?;
        read.extend(key.map(|key| (provider, key)));
    }
    Ok(read)
}

impl Network {
    fn apply(self, options: &mut NetworkOptions) -> Result<()> {
        if let Some(proxy) = self.proxy {
            options.proxy = proxy_choice(proxy)?;
        }
        options.ca_file = path(self.ca_file).or(options.ca_file.take());
        if let Some(limit) = self.connect_timeout_ms {
            options.connect_timeout = Duration::from_millis(limit);
        }
        if let Some(limit) = self.idle_timeout_ms {
            options.idle_timeout = limit.map(Duration::from_millis);
        }
        match self.max_requests_per_origin {
            Some(0) => return Err(invalid("bad engine options: network.maxRequestsPerOrigin is 0".to_owned())),
            Some(limit) => options.max_requests_per_origin = limit,
            None => {}
        }
        let headers = match self.headers {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Object(headers)) => headers,
            Some(_) => return Err(invalid("bad engine options: network.headers is an object of texts".to_owned())),
        };
        for (name, value) in headers {
            let Value::String(value) = value else {
                return Err(invalid(format!("bad engine options: network.headers.{name} is a text")));
            };
            options.headers.push((name, value));
        }
        Ok(())
    }
}

fn proxy_choice(text: String) -> Result<ProxyChoice> {
    match text.as_str() {
        "environment" => Ok(ProxyChoice::Environment),
        "direct" => Ok(ProxyChoice::Direct),
        // The address may hold a password: it is not told.
        address => match reqwest::Url::parse(address) {
            Ok(parsed) if parsed.has_host() => Ok(ProxyChoice::Url(text)),
            _ => {
                let text = "bad engine options: the proxy is \"environment\", \"direct\" or an address such as \
                            http://[user:password@]host:port";
                Err(invalid(text.to_owned()))
            }
        },
    }
}

impl std::fmt::Debug for EngineForm {
    /// Names what is given, without values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let given = &self.given;
        f.debug_struct("EngineForm")
            .field("agent_dir", &given.agent_dir)
            .field("default_model", &given.default_model)
            .field("models_file", &given.models_file)
            .field("auth_file", &given.auth_file)
            .field("models", &given.models.is_some())
            .field("keys", &given.keys.is_some())
            .field("network", &given.network.is_some())
            .field("record", &given.record)
            .finish_non_exhaustive()
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}
