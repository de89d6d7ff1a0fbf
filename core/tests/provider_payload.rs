//! The host's say in bodies before they are sent (P40).

mod provider_support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use branchline::Engine;
use branchline::providers::{Compat, Model, Payload, PayloadFuture, Request, RequestOptions, WireObserver};
use branchline_canned::{Reply, Server};
use provider_support::{KEY, ask, model, options, request, user};
use serde_json::{Value, json};

const PROTOCOLS: [&str; 4] = ["anthropic-messages", "openai-completions", "openai-responses", "google-generative-ai"];

fn engine(hook: impl Fn(Payload) -> PayloadFuture + Send + Sync + 'static) -> Engine {
    Engine::new(options().payload_hook(Arc::new(hook))).unwrap()
}

fn go(api: &str, server: &Server) -> Request {
    request(&model(api, "m", &server.url()), vec![user("go")])
}

/// An answer nobody can read is enough where only the request matters.
fn refusal() -> Reply {
    Reply::status(400, &json!({"error": {"message": "no"}}))
}

fn bodies(server: &Server) -> Vec<Value> {
    server.received().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

/// The bodies an observer sees.
#[derive(Default)]
struct Log(Mutex<Vec<Value>>);

impl WireObserver for Log {
    fn request(&self, _: u64, _: &str, _: &str, _: &[(String, String)], body: &[u8]) {
        self.0.lock().unwrap().push(serde_json::from_slice(body).unwrap());
    }

    fn response(&self, _: u64, _: u16, _: &[(String, String)]) {}
    fn bytes(&self, _: u64, _: &[u8]) {}
    fn end(&self, _: u64) {}
}

#[test]
fn p40_a_body_is_replaced_before_it_is_sent() {
    for api in PROTOCOLS {
        let server = Server::start(vec![refusal()]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, log) = (seen.clone(), Arc::new(Log::default()));
        let hook = move |mut payload: Payload| -> PayloadFuture {
            kept.lock().unwrap().push(payload.clone());
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                payload.body["extra"] = json!({"x": [1, "é"]});
                Ok(Some(payload.body))
            })
        };
        let options = options().payload_hook(Arc::new(hook)).wire_observer(log.clone());
        ask(&Engine::new(options).unwrap(), go(api, &server));
        let sent = bodies(&server);
        let seen = seen.lock().unwrap();
        assert_eq!((sent.len(), seen.len()), (1, 1), "{api}");
        let mut expected = seen[0].body.clone();
        expected["extra"] = json!({"x": [1, "é"]});
        assert_eq!((&sent[0], &*log.0.lock().unwrap()), (&expected, &vec![expected.clone()]), "{api}");
        assert_eq!((&*seen[0].provider, &*seen[0].model, &*seen[0].api), ("demo", "m", api));
        assert!(
            !format!("{:?}", seen[0]).contains(KEY) && format!("{:?}", server.received()[0].headers).contains(KEY),
            "{api}"
        );
    }
}

#[test]
fn p40_without_a_replacement_every_byte_is_as_it_was() {
    let body = |engine: &Engine| {
        let server = Server::start(vec![refusal()]);
        ask(engine, go(PROTOCOLS[0], &server));
        server.received()[0].body.clone()
    };
    let quiet = engine(|_| Box::pin(async { Ok(None) }));
    assert_eq!(body(&quiet), body(&provider_support::engine()));
}

/// Nothing is sent, the reason is told, and the engine goes on.
#[test]
fn p40_a_hook_that_fails_fails_the_request_only() {
    let answers: [fn() -> PayloadFuture; 5] = [
        || panic!("at once"),
        || Box::pin(async { panic!("later") }),
        || Box::pin(async { Ok(Some(json!([1]))) }),
        || Box::pin(async { Err("no such tenant".to_owned()) }),
        || Box::pin(async { Ok(None) }),
    ];
    let turn = Mutex::new(answers.into_iter());
    let engine = engine(move |_| {
        let answer = turn.lock().unwrap().next().unwrap();
        answer()
    });
    let server = Server::start(vec![refusal()]);
    for expected in ["panicked", "panicked", "gave a body that is no JSON object", "failed: no such tenant"] {
        let answer = ask(&engine, go(PROTOCOLS[1], &server));
        assert_eq!((answer.stop(), answer.failed.as_deref()), ("error", None));
        assert_eq!(answer.error(), format!("the payload hook {expected}; nothing was sent"));
    }
    assert!(server.received().is_empty());
    assert!(ask(&engine, go(PROTOCOLS[1], &server)).error().contains("400"));
    assert_eq!(server.received().len(), 1);
}

/// A request that takes the place of a refused one is another body; one that is only sent again is not.
#[test]
fn p40_asked_once_for_each_body() {
    let count = Arc::new(Mutex::new(0));
    let counter = count.clone();
    let engine = engine(move |mut payload| {
        *counter.lock().unwrap() += 1;
        payload.body["at"] = json!(*counter.lock().unwrap());
        Box::pin(async move { Ok(Some(payload.body)) })
    });
    let grammar = Reply::status(400, &json!({"error": {"message": "Too many strict tools: grammar is too large"}}));
    let server = Server::start(vec![Reply::status(503, &json!({})), grammar, refusal()]);
    let mut request = go(PROTOCOLS[0], &server);
    let mut model = Model::clone(&request.model);
    model.compat = Compat::new(json!({"supportsStrictTools": true}).as_object().cloned().unwrap());
    request.model = Arc::new(model);
    let parameters = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let tool = json!({"name": "t", "description": "d", "parameters": parameters, "constrainedSampling": {"type": "json_schema", "strict": "prefer"}});
    request.tools = Arc::new(vec![tool]);
    let mut retried = RequestOptions::default();
    retried.max_retries = 1;
    request.options = Arc::new(retried);
    ask(&engine, request);
    let at: Vec<u64> = bodies(&server).iter().map(|body| body["at"].as_u64().unwrap()).collect();
    assert_eq!(at, [1, 1, 2]);
}

/// A hook that never answers holds up nothing that was aborted.
#[test]
fn p40_an_abort_drops_the_hook() {
    let server = Server::start(vec![refusal()]);
    let request = go(PROTOCOLS[0], &server);
    let cancel = request.cancel.clone();
    let engine = engine(move |_| {
        cancel.cancel();
        Box::pin(std::future::pending())
    });
    assert_eq!(ask(&engine, request).stop(), "aborted");
    assert!(server.received().is_empty());
}
