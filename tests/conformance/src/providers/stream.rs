//! Streaming cases: a request, what the service would answer, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use branchline::message::Message;
use branchline::providers::{
    Auth, AuthFuture, BlockEvent, CacheRetention, Credentials, Model, PartialJson, Request, RequestOptions,
    StreamEvent, ToolChoice,
};
use branchline::{Engine, EngineOptions};
use branchline_canned::{Received, Reply, Server, Then, closed_port};
use futures::StreamExt;
use serde_json::{Value, json};

use super::Case;
use super::compare::{self, Differences};
use crate::report::{Outcome, problem};

/// A case must be over by then.
const LIMIT: Duration = Duration::from_secs(60);

/// What came of a request.
#[derive(Default)]
struct Ended {
    events: Vec<Value>,
    last: Option<Message>,
    thrown: Option<String>,
}

/// Gives the case's key and leads requests to the server, while the model keeps its own address.
struct Keys {
    key: Option<String>,
    base_url: String,
}

impl Credentials for Keys {
    fn resolve<'a>(&'a self, _: &'a Model) -> AuthFuture<'a> {
        let mut auth = self.key.clone().map_or_else(Auth::default, Auth::key);
        auth.base_url = Some(self.base_url.clone());
        Box::pin(std::future::ready(Ok(auth)))
    }
}

