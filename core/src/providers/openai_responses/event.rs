//! The shape of one event of the Responses API, read without copying text.
//!
//! Real servers leave out `output_index`, `content_index`, whole events and most fields, so everything is optional.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::Usage;
use crate::providers::openai_shared as shared;
use crate::providers::wire::{Count, Text};

#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(default)]
    pub(super) output_index: Count,
    #[serde(borrow, default)]
    pub(super) item_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) delta: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Text<'a>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) code: Text<'a>,
    #[serde(borrow, default)]
    pub(super) message: Text<'a>,
}

/// One output item.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) namespace: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Text<'a>,
    #[serde(borrow)]
    pub(super) input: Text<'a>,
    #[serde(borrow)]
    pub(super) phase: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) encrypted_content: Text<'a>,
}

/// A part of a message's content, of reasoning content or of a summary.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    refusal: Text<'a>,
}

/// The texts of a list of parts; `None` when there is no part with text.
pub(super) fn texts(raw: Option<&RawValue>, separator: &str) -> Option<String> {
    let parts: Vec<Part<'_>> = shared::list(raw);
    let mut texts = parts.iter().filter_map(|part| part.text.0.as_deref().or(part.refusal.0.as_deref())).peekable();
    texts.peek()?;
    Some(texts.collect::<Vec<&str>>().join(separator))
}

/// The response object of a lifecycle event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) service_tier: Text<'a>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) incomplete_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

impl Response<'_> {
    /// Why it is incomplete.
    pub(super) fn incomplete_reason(&self) -> Option<String> {
        let details: Value = shared::read(self.incomplete_details)?;
        details.get("reason").and_then(Value::as_str).map(str::to_owned)
    }

    /// The tokens it took (P424).
    pub(super) fn usage(&self) -> Option<Usage> {
        let raw: RawUsage = shared::read(self.usage)?;
        let input = raw.input_tokens_details.unwrap_or_default();
        let (cached, written) = (input.cached_tokens.or_zero(), input.cache_write_tokens.or_zero());
        let output = raw.output_tokens.or_zero();
        let reasoning = raw.output_tokens_details.unwrap_or_default().reasoning_tokens.or_zero();
        let prompt = raw.input_tokens.or_zero();
        Some(Usage {
            input: prompt.saturating_sub(cached).saturating_sub(written),
            output,
            cache_read: cached,
            cache_write: written,
            reasoning: Some(reasoning),
            total_tokens: raw.total_tokens.0.unwrap_or_else(|| prompt.saturating_add(output)),
            ..Usage::default()
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawUsage {
    input_tokens: Count,
    output_tokens: Count,
    total_tokens: Count,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Count,
}
