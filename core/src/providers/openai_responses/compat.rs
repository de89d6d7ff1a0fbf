//! How a service of the Responses family differs from the original (P8).

use crate::providers::Model;
use crate::providers::openai_shared::{CacheKeyMode, SessionHeaders, host_matches};

/// Everything a request depends on.
#[derive(Debug, Clone)]
pub(super) struct ResponsesCompat {
    pub(super) developer_role: bool,
    pub(super) system_in_place: bool,
    pub(super) cache_key: CacheKeyMode,
    pub(super) long_cache: bool,
    pub(super) explicit_cache_mode: bool,
    pub(super) strict: bool,
    pub(super) grammar_tools: bool,
    pub(super) max_output_tokens: bool,
    /// The headers that name the session.
    pub(super) session_headers: SessionHeaders,
    /// The credential is a person's sign-in and no key (P407).
    pub(super) signed_in: bool,
}

impl ResponsesCompat {
    /// `key` is the credential of the request.
    pub(super) fn of(model: &Model, key: Option<&str>) -> ResponsesCompat {
        let flags = &model.compat;
        let official = model.provider == "openai" && host_matches(&model.base_url, "api.openai.com");
        let openrouter = model.provider == "openrouter" || host_matches(&model.base_url, "openrouter.ai");
        let usual = if openrouter { SessionHeaders::Routed } else { SessionHeaders::Usual };
        ResponsesCompat {
            developer_role: flags.is("supportsDeveloperRole", true),
            system_in_place: flags.is("supportsMidConvoSystemMessages", false),
            cache_key: CacheKeyMode::parse(flags.text("promptCacheKeyMode")),
            long_cache: flags.is("supportsLongCacheRetention", true),
            explicit_cache_mode: flags.is("supportsExplicitPromptCacheMode", false),
            strict: flags.is("supportsStrictMode", false),
            grammar_tools: flags.is("supportsOpenAIGrammarTools", false),
            max_output_tokens: flags.is("supportsMaxOutputTokens", true),
            session_headers: SessionHeaders::parse(flags.text("sessionAffinityFormat")).unwrap_or(usual),
            signed_in: official && key.is_some_and(|key| !key.starts_with("sk-")),
        }
    }
}
