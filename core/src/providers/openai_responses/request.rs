//! The body of a Responses request (P401, P406–P408).

use serde_json::{Value, json};

use super::compat::ResponsesCompat;
use super::input::Input;
use crate::message::JsonObject;
use crate::providers::openai_shared::{self as shared, CacheKeyMode, cache_key};
use crate::providers::openai_tools::{Declared, ToolSupport, declare};
use crate::providers::transcript::Transcript;
use crate::providers::{CacheRetention, Request, limits};

/// The service refuses a smaller output limit.
const SMALLEST_LIMIT: u64 = 16;

/// The body for a request whose conversation is `transcript`.
///
/// Errors: why there can be no such request.
pub(super) fn body(request: &Request, compat: &ResponsesCompat, transcript: &Transcript) -> Result<JsonObject, String> {
    let (model, options) = (&*request.model, &request.options);
    let level = Some(model.clamp_level(&request.thinking_level)).filter(|level| model.reasoning && *level != "off");
    let support = ToolSupport { strict: compat.strict, grammar: compat.grammar_tools };
    let (tools, grammar_tools) = declare(&request.tools, support)?;
    let tools: Vec<Value> = tools.into_iter().map(tool).collect();
    let mut body = JsonObject::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    put("model", model.id.as_str().into());
    put("input", Input::new(model, compat.developer_role, &grammar_tools).items(transcript).into());
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
            // Half an hour is all there is, without asking.
            (CacheRetention::Long, true) => {}
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
    if !tools.is_empty() {
        put("tools", tools.into());
        if let Some(choice) = options.tool_choice {
            put("tool_choice", shared::tool_choice(choice).into());
        }
    }
    if model.reasoning {
        match level {
            Some(level) => {
                let effort = model.level_word(level).flatten().unwrap_or(level);
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
