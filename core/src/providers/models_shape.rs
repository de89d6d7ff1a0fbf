//! The shape of `models.json` (P20–P22) as a table, and the walk that finds what does not fit.
//!
//! A key that no table names may hold anything.

use std::fmt::Write;

use serde_json::Value;

use Shape::{Above, Any, Choice, Filled, Flag, List, Map, Null, Number, Object, Ours, Text, Whole, Word};

/// What may stand in a place.
#[derive(Clone, Copy)]
enum Shape {
    Any,
    Null,
    Flag,
    Text,
    /// A text that is not empty.
    Filled,
    /// One of these texts.
    Word(&'static [&'static str]),
    Number,
    /// A number greater than 0.
    Above,
    /// A whole number from 1 to this one.
    Whole(f64),
    /// The first in a file, as pi has it; the second where the host speaks, who may use what only we understand.
    Ours(&'static Shape, &'static Shape),
    /// So many at the most, each of this shape.
    List(&'static Shape, usize),
    /// Any keys, each with this shape.
    Map(&'static Shape),
    /// Keys that must be there, and groups of known ones.
    Object(&'static [&'static str], &'static [Fields]),
    /// One of these.
    Choice(&'static [Shape]),
}

type Fields = &'static [(&'static str, Shape)];

const ANYTHING: Shape = Map(&Any);
const TEXTS: Shape = List(&Text, usize::MAX);
const COUNT: Shape = Whole(f64::INFINITY);
const WORD_OR_NULL: Shape = Choice(&[Text, Null]);
const PRICE: Shape = Choice(&[Number, Text]);
const SPEED: Shape =
    Choice(&[Number, Object(&[], &[&[("p50", Number), ("p75", Number), ("p90", Number), ("p99", Number)]])]);
/// `null` removes a header (P24).
const HEADERS: Shape = Map(&Ours(&Text, &WORD_OR_NULL));

const RATES: Fields = &[("input", Number), ("output", Number), ("cacheRead", Number), ("cacheWrite", Number)];
const TIER: Shape = Object(
    &["inputTokensAbove", "input", "output", "cacheRead", "cacheWrite"],
    &[&[("inputTokensAbove", Number)], RATES],
);
const TIERS: Fields = &[("tiers", List(&TIER, usize::MAX))];
const SINGLE_RATES: Shape = Object(&[], &[RATES, TIERS]);
const COST: Shape = Object(&["input", "output", "cacheRead", "cacheWrite"], &[RATES, TIERS]);

const TEMPLATE_VALUE: Shape = Choice(&[
    Text,
    Number,
    Flag,
    Null,
    Object(
        &["$var"],
        &[&[("$var", Word(&["thinking.enabled", "thinking.effort", "thinking.budget"])), ("omitWhenOff", Flag)]],
    ),
]);

const OPENROUTER: Fields = &[
    ("allow_fallbacks", Flag),
    ("require_parameters", Flag),
    ("data_collection", Word(&["deny", "allow"])),
    ("zdr", Flag),
    ("enforce_distillable_text", Flag),
    ("order", TEXTS),
    ("only", TEXTS),
    ("ignore", TEXTS),
    ("quantizations", TEXTS),
    ("sort", Choice(&[Text, Object(&[], &[&[("by", Text), ("partition", WORD_OR_NULL)]])])),
    (
        "max_price",
        Object(
            &[],
            &[&[("prompt", PRICE), ("completion", PRICE), ("image", PRICE), ("audio", PRICE), ("request", PRICE)]],
        ),
    ),
    ("preferred_min_throughput", SPEED),
    ("preferred_max_latency", SPEED),
];

const FALLBACK_FIELDS: Fields = &[("provider", Filled), ("model", Filled), ("cost", COST)];
/// Without a price it has those of the catalogue (P224).
const FALLBACK: Shape = Ours(
    &Object(&["provider", "model", "cost"], &[FALLBACK_FIELDS]),
    &Choice(&[Filled, Object(&["model"], &[FALLBACK_FIELDS])]),
);

