//! Where keys come from, and where they must not go (P30–P37).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use branchline::providers::{Auth, Key, KeyFuture, KeyOptions, KeyRequest, Model};
use branchline::{Engine, EngineOptions, ErrorCode, SessionOptions, block_on};
use branchline_canned::{Reply, Server};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

/// Runs a test of this file in a process with these variables; true in that process.
fn inside(test: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os("BRANCHLINE_INSIDE").is_some() {
        return true;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env("BRANCHLINE_INSIDE", "1").envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

fn quiet() -> KeyOptions {
    KeyOptions::default().environment(false)
}

fn engine(keys: KeyOptions) -> Engine {
    Engine::new(EngineOptions::default().worker_threads(1).keys(keys)).unwrap()
}

fn with_file(dir: &Path, entries: Value, keys: KeyOptions) -> Engine {
    let path = dir.join("auth.json");
    std::fs::write(&path, entries.to_string()).unwrap();
    engine(keys.auth_file(path))
}

fn resolve(engine: &Engine, name: &str) -> branchline::Result<Auth> {
    let model = engine.find_model(name).unwrap().model;
    block_on(engine.credentials().resolve(&model))
}

fn key(auth: &Auth) -> Option<&str> {
    auth.key.as_ref().map(|key| key.expose_secret())
}

fn header<'a>(auth: &'a Auth, name: &str) -> Option<&'a str> {
    let found = auth.headers.iter().rev().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    found.1.as_ref().map(|value| value.expose_secret())
}

const CLAUDE: &str = "anthropic/claude-fable-5";

