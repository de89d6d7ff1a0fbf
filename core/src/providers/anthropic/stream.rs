//! The answer: events of the service become steps of the response (P220–P227).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::assemble::Assembler;
use super::super::billing::{self, Bill};
use super::super::openai_shared as shared;
use super::super::protocol::{Flow, Interpreter};
use super::super::sse::SseEvent;
use super::super::wire::{self, Count, Text, Wire};
use super::super::{Model, Prices};
use super::threads::{Begun, Threads};
use crate::message::{StopReason, Usage};

/// The events with a meaning; others are skipped unread.
const KNOWN: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];
const REFUSED: &str = "The model refused to complete the request";

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    message: Option<Start<'a>>,
    #[serde(borrow, default)]
    content_block: Option<Block<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    data: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
    #[serde(borrow, default)]
    stop_details: Option<Details<'a>>,
}

#[derive(Deserialize)]
struct Details<'a> {
    #[serde(borrow, default)]
    explanation: Text<'a>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    cache_creation_input_tokens: Count,
    #[serde(default)]
    cache_creation: Option<CacheCreation>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct CacheCreation {
    #[serde(default)]
    ephemeral_1h_input_tokens: Count,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: Count,
}

struct Events;

impl Wire for Events {
    type Of<'a> = Event<'a>;
}

/// The state of one answer.
pub(super) struct Messages {
    /// The prices of models that may have answered in place of the one that was asked (P224).
    fallbacks: Vec<(String, Prices)>,
    /// Those of the model that answers.
    prices: Prices,
    bills: bool,
    /// Where the request stands in the service's memory.
    thread: Option<(Arc<Threads>, Begun)>,
    /// Index in our message for each index of theirs.
    blocks: Vec<Option<usize>>,
    /// Arguments that came complete with the start of a call: theirs count if no piece follows.
    complete_input: Option<(usize, String)>,
    stop: Option<String>,
    explanation: Option<String>,
    stopped: bool,
}

impl Interpreter for Messages {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Assembler) -> Result<Flow, String> {
        let name = &*event.name;
        if name == "error" {
            return Err(event.data.clone().into_owned());
        }
        if event.data.is_empty() || (!name.is_empty() && !KNOWN.contains(&name)) {
            return Ok(Flow::Continue);
        }
        let read = wire::read::<Events, _>(&event.data, |data| self.take(&data, name, &event.data, out));
        read.unwrap_or_else(|problem| {
            Err(format!("the service sent an event {name:?} that is not JSON: {problem}; data={}", event.data))
        })
    }

    fn end(&mut self, out: &mut Assembler) -> Result<(), String> {
        if !self.stopped {
            return Err("the stream ended before message_stop".to_owned());
        }
        let reason = match self.stop.as_deref() {
            Some("end_turn" | "stop_sequence" | "pause_turn") => StopReason::Stop,
            Some("max_tokens") => StopReason::Length,
            Some("tool_use") => StopReason::ToolUse,
            Some("refusal") => return Err(self.explanation.take().unwrap_or_else(|| REFUSED.to_owned())),
            Some("sensitive") => {
                return Err("The service stopped the response because of its content (sensitive)".to_owned());
            }
            Some(other) => return Err(format!("the service stopped for an unknown reason: {other}")),
            None => return Err("the stream ended without a stop reason".to_owned()),
        };
        out.finish(reason);
        if let (Some((threads, begun)), Some(message)) = (&self.thread, out.finished()) {
            threads.replied(begun, message);
        }
        Ok(())
    }
}

/// The fallbacks of a model that have prices of their own.
fn fallback_prices(model: &Model) -> Vec<(String, Prices)> {
    let allowed = model.compat.get("allowedFallbackModels").and_then(Value::as_array);
    let own = |entry: &&Value| entry.get("provider").is_none_or(|provider| provider == model.provider.as_str());
    let priced = |entry: &Value| {
        let cost = entry.get("cost").filter(|cost| cost.is_object())?;
        Some((entry.get("model")?.as_str()?.to_owned(), Prices::from_json(cost)))
    };
    allowed.into_iter().flatten().filter(own).filter_map(priced).collect()
}

impl Messages {
    pub(super) fn new(model: &Model, thread: Option<(Arc<Threads>, Begun)>) -> Messages {
        Messages {
            fallbacks: fallback_prices(model),
            prices: model.prices.clone(),
            bills: billing::bills(model),
            thread,
            blocks: Vec::new(),
            complete_input: None,
            stop: None,
            explanation: None,
            stopped: false,
        }
    }

