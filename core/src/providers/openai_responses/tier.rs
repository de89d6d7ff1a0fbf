//! What service tiers do to prices (P424).

use crate::message::Cost;

/// Multiplies every part of a cost.
pub(super) fn scale(cost: &mut Cost, factor: f64) {
    for part in [&mut cost.input, &mut cost.output, &mut cost.cache_read, &mut cost.cache_write] {
        *part *= factor;
    }
    cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
}

/// What a service tier does to prices (P424).
pub(super) fn tier_factor(tier: Option<&str>, model: &str) -> f64 {
    match tier {
        Some("flex") => 0.5,
        Some("priority" | "fast") if model == "gpt-5.5" => 2.5,
        Some("priority" | "fast") => 2.0,
        _ => 1.0,
    }
}