/// P30: the host's key, its callback, the file, models.json, the environment, in this order.
#[test]
fn p30_order() {
    if !inside("p30_order", &[("ANTHROPIC_API_KEY", "from-env"), ("OPENAI_API_KEY", "  ")]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let entries = json!({"anthropic": {"type": "api_key", "key": "from-file"}});
    let all = with_file(dir.path(), entries, KeyOptions::default().key("anthropic", "from-host"));
    all.configure_models(r#"{"providers": {"anthropic": {"apiKey": "from-config"}}}"#).unwrap();
    assert_eq!(key(&resolve(&all, CLAUDE).unwrap()), Some("from-host"));
    all.set_key("anthropic", None);
    assert_eq!(key(&resolve(&all, CLAUDE).unwrap()), Some("from-file"));
    std::fs::remove_file(dir.path().join("auth.json")).unwrap();
    assert_eq!(key(&resolve(&all, CLAUDE).unwrap()), Some("from-config"), "the file is looked at again");
    assert_eq!(key(&resolve(&engine(KeyOptions::default()), CLAUDE).unwrap()), Some("from-env"));
    let without = engine(quiet());
    assert_eq!(key(&resolve(&without, CLAUDE).unwrap()), None);
    let blank = engine(KeyOptions::default());
    assert_eq!(key(&resolve(&blank, "openai/gpt-5").unwrap()), None, "blank counts as unset (P33)");
}

/// P33: a token of ANTHROPIC_AUTH_TOKEN is sent as such, and wins.
#[test]
fn p33_bearer_tokens() {
    if !inside("p33_bearer_tokens", &[("ANTHROPIC_API_KEY", "key"), ("ANTHROPIC_AUTH_TOKEN", "token")]) {
        return;
    }
    let auth = resolve(&engine(KeyOptions::default()), CLAUDE).unwrap();
    assert_eq!((key(&auth), auth.bearer), (Some("token"), true));
}

/// P30: a stored credential owns its provider, also when it is of no use.
#[test]
fn p30_a_stored_credential_owns_the_provider() {
    if !inside("p30_a_stored_credential_owns_the_provider", &[("ANTHROPIC_API_KEY", "from-env")]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for entry in [
        json!({"type": "oauth", "access": "secret-a", "refresh": "secret-r", "expires": 1}),
        json!({"type": "api_key", "key": "$NOT_SET_ANYWHERE"}),
        json!({"type": "api_key", "key": "!echo secret-c"}),
    ] {
        let engine = with_file(dir.path(), json!({"anthropic": entry}), KeyOptions::default());
        let error = resolve(&engine, CLAUDE).unwrap_err();
        assert_eq!(error.code(), ErrorCode::NoCredentials);
        assert!(!error.to_string().contains("secret-a") && !error.to_string().contains("from-env"), "{error}");
        assert!(!engine.available_models().iter().any(|model| model.provider == "anthropic"));
    }
    // An entry without a key says nothing of it: a variable has it, the entry's own before one of the process.
    let none = with_file(dir.path(), json!({"anthropic": {"type": "api_key"}}), KeyOptions::default());
    assert_eq!(key(&resolve(&none, CLAUDE).unwrap()), Some("from-env"));
    let own = json!({"anthropic": {"type": "api_key", "env": {"ANTHROPIC_API_KEY": "own"}}});
    assert_eq!(key(&resolve(&with_file(dir.path(), own, KeyOptions::default()), CLAUDE).unwrap()), Some("own"));
    let without = with_file(dir.path(), json!({"anthropic": {"type": "api_key"}}), quiet());
    assert_eq!(resolve(&without, CLAUDE).unwrap_err().code(), ErrorCode::NoCredentials);
    std::fs::write(dir.path().join("auth.json"), "{\"anthropic\": \"secret-b").unwrap();
    let engine = engine(KeyOptions::default().auth_file(dir.path().join("auth.json")));
    let error = resolve(&engine, CLAUDE).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StorageFailed);
    assert!(!error.to_string().contains("secret-b"), "{error}");
}

/// P31, P34: variables of a stored credential; the output of a command is kept for stored keys and not for others.
#[test]
fn p34_variables_and_commands() {
    let dir = tempfile::tempdir().unwrap();
    let counter = dir.path().join("n");
    let command = format!("!echo x >> {0}; echo key-$(wc -l < {0}) $PART; echo noise >&2", counter.display());
    let entries = json!({
        "anthropic": {"type": "api_key", "key": command, "env": {"PART": "of-env"}},
        "openai": {"type": "api_key", "env": {"OPENAI_API_KEY": "a$b"}},
        "google": {"type": "api_key", "key": "${G}-$$x", "env": {"G": "g"}},
    });
    let engine = with_file(dir.path(), entries, KeyOptions::default().commands(true));
    engine
        .configure_models(
            &json!({"providers": {"groq": {"apiKey": format!("!echo y >> {0}; wc -l < {0}", counter.display())}}})
                .to_string(),
        )
        .unwrap();
    let seen = |name: &str| key(&resolve(&engine, name).unwrap()).map(|key| key.replace(' ', ""));
    assert_eq!(seen(CLAUDE).as_deref(), Some("key-1of-env"));
    assert_eq!(seen(CLAUDE).as_deref(), Some("key-1of-env"), "run once");
    assert_eq!(seen("openai/gpt-5").as_deref(), Some("a$b"));
    assert_eq!(seen("google/gemini-2.5-pro").as_deref(), Some("g-$x"));
    let groq = engine.models().into_iter().find(|model| model.provider == "groq").unwrap().full_name();
    assert_eq!((seen(&groq).as_deref(), seen(&groq).as_deref()), (Some("2"), Some("3")), "run each time");
}

/// P34: braces around something that is no name stand for themselves, with everything in them.
#[test]
fn p34_braces() {
    use branchline::providers::credentials::{Environment, config_value};
    let environment = Environment::fixed([("A", "1")]);
    let value = |text: &str| config_value(text, &environment, false);
    for (text, wanted) in [
        ("${${A}", "${${A}"),
        ("${A-b}$A", "${A-b}1"),
        ("${x$$}", "${x$$}"),
        ("${$MISSING}", "${$MISSING}"),
        ("${$A", "${1"),
        ("${}${A}", "${}1"),
    ] {
        assert_eq!(value(text).as_deref(), Ok(wanted), "{text}");
    }
}

/// P24, P35: headers of configuration are resolved for each request, later ones win, and are not part of the model.
#[test]
fn p24_headers() {
    let engine = engine(quiet().key("mine", "the-key"));
    let config = json!({"providers": {"mine": {
        "baseUrl": "https://mine.example/v1", "api": "openai-completions", "authHeader": true,
        "headers": {"X-A": "provider", "X-B": "provider", "X-C": "x"},
        "modelOverrides": {"m": {"headers": {"x-b": "override", "x-a": "override"}}},
        "models": [{"id": "m", "headers": {"x-b": "entry $$1", "x-c": null}}, {"id": "bad", "headers": {"x-k": "$NOT_SET_ANYWHERE"}}],
    }}});
    engine.configure_models(&config.to_string()).unwrap();
    let auth = resolve(&engine, "mine/m").unwrap();
    assert_eq!(
        (header(&auth, "x-a"), header(&auth, "x-b"), header(&auth, "x-c")),
        (Some("override"), Some("entry $1"), None)
    );
    assert_eq!(header(&auth, "authorization"), Some("Bearer the-key"));
    let model = engine.models().into_iter().find(|model| model.full_name() == "mine/m").unwrap();
    assert_eq!(model.headers, []);
    let error = resolve(&engine, "mine/bad").unwrap_err();
    assert!(
        error.message().contains("x-k")
            && error.message().contains("NOT_SET_ANYWHERE")
            && error.message().contains("mine/bad"),
        "{error}"
    );
    engine.set_key("mine", None);
    assert_eq!(resolve(&engine, "mine/m").unwrap_err().code(), ErrorCode::NoCredentials, "authHeader needs a key");
}

/// A key that was not given for an address does not go there.
#[test]
fn keys_go_to_their_own_address_only() {
    if !inside("keys_go_to_their_own_address_only", &[("ANTHROPIC_API_KEY", "from-env"), ("OPENROUTER_API_KEY", "r")]) {
        return;
    }
    let add = |engine: &Engine, provider: &str, url: &str| {
        let mut model = Model::new(provider, "m", "openai-completions");
        model.base_url = url.to_owned();
        engine.add_model(model.clone()).unwrap();
        block_on(engine.credentials().resolve(&model))
    };
    let dir = tempfile::tempdir().unwrap();
    let stored = with_file(dir.path(), json!({"openai": {"type": "api_key", "key": "stored"}}), KeyOptions::default());
    for (provider, url) in [
        ("anthropic", "https://evil.example"),
        ("anthropic", "http://api.anthropic.com"),
        ("openai", "https://evil.example/v1"),
        ("openrouter", "https://evil.example"),
    ] {
        let error = add(&stored, provider, url).unwrap_err();
        assert_eq!(error.code(), ErrorCode::NoCredentials, "{provider} {url}");
        assert!(error.message().contains("another address"), "{error}");
    }
    assert_eq!(key(&add(&stored, "anthropic", "https://api.anthropic.com/other/path").unwrap()), Some("from-env"));
    assert_eq!(key(&add(&stored, "openrouter", "https://openrouter.ai/api/v1").unwrap()), Some("r"));
    assert_eq!(
        key(&add(&stored, "anthropic", "http://localhost:8080").unwrap()),
        None,
        "a server of one's own needs none"
    );
    // Who configures the address means the key to go there, and who gives a key does, too.
    stored.configure_models(r#"{"providers": {"anthropic": {"baseUrl": "https://proxy.example"}}}"#).unwrap();
    assert_eq!(key(&add(&stored, "anthropic", "https://proxy.example").unwrap()), Some("from-env"));
    let given = engine(KeyOptions::default().key("anthropic", "given"));
    assert_eq!(key(&add(&given, "anthropic", "https://other.example").unwrap()), Some("given"));
}

/// A callback is asked for each request and knows what for.
#[test]
fn a_callback_hands_out_short_lived_keys() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let source = move |request: KeyRequest| -> KeyFuture {
        let n = count.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match request.provider.as_str() {
                "anthropic" => Ok(Some(Key::bearer(format!("{}@{}#{n}", request.model, request.base_url)))),
                "openai" => Err("the vault is closed".to_owned()),
                _ => Ok(None),
            }
        })
    };
    let engine = engine(quiet().source(Arc::new(source)));
    let auth = resolve(&engine, CLAUDE).unwrap();
    assert_eq!((key(&auth), auth.bearer), (Some("claude-fable-5@https://api.anthropic.com#0"), true));
    assert_eq!(key(&resolve(&engine, CLAUDE).unwrap()), Some("claude-fable-5@https://api.anthropic.com#1"));
    let error = resolve(&engine, "openai/gpt-5").unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoCredentials);
    assert!(error.message().contains("the vault is closed"), "{error}");
    assert_eq!(key(&resolve(&engine, "google/gemini-2.5-pro").unwrap()), None);
}

