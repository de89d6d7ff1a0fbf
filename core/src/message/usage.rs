//! Token counts and cost (S30, S117).

use serde_json::{Value, json};

use super::{JsonObject, field};

/// Tokens of one response, and what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Prompt tokens that were not cached.
    pub input: u64,
    /// Produced tokens, reasoning included.
    pub output: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// The part of `cache_write` kept for an hour.
    pub cache_write_1h: Option<u64>,
    /// The part of `output` spent on reasoning.
    pub reasoning: Option<u64>,
    /// The provider's own total; 0 when unknown.
    pub total_tokens: u64,
    /// Price in US dollars.
    pub cost: Cost,
}

/// Price of a response in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Of uncached prompt tokens.
    pub input: f64,
    /// Of produced tokens.
    pub output: f64,
    /// Of cache reads.
    pub cache_read: f64,
    /// Of cache writes.
    pub cache_write: f64,
    /// Everything together.
    pub total: f64,
    /// `total` is the provider's figure, not computed here.
    pub total_from_provider: Option<bool>,
}

impl Usage {
    /// Reads a usage object; missing numbers are 0. `None` if `value` is not an object.
    pub fn from_value(value: &Value) -> Option<Usage> {
        let object = value.as_object()?;
        let number = |key: &str| field(object, key).and_then(count);
        Some(Usage {
            input: number("input").unwrap_or(0),
            output: number("output").unwrap_or(0),
            cache_read: number("cacheRead").unwrap_or(0),
            cache_write: number("cacheWrite").unwrap_or(0),
            cache_write_1h: number("cacheWrite1h"),
            reasoning: number("reasoning"),
            total_tokens: number("totalTokens").unwrap_or(0),
            cost: field(object, "cost").and_then(Value::as_object).map(Cost::from_object).unwrap_or_default(),
        })
    }

    /// The usage as it is written (S30).
    pub fn to_value(&self) -> Value {
        let mut object = JsonObject::new();
        let mut put = |key: &str, value: Option<u64>| {
            if let Some(value) = value {
                object.insert(key.to_owned(), value.into());
            }
        };
        put("input", Some(self.input));
        put("output", Some(self.output));
        put("cacheRead", Some(self.cache_read));
        put("cacheWrite", Some(self.cache_write));
        put("cacheWrite1h", self.cache_write_1h);
        put("reasoning", self.reasoning);
        put("totalTokens", Some(self.total_tokens));
        object.insert("cost".to_owned(), self.cost.to_value());
        Value::Object(object)
    }

    /// Total for context estimates: the provider's, or the sum of the parts (S258).
    pub fn total(&self) -> u64 {
        match self.total_tokens {
            0 => [self.output, self.cache_read, self.cache_write].into_iter().fold(self.input, u64::saturating_add),
            total => total,
        }
    }

    /// Both together (S117). Like all counts here, no number of a file or service makes it overflow.
    pub fn add(&self, other: &Usage) -> Usage {
        let either = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            _ => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Usage {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: either(self.cache_write_1h, other.cache_write_1h),
            reasoning: either(self.reasoning, other.reasoning),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cost: Cost {
                input: self.cost.input + other.cost.input,
                output: self.cost.output + other.cost.output,
                cache_read: self.cost.cache_read + other.cost.cache_read,
                cache_write: self.cost.cache_write + other.cost.cache_write,
                total: self.cost.total + other.cost.total,
                total_from_provider: Some(
                    self.cost.total_from_provider == Some(true) && other.cost.total_from_provider == Some(true),
                ),
            },
        }
    }
}

impl Cost {
    fn from_object(object: &JsonObject) -> Cost {
        let number = |key: &str| field(object, key).and_then(Value::as_f64).unwrap_or(0.0);
        Cost {
            input: number("input"),
            output: number("output"),
            cache_read: number("cacheRead"),
            cache_write: number("cacheWrite"),
            total: number("total"),
            total_from_provider: field(object, "totalFromProvider").and_then(Value::as_bool),
        }
    }

    fn to_value(self) -> Value {
        let mut value = json!({
            "input": self.input,
            "output": self.output,
            "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write,
            "total": self.total,
        });
        if let (Some(flag), Some(object)) = (self.total_from_provider, value.as_object_mut()) {
            object.insert("totalFromProvider".to_owned(), flag.into());
        }
        value
    }
}

/// A count that some program may have written as a fraction or a negative number.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().map(|number| number as u64))
}
