//! What all protocols share: keys, redirects, patience, time limits, connections (P100–P106).

mod provider_support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use branchline::providers::{Model, NetworkOptions, ProxyChoice, Request, RequestOptions, StreamEvent, WireObserver};
use branchline::{Engine, EventKind, PromptOptions, SessionOptions};
use branchline_canned::{Reply, Server, Then, closed_port, events};
use futures::StreamExt;
use provider_support::{Answer, KEY, ask, ask_async, engine, model, options, request, user};
use serde_json::{Value, json};

const API: &str = "anthropic-messages";

fn reply(text: &str) -> Reply {
    Reply::sse(events([
        ("message_start", json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}})),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}}),
        ),
        ("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
        (
            "message_delta",
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        ),
        ("message_stop", json!({"type": "message_stop"})),
    ]))
}

fn go(server: &Server) -> Request {
    request(&model(API, "m", &server.url()), vec![user("go")])
}

fn with(mut request: Request, change: impl FnOnce(&mut RequestOptions)) -> Request {
    let mut options = RequestOptions::default();
    change(&mut options);
    request.options = Arc::new(options);
    request
}

fn refusal(status: u16) -> Reply {
    Reply::status(status, &json!({"error": {"message": format!("bad key {KEY}, sorry")}}))
}

#[test]
fn we_say_who_we_are() {
    let server = Server::start(vec![reply("ok")]);
    let answer = ask(&engine(), go(&server));
    assert_eq!((answer.stop(), answer.text().as_str()), ("stop", "ok"));
    let received = server.received();
    assert_eq!(received[0].header("user-agent"), Some(concat!("branchline/", env!("CARGO_PKG_VERSION"))));
    assert_eq!((received[0].method.as_str(), received[0].header("x-api-key")), ("POST", Some(KEY)));
}

#[test]
fn a_key_does_not_follow_a_redirect_to_another_origin() {
    let other = Server::start(vec![reply("there")]);
    let target = format!("{}/elsewhere", other.url());
    let server = Server::start(vec![Reply::status(307, &Value::Null).header("location", &target)]);
    let mut model = model(API, "m", &server.url());
    model.headers = vec![("x-tenant".to_owned(), Some("inner".to_owned()))];
    let answer = ask(&engine(), request(&model, vec![user("go")]));
    assert_eq!(answer.text(), "there");
    let received = &other.received()[0];
    assert_eq!((received.path.as_str(), received.method.as_str()), ("/elsewhere", "POST"));
    assert_eq!(received.json()["model"], "m");
    assert!(received.headers.iter().all(|(name, value)| !value.contains(KEY) && name != "x-tenant"), "{received:?}");
    assert_eq!(server.received()[0].header("x-tenant"), Some("inner"));

    // On the same origin it does.
    let server = Server::start(vec![Reply::status(308, &Value::Null).header("location", "/moved"), reply("here")]);
    assert_eq!(ask(&engine(), go(&server)).text(), "here");
    assert_eq!(server.received()[1].header("x-api-key"), Some(KEY));

    // What would turn the request into another one is not followed.
    let server = Server::start(vec![Reply::status(302, &Value::Null).header("location", &target)]);
    let answer = ask(&engine(), go(&server));
    assert!(answer.stop() == "error" && answer.error().contains("has moved to"), "{}", answer.error());
    let server = Server::start(vec![Reply::status(307, &Value::Null).header("location", "/round")]);
    assert!(ask(&engine(), go(&server)).error().contains("circle"));
}

#[test]
fn keys_are_in_no_error() {
    let server = Server::start(vec![refusal(401)]);
    let answer = ask(&engine(), go(&server));
    assert!(
        answer.error().starts_with("401 ") && answer.error().contains("bad key [secret], sorry"),
        "{}",
        answer.error()
    );
    let shown = format!("{answer:?}");
    assert!(!shown.contains(KEY), "{shown}");

    let server = Server::start(vec![Reply::sse(format!("event: error\ndata: no {KEY}\n\n"))]);
    assert_eq!(ask(&engine(), go(&server)).error(), "no [secret]");

    // A header that cannot be sent is named without its value.
    let mut broken = go(&server);
    broken = with(broken, |options| options.api_key = Some("line\nbreak-secret".to_owned().into()));
    let answer = ask(&engine(), broken);
    assert!(answer.error().contains("x-api-key") && !answer.error().contains("break-secret"), "{}", answer.error());
}

