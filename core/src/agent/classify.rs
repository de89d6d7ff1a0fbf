//! What an error text of a provider means: worth retrying (S247), or a conversation too long for the model (S249, S250).
//!
//! The regular expressions run in linear time, so a hostile error text cannot stall a session. `␣` in a pattern stands
//! for "any single character or none": services write `rate limit`, `rate_limit` and `ratelimit`.

use std::sync::LazyLock;

use regex::bytes::{RegexSet, RegexSetBuilder};

use crate::message::{Message, StopReason};

/// Never worth retrying: the account, not the moment, is the problem.
const FATAL: &[&str] = &[
    "GoUsageLimitError",
    "FreeUsageLimitError",
    "Monthly usage limit reached",
    "available balance",
    "insufficient_quota",
    "out of budget",
    "quota exceeded",
    "billing",
    "subscription_sharing_usage_limit_exceeded",
    "subscription_sharing_workplace_individual_usage_limit_exceeded",
    r#""code"\s*:\s*"?1308(?:[^0-9]|$)"#,
];

const RETRYABLE: &[&str] = &[
    "overloaded",
    "server_busy",
    "servers are currently busy",
    "currently experiencing high demand",
    "model is at capacity",
    "rate␣limit",
    "too many requests",
    "(?:^|[^a-z0-9])(?:429|50[0234]|52[04])(?:[^a-z0-9]|$)",
    "service␣(?:is␣)?(?:temporarily␣)?unavailable",
    "server␣error",
    "internal␣error",
    "provider␣returned␣(?:an␣)?error",
    "exceeded request buffer limit while retrying upstream",
    "unable to forward upstream",
    "upstream␣request␣failed",
    "upstream_stream_read_error",
    "stream was interrupted",
    "http/?2 stream failed",
    "network␣error",
    "connection␣(?:error|refused|lost|closed)",
    "other side closed",
    "fetch failed",
    r"request to [^\r\n]* failed, reason:",
    "getaddrinfo",
    r"\b(?:ECONNRESET|ECONNABORTED|ECONNREFUSED|ETIMEDOUT|EPIPE)\b",
    "connection reset by peer",
    "ENOTFOUND",
    "EAI_AGAIN",
    "upstream␣connect",
    "reset before headers",
    "socket hang up",
    "socket connection was closed",
    "timed out|time ?out",
    "terminated",
    "websocket␣(?:closed|error)",
    "websocket␣connection␣limit␣reached",
    "ended without",
    "stream ended before message_stop",
    "stream ended before a terminal response event",
    "http2 request did not get a response",
    "stream disconnected before completion",
    "cut short after the reply had begun",
    "pending stream has been canceled",
    "retry delay",
    "you can retry your request",
    "try your request again",
    "please retry your request",
    "ResourceExhausted",
    "subscription_sharing_usage_unavailable",
    "subscription_sharing_user_unavailable",
];

const OVERFLOW: &[&str] = &[
    "prompt (?:is )?too long",
    "prompt exceeds max length",
    "request_too_large",
    "input is too long for requested model",
    "exceeds the context window",
    r"exceeds (?:the )?(?:model's )?maximum context length (?:of [\d,]+ tokens?|\([\d,]+\))",
    "context window exceeded",
    r"input token count[^\r\n]*exceeds the maximum",
    r"maximum prompt length is \d+",
    "reduce the length of the messages",
    r"maximum context length is \d+ tokens",
    r"exceeds (?:the )?maximum allowed input length of [\d,]+ tokens?",
    r"input \(\d+ tokens\) is longer than the model's context length \(\d+ tokens\)",
    r"exceeds the limit of \d+",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "exceeded model token limit",
    r"too large for model with \d+ maximum context length",
    r"prompt has [\d,]+ tokens?, but the configured context size is [\d,]+ tokens?",
    "model_context_window_exceeded",
    "range of input length should be",
    "context[_ ]length[_ ]exceeded",
    "too many tokens",
    "token limit exceeded",
    r"^[\w -]+ API error \(413\):",
    r"^413(?:[\s:]|$)",
];

/// A throttled request may speak of tokens without being too long.
const NOT_OVERFLOW: &[&str] = &["^Throttling error:", "^Service unavailable:", "rate limit", "too many requests"];

/// Cerebras refuses a long prompt without saying why.
const CEREBRAS_OVERFLOW: &[&str] = &[r"^4(?:00|13)\s*(?:status code)?\s*\(no body\)"];

struct Patterns(LazyLock<RegexSet>);

impl Patterns {
    fn matches(&self, text: &str) -> bool {
        self.0.is_match(text.as_bytes())
    }
}

macro_rules! patterns {
    ($($name:ident = $list:ident;)*) => {
        $(static $name: Patterns = Patterns(LazyLock::new(|| compile($list)));)*
    };
}

patterns! {
    IS_FATAL = FATAL;
    IS_RETRYABLE = RETRYABLE;
    IS_OVERFLOW = OVERFLOW;
    IS_NOT_OVERFLOW = NOT_OVERFLOW;
    IS_CEREBRAS_OVERFLOW = CEREBRAS_OVERFLOW;
}

