//! Which models an engine knows, and finding one by what somebody wrote (P1–P25, P36, P90).

use std::path::Path;

use branchline::providers::{CatalogueOptions, KeyOptions, Model};
use branchline::{Engine, EngineOptions, ErrorCode, SessionOptions, block_on};
use serde_json::{Value, json};

/// An engine without keys of the environment.
fn options() -> EngineOptions {
    EngineOptions::default().worker_threads(1).keys(KeyOptions::default().environment(false))
}

fn engine(options: EngineOptions) -> Engine {
    Engine::new(options).unwrap()
}

/// An engine with this `models.json`.
fn configured(dir: &Path, models: &str) -> Engine {
    std::fs::write(dir.join("models.json"), models).unwrap();
    engine(options().agent_files(dir))
}

fn find<'a>(models: &'a [Model], name: &str) -> &'a Model {
    models.iter().find(|model| model.full_name() == name).unwrap_or_else(|| panic!("no {name}"))
}

/// P1–P3: every line of the data is a model, and its facts are taken over.
#[test]
fn p1_built_in_models() {
    let models = engine(options()).models();
    assert!(models.len() > 100);
    for model in &models {
        let known =
            ["anthropic-messages", "openai-completions", "openai-responses", "google-generative-ai", "scripted"];
        assert!(known.contains(&model.api.as_str()), "{}: {}", model.full_name(), model.api);
        assert!(model.api == "scripted" || model.base_url.starts_with("https://"), "{}", model.full_name());
        assert!(model.context_window > 0, "{}", model.full_name());
    }
    let model = find(&models, "anthropic/claude-fable-5-1");
    assert_eq!(
        (model.base_url.as_str(), model.context_window, model.images),
        ("https://api.anthropic.com", 1_000_000, true)
    );
    assert_eq!(model.thinking_levels, ["minimal", "low", "medium", "high", "xhigh", "max"]);
    assert_eq!(model.compat.flag("forceAdaptiveThinking"), Some(true));
    assert!(engine(options().catalogue(CatalogueOptions::default().builtin(false))).models().len() < 5);
}

/// P90: exact names in any case, ids that one provider has, ties, parts, levels.
#[test]
fn p90_finding_by_text() {
    let engine = engine(options());
    let found = |text: &str| {
        let choice = engine.find_model(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (choice.model.full_name(), choice.thinking_level)
    };
    let fable = |level: Option<&str>| ("anthropic/claude-fable-5".to_owned(), level.map(str::to_owned));
    assert_eq!(found(" Anthropic/Claude-Fable-5 "), fable(None));
    assert_eq!(found("claude-fable-5"), fable(None));
    assert_eq!(found("claude-fable-5:high"), fable(Some("high")));
    let add = |provider: &str, id: &str| {
        let mut model = Model::new(provider, id, "openai-completions");
        model.base_url = "http://127.0.0.1:1/v1".to_owned();
        engine.add_model(model).unwrap();
    };
    add("mine", "odd:high");
    assert_eq!(found("odd:high"), ("mine/odd:high".to_owned(), None), "the whole text comes first");
    add("mine", "thing-20260101");
    add("mine", "thing-20260201");
    assert_eq!(found("thing").0, "mine/thing-20260201");
    add("mine", "thing-latest");
    assert_eq!(found("thing").0, "mine/thing-latest", "a name without a date comes first");
    // Two providers have it: the one that can be used wins, here the server on this machine.
    add("mine", "claude-fable-5");
    assert_eq!(found("claude-fable-5").0, "mine/claude-fable-5");
    add("other", "claude-fable-5");
    let error = engine.find_model("claude-fable-5").unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownModel);
    assert!(error.message().contains("anthropic/claude-fable-5 or mine/claude-fable-5"), "{error}");
    // The text is also a model's id elsewhere (P90).
    add("router", "anthropic/claude-fable-5");
    assert_eq!(found("anthropic/claude-fable-5").0, "router/anthropic/claude-fable-5");
    let dir = tempfile::tempdir().unwrap();
    let options = SessionOptions::new(dir.path()).in_memory(true).model("anthropic/claude-fable-5");
    let session = block_on(engine.create_session(options)).unwrap();
    let named = session.state().model;
    assert_eq!(named.as_deref(), Some("anthropic/claude-fable-5"), "a program that names a provider means it");
    engine.set_key("anthropic", Some(branchline::providers::Key::new("k")));
    assert_eq!(found("anthropic/claude-fable-5").0, "anthropic/claude-fable-5");
}