#[test]
fn p30_no_key_is_a_failure_of_the_run() {
    let server = Server::start(vec![reply("ok")]);
    let engine = Engine::new(branchline::EngineOptions::default().worker_threads(1)).unwrap();
    engine.add_model(model(API, "m", &server.url())).unwrap();
    let answer = ask(&engine, go(&server));
    assert_eq!(answer.failed.as_deref(), Some("No API key for provider: demo"));
    assert!(server.received().is_empty());
}

#[test]
fn p6_an_api_nobody_implements_is_named() {
    let answer =
        ask(&engine(), request(&model("bedrock-converse-stream", "m", "http://127.0.0.1:9"), vec![user("go")]));
    assert!(answer.error().contains("bedrock-converse-stream") && answer.error().contains("anthropic-messages"));
}

#[test]
fn p103_p104_refusals_are_repeated_as_often_as_asked() {
    let server = Server::start(vec![
        refusal(500).header("retry-after-ms", "10"),
        refusal(429).header("retry-after-ms", "20"),
        reply("third"),
    ]);
    let answer = ask(&engine(), with(go(&server), |options| options.max_retries = 2));
    assert_eq!((answer.text().as_str(), server.received().len()), ("third", 3));

    let server = Server::start(vec![refusal(500).header("x-should-retry", "false"), reply("never")]);
    assert_eq!(ask(&engine(), with(go(&server), |options| options.max_retries = 2)).stop(), "error");
    let server = Server::start(vec![
        refusal(400).header("x-should-retry", "true").header("retry-after-ms", "1"),
        reply("again"),
    ]);
    assert_eq!(ask(&engine(), with(go(&server), |options| options.max_retries = 1)).text(), "again");
}

#[test]
fn p105_a_pause_that_is_too_long_fails_at_once() {
    let server = Server::start(vec![refusal(429).header("retry-after", "120")]);
    let answer = ask(&engine(), with(go(&server), |options| options.max_retries = 3));
    assert!(answer.error().contains("retry delay of 120 s") && answer.error().contains("60 s"), "{}", answer.error());
    assert!(
        answer.events.iter().any(|event| matches!(event, StreamEvent::RetryAfter(pause) if pause.as_secs() == 120))
    );
    assert_eq!(server.received().len(), 1);
}

#[test]
fn p102_nobody_listens() {
    let address = closed_port();
    let answer = ask(&engine(), request(&model(API, "m", &address), vec![user("go")]));
    assert!(
        answer.error().starts_with("Connection error: ") && answer.error().contains("ECONNREFUSED"),
        "{}",
        answer.error()
    );
    assert!(branchline::agent::classify::is_retryable(answer.error()));
}

#[test]
fn p100_aborts_before_and_while_waiting() {
    let server = Server::start(vec![refusal(429).header("retry-after", "30")]);
    let before = go(&server);
    before.cancel.cancel();
    assert_eq!(ask(&engine(), before).stop(), "aborted");
    assert!(server.received().is_empty());

    let waiting = with(go(&server), |options| options.max_retries = 5);
    let cancel = waiting.cancel.clone();
    let begun = Instant::now();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel();
    });
    assert_eq!(ask(&engine(), waiting).stop(), "aborted");
    assert!(begun.elapsed() < Duration::from_secs(20));
    thread.join().unwrap();
}

#[test]
fn a_silent_service_is_given_up() {
    let server = Server::start(vec![Reply::sse(": hello\n\n").then(Then::Hang)]);
    let answer =
        ask(&engine(), with(go(&server), |options| options.idle_timeout = Some(Some(Duration::from_millis(200)))));
    assert!(answer.error().contains("timed out"), "{}", answer.error());
    assert!(branchline::agent::classify::is_retryable(answer.error()));
    assert!(server.wait(|server| server.hangups() == 1));
}

