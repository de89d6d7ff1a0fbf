//! What a caller may ask for beyond the conversation (P40).

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

use crate::message::JsonObject;

/// How long a prompt should stay in the service's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheRetention {
    /// It is not marked for caching.
    None,
    /// The service's usual time.
    #[default]
    Short,
    /// An hour or a day, where the service has that.
    Long,
}

/// Whether the model may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// Not at all.
    None,
}

/// Options of one request; the default is what nothing special needs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestOptions {
    /// Randomness, where the model takes it.
    pub temperature: Option<f64>,
    /// Longest answer in tokens; the model's own limit without it.
    pub max_tokens: Option<u64>,
    /// Fields merged into the request, above those of the model (P314).
    pub sampling_params: JsonObject,
    /// Caching of the prompt.
    pub cache_retention: CacheRetention,
    /// Facts about the caller, for example `user_id`.
    pub metadata: JsonObject,
    /// Tokens for thinking by level, above the usual ones (P72).
    pub thinking_budgets: BTreeMap<String, u64>,
    /// Whether the model may call tools; the service's default without it.
    pub tool_choice: Option<ToolChoice>,
    /// Service tier, where there is one.
    pub service_tier: Option<String>,
    /// Headers above those of the model; `None` removes one. They go to the model's own origin only.
    pub headers: Vec<(String, Option<String>)>,
    /// A key for this request, above every other.
    pub api_key: Option<SecretString>,
    /// How often the request is repeated by the provider itself, before anything was answered (P103).
    pub max_retries: u32,
    /// A service that asks for a longer pause than this fails at once; `None` for no limit (P105).
    pub max_retry_delay: Option<Duration>,
    /// The longest wait for the beginning of an answer, for each try; only the limit of silence without it.
    pub timeout: Option<Duration>,
    /// The longest silence of the service; the engine's without it, `Some(None)` for no limit.
    pub idle_timeout: Option<Option<Duration>>,
}

impl Default for RequestOptions {
    fn default() -> RequestOptions {
        RequestOptions {
            temperature: None,
            max_tokens: None,
            sampling_params: JsonObject::new(),
            cache_retention: CacheRetention::default(),
            metadata: JsonObject::new(),
            thinking_budgets: BTreeMap::new(),
            tool_choice: None,
            service_tier: None,
            headers: Vec::new(),
            api_key: None,
            max_retries: 0,
            max_retry_delay: Some(Duration::from_secs(60)),
            timeout: None,
            idle_timeout: None,
        }
    }
}
