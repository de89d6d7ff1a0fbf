//! What OpenRouter says it billed, with any of the protocols it speaks (P62).

use serde::Deserialize;
use serde_json::Value;

use super::Model;
use super::openai_shared::host_matches;
use crate::message::{Cost, Usage};

/// The parts of a bill. Anything may be missing or of another type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Bill {
    cost: Value,
    is_byok: Value,
    cost_details: Value,
}

/// Whether the service of a model bills.
pub(crate) fn bills(model: &Model) -> bool {
    model.provider == "openrouter" || host_matches(&model.base_url, "openrouter.ai")
}

impl Bill {
    /// The amount in US dollars; `None` if the figures are no bill.
    pub(crate) fn total(&self) -> Option<f64> {
        let amount = |number: &Value| number.as_f64().filter(|amount| *amount >= 0.0 && amount.is_finite());
        let cost = amount(&self.cost)?;
        // With a key of the user's own at another service, that service bills the rest.
        if !self.is_byok.as_bool()? {
            return Some(cost);
        }
        let detail = |key: &str| self.cost_details.get(key).and_then(amount);
        let parts = || Some(detail("upstream_inference_prompt_cost")? + detail("upstream_inference_completions_cost")?);
        Some(cost + detail("upstream_inference_cost").or_else(parts)?)
    }
}

/// Usage with that total in place of the computed one.
pub(crate) fn billed(usage: Usage, total: f64) -> Usage {
    Usage { cost: Cost { total, total_from_provider: Some(true), ..usage.cost }, ..usage }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn total(bill: Value) -> Option<f64> {
        serde_json::from_value::<Bill>(bill).unwrap().total()
    }

    #[test]
    fn p62_bills() {
        assert_eq!(total(json!({"cost": 0.5, "is_byok": false})), Some(0.5));
        let upstream = json!({"upstream_inference_cost": 0.25});
        assert_eq!(total(json!({"cost": 0.5, "is_byok": true, "cost_details": upstream})), Some(0.75));
        let parts = json!({"upstream_inference_prompt_cost": 0.25, "upstream_inference_completions_cost": 1});
        assert_eq!(total(json!({"cost": 0, "is_byok": true, "cost_details": parts})), Some(1.25));
        for none in [
            json!({}),
            json!({"cost": 0.5}),
            json!({"cost": "0.5", "is_byok": false}),
            json!({"cost": -1, "is_byok": false}),
            json!({"cost": 0.5, "is_byok": "no"}),
            json!({"cost": 0.5, "is_byok": true}),
            json!({"cost": 0.5, "is_byok": true, "cost_details": {"upstream_inference_prompt_cost": 1}}),
            json!({"cost": 0.5, "is_byok": true, "cost_details": [1]}),
        ] {
            assert_eq!(total(none.clone()), None, "{none}");
        }
    }
}
