//! The stream of the Responses API: a state machine over the data of one event (P420–P426).

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::event::{Event, Item, Response, texts};
use super::tier::{scale, tier_factor};
use crate::message::StopReason;
use crate::providers::assemble::Assembler;
use crate::providers::grammar::InputAsJson;
use crate::providers::openai_shared as shared;
use crate::providers::protocol::{Flow, Interpreter};
use crate::providers::sse::SseEvent;
use crate::providers::wire::{self, Wire};

struct Events;

impl Wire for Events {
    type Of<'a> = Event<'a>;
}

/// The parser's state.
#[derive(Debug, Default)]
pub(super) struct ResponsesStream {
    /// Tools with a grammar: name → the property that holds the input (P132).
    grammar_tools: HashMap<String, String>,
    /// The service tier that was asked for.
    service_tier: Option<String>,
    open: Vec<Open>,
    /// Why it stopped, when the last event has come.
    stop: Option<StopReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
}

/// An output item with a block.
#[derive(Debug)]
struct Open {
    kind: Kind,
    index: Option<u64>,
    id: String,
    block: usize,
    done: bool,
    /// Thinking without the encrypted form that a later request needs: the item's JSON.
    unsealed: Option<String>,
    input: Option<InputAsJson>,
}

impl ResponsesStream {
    pub(super) fn new(grammar_tools: HashMap<String, String>, service_tier: Option<String>) -> ResponsesStream {
        ResponsesStream { grammar_tools, service_tier, open: Vec::new(), stop: None }
    }

