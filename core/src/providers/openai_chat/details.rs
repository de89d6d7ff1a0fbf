//! Structured reasoning (`reasoning_details`): collected while it streams, kept as the thinking block's signature (P325).

use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::JsonObject;
use crate::providers::openai_shared as shared;

/// The details of one response so far.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails(Vec<JsonObject>);

/// The field that holds the text of a detail of this type; `None` for types we do not know.
fn text_field(kind: &str) -> Option<&'static str> {
    match kind {
        "reasoning.text" => Some("text"),
        "reasoning.summary" => Some("summary"),
        "reasoning.encrypted" => Some("data"),
        _ => None,
    }
}

fn str_of<'a>(detail: &'a JsonObject, key: &str) -> Option<&'a str> {
    detail.get(key).and_then(Value::as_str)
}

/// A detail of a known type with text of the right shape; a closing piece of text may carry only a signature.
fn is_well_formed(detail: &JsonObject) -> bool {
    let Some(field) = str_of(detail, "type").and_then(text_field) else { return false };
    match detail.get(field) {
        Some(value) => value.is_string() || (field == "text" && value.is_null()),
        None => field == "text" && str_of(detail, "signature").is_some(),
    }
}

/// Whether `raw` is a list of well-formed details, which may be sent back as they are (P308).
pub(super) fn parse(raw: &str) -> Option<Value> {
    if !raw.trim_start().starts_with('[') {
        return None;
    }
    let value = crate::json::parse(raw.as_bytes())?;
    let list = value.as_array()?;
    let good = !list.is_empty() && list.iter().all(|detail| detail.as_object().is_some_and(is_well_formed));
    good.then_some(value)
}

impl ReasoningDetails {
    /// Takes the details of one delta.
    pub(super) fn add(&mut self, raw: &RawValue) {
        for detail in shared::list::<JsonObject>(Some(raw)) {
            if is_well_formed(&detail) {
                self.merge(detail);
            }
        }
    }

    /// Text continues the detail before it when that has the same type and place; encrypted pieces stay apart.
    fn merge(&mut self, detail: JsonObject) {
        let kind = str_of(&detail, "type").unwrap_or_default();
        let field = text_field(kind).unwrap_or("text");
        let same = |last: &JsonObject| {
            kind != "reasoning.encrypted"
                && str_of(last, "type") == Some(kind)
                && last.get("index").or(Some(&Value::Null)) == detail.get("index").or(Some(&Value::Null))
        };
        let Some(last) = self.0.last_mut().filter(|last| same(last)) else {
            self.0.push(detail);
            return;
        };
        for (key, value) in detail {
            if key == field {
                if let (Some(Value::String(known)), Value::String(more)) = (last.get_mut(&key), &value) {
                    known.push_str(more);
                    continue;
                }
                if last.get(&key).is_some_and(Value::is_string) {
                    continue;
                }
            }
            if !value.is_null() || !last.contains_key(&key) {
                last.insert(key, value);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The signature they make; `None` when there were none.
    pub(super) fn signature(&self) -> Option<String> {
        if self.0.is_empty() { None } else { Some(crate::json::to_string(&self.0)) }
    }
}
