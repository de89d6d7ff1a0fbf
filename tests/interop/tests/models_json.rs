//! Generated `models.json` files: branchline and the real pi make the same of them. Skipped, with one line, when pi cannot be
//! installed because the package registry is out of reach.
//!
//! Left out: `"oauth": "radius"`, which we refuse. A `/` in a key is a dot in the places pi names, and itself in ours.

use std::path::Path;

use branchline::providers::{CatalogueOptions, KeyOptions, Model, ModelProblem};
use branchline::{Engine, EngineOptions};
use branchline_interop::Peer;
use branchline_interop::generated::{Dice, ask, same};
use serde_json::{Value, json};

fn pi() -> Option<Peer> {
    Peer::start_script("resources.mjs")
}

/// P20–P25: files that are right.
#[test]
fn models_of_configuration() {
    let Some(mut peer) = pi() else { return };
    let mut dice = Dice(7);
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("models.json");
    let mut seen = 0;
    for _ in 0..250 {
        let mut providers = serde_json::Map::new();
        for name in ["p", "q"] {
            let mut provider = serde_json::Map::new();
            let mut may = |dice: &mut Dice, key: &str, value: Value, sides: usize| {
                if dice.roll(sides) == 0 {
                    provider.insert(key.to_owned(), value);
                }
            };
            may(&mut dice, "baseUrl", json!("https://p.example/v1"), 2);
            may(&mut dice, "api", json!("openai-completions"), 2);
            may(&mut dice, "apiKey", json!("k"), 3);
            let models: Vec<Value> = (0..dice.roll(4)).map(|_| model(&mut dice)).collect();
            may(&mut dice, "models", json!(models), 1);
            let mut changes = model(&mut dice);
            changes.as_object_mut().expect("an object").remove("id");
            may(&mut dice, "modelOverrides", json!({"m": changes}), 3);
            providers.insert(name.to_owned(), Value::Object(provider));
        }
        seen += same_configuration(&mut peer, &file, json!({"providers": providers}).to_string().as_bytes());
    }
    assert!(seen > 100, "{seen}");
}

/// P20–P22: files with something wrong somewhere. Both refuse the same ones, and name the same places.
#[test]
fn faults_of_configuration() {
    let Some(mut peer) = pi() else { return };
    let mut dice = Dice(11);
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("models.json");
    let entry = r#"{"baseUrl": "https://x", "api": "a", "models": [{"id": "m", "name": "NAME"}]}"#;
    let named = |name: &[u8]| {
        [
            &br#"{"providers": {"p": {"baseUrl": "https://x", "api": "a", "models": [{"id": "m", "name": ""#[..],
            name,
            b"\"}]}}}",
        ]
        .concat()
    };
    let texts = [
        "",
        "[",
        "[,]",
        "{,}",
        r#"{"providers": {}} x"#,
        "[]",
        "null",
        "{}",
        r#"{"providers": []}"#,
        r#"{"providers": {"p": 1}}"#,
        r#"{"providers": {"p": {"baseUrl": "https://x", "oauth": "other"}}}"#,
        r#"{"providers": {"p": {"baseUrl": "https://x", "compat": {"vllmPriority": 1e999}}}}"#,
        r#"{"providers": {"p": {"name": 1}, "p": {"baseUrl": "https://x"}}}"#,
        r#"{"providers": {"p": {"baseUrl": "https://x"},, }}"#,
        r#"{"providers": {"p": {"baseUrl": "https://x"} /* x */}}"#,
    ];
    for text in texts {
        same_configuration(&mut peer, &file, text.as_bytes());
    }
    for text in [
        format!("\u{feff}{{ // {{\n\"providers\": {{\"p\": {entry},\n//,\n}},}}"),
        format!("{{\"providers\": {{\"p\": {entry}}}}} // the end"),
    ] {
        assert_eq!(same_configuration(&mut peer, &file, text.as_bytes()), 1, "{text}");
    }
    for name in [&b"\\u00e9//"[..], b"a \xff b"] {
        assert_eq!(same_configuration(&mut peer, &file, &named(name)), 1);
    }
    // Not a name: half a surrogate pair is U+FFFD here.
    let half = entry.replace("\"a\"", "\"a\", \"apiKey\": \"\\ud800\"");
    assert_eq!(same_configuration(&mut peer, &file, format!("{{\"providers\": {{\"p\": {half}}}}}").as_bytes()), 1);
    let whole = whole_configuration();
    assert!(same_configuration(&mut peer, &file, whole.to_string().as_bytes()) > 0, "it is right before it is spoiled");
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..900 {
        let mut spoiled = whole.clone();
        for _ in 0..=dice.roll(3) {
            spoil(&mut dice, &mut spoiled);
        }
        match same_configuration(&mut peer, &file, spoiled.to_string().as_bytes()) {
            0 => wrong += 1,
            _ => right += 1,
        }
    }
    assert!(right > 100 && wrong > 100, "{right} {wrong}");
}

