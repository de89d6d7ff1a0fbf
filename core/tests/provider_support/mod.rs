//! A real HTTP server on loopback in front of the engine's own client.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::sync::Arc;

use branchline::message::Message;
use branchline::providers::{Auth, AuthFuture, Credentials, Model, Request, StreamEvent};
use branchline::{Engine, EngineOptions};
use branchline_canned::Server;
use futures::StreamExt;
use serde_json::{Value, json};

/// The key of every test.
pub const KEY: &str = "sk-test-0123456789";

struct Fixed;

impl Credentials for Fixed {
    fn resolve<'a>(&'a self, _: &'a Model) -> AuthFuture<'a> {
        Box::pin(std::future::ready(Ok(Auth::key(KEY))))
    }
}

/// Options with the test key and one worker thread.
pub fn options() -> EngineOptions {
    EngineOptions::default().worker_threads(1).credentials(Arc::new(Fixed))
}

/// An engine with the test key.
pub fn engine() -> Engine {
    Engine::new(options()).unwrap()
}

/// A reasoning model that sees images, with prices.
pub fn model(api: &str, id: &str, base_url: &str) -> Model {
    let value = json!({"provider": "demo", "id": id, "api": api, "baseUrl": base_url, "reasoning": true,
        "input": ["text", "image"], "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
        "contextWindow": 200_000, "maxTokens": 8000});
    Model::from_json(&value).unwrap()
}

/// A request with these messages.
pub fn request(model: &Model, messages: Vec<Value>) -> Request {
    let messages = messages.into_iter().map(|it| Arc::new(Message::from_value(it).unwrap())).collect();
    Request::new(Arc::new(model.clone()), messages)
}

/// A user message.
pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": text, "timestamp": 1})
}

/// A response of `model`.
pub fn assistant(model: &Model, content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": model.api, "provider": model.provider, "model": model.id,
        "usage": {"input": 1, "output": 1, "totalTokens": 2}, "stopReason": "toolUse", "timestamp": 2})
}

/// A result of a call.
pub fn result(id: &str, name: &str, text: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": name, "content": [{"type": "text", "text": text}],
        "isError": false, "timestamp": 3})
}

/// A call.
pub fn call(id: &str, name: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": {"a": 1}})
}

/// Everything that came of a request.
#[derive(Debug, Default)]
pub struct Answer {
    /// The events.
    pub events: Vec<StreamEvent>,
    /// The final message.
    pub message: Message,
    /// Why the run failed.
    pub failed: Option<String>,
}

impl Answer {
    /// How it ended.
    pub fn stop(&self) -> &str {
        self.message.get_str("stopReason").unwrap_or_default()
    }

    /// The error, or nothing.
    pub fn error(&self) -> &str {
        self.message.get_str("errorMessage").unwrap_or_default()
    }

    /// All text.
    pub fn text(&self) -> String {
        self.message.text("|")
    }
}

/// Asks and collects.
pub fn ask(engine: &Engine, request: Request) -> Answer {
    branchline::block_on(ask_async(engine, request))
}

/// The same for tests that do something at the same time.
pub async fn ask_async(engine: &Engine, request: Request) -> Answer {
    let mut answer = Answer::default();
    // A model of a test is there from its first request on.
    engine.add_model(Model::clone(&request.model)).unwrap();
    let mut stream = engine.stream(request).unwrap();
    while let Some(event) = stream.next().await {
        match &event {
            StreamEvent::Done(message) => answer.message = message.clone(),
            StreamEvent::Failed(reason) => answer.failed = Some(reason.clone()),
            _ => {}
        }
        answer.events.push(event);
    }
    answer
}

/// The body of the last request.
pub fn last_body(server: &Server) -> Value {
    server.received().last().expect("a request").json()
}
