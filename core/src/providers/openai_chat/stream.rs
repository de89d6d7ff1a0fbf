//! The stream of a chat completion: a state machine over the data of one event (P320–P325).
//!
//! A response has at most one thinking and one text block; calls have one each. Nothing says when a block is over, so
//! all of them end when the stream does, in block order (P324).

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::chunk::{CallPiece, Choice, Chunk, Delta};
use super::details::ReasoningDetails;
use super::usage;
use crate::message::{StopReason, Usage};
use crate::providers::assemble::Assembler;
use crate::providers::billing;
use crate::providers::grammar::InputAsJson;
use crate::providers::openai_shared as shared;
use crate::providers::protocol::{Flow, Interpreter};
use crate::providers::sse::SseEvent;
use crate::providers::wire::{self, Text, Wire};

struct Chunks;

impl Wire for Chunks {
    type Of<'a> = Chunk<'a>;
}

/// What the parser has to know of the request.
#[derive(Debug, Default)]
pub(super) struct ChatStreamOptions {
    /// The service says why it stops; a stream that ends without is incomplete.
    pub(super) supports_finish_reason: bool,
    /// The service reports what it billed (P62).
    pub(super) bills: bool,
    /// Tools with a grammar: name → the property that holds the input (P132).
    pub(super) grammar_tools: HashMap<String, String>,
}

/// The parser's state.
#[derive(Debug)]
pub(super) struct ChatStream {
    options: ChatStreamOptions,
    known: bool,
    served: bool,
    thinking: Option<usize>,
    text: Option<usize>,
    calls: Vec<Call>,
    by_index: HashMap<u64, usize>,
    /// The first call with an id.
    by_id: HashMap<String, usize>,
    details: ReasoningDetails,
    finish: Option<String>,
    error: Option<String>,
}

/// An open tool call.
#[derive(Debug)]
struct Call {
    block: usize,
    has_id: bool,
    named: bool,
    input: Option<InputAsJson>,
}

impl ChatStream {
    pub(super) fn new(options: ChatStreamOptions) -> ChatStream {
        ChatStream {
            options,
            known: false,
            served: false,
            thinking: None,
            text: None,
            calls: Vec::new(),
            by_index: HashMap::new(),
            by_id: HashMap::new(),
            details: ReasoningDetails::default(),
            finish: None,
            error: None,
        }
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, out: &mut Assembler) -> Result<(), String> {
        if let Some(error) = shared::error_text(chunk.error) {
            return Err(error);
        }
        if !self.known
            && let Some(id) = chunk.id.filled()
        {
            self.known = true;
            out.set_response_id(id);
        }
        if let Some(model) = chunk.model.filled() {
            // The first that differs; routers name several.
            if !self.served {
                out.set_response_model(model);
                self.served = model != out.model().id;
            }
        }
        let choice = chunk.choices.0.as_deref();
        self.usage(chunk.usage.or_else(|| choice.and_then(|choice| choice.usage)), out);
        match choice {
            Some(choice) => self.choice(choice, out),
            None => Ok(()),
        }
    }

    fn usage(&self, raw: Option<&RawValue>, out: &mut Assembler) {
        if let Some((usage, billed)) = usage::read(raw) {
            match billed.filter(|_| self.options.bills) {
                None => out.set_usage(usage),
                Some(total) => {
                    let cost = out.model().prices.cost(&usage);
                    out.set_priced_usage(billing::billed(Usage { cost, ..usage }, total));
                }
            }
        }
    }