/// Writes the file, and checks that both make the same of it; how many models that is.
fn same_configuration(peer: &mut Peer, file: &Path, bytes: &[u8]) -> usize {
    std::fs::write(file, bytes).expect("a file");
    let text = String::from_utf8_lossy(bytes);
    let catalogue = CatalogueOptions::default().models_file(file);
    let keys = KeyOptions::default().environment(false);
    let engine =
        Engine::new(EngineOptions::default().worker_threads(1).keys(keys).catalogue(catalogue)).expect("an engine");
    let input = |model: &Model| if model.images { json!(["text", "image"]) } else { json!(["text"]) };
    let shown: Vec<Value> = engine
        .models()
        .iter()
        .filter(|model| matches!(model.provider.as_str(), "p" | "q"))
        .map(|it| {
            json!([
                it.full_name(),
                it.name,
                it.api,
                it.base_url,
                it.reasoning,
                input(it),
                it.context_window,
                it.max_tokens,
                it.prices.rates.input
            ])
        })
        .collect();
    let count = shown.len();
    let problems = engine.model_problems();
    let mut theirs = ask(peer, json!({"do": "models", "file": file})).expect("pi composes");
    let lines = theirs.as_object_mut().and_then(|theirs| theirs.remove("faults")).expect("their complaints");
    let ours = json!({"models": shown, "error": !problems.is_empty()});
    assert!(same(&ours, &theirs), "{text}\n pi   {theirs}\n ours {ours} {problems:?}");

    let lines: Vec<&str> = lines.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut named = lines.clone();
    named.dedup();
    let places = places(&problems);
    // pi ends its list after eight complaints, and has several of one place.
    let ours = if lines.len() < 8 { &places[..] } else { &places[..named.len().min(places.len())] };
    let (mut ours, mut theirs): (Vec<_>, Vec<_>) = (ours.iter().collect(), named.iter().collect());
    ours.sort();
    theirs.sort();
    theirs.dedup();
    assert!(ours.iter().eq(&theirs), "{text}\n pi   {theirs:?}\n ours {places:?}");
    count
}

/// The places an error of ours names, in pi's words.
fn places(problems: &[ModelProblem]) -> Vec<String> {
    let [ModelProblem { provider: None, message, .. }] = problems else { return Vec::new() };
    let Some((_, faults)) = message.split_once("is wrong: ") else { return Vec::new() };
    let place =
        |fault: &str| fault.split(" must be ").next().unwrap_or_default().replace("the file", "root").replace('/', ".");
    let mut places: Vec<String> = faults.split("; ").map(place).collect();
    places.dedup();
    places
}

/// Something at some place becomes something else, or goes away.
fn spoil(dice: &mut Dice, value: &mut Value) {
    let deeper = dice.roll(9) != 0;
    let others = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(100),
        json!(101),
        json!(1.5),
        json!(1e20),
        json!(""),
        json!("x"),
        json!("text"),
        json!([]),
        json!({}),
        json!(["x"]),
        json!([1]),
        json!({"x": 1}),
        json!({"$var": 1}),
        json!([{}]),
    ];
    match value {
        Value::Object(object) if deeper && !object.is_empty() => {
            let key = object.keys().nth(dice.roll(object.len())).expect("a key").clone();
            if dice.roll(8) == 0 {
                object.remove(&key);
            } else {
                spoil(dice, &mut object[&key]);
            }
        }
        Value::Array(list) if deeper && !list.is_empty() => {
            let at = dice.roll(list.len());
            if dice.roll(8) == 0 {
                list.push(list[at].clone());
            } else {
                spoil(dice, &mut list[at]);
            }
        }
        value => *value = others[dice.roll(others.len())].clone(),
    }
}

