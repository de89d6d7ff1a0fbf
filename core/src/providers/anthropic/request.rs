//! The request: headers and body (P200–P205, P210, P213–P216, P218).

use serde_json::{Value, json};

use super::super::http::Outgoing;
use super::super::limits::{conversation_tokens, output_limit, thinking_budget, thinking_limits};
use super::super::openai_shared::host_matches;
use super::super::protocol::Call;
use super::super::tool_changes::{InPlace, ToolPlan};
use super::super::transcript::is_blank;
use super::super::{CacheRetention, Compat, Model, Request, ToolChoice, strict};
use super::messages::{self, Changes};
use super::threads::{self, Threads};
use crate::message::JsonObject;

/// The output limit for a model that has none: the service insists on one.
const USUAL_LIMIT: u64 = 16_384;
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";
const FALLBACKS: &str = "server-side-fallback-2026-07-01";
const EFFORT: &str = "mid-conversation-output-config-2026-07-01";
const BINDING: &str = "thinking-binding-controls-2026-08-01";
const INLINE_TOOLS: &str = "inline-tools-2026-09-15";
const FINE_GRAINED: &str = "fine-grained-tool-streaming-2025-05-14";

/// What a level asks of a model.
enum Thinking {
    /// The model does not think, or nothing can be said about it.
    Unsaid,
    Off,
    Adaptive(String),
    /// The same, said by messages, so that another level changes nothing in front of them (P218).
    InPlace(String),
    Budget(u64),
}