/// P90: several providers may have the best part; levels behind one another; a part of a router's id.
#[test]
fn p90_parts() {
    let engine = engine(options().catalogue(CatalogueOptions::default().builtin(false)));
    let add = |provider: &str, id: &str, name: &str| {
        let mut model = Model::new(provider, id, "openai-completions");
        model.name = name.to_owned();
        model.base_url = "https://service.example/v1".to_owned();
        engine.add_model(model).unwrap();
    };
    let use_key = |provider: &str| engine.set_key(provider, Some(branchline::providers::Key::new("k")));
    add("a", "fast-1", "Fast");
    add("b", "fast-1", "Fast");
    add("b", "Zig", "Zag");
    add("router", "c/other", "Other");
    add("c", "main", "Main");
    let error = engine.find_model("fast").unwrap_err();
    assert!(error.message().contains("a/fast-1 or b/fast-1"), "{error}");
    let found = |text: &str| {
        let choice = engine.find_model(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (choice.model.full_name(), choice.thinking_level.unwrap_or_default())
    };
    use_key("a");
    assert_eq!(found("fast"), ("a/fast-1".to_owned(), String::new()), "the one that can be used");
    use_key("b");
    assert_eq!(engine.find_model("fast").unwrap_err().code(), ErrorCode::UnknownModel);
    assert_eq!(found("b/fast:high:low"), ("b/fast-1".to_owned(), "low".to_owned()), "the last level counts");
    assert_eq!(found("za"), ("b/Zig".to_owned(), String::new()), "by its name");
    add("router", "b/zig", "B's own");
    assert_eq!(found("b/zig"), ("b/Zig".to_owned(), String::new()));
    add("router", "b/fast", "Fast");
    assert_eq!(
        found("b/fast"),
        ("b/fast-1".to_owned(), String::new()),
        "the provider that is named, if it can be used"
    );
    assert_eq!(found("c/oth:off"), ("router/c/other".to_owned(), "off".to_owned()));
}

/// Unknown names say what is near; names of what is not supported say so.
#[test]
fn unknown_models_name_what_is_near() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(options());
    let error = |name: &str| {
        let options = SessionOptions::new(dir.path()).in_memory(true).model(name);
        let error = block_on(engine.create_session(options)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::UnknownModel);
        error.message().to_owned()
    };
    assert!(
        error("anthropic/claude-fabel-5").contains("did you mean anthropic/claude-fable-5"),
        "{}",
        error("anthropic/claude-fabel-5")
    );
    assert!(error("antropic/claude-fable-5").contains("anthropic/claude-fable-5"));
    assert!(error("scripted/dem").contains("scripted/demo"));
    assert!(error("amazon-bedrock/anthropic.claude").contains("Amazon Bedrock is not supported"));
    assert!(error("zzzzzzzzzzzzzzzz").contains("for example scripted/demo, anthropic/"));
}

/// P20–P23: a file in the lenient form, layer by layer.
#[test]
fn p23_layers() {
    let dir = tempfile::tempdir().unwrap();
    let engine = configured(
        dir.path(),
        r#"{
        // a proxy for everything
        "providers": {
            "anthropic": {
                "baseUrl": "https://proxy.example/a/",
                "compat": {"supportsStrictTools": false},
                "models": [
                    {"id": "claude-fable-5", "name": "Mine"}, // replaces
                    {"id": "extra", "contextWindow": 5000, "input": ["text", "image"],
                     "cost": {"input": 1, "output": 0, "cacheRead": 0, "cacheWrite": 0}},
                ],
                "modelOverrides": {
                    "claude-fable-5-1": {"name": "Cheap", "cost": {"output": 7}, "thinkingLevelMap": {"max": null}, "compat": {"x": 1}},
                    "extra": {"maxTokens": 9},
                    "not there": {"name": "x"},
                },
            },
            "ollama": {"baseUrl": "http://localhost:11434/v1", "api": "openai-completions", "models": [{"id": "a/b:c"}]},
            "openrouter": {"models": [{"id": "vendor/x"}]},
        },
    }"#,
    );
    assert_eq!(engine.model_problems(), []);
    let models = engine.models();
    let replaced = find(&models, "anthropic/claude-fable-5");
    assert_eq!((replaced.name.as_str(), replaced.api.as_str()), ("Mine", "anthropic-messages"));
    assert_eq!(
        (replaced.context_window, replaced.reasoning),
        (128_000, false),
        "an entry replaces, it does not merge (P22)"
    );
    assert_eq!(replaced.compat.flag("supportsStrictTools"), Some(false));

    let changed = find(&models, "anthropic/claude-fable-5-1");
    assert_eq!((changed.name.as_str(), changed.base_url.as_str()), ("Cheap", "https://proxy.example/a"));
    assert_eq!(changed.thinking_levels, ["minimal", "low", "medium", "high", "xhigh"]);
    assert_eq!(changed.compat.flag("supportsStrictTools"), Some(false));
    assert_eq!(changed.compat.flag("forceAdaptiveThinking"), Some(true));
    let prices = serde_json::to_value(format!("{:?}", changed.prices)).unwrap();
    assert!(prices.as_str().unwrap().contains("10.0") && prices.as_str().unwrap().contains("7.0"), "{prices}");

    let extra = find(&models, "anthropic/extra");
    assert_eq!((extra.context_window, extra.max_tokens, extra.images), (5000, 9, true));
    let local = find(&models, "ollama/a/b:c");
    assert_eq!((local.base_url.as_str(), local.max_tokens, local.images), ("http://localhost:11434/v1", 16_384, false));
    assert_eq!(find(&models, "openrouter/vendor/x").base_url, "https://openrouter.ai/api/v1");
    assert!(models.iter().any(|model| model.provider == "openai"), "others stay");
    let available: Vec<String> = engine.available_models().iter().map(Model::full_name).collect();
    assert_eq!(available, ["scripted/demo", "ollama/a/b:c"], "P36");
}

