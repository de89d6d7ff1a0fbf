//! Message threads (P219): the service keeps a conversation for a few minutes, and the next request sends only what is new.
//!
//! A reply can be continued once. What a request builds on is known by a hash of everything the service has fixed: the
//! settings, and each message in the form in which it was sent. If anything of it is different now, a new thread begins with
//! the whole conversation; if the service refuses, the whole conversation is sent too. So a thread saves bytes and time, and
//! changes nothing else.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Mutex;

use serde_json::{Value, json};

use super::super::http::Refusal;
use super::super::openai_shared::host_matches;
use super::super::protocol::Call;
use super::super::{CacheRetention, Purpose};
use super::messages;
use crate::message::{JsonObject, Message};

/// How many sessions are remembered.
const REMEMBERED: usize = 4096;
/// The header that goes with the field.
pub(super) const BETA: &str = "message-threads-2026-08-12";
/// Refusals after which a new thread may be begun.
const LOST: [&str; 4] =
    ["thread_not_found", "thread_already_continued", "thread_continue_in_flight", "thread_fingerprint_mismatch"];
/// The body's fields that stay the same within a thread.
const FIXED: [&str; 7] = ["model", "system", "tools", "thinking", "output_config", "tool_choice", "fallbacks"];

/// The threads of an engine's sessions.
#[derive(Default)]
pub(super) struct Threads(Mutex<HashMap<String, State>>);

enum State {
    /// The service takes none.
    Off,
    Ready {
        /// What the service holds: so many messages, with this hash.
        held: usize,
        hash: u128,
        /// The id of the reply that can be continued.
        reply: String,
    },
}

/// A request that is part of a thread.
#[derive(Debug, Clone)]
pub(super) struct Begun {
    session: String,
    sent: usize,
    hash: u128,
    allow_empty: bool,
}

/// Whether requests of a session may be threads.
pub(super) fn wanted(call: &Call<'_>) -> bool {
    let request = call.request;
    let official = host_matches(call.base_url(), "api.anthropic.com");
    let allowed = match call.configured_header("anthropic-beta") {
        None => true,
        Some(betas) => betas.is_some_and(|betas| betas.contains(BETA)),
    };
    allowed
        && request.model.compat.is("supportsMessageThreads", official)
        && request.purpose == Purpose::Turn
        && request.options.cache_retention != CacheRetention::None
        && !request.session_id.is_empty()
}

impl Threads {
    /// Makes a request part of a thread: `body` is the whole one, `betas` the value of its header.
    pub(super) fn begin(&self, call: &Call<'_>, betas: &str, body: &mut JsonObject) -> Option<Begun> {
        let request = call.request;
        let state = {
            let mut known = self.0.lock().ok()?;
            match known.get(&request.session_id) {
                Some(State::Off) => return None,
                // Taken out: no other request continues the same reply.
                _ => known.remove(&request.session_id),
            }
        };
        let mut hash = of_settings(call, betas, body);
        let messages = body.get_mut("messages")?.as_array_mut()?;
        let sent = messages.len();
        let mut continues = None;
        for (at, message) in messages.iter().enumerate() {
            if let Some(State::Ready { held, hash: known, reply }) = &state
                && at == *held
                && hash == *known
            {
                continues = Some((at, reply.clone()));
            }
            hash = with_message(hash, message);
        }
        match continues {
            Some((at, reply)) => {
                messages.drain(..at);
                body.shift_remove("system");
                body.shift_remove("tools");
                body.insert("thread".to_owned(), json!({"type": "continue", "previous_message_id": reply}));
            }
            None => {
                body.insert("thread".to_owned(), json!({"type": "create"}));
            }
        }
        let allow_empty = request.model.compat.is("allowEmptySignature", false);
        Some(Begun { session: request.session_id.clone(), sent, hash, allow_empty })
    }

    /// The reply to such a request is complete.
    pub(super) fn replied(&self, begun: &Begun, message: &Message) {
        // A reply of a fallback model is not kept there.
        let (Some(reply), None) = (message.get_str("responseId"), message.get("responseModel")) else { return };
        let Some(sent) = messages::reply(message, begun.allow_empty) else { return };
        let state =
            State::Ready { held: begun.sent + 1, hash: with_message(begun.hash, &sent), reply: reply.to_owned() };
        self.set(&begun.session, state);
    }

    /// Whether a refusal was about the thread. Then the request, made anew, is another one.
    pub(super) fn refused(&self, begun: &Begun, refusal: &Refusal) -> bool {
        let body: Value = serde_json::from_str(&refusal.body).unwrap_or_default();
        let code = body.pointer("/error/details/error_code").and_then(Value::as_str);
        let message = body.pointer("/error/message").and_then(Value::as_str).unwrap_or(&refusal.body);
        match code {
            // What it continued was taken out when it began, so a new thread follows.
            Some(code) if LOST.contains(&code) => true,
            Some("thread_unsupported_request") => {
                self.set(&begun.session, State::Off);
                true
            }
            // A service that does not know the field names it.
            None if refusal.status == 400 && message.contains("thread") => {
                self.set(&begun.session, State::Off);
                true
            }
            _ => false,
        }
    }

    fn set(&self, session: &str, state: State) {
        if let Ok(mut known) = self.0.lock() {
            if known.len() >= REMEMBERED && !known.contains_key(session) {
                known.clear();
            }
            known.insert(session.to_owned(), state);
        }
    }
}

fn of_settings(call: &Call<'_>, betas: &str, body: &JsonObject) -> u128 {
    let mut text = Vec::new();
    for part in [call.base_url(), &call.request.model.provider, betas] {
        write(&part.into(), &mut text);
    }
    for key in FIXED {
        // The cache marks of settings are a part of them.
        text.extend_from_slice(body.get(key).map(Value::to_string).unwrap_or_default().as_bytes());
        text.push(b'\n');
    }
    hash(0, &text)
}

fn with_message(before: u128, message: &Value) -> u128 {
    let mut text = Vec::new();
    write(message, &mut text);
    hash(before, &text)
}

/// A message as it is meant: cache marks move from request to request, and for their sake a text becomes a block.
fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(object) => {
            out.push(b'{');
            for (key, member) in object.iter().filter(|(key, _)| *key != "cache_control") {
                write(&key.as_str().into(), out);
                match member {
                    Value::String(text) if key == "content" => write(&json!([{"type": "text", "text": text}]), out),
                    member => write(member, out),
                }
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            items.iter().for_each(|item| write(item, out));
            out.push(b']');
        }
        scalar => {
            out.extend_from_slice(scalar.to_string().as_bytes());
            out.push(b',');
        }
    }
}

fn hash(before: u128, text: &[u8]) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        hasher.write_u128(before);
        hasher.write(text);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}
