//! What the services of the four protocols refuse in the conversation of a request, by what their references demand.

use std::collections::HashSet;

use serde_json::Value;

/// Why a service would refuse this body, if it would.
///
/// # Panics
/// For a protocol that is not known.
pub fn refusal(api: &str, body: &Value) -> Option<String> {
    let checked = match api {
        "anthropic-messages" => anthropic(list(&body["messages"])),
        "openai-completions" => chat(list(&body["messages"])),
        "openai-responses" => responses(list(&body["input"])),
        "google-generative-ai" => gemini(list(&body["contents"])),
        other => panic!("no protocol {other}"),
    };
    checked.err()
}

type Checked = Result<(), String>;

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn need(right: bool, what: impl FnOnce() -> String) -> Checked {
    if right { Ok(()) } else { Err(what()) }
}

/// The texts of a key in those blocks that have it.
fn all<'a>(blocks: &'a [Value], kind: &str, key: &str) -> Vec<&'a str> {
    blocks.iter().filter(|block| block["type"] == kind).filter_map(|block| block[key].as_str()).collect()
}

fn same(ids: &[&str], others: &[&str]) -> bool {
    ids.len() == others.len() && ids.iter().collect::<HashSet<_>>() == others.iter().collect::<HashSet<_>>()
}

fn anthropic(messages: &[Value]) -> Checked {
    need(messages.first().is_some_and(|first| first["role"] == "user"), || {
        "the first message is not the user's".into()
    })?;
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks = list(&message["content"]);
        need(!blocks.is_empty() || message["content"].as_str().is_some_and(|text| !text.trim().is_empty()), || {
            format!("message {at} is empty")
        })?;
        let empty =
            |block: &Value| block["type"] == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty());
        need(!blocks.iter().any(empty), || format!("message {at} has an empty text"))?;
        let results = all(blocks, "tool_result", "tool_use_id");
        need(same(&results, &open), || format!("message {at} has results {results:?} for calls {open:?}"))?;
        let calls = all(blocks, "tool_use", "id");
        need(calls.is_empty() || message["role"] == "assistant", || format!("message {at} has calls of the user"))?;
        open = calls;
    }
    need(open.is_empty(), || format!("calls without results: {open:?}"))
}

fn chat(messages: &[Value]) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let place = open.iter().position(|call| *call == id);
            open.remove(place.ok_or_else(|| format!("message {at} is a result without its call"))?);
            continue;
        }
        need(open.is_empty(), || format!("before message {at} there are calls without results: {open:?}"))?;
        let calls = list(&message["tool_calls"]);
        open = calls.iter().filter_map(|call| call["id"].as_str()).collect();
        let says =
            !message["content"].is_null() && message["content"] != "" && message["content"] != Value::Array(vec![]);
        need(says || !calls.is_empty(), || format!("message {at} is empty"))?;
    }
    need(open.is_empty(), || format!("calls without results: {open:?}"))
}

fn responses(items: &[Value]) -> Checked {
    let mut calls = HashSet::new();
    let mut answered = HashSet::new();
    for (at, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") => need(calls.insert(id), || format!("item {at} repeats the call {id}"))?,
            Some("function_call_output") => {
                need(calls.contains(id), || format!("item {at} is a result without its call"))?;
                need(answered.insert(id), || format!("item {at} is a second result of {id}"))?;
            }
            _ => {}
        }
    }
    need(calls == answered, || format!("calls without results: {:?}", calls.difference(&answered)))
}

fn gemini(contents: &[Value]) -> Checked {
    need(contents.first().is_some_and(|first| first["role"] == "user"), || {
        "the first content is not the user's".into()
    })?;
    let mut open: Vec<&str> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let parts = list(&content["parts"]);
        need(!parts.is_empty(), || format!("content {at} is empty"))?;
        let names = |kind: &str| parts.iter().filter_map(|part| part[kind]["name"].as_str()).collect::<Vec<_>>();
        let results = names("functionResponse");
        need(results == open, || format!("content {at} has results {results:?} for calls {open:?}"))?;
        open = names("functionCall");
        need(open.is_empty() || content["role"] == "model", || format!("content {at} has calls of the user"))?;
    }
    need(open.is_empty(), || format!("calls without results: {open:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conversations_that_services_refuse() {
        let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "n", "input": {}}]});
        let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]});
        let user = json!({"role": "user", "content": "go"});
        let cases = [
            (vec![&user, &call, &result], true),
            (vec![&user, &call, &user], false),
            (vec![&user, &call], false),
            (vec![&user, &result], false),
            (vec![&user, &call, &result, &result], false),
            (vec![&call, &result], false),
        ];
        for (messages, fine) in cases {
            assert_eq!(refusal("anthropic-messages", &json!({"messages": messages})).is_none(), fine, "{messages:?}");
        }

        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]});
        let result = json!({"role": "tool", "tool_call_id": "a", "content": "x"});
        let empty = json!({"role": "assistant", "content": null});
        let cases = [
            (vec![&user, &call, &result, &user], true),
            (vec![&user, &call, &user], false),
            (vec![&user, &call], false),
            (vec![&user, &result], false),
            (vec![&user, &empty], false),
        ];
        for (messages, fine) in cases {
            assert_eq!(refusal("openai-completions", &json!({"messages": messages})).is_none(), fine, "{messages:?}");
        }

        let call = json!({"type": "function_call", "call_id": "a"});
        let result = json!({"type": "function_call_output", "call_id": "a"});
        let cases = [
            (vec![&user, &call, &result], true),
            (vec![&call], false),
            (vec![&result, &call], false),
            (vec![&call, &result, &result], false),
        ];
        for (input, fine) in cases {
            assert_eq!(refusal("openai-responses", &json!({"input": input})).is_none(), fine, "{input:?}");
        }

        let user = json!({"role": "user", "parts": [{"text": "go"}]});
        let call =
            json!({"role": "model", "parts": [{"functionCall": {"name": "n"}}, {"functionCall": {"name": "m"}}]});
        let response = |names: &[&str]| {
            let part = |name: &&str| json!({"functionResponse": {"name": name}});
            json!({"role": "user", "parts": names.iter().map(part).collect::<Vec<_>>()})
        };
        let (both, one, none) = (response(&["n", "m"]), response(&["n"]), response(&[]));
        let cases = [
            (vec![&user, &call, &both], true),
            (vec![&user, &call, &one], false),
            (vec![&user, &call, &user], false),
            (vec![&user, &both], false),
            (vec![&user, &none], false),
            (vec![&call, &both], false),
        ];
        for (contents, fine) in cases {
            assert_eq!(refusal("google-generative-ai", &json!({"contents": contents})).is_none(), fine, "{contents:?}");
        }
    }
}
