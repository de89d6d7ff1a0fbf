//! Services that are known by name: where they are, and which variables hold their keys (P33).

/// A service that speaks one of our protocols.
pub(super) struct Service {
    /// The provider's name.
    pub(super) name: &'static str,
    /// The variables that hold its key, the one that counts first.
    pub(super) variables: &'static [&'static str],
    /// Its usual protocol and address, for models that name none. The key of a variable goes there only.
    pub(super) usual: Option<(&'static str, &'static str)>,
}

const CHAT: &str = "openai-completions";

macro_rules! services {
    ($($name:literal $variables:expr, $usual:expr;)*) => {
        &[$(Service { name: $name, variables: &$variables, usual: $usual },)*]
    };
}

/// The services. Those with built-in models need no address here.
const SERVICES: &[Service] = services! {
    "anthropic" ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"], None;
    "openai" ["OPENAI_API_KEY"], None;
    "google" ["GEMINI_API_KEY"], None;
    "deepseek" ["DEEPSEEK_API_KEY"], None;
    "groq" ["GROQ_API_KEY"], None;
    "xai" ["XAI_API_KEY"], None;
    "moonshotai" ["MOONSHOT_API_KEY"], None;
    "moonshotai-cn" ["MOONSHOT_API_KEY"], Some((CHAT, "https://api.moonshot.cn/v1"));
    "zai" ["ZAI_API_KEY"], None;
    "zai-coding-cn" ["ZAI_CODING_CN_API_KEY"], Some((CHAT, "https://open.bigmodel.cn/api/coding/paas/v4"));
    "cerebras" ["CEREBRAS_API_KEY"], None;
    "openrouter" ["OPENROUTER_API_KEY"], Some((CHAT, "https://openrouter.ai/api/v1"));
    "together" ["TOGETHER_API_KEY"], Some((CHAT, "https://api.together.xyz/v1"));
    "fireworks" ["FIREWORKS_API_KEY"], Some((CHAT, "https://api.fireworks.ai/inference/v1"));
    "huggingface" ["HF_TOKEN"], Some((CHAT, "https://router.huggingface.co/v1"));
    "nvidia" ["NVIDIA_API_KEY"], Some((CHAT, "https://integrate.api.nvidia.com/v1"));
    "baseten" ["BASETEN_API_KEY"], Some((CHAT, "https://inference.baseten.co/v1"));
    "vercel-ai-gateway" ["AI_GATEWAY_API_KEY"], Some((CHAT, "https://ai-gateway.vercel.sh/v1"));
    "minimax" ["MINIMAX_API_KEY"], Some((CHAT, "https://api.minimax.io/v1"));
    "minimax-cn" ["MINIMAX_CN_API_KEY"], Some((CHAT, "https://api.minimaxi.com/v1"));
    "cloudflare-workers-ai" ["CLOUDFLARE_API_KEY"],
        Some((CHAT, "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1"));
    "cloudflare-ai-gateway" ["CLOUDFLARE_API_KEY"], Some((CHAT,
        "https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/compat"));
    "ant-ling" ["ANT_LING_API_KEY"], None;
    "kimi-coding" ["KIMI_API_KEY"], None;
    "meta" ["META_API_KEY"], None;
    "opencode" ["OPENCODE_API_KEY"], None;
    "opencode-go" ["OPENCODE_API_KEY"], None;
    "typesafe" ["TYPESAFE_API_KEY"], None;
    "radius" ["RADIUS_API_KEY"], None;
    "qwen-token-plan" ["QWEN_TOKEN_PLAN_TEAM_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"], None;
    "qwen-token-plan-cn" ["QWEN_TOKEN_PLAN_TEAM_CN_API_KEY", "QWEN_TOKEN_PLAN_CN_API_KEY"], None;
    "qwen-token-plan-individual"
        ["QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"], None;
    "qwen-token-plan-individual-cn"
        ["QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY", "QWEN_TOKEN_PLAN_CN_API_KEY"], None;
    "xiaomi" ["XIAOMI_API_KEY"], None;
    "xiaomi-token-plan-cn" ["XIAOMI_TOKEN_PLAN_CN_API_KEY"], None;
    "xiaomi-token-plan-ams" ["XIAOMI_TOKEN_PLAN_AMS_API_KEY"], None;
    "xiaomi-token-plan-sgp" ["XIAOMI_TOKEN_PLAN_SGP_API_KEY"], None;
};

/// Providers of pi whose protocols are not spoken here, and what to do instead.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("amazon-bedrock", "Amazon Bedrock"),
    ("google-vertex", "Vertex AI"),
    ("azure-openai-responses", "Azure OpenAI"),
    ("openai-codex", "the Codex backend"),
    ("mistral", "the Mistral protocol"),
    ("github-copilot", "GitHub Copilot"),
];

/// A service by name.
pub(super) fn service(provider: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == provider)
}

/// What a provider is whose protocol is not spoken here.
pub(super) fn unsupported(provider: &str) -> Option<&'static str> {
    UNSUPPORTED.iter().find(|(name, _)| *name == provider).map(|(_, what)| *what)
}