/// Runs a case.
pub(super) fn run(case: &Case) -> Outcome {
    let value = &case.value;
    let response = &value["response"];
    let server = Server::start(replies(response));
    let refuses = response["networkError"] == true;
    let address = value["model"]["baseUrl"].as_str().unwrap_or_default();
    let path = address.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap_or_default();
    let base_url = if refuses { closed_port() } else { server.url() } + &path;
    let Some(model) = Model::from_json(&value["model"]) else {
        return Outcome::Failed(vec![problem(".model", "a model", "none")]);
    };
    let key = value["options"]["apiKey"].as_str().map(str::to_owned);
    let options = EngineOptions::default().worker_threads(1).credentials(Arc::new(Keys { key, base_url }));
    let engine = Engine::new(options).expect("an engine");
    engine.add_model(model.clone()).expect("a model");
    let request = request(value, model);

    let wanted = &value["expect"];
    let count = wanted["events"].as_array().map_or(0, Vec::len);
    let abort_after = response["abortAfterBytes"].is_u64().then(|| count.saturating_sub(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let ended = runtime.block_on(async { tokio::time::timeout(LIMIT, ask(&engine, request, abort_after)).await });
    let Ok(ended) = ended else { return Outcome::Failed(vec![problem("", "an end", "none within a minute")]) };
    check(value, &ended, &server.received(), refuses)
}

fn check(value: &Value, ended: &Ended, received: &[Received], refuses: bool) -> Outcome {
    let wanted = &value["expect"];
    let mut differences = Differences::default();
    let defect = value["referenceDefect"].is_string();
    match (wanted["thrown"].as_str(), &ended.thrown) {
        (None, None) => {}
        (Some(wanted), Some(got)) if wanted == got => {}
        (wanted, got) => differences.note(".thrown", &json!(wanted), &json!(got)),
    }
    if !refuses {
        let requests = wanted["requests"].as_array();
        let count = wanted["requestCount"].as_u64().or(requests.map(|all| all.len() as u64));
        if let Some(count) = count.filter(|count| *count != received.len() as u64) {
            differences.note(".requestCount", &count.into(), &received.len().into());
        }
        for (at, (wanted, got)) in requests.into_iter().flatten().zip(received).enumerate() {
            let path = wanted["url"].as_str().and_then(|url| url.splitn(4, '/').nth(3)).unwrap_or_default();
            differences.value(&format!(".requests[{at}].url"), &format!("/{path}").into(), &got.path.as_str().into());
            differences.value(&format!(".requests[{at}].method"), &wanted["method"], &got.method.as_str().into());
            differences.body(&format!(".requests[{at}].body"), &wanted["body"], &got.json());
            for name in ["x-api-key", "authorization", "x-goog-api-key", "anthropic-beta", "anthropic-version"] {
                let (wanted, got) = (wanted["headers"][name].as_str(), got.header(name));
                differences.value(&format!(".requests[{at}].headers.{name}"), &json!(wanted), &json!(got));
            }
        }
    }
    let last = ended.last.clone().map(|mut last| {
        last.object_mut().shift_remove("timestamp");
        last.object_mut().shift_remove("durationMs");
        last.into_value()
    });
    if defect {
        // The only case so far: what was cut anywhere reads as what was not cut.
        let last = last.unwrap_or_default();
        differences.value(".final.content", &json!([{"type": "text", "text": "é🍋!"}]), &last["content"]);
        differences.value(".final.stopReason", &"stop".into(), &last["stopReason"]);
        return differences.outcome(Some("D-sse-splits"));
    }
    let mut wanted = wanted.clone();
    differences.on_purpose(&mut wanted, last.as_ref().unwrap_or(&Value::Null));
    if wanted["events"].is_array() {
        differences.value(".events", &wanted["events"], &Value::Array(ended.events.clone()));
    }
    if wanted["final"].is_object() {
        differences.last(&wanted["final"], &last.unwrap_or_default(), value["response"]["status"].is_u64());
    }
    differences.outcome(None)
}

async fn ask(engine: &Engine, request: Request, abort_after: Option<usize>) -> Ended {
    let cancel = request.cancel.clone();
    let mut ended = Ended::default();
    let mut arguments: Vec<PartialJson> = Vec::new();
    let mut stream = match engine.stream(request) {
        Ok(stream) => stream,
        Err(error) => return Ended { thrown: Some(error.to_string()), ..ended },
    };
    while let Some(event) = stream.next().await {
        match event {
            StreamEvent::Start(_) => ended.events.push(json!({"type": "start"})),
            StreamEvent::Block(event) => ended.events.push(block_event(&event, &mut arguments)),
            StreamEvent::Done(message) => {
                let reason = message.get_str("stopReason").unwrap_or_default();
                let kind = if matches!(reason, "error" | "aborted") { "error" } else { "done" };
                ended.events.push(json!({"type": kind, "reason": reason}));
                ended.last = Some(message);
            }
            StreamEvent::Failed(reason) => ended.thrown = Some(reason),
            _ => {}
        }
        if abort_after == Some(ended.events.len()) {
            cancel.cancel();
        }
    }
    ended
}

fn block_event(event: &BlockEvent, arguments: &mut Vec<PartialJson>) -> Value {
    let mut out = json!({"type": event.type_name(), "contentIndex": event.index()});
    match event {
        BlockEvent::TextDelta { delta, .. } | BlockEvent::ThinkingDelta { delta, .. } => {
            out["delta"] = (&**delta).into()
        }
        BlockEvent::TextEnd { content, .. } | BlockEvent::ThinkingEnd { content, .. } => {
            out["content"] = (&**content).into();
        }
        BlockEvent::ToolCallDelta { index, delta } => {
            if arguments.len() <= *index {
                arguments.resize_with(index + 1, PartialJson::new);
            }
            arguments[*index].push(delta);
            out["delta"] = (&**delta).into();
            out["argsNow"] = arguments[*index].object().into();
        }
        BlockEvent::ToolCallEnd { tool_call, .. } => out["toolCall"] = compare::shortened(tool_call),
        _ => {}
    }
    out
}

fn request(value: &Value, model: Model) -> Request {
    let context = &value["context"];
    let mut messages = Vec::new();
    let (prompt, tools) = (context["systemPrompt"].as_str(), context["tools"].as_array());
    if prompt.is_some() || tools.is_some() {
        let mut system = json!({"role": "system", "content": prompt.unwrap_or_default(), "timestamp": 0});
        if let Some(tools) = tools {
            system["toolsAdded"] = tools.clone().into();
        }
        messages.push(system);
    }
    messages.extend(context["messages"].as_array().cloned().unwrap_or_default());
    let messages: Vec<Arc<Message>> = messages.into_iter().filter_map(Message::from_value).map(Arc::new).collect();
    let folded = branchline::tree::fold_system(messages.iter().map(Arc::as_ref));
    let tools = folded.and_then(|system| system.get("toolsAdded").and_then(Value::as_array).cloned());
    let given = &value["options"];
    let text = |key: &str| given[key].as_str();
    let mut request = Request::new(Arc::new(model), messages);
    request.tools = Arc::new(tools.unwrap_or_default());
    request.thinking_level = text("reasoning").unwrap_or("off").to_owned();
    request.session_id = text("sessionId").unwrap_or_default().to_owned();
    request.options = Arc::new(options(given));
    if value["abortBefore"] == true {
        request.cancel.cancel();
    }
    request
}

fn options(given: &Value) -> RequestOptions {
    let object = |key: &str| given[key].as_object().cloned().unwrap_or_default();
    let mut options = RequestOptions::default();
    options.temperature = given["temperature"].as_f64();
    options.max_tokens = given["maxTokens"].as_u64();
    options.sampling_params = object("samplingParams");
    options.cache_retention = match given["cacheRetention"].as_str() {
        Some("none") => CacheRetention::None,
        Some("long") => CacheRetention::Long,
        _ => CacheRetention::Short,
    };
    options.metadata = object("metadata");
    let budgets = object("thinkingBudgets").into_iter();
    options.thinking_budgets = budgets.filter_map(|(level, tokens)| Some((level, tokens.as_u64()?))).collect();
    options.tool_choice = match given["toolChoice"].as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        _ => None,
    };
    options.service_tier = given["serviceTier"].as_str().map(str::to_owned);
    let headers = object("headers").into_iter();
    options.headers = headers.map(|(name, value)| (name, value.as_str().map(str::to_owned))).collect();
    options.max_retries = given["maxRetries"].as_u64().unwrap_or(0) as u32;
    if let Some(limit) = given["maxRetryDelayMs"].as_u64() {
        options.max_retry_delay = (limit > 0).then(|| Duration::from_millis(limit));
    }
    options
}

/// The answers as the server plays them.
fn replies(response: &Value) -> Vec<Reply> {
    match response {
        Value::Array(all) => all.iter().map(reply).collect(),
        one => vec![reply(one)],
    }
}

fn reply(response: &Value) -> Reply {
    let mut reply = if let Some(raw) = response["raw"].as_str() {
        Reply::sse(raw)
    } else if let Some(status) = response["status"].as_u64() {
        let body = match &response["body"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            body => body.to_string(),
        };
        Reply { body: body.into_bytes(), ..Reply::status(status as u16, &Value::Null) }
    } else {
        let mut body = String::new();
        for event in response["sse"].as_array().into_iter().flatten() {
            if let Some(raw) = event.as_str() {
                body.push_str(raw);
                continue;
            }
            if let Some(name) = event["event"].as_str() {
                body.push_str(&format!("event: {name}\n"));
            }
            let data = event["data"].as_str().map_or_else(|| event["data"].to_string(), str::to_owned);
            body.push_str(&format!("data: {data}\n\n"));
        }
        Reply::sse(body)
    };
    for (name, value) in response["headers"].as_object().into_iter().flatten() {
        reply = reply.header(name, value.as_str().unwrap_or_default());
    }
    reply.chunk = response["chunk"].as_u64().unwrap_or(0) as usize;
    if response["hang"] == true {
        reply.then = Then::Hang;
    }
    reply
}
