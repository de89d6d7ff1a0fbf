//! The body and the headers of a chat-completions request (P303, P305, P312–P314).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::compat::ChatCompat;
use super::messages::{Mapping, Piece};
use super::thinking::Thinking;
use crate::json;
use crate::message::{JsonObject, Role};
use crate::providers::openai_shared::{self as shared, CacheKeyMode, cache_key, host_matches};
use crate::providers::openai_tools::{Declared, ToolSupport, declare, grammar_tools};
use crate::providers::tool_changes::{self, InPlace, ToolPlan};
use crate::providers::transcript::{Sent, Transcript};
use crate::providers::{CacheRetention, Request, limits};

/// The JSON text of the body for a request whose conversation is `transcript`.
///
/// Errors: why there can be no such request.
pub(super) fn body(request: &Request, compat: &ChatCompat, transcript: &Transcript<'_>) -> Result<Vec<u8>, String> {
    let (model, options) = (&*request.model, &request.options);
    let level = model.asked_level(&request.thinking_level);
    let support = ToolSupport { strict: compat.strict, grammar: compat.grammar_tools };
    let in_place = if compat.tool_additions { InPlace::Additions } else { InPlace::Nothing };
    let plan = ToolPlan::of(request, in_place);
    let define = |list: &[Value]| Ok::<Vec<Value>, String>(declare(list, support)?.0.into_iter().map(tool).collect());
    let mut tools = define(&plan.head)?;
    let grammar_tools = grammar_tools(&request.tools, compat.grammar_tools);
    let mut mapping = Mapping {
        compat,
        reasoning: model.reasoning,
        images: model.images,
        grammar_tools: &grammar_tools,
        first_system: usize::from(request.messages.first().is_some_and(|first| first.role() == Role::System)),
        added_tools: added_tools(request, &plan, define)?,
        memo: None,
    };
    if !compat.cache_marks {
        mapping.memo = Some(memo_key(&mapping));
    }
    let mut list = mapping.messages(transcript);
    if compat.cache_marks
        && let Some(mark) = mark(options.cache_retention, compat.long_cache)
    {
        put_marks(&mut list, &mut tools, &mark);
    }
    let mut body = JsonObject::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    put("model", model.id.as_str().into());
    put("messages", Value::Null);
    put("stream", true.into());
    let long = options.cache_retention == CacheRetention::Long && compat.long_cache;
    let keyed = match compat.cache_key {
        CacheKeyMode::Enabled => true,
        CacheKeyMode::Disabled => false,
        CacheKeyMode::Auto => long || host_matches(&model.base_url, "api.openai.com"),
    };
    if keyed && options.cache_retention != CacheRetention::None && !request.session_id.is_empty() {
        put("prompt_cache_key", cache_key(&request.session_id).into());
    }
    if long {
        put("prompt_cache_retention", "24h".into());
    }
    if compat.usage_in_streaming {
        put("stream_options", json!({"include_usage": true}));
    }
    if compat.store {
        put("store", false.into());
    }
    let limit = limits::output_limit(model, options.max_tokens, limits::conversation_tokens(&request.messages));
    if limit > 0 {
        put(compat.max_tokens_field, limit.into());
    }
    if let Some(temperature) = options.temperature {
        put("temperature", temperature.into());
    }
    if !tools.is_empty() {
        put("tools", tools.into());
        if compat.tool_stream {
            put("tool_stream", true.into());
        }
        if let Some(choice) = options.tool_choice {
            put("tool_choice", shared::tool_choice(choice).into());
        }
    } else if compat.tools_with_history && has_calls(&transcript.messages) {
        put("tools", Value::Array(Vec::new()));
    }
    if let Some(priority) = &compat.vllm_priority {
        put("priority", priority.clone());
    }
    let budget = level.map_or(0, |level| limits::thinking_budget(level, &options.thinking_budgets));
    let budget = if limit == 0 { budget } else { budget.min(limit.saturating_sub(1024)) };
    Thinking { model, compat, level, budget }.put(&mut body);
    if let Some(router) = &compat.router {
        body.insert("provider".to_owned(), router.clone());
    }
    if let Some(gateway) = &compat.gateway {
        let chosen: JsonObject =
            ["only", "order"].iter().filter_map(|key| Some(((*key).to_owned(), gateway.get(*key)?.clone()))).collect();
        if !chosen.is_empty() {
            body.insert("providerOptions".to_owned(), json!({"gateway": chosen}));
        }
    }
    // Last, so that they win (P314).
    body.extend(shared::sampling_params(request, level));
    Ok(text(&body, &list))
}

