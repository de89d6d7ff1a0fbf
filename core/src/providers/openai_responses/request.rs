//! The body of a Responses request (P401, P406–P409).

use serde_json::{Value, json};

use super::changes::Changes;
use super::compat::ResponsesCompat;
use super::input::Input;
use crate::message::JsonObject;
use crate::providers::openai_shared::{self as shared, CacheKeyMode, cache_key};
use crate::providers::openai_tools::{Declared, ToolSupport, declare, grammar_tools};
use crate::providers::tool_changes;
use crate::providers::tool_changes::{InPlace, ToolPlan};
use crate::providers::transcript::Transcript;
use crate::providers::{CacheRetention, Request, limits};

/// The service refuses a smaller output limit.
const SMALLEST_LIMIT: u64 = 16;
/// The level at the head when items tell it: a part of the cached prefix, so always the same.
const EFFORT_AT_THE_HEAD: &str = "medium";

/// The body for a request whose conversation is `transcript`.
///
/// Errors: why there can be no such request.
pub(super) fn body(
    request: &Request,
    compat: &ResponsesCompat,
    transcript: &Transcript<'_>,
) -> Result<JsonObject, String> {
    let (model, options) = (&*request.model, &request.options);
    let level = model.asked_level(&request.thinking_level);
    let support = ToolSupport { strict: compat.strict, grammar: compat.grammar_tools };
    let plan = ToolPlan::of(request, compat.tool_changes);
    let told = plan.folded != usize::MAX;
    let grammar_tools = grammar_tools(&known_tools(request), compat.grammar_tools);
    let define = |list: &[Value]| Ok::<Vec<Value>, String>(declare(list, support)?.0.into_iter().map(tool).collect());
    let tools = define(&plan.head)?;
    let any_tools = !request.tools.is_empty();
    let effort = effort_in_place(request, compat);
    let changes = Changes {
        plan: Some(&plan).filter(|_| told),
        define: &define,
        // An item cannot take away or replace what the head declares, so nothing is declared there.
        head: (told && compat.tool_changes == InPlace::Changes).then_some(tools.as_slice()),
        additions_only: compat.tool_changes == InPlace::Additions,
        effort: effort.as_deref(),
    };
    let input = Input::new(model, compat.developer_role, &grammar_tools).items(transcript, request, &changes)?;
    let at_the_head = if changes.head.is_some() { Vec::new() } else { tools.clone() };
    let mut body = JsonObject::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    put("model", model.id.as_str().into());
    put("input", input.into());
    put("stream", true.into());
    put("store", false.into());
    let caches = options.cache_retention != CacheRetention::None;
    if caches && compat.cache_key != CacheKeyMode::Disabled && !request.session_id.is_empty() {
        put("prompt_cache_key", cache_key(&request.session_id).into());
    }
    // A person's sign-in instead of a key: its service refuses these (P407).
    if !compat.signed_in {
        match (options.cache_retention, compat.explicit_cache_mode) {
            // Without a breakpoint of its own such a model keeps nothing, and bills no writing.
            (CacheRetention::None, true) => put("prompt_cache_options", json!({"mode": "explicit"})),
            // Half an hour is all there is.
            (CacheRetention::Long, true) if compat.long_cache => put("prompt_cache_options", json!({"ttl": "30m"})),
            (CacheRetention::Long, false) if compat.long_cache => put("prompt_cache_retention", "24h".into()),
            _ => {}
        }
        let limit = limits::output_limit(model, options.max_tokens, limits::conversation_tokens(&request.messages));
        if limit > 0 && compat.max_output_tokens {
            put("max_output_tokens", limit.max(SMALLEST_LIMIT).into());
        }
        if let Some(temperature) = options.temperature {
            put("temperature", temperature.into());
        }
    }
    if !at_the_head.is_empty() {
        put("tools", at_the_head.into());
    }
    if let Some(choice) = options.tool_choice.filter(|_| any_tools) {
        put("tool_choice", shared::tool_choice(choice).into());
    }
    if model.reasoning {
        match level {
            Some(level) => {
                let told = effort.as_ref().map(|_| EFFORT_AT_THE_HEAD);
                let effort = told.unwrap_or_else(|| model.level_word(level).flatten().unwrap_or(level));
                put("reasoning", json!({"effort": effort, "summary": "auto"}));
                put("include", json!(["reasoning.encrypted_content"]));
            }
            None if model.provider == "github-copilot" => {}
            None => {
                if let Some(effort) = model.level_word("off").unwrap_or(Some("none")) {
                    put("reasoning", json!({"effort": effort}));
                }
            }
        }
    }
    if let Some(tier) = &options.service_tier {
        body.insert("service_tier".to_owned(), tier.as_str().into());
    }
    // Last, so that they win (P314).
    body.extend(shared::sampling_params(request, level));
    Ok(body)
}

/// Every tool of the conversation: calls of one that is gone keep their form.
fn known_tools(request: &Request) -> Vec<Value> {
    let told = request.messages.iter().flat_map(|message| tool_changes::added(message));
    told.chain(request.tools.iter()).cloned().collect()
}

/// The level that items tell, if they do (P409).
pub(super) fn effort_in_place(request: &Request, compat: &ResponsesCompat) -> Option<String> {
    let model = &request.model;
    let level = model.asked_level(&request.thinking_level).filter(|_| compat.effort_in_place)?;
    Some(model.level_word(level).flatten().unwrap_or(level).to_owned())
}

/// The service tier a request asks for.
pub(super) fn service_tier(request: &Request) -> Option<String> {
    let own = request
        .options
        .sampling_params
        .get("service_tier")
        .or_else(|| request.model.sampling_params.get("service_tier"));
    own.and_then(Value::as_str).map(str::to_owned).or_else(|| request.options.service_tier.clone())
}

fn tool(tool: Declared<'_>) -> Value {
    match tool {
        Declared::Function { name, description, parameters, strict } => {
            let mut tool =
                json!({"type": "function", "name": name, "description": description, "parameters": parameters});
            if let Some(strict) = strict {
                tool["strict"] = strict.into();
            }
            tool
        }
        Declared::Grammar { name, description, syntax, definition } => {
            let format = json!({"type": "grammar", "syntax": syntax, "definition": definition});
            json!({"type": "custom", "name": name, "description": description, "format": format})
        }
    }
}
