//! The answer: chunks of the service become steps of the response (P520–P524).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::assemble::Assembler;
use super::super::protocol::{Flow, Interpreter};
use super::super::sse::SseEvent;
use super::super::wire::{self, Count, Text, Wire};
use crate::message::{StopReason, Usage};
use crate::system::clock::now_ms;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    response_id: Text<'a>,
    #[serde(borrow, default)]
    model_version: Text<'a>,
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default)]
    usage_metadata: Option<Tokens>,
    #[serde(borrow, default)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    thought_signature: Text<'a>,
    #[serde(borrow, default)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    #[serde(default)]
    prompt_token_count: Count,
    #[serde(default)]
    cached_content_token_count: Count,
    #[serde(default)]
    candidates_token_count: Count,
    #[serde(default)]
    thoughts_token_count: Count,
    #[serde(default)]
    total_token_count: Count,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: Text<'a>,
}

struct Chunks;

impl Wire for Chunks {
    type Of<'a> = Chunk<'a>;
}

/// The state of one answer.
pub(super) struct Answers {
    /// The block that grows, and whether it is thinking.
    current: Option<(usize, bool)>,
    ids: HashSet<String>,
    counter: Arc<AtomicU64>,
    reason: Option<String>,
}

impl Answers {
    pub(super) fn new(counter: Arc<AtomicU64>) -> Answers {
        Answers { current: None, ids: HashSet::new(), counter, reason: None }
    }
}

impl Interpreter for Answers {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Assembler) -> Result<Flow, String> {
        if event.data.trim().is_empty() {
            return Ok(Flow::Continue);
        }
        wire::read::<Chunks, _>(&event.data, |chunk| self.take(&chunk, out)).unwrap_or_else(|problem| {
            Err(format!("the service sent a chunk that is not JSON: {problem}; data={}", event.data))
        })
    }

    fn end(&mut self, out: &mut Assembler) -> Result<(), String> {
        out.end_all();
        let Some(reason) = self.reason.as_deref() else {
            return Err("the stream ended without a finish reason".to_owned());
        };
        out.set("rawStopReason", reason);
        let stop = match reason {
            "STOP" if out.has_calls() => StopReason::ToolUse,
            "STOP" => StopReason::Stop,
            "MAX_TOKENS" | "CONTINUATION" => StopReason::Length,
            other => return Err(format!("Provider stopped with: {other}")),
        };
        out.finish(stop);
        Ok(())
    }
}

impl Answers {
    fn take(&mut self, chunk: &Chunk<'_>, out: &mut Assembler) -> Result<Flow, String> {
        if let Some(error) = chunk.error.map(RawValue::get).filter(|error| *error != "null") {
            return Err(format!("{{\"error\":{error}}}"));
        }
        out.set_response_id(chunk.response_id.or_empty());
        out.set_response_model(chunk.model_version.or_empty());
        if let Some(tokens) = &chunk.usage_metadata {
            usage(tokens, out);
        }
        if let Some(reason) = chunk.prompt_feedback.as_ref().and_then(|feedback| feedback.block_reason.filled()) {
            self.reason = Some(reason.to_owned());
        }
        let Some(candidate) = chunk.candidates.as_ref().and_then(|all| all.first()) else { return Ok(Flow::Continue) };
        let parts = candidate.content.as_ref().and_then(|content| content.parts.as_deref()).unwrap_or_default();
        for part in parts {
            self.part(part, out);
        }
        if let Some(reason) = candidate.finish_reason.filled() {
            self.reason = Some(reason.to_owned());
        }
        Ok(Flow::Continue)
    }

    fn part(&mut self, part: &Part<'_>, out: &mut Assembler) {
        let signature = part.thought_signature.filled();
        if let Some(call) = &part.function_call {
            self.close(out);
            let name = call.name.or_empty();
            let id = self.id(call.id.or_empty(), name);
            let index = out.call_start(&id, name);
            if let Some(signature) = signature {
                out.set_signature(index, signature);
            }
            out.call_delta(index, call.args.map(RawValue::get).filter(|args| *args != "null").unwrap_or("{}"));
            out.end(index);
            return;
        }
        // An empty text counts too: it may carry the signature, and it ends thinking (P520, P522).
        let Some(text) = part.text.0.as_deref() else { return };
        let thought = part.thought.unwrap_or(false);
        if self.current.is_some_and(|(_, thinking)| thinking != thought) {
            self.close(out);
        }
        let begin = |out: &mut Assembler| if thought { out.thinking_start() } else { out.text_start() };
        let (index, _) = *self.current.get_or_insert_with(|| (begin(out), thought));
        out.any_delta(index, text);
        if let Some(signature) = signature {
            out.set_signature(index, signature);
        }
    }

    fn close(&mut self, out: &mut Assembler) {
        if let Some((index, _)) = self.current.take() {
            out.end(index);
        }
    }

    /// The service's id, or one made here if it has none or used it already (P521).
    fn id(&mut self, theirs: &str, name: &str) -> String {
        let id = match theirs {
            id if !id.is_empty() && !self.ids.contains(id) => id.to_owned(),
            _ => format!("{name}_{}_{}", now_ms(), self.counter.fetch_add(1, Ordering::Relaxed) + 1),
        };
        self.ids.insert(id.clone());
        id
    }
}

fn usage(tokens: &Tokens, out: &mut Assembler) {
    let cached = tokens.cached_content_token_count.or_zero();
    let usage = Usage {
        input: tokens.prompt_token_count.or_zero().saturating_sub(cached),
        output: tokens.candidates_token_count.or_zero().saturating_add(tokens.thoughts_token_count.or_zero()),
        cache_read: cached,
        reasoning: Some(tokens.thoughts_token_count.or_zero()),
        total_tokens: tokens.total_token_count.or_zero(),
        ..Usage::default()
    };
    out.set_usage(usage);
}
