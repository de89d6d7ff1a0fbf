//! What tokens cost (P2, P60, P61).

use serde_json::Value;

use crate::message::{Cost, Usage};

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Uncached prompt tokens.
    pub input: f64,
    /// Produced tokens.
    pub output: f64,
    /// Prompt tokens read from a cache.
    pub cache_read: f64,
    /// Prompt tokens written to a cache; for an hour they cost twice the input price.
    pub cache_write: f64,
}

/// Prices of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prices {
    /// The usual ones.
    pub rates: Rates,
    /// Others for long prompts: a prompt of more than so many tokens is priced by the highest such tier as a whole.
    pub tiers: Vec<(u64, Rates)>,
}

impl Rates {
    fn from_json(value: &Value) -> Rates {
        let number = |key: &str| value.get(key).and_then(Value::as_f64).filter(|rate| *rate >= 0.0).unwrap_or(0.0);
        Rates {
            input: number("input"),
            output: number("output"),
            cache_read: number("cacheRead"),
            cache_write: number("cacheWrite"),
        }
    }
}

impl Prices {
    /// Prices in the shape of catalogues (P2); what is missing is 0.
    pub fn from_json(value: &Value) -> Prices {
        let tiers = value.get("tiers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let tier = |tier: &Value| {
            let above = tier.get("inputTokensAbove").and_then(Value::as_f64)?;
            Some((above.max(0.0) as u64, Rates::from_json(tier)))
        };
        Prices { rates: Rates::from_json(value), tiers: tiers.iter().filter_map(tier).collect() }
    }

    /// The prices that hold for a request with this usage.
    pub fn rates_for(&self, usage: &Usage) -> Rates {
        let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        let tier = self.tiers.iter().filter(|(above, _)| *above < prompt).max_by_key(|(above, _)| *above);
        tier.map_or(self.rates, |(_, rates)| *rates)
    }

    /// What a request with this usage costs.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let rates = self.rates_for(usage);
        let price = |rate: f64, tokens: u64| rate / 1e6 * tokens as f64;
        let hour = usage.cache_write_1h.unwrap_or(0).min(usage.cache_write);
        let written = rates.cache_write * (usage.cache_write - hour) as f64 + 2.0 * rates.input * hour as f64;
        let mut cost = Cost {
            input: price(rates.input, usage.input),
            output: price(rates.output, usage.output),
            cache_read: price(rates.cache_read, usage.cache_read),
            cache_write: written / 1e6,
            total: 0.0,
            total_from_provider: Some(false),
        };
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        cost
    }
}