/// The HTTP request. With `lenient` no tool is strict that only prefers to be.
pub(super) fn outgoing(call: &Call<'_>, lenient: bool, threads: &Threads) -> Result<Outgoing, String> {
    let request = call.request;
    let model = &*request.model;
    let input = conversation_tokens(&request.messages);
    let (thinking, limit) = thinking(request, input);
    let cache = cache_mark(request);
    let compat = &model.compat;
    let in_place = compat.is("supportsMidConvoSystemMessages", false);
    let native = in_place && compat.is("supportsMidConvoToolChanges", false);
    let plan = ToolPlan::of(request, if native { InPlace::Changes } else { InPlace::Nothing });
    // A list in which every tool is deferred is refused, so there must be one to begin with.
    let (plan, native) = match plan {
        plan if native && plan.folded != usize::MAX && !plan.head.is_empty() => (plan, true),
        _ => (ToolPlan::of(request, InPlace::Nothing), false),
    };
    let define = |list: &[Value]| tools(list, compat, lenient);
    let mut tools = define(&plan.head)?;
    if let Some(last) = tools.last_mut().filter(|_| compat.is("supportsCacheControlOnTools", true)) {
        mark(last, cache.as_ref());
    }
    if native {
        tools.push(placeholder());
    }
    let effort = match &thinking {
        Thinking::InPlace(effort) => Some(effort.as_str()),
        _ => None,
    };
    let changes = Changes { in_place, plan: native.then_some(&plan), define: &define, effort };
    let (system, messages) = messages::convert(request, cache.as_ref(), &changes)?;

    let mut body = JsonObject::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    put("model", model.id.as_str().into());
    put("messages", messages.into());
    put("max_tokens", limit.into());
    put("stream", true.into());
    if !is_blank(&system) {
        let mut block = json!({"type": "text", "text": system});
        mark(&mut block, cache.as_ref());
        put("system", json!([block]));
    }
    let has_tools = !tools.is_empty();
    if has_tools {
        put("tools", tools.into());
    }
    let options = &request.options;
    let thinks = !matches!(thinking, Thinking::Unsaid | Thinking::Off);
    let in_messages = compat.is("supportsMidConvoEffort", false);
    let takes_temperature = !thinks && !in_messages && compat.is("supportsTemperature", true);
    if let Some(temperature) = options.temperature.filter(|_| takes_temperature) {
        put("temperature", temperature.into());
    }
    match &thinking {
        Thinking::Unsaid => {}
        Thinking::Off => put("thinking", json!({"type": "disabled"})),
        Thinking::Adaptive(effort) => {
            put("thinking", json!({"type": "adaptive", "display": "summarized"}));
            put("output_config", json!({"effort": effort}));
        }
        Thinking::InPlace(_) => {
            // Thinking that no longer fits what stands before it is left out there instead of refused.
            let binding = json!({"prefix_mismatch_behavior": "drop_block"});
            put("thinking", json!({"type": "adaptive", "display": "summarized", "block_binding": binding}));
            // A part of the cached prefix, so always the same; the level every account may use.
            put("output_config", json!({"effort": "low"}));
        }
        Thinking::Budget(budget) => {
            put("thinking", json!({"type": "enabled", "budget_tokens": budget, "display": "summarized"}));
        }
    }
    if let Some(user) = options.metadata.get("user_id").and_then(Value::as_str) {
        put("metadata", json!({"user_id": user}));
    }
    match options.tool_choice {
        Some(ToolChoice::Auto) => put("tool_choice", json!({"type": "auto"})),
        Some(ToolChoice::None) => put("tool_choice", json!({"type": "none"})),
        None => {}
    }
    let fallbacks = fallbacks(model);
    let has_fallbacks = !fallbacks.is_empty();
    if has_fallbacks {
        put("fallbacks", fallbacks.into());
    }

    let threaded = threads::wanted(call);
    let eager = compat.is("supportsEagerToolInputStreaming", true);
    let wanted = [
        (FINE_GRAINED, has_tools && !eager),
        (INTERLEAVED, matches!(thinking, Thinking::Budget(_))),
        (FALLBACKS, has_fallbacks),
        (EFFORT, in_messages),
        (BINDING, in_messages),
        (INLINE_TOOLS, native),
        (threads::BETA, threaded),
    ];
    let betas: Vec<&str> = wanted.into_iter().filter_map(|(beta, wanted)| wanted.then_some(beta)).collect();
    let betas = betas.join(",");
    let begun = if threaded { threads.begin(call, &betas, &mut body) } else { None };

    let url = format!("{}/v1/messages?beta=true", call.base_url());
    let mut out = Outgoing::new(url, &body);
    out.memo = begun.map(|begun| Box::new(begun) as _);
    out.header("accept", "application/json");
    out.header("anthropic-version", "2023-06-01");
    // The service answers programs of a browser's kind, such as hosts of notebooks, only with this.
    out.header("anthropic-dangerous-direct-browser-access", "true");
    call.key_header(&mut out, "x-api-key");
    if call.configured_header("anthropic-beta").is_none() && !betas.is_empty() {
        out.header("anthropic-beta", &betas);
    }
    let routed = model.provider == "openrouter" || host_matches(call.base_url(), "openrouter.ai");
    if cache.is_some() && compat.is("sendSessionAffinityHeaders", routed) && !request.session_id.is_empty() {
        let openrouter = compat.text("sessionAffinityFormat").map_or(routed, |format| format == "openrouter");
        out.private_header(if openrouter { "x-session-id" } else { "x-session-affinity" }, &request.session_id);
    }
    Ok(out)
}

/// The level that messages say, if they do (P218).
pub(super) fn effort_in_place(request: &Request) -> Option<String> {
    match thinking(request, 0).0 {
        Thinking::InPlace(effort) => Some(effort),
        _ => None,
    }
}

/// A tool that is never there. Changes of tools bring words of the service's own into the prompt; with one deferred tool from
/// the beginning those are there from the beginning too, and the first change costs no cached prefix.
fn placeholder() -> Value {
    json!({
        "name": "reserved_for_later_tools",
        "description": "Keeps a place for tools that may be added later. It cannot be called.",
        "input_schema": {"type": "object", "properties": {}, "required": []},
        "defer_loading": true,
    })
}

