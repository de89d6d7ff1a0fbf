//! Deviations of a service from its protocol (P8).

use serde_json::Value;

use crate::message::JsonObject;

/// The flags of P8 as they were written; keys nobody knows are tolerated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compat(JsonObject);

impl Compat {
    /// Flags from an object such as `{"supportsStore": false}`.
    pub fn new(flags: JsonObject) -> Compat {
        Compat(flags)
    }

    /// All of them.
    pub fn object(&self) -> &JsonObject {
        &self.0
    }

    /// A yes or no; `None` if it was not said.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.0.get(key).and_then(Value::as_bool)
    }

    /// Whether a flag is on, with what holds if it was not said.
    pub fn is(&self, key: &str, default: bool) -> bool {
        self.flag(key).unwrap_or(default)
    }

    /// A word; `None` if it was not said.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// Anything; `None` if it was not said.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }
}