/// A configuration in which everything stands somewhere.
fn whole_configuration() -> Value {
    let cost = json!({"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4,
        "tiers": [{"inputTokensAbove": 9, "input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}]});
    let levels = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
    let by_level = |value: Value| levels.map(|level| (level.to_owned(), value.clone())).into_iter().collect::<Value>();
    let mut compat = json!({
        "maxTokensField": "max_tokens", "thinkingFormat": "qwen", "cacheControlFormat": "anthropic", "vllmPriority": 1,
        "sessionAffinityFormat": "openai", "promptCacheKeyMode": "auto", "thinkingTokenBudgetField": "thinking_budget",
        "imageInput": "images", "chatTemplateKwargs": {"a": "x", "b": {"$var": "thinking.effort", "omitWhenOff": true}},
        "chatTemplateArgs": {"c": null, "d": 1},
        "openRouterRouting": {"allow_fallbacks": true, "data_collection": "deny", "zdr": true, "require_parameters": false,
            "enforce_distillable_text": true, "order": ["x"], "only": ["x"], "ignore": [], "quantizations": ["x"],
            "sort": {"by": "x", "partition": null}, "max_price": {"prompt": 1, "completion": "1", "image": 1, "audio": 1, "request": 1},
            "preferred_min_throughput": 1, "preferred_max_latency": {"p50": 1, "p75": 1, "p90": 1, "p99": 1}},
        "vercelGatewayRouting": {"only": ["x"], "order": ["x"]},
        "allowedFallbackModels": [{"provider": "p", "model": "f", "cost": cost}],
    });
    let flags = "supportsStore supportsDeveloperRole supportsReasoningEffort supportsUsageInStreaming supportsFinishReason \
        requiresToolResultName requiresAssistantAfterToolResult requiresNonNullAssistantContent requiresToolsWithToolHistory \
        requiresThinkingAsText requiresReasoningContentOnAssistantMessages zaiToolStream supportsThinkingTokenBudget \
        supportsOpenAIGrammarTools supportsMidConvoSystemMessages supportsMidConvoToolAdditions supportsStrictMode \
        sendSessionAffinityHeaders supportsLongCacheRetention supportsAdditionalTools supportsToolSearch \
        supportsExplicitPromptCacheMode supportsMidConvoEffort supportsMaxOutputTokens supportsEagerToolInputStreaming \
        supportsCacheControlOnTools supportsTemperature forceAdaptiveThinking allowEmptySignature supportsStrictTools \
        supportsMidConvoToolChanges supportsMessageThreads sendImageOptInHeader unknownFlag";
    for flag in flags.split_whitespace() {
        compat[flag] = json!(true);
    }
    let model = json!({
        "id": "m", "name": "M", "api": "openai-completions", "baseUrl": "https://m.example", "reasoning": true,
        "thinkingLevelMap": by_level(json!("x")), "input": ["text", "image"], "cost": cost, "promptCache": {"short": 1, "long": 2},
        "inputLimits": {"maxRequestBytes": 1, "images": {"maxPerMessage": 1, "maxPerRequest": 1,
            "resize": {"maxWidth": 1, "maxHeight": 1, "maxBytes": 1, "jpegQuality": 80}}},
        "contextWindow": 1000, "maxTokens": 10, "samplingParams": {"x": 1}, "samplingParamsByThinkingLevel": by_level(json!({"x": 1})),
        "headers": {"X-A": "b"}, "compat": compat, "unknown": {"x": 1},
    });
    json!({"$schema": "x", "providers": {
        "p": {"name": "P", "baseUrl": "https://p.example", "apiKey": "k", "api": "openai-completions", "headers": {"X-A": "b"},
            "compat": compat, "authHeader": true, "models": [model.clone(), model], "modelOverrides": {"m": {"name": "N", "cost": cost,
            "thinkingLevelMap": by_level(json!(null)), "input": ["text"], "inputLimits": {"maxRequestBytes": 1}, "reasoning": true,
            "promptCache": {"short": 1}, "contextWindow": 10, "maxTokens": 10, "samplingParams": {}, "headers": {"X-A": "b"},
            "samplingParamsByThinkingLevel": by_level(json!({})), "compat": compat}}},
        "q": {"baseUrl": "https://q.example"},
    }})
}

/// A model entry of `models.json`.
fn model(dice: &mut Dice) -> Value {
    let mut model = json!({"id": dice.pick(&["m", "n", "a/b:c"])});
    let price = 1 + dice.roll(9);
    let choices = [
        ("name", json!("Name")),
        ("api", json!(dice.pick(&["openai-completions", "anthropic-messages", "other"]))),
        ("baseUrl", json!("https://m.example/x")),
        ("reasoning", json!(dice.roll(2) == 0)),
        ("input", json!(["text", "image"])),
        ("contextWindow", json!(1000)),
        ("maxTokens", json!(10)),
        ("cost", json!({"input": price, "output": 2, "cacheRead": 3, "cacheWrite": 4})),
        ("compat", json!({"supportsStore": false})),
        ("unknown", json!(1)),
    ];
    for (key, value) in choices {
        if dice.roll(3) == 0 {
            model[key] = value;
        }
    }
    model
}