/// What the level asks of the model, and the output limit that leaves room for it.
fn thinking(request: &Request, input: u64) -> (Thinking, u64) {
    let (model, options) = (&*request.model, &request.options);
    let wanted = options.max_tokens.or((model.max_tokens == 0).then_some(USUAL_LIMIT));
    let limit = output_limit(model, wanted, input);
    if !model.reasoning {
        return (Thinking::Unsaid, limit);
    }
    let level = match &*request.thinking_level {
        "off" => "off",
        level => model.clamp_level(level),
    };
    let unsaid = model.level_word("off") == Some(None);
    if level == "off" && !unsaid {
        return (Thinking::Off, limit);
    }
    let in_place = model.compat.is("supportsMidConvoEffort", false);
    if level == "off" && !in_place {
        return (Thinking::Unsaid, limit);
    }
    if in_place || model.compat.is("forceAdaptiveThinking", false) {
        let usual = match level {
            "minimal" | "low" => "low",
            "medium" => "medium",
            _ => "high",
        };
        let effort = model.level_word(level).flatten().unwrap_or(usual);
        let effort = effort.to_owned();
        return (if in_place { Thinking::InPlace(effort) } else { Thinking::Adaptive(effort) }, limit);
    }
    let (limit, budget) = thinking_limits(model, wanted, input, thinking_budget(level, &options.thinking_budgets));
    // The service takes no budget of nothing.
    (Thinking::Budget(if budget == 0 { 1024 } else { budget }), limit)
}

/// The cache mark (P205); `None` if nothing is to be cached.
fn cache_mark(request: &Request) -> Option<Value> {
    match request.options.cache_retention {
        CacheRetention::None => None,
        CacheRetention::Long if request.model.compat.is("supportsLongCacheRetention", true) => {
            Some(json!({"type": "ephemeral", "ttl": "1h"}))
        }
        _ => Some(json!({"type": "ephemeral"})),
    }
}

/// Puts the mark on a block.
pub(super) fn mark(block: &mut Value, cache: Option<&Value>) {
    if let (Some(cache), Value::Object(block)) = (cache, block) {
        block.insert("cache_control".to_owned(), cache.clone());
    }
}

/// Models that may answer in place of this one: ids, or `{"model": id, "cost"?: prices}`.
fn fallbacks(model: &Model) -> Vec<Value> {
    let allowed = model.compat.get("allowedFallbackModels").and_then(Value::as_array);
    let id = |entry: &Value| entry.as_str().or_else(|| entry.get("model")?.as_str()).map(str::to_owned);
    allowed.into_iter().flatten().filter_map(id).take(3).map(|id| json!({"model": id})).collect()
}

fn tools(list: &[Value], compat: &Compat, lenient: bool) -> Result<Vec<Value>, String> {
    let eager = compat.is("supportsEagerToolInputStreaming", true);
    let mut tools = Vec::with_capacity(list.len());
    for tool in list {
        let name = tool["name"].as_str().unwrap_or_default();
        let strict = match strict::wish(tool) {
            strict::Wish::None => None,
            strict::Wish::Prefer if lenient => None,
            wish => {
                let form = Some(compat.is("supportsStrictTools", false)).filter(|it| *it);
                let form = form.and_then(|_| strict::strict_schema(&tool["parameters"]));
                let form = form.filter(strict::anthropic_takes);
                if form.is_none() && wish == strict::Wish::Require {
                    return Err(format!(
                        "the tool {name:?} must have strict arguments, which this model or the tool's schema does not allow"
                    ));
                }
                form
            }
        };
        let mut out = JsonObject::new();
        out.insert("name".to_owned(), name.into());
        out.insert("description".to_owned(), tool["description"].as_str().unwrap_or_default().into());
        if eager {
            out.insert("eager_input_streaming".to_owned(), true.into());
        }
        if strict.is_some() {
            out.insert("strict".to_owned(), true.into());
        }
        out.insert("input_schema".to_owned(), strict.unwrap_or_else(|| input_schema(&tool["parameters"])));
        tools.push(Value::Object(out));
    }
    Ok(tools)
}

/// The root of a schema as the service takes it (P210).
fn input_schema(parameters: &Value) -> Value {
    let mut out = JsonObject::new();
    out.insert("type".to_owned(), "object".into());
    out.insert("properties".to_owned(), parameters.get("properties").cloned().unwrap_or_else(|| json!({})));
    out.insert("required".to_owned(), parameters.get("required").cloned().unwrap_or_else(|| json!([])));
    for key in ["additionalProperties", "$defs", "definitions"] {
        if let Some(value) = parameters.get(key) {
            out.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(out)
}