/// P8, the flags of all protocols together.
const COMPAT: Fields = &[
    ("supportsStore", Flag),
    ("supportsDeveloperRole", Flag),
    ("supportsReasoningEffort", Flag),
    ("supportsUsageInStreaming", Flag),
    ("supportsFinishReason", Flag),
    ("maxTokensField", Word(&["max_completion_tokens", "max_tokens"])),
    ("requiresToolResultName", Flag),
    ("requiresAssistantAfterToolResult", Flag),
    ("requiresNonNullAssistantContent", Flag),
    ("requiresToolsWithToolHistory", Flag),
    ("requiresThinkingAsText", Flag),
    ("requiresReasoningContentOnAssistantMessages", Flag),
    (
        "thinkingFormat",
        Word(&[
            "openai",
            "openrouter",
            "deepseek",
            "together",
            "baseten",
            "zai",
            "qwen",
            "chat-template",
            "qwen-chat-template",
            "string-thinking",
            "ant-ling",
        ]),
    ),
    ("chatTemplateKwargs", Map(&TEMPLATE_VALUE)),
    ("chatTemplateArgs", Map(&TEMPLATE_VALUE)),
    ("openRouterRouting", Object(&[], &[OPENROUTER])),
    ("vercelGatewayRouting", Object(&[], &[&[("only", TEXTS), ("order", TEXTS)]])),
    ("zaiToolStream", Flag),
    ("thinkingTokenBudgetField", Word(&["thinking_token_budget", "thinking_budget", "thinking_budget_tokens"])),
    ("supportsThinkingTokenBudget", Flag),
    ("supportsOpenAIGrammarTools", Flag),
    ("supportsMidConvoSystemMessages", Flag),
    ("supportsMidConvoToolAdditions", Flag),
    ("supportsStrictMode", Flag),
    ("cacheControlFormat", Word(&["anthropic"])),
    ("sendSessionAffinityHeaders", Flag),
    ("sessionAffinityFormat", Word(&["openai", "openai-nosession", "openrouter"])),
    ("promptCacheKeyMode", Word(&["auto", "enabled", "disabled"])),
    ("supportsLongCacheRetention", Flag),
    ("vllmPriority", Number),
    ("supportsAdditionalTools", Flag),
    ("supportsToolSearch", Flag),
    ("supportsExplicitPromptCacheMode", Flag),
    ("supportsMidConvoEffort", Flag),
    ("supportsMaxOutputTokens", Flag),
    ("supportsEagerToolInputStreaming", Flag),
    ("supportsCacheControlOnTools", Flag),
    ("supportsTemperature", Flag),
    ("forceAdaptiveThinking", Flag),
    ("allowEmptySignature", Flag),
    ("supportsStrictTools", Flag),
    ("supportsMidConvoToolChanges", Flag),
    ("supportsMessageThreads", Flag),
    ("allowedFallbackModels", List(&FALLBACK, 3)),
    ("imageInput", Word(&["assets", "images", "state-image-urls"])),
    ("sendImageOptInHeader", Flag),
];

/// One entry for each thinking level (P3).
macro_rules! by_level {
    ($shape:expr) => {
        Object(
            &[],
            &[&[
                ("off", $shape),
                ("minimal", $shape),
                ("low", $shape),
                ("medium", $shape),
                ("high", $shape),
                ("xhigh", $shape),
                ("max", $shape),
            ]],
        )
    };
}

const RESIZE: Fields = &[("maxWidth", COUNT), ("maxHeight", COUNT), ("maxBytes", COUNT), ("jpegQuality", Whole(100.0))];
const IMAGES: Fields = &[("resize", Object(&[], &[RESIZE])), ("maxPerMessage", COUNT), ("maxPerRequest", COUNT)];
const INPUT_LIMITS: Fields = &[("maxRequestBytes", COUNT), ("images", Object(&[], &[IMAGES]))];

/// What entries of `models` and of `modelOverrides` have in common, before and after `cost`.
const ABILITIES: Fields = &[
    ("reasoning", Flag),
    ("thinkingLevelMap", by_level!(WORD_OR_NULL)),
    ("input", List(&Word(&["text", "image"]), usize::MAX)),
    ("inputLimits", Object(&[], &[INPUT_LIMITS])),
];
const NUMBERS: Fields = &[
    ("promptCache", Object(&[], &[&[("short", Above), ("long", Above)]])),
    ("contextWindow", Above),
    ("maxTokens", Above),
    ("samplingParams", ANYTHING),
    ("samplingParamsByThinkingLevel", by_level!(ANYTHING)),
    ("headers", HEADERS),
    ("compat", Object(&[], &[COMPAT])),
];

const MODEL: Shape = Object(
    &["id"],
    &[
        &[("id", Filled), ("name", Filled), ("api", Filled), ("baseUrl", Filled)],
        ABILITIES,
        &[("cost", Ours(&COST, &SINGLE_RATES))],
        NUMBERS,
    ],
);
/// Single prices may be changed; `api` and `baseUrl` are no fields of it and do not count.
const OVERRIDE: Shape = Object(&[], &[&[("name", Filled)], ABILITIES, &[("cost", SINGLE_RATES)], NUMBERS]);

const PROVIDER: Shape = Object(
    &[],
    &[&[
        ("name", Filled),
        ("baseUrl", Filled),
        ("apiKey", Filled),
        ("api", Filled),
        ("oauth", Word(&["radius"])),
        ("headers", HEADERS),
        ("compat", Object(&[], &[COMPAT])),
        ("authHeader", Flag),
        ("models", List(&MODEL, usize::MAX)),
        ("modelOverrides", Map(&OVERRIDE)),
    ]],
);

