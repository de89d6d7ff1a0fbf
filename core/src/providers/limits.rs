//! How much a request may ask for: estimates, output limit, thinking budget (P70–P73).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Model;
use crate::json::utf16_len;
use crate::message::{Block, Message, Role, StopReason, is_image};
use crate::tree::prompt_text;

/// What an image counts as, in characters.
const IMAGE: usize = 4800;
/// Tokens kept free at the least.
const MARGIN: u64 = 4096;
/// An answer shorter than this is cut only by [`MARGIN`].
const SHORT: u64 = 32_768;
/// Tokens that stay for the answer itself.
const ANSWER: u64 = 1024;

/// The estimate of one message in tokens (P70).
pub fn message_tokens(message: &Message) -> u64 {
    if message.role() == Role::System {
        // Prompt and tools are rounded by themselves.
        let list = |key: &str| message.get(key).filter(|list| list.as_array().is_some_and(|list| !list.is_empty()));
        let tools = |key: &str| list(key).map_or(0, |list| tokens(json_len(list)));
        return tokens(utf16_len(&prompt_text(message))) + tools("toolsAdded") + tools("toolsRemoved");
    }
    tokens(message.blocks().map(characters).sum())
}

/// The estimate of so many characters: one token for three and a half.
fn tokens(characters: usize) -> u64 {
    (characters as u64).saturating_mul(2).div_ceil(7)
}

fn characters(block: Block<'_>) -> usize {
    match block {
        Block::Text(text) => utf16_len(text.text),
        Block::Thinking(thinking) => utf16_len(thinking.thinking),
        Block::Image(_) => IMAGE,
        Block::ToolCall(call) => utf16_len(call.name) + json_len(call.arguments),
        Block::Other(block) if is_image(block) => IMAGE,
        Block::Other(_) => 0,
    }
}

fn json_len(value: &Value) -> usize {
    utf16_len(&crate::json::to_string(value))
}

/// The estimate of a conversation (P70): what the last usable response reported, and estimates of what follows it.
pub fn conversation_tokens(messages: &[Arc<Message>]) -> u64 {
    // A usage is stale if anything in front of it is newer, a summary for example.
    let mut newest = f64::NEG_INFINITY;
    let fresh = messages.iter().map(|message| {
        let time = message.shape().timestamp.unwrap_or(f64::NEG_INFINITY);
        let fresh = time >= newest;
        newest = newest.max(time);
        fresh
    });
    let fresh: Vec<bool> = fresh.collect();
    let usable = |at: &usize| fresh[*at].then(|| reported(&messages[*at])).flatten();
    let base = (0..messages.len()).rev().find_map(|at| Some((at + 1, usable(&at)?)));
    let (after, total) = base.unwrap_or((0, 0));
    messages[after..].iter().fold(total, |sum, message| sum.saturating_add(message_tokens(message)))
}

fn reported(message: &Message) -> Option<u64> {
    let failed = matches!(message.stop_reason(), Some(StopReason::Error | StopReason::Aborted));
    if message.role() != Role::Assistant || failed {
        return None;
    }
    message.usage().map(|usage| usage.total()).filter(|total| *total > 0)
}

/// The output limit to send for a prompt of about `input` tokens (P71).
pub fn clamp_output(wanted: u64, input: u64, window: u64) -> u64 {
    if window == 0 {
        return wanted;
    }
    let free = |margin: u64| window.saturating_sub(input).saturating_sub(margin);
    let roomy = free(MARGIN.max((u128::from(input) * 15).div_ceil(100) as u64));
    let most = if roomy < SHORT { free(MARGIN).min(SHORT) } else { roomy };
    wanted.min(most).max(1)
}

/// The output limit of a request (P71): the caller's or the model's. 0 if neither is known.
pub fn output_limit(model: &Model, wanted: Option<u64>, input: u64) -> u64 {
    match wanted.unwrap_or(model.max_tokens) {
        0 => 0,
        limit => clamp_output(limit, input, model.context_window),
    }
}

/// The budget of a thinking level (P72); 0 for `off` and for words that are no level.
pub fn thinking_budget(level: &str, own: &BTreeMap<String, u64>) -> u64 {
    let budget = |level: &str| own.get(level).copied();
    match level {
        "minimal" => budget(level).unwrap_or(1024),
        "low" => budget(level).unwrap_or(2048),
        "medium" => budget(level).unwrap_or(8192),
        "high" => budget(level).unwrap_or(16_384),
        "xhigh" | "max" => budget(level).or_else(|| budget("high")).unwrap_or(16_384),
        _ => 0,
    }
}

/// Output limit and thinking budget when the model thinks within a budget (P73).
pub fn thinking_limits(model: &Model, wanted: Option<u64>, input: u64, budget: u64) -> (u64, u64) {
    let cap = output_limit(model, wanted, input);
    let model_limit = if model.max_tokens == 0 { u64::MAX } else { model.max_tokens };
    let limit = clamp_output(cap.saturating_add(budget).min(model_limit), input, model.context_window);
    (limit, budget.min(limit.saturating_sub(ANSWER)))
}
