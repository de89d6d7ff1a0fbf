//! Token counts and the price a router bills (P322, P62).

use serde_json::value::RawValue;

use super::chunk::RawUsage;
use crate::message::Usage;
use crate::providers::billing::Bill;
use crate::providers::openai_shared as shared;

/// Tokens of a usage object, and the billed price if there is one. `None` when there is no such object.
pub(super) fn read(object: Option<&RawValue>) -> Option<(Usage, Option<f64>)> {
    let raw: RawUsage = shared::read(object)?;
    let prompt = raw.prompt_tokens.or_zero();
    let details = raw.prompt_tokens_details.as_ref();
    let cached = details
        .and_then(|details| details.cached_tokens.0)
        .or(raw.prompt_cache_hit_tokens.0)
        .or(raw.cached_tokens.0)
        .unwrap_or(0);
    let written = details.and_then(|details| details.cache_write_tokens.0).unwrap_or(0);
    let reasoning = raw.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens.0);
    let mut usage = Usage {
        input: prompt.saturating_sub(cached).saturating_sub(written),
        output: raw.completion_tokens.or_zero(),
        cache_read: cached,
        cache_write: written,
        reasoning: Some(reasoning.unwrap_or(0)),
        ..Usage::default()
    };
    usage.total_tokens = usage.input.saturating_add(usage.output).saturating_add(cached).saturating_add(written);
    Some((usage, shared::read::<Bill>(object)?.total()))
}
