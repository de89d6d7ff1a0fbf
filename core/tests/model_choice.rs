//! Choosing a model: ids that nobody described, patterns, and the model of a session that nobody chose one for (P91, P92, S292).

use std::path::Path;

use branchline::providers::{CatalogueOptions, KeyOptions, Model};
use branchline::resources::settings::Settings;
use branchline::{Engine, EngineOptions, ErrorCode, Session, SessionOptions, block_on};
use serde_json::{Value, json};

/// An engine with keys for these services, and none of the environment.
fn engine(providers: &[&str]) -> Engine {
    Engine::new(options(providers)).unwrap()
}

fn options(providers: &[&str]) -> EngineOptions {
    let keys = providers.iter().fold(KeyOptions::default().environment(false), |keys, name| keys.key(*name, "k"));
    EngineOptions::default().worker_threads(1).keys(keys)
}

fn settings(value: Value) -> Settings {
    Settings::from_values(value.as_object().cloned().unwrap())
}

fn session(engine: &Engine, dir: &Path, change: impl FnOnce(SessionOptions) -> SessionOptions) -> Session {
    block_on(engine.create_session(change(SessionOptions::new(dir).in_memory(true)))).unwrap()
}

/// The model of a new session with these settings.
fn first(engine: &Engine, values: Value) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    session(engine, dir.path(), |options| options.settings(settings(values))).state().model
}

fn local(engine: &Engine, provider: &str, id: &str) {
    let mut model = Model::new(provider, id, "openai-completions");
    model.base_url = "http://127.0.0.1:9/v1".to_owned();
    engine.add_model(model).unwrap();
}

/// P91: an unknown id of a known provider is a model with the facts of that provider's default, and can be used by its name.
#[test]
fn p91_custom_ids() {
    let engine = engine(&["anthropic"]);
    let choice = engine.find_model_or_custom("Anthropic/claude-of-tomorrow:high").unwrap();
    assert_eq!(choice.model.full_name(), "anthropic/claude-of-tomorrow");
    assert_eq!((choice.model.api.as_str(), choice.model.reasoning), ("anthropic-messages", true));
    assert_eq!(choice.thinking_level.as_deref(), Some("high"));
    let warning = choice.warning.clone().unwrap();
    assert!(warning.contains("anthropic/claude-of-tomorrow"), "{warning}");
    assert_eq!(serde_json::to_value(&choice).unwrap()["warning"], json!(warning));
    let dir = tempfile::tempdir().unwrap();
    let session = session(&engine, dir.path(), |options| options.model("anthropic/claude-of-tomorrow"));
    assert_eq!(session.state().model.as_deref(), Some("anthropic/claude-of-tomorrow"));
    assert!(engine.models().iter().any(|model| model.full_name() == "anthropic/claude-of-tomorrow"));

    let typo = engine.find_model_or_custom("anthropic/claude-fabel-5").unwrap();
    assert!(typo.warning.unwrap().contains("did you mean anthropic/claude-fable-5"), "a slip is told");
    let known = engine.find_model_or_custom("claude-fable-5").unwrap();
    assert_eq!((known.model.full_name().as_str(), known.warning), ("anthropic/claude-fable-5", None));
    // A service that is known without any model, with the facts of P22.
    let router = engine.find_model_or_custom("openrouter/vendor/model:free:low").unwrap();
    assert_eq!((router.model.id.as_str(), router.thinking_level.as_deref()), ("vendor/model:free", Some("low")));
    assert_eq!(
        (router.model.base_url.as_str(), router.model.context_window),
        ("https://openrouter.ai/api/v1", 128_000)
    );
    for text in ["nobody/x", "just words", "anthropic/", "scripted/x", "amazon-bedrock/x"] {
        let error = engine.find_model_or_custom(text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::UnknownModel, "{text}");
    }
    assert_eq!(engine.find_model("anthropic/claude-unheard").unwrap_err().code(), ErrorCode::UnknownModel);
}

/// P91: globs and texts, levels behind them, each model once.
#[test]
fn p91_patterns() {
    let engine = engine(&["anthropic", "google"]);
    let scope = |patterns: &[&str]| {
        let scope = engine.models_in_scope(patterns);
        let models: Vec<String> = scope
            .models
            .iter()
            .map(|choice| format!("{}:{}", choice.model.full_name(), choice.thinking_level.as_deref().unwrap_or("-")))
            .collect();
        (models, scope.warnings.len())
    };
    let (models, warnings) =
        scope(&["GOOGLE/gemini-4-*:high", "*haiku-5*", "google/gemini-4-neon:low", "claude-sonnet-5"]);
    assert_eq!(warnings, 0);
    assert_eq!(
        models,
        [
            "google/gemini-4-argon:high",
            "google/gemini-4-carbon:high",
            "google/gemini-4-hydrogen:high",
            "google/gemini-4-neon:high",
            "anthropic/claude-haiku-5-5:-",
            "anthropic/claude-sonnet-5:-",
        ]
    );
    assert_eq!(scope(&["gpt-*", "nothing", "["]), (vec![], 3), "what has no key is not in the scope");
    local(&engine, "mine", "claude-fable-5");
    let (both, warnings) = scope(&["claude-fable-5"]);
    assert_eq!((both.len(), warnings), (2, 1), "{both:?}");
    let (slip, warnings) = scope(&["claude-haiku-5-5:hihg"]);
    assert_eq!((slip, warnings), (vec!["anthropic/claude-haiku-5-5:-".to_owned()], 1));
}