    fn choice(&mut self, choice: &Choice<'_>, out: &mut Assembler) -> Result<(), String> {
        self.delta(&choice.delta, out)?;
        if let Some(reason) = choice.finish_reason.filled() {
            self.finish = Some(reason.to_owned());
            self.error = shared::error_text(choice.error);
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Delta<'_>, out: &mut Assembler) -> Result<(), String> {
        if let Some((field, text)) = delta.thinking() {
            let block = self.thinking_block(field, out);
            out.thinking_delta(block, text);
        }
        if let Some(raw) = delta.reasoning_details {
            // Kept to be sent back; what is to be read comes in the fields before.
            self.details.add(raw);
            if !self.details.is_empty() {
                self.thinking_block("", out);
            }
        }
        if let Some(text) = delta.content.filled().or_else(|| delta.refusal.filled()) {
            let block = *self.text.get_or_insert_with(|| out.text_start());
            out.text_delta(block, text);
        }
        for piece in delta.tool_calls.iter().flatten() {
            self.call(piece, out);
        }
        Ok(())
    }

    fn thinking_block(&mut self, field: &str, out: &mut Assembler) -> usize {
        *self.thinking.get_or_insert_with(|| {
            let block = out.thinking_start();
            if !field.is_empty() {
                out.set_signature(block, field);
            }
            block
        })
    }

    /// The call a piece belongs to: by its index, else by its id, else the last one (P321).
    fn find(&self, piece: &CallPiece<'_>) -> Option<usize> {
        let id = piece.id.filled();
        match piece.index.0 {
            Some(index) => self.by_index.get(&index).copied(),
            None => match id {
                Some(id) => self.by_id.get(id).copied(),
                None => self.calls.len().checked_sub(1),
            },
        }
    }

    fn call(&mut self, piece: &CallPiece<'_>, out: &mut Assembler) {
        let (name, arguments, custom) = match (&piece.function, &piece.custom) {
            (Some(function), _) => (function.name.filled(), function.arguments, None),
            (None, Some(custom)) => (custom.name.filled(), None, Some(custom)),
            (None, None) => (None, None, None),
        };
        let at = self.find(piece).unwrap_or_else(|| {
            let id = piece.id.or_empty();
            let block = out.call_start(id, name.unwrap_or_default());
            let input = custom.map(|_| {
                let property = name.and_then(|name| self.options.grammar_tools.get(name));
                InputAsJson::new(property.map_or("input", String::as_str))
            });
            let at = self.calls.len();
            self.calls.push(Call { block, has_id: false, named: name.is_some(), input });
            self.by_index.extend(piece.index.0.map(|index| (index, at)));
            at
        });
        let call = &mut self.calls[at];
        if let Some(id) = piece.id.filled().filter(|_| !call.has_id) {
            call.has_id = true;
            self.by_id.entry(id.to_owned()).or_insert(at);
            out.call_identify(call.block, id, "");
        }
        if !call.named
            && let Some(name) = name
        {
            call.named = true;
            out.call_identify(call.block, "", name);
        }
        match (&mut call.input, custom) {
            (Some(input), Some(piece)) => {
                let delta = input.push(piece.input.or_empty());
                out.call_delta(call.block, &delta);
            }
            _ => match arguments.map(|raw| (raw.get(), serde_json::from_str::<Text<'_>>(raw.get()))) {
                Some((_, Ok(text))) if text.0.is_some() => {
                    out.call_delta(call.block, text.or_empty());
                }
                Some((raw, _)) if raw.starts_with('{') => out.call_delta(call.block, raw),
                _ => out.call_delta(call.block, ""),
            },
        }
    }
}

impl Interpreter for ChatStream {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Assembler) -> Result<Flow, String> {
        let data = &*event.data;
        match data.trim_ascii() {
            "" => return Ok(Flow::Continue),
            "[DONE]" => return Ok(Flow::Done),
            _ => {}
        }
        wire::read::<Chunks, _>(data, |chunk| self.chunk(&chunk, out))
            .map_err(|problem| shared::unreadable(data, &problem))??;
        Ok(Flow::Continue)
    }

    fn end(&mut self, out: &mut Assembler) -> Result<(), String> {
        if let (Some(block), Some(signature)) = (self.thinking, self.details.signature()) {
            out.set_signature(block, &signature);
        }
        // In block order, each with what closes it (P324); calls are in that order too.
        let mut calls = self.calls.iter_mut().peekable();
        for block in 0..out.len() {
            if let Some(input) = calls.next_if(|call| call.block == block).and_then(|call| call.input.as_mut()) {
                let delta = input.end();
                out.call_delta(block, &delta);
            }
            out.end(block);
        }
        // A model that calls tools wants them run, whatever its server calls that.
        let usual = if self.calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
        let Some(raw) = self.finish.take() else {
            if self.options.supports_finish_reason {
                return Err("Stream ended without finish_reason".to_owned());
            }
            out.finish(usual);
            return Ok(());
        };
        let stop = match raw.as_str() {
            "stop" | "end" => Some(usual),
            "tool_calls" | "function_call" => Some(StopReason::ToolUse),
            "length" => Some(StopReason::Length),
            _ => None,
        };
        out.set("rawStopReason", raw.as_str());
        match stop {
            Some(stop) => {
                out.finish(stop);
                Ok(())
            }
            None => Err(self.error.take().unwrap_or_else(|| format!("Provider finish_reason: {raw}"))),
        }
    }
}
