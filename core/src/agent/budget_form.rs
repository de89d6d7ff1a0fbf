//! Limits and what was spent, as hosts of other languages write and read them.

use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::budget::{BudgetExceeded, BudgetLimits, BudgetUse};

/// `{requests?, turns?, tokens?, cost?, wallTimeMs?, ignoreUnknownPrices?}`
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Form {
    requests: Option<u64>,
    turns: Option<u64>,
    tokens: Option<u64>,
    cost: Option<f64>,
    wall_time_ms: Option<u64>,
    ignore_unknown_prices: bool,
}

impl<'de> Deserialize<'de> for BudgetLimits {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let form = Form::deserialize(from)?;
        if form.cost.is_some_and(|cost| !(cost >= 0.0 && cost.is_finite())) {
            return Err(serde::de::Error::custom("cost is no amount of US dollars"));
        }
        Ok(BudgetLimits {
            requests: form.requests,
            turns: form.turns,
            tokens: form.tokens,
            cost: form.cost,
            wall_time: form.wall_time_ms.map(Duration::from_millis),
            ignore_unknown_prices: form.ignore_unknown_prices,
        })
    }
}

impl Serialize for BudgetLimits {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let form = Form {
            requests: self.requests,
            turns: self.turns,
            tokens: self.tokens,
            cost: self.cost,
            wall_time_ms: self.wall_time.map(ms),
            ignore_unknown_prices: self.ignore_unknown_prices,
        };
        form.serialize(to)
    }
}

impl Serialize for BudgetUse {
    /// `{requests, turns, tokens, cost, unpricedRequests, wallTimeMs}`
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_struct("BudgetUse", 6)?;
        out.serialize_field("requests", &self.requests)?;
        out.serialize_field("turns", &self.turns)?;
        out.serialize_field("tokens", &self.tokens)?;
        out.serialize_field("cost", &self.cost)?;
        out.serialize_field("unpricedRequests", &self.unpriced_requests)?;
        out.serialize_field("wallTimeMs", &ms(self.wall_time))?;
        out.end()
    }
}

impl Serialize for BudgetExceeded {
    /// `{limit, used, max, priceUnknown}`
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_struct("BudgetExceeded", 4)?;
        out.serialize_field("limit", self.limit.name())?;
        out.serialize_field("used", &self.used)?;
        out.serialize_field("max", &self.max)?;
        out.serialize_field("priceUnknown", &self.price_unknown)?;
        out.end()
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_in_json_are_those_in_rust() {
        let limits = BudgetLimits::default().requests(3).cost(0.5).wall_time(Duration::from_millis(1500));
        let given = json!({"requests": 3, "cost": 0.5, "wallTimeMs": 1500});
        assert_eq!(serde_json::from_value::<BudgetLimits>(given).unwrap(), limits);
        let written = serde_json::to_value(limits).unwrap();
        assert_eq!(serde_json::from_value::<BudgetLimits>(written).unwrap(), limits);
        for bad in [json!({"cost": -1}), json!({"request": 1}), json!({"turns": 1.5}), json!(1), json!([])] {
            assert!(crate::json::form::<BudgetLimits>(bad.clone()).is_err(), "{bad}");
        }
    }
}