/// P92: scope, then the saved default if it has a key, then the first service's default with a key, then any other model.
#[test]
fn p92_the_first_model() {
    assert_eq!(first(&engine(&[]), json!({})), None, "without a key there is none, and no scripted one");
    let openai = engine(&["openai"]);
    let chosen = first(&openai, json!({})).unwrap();
    assert!(chosen.starts_with("openai/"), "{chosen}");
    assert!(first(&engine(&["google", "anthropic"]), json!({})).unwrap().starts_with("anthropic/"), "in a fixed order");
    let saved = json!({"defaultProvider": "google", "defaultModel": "gemini-4-neon"});
    assert_eq!(first(&engine(&["google", "anthropic"]), saved.clone()).as_deref(), Some("google/gemini-4-neon"));
    assert_eq!(first(&openai, saved.clone()), Some(chosen), "the saved one has no key");
    assert_eq!(
        first(&engine(&[]), saved.clone()).as_deref(),
        Some("google/gemini-4-neon"),
        "a prompt says what is missing"
    );
    let mut scoped = saved;
    scoped["enabledModels"] = json!(["nothing-*", "claude-haiku-5-5:low", "*"]);
    let both = engine(&["google", "anthropic"]);
    assert_eq!(first(&both, scoped.clone()).as_deref(), Some("anthropic/claude-haiku-5-5"));
    let dir = tempfile::tempdir().unwrap();
    let level = session(&both, dir.path(), |options| options.settings(settings(scoped))).state().thinking_level;
    assert_eq!(level, "low", "the pattern's level");
    // What the host added is meant, also when the environment has keys for others.
    local(&both, "mine", "m");
    assert_eq!(first(&both, json!({})).as_deref(), Some("mine/m"));
    // The host's own choices go before all that.
    let named = Engine::new(options(&["anthropic"]).default_model("scripted/demo")).unwrap();
    assert_eq!(first(&named, json!({"enabledModels": ["*"]})).as_deref(), Some("scripted/demo"));
}

/// P92: a callback that may have a key is no reason to choose a service.
#[test]
fn p92_a_callback_chooses_nothing() {
    let source = |_| -> branchline::providers::KeyFuture { Box::pin(async { Ok(None) }) };
    let engine = Engine::new(options(&[]).key_source(std::sync::Arc::new(source))).unwrap();
    assert_eq!(first(&engine, json!({})), None);
}

/// S292: a session whose model has no key or is not known goes on with another one, and says so; without any it keeps its own.
#[test]
fn s292_a_model_that_cannot_be_used() {
    let dir = tempfile::tempdir().unwrap();
    let stored = |model: &str| {
        let path = dir.path().join("s.jsonl");
        let (provider, id) = model.split_once('/').unwrap();
        let lines = [
            json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": dir.path()}),
            json!({"type": "model_change", "id": "a", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
                "provider": provider, "modelId": id}),
            json!({"type": "message", "id": "b", "parentId": "a", "timestamp": "2026-01-01T00:00:00.000Z",
                "message": {"role": "user", "content": "hi", "timestamp": 1}}),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, text).unwrap();
        path
    };
    let opened = |engine: &Engine, model: &str, prompt: bool| {
        let session = block_on(engine.open_session(stored(model), SessionOptions::new(dir.path()))).unwrap();
        let state = session.state();
        let refused = || block_on(session.prompt("go", Default::default())).err().map(|error| error.code());
        let refused = if prompt { refused() } else { None };
        block_on(session.close()).unwrap();
        (state.model.unwrap_or_default(), state.model_notice.unwrap_or_default(), refused)
    };
    let both = engine(&["anthropic", "google"]);
    let (model, notice, _) = opened(&both, "google/gemini-4-neon", false);
    assert_eq!((model.as_str(), notice.as_str()), ("google/gemini-4-neon", ""));
    let only = engine(&["anthropic"]);
    let (model, notice, _) = opened(&only, "google/gemini-4-neon", false);
    assert!(model.starts_with("anthropic/"), "{model}");
    assert!(
        notice.contains("google/gemini-4-neon") && notice.contains("no key") && notice.contains(&model),
        "{notice}"
    );
    let (_, notice, _) = opened(&only, "gone/model", false);
    assert!(notice.contains("not known"), "{notice}");
    let (model, notice, code) = opened(&engine(&[]), "google/gemini-4-neon", true);
    assert_eq!((model.as_str(), notice.as_str()), ("google/gemini-4-neon", ""));
    assert_eq!(code, Some(ErrorCode::NoCredentials));
    let (model, notice, code) = opened(&engine(&[]), "gone/model", true);
    assert_eq!((model, notice, code), (String::new(), String::new(), Some(ErrorCode::NoModel)));

    let session = block_on(only.open_session(stored("gone/model"), SessionOptions::new(dir.path()))).unwrap();
    block_on(session.set_model("anthropic/claude-fable-5")).unwrap();
    assert_eq!(session.state().model_notice, None, "somebody chose");
}

/// An engine without any built-in model has none to choose by itself.
#[test]
fn p92_only_what_is_known() {
    let bare = Engine::new(options(&["anthropic"]).catalogue(CatalogueOptions::default().builtin(false))).unwrap();
    assert_eq!(first(&bare, json!({})), None);
}
