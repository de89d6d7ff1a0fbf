//! Short forms of messages, events and entries, in which the corpus states results.

use serde_json::{Map, Value, json};

/// Longer texts are cut, in UTF-16 units.
const CUT: usize = 160;

/// The short form of a message; `detail` 2 adds what only entries have.
pub(super) fn message(message: &Value, detail: u64) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    let field = |key: &str| message.get(key).cloned().unwrap_or(Value::Null);
    let role = message["role"].as_str().unwrap_or_default();
    put("role", role.into());
    match role {
        "system" => {
            let sections = message["sections"].as_object();
            put("sections", sections.into_iter().flatten().map(|(name, _)| name.as_str()).collect());
            put("toolsAdded", names(&message["toolsAdded"]));
            put("toolsRemoved", names(&message["toolsRemoved"]));
        }
        "assistant" => {
            put("text", text(&message["content"], Some(CUT)).into());
            put("stopReason", field("stopReason"));
            if let Some(error) = message.get("errorMessage").filter(|error| *error != "") {
                put("errorMessage", error.clone());
            }
        }
        "toolResult" => {
            put("toolCallId", field("toolCallId"));
            put("isError", field("isError"));
            put("text", text(&message["content"], Some(CUT)).into());
            put("hasDuration", message.get("durationMs").is_some().into());
        }
        "bashExecution" => {
            put("command", field("command"));
        }
        "custom" => {
            put("customType", field("customType"));
        }
        "compactionSummary" | "branchSummary" => {}
        _ => {
            put("text", text(&message["content"], Some(CUT)).into());
        }
    }
    if detail > 1 {
        let keys: &[&str] = match role {
            "assistant" => &["model", "thinkingLevel"],
            "bashExecution" => &["output", "exitCode", "cancelled", "truncated", "excludeFromContext"],
            _ => &[],
        };
        for key in keys {
            if let Some(value) = message.get(*key) {
                put(key, value.clone());
            }
        }
        if let Some(nested) = message.get("nestedCalls") {
            put("nestedCalls", nested_calls(nested));
        }
        let thinks = |content: &Vec<Value>| content.iter().any(|block| block["type"] == "thinking");
        if role == "assistant" && message["content"].as_array().is_some_and(thinks) {
            put("content", field("content"));
        }
        if matches!(role, "assistant" | "toolResult")
            && let Some(spent) = message.get("usage")
        {
            put("usage", usage(spent));
        }
    }
    Value::Object(out)
}

fn names(tools: &Value) -> Value {
    tools.as_array().into_iter().flatten().map(|tool| tool["name"].clone()).collect()
}

fn usage(usage: &Value) -> Value {
    let mut out = Map::new();
    for key in ["input", "output", "cacheRead", "cacheWrite", "totalTokens"] {
        out.insert(key.to_owned(), usage[key].clone());
    }
    Value::Object(out)
}

/// The content in words; uncut it also tells what was thought.
fn nested_calls(record: &Value) -> Value {
    let call = |call: &Value| {
        let mut out = call.clone();
        if let Some(object) = out.as_object_mut() {
            let timed = object.remove("durationMs").is_some();
            object.insert("hasDuration".to_owned(), timed.into());
        }
        out
    };
    let calls: Vec<Value> = record["calls"].as_array().into_iter().flatten().map(call).collect();
    json!({"calls": calls, "complete": record["complete"]})
}

pub(super) fn text(content: &Value, cut: Option<usize>) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let block = |block: &Value| {
        let word = |key: &str| block[key].as_str().unwrap_or_default();
        match word("type") {
            "text" => clip(word("text"), cut),
            "toolCall" => format!("<{}:{}>", word("name"), word("id")),
            "thinking" if cut.is_none() => format!("<thinking:{}>", word("thinking")),
            other => format!("<{other}>"),
        }
    };
    content.as_array().into_iter().flatten().map(block).collect::<Vec<_>>().join("|")
}

fn clip(text: &str, cut: Option<usize>) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    match cut.filter(|cut| units.len() > *cut) {
        Some(cut) => String::from_utf16_lossy(&units[..cut]) + "…",
        None => text.to_owned(),
    }
}

