//! The JSON forms that hosts of other languages use: options of an engine, models, definitions of providers, options of a
//! replay.

use std::time::Duration;

use branchline::host::{provider_from_value, requests};
use branchline::providers::Provider;
use branchline::replay::ReplayOptions;
use branchline::{Engine, EngineForm, EngineOptions, ErrorCode, SessionOptions, block_on};
use branchline_canned::{Reply, Server};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

fn start(form: Value) -> branchline::Result<Engine> {
    EngineForm::from_value(form)?.start(EngineOptions::default().worker_threads(1))
}

/// Text of the error of a form that must not be taken.
fn refused(form: Value) -> String {
    let error = start(form).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    error.to_string()
}

/// Models, keys, headers and recording of one form, over the wire.
#[test]
fn a_form_makes_an_engine() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Reply::hi()]);
    let wire = dir.path().join("wire.jsonl");
    let form = json!({
        "workerThreads": 2, "agentDir": dir.path(), "defaultModel": "mine/m", "builtinModels": false, "environment": false,
        "models": {"providers": {"mine": {"baseUrl": server.url(), "api": "anthropic-messages", "models": [{"id": "m"}]}}},
        "keys": {"mine": {"key": "sk-of-the-form", "bearer": true}, "other": "sk-other"},
        "network": {"proxy": "direct", "connectTimeoutMs": 5000, "idleTimeoutMs": null, "maxRequestsPerOrigin": 3,
            "headers": {"x-from": "form"}},
        "record": wire,
    });
    let form = EngineForm::from_json(&form.to_string()).unwrap();
    assert!(!format!("{form:?}").contains("sk-"), "{form:?}");
    let engine = form.start(EngineOptions::default()).unwrap();
    assert!(!format!("{engine:?}").contains("sk-"), "{engine:?}");
    let names: Vec<String> = engine.models().iter().map(branchline::providers::Model::full_name).collect();
    assert!(
        names.contains(&"mine/m".to_owned()) && !names.iter().any(|name| name.starts_with("anthropic/")),
        "{names:?}"
    );
    let session = block_on(engine.create_session(SessionOptions::new(dir.path()).in_memory(true))).unwrap();
    let run = block_on(session.prompt("go", Default::default())).unwrap();
    assert_eq!(block_on(run.result()).unwrap().text, "hi");
    let received = server.received();
    assert_eq!(received[0].header("authorization"), Some("Bearer sk-of-the-form"));
    assert_eq!(received[0].header("x-from"), Some("form"));

    // The recording is whole when the engine has ended, without a word of its own.
    engine.shutdown_blocking(Duration::from_secs(20)).unwrap();
    let recorded = std::fs::read_to_string(&wire).unwrap();
    assert!(recorded.trim_end().ends_with('}') && recorded.contains("\"kind\":\"end\""), "{recorded}");
    assert!(!recorded.contains("sk-of-the-form"), "{recorded}");
    let again = start(json!({"record": wire})).unwrap_err();
    assert_eq!(again.code(), ErrorCode::FileExists);
}

/// A recording is also finished by the waiting form of shutdown, and beside an observer of the host's.
#[test]
fn a_recording_ends_with_a_shutdown_that_is_awaited() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Reply::hi()]);
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let own = std::sync::Arc::new(branchline::providers::WireRecorder::create(&first).unwrap());
    let options = EngineOptions::default().worker_threads(1).record(&second).wire_observer(own.clone());
    let engine = Engine::new(options.key("mine", "sk-1")).unwrap();
    let config =
        json!({"providers": {"mine": {"baseUrl": server.url(), "api": "anthropic-messages", "models": [{"id": "m"}]}}});
    engine.configure_models(&config.to_string()).unwrap();
    let session =
        block_on(engine.create_session(SessionOptions::new(dir.path()).in_memory(true).model("mine/m"))).unwrap();
    block_on(block_on(session.prompt("go", Default::default())).unwrap().result()).unwrap();
    block_on(engine.shutdown());
    own.finish();
    let read = |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned();
        text.lines().map(kind).collect::<Vec<_>>()
    };
    for kinds in [read(&first), read(&second)] {
        let count = |wanted: &str| kinds.iter().filter(|kind| *kind == wanted).count();
        assert_eq!((count("request"), count("response"), count("end")), (1, 1, 1), "{kinds:?}");
        assert!(count("bytes") >= 1 && kinds.last().unwrap() == "end", "{kinds:?}");
    }
}

