//! The *state* of a session as the corpus writes it down.

use branchline::agent::{call_id, transform};
use branchline::message::Message;
use branchline::session::{compaction, estimate, files::FileLists, serialise, summary};
use branchline::tree::{Context, Cursor, Tree, fold_system};
use serde_json::{Map, Value, json};

type Normalizer = Box<dyn Fn(&str, &Message) -> String>;

/// All fields of the state; `expected` only tells which questions with parameters to answer.
pub(super) fn state(cursor: &Cursor, expected: &Value) -> Value {
    let tree = cursor.tree();
    let leaf = cursor.leaf();
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    put("header", branchline::json::parse(tree.header_json().as_bytes()).unwrap_or_default());
    put("sessionId", tree.session_id().into());
    put("cwd", tree.cwd().display().to_string().into());
    put("leafId", leaf.into());
    put("entryCount", tree.entry_count().into());
    put("entriesLength", tree.entries_len().into());
    put("branch", tree.branch(leaf).ids().collect());
    put("tree", nested(tree));
    put("sessionName", tree.name().into());
    match tree.context(leaf) {
        Ok(context) => {
            let messages = messages(&context);
            let llm = transform::to_llm(&messages);
            put("contextEntries", context_entries(&context));
            put("projection", projection(&context));
            put("context", context_value(&context));
            if let Some(system) = fold_system(&messages) {
                put("currentSystem", system.into_value());
            }
            put("transform", repaired(expected, &llm));
            put("prepareCompaction", compactions(expected, &context));
            put("llm", values(llm));
        }
        Err(error) => {
            put("context", json!({"@throws": error.code().name()}));
        }
    }
    put("branchSummary", branch_summaries(expected, tree));
    // Parameters that were not given have no answer.
    for key in ["transform", "prepareCompaction", "branchSummary"] {
        if expected.get(key).is_none() {
            out.remove(key);
        }
    }
    Value::Object(out)
}

/// The messages of a context.
pub(super) fn messages(context: &Context) -> Vec<Message> {
    context.messages().map(|message| (*message.message()).clone()).collect()
}

fn values(messages: Vec<Message>) -> Value {
    messages.into_iter().map(Message::into_value).collect()
}

fn roles<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Value {
    messages.into_iter().map(|message| Value::from(message.get_str("role"))).collect()
}

/// `{messages, thinkingLevel, model}`.
pub(super) fn context_value(context: &Context) -> Value {
    let model = context.model().map(|(provider, model)| json!({"provider": provider, "modelId": model}));
    json!({"messages": values(messages(context)), "thinkingLevel": context.thinking_level(), "model": model})
}

/// Ids after the compaction rule.
pub(super) fn context_entries(context: &Context) -> Value {
    context.entries().iter().map(|entry| entry.id().to_owned()).collect()
}

fn projection(context: &Context) -> Value {
    let entries = context.entries().iter().map(|entry| {
        let roles: Vec<String> = entry.messages().iter().map(|message| message.role_name()).collect();
        json!({"id": entry.id(), "roles": roles})
    });
    entries.collect()
}

/// The projection as the reference returns it, or, where a list is `wanted`, as the state shows it.
pub(super) fn projection_value(context: &Context, wanted: Option<&Value>) -> Value {
    if wanted.is_some_and(Value::is_array) {
        return projection(context);
    }
    let entries = context.entries().iter().map(|entry| {
        let messages = values(entry.messages().iter().map(|message| (*message.message()).clone()).collect());
        json!({"sourceEntry": entry.entry().value(), "messages": messages})
    });
    let mut out = context_value(context);
    out["entries"] = entries.collect();
    out
}

/// The whole tree as nested objects.
pub(super) fn nested(tree: &Tree) -> Value {
    let structure = tree.structure();
    // Children before parents: a deep tree must not need a deep stack to be built.
    let mut order: Vec<u32> = structure.roots().to_vec();
    let mut at = 0;
    while let Some(node) = order.get(at).copied() {
        order.extend_from_slice(structure.children(node));
        at += 1;
    }
    let mut built: std::collections::HashMap<u32, Value> = std::collections::HashMap::new();
    for node in order.iter().rev() {
        let mut object = Map::new();
        object.insert("id".to_owned(), structure.id(*node).into());
        if let Some(label) = structure.label(*node) {
            object.insert("label".to_owned(), label.text.into());
            object.insert("labelTimestamp".to_owned(), label.timestamp.into());
        }
        let children = structure.children(*node).iter().filter_map(|child| built.remove(child)).collect();
        object.insert("children".to_owned(), Value::Array(children));
        built.insert(*node, Value::Object(object));
    }
    structure.roots().iter().filter_map(|root| built.remove(root)).collect()
}

