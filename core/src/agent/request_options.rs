//! What a session's settings say about its requests (P801).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::providers::{CacheRetention, RequestOptions};
use crate::resources::settings::Settings;
use crate::session::Actor;

impl Actor {
    /// Options of the next request.
    pub(super) fn request_options(&self) -> Arc<RequestOptions> {
        let environment = self.engine.options.keys.environment;
        let variable = environment.then(|| std::env::var("PI_CACHE_RETENTION").ok()).flatten();
        Arc::new(RequestOptions {
            cache_retention: cache_retention(variable.as_deref()),
            ..from_settings(self.settings())
        })
    }
}

fn from_settings(settings: &Settings) -> RequestOptions {
    let max_delay = settings.provider_max_retry_delay();
    let mut options = RequestOptions {
        max_retries: u32::try_from(settings.provider_max_retries()).unwrap_or(u32::MAX),
        max_retry_delay: (!max_delay.is_zero()).then_some(max_delay),
        timeout: settings.provider_timeout(),
        idle_timeout: settings.values().get("httpIdleTimeoutMs").and_then(idle),
        ..RequestOptions::default()
    };
    let budgets = settings.values().get("thinkingBudgets").and_then(Value::as_object);
    let budgets = budgets.into_iter().flatten();
    options.thinking_budgets = budgets.filter_map(|(level, tokens)| Some((level.clone(), tokens.as_u64()?))).collect();
    options
}

/// `PI_CACHE_RETENTION`, if the host lets the environment count: `long`, or the usual time (P40).
fn cache_retention(variable: Option<&str>) -> CacheRetention {
    if variable == Some("long") { CacheRetention::Long } else { CacheRetention::Short }
}

/// `httpIdleTimeoutMs`: a number of milliseconds; 0 and `"disabled"` for no limit. Anything else says nothing.
fn idle(value: &Value) -> Option<Option<Duration>> {
    match value {
        Value::String(word) if word == "disabled" => Some(None),
        value => value.as_u64().map(|ms| (ms > 0).then(|| Duration::from_millis(ms))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn p801_settings_of_requests() {
        let settings = |value: Value| from_settings(&Settings::from_values(value.as_object().cloned().unwrap()));
        let usual = settings(json!({}));
        assert_eq!((usual.max_retries, usual.idle_timeout), (0, None));
        assert_eq!(usual.max_retry_delay, Some(Duration::from_secs(60)));
        assert_eq!(usual.timeout, None);
        assert_eq!(settings(json!({"retry": {"provider": {"timeoutMs": 9}}})).timeout, Some(Duration::from_millis(9)));
        let words = [None, Some(""), Some("short"), Some("long")].map(cache_retention);
        assert_eq!(words, [CacheRetention::Short, CacheRetention::Short, CacheRetention::Short, CacheRetention::Long]);
        let other = settings(json!({"retry": {"provider": {"maxRetries": 2, "maxRetryDelayMs": 0}},
            "httpIdleTimeoutMs": "disabled", "thinkingBudgets": {"low": 7, "high": "x"}}));
        assert_eq!((other.max_retries, other.max_retry_delay, other.idle_timeout), (2, None, Some(None)));
        assert_eq!(other.thinking_budgets.into_iter().collect::<Vec<_>>(), [("low".to_owned(), 7)]);
        assert_eq!(settings(json!({"httpIdleTimeoutMs": 5})).idle_timeout, Some(Some(Duration::from_millis(5))));
    }
}