/// The short form of an event in its JSON form.
pub(super) fn event(event: &Value, detail: u64) -> Value {
    let name = &event["type"];
    let result = |key: &str| text(&event[key]["content"], Some(CUT));
    let list = |key: &str, pick: &str| -> Value {
        event[key].as_array().into_iter().flatten().map(|message| message[pick].clone()).collect()
    };
    let by = |mut out: Value| {
        if let Some(parent) = event.get("parentToolCallId") {
            out["parentToolCallId"] = parent.clone();
        }
        out
    };
    match name.as_str().unwrap_or_default() {
        "message_start" | "message_end" => json!({"type": name, "message": message(&event["message"], 1)}),
        "message_update" => json!({"type": name, "event": event["assistantMessageEvent"]["type"]}),
        "turn_end" => json!({"type": name, "message": message(&event["message"], 1),
            "toolResults": list("toolResults", "toolCallId")}),
        "agent_end" => {
            json!({"type": name, "messages": list("messages", "role"), "willRetry": event["willRetry"]})
        }
        "tool_execution_update" if detail > 1 => {
            by(json!({"type": name, "toolCallId": event["toolCallId"], "text": result("partialResult")}))
        }
        "tool_execution_update" => by(json!({"type": name, "toolCallId": event["toolCallId"]})),
        "tool_execution_end" => {
            by(json!({"type": name, "toolCallId": event["toolCallId"], "isError": event["isError"],
            "text": result("result"), "hasDuration": event.get("durationMs").is_some()}))
        }
        "entry_appended" => {
            let mut out = json!({"type": name, "entry": event["entry"]["type"]});
            if event["entry"]["type"] == "context_edit" {
                out["replacement"] = event["entry"]["replacement"].clone();
            }
            out
        }
        "compaction_end" => {
            let mut out = json!({"type": name, "reason": event["reason"], "hasResult": event.get("result").is_some(),
                "aborted": event["aborted"], "willRetry": event["willRetry"]});
            if let Some(error) = event.get("errorMessage") {
                out["errorMessage"] = error.clone();
            }
            out
        }
        _ => event.clone(),
    }
}

/// The keys of an object in written order.
fn keys(value: &Value) -> String {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(",")
}

/// The short form of an entry; `index` finds the number of an entry by its id.
pub(super) fn entry(entry: &Value, index: impl Fn(&Value) -> Value, detail: u64) -> Value {
    let mut key_order = keys(entry);
    if let Some(message) = entry.get("message") {
        key_order += &format!(" | {}", keys(message));
    }
    let mut out = json!({"type": entry["type"], "keys": key_order, "parent": index(&entry["parentId"])});
    let mut copy = |names: &[&str]| {
        for name in names {
            if let Some(value) = entry.get(*name) {
                out[*name] = value.clone();
            }
        }
    };
    match entry["type"].as_str().unwrap_or_default() {
        "message" => out["message"] = message(&entry["message"], detail),
        "thinking_level_change" => copy(&["thinkingLevel"]),
        "model_change" => copy(&["modelId"]),
        "context_edit" => {
            copy(&["replacement"]);
            out["target"] = index(&entry["targetId"]);
        }
        "label" => {
            copy(&["label"]);
            out["target"] = index(&entry["targetId"]);
        }
        "compaction" => {
            copy(&["summary", "tokensBefore", "fromHook", "details"]);
            out["firstKept"] = index(&entry["firstKeptEntryId"]);
            out["hasSystemMessage"] = entry.get("systemMessage").is_some().into();
        }
        "branch_summary" => {
            copy(&["summary", "fromHook", "details"]);
            out["from"] = match index(&entry["fromId"]) {
                Value::Null if entry["fromId"] == "root" => "root".into(),
                Value::Null => "@dangling".into(),
                found => found,
            };
        }
        "session_info" if detail > 1 => copy(&["name"]),
        "custom_message" if detail > 1 => {
            copy(&["customType", "display"]);
            out["text"] = text(&entry["content"], Some(CUT)).into();
        }
        _ => {}
    }
    if detail > 1
        && matches!(entry["type"].as_str(), Some("compaction" | "branch_summary"))
        && let Some(spent) = entry.get("usage")
    {
        out["usage"] = usage(spent);
    }
    out
}