fn list<'a>(expected: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    expected.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn repaired(expected: &Value, llm: &[Message]) -> Value {
    let repaired = list(expected, "transform").map(|wanted| {
        let model = &wanted["model"];
        let inputs = model.get("input").and_then(Value::as_array);
        let target = transform::TargetModel {
            provider: string(model, "provider").to_owned(),
            api: string(model, "api").to_owned(),
            id: string(model, "id").to_owned(),
            images: inputs.is_some_and(|inputs| inputs.iter().any(|input| input == "image")),
        };
        let normalize: Option<Normalizer> = match string(wanted, "normalizer") {
            "" | "none" => None,
            "anthropic" => Some(Box::new(|id: &str, _: &Message| call_id::anthropic(id))),
            "openai-completions" | "chat" | "completions" => {
                let target = target.clone();
                Some(Box::new(move |id: &str, _: &Message| call_id::chat_completions(id, &target)))
            }
            "openai-responses" | "responses" => {
                let target = target.clone();
                Some(Box::new(move |id: &str, from: &Message| call_id::responses(id, &target, from)))
            }
            other => return json!({"unknown normalizer": other}),
        };
        let mut messages = values(transform::repair(llm, &target, normalize.as_deref()));
        stand_still(&mut messages);
        let mut out = wanted.clone();
        out["messages"] = messages;
        out
    });
    repaired.collect()
}

/// Results that were made up for calls without one carry the system's time (S160); two runs have to agree.
fn stand_still(messages: &mut Value) {
    for message in messages.as_array_mut().into_iter().flatten() {
        if message["role"] == "toolResult" && message["content"][0]["text"] == "No result provided" {
            message["timestamp"] = super::clock::NOW_MS.into();
        }
    }
}

/// Planned compactions under the settings of the case.
fn compactions(expected: &Value, context: &Context) -> Value {
    let plans = list(expected, "prepareCompaction").map(|wanted| {
        let settings = wanted.get("settings").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut all = Map::new();
        all.insert("compaction".to_owned(), Value::Object(settings));
        let keep = branchline::resources::settings::Settings::from_values(all).compaction(None);
        let keep = keep.map_or(0, |settings| settings.keep_recent_tokens);
        let result = compaction::prepare(context, keep).map(|plan| {
            let names = |set: &std::collections::BTreeSet<branchline::session::files::Path16>| -> Value {
                set.iter().map(|path| path.0.as_str()).collect()
            };
            let estimates: Value = messages(context).iter().map(estimate::message_tokens).collect();
            json!({
                "firstKeptEntryId": plan.first_kept_entry_id,
                "isSplitTurn": plan.is_split_turn,
                "tokensBefore": plan.tokens_before,
                "previousSummary": plan.previous_summary,
                "toSummarize": roles(&plan.history),
                "toSummarizeText": serialise::conversation(&plan.history),
                "turnPrefix": roles(&plan.turn_prefix),
                "turnPrefixText": serialise::conversation(&plan.turn_prefix),
                "fileOps": {"read": names(&plan.files.read), "written": names(&plan.files.written), "edited": names(&plan.files.edited)},
                "fileLists": plan.files.lists().details(),
                "estimates": estimates,
            })
        });
        json!({"settings": wanted["settings"], "result": result})
    });
    plans.collect()
}

/// Planned branch summaries between the leaves of the case.
fn branch_summaries(expected: &Value, tree: &Tree) -> Value {
    let plans = list(expected, "branchSummary").map(|wanted| {
        let leaf = |key: &str| wanted.get(key).and_then(Value::as_str).filter(|id| *id != "@undefined");
        let mut out = wanted.clone();
        out["result"] = match summary::left_behind(tree, leaf("from"), leaf("to")) {
            Err(error) => json!({"@throws": error.code().name()}),
            Ok(left) => {
                let plan = summary::prepare_branch(&left.entries, wanted.get("budget").and_then(Value::as_u64));
                json!({
                    "commonAncestorId": left.common_ancestor,
                    "entries": left.entries.iter().map(|entry| entry.id().to_owned()).collect::<Vec<_>>(),
                    "messages": roles(&plan.messages),
                    "totalTokens": plan.total_tokens,
                    "fileLists": lists(&plan.files),
                    "text": serialise::conversation(&plan.messages),
                    "filesText": plan.files.suffix(),
                })
            }
        };
        out
    });
    plans.collect()
}

fn lists(files: &FileLists) -> Value {
    files.details()
}

/// A file's content as the corpus shows it.
pub(super) fn file_value(bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    let ends = text.ends_with('\n');
    let body = text.strip_suffix('\n').unwrap_or(&text);
    let lines: Vec<&str> = if text.is_empty() { Vec::new() } else { body.split('\n').collect() };
    json!({"lines": lines, "endsWithNewline": ends})
}
