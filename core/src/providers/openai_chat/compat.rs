//! How a service of the chat-completions family differs from the original (P8, P301).
//!
//! What a model's own flags do not say follows from its provider's name and address.

use serde_json::Value;

use crate::message::JsonObject;
use crate::providers::Model;
use crate::providers::billing::bills;
use crate::providers::openai_shared::{CacheKeyMode, SessionHeaders, host_matches};

/// The way a service is told how much to think (P310).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingFormat {
    /// `reasoning_effort`.
    OpenAi,
    /// `thinking {type, clear_thinking}` and an effort.
    Zai,
    /// `enable_thinking` and an effort.
    Qwen,
    /// `chat_template_kwargs {enable_thinking, preserve_thinking}`.
    QwenTemplate,
    /// `chat_template_kwargs` as configured (P311).
    Template,
    /// `chat_template_args` as configured (P311).
    TemplateArgs,
    /// `thinking {type}` and an effort.
    DeepSeek,
    /// `reasoning {effort}`.
    OpenRouter,
    /// `reasoning {enabled}` and an effort.
    Together,
    /// `thinking` is the word itself.
    Word,
    /// `reasoning {effort}` for levels with a word.
    AntLing,
}

impl ThinkingFormat {
    fn parse(text: &str) -> Option<ThinkingFormat> {
        Some(match text {
            "openai" => ThinkingFormat::OpenAi,
            "zai" => ThinkingFormat::Zai,
            "qwen" => ThinkingFormat::Qwen,
            "qwen-chat-template" => ThinkingFormat::QwenTemplate,
            "chat-template" => ThinkingFormat::Template,
            "baseten" => ThinkingFormat::TemplateArgs,
            "deepseek" => ThinkingFormat::DeepSeek,
            "openrouter" => ThinkingFormat::OpenRouter,
            "together" => ThinkingFormat::Together,
            "string-thinking" => ThinkingFormat::Word,
            "ant-ling" => ThinkingFormat::AntLing,
            _ => return None,
        })
    }
}

/// Everything a request or a stream depends on.
#[derive(Debug, Clone)]
pub(super) struct ChatCompat {
    pub(super) store: bool,
    pub(super) developer_role: bool,
    pub(super) reasoning_effort: bool,
    pub(super) usage_in_streaming: bool,
    pub(super) finish_reason: bool,
    pub(super) max_tokens_field: &'static str,
    pub(super) tool_result_name: bool,
    pub(super) assistant_after_tool_result: bool,
    pub(super) content_never_null: bool,
    pub(super) tools_with_history: bool,
    pub(super) thinking_as_text: bool,
    pub(super) reasoning_content: bool,
    pub(super) thinking_format: ThinkingFormat,
    pub(super) template_values: JsonObject,
    pub(super) router: Option<Value>,
    pub(super) gateway: Option<JsonObject>,
    pub(super) tool_stream: bool,
    pub(super) budget_field: Option<String>,
    pub(super) grammar_tools: bool,
    pub(super) system_in_place: bool,
    /// Tools that are added later are declared where they are added.
    pub(super) tool_additions: bool,
    pub(super) strict: bool,
    pub(super) cache_marks: bool,
    pub(super) long_cache: bool,
    pub(super) cache_key: CacheKeyMode,
    /// The headers that name the session; `None` when it is not told.
    pub(super) session_headers: Option<SessionHeaders>,
    pub(super) vllm_priority: Option<Value>,
    /// The service bills what it reports (P62).
    pub(super) bills: bool,
}