    fn take(&mut self, name: &str, event: &Event<'_>, out: &mut Assembler) -> Result<Flow, String> {
        let kind = event.kind.filled().unwrap_or(name);
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                let at = self.block(Kind::Text, event, out);
                out.text_delta(self.open[at].block, event.delta.or_empty());
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let at = self.block(Kind::Thinking, event, out);
                out.thinking_delta(self.open[at].block, event.delta.or_empty());
            }
            "response.reasoning_summary_part.done" => {
                if let Some(at) = self.find(Kind::Thinking, event) {
                    out.thinking_delta(self.open[at].block, "\n\n");
                }
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                if let Some(at) = self.find(Kind::Call, event) {
                    let (open, piece) = (&mut self.open[at], event.delta.or_empty());
                    match &mut open.input {
                        Some(input) => out.call_delta(open.block, &input.push(piece)),
                        None => out.call_delta(open.block, piece),
                    }
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(at) = self.find(Kind::Call, event) {
                    complete(&self.open[at], event.arguments.filled(), out);
                }
            }
            "response.output_item.added" => {
                if let Some(raw) = event.item {
                    let item = read(raw);
                    if let Some(at) = self.open_item(&item, event.output_index.0, out)
                        && self.open[at].kind == Kind::Call
                        && let Some(arguments) = item.arguments.filled()
                    {
                        out.call_delta(self.open[at].block, arguments);
                    }
                }
            }
            "response.output_item.done" => {
                if let Some(raw) = event.item {
                    self.item_done(raw, event, out);
                }
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(raw) = event.response {
                    identify(&read(raw), out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let status = kind.strip_prefix("response.").unwrap_or(kind);
                let response: Response<'_> = event.response.map(read).unwrap_or_default();
                self.stop = Some(self.terminal(status, &response, out)?);
                return Ok(Flow::Done);
            }
            "error" => return Err(error_of(event)),
            _ if event.error.is_some() => return Err(error_of(event)),
            _ => {}
        }
        Ok(Flow::Continue)
    }

    /// The open item an event belongs to: by its index, else by its id, else the last one of its kind.
    fn find(&self, kind: Kind, event: &Event<'_>) -> Option<usize> {
        let index = event.output_index.0;
        let fits = |open: &Open| open.kind == kind && !open.done;
        let by_index = || self.open.iter().rposition(|open| fits(open) && index.is_some() && open.index == index);
        let id = event.item_id.filled();
        let by_id = || self.open.iter().rposition(|open| fits(open) && id == Some(open.id.as_str()));
        let last = || match (index, id) {
            // Another item is meant, one that was never announced.
            (Some(index), _) => {
                self.open.iter().rposition(|open| fits(open) && open.index.is_none_or(|known| known == index))
            }
            _ => self.open.iter().rposition(fits),
        };
        by_index().or_else(by_id).or_else(last)
    }

    /// The block a delta goes to; it is opened if the item was not announced.
    fn block(&mut self, kind: Kind, event: &Event<'_>, out: &mut Assembler) -> usize {
        self.find(kind, event).unwrap_or_else(|| {
            let id = event.item_id.or_empty();
            self.push(kind, event.output_index.0, id, out)
        })
    }

    fn push(&mut self, kind: Kind, index: Option<u64>, id: &str, out: &mut Assembler) -> usize {
        let block = match kind {
            Kind::Thinking => out.thinking_start(),
            Kind::Text | Kind::Call => out.text_start(),
        };
        self.add(kind, index, id, block)
    }

    fn add(&mut self, kind: Kind, index: Option<u64>, id: &str, block: usize) -> usize {
        let id = id.to_owned();
        self.open.push(Open { kind, index, id, block, done: false, unsealed: None, input: None });
        self.open.len() - 1
    }

    /// Opens the block of an announced item (P420). Items of other kinds have none.
    fn open_item(&mut self, item: &Item<'_>, index: Option<u64>, out: &mut Assembler) -> Option<usize> {
        let id = item.id.or_empty();
        let kind = item.kind.0.as_deref()?;
        match kind {
            "message" => Some(self.push(Kind::Text, index, id, out)),
            "reasoning" => Some(self.push(Kind::Thinking, index, id, out)),
            "function_call" | "custom_tool_call" => {
                let name = item.name.or_empty();
                let block = out.call_start(&call_id(item), name);
                if let Some(namespace) = item.namespace.filled() {
                    out.call_namespace(block, namespace);
                }
                let at = self.add(Kind::Call, index, id, block);
                if kind == "custom_tool_call" {
                    let property = self.grammar_tools.get(name).map_or("input", String::as_str);
                    self.open[at].input = Some(InputAsJson::new(property));
                }
                Some(at)
            }
            _ => None,
        }
    }

    /// The item's final form counts (P420–P422).
    fn item_done(&mut self, raw: &RawValue, event: &Event<'_>, out: &mut Assembler) {
        let item: Item<'_> = read(raw);
        let kind = match item.kind.0.as_deref() {
            Some("message") => Kind::Text,
            Some("reasoning") => Kind::Thinking,
            Some("function_call" | "custom_tool_call") => Kind::Call,
            _ => return,
        };
        let index = event.output_index.0;
        let (id, fits) = (item.id.filled(), |open: &Open| open.kind == kind && !open.done);
        let known = match (index, id) {
            (Some(index), _) => self.open.iter().rposition(|open| fits(open) && open.index == Some(index)),
            (None, Some(id)) => self.open.iter().rposition(|open| fits(open) && open.id == id),
            (None, None) => None,
        };
        let known =
            known.or_else(|| self.open.iter().position(|open| fits(open) && (open.index.is_none() || index.is_none())));
        let Some(at) = known.or_else(|| self.open_item(&item, index, out)) else { return };
        let open = &mut self.open[at];
        open.done = true;
        if let Some(id) = id {
            open.id = id.to_owned();
        }
        let block = open.block;
        match kind {
            Kind::Text => {
                if let Some(text) = texts(item.content, "") {
                    out.replace_text(block, &text);
                }
                if let Some(signature) = text_signature(&item) {
                    out.set_signature(block, &signature);
                }
            }
            Kind::Thinking => {
                let text = texts(item.summary, "\n\n").or_else(|| texts(item.content, "\n\n"));
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    out.replace_text(block, &text);
                }
                let json = canonical(raw);
                out.set_signature(block, &json);
                open.unsealed = item.encrypted_content.filled().is_none().then_some(json);
            }
            Kind::Call => {
                out.call_identify(block, &call_id(&item), item.name.or_empty());
                if let Some(namespace) = item.namespace.filled() {
                    out.call_namespace(block, namespace);
                }
                match &open.input {
                    Some(_) => {
                        let name = item.name.or_empty();
                        let property = self.grammar_tools.get(name).map_or("input", String::as_str);
                        let whole = item.input.0.as_deref().map(|input| InputAsJson::whole(property, input));
                        complete(&self.open[at], whole.as_deref(), out);
                    }
                    None => complete(open, item.arguments.filled(), out),
                }
            }
        }
        out.end(block);
    }

    /// The last event: tokens, and why it stopped (P423–P425).
    fn terminal(&mut self, status: &str, response: &Response<'_>, out: &mut Assembler) -> Result<StopReason, String> {
        let status = response.status.filled().unwrap_or(status);
        if let Some(mut usage) = response.usage() {
            usage.cost = out.model().prices.cost(&usage);
            let tier = response.service_tier.filled().or(self.service_tier.as_deref());
            scale(&mut usage.cost, tier_factor(tier, &out.model().id));
            out.set_priced_usage(usage);
        }
        self.seal(response.output, out);
        let reason = response.incomplete_reason();
        match (status, reason.as_deref()) {
            ("failed" | "cancelled", reason) => {
                out.set("rawStopReason", status);
                Err(shared::error_text(response.error)
                    .or_else(|| reason.map(|reason| format!("{status}: {reason}")))
                    .unwrap_or_else(|| format!("The service ended the response as {status} and gave no reason")))
            }
            ("incomplete", reason) => {
                identify(response, out);
                match reason {
                    Some(reason) => out.set("rawStopReason", format!("{status}.{reason}")),
                    None => out.set("rawStopReason", status),
                }
                match reason {
                    Some("max_output_tokens") | None => Ok(StopReason::Length),
                    Some(reason) => Err(format!("The response is incomplete: {reason}")),
                }
            }
            _ => {
                identify(response, out);
                out.set("rawStopReason", status);
                let mut calls = self.open.iter().filter(|open| open.kind == Kind::Call).peekable();
                if calls.peek().is_none() {
                    return Ok(StopReason::Stop);
                }
                match calls.all(|open| open.done) {
                    true => Ok(StopReason::ToolUse),
                    false => Err("The response is complete, but a tool call in it is not".to_owned()),
                }
            }
        }
    }