/// P40, P801: `timeoutMs` limits the wait for the beginning of an answer, for each try, and not the answer.
#[test]
fn p801_a_service_that_does_not_begin() {
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", mute.local_addr().unwrap());
    let connections = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = connections.clone();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in mute.incoming() {
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            open.push(stream);
        }
    });
    let limits = |options: &mut RequestOptions| {
        options.timeout = Some(Duration::from_millis(100));
        options.max_retries = 1;
    };
    let answer = ask(&engine(), with(request(&model(API, "m", &url), vec![user("go")]), limits));
    assert!(answer.error().contains("timed out"), "{}", answer.error());
    assert!(branchline::agent::classify::is_retryable(answer.error()));
    assert_eq!(connections.load(std::sync::atomic::Ordering::SeqCst), 2);
    let slow = Server::start(vec![reply("slow").chunked(16).paced(Duration::from_millis(10))]);
    assert_eq!(ask(&engine(), with(go(&slow), limits)).text(), "slow");
}

#[test]
fn one_connection_serves_many_requests() {
    let server = Server::start(vec![reply("ok")]);
    let engine = engine();
    for _ in 0..5 {
        assert_eq!(ask(&engine, go(&server)).text(), "ok");
        // The end of the body is read in the background.
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(server.received().iter().all(|request| request.connection == 0), "{:?}", server.received());
}

#[test]
fn one_refusal_holds_the_others_back() {
    let server = Server::start(vec![refusal(429).header("retry-after-ms", "400"), reply("ok")]);
    let engine = engine();
    let first = ask(&engine, go(&server));
    assert_eq!(first.stop(), "error");
    let begun = Instant::now();
    let second = ask(&engine, go(&server));
    assert_eq!(second.text(), "ok");
    assert!(begun.elapsed() >= Duration::from_millis(300), "the second request waited");
    assert_eq!(server.received().len(), 2);
}

#[test]
fn only_so_many_requests_at_a_time() {
    let server = Server::start(vec![reply("ok").chunked(100).paced(Duration::from_millis(50))]);
    let engine = Engine::new(options().network(NetworkOptions::default().max_requests_per_origin(1))).unwrap();
    let answers: Vec<Answer> = branchline::block_on(async {
        futures::future::join_all([ask_async(&engine, go(&server)), ask_async(&engine, go(&server))]).await
    });
    assert!(answers.iter().all(|answer| answer.text() == "ok"));
    let received = server.received();
    assert!(received[1].at.duration_since(received[0].at) >= Duration::from_millis(150));
}

#[test]
fn a_proxy_of_the_engine_is_used() {
    let proxy = Server::start(vec![reply("through")]);
    let network = NetworkOptions::default().proxy(ProxyChoice::Url(proxy.url()));
    let engine = Engine::new(options().network(network.header("x-extra", "1"))).unwrap();
    let answer = ask(&engine, request(&model(API, "m", "http://models.invalid"), vec![user("go")]));
    assert_eq!(answer.text(), "through", "{}", answer.error());
    let received = &proxy.received()[0];
    assert!(received.path.starts_with("http://models.invalid/v1/messages"), "{}", received.path);
    assert_eq!(received.header("x-extra"), Some("1"));
}

#[test]
fn a_file_of_certificates_that_is_none_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, "nothing").unwrap();
    let engine = Engine::new(options().network(NetworkOptions::default().ca_file(&path))).unwrap();
    let answer = ask(&engine, request(&model(API, "m", "https://127.0.0.1:9"), vec![user("go")]));
    assert!(answer.error().contains("ca.pem"), "{}", answer.error());
}

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl WireObserver for Log {
    fn request(&self, exchange: u64, method: &str, url: &str, headers: &[(String, String)], body: &[u8]) {
        let line = format!("{exchange} {method} {url} {headers:?} {}", String::from_utf8_lossy(body));
        self.0.lock().unwrap().push(line);
    }

    fn response(&self, exchange: u64, status: u16, _: &[(String, String)]) {
        self.0.lock().unwrap().push(format!("{exchange} {status}"));
    }

    fn bytes(&self, exchange: u64, bytes: &[u8]) {
        self.0.lock().unwrap().push(format!("{exchange} {}", String::from_utf8_lossy(bytes)));
    }

    fn end(&self, exchange: u64) {
        self.0.lock().unwrap().push(format!("{exchange} end"));
    }
}