fn compile(list: &[&str]) -> RegexSet {
    // One character of UTF-8 that is no line break, or nothing.
    const ANY: &str =
        r"(?:[^\r\n\x80-\xff]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})?";
    let list = list.iter().map(|pattern| pattern.replace('␣', ANY));
    // The patterns are constants and a test compiles every one of them.
    RegexSetBuilder::new(list).case_insensitive(true).unicode(false).build().expect("constant patterns compile")
}

/// Whether a request that failed with this text is worth repeating (S247).
pub fn is_retryable(text: &str) -> bool {
    !IS_FATAL.matches(text) && IS_RETRYABLE.matches(text)
}

/// Whether a failed response is worth repeating: it has an error text, and [`is_retryable`] says so.
pub fn is_retryable_response(message: &Message) -> bool {
    message.stop_reason() == Some(StopReason::Error) && message.get_str("errorMessage").is_some_and(is_retryable)
}

/// Whether `text`, the error of `provider`, says that the request was too long for the model (S249, first form).
pub fn is_overflow_text(text: &str, provider: &str) -> bool {
    !IS_NOT_OVERFLOW.matches(text)
        && (IS_OVERFLOW.matches(text) || (provider == "cerebras" && IS_CEREBRAS_OVERFLOW.matches(text)))
}

/// Whether a response shows that the context was too long for the model (S249). `window` is the model's context
/// window in tokens, `None` or 0 when unknown.
pub fn is_context_overflow(message: &Message, window: Option<u64>) -> bool {
    let prompt = message.usage().map_or(0, |usage| usage.input.saturating_add(usage.cache_read));
    let window = window.filter(|window| *window > 0);
    match (message.stop_reason(), window) {
        (Some(StopReason::Error), _) => message
            .get_str("errorMessage")
            .is_some_and(|text| is_overflow_text(text, message.get_str("provider").unwrap_or_default())),
        (Some(StopReason::Stop), Some(window)) => prompt > window,
        (Some(StopReason::Length), Some(window)) => {
            let output = message.usage().map_or(0, |usage| usage.output);
            output == 0 && u128::from(prompt) * 100 >= u128::from(window) * 99
        }
        _ => false,
    }
}

/// Whether a response stopped short of the model's output limit, so that a compaction may let it finish (S250).
pub fn is_recoverable_length_stop(message: &Message, max_tokens: Option<u64>) -> bool {
    let output = message.usage().map_or(0, |usage| usage.output);
    message.stop_reason() == Some(StopReason::Length) && max_tokens.is_some_and(|limit| output < limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn retryable_texts() {
        for text in
            ["rate_limit_error", "rate‑limit", "ratelimit", "code=503", "HTTP 504.", "http/2 stream failed", "timeout"]
        {
            assert!(is_retryable(text), "{text}");
        }
        for text in ["rate  limit", "error 5030 bytes", "id a503b", "billing problem 503", "XECONNRESETX", ""] {
            assert!(!is_retryable(text), "{text}");
        }
        assert!(!is_retryable(r#"{"code": "1308"} 429"#));
        assert!(is_retryable(r#"{"code":13080} 429"#));
    }

    #[test]
    fn overflow_texts() {
        assert!(is_overflow_text("413 too big", ""));
        assert!(!is_overflow_text("4130", ""));
        assert!(!is_overflow_text("too many tokens, rate limit", ""));
        assert!(!is_overflow_text("400 (no body)", ""));
        assert!(is_overflow_text("400 (no body)", "cerebras"));
        assert!(!IS_FATAL.matches("") && !IS_OVERFLOW.matches("") && !IS_RETRYABLE.matches(""));
    }

    #[test]
    fn overflow_by_usage() {
        let message = |stop: &str, input: u64, cached: u64, output: u64| {
            Message::from_value(json!({"role": "assistant", "stopReason": stop,
                "usage": {"input": input, "cacheRead": cached, "output": output}}))
            .unwrap()
        };
        assert!(is_context_overflow(&message("stop", 60, 41, 5), Some(100)));
        assert!(!is_context_overflow(&message("stop", 60, 40, 5), Some(100)));
        assert!(!is_context_overflow(&message("stop", 60, 41, 5), None));
        assert!(is_context_overflow(&message("length", 99, 0, 0), Some(100)));
        assert!(!is_context_overflow(&message("length", 99, 0, 1), Some(100)));
        assert!(is_recoverable_length_stop(&message("length", 1, 0, 9), Some(10)));
        assert!(!is_recoverable_length_stop(&message("length", 1, 0, 10), Some(10)));
        assert!(!is_recoverable_length_stop(&message("length", 1, 0, 0), Some(0)));
    }

    #[test]
    fn long_texts_take_linear_time() {
        let text = "request to ".repeat(100_000);
        assert!(!is_retryable(&text));
    }
}