/// Stands for all that the form of a message depends on.
fn memo_key(mapping: &Mapping<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut grammar_tools: Vec<_> = mapping.grammar_tools.iter().collect();
    grammar_tools.sort_unstable();
    grammar_tools.hash(&mut hasher);
    format!("{:?} {} {}", mapping.compat, mapping.reasoning, mapping.images).hash(&mut hasher);
    hasher.finish()
}

/// The body with its messages.
fn text(body: &JsonObject, messages: &[Piece]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096 + messages.iter().map(|message| message.len() + 1).sum::<usize>());
    for (at, (key, value)) in body.iter().enumerate() {
        out.push(if at == 0 { b'{' } else { b',' });
        json::write_string(&mut out, key);
        out.push(b':');
        // Parameters of the host's may say what the messages are.
        if key != "messages" || !value.is_null() {
            json::write_value(&mut out, value);
            continue;
        }
        out.push(b'[');
        for (at, message) in messages.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            message.write(&mut out);
        }
        out.push(b']');
    }
    out.push(b'}');
    out
}

/// The tools that are declared where they were added, by the number of their system message.
fn added_tools(
    request: &Request,
    plan: &ToolPlan,
    define: impl Fn(&[Value]) -> Result<Vec<Value>, String>,
) -> Result<HashMap<usize, Vec<Value>>, String> {
    let system = request.messages.iter().filter(|message| message.shape().role == Role::System).enumerate();
    let told = system.filter(|(at, message)| plan.tells(*at) && !tool_changes::added(message).is_empty());
    told.map(|(at, message)| Ok((at, define(tool_changes::added(message))?))).collect()
}

fn tool(tool: Declared<'_>) -> Value {
    match tool {
        Declared::Function { name, description, parameters, strict } => {
            let mut function = json!({"name": name, "description": description, "parameters": parameters});
            if let Some(strict) = strict {
                function["strict"] = strict.into();
            }
            json!({"type": "function", "function": function})
        }
        Declared::Grammar { name, description, syntax, definition } => {
            let format = json!({"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}});
            json!({"type": "custom", "custom": {"name": name, "description": description, "format": format}})
        }
    }
}

fn has_calls(messages: &[Sent<'_>]) -> bool {
    messages
        .iter()
        .map(|message| message.shape())
        .any(|shape| shape.role == Role::ToolResult || !shape.calls.is_empty())
}

/// The mark on what a prompt cache should keep, in the style of Anthropic's models.
fn mark(retention: CacheRetention, long: bool) -> Option<Value> {
    match retention {
        CacheRetention::None => None,
        CacheRetention::Long if long => Some(json!({"type": "ephemeral", "ttl": "1h"})),
        _ => Some(json!({"type": "ephemeral"})),
    }
}

/// On the system message, the last tool and the last text of the conversation.
fn put_marks(messages: &mut [Piece], tools: &mut [Value], mark: &Value) {
    let mut messages: Vec<&mut Value> = messages.iter_mut().filter_map(Piece::value_mut).collect();
    let role = |message: &Value, roles: &[&str]| {
        message.get("role").and_then(Value::as_str).is_some_and(|role| roles.contains(&role))
    };
    if let Some(system) = messages.iter_mut().find(|message| role(message, &["system", "developer"])) {
        mark_text(system, mark);
    }
    if let Some(tool) = tools.last_mut() {
        tool["cache_control"] = mark.clone();
    }
    for message in messages.iter_mut().rev().filter(|message| role(message, &["user", "assistant", "tool"])) {
        if mark_text(message, mark) {
            break;
        }
    }
}

/// Marks the last text of a message, if it has one.
fn mark_text(message: &mut Value, mark: &Value) -> bool {
    let Some(content) = message.get_mut("content") else { return false };
    match content {
        Value::String(text) if !text.is_empty() => {
            *content = json!([{"type": "text", "text": std::mem::take(text), "cache_control": mark}]);
            true
        }
        Value::Array(parts) => {
            let text = |part: &&mut Value| part.get("type").and_then(Value::as_str) == Some("text");
            let Some(part) = parts.iter_mut().rev().find(text) else { return false };
            part["cache_control"] = mark.clone();
            true
        }
        _ => false,
    }
}