const FILE: Shape = Object(&["providers"], &[&[("$schema", Text), ("providers", Map(&PROVIDER))]]);

/// The places of a configuration that do not fit and what they must be, in the order of the table: `providers.p.models.0.id
/// must be …`. `host` says that it is no file, but the host's.
pub(super) fn faults(file: &Value, host: bool) -> Vec<String> {
    let mut walk = Walk { path: String::new(), host, faults: Vec::new() };
    walk.check(file, &FILE);
    walk.faults
}

struct Walk {
    /// The place, keys joined by dots.
    path: String,
    host: bool,
    faults: Vec<String>,
}

impl Walk {
    fn check(&mut self, value: &Value, shape: &Shape) {
        if !self.fits(value, shape) {
            return self.fault(&format!("must be {}", self.what(shape)));
        }
        match (value, self.meant(shape)) {
            (Value::Array(list), List(shape, most)) => {
                for (at, item) in list.iter().enumerate() {
                    self.within(&at.to_string(), item, shape);
                }
                if list.len() > *most {
                    self.fault(&format!("must be a list of {most} at the most"));
                }
            }
            (Value::Object(map), Map(shape)) => {
                for (key, value) in map {
                    self.within(key, value, shape);
                }
            }
            (Value::Object(object), Object(needed, groups)) => {
                if let Some(missing) = needed.iter().find(|key| !object.contains_key(**key)) {
                    self.enter(missing, |walk| walk.fault("must be there"));
                }
                for (key, shape) in groups.iter().copied().flatten() {
                    if let Some(value) = object.get(*key) {
                        self.within(key, value, shape);
                    }
                }
            }
            (Value::Object(_), Choice(shapes)) => {
                // At the most one of them is for objects. If something in it does not fit, none of the choices does.
                let before = self.faults.len();
                for shape in *shapes {
                    if self.fits(value, shape) {
                        self.check(value, shape);
                    }
                }
                if self.faults.len() > before {
                    let fault = format!("{} must be {}", self.place(), self.what(shape));
                    self.faults.insert(before, fault);
                }
            }
            _ => {}
        }
    }

    /// The shape that holds here.
    fn meant<'s>(&self, shape: &'s Shape) -> &'s Shape {
        match shape {
            Ours(_, host) if self.host => host,
            Ours(file, _) => file,
            shape => shape,
        }
    }

    /// Whether a value is of the right kind, whatever is in it.
    fn fits(&self, value: &Value, shape: &Shape) -> bool {
        let number = |ok: fn(f64) -> bool| value.as_f64().is_some_and(ok);
        match shape {
            Any => true,
            Null => value.is_null(),
            Flag => value.is_boolean(),
            Text => value.is_string(),
            Filled => value.as_str().is_some_and(|text| !text.is_empty()),
            Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Number => value.is_number(),
            Above => number(|number| number > 0.0),
            Whole(most) => number(|number| number >= 1.0 && number.fract() == 0.0) && value.as_f64() <= Some(*most),
            Ours(..) => self.fits(value, self.meant(shape)),
            List(..) => value.is_array(),
            Map(_) | Object(..) => value.is_object(),
            Choice(shapes) => shapes.iter().any(|shape| self.fits(value, shape)),
        }
    }

    fn what(&self, shape: &Shape) -> String {
        let words = match shape {
            Any => "anything",
            Null => "null",
            Flag => "true or false",
            Text => "a text",
            Filled => "a text that is not empty",
            Number => "a number",
            Above => "a number above 0",
            Whole(most) if most.is_finite() => return format!("a whole number from 1 to {most}"),
            Whole(_) => "a whole number above 0",
            Ours(..) => return self.what(self.meant(shape)),
            List(..) => "a list",
            Map(_) | Object(..) => "an object",
            Word(words) => {
                return words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or ");
            }
            Choice(shapes) => return shapes.iter().map(|shape| self.what(shape)).collect::<Vec<_>>().join(" or "),
        };
        words.to_owned()
    }

    fn within(&mut self, key: &str, value: &Value, shape: &Shape) {
        self.enter(key, |walk| walk.check(value, shape));
    }

    fn enter(&mut self, key: &str, work: impl FnOnce(&mut Walk)) {
        let length = self.path.len();
        let dot = if length == 0 { "" } else { "." };
        let _ = write!(self.path, "{dot}{key}");
        work(self);
        self.path.truncate(length);
    }

    fn place(&self) -> &str {
        if self.path.is_empty() { "the file" } else { &self.path }
    }

    fn fault(&mut self, what: &str) {
        self.faults.push(format!("{} {what}", self.place()));
    }
}
