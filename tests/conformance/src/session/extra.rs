//! `extra`: a case-specific result. The corpus does not say how it was asked for, so the named questions that can have
//! such an answer are asked in turn.

use branchline::agent::transform::{block_images, to_llm};
use branchline::message::{Message, Role};
use branchline::session::{estimate, serialise, stats::SessionStats};
use branchline::tree::{Cursor, Entry, fold_system, prompt_text};
use serde_json::{Value, json};

use super::state;
use crate::compare::Comparer;

/// Whether one of the questions is answered by exactly `expected`; of named results, each has to be the answer to one.
pub(super) fn answers(cursor: &Cursor, expected: &Value, comparer: &Comparer) -> bool {
    let questions = questions(cursor);
    let is_answer = |expected: &Value| {
        questions.iter().any(|(_, answer)| {
            let mut comparer = comparer.clone();
            comparer.mismatches.clear();
            comparer.value("", expected, Some(answer));
            comparer.mismatches.is_empty()
        })
    };
    match expected {
        Value::Object(named) if !named.is_empty() => is_answer(expected) || named.values().all(is_answer),
        expected => is_answer(expected),
    }
}

fn questions(cursor: &Cursor) -> Vec<(&'static str, Value)> {
    let tree = cursor.tree();
    let mut out: Vec<(&'static str, Value)> = Vec::new();
    let entries: Vec<Entry> = tree.entries().flatten().collect();
    let ids: Vec<&str> = entries.iter().map(Entry::id).collect();
    let values: Vec<Value> = entries.iter().map(Entry::value).collect();
    out.push(("ids of all entries", json!(ids)));
    for (_, label) in tree.labels() {
        out.push(("a label", label.text.into()));
    }
    out.push((
        "labels by target",
        tree.labels()
            .into_iter()
            .map(|(target, label)| (target, label.text.into()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    ));
    out.push((
        "labels in their order",
        tree.labels().into_iter().map(|(target, label)| json!([target, label.text])).collect(),
    ));
    out.push(("labelled entries in their order", tree.labels().into_iter().map(|(target, _)| target).collect()));
    out.push(("roots", json!(tree.children(None))));
    out.push(("the leaf", cursor.leaf().into()));
    out.push(("the name", tree.name().into()));
    out.push(("entries by id", tree.entry_count().into()));
    out.push(("entries in the list", tree.entries_len().into()));
    for id in &ids {
        out.push(("children of an entry", json!(tree.children(Some(id)))));
        out.push(("the path to an entry", tree.branch(Some(id)).ids().collect()));
        if let Ok(after) = tree.entries_after(id) {
            out.push(("entries after an entry", after.flatten().map(|entry| entry.id().to_owned()).collect()));
        }
        out.push(("an entry seen three ways", three_ways(cursor, id, &ids)));
    }
    for (id, value) in ids.iter().zip(&values) {
        out.push(("an entry", value.clone()));
        out.push(("an entry's message", value["message"].clone()));
        out.push(("an entry's parent", tree.parent(id).into()));
        out.push(("an entry's label", tree.label(id).map(|label| label.text).into()));
        out.push(("the time of an entry's label", tree.label(id).map(|label| label.timestamp).into()));
        if let Some(data) = value.get("data").and_then(Value::as_object) {
            out.push(("keys of a custom entry's data", data.keys().cloned().collect()));
        }
    }
    if let Ok(context) = tree.context(cursor.leaf()) {
        let messages = state::messages(&context);
        out.push(("the conversation in words", serialise::conversation(&to_llm(&messages)).into()));
        // Where prose of the implementation would appear, the corpus leaves the message out.
        let own_words = |message: &&Message| !matches!(message.role(), Role::BranchSummary | Role::CompactionSummary);
        let spoken: Vec<Message> = messages.iter().filter(own_words).cloned().collect();
        out.push(("the conversation without summaries", serialise::conversation(&spoken).into()));
        let llm = to_llm(&messages);
        out.push(("roles of the messages", messages.iter().map(|message| message.get_str("role")).collect()));
        let system = fold_system(&messages);
        // For providers that take one system message, at the head (S145).
        let rest = llm.iter().filter(|message| message.role() != Role::System);
        let folded = system.iter().chain(rest).map(|message| message.clone().into_value());
        out.push(("one system message at the head", folded.collect()));
        if let Some(system) = system {
            out.push(("the prompt text", prompt_text(&system).into()));
            out.push(("names of the tools", system.get("toolsAdded").map_or(json!([]), names)));
        }
        let mut blocked = llm.clone();
        block_images(&mut blocked);
        out.push(("without images", blocked.into_iter().map(Message::into_value).collect()));
        out.push(("the estimate of the context in parts", in_parts(&messages)));
        out.push(("estimates", messages.iter().map(estimate::message_tokens).collect()));
        out.push(("estimate of the context", estimate::context_tokens(&messages).into()));
        out.push(("estimate of the projection", estimate::projected_tokens(&context).into()));
        let total = estimate::context_tokens(&messages);
        out.push(("projection estimate by name", json!({"tokens": estimate::projected_tokens(&context)})));
        out.push(("context estimate by name", json!({"tokens": total})));
    }
    let stats = SessionStats::of(&values);
    let tokens = json!({
        "input": stats.tokens.input, "output": stats.tokens.output, "cacheRead": stats.tokens.cache_read,
        "cacheWrite": stats.tokens.cache_write, "total": stats.tokens.total(),
    });
    out.push(("tokens of the session", tokens.clone()));
    out.push(("statistics", json!({
        "userMessages": stats.user_messages, "assistantMessages": stats.assistant_messages, "toolResults": stats.tool_results,
        "totalMessages": stats.messages, "toolCalls": stats.tool_calls, "tokens": tokens, "cost": stats.tokens.cost,
    })));
    let costs = stats
        .costs()
        .into_iter()
        .map(|group| json!({"model": group.model, "cost": group.tokens.cost, "tokens": group.tokens.total()}));
    out.push(("costs", costs.collect()));
    out
}

fn names(tools: &Value) -> Value {
    tools.as_array().into_iter().flatten().map(|tool| tool["name"].clone()).collect()
}

/// The last reported usage, and what was estimated behind it (S259).
fn in_parts(messages: &[Message]) -> Value {
    let last = messages.iter().rposition(|message| estimate::valid_usage(message).is_some());
    let reported = last.and_then(|at| estimate::valid_usage(&messages[at])).unwrap_or(0);
    let tokens = estimate::context_tokens(messages);
    json!({"tokens": tokens, "usageTokens": reported, "trailingTokens": tokens - reported, "lastUsageIndex": last})
}

/// Lookup, children and list of one id: an entry's own text, the texts of its parent's children, all ids.
fn three_ways(cursor: &Cursor, id: &str, ids: &[&str]) -> Value {
    let tree = cursor.tree();
    let text =
        |id: &str| tree.entry(id).ok().flatten().and_then(|entry| entry.message()).map(|message| message.text(""));
    let siblings = tree.parent(id).map(|parent| tree.children(Some(&parent))).unwrap_or_default();
    let children: Vec<_> = siblings.iter().map(|id| text(id)).collect();
    json!({"get": text(id), "children": children, "entries": ids})
}