/// P5, P7: a newer list replaces models of the same name and adds others; configuration is laid over both.
#[test]
fn p7_a_newer_list() {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("newer.jsonl");
    let line = |id: &str, kind: &str, window: u64| {
        json!({"provider": "anthropic", "id": id, "type": kind, "name": "New", "api": "anthropic-messages",
            "baseUrl": "https://api.anthropic.com", "contextWindow": window, "input": ["text"]})
    };
    let text = format!(
        "{}\n\n{}\n{}\n",
        line("claude-fable-5", "chat", 7),
        line("claude-next", "chat", 8),
        line("painter", "image", 9)
    );
    std::fs::write(&list, text).unwrap();
    let with = || options().catalogue(CatalogueOptions::default().newer_list(&list));
    let newer = engine(with());
    newer
        .configure_models(r#"{"providers": {"anthropic": {"modelOverrides": {"claude-next": {"maxTokens": 5}}}}}"#)
        .unwrap();
    let models = newer.models();
    assert_eq!(models.iter().filter(|model| model.full_name() == "anthropic/claude-fable-5").count(), 1);
    assert_eq!(find(&models, "anthropic/claude-fable-5").context_window, 7);
    let next = find(&models, "anthropic/claude-next");
    assert_eq!((next.context_window, next.max_tokens), (8, 5));
    assert_eq!(models.len(), engine(options()).models().len() + 1, "an image model is none of ours");
    for (wrong, place) in [("{", "line 1"), ("\n{\"id\": \"x\"}", "line 2")] {
        std::fs::write(&list, wrong).unwrap();
        let engine = engine(with());
        assert!(engine.models().len() > 100);
        assert!(engine.model_problems()[0].message.contains(place), "{:?}", engine.model_problems());
    }
}

/// P22, P23: an entry takes what it leaves out from earlier ones; an override says neither protocol nor address.
#[test]
fn p22_earlier_entries() {
    let dir = tempfile::tempdir().unwrap();
    let engine = configured(
        dir.path(),
        r#"{"providers": {"mine": {
            "models": [
                {"id": "a", "api": "openai-completions", "baseUrl": "https://a.example/v1"},
                {"id": "b"},
                {"id": "c", "api": "anthropic-messages", "baseUrl": "https://c.example"},
                {"id": "d", "api": "anthropic-messages"}
            ],
            "modelOverrides": {"a": {"api": "anthropic-messages", "baseUrl": 7, "name": "Changed"}}
        }}}"#,
    );
    assert_eq!(engine.model_problems(), []);
    let models = engine.models();
    let place = |id: &str| (find(&models, id).api.as_str(), find(&models, id).base_url.as_str());
    assert_eq!(place("mine/a"), ("openai-completions", "https://a.example/v1"));
    assert_eq!(find(&models, "mine/a").name, "Changed");
    assert_eq!(place("mine/b"), ("openai-completions", "https://a.example/v1"));
    assert_eq!(place("mine/d"), ("anthropic-messages", "https://c.example"));
}