/// P37: addresses with variables in them.
#[test]
fn p37_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let entries =
        json!({"cloudflare-workers-ai": {"type": "api_key", "key": "k", "env": {"CLOUDFLARE_ACCOUNT_ID": "acc"}}});
    let engine = with_file(dir.path(), entries, quiet());
    engine.configure_models(r#"{"providers": {"cloudflare-workers-ai": {"models": [{"id": "m"}]}, "x": {"baseUrl": "https://{NOT_SET_ANYWHERE}/", "api": "openai-completions", "models": [{"id": "m"}]}}}"#).unwrap();
    let auth = resolve(&engine, "cloudflare-workers-ai/m").unwrap();
    assert_eq!(auth.base_url.as_deref(), Some("https://api.cloudflare.com/client/v4/accounts/acc/ai/v1"));
    assert!(resolve(&engine, "x/m").unwrap_err().message().contains("NOT_SET_ANYWHERE"));
}

/// P30: a prompt without a key fails before anything is stored, and says what to do.
#[test]
fn p30_a_prompt_without_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(KeyOptions::default().environment(false));
    let session =
        block_on(engine.create_session(SessionOptions::new(dir.path()).in_memory(true).model(CLAUDE))).unwrap();
    let before = session.leaf();
    let error = block_on(session.prompt("go", Default::default())).err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoCredentials);
    assert!(error.message().starts_with("No API key for provider: anthropic"), "{error}");
    assert_eq!(session.leaf(), before);
}

