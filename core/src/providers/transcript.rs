//! The conversation as a service may see it (P110, P111, P120–P126): what every protocol does before it writes its own form.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

pub(crate) use super::repair::Sent;
pub(crate) use super::repair::is_blank;
use super::repair::{IdNormalizer, TargetModel, adapt, drop_orphan_results, repaired};
use super::{Model, Request};
use crate::message::{Block, Message, Role};
use crate::tree::{fold_system, prompt_text};

/// What is sent.
pub(crate) struct Transcript<'a> {
    /// The system prompt; empty without one.
    pub(crate) system: String,
    /// The messages: user, assistant and tool results, and system messages if they were asked for. Most are the request's
    /// own: a long conversation is not copied for each request.
    pub(crate) messages: Vec<Sent<'a>>,
}

/// Prepares the conversation of a request. With `system_in_place` only the first system message is the prompt, and later
/// ones stay among the messages; otherwise all are folded into the prompt.
pub(crate) fn transcript<'a>(
    request: &'a Request,
    normalize: Option<IdNormalizer<'_>>,
    system_in_place: bool,
) -> Transcript<'a> {
    let all: Vec<&Message> = request.messages.iter().map(Arc::as_ref).collect();
    let (system, rest): (Option<Message>, Vec<&Message>) = match system_in_place {
        true => match all.split_first() {
            Some((first, rest)) if first.role() == Role::System => (fold_system([*first]), rest.to_vec()),
            _ => (None, all),
        },
        false => (fold_system(all.iter().copied()), all.into_iter().filter(|it| it.role() != Role::System).collect()),
    };
    let target = target(&request.model);
    let messages = match is_orderly(&rest) {
        true => adapt(rest, &target, normalize),
        false => in_call_order(drop_orphan_results(repaired(regroup(&rest), &target, normalize))),
    };
    Transcript { system: system.as_ref().map(prompt_text).unwrap_or_default(), messages }
}

/// The model of a request as repair wants to know it.
pub(crate) fn target(model: &Model) -> TargetModel {
    TargetModel { provider: model.provider.clone(), api: model.api.clone(), id: model.id.clone(), images: model.images }
}

/// The text of a later system message sent in place (P111); empty if it only changes tools.
pub(crate) fn changes_text(message: &Message) -> String {
    let mut parts = vec![message.text("\n")];
    for (name, text) in message.get("sections").and_then(Value::as_object).into_iter().flatten() {
        parts.push(match text {
            Value::String(text) => format!("Updated system prompt section \"{name}\":\n\n{text}"),
            _ => format!("Removed system prompt section \"{name}\"."),
        });
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// The texts of a message's content joined by LF.
pub(crate) fn joined_texts(message: &Message) -> String {
    message.text("\n")
}

/// The images of a message: MIME type and base64 data.
pub(crate) fn images(message: &Message) -> Vec<(&str, &str)> {
    let image = |block| match block {
        Block::Image(image) => Some((image.mime_type, image.data)),
        _ => None,
    };
    message.blocks().filter_map(image).collect()
}

/// Normalised call ids that stay different: an id that is taken already gets a number, within `limit` characters.
pub(crate) struct UniqueIds<'a> {
    request: &'a Request,
    limit: usize,
    given: std::cell::RefCell<Option<Given>>,
}

#[derive(Default)]
struct Given {
    taken: HashSet<String>,
    names: HashMap<String, String>,
}

impl Given {
    /// Ids of the model's own calls stay as they are and are taken.
    fn before(request: &Request) -> Given {
        let target = target(&request.model);
        let asking = request.messages.iter().filter(|message| !message.shape().calls.is_empty());
        let own = asking.filter(|message| target.made(message));
        let taken = own.flat_map(|message| message.shape().calls.ids()).map(|id| id.to_string()).collect();
        Given { taken, names: HashMap::new() }
    }
}

impl<'a> UniqueIds<'a> {
    /// For a request.
    pub(crate) fn new(request: &'a Request, limit: usize) -> UniqueIds<'a> {
        UniqueIds { request, limit, given: None.into() }
    }

    /// `wanted`, or something like it, for the call `id`; always the same for one id.
    pub(crate) fn unique(&self, id: &str, wanted: String) -> String {
        let mut given = self.given.borrow_mut();
        // Most requests hold no call of another model, and need none of this.
        let state = given.get_or_insert_with(|| Given::before(self.request));
        if let Some(known) = state.names.get(id) {
            return known.clone();
        }
        let wanted = if wanted.is_empty() { "call".to_owned() } else { wanted };
        let mut candidate = wanted.clone();
        let mut number = 1;
        while state.taken.contains(&candidate) {
            number += 1;
            let suffix = format!("_{number}");
            let room = self.limit.saturating_sub(suffix.len());
            candidate = format!("{}{suffix}", wanted.chars().take(room).collect::<String>());
        }
        state.taken.insert(candidate.clone());
        state.names.insert(id.to_owned(), candidate.clone());
        candidate
    }
}

/// Whether every message already stands where a service wants it, as in most conversations: no response failed, and each is
/// followed by the results of its calls in their order. Only the messages themselves may then have to be adapted.
fn is_orderly(messages: &[&Message]) -> bool {
    let mut shapes = messages.iter().map(|message| message.shape());
    while let Some(shape) = shapes.next() {
        let orderly = match shape.role {
            Role::User => true,
            Role::Assistant if !shape.failed => {
                let mut calls = shape.calls.ids().iter();
                calls.all(|id| shapes.next().is_some_and(|next| next.answers.as_ref() == Some(id)))
            }
            _ => false,
        };
        if !orderly {
            return false;
        }
    }
    true
}

/// Results directly behind the response with their calls; messages that came in between follow.
fn regroup<'a>(messages: &[&'a Message]) -> Vec<&'a Message> {
    let mut out = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((first, after)) = rest.split_first() {
        out.push(*first);
        rest = after;
        let calls = &first.shape().calls;
        if calls.is_empty() {
            continue;
        }
        let end = rest.iter().position(|message| message.shape().role == Role::Assistant).unwrap_or(rest.len());
        let answers =
            |message: &&&Message| message.shape().answers.as_ref().is_some_and(|id| calls.place(id).is_some());
        out.extend(rest[..end].iter().filter(answers));
        out.extend(rest[..end].iter().filter(|message| !answers(message)));
        rest = &rest[end..];
    }
    out
}

/// Results in the order of their calls: services match them by place.
fn in_call_order(mut messages: Vec<Sent<'_>>) -> Vec<Sent<'_>> {
    for at in 0..messages.len() {
        let (before, after) = messages.split_at_mut(at + 1);
        let calls = &before[at].shape().calls;
        if calls.ids().len() > 1 {
            let results =
                after.iter().position(|message| message.shape().role != Role::ToolResult).unwrap_or(after.len());
            let place = |message: &Message| message.shape().answers.as_ref().and_then(|id| calls.place(id));
            after[..results].sort_by_key(|message| place(message).unwrap_or(usize::MAX));
        }
    }
    messages
}