/// P20–P22: the place of everything that does not fit is named, at any depth; so is a key that is missing. What no rule knows may be
/// anything.
#[test]
fn p20_every_place_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let fits = json!({"providers": {"p": {"baseUrl": "https://p", "unknown": 1, "compat": {"x": []},
        "modelOverrides": {"m": {"cost": {"input": 1}, "samplingParams": {"x": []}}}}}});
    assert_eq!(configured(dir.path(), &fits.to_string()).model_problems(), []);
    for (provider, places) in [
        (json!({"name": ""}), &["name"][..]),
        (json!({"oauth": "other"}), &["oauth"]),
        (json!({"headers": {"X": null}}), &["headers.X"]),
        (
            json!({"compat": {"supportsStore": "yes", "thinkingFormat": "loud"}}),
            &["compat.supportsStore", "compat.thinkingFormat"],
        ),
        (json!({"compat": {"openRouterRouting": {"order": ["a", 1]}}}), &["compat.openRouterRouting.order.1"]),
        (
            json!({"compat": {"chatTemplateKwargs": {"a": {"$var": "x"}}}}),
            &["compat.chatTemplateKwargs.a", "compat.chatTemplateKwargs.a.$var"],
        ),
        (json!({"compat": {"allowedFallbackModels": ["m"]}}), &["compat.allowedFallbackModels.0"]),
        (json!({"models": [{"id": ""}, {}]}), &["models.0.id", "models.1.id"]),
        (json!({"models": [{"id": "m", "cost": {"input": 1}}]}), &["models.0.cost.output"]),
        (
            json!({"models": [{"id": "m", "contextWindow": 0, "inputLimits": {"images": {"resize": {"jpegQuality": 101}}}}]}),
            &["models.0.inputLimits.images.resize.jpegQuality", "models.0.contextWindow"],
        ),
        (json!({"models": [{"id": "m", "thinkingLevelMap": {"low": 1}}]}), &["models.0.thinkingLevelMap.low"]),
        (
            json!({"modelOverrides": {"m": {"samplingParamsByThinkingLevel": {"low": 1}}}}),
            &["modelOverrides.m.samplingParamsByThinkingLevel.low"],
        ),
    ] {
        let problems = configured(dir.path(), &json!({"providers": {"p": provider}}).to_string()).model_problems();
        let (_, faults) = problems[0].message.split_once("is wrong: ").expect("faults");
        let named: Vec<&str> = faults.split("; ").filter_map(|fault| fault.split(" must be ").next()).collect();
        let places: Vec<String> = places.iter().map(|place| format!("providers.p.{place}")).collect();
        assert_eq!(named, places);
    }
}

/// P20: bytes that are no text, and halves of surrogate pairs, spoil nothing but themselves.
#[test]
fn p20_odd_texts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("models.json");
    let start = r#"{"providers": {"p": {"baseUrl": "http://localhost", "api": "openai-completions", "apiKey": "\ud800", "models": [{"id": "m", "name": "a "#;
    let text = [start.as_bytes(), b"\xff", br#""}]}}}"#].concat();
    std::fs::write(&file, text).unwrap();
    let engine = engine(options().agent_files(dir.path()));
    assert_eq!(find(&engine.models(), "p/m").name, "a \u{fffd}");
    assert_eq!(engine.model_problems(), []);
}

/// P22, P24, P224: the host may use what pi's file has no form for.
#[test]
fn p24_the_host_may_say_more() {
    let engine = engine(options());
    let provider = |compat: Value| {
        json!({"providers": {"p": {"baseUrl": "https://p", "headers": {"X": null}, "compat": {"allowedFallbackModels": compat}}}}).to_string()
    };
    engine.configure_models(&provider(json!(["m", {"model": "n"}]))).unwrap();
    let priced = json!({"providers": {"p": {"api": "x", "baseUrl": "https://p", "models": [{"id": "m", "cost": {"input": 2}}]}}});
    engine.configure_models(&priced.to_string()).unwrap();
    assert_eq!(find(&engine.models(), "p/m").prices.rates.input, 2.0);
    let error = engine.configure_models(&provider(json!([{"provider": "p"}]))).unwrap_err();
    assert!(error.message().contains("providers.p.compat.allowedFallbackModels.0.model"), "{error}");
}