/// Nothing shows a key.
#[test]
fn keys_are_not_shown() {
    let options = KeyOptions::default().key("anthropic", "very-secret");
    let shown = format!("{options:?}");
    let engine = engine(options);
    let auth = resolve(&engine, CLAUDE).unwrap();
    for text in [shown, format!("{engine:?}"), format!("{auth:?}"), format!("{:?}", Key::new("very-secret"))] {
        assert!(!text.contains("very-secret"), "{text}");
    }
}

/// A service on this machine that gives every request the same answer; what it was sent.
fn service(answer: &'static str) -> (String, std::sync::mpsc::Receiver<String>) {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if let Some(number) = line.to_lowercase().strip_prefix("content-length:") {
                    length = number.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let _ = sender.send(head + &String::from_utf8_lossy(&body));
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes()));
        }
    });
    (address, receiver)
}

const ANSWER: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"model\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n\
event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n\
event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// Over the wire: key and headers of configuration arrive, and neither the recording, nor the events, nor the session's file
/// has them.
#[test]
fn keys_arrive_and_are_recorded_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let (address, sent) = service(ANSWER);
    let wire = dir.path().join("wire.jsonl");
    let recorder = Arc::new(branchline::providers::WireRecorder::create(&wire).unwrap());
    let options = EngineOptions::default()
        .worker_threads(1)
        .keys(quiet().key("mine", "sk-very-secret-key"))
        .wire_observer(recorder.clone());
    let engine = Engine::new(options).unwrap();
    let config = json!({"providers": {"mine": {"baseUrl": address, "api": "anthropic-messages",
        "headers": {"x-team": "secret-team-token"}, "models": [{"id": "m"}]}}});
    engine.configure_models(&config.to_string()).unwrap();
    let session_options = SessionOptions::new(dir.path()).session_dir(dir.path().join("s")).model("mine/m");
    let session = block_on(engine.create_session(session_options)).unwrap();
    let run = block_on(session.prompt("go", Default::default())).unwrap();
    let mut shown = String::new();
    while let Some(event) = run.events().next_timeout(std::time::Duration::from_secs(20)).unwrap() {
        shown.push_str(&event.to_json());
        if event.type_name() == "agent_settled" {
            break;
        }
    }
    let result = block_on(run.result()).unwrap();
    assert_eq!((result.text.as_str(), result.error_message.as_deref()), ("hello", None));
    let sent = sent.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert!(sent.contains("x-api-key: sk-very-secret-key") && sent.contains("x-team: secret-team-token"), "{sent}");
    recorder.finish();
    let recorded = std::fs::read_to_string(&wire).unwrap();
    assert!(recorded.contains("message_stop") && recorded.contains("\"kind\":\"end\""), "{recorded}");
    let stored = std::fs::read_to_string(session.path().unwrap()).unwrap();
    for text in [recorded, shown, stored] {
        assert!(!text.contains("sk-very-secret-key") && !text.contains("secret-team-token"), "{text}");
    }
}

