//! How a service of the Responses family differs from the original (P8).

use crate::providers::Model;
use crate::providers::openai_shared::{CacheKeyMode, SessionHeaders, host_matches};
use crate::providers::tool_changes::InPlace;

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
    /// Changes of tools that are told where they happen (P409).
    pub(super) tool_changes: InPlace,
    /// The level is told where it changes (P409).
    pub(super) effort_in_place: bool,
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
        let system_in_place = flags.is("supportsMidConvoSystemMessages", false);
        let signed_in = official && key.is_some_and(|key| !key.starts_with("sk-"));
        ResponsesCompat {
            developer_role: flags.is("supportsDeveloperRole", true),
            system_in_place,
            cache_key: CacheKeyMode::parse(flags.text("promptCacheKeyMode")),
            long_cache: flags.is("supportsLongCacheRetention", true),
            explicit_cache_mode: flags.is("supportsExplicitPromptCacheMode", false),
            strict: flags.is("supportsStrictMode", false),
            grammar_tools: flags.is("supportsOpenAIGrammarTools", false),
            max_output_tokens: flags.is("supportsMaxOutputTokens", true),
            session_headers: SessionHeaders::parse(flags.text("sessionAffinityFormat")).unwrap_or(usual),
            tool_changes: match () {
                () if !system_in_place => InPlace::Nothing,
                () if flags.is("supportsAdditionalTools", false) => InPlace::Changes,
                () if flags.is("supportsToolSearch", false) => InPlace::Additions,
                () => InPlace::Nothing,
            },
            // The service of a sign-in refuses it.
            effort_in_place: flags.is("supportsMidConvoEffort", false) && !signed_in,
            signed_in,
        }
    }
}