/// P20, P21, P25: what is wrong is told, and the rest stays usable.
#[test]
fn p25_problems() {
    let dir = tempfile::tempdir().unwrap();
    let problems = |models: &str| -> Vec<(Option<String>, String)> {
        let engine = configured(dir.path(), models);
        assert!(engine.models().iter().any(|model| model.full_name() == "anthropic/claude-fable-5"));
        engine.model_problems().into_iter().map(|problem| (problem.provider, problem.message)).collect()
    };
    assert!(problems("{\"providers\": {").first().unwrap().1.contains("no JSON"));
    let wrong = json!({"providers": {"a": {"baseUrl": 1, "models": [{"name": "x"}], "modelOverrides": {"m": {"input": ["sound"]}}}}});
    let found = problems(&wrong.to_string());
    assert_eq!((found.len(), found[0].0.as_deref()), (1, None));
    for place in ["providers.a.baseUrl", "providers.a.models.0.id", "providers.a.modelOverrides.m.input"] {
        assert!(found[0].1.contains(place), "{}", found[0].1);
    }
    let message = |provider: Value| {
        let found = problems(&json!({"providers": {"anthropic": provider, "fine": {"apiKey": "k"}}}).to_string());
        assert_eq!((found.len(), found[0].0.as_deref()), (1, Some("anthropic")));
        found[0].1.clone()
    };
    assert!(message(json!({"name": "x", "models": []})).contains("configures nothing"));
    assert!(message(json!({"oauth": "radius"})).contains("oauth needs a baseUrl"));
    assert!(message(json!({"oauth": "radius", "baseUrl": "https://x"})).contains("not supported"));
    let found = problems(&json!({"providers": {"new": {"models": [{"id": "m"}]}}}).to_string());
    assert!(found[0].1.contains("has no api"), "{}", found[0].1);
    let found =
        problems(&json!({"providers": {"new": {"models": [{"id": "m", "api": "openai-completions"}]}}}).to_string());
    assert!(found[0].1.contains("baseUrl is required"), "{}", found[0].1);
}

/// Configuration as a text, at any time; what is wrong changes nothing.
#[test]
fn configuration_of_the_host() {
    let engine = engine(options());
    let count = engine.models().len();
    engine
        .configure_models(r#"{"providers": {"mine": {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "models": [{"id": "m"}]}}}"#)
        .unwrap();
    assert_eq!(engine.models().len(), count + 1);
    for wrong in ["{", r#"{"providers": {"mine": {"models": [{"id": 1}]}}}"#, r#"{"providers": {"x": {}}}"#] {
        assert_eq!(engine.configure_models(wrong).unwrap_err().code(), ErrorCode::InvalidArgument);
    }
    assert_eq!(engine.models().len(), count + 1);
    // A layer above the first one, and a model above both.
    engine.configure_models(r#"{"providers": {"mine": {"modelOverrides": {"m": {"contextWindow": 77}}}}}"#).unwrap();
    assert_eq!(find(&engine.models(), "mine/m").context_window, 77);
    let mut model = Model::new("mine", "m", "openai-completions");
    model.context_window = 99;
    engine.add_model(model).unwrap();
    assert_eq!(engine.models().len(), count + 1);
    assert_eq!(find(&engine.models(), "mine/m").context_window, 99);
}

/// P6: a protocol that nobody speaks fails the request, naming it.
#[test]
fn p6_unknown_protocols() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(options());
    engine
        .configure_models(r#"{"providers": {"b": {"baseUrl": "http://127.0.0.1:9", "api": "bedrock-converse-stream", "models": [{"id": "m"}]}}}"#)
        .unwrap();
    let session =
        block_on(engine.create_session(SessionOptions::new(dir.path()).in_memory(true).model("b/m"))).unwrap();
    let run = block_on(session.prompt("go", Default::default())).unwrap();
    let result = block_on(run.result()).unwrap();
    assert!(result.error_message.unwrap().contains("\"bedrock-converse-stream\""));
}

/// An engine and a session with a model of the host's read no models: a start costs nothing for those it does not use.
#[test]
fn models_are_read_when_the_first_one_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(options().agent_files(dir.path()));
    let session = SessionOptions::new(dir.path()).in_memory(true).model("scripted/demo");
    let session = block_on(engine.create_session(session)).unwrap();
    let run = block_on(session.prompt("go", Default::default())).unwrap();
    block_on(run.result()).unwrap();
    let late = r#"{"providers": {"late": {"baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "models": [{"id": "m"}]}}}"#;
    std::fs::write(dir.path().join("models.json"), late).unwrap();
    find(&engine.models(), "late/m");
}
