//! What the OpenAI protocols and their many relatives share: reading events, wording errors, ids that must be short.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::transcript::joined_texts;
use super::{Request, ToolChoice};
use crate::message::{JsonObject, Message};

/// The error for data that is no JSON. Its text ends in what arrived, cut to a readable length.
pub(crate) fn unreadable(data: &str, problem: &str) -> String {
    const SHOWN: usize = 500;
    let shown: String = data.chars().take(SHOWN).collect();
    let more = if shown.len() < data.len() { "…" } else { "" };
    format!("The service sent an event that is no JSON object ({problem}): {shown}{more}")
}

/// What a service says went wrong: its code or type and its message, each once, and what a router was told upstream.
pub(crate) fn error_text(raw: Option<&RawValue>) -> Option<String> {
    let raw = raw.map(RawValue::get).filter(|text| !matches!(*text, "null" | "false" | "\"\""))?;
    let value = crate::json::parse(raw.as_bytes()).unwrap_or(Value::Null);
    let Value::Object(error) = &value else {
        return Some(value.as_str().unwrap_or(raw).to_owned());
    };
    let word = |key: &str| match error.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let message = word("message");
    let kind = [word("code"), word("type")]
        .into_iter()
        .flatten()
        .find(|kind| !message.as_ref().is_some_and(|message| message.contains(kind.as_str())));
    let mut text = match (kind, message) {
        (Some(kind), Some(message)) => format!("{kind}: {message}"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => raw.to_owned(),
    };
    let upstream = error.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(Value::as_str);
    if let Some(upstream) = upstream.filter(|upstream| !upstream.is_empty() && !text.contains(upstream)) {
        text.push('\n');
        text.push_str(upstream);
    }
    Some(text)
}

/// The value behind an optional piece of raw JSON; `None` when it is missing, `null` or of another shape.
pub(crate) fn read<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    let text = raw?.get();
    if text == "null" { None } else { serde_json::from_str(text).ok() }
}

/// The list behind an optional piece of raw JSON; empty when it is anything else. Elements of another shape are left out.
pub(crate) fn list<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Vec<T> {
    let parts: Vec<&RawValue> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    parts.into_iter().filter_map(|part| serde_json::from_str(part.get()).ok()).collect()
}

/// What the body of a refusal says: its `error` object as JSON, else the text as it is (P101).
pub(crate) fn refusal_text(body: &str) -> String {
    let body = body.trim();
    let Some(Value::Object(object)) = crate::json::parse(body.as_bytes()) else { return body.to_owned() };
    let mut text = match object.get("error") {
        Some(Value::Null) | None => return body.to_owned(),
        Some(error) => crate::json::to_string(error),
    };
    let upstream = object.get("error").and_then(|error| error.pointer("/metadata/raw")).and_then(Value::as_str);
    // Inside the JSON it stands with escapes, which hides the words that errors are classified by.
    if let Some(upstream) = upstream.filter(|upstream| !upstream.is_empty() && !text.contains(upstream)) {
        text.push('\n');
        text.push_str(upstream);
    }
    text
}

/// The arguments of a call as JSON text.
pub(crate) fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::Null => "{}".to_owned(),
        arguments => crate::json::to_string(arguments),
    }
}

/// The text of a tool result (P307).
pub(crate) fn result_text(result: &Message, any_image: bool) -> String {
    let text = joined_texts(result);
    match (text.is_empty(), any_image) {
        (false, _) => text,
        (true, true) => "(see attached image)".to_owned(),
        (true, false) => "(no tool output)".to_owned(),
    }
}

/// Fields that are merged into the body last: the model's, those of the thinking level, the request's (P314).
pub(crate) fn sampling_params(request: &Request, level: Option<&str>) -> JsonObject {
    let mut out = request.model.sampling_params.clone();
    out.extend(
        request
            .model
            .sampling_params_by_level
            .get(level.unwrap_or_else(|| request.model.clamp_level("off")))
            .cloned()
            .unwrap_or_default(),
    );
    out.extend(request.options.sampling_params.clone());
    out
}

/// The word for a choice of tools.
pub(crate) fn tool_choice(choice: ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::None => "none",
    }
}

/// When requests carry `prompt_cache_key` (P313).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheKeyMode {
    /// To the service that documents it, and where long retention was asked for and is supported.
    Auto,
    /// Always.
    Enabled,
    /// Never.
    Disabled,
}

impl CacheKeyMode {
    pub(crate) fn parse(text: Option<&str>) -> CacheKeyMode {
        match text {
            Some("enabled") => CacheKeyMode::Enabled,
            Some("disabled") => CacheKeyMode::Disabled,
            _ => CacheKeyMode::Auto,
        }
    }
}

/// The headers by which a service sends requests of one session to one place (P313, P400).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionHeaders {
    /// Those of the original service.
    Usual,
    /// The same without the session's own header.
    WithoutSession,
    /// That of OpenRouter.
    Routed,
}

impl SessionHeaders {
    pub(crate) fn parse(text: Option<&str>) -> Option<SessionHeaders> {
        match text? {
            "openai" => Some(SessionHeaders::Usual),
            "openai-nosession" => Some(SessionHeaders::WithoutSession),
            "openrouter" => Some(SessionHeaders::Routed),
            _ => None,
        }
    }
}

/// The session's name as a cache key: 64 characters at the most.
pub(crate) fn cache_key(session_id: &str) -> String {
    session_id.chars().take(64).collect()
}

/// Whether the host of `url` is `host` or below it; a `host` that ends in a dot is its beginning. A name elsewhere in the
/// address, in a path for example, does not count.
pub(crate) fn host_matches(url: &str, host: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = authority.rsplit('@').next().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    if host.ends_with('.') {
        return name.starts_with(host);
    }
    name.strip_suffix(host).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_as_hosts() {
        assert!(host_matches("https://api.openai.com/v1", "api.openai.com"));
        assert!(host_matches("https://eu.api.openai.com:443/v1", "api.openai.com"));
        assert!(host_matches("https://api.moonshot.cn/v1", "api.moonshot."));
        for url in
            ["https://example.com/api.openai.com", "https://notapi.openai.com", "https://api.openai.com.evil.org"]
        {
            assert!(!host_matches(url, "api.openai.com"), "{url}");
        }
    }
}