    fn take(&mut self, event: &Event<'_>, name: &str, data: &str, out: &mut Assembler) -> Result<Flow, String> {
        let index = || usize::try_from(event.index.or_zero()).unwrap_or(usize::MAX);
        match event.kind.filled().unwrap_or(name) {
            "content_block_delta" => {
                if let (Some(delta), Some(block)) = (&event.delta, self.block(index())) {
                    self.delta(delta, block, out);
                }
            }
            "content_block_start" => {
                if let Some(block) = &event.content_block {
                    self.start(block, index(), out);
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.block(index()) {
                    if let Some((_, input)) = self.complete_input.take_if(|(known, _)| *known == block)
                        && out.text_of(block).is_empty()
                    {
                        out.call_delta(block, &input);
                    }
                    out.end(block);
                }
            }
            "message_start" => {
                if let Some(message) = &event.message {
                    out.set_response_id(message.id.or_empty());
                    out.set_response_model(message.model.or_empty());
                    if let Some((_, prices)) = self.fallbacks.iter().find(|(id, _)| id == message.model.or_empty()) {
                        self.prices = prices.clone();
                    }
                    self.usage(message.usage, out);
                }
            }
            "message_delta" => {
                if let Some(delta) = &event.delta {
                    if let Some(stop) = delta.stop_reason.filled() {
                        self.stop = Some(stop.to_owned());
                        out.set("rawStopReason", stop);
                    }
                    let explanation = delta.stop_details.as_ref().and_then(|details| details.explanation.filled());
                    self.explanation = explanation.map(str::to_owned).or(self.explanation.take());
                }
                self.usage(event.usage, out);
            }
            "message_stop" => {
                self.stopped = true;
                return Ok(Flow::Done);
            }
            "error" => return Err(data.to_owned()),
            _ => {}
        }
        Ok(Flow::Continue)
    }

    fn block(&self, index: usize) -> Option<usize> {
        self.blocks.get(index).copied().flatten()
    }

    fn start(&mut self, block: &Block<'_>, index: usize, out: &mut Assembler) {
        // As many as a service may name without a block in between: nothing grows by a number alone.
        if index > self.blocks.len() + 1024 {
            return;
        }
        let ours = match block.kind.or_empty() {
            "text" => {
                let ours = out.text_start();
                out.text_delta(ours, block.text.or_empty());
                ours
            }
            "thinking" => {
                let ours = out.thinking_start();
                out.thinking_delta(ours, block.thinking.or_empty());
                if let Some(signature) = block.signature.filled() {
                    out.append_signature(ours, signature);
                }
                ours
            }
            "redacted_thinking" => out.redacted_thinking_start(block.data.or_empty()),
            "tool_use" => {
                let ours = out.call_start(block.id.or_empty(), block.name.or_empty());
                let input = block.input.map(RawValue::get).filter(|text| text.len() > 2 && text.starts_with('{'));
                self.complete_input = input.map(|text| (ours, text.to_owned()));
                ours
            }
            // A kind we do not know: its deltas find no block.
            _ => return,
        };
        if self.blocks.len() <= index {
            self.blocks.resize(index + 1, None);
        }
        self.blocks[index] = Some(ours);
    }

    fn delta(&mut self, delta: &Delta<'_>, block: usize, out: &mut Assembler) {
        match delta.kind.or_empty() {
            "text_delta" => out.text_delta(block, delta.text.or_empty()),
            "thinking_delta" => out.thinking_delta(block, delta.thinking.or_empty()),
            "input_json_delta" => out.call_delta(block, delta.partial_json.or_empty()),
            "signature_delta" => out.append_signature(block, delta.signature.or_empty()),
            _ => {}
        }
    }

    /// Counts are cumulative: what is named replaces what was known, what is missing or null changes nothing (P224).
    fn usage(&mut self, raw: Option<&RawValue>, out: &mut Assembler) {
        let Some(tokens) = shared::read::<Tokens>(raw) else { return };
        let known = out.usage();
        let hour = tokens.cache_creation.as_ref().and_then(|it| it.ephemeral_1h_input_tokens.0);
        let mut usage = Usage {
            input: tokens.input_tokens.0.unwrap_or(known.input),
            output: tokens.output_tokens.0.unwrap_or(known.output),
            cache_read: tokens.cache_read_input_tokens.0.unwrap_or(known.cache_read),
            cache_write: tokens.cache_creation_input_tokens.0.unwrap_or(known.cache_write),
            cache_write_1h: hour.or(known.cache_write_1h).or(Some(0)),
            reasoning: tokens.output_tokens_details.as_ref().and_then(|it| it.thinking_tokens.0).or(known.reasoning),
            ..Usage::default()
        };
        usage.total_tokens =
            [usage.input, usage.output, usage.cache_read, usage.cache_write].into_iter().fold(0, u64::saturating_add);
        let before = known.cost;
        usage.cost = self.prices.cost(&usage);
        let bill = shared::read::<Bill>(raw).filter(|_| self.bills).and_then(|bill| bill.total());
        match bill.or((before.total_from_provider == Some(true)).then_some(before.total)) {
            Some(total) => out.set_priced_usage(billing::billed(usage, total)),
            None => out.set_priced_usage(usage),
        }
    }
}