/// P33: the plans of one vendor have variables of their own, the narrower one first.
#[test]
fn p33_variables_of_plans() {
    let variables = [
        ("QWEN_TOKEN_PLAN_API_KEY", "plain"),
        ("QWEN_TOKEN_PLAN_CN_API_KEY", "cn"),
        ("QWEN_TOKEN_PLAN_TEAM_CN_API_KEY", "team-cn"),
    ];
    if !inside("p33_variables_of_plans", &variables) {
        return;
    }
    let engine = engine(KeyOptions::default());
    let found = |provider: &str| {
        let mut model = Model::new(provider, "m", "openai-completions");
        model.base_url = "https://plan.example/v1".to_owned();
        engine.add_model(model.clone()).unwrap();
        key(&block_on(engine.credentials().resolve(&model)).unwrap()).map(str::to_owned)
    };
    assert_eq!(found("qwen-token-plan").as_deref(), Some("plain"));
    assert_eq!(found("qwen-token-plan-cn").as_deref(), Some("team-cn"));
    assert_eq!(found("qwen-token-plan-individual").as_deref(), Some("plain"));
    assert_eq!(found("qwen-token-plan-individual-cn").as_deref(), Some("cn"));
}

/// P40: `PI_CACHE_RETENTION` counts where the environment counts, and nowhere else.
#[test]
fn p40_cache_retention_of_the_environment() {
    if !inside("p40_cache_retention_of_the_environment", &[("PI_CACHE_RETENTION", "long")]) {
        return;
    }
    for (environment, expected) in [(true, Some("1h")), (false, None)] {
        let server = Server::start(vec![Reply::status(400, &json!({}))]);
        let engine = engine(KeyOptions::default().environment(environment).key("anthropic", "k"));
        let models = json!({"providers": {"anthropic": {"baseUrl": server.url()}}});
        engine.configure_models(&models.to_string()).unwrap();
        block_on(async {
            let options = SessionOptions::new(".").in_memory(true).model(CLAUDE);
            let session = engine.create_session(options).await.unwrap();
            let run = session.prompt("go", Default::default()).await.unwrap();
            while run.next().await.is_some() {}
        });
        let body: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
        let marks = body["system"]
            .as_array()
            .into_iter()
            .flatten()
            .chain(body["messages"][0]["content"].as_array().into_iter().flatten());
        let mark = marks.filter_map(|block| block.get("cache_control")).next().expect("a mark");
        assert_eq!(mark["ttl"].as_str(), expected, "{environment}");
    }
}
