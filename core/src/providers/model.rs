//! Facts about a model (P1–P8).

use std::collections::BTreeMap;

use serde_json::Value;

use super::compat::Compat;
use super::cost::Prices;
use crate::message::JsonObject;

/// The thinking levels, least first.
pub(crate) const LEVELS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Facts about one model. `(provider, id)` identifies it.
///
/// Start from [`Model::new`] or [`Model::from_json`] and set what differs; more fields may be added.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The provider's name.
    pub provider: String,
    /// The model's id within the provider; may contain `/` and `:`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The wire protocol, for example `anthropic-messages`.
    pub api: String,
    /// Where requests go, without a trailing slash; empty for models that need no network.
    pub base_url: String,
    /// Whether it can think before it answers.
    pub reasoning: bool,
    /// The thinking levels it supports, least first (P80); `off` alone for a model that does not reason.
    pub thinking_levels: Vec<String>,
    /// Words of the service for levels; `None` marks a level as unsupported (P3).
    pub thinking_level_map: BTreeMap<String, Option<String>>,
    /// Whether it accepts images.
    pub images: bool,
    /// Prices in US dollars per million tokens; all zero when unknown.
    pub prices: Prices,
    /// Size of its context in tokens; 0 when unknown.
    pub context_window: u64,
    /// Longest answer in tokens; 0 when unknown.
    pub max_tokens: u64,
    /// Headers sent with every request; `None` removes one that is sent by default. Not for secrets: keys and headers
    /// with keys come from [`Credentials`](super::Credentials).
    pub headers: Vec<(String, Option<String>)>,
    /// Deviations of the service from its protocol (P8).
    pub compat: Compat,
    /// Fields merged into every request, last (P314).
    pub sampling_params: JsonObject,
    /// The same by thinking level.
    pub sampling_params_by_level: BTreeMap<String, JsonObject>,
    /// How long its prompt cache lives, in seconds: `short` and `long` (P4).
    pub prompt_cache: JsonObject,
    /// Limits of what it takes in (P4).
    pub input_limits: JsonObject,
}

impl Model {
    /// A model that does not reason and reads text only.
    pub fn new(provider: impl Into<String>, id: impl Into<String>, api: impl Into<String>) -> Model {
        let id = id.into();
        Model {
            provider: provider.into(),
            name: id.clone(),
            id,
            api: api.into(),
            base_url: String::new(),
            reasoning: false,
            thinking_levels: vec!["off".to_owned()],
            thinking_level_map: BTreeMap::new(),
            images: false,
            prices: Prices::default(),
            context_window: 0,
            max_tokens: 0,
            headers: Vec::new(),
            compat: Compat::default(),
            sampling_params: JsonObject::new(),
            sampling_params_by_level: BTreeMap::new(),
            prompt_cache: JsonObject::new(),
            input_limits: JsonObject::new(),
        }
    }

    /// The same model, reasoning at the levels `off`, `minimal`, `low`, `medium` and `high`.
    pub fn reasoning(mut self) -> Model {
        self.reasoning = true;
        self.set_thinking_level_map(BTreeMap::new());
        self
    }

    /// Sets the words for levels, and with them which levels are supported (P80).
    pub fn set_thinking_level_map(&mut self, map: BTreeMap<String, Option<String>>) {
        let supported = |level: &&str| match map.get(*level) {
            Some(word) => word.is_some(),
            None => !matches!(*level, "xhigh" | "max"),
        };
        self.thinking_levels = match self.reasoning {
            true => LEVELS.iter().filter(|level| supported(level)).map(|level| (*level).to_owned()).collect(),
            false => vec!["off".to_owned()],
        };
        self.thinking_level_map = map;
    }

    /// Reads a model in the shape of catalogues (P1): `id`, `api` and `provider` are needed, everything else has the
    /// defaults of [`Model::new`]. Fields of an unexpected type count as absent. `None` if `value` is no chat model.
    pub fn from_json(value: &Value) -> Option<Model> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        if text("type").is_some_and(|kind| kind != "chat") {
            return None;
        }
        let object = |key: &str| value.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
        let number = |key: &str| value.get(key).and_then(Value::as_f64).map_or(0, |number| number.max(0.0) as u64);
        let mut model = Model::new(text("provider")?, text("id")?, text("api")?);
        if let Some(name) = text("name") {
            model.name = name.to_owned();
        }
        model.base_url = text("baseUrl").unwrap_or_default().trim_end_matches('/').to_owned();
        model.reasoning = value.get("reasoning").and_then(Value::as_bool).unwrap_or(false);
        let input = value.get("input").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        model.images = input.iter().any(|kind| kind == "image");
        model.prices = value.get("cost").map(Prices::from_json).unwrap_or_default();
        model.context_window = number("contextWindow");
        model.max_tokens = number("maxTokens");
        model.headers = object("headers")
            .into_iter()
            .filter_map(|(name, value)| match value {
                Value::String(text) => Some((name, Some(text))),
                Value::Null => Some((name, None)),
                _ => None,
            })
            .collect();
        model.compat = Compat::new(object("compat"));
        model.sampling_params = object("samplingParams");
        model.sampling_params_by_level = object("samplingParamsByThinkingLevel")
            .into_iter()
            .filter_map(|(level, params)| Some((level, params.as_object()?.clone())))
            .collect();
        model.prompt_cache = object("promptCache");
        model.input_limits = object("inputLimits");
        let map = object("thinkingLevelMap").into_iter().filter_map(|(level, word)| match word {
            Value::String(word) => Some((level, Some(word))),
            Value::Null => Some((level, None)),
            _ => None,
        });
        model.set_thinking_level_map(map.collect());
        Some(model)
    }

    /// What the service calls a level: `Some(None)` if it is unsupported, `None` if the service's own word is the
    /// level's (P3).
    pub fn level_word(&self, level: &str) -> Option<Option<&str>> {
        self.thinking_level_map.get(level).map(Option::as_deref)
    }

    /// The level this model does when asked for `wanted` (P81).
    pub fn clamp_level(&self, wanted: &str) -> &str {
        let levels: Vec<&str> = self.thinking_levels.iter().map(String::as_str).collect();
        super::thinking::clamp(wanted, &levels)
    }

    /// The level a request asks for (P81); `None` for off, also at a model that cannot be off: then nothing is said (P310, P406).
    pub(crate) fn asked_level(&self, wanted: &str) -> Option<&str> {
        let level = if wanted == "off" { None } else { Some(self.clamp_level(wanted)) };
        level.filter(|level| self.reasoning && *level != "off")
    }

    /// Provider and id.
    pub(crate) fn name_parts(&self) -> (&str, &str) {
        (&self.provider, &self.id)
    }

    /// `provider/id`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}
