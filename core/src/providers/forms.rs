//! The JSON forms of models: the same in every language that has no structs of ours.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{Model, ModelChoice, ModelScope, Prices, Rates};

impl Serialize for Model {
    /// `{name, provider, id, displayName, api, baseUrl, reasoning, thinkingLevels, images, contextWindow, maxTokens, cost}`. `name`
    /// is the full name; of addresses and headers only `baseUrl` is told, and 0 is unknown.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(Some(12))?;
        out.serialize_entry("name", &self.full_name())?;
        out.serialize_entry("provider", &self.provider)?;
        out.serialize_entry("id", &self.id)?;
        out.serialize_entry("displayName", &self.name)?;
        out.serialize_entry("api", &self.api)?;
        out.serialize_entry("baseUrl", &self.base_url)?;
        out.serialize_entry("reasoning", &self.reasoning)?;
        out.serialize_entry("thinkingLevels", &self.thinking_levels)?;
        out.serialize_entry("images", &self.images)?;
        out.serialize_entry("contextWindow", &self.context_window)?;
        out.serialize_entry("maxTokens", &self.max_tokens)?;
        out.serialize_entry("cost", &self.prices)?;
        out.end()
    }
}

impl Model {
    /// The form in which hosts of other languages get it: `{name, provider, id, displayName, api, baseUrl, reasoning,
    /// thinkingLevels, images, contextWindow, maxTokens, cost: {input, output, cacheRead, cacheWrite, tiers?}}`. `name` is
    /// `provider/id`; prices are in US dollars per million tokens.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Rates {
    fn entries<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
        out.serialize_entry("input", &self.input)?;
        out.serialize_entry("output", &self.output)?;
        out.serialize_entry("cacheRead", &self.cache_read)?;
        out.serialize_entry("cacheWrite", &self.cache_write)
    }
}

impl Serialize for Prices {
    /// As catalogues have them (P2).
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(None)?;
        self.rates.entries(&mut out)?;
        if !self.tiers.is_empty() {
            let tiers: Vec<Tier<'_>> = self.tiers.iter().map(|(above, rates)| Tier(*above, rates)).collect();
            out.serialize_entry("tiers", &tiers)?;
        }
        out.end()
    }
}

struct Tier<'a>(u64, &'a Rates);

impl Serialize for Tier<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(Some(5))?;
        out.serialize_entry("inputTokensAbove", &self.0)?;
        self.1.entries(&mut out)?;
        out.end()
    }
}

impl Serialize for ModelChoice {
    /// `{model, thinkingLevel, warning?}`, the level `null` if the text named none.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(None)?;
        out.serialize_entry("model", &*self.model)?;
        out.serialize_entry("thinkingLevel", &self.thinking_level)?;
        if let Some(warning) = &self.warning {
            out.serialize_entry("warning", warning)?;
        }
        out.end()
    }
}

impl Serialize for ModelScope {
    /// `{models, warnings}`.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_map(Some(2))?;
        out.serialize_entry("models", &self.models)?;
        out.serialize_entry("warnings", &self.warnings)?;
        out.end()
    }
}