#[test]
fn an_observer_sees_the_traffic_without_keys() {
    let server = Server::start(vec![reply("seen")]);
    let log = Arc::new(Log::default());
    let engine = Engine::new(options().wire_observer(log.clone())).unwrap();
    ask(&engine, go(&server));
    assert!(server.wait(|_| log.0.lock().unwrap().last().is_some_and(|line| line.ends_with("end"))));
    let lines = log.0.lock().unwrap().clone();
    let all = lines.join("\n");
    assert!(lines[0].starts_with("0 POST http://127.0.0.1") && lines[1] == "0 200", "{all}");
    assert!(all.contains("[secret]") && all.contains("seen") && !all.contains(KEY), "{all}");
}

#[test]
fn bug_68_bug_69_answers_do_not_depend_on_how_they_are_cut() {
    let text = "é🍋字 \\ \"q\"";
    let body = String::from_utf8(reply(text).body).unwrap();
    let crlf = body.replace('\n', "\r\n");
    let cr = body.replace('\n', "\r");
    for (body, chunk) in [(&body, 1), (&crlf, 1), (&cr, 1), (&crlf, 7), (&body, 0)] {
        let server = Server::start(vec![Reply::sse(format!("\u{feff}: hi\n{body}")).chunked(chunk)]);
        let answer = ask(&engine(), go(&server));
        assert_eq!((answer.stop(), answer.text().as_str()), ("stop", text), "{}", answer.error());
    }
}

#[test]
fn the_loop_waits_as_long_as_the_service_asks() {
    let server = Server::start(vec![refusal(429).header("retry-after-ms", "700"), reply("done")]);
    let engine = engine();
    engine.add_model(model(API, "m", &server.url())).unwrap();
    let settings = json!({"retry": {"baseDelayMs": 1}});
    let options = SessionOptions::new(".")
        .in_memory(true)
        .model("demo/m")
        .settings(branchline::resources::settings::Settings::from_values(settings.as_object().cloned().unwrap()));
    branchline::block_on(async {
        let session = engine.create_session(options).await.unwrap();
        let run = session.prompt("go", PromptOptions::default()).await.unwrap();
        let mut delay = None;
        while let Some(event) = run.next().await {
            if let EventKind::AutoRetryStart { wait } = event.kind() {
                delay = Some(wait.delay_ms);
            }
        }
        assert_eq!(delay, Some(700));
        assert_eq!(run.result().await.unwrap().text, "done");
    });
    assert_eq!(server.received().len(), 2);
}

#[test]
fn a_stream_that_is_dropped_ends_its_request() {
    let server = Server::start(vec![Reply { body: reply("x").body[..200].to_vec(), ..reply("x") }.then(Then::Hang)]);
    let engine = engine();
    engine.add_model(model(API, "m", &server.url())).unwrap();
    branchline::block_on(async {
        let mut stream = engine.stream(go(&server)).unwrap();
        assert!(matches!(stream.next().await, Some(StreamEvent::Start(_))));
    });
    assert!(server.wait(|server| server.hangups() == 1));
}

#[test]
fn models_can_be_replaced_and_are_listed() {
    let engine = engine();
    let mut model = Model::new("local", "a/b:c", "openai-completions");
    engine.add_model(model.clone()).unwrap();
    model.context_window = 7;
    engine.add_model(model).unwrap();
    let found: Vec<u64> =
        engine.models().iter().filter(|model| model.provider == "local").map(|model| model.context_window).collect();
    assert_eq!(found, [7]);
    assert!(engine.add_model(Model::new("scripted", "x", "y")).is_err());
}