#[test]
fn agent_files_are_read_when_the_form_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let models = json!({"providers": {"mine": {"baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "models": [{"id": "m"}]}}});
    std::fs::write(dir.path().join("models.json"), models.to_string()).unwrap();
    let auth = json!({"mine": {"type": "api_key", "key": "sk-of-the-file"}});
    std::fs::write(dir.path().join("auth.json"), auth.to_string()).unwrap();
    let key = |engine: &Engine| {
        let model = engine.find_model("mine/m").unwrap().model;
        block_on(engine.credentials().resolve(&model)).unwrap().key.map(|key| key.expose_secret().to_owned())
    };
    let usual = start(json!({"agentDir": dir.path(), "agentFiles": true, "environment": false})).unwrap();
    assert_eq!(key(&usual).as_deref(), Some("sk-of-the-file"));
    let named = start(json!({"agentFiles": dir.path(), "environment": false})).unwrap();
    assert_eq!(key(&named).as_deref(), Some("sk-of-the-file"));
    let single = start(json!({"modelsFile": dir.path().join("models.json"), "environment": false})).unwrap();
    assert_eq!(key(&single), None);
    let none = start(json!({"agentDir": dir.path(), "agentFiles": false})).unwrap();
    assert_eq!(none.find_model("mine/m").unwrap_err().code(), ErrorCode::UnknownModel);
    std::fs::write(dir.path().join("models.json"), "{").unwrap();
    let broken = start(json!({"agentFiles": dir.path()})).unwrap();
    let problem = serde_json::to_value(&broken.model_problems()[0]).unwrap();
    assert!(problem["path"].as_str().unwrap().ends_with("models.json") && problem["message"].is_string(), "{problem}");
}

/// What is wrong is named, and no value of what could be a key is.
#[test]
fn bad_forms_are_refused_without_telling_secrets() {
    assert!(refused(json!({"modelFile": "x"})).contains("modelFile"));
    assert!(refused(json!([])).contains("engine options"));
    assert!(EngineForm::from_json("{").unwrap_err().to_string().contains("no JSON"));
    // A list is no object with nothing in it.
    assert!(refused(json!({"network": []})).contains("a list, expected an object"));
    for bad in [
        json!({"keys": "sk-secret"}),
        json!({"keys": {"a": {"token": "sk-secret"}}}),
        json!({"keys": {"a": ["sk-secret"]}}),
        json!({"keys": {"a": {"key": "sk-secret", "bearer": "sk-secret"}}}),
        json!({"network": {"proxy": "sk-secret"}}),
        json!({"network": {"headers": "sk-secret"}}),
        json!({"network": {"headers": {"a": ["sk-secret"]}}}),
        json!({"network": {"maxRequestsPerOrigin": 0}}),
        json!({"models": {"providers": {"a": {"apiKey": ["sk-secret"]}}}}),
    ] {
        let text = refused(bad.clone());
        assert!(!text.contains("sk-secret"), "{text}");
    }
    let form = json!({"network": {"proxy": "http://user:secret@proxy.example:8080"}});
    let engine = start(form).unwrap();
    assert!(!format!("{engine:?}").contains("secret"), "{engine:?}");

    // An engine that was not made leaves no file in the way.
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("wire");
    refused(json!({"record": record, "models": {"providers": 5}}));
    assert!(!record.exists());
}

#[test]
fn a_model_has_one_form() {
    let (asker, _requests) = requests();
    let definition = json!({"name": "ide", "models": ["plain", {
        "id": "vendor/large", "name": "Large", "contextWindow": 200_000, "maxTokens": 8000, "input": ["text", "image"],
        "thinkingLevels": ["off", "high"], "api": "ide-chat",
        "cost": {"input": 3, "output": 15.5, "tiers": [{"inputTokensAbove": 100, "input": 6}]},
    }, {"id": "thinks", "reasoning": true}]});
    let engine = start(json!({"builtinModels": false})).unwrap();
    let provider = provider_from_value(definition, asker, 1).unwrap();
    assert_eq!(provider.models()[2].thinking_levels, ["off", "minimal", "low", "medium", "high"]);
    engine.add_provider(std::sync::Arc::new(provider));
    let choice = serde_json::to_value(engine.find_model("large:high").unwrap()).unwrap();
    assert_eq!(
        choice,
        json!({"model": {
            "name": "ide/vendor/large", "provider": "ide", "id": "vendor/large", "displayName": "Large", "api": "ide-chat",
            "baseUrl": "", "reasoning": true, "thinkingLevels": ["off", "high"], "images": true, "contextWindow": 200_000,
            "maxTokens": 8000, "cost": {"input": 3.0, "output": 15.5, "cacheRead": 0.0, "cacheWrite": 0.0, "tiers": [
                {"inputTokensAbove": 100, "input": 6.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0}]},
        }, "thinkingLevel": "high"})
    );
    let plain = engine.find_model("ide/plain").unwrap();
    let form = plain.model.to_value();
    assert_eq!(
        (&form["api"], &form["images"], &form["thinkingLevels"]),
        (&json!("host"), &json!(false), &json!(["off"]))
    );
    assert!(form["cost"].get("tiers").is_none());
    assert_eq!(serde_json::to_value(&plain).unwrap()["thinkingLevel"], Value::Null);
}

#[test]
fn what_is_no_provider_is_refused_by_its_place() {
    let refused = |definition: Value| {
        let (asker, _requests) = requests();
        let error = provider_from_value(definition.clone(), asker, 1).map(|_| definition).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        error.to_string()
    };
    assert!(refused(json!({"name": "a/b", "models": ["m"]})).contains("a/b"));
    assert!(refused(json!({"name": "", "models": ["m"]})).contains("name"));
    assert!(refused(json!({"name": "a", "models": []})).contains("no models"));
    assert!(refused(json!({"name": "a", "models": ["m"], "url": "x"})).contains("url"));
    assert!(refused(json!({"name": "a", "models": ["m", {"id": "n", "contextwindow": 1}]})).contains("models.1"));
    assert!(refused(json!({"name": "a", "models": ["m", {"id": "m"}]})).contains("models.1"));
    assert!(refused(json!({"name": "a", "models": [" "]})).contains("models.0"));
    assert!(refused(json!({"name": "a", "models": [{"id": "m", "thinkingLevels": ["much"]}]})).contains("much"));
    let odd = json!({"id": "m", "thinkingLevels": ["high"], "reasoning": false});
    assert!(refused(json!({"name": "a", "models": [odd]})).contains("reasoning"));
    assert!(refused(json!({"name": "a", "models": [{"id": "m", "cost": {"input": -1}}]})).contains("negative"));
    assert!(refused(json!({"name": "a", "models": [{"id": "m", "input": ["sound"]}]})).contains("sound"));
}

#[test]
fn options_of_a_replay() {
    let read = |value: Value| serde_json::from_value::<ReplayOptions>(value);
    assert!(read(json!({})).unwrap().compare_tool_results);
    assert!(!read(json!({"compareToolResults": false})).unwrap().compare_tool_results);
    assert!(read(json!({"compare": true})).is_err());
}

/// Settings are those of every session of the engine, and one that is wrong is not heard.
#[test]
fn settings_of_a_form_hold_for_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let settings =
        json!({"defaultTools": ["-bash", "+grep"], "defaultThinkingLevel": "off", "steeringMode": 5, "unknown": {}});
    let engine = start(json!({"agentDir": dir.path(), "settings": settings})).unwrap();
    let options = SessionOptions::new(dir.path()).in_memory(true).model("scripted/demo");
    let state = block_on(engine.create_session(options)).unwrap().state();
    assert_eq!(state.tools, ["read", "edit", "write", "grep"]);
    assert_eq!(state.thinking_level, "off");
    assert!(refused(json!({"settings": []})).contains("settings"));
}

#[test]
fn a_number_of_threads_that_cannot_be_meant_is_refused() {
    assert!(refused(json!({"workerThreads": 1_000_000})).contains("1000000 worker threads"));
}
