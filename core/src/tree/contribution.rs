//! From an entry to the messages it contributes (S126–S132).

use std::sync::Arc;

use crate::json;
use crate::message::Role;

use super::context::{ContextMessage, Source};
use super::entry::Entry;
use super::fact::read_time;
use super::kind::EntryKind;

/// The messages of one entry before edits. A `message` entry without a message object gives none (S138).
pub(crate) fn contribution(entry: &Entry) -> Vec<ContextMessage> {
    let id: Arc<str> = entry.id().into();
    let made = |role, text: Vec<u8>| ContextMessage::new(&id, role, Source::Made(text.into()));
    match entry.kind() {
        EntryKind::Message(role) if entry.message.exists => {
            vec![ContextMessage::new(&id, role, Source::Stored(entry.line.clone(), entry.message))]
        }
        EntryKind::CustomMessage => vec![made(Role::Custom, custom(entry))],
        EntryKind::BranchSummary => match entry.raw("summary") {
            Some(summary) if is_truthy(summary) => {
                let fields = [("summary", Some(summary)), ("fromId", entry.raw("fromId"))];
                vec![made(Role::BranchSummary, object("branchSummary", &fields, entry))]
            }
            _ => Vec::new(),
        },
        EntryKind::Compaction => {
            let mut messages = Vec::with_capacity(2);
            if let Some(system) = entry.raw("systemMessage").filter(|system| system.starts_with(b"{")) {
                let role = json::get(system, "role").and_then(json::decode_string);
                messages.push(made(role.map_or(Role::Other, |role| Role::parse(&role)), system.to_vec()));
            }
            let fields = [("summary", entry.raw("summary")), ("tokensBefore", entry.raw("tokensBefore"))];
            messages.push(made(Role::CompactionSummary, object("compactionSummary", &fields, entry)));
            messages
        }
        _ => Vec::new(),
    }
}

/// S128: missing or null content becomes an empty array.
fn custom(entry: &Entry) -> Vec<u8> {
    let content = entry.raw("content").filter(|content| *content != b"null").unwrap_or(b"[]");
    let fields = [
        ("customType", entry.raw("customType")),
        ("content", Some(content)),
        ("display", entry.raw("display")),
        ("details", entry.raw("details")),
    ];
    object("custom", &fields, entry)
}

/// `{role, …fields, timestamp}`; the time is the entry's, null if it cannot be read (S37).
fn object(role: &str, fields: &[(&str, Option<&[u8]>)], entry: &Entry) -> Vec<u8> {
    let mut out = format!("{{\"role\":\"{role}\"").into_bytes();
    let time = entry.raw("timestamp").and_then(read_time).map_or("null".to_owned(), |ms| ms.to_string());
    for (key, value) in fields.iter().chain([&("timestamp", Some(time.as_bytes()))]) {
        if let Some(value) = value {
            out.extend_from_slice(format!(",\"{key}\":").as_bytes());
            out.extend_from_slice(value);
        }
    }
    out.push(b'}');
    out
}

fn is_truthy(raw: &[u8]) -> bool {
    // Zero has many spellings.
    let zero = || std::str::from_utf8(raw).is_ok_and(|text| text.parse() == Ok(0.0));
    !matches!(raw, b"\"\"" | b"null" | b"false") && !zero()
}