    /// Reasoning items whose encrypted form comes only with the whole response (P421).
    fn seal(&self, output: Option<&RawValue>, out: &mut Assembler) {
        if !self.open.iter().any(|open| open.unsealed.is_some()) {
            return;
        }
        for raw in shared::list::<&RawValue>(output) {
            let item: Item<'_> = read(raw);
            let Some(sealed) = item.encrypted_content.filled() else { continue };
            let open = self.open.iter().find(|open| open.unsealed.is_some() && item.id.filled() == Some(&open.id));
            let Some((open, json)) = open.and_then(|open| Some((open, open.unsealed.as_ref()?))) else { continue };
            if let Some(serde_json::Value::Object(mut item)) = crate::json::parse(json.as_bytes()) {
                item.insert("encrypted_content".to_owned(), sealed.into());
                out.set_signature(open.block, &crate::json::to_string(&item));
            }
        }
    }
}

impl Interpreter for ResponsesStream {
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Assembler) -> Result<Flow, String> {
        let data = &*event.data;
        match data.trim_ascii() {
            "" => return Ok(Flow::Continue),
            "[DONE]" => return Ok(Flow::Done),
            _ => {}
        }
        wire::read::<Events, _>(data, |known| self.take(&event.name, &known, out))
            .map_err(|problem| shared::unreadable(data, &problem))?
    }

    fn end(&mut self, out: &mut Assembler) -> Result<(), String> {
        match self.stop.take() {
            Some(stop) => {
                out.finish(stop);
                Ok(())
            }
            // P426.
            None => Err("OpenAI Responses stream ended before a terminal response event".to_owned()),
        }
    }
}

/// An object of the stream; what cannot be read counts as empty.
fn read<'a, T: serde::Deserialize<'a> + Default>(raw: &'a RawValue) -> T {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

fn identify(response: &Response<'_>, out: &mut Assembler) {
    if let Some(id) = response.id.filled() {
        out.set_response_id(id);
    }
    if let Some(model) = response.model.filled() {
        out.set_response_model(model);
    }
}

/// `<call id>|<item id>` (P404).
fn call_id(item: &Item<'_>) -> String {
    match (item.call_id.filled(), item.id.filled()) {
        (Some(call), Some(item)) => format!("{call}|{item}"),
        (Some(id), None) | (None, Some(id)) => id.to_owned(),
        (None, None) => String::new(),
    }
}

/// What identifies a text in a later request (P420).
fn text_signature(item: &Item<'_>) -> Option<String> {
    let mut signature = serde_json::Map::new();
    signature.insert("v".to_owned(), 1.into());
    signature.insert("id".to_owned(), item.id.filled()?.into());
    if let Some(phase) = item.phase.filled() {
        signature.insert("phase".to_owned(), phase.into());
    }
    Some(crate::json::to_string(&signature))
}

fn canonical(raw: &RawValue) -> String {
    crate::json::parse(raw.get().as_bytes())
        .map_or_else(|| raw.get().to_owned(), |value| crate::json::to_string(&value))
}

/// The whole argument text: what is missing of it is told as one delta, another text replaces it (P422).
fn complete(open: &Open, whole: Option<&str>, out: &mut Assembler) {
    let Some(whole) = whole else { return };
    match whole.strip_prefix(out.text_of(open.block)) {
        Some("") => {}
        Some(tail) => out.call_delta(open.block, tail),
        None => out.replace_text(open.block, whole),
    }
}

/// The text of an error event.
fn error_of(event: &Event<'_>) -> String {
    let own = || match (event.code.filled(), event.message.filled()) {
        (Some(code), Some(message)) if !message.contains(code) => Some(format!("{code}: {message}")),
        (_, Some(text)) | (Some(text), None) => Some(text.to_owned()),
        (None, None) => None,
    };
    own()
        .or_else(|| shared::error_text(event.error))
        .unwrap_or_else(|| "The service reported an error without a reason".to_owned())
}