impl ChatCompat {
    pub(super) fn of(model: &Model) -> ChatCompat {
        let service = Service { provider: &model.provider, url: &model.base_url };
        let flags = &model.compat;
        let openrouter = service.is("openrouter", &["openrouter.ai"]);
        let deepseek = service.is("deepseek", &["api.deepseek.com", "deepseek.com"]);
        let zai = service.is("zai", &["api.z.ai", "open.bigmodel.cn"]) || service.is("zai-coding-cn", &[]);
        let together = service.is("together", &["api.together.ai", "api.together.xyz"]);
        let moonshot = service.is("moonshotai", &["api.moonshot."]) || service.is("moonshotai-cn", &[]);
        let gateway = service.is("cloudflare-ai-gateway", &["gateway.ai.cloudflare.com"]);
        let cloudflare = gateway || service.is("cloudflare-workers-ai", &["api.cloudflare.com"]);
        let nvidia = service.is("nvidia", &["integrate.api.nvidia.com"]);
        let ant_ling = service.is("ant-ling", &["api.ant-ling.com"]);
        let cerebras = service.is("cerebras", &["cerebras.ai"]);
        let xai = service.is("xai", &["api.x.ai"]);
        let chutes = service.is("chutes", &["chutes.ai"]);
        let opencode = service.is("opencode", &["opencode.ai"]) || service.is("opencode-go", &[]);
        let no_store =
            [nvidia, cerebras, xai, together, chutes, deepseek, zai, moonshot, opencode, cloudflare, ant_ling];
        let old_limit = [chutes, deepseek, moonshot, gateway, together, nvidia, ant_ling, zai];
        let no_effort = [xai, zai, moonshot, together, gateway, nvidia, ant_ling];
        let any = |list: &[bool]| list.contains(&true);
        let thinking_format = match () {
            () if deepseek => ThinkingFormat::DeepSeek,
            () if zai => ThinkingFormat::Zai,
            () if together => ThinkingFormat::Together,
            () if ant_ling => ThinkingFormat::AntLing,
            () if openrouter => ThinkingFormat::OpenRouter,
            () => ThinkingFormat::OpenAi,
        };
        let thinking_format = flags.text("thinkingFormat").and_then(ThinkingFormat::parse).unwrap_or(thinking_format);
        let object = |key: &str| flags.get(key).and_then(Value::as_object).filter(|object| !object.is_empty()).cloned();
        let after_result = flags.is("requiresAssistantAfterToolResult", false);
        let marks = match flags.text("cacheControlFormat") {
            Some(format) => format == "anthropic",
            None => openrouter && model.id.starts_with("anthropic/"),
        };
        let template_key = match thinking_format {
            ThinkingFormat::TemplateArgs => "chatTemplateArgs",
            _ => "chatTemplateKwargs",
        };
        ChatCompat {
            store: flags.is("supportsStore", !any(&no_store)),
            developer_role: flags.is("supportsDeveloperRole", service.is("openai", &["api.openai.com"])),
            reasoning_effort: flags.is("supportsReasoningEffort", !any(&no_effort)),
            usage_in_streaming: flags.is("supportsUsageInStreaming", true),
            finish_reason: flags.is("supportsFinishReason", true),
            max_tokens_field: match flags.text("maxTokensField") {
                Some("max_tokens") => "max_tokens",
                Some("max_completion_tokens") => "max_completion_tokens",
                _ if any(&old_limit) => "max_tokens",
                _ => "max_completion_tokens",
            },
            tool_result_name: flags.is("requiresToolResultName", false),
            assistant_after_tool_result: after_result,
            content_never_null: after_result || flags.is("requiresNonNullAssistantContent", false),
            tools_with_history: flags.is("requiresToolsWithToolHistory", false),
            thinking_as_text: flags.is("requiresThinkingAsText", false),
            reasoning_content: flags.is("requiresReasoningContentOnAssistantMessages", deepseek),
            thinking_format,
            template_values: object(template_key)
                .or_else(|| object("chatTemplateKwargs"))
                .or_else(|| object("chatTemplateArgs"))
                .unwrap_or_default(),
            router: flags.get("openRouterRouting").filter(|routing| routing.is_object()).cloned(),
            gateway: object("vercelGatewayRouting"),
            tool_stream: flags.is("zaiToolStream", false),
            budget_field: match flags.text("thinkingTokenBudgetField") {
                Some(field) => Some(field.to_owned()),
                // The name in vLLM.
                None => flags.is("supportsThinkingTokenBudget", false).then(|| "thinking_token_budget".to_owned()),
            },
            grammar_tools: flags.is("supportsOpenAIGrammarTools", false),
            system_in_place: flags.is("supportsMidConvoSystemMessages", false),
            tool_additions: flags.is("supportsMidConvoSystemMessages", false)
                && flags.is("supportsMidConvoToolAdditions", false),
            strict: flags.is("supportsStrictMode", false),
            cache_marks: marks,
            long_cache: flags.is("supportsLongCacheRetention", !any(&[together, cloudflare, nvidia, ant_ling])),
            cache_key: CacheKeyMode::parse(flags.text("promptCacheKeyMode")),
            session_headers: flags.is("sendSessionAffinityHeaders", openrouter).then(|| {
                let usual = if openrouter { SessionHeaders::Routed } else { SessionHeaders::Usual };
                SessionHeaders::parse(flags.text("sessionAffinityFormat")).unwrap_or(usual)
            }),
            vllm_priority: flags.get("vllmPriority").filter(|priority| priority.is_number()).cloned(),
            bills: bills(model),
        }
    }
}

/// Which service a model is from.
struct Service<'a> {
    provider: &'a str,
    url: &'a str,
}

impl Service<'_> {
    fn is(&self, provider: &str, hosts: &[&str]) -> bool {
        self.provider == provider || hosts.iter().any(|host| host_matches(self.url, host))
    }
}
