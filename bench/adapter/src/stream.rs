//! Streaming cases: a session whose model answers from a server on loopback (`bench/srv/sse.mjs`), and answers read from memory.

use std::sync::Arc;
use std::time::Instant;

use branchline::providers::{Auth, AuthFuture, BlockEvent, Credentials, Model, StreamEvent, read_recorded};
use branchline::resources::settings::Settings;
use branchline::{Engine, EngineOptions, PromptOptions, Session, SessionOptions, block_on};
use serde_json::{Value, json};

use crate::agent::{cpu_ms, number};
use crate::{Memory, Result, timed};

/// The cases of this file; `None` for another one.
pub(crate) fn run(case: &str, params: &Value) -> Option<Result<Value>> {
    Some(match case {
        "loop.sse" => sse(params),
        "loop.longctx" => long_context(params),
        "stream.read" => read(params),
        _ => return None,
    })
}

struct Key;

impl Credentials for Key {
    fn resolve<'a>(&'a self, _: &'a Model) -> AuthFuture<'a> {
        Box::pin(std::future::ready(Ok(Auth::key("k"))))
    }
}

struct Host {
    // Dropped after the session.
    session: Session,
    _engine: Engine,
    _dir: tempfile::TempDir,
}

/// A session without tools whose model is `tok-<tokens>` of the server.
fn host(params: &Value, tokens: usize, file: Option<&str>) -> Result<Host> {
    let dir = tempfile::tempdir()?;
    let options = EngineOptions::default().agent_dir(dir.path().join("agent")).credentials(Arc::new(Key));
    let engine = Engine::new(options)?;
    let mut model = Model::new("bench", format!("tok-{tokens}"), "openai-completions");
    model.base_url = format!("http://127.0.0.1:{}/v1", params["port"]);
    (model.context_window, model.max_tokens) = (1_000_000_000, 1_000_000);
    engine.add_model(model)?;
    let settings = json!({"compaction": {"enabled": false}, "retry": {"enabled": false}});
    let mut options = SessionOptions::new(dir.path())
        .model(format!("bench/tok-{tokens}"))
        .settings(Settings::from_values(settings.as_object().cloned().unwrap_or_default()))
        .session_dir(dir.path().join("sessions"));
    options.tools = Some(Vec::new());
    options.in_memory = file.is_none();
    let session = match file {
        Some(file) => {
            let copy = dir.path().join("s.jsonl");
            std::fs::copy(file, &copy)?;
            block_on(engine.open_session(copy, options))?
        }
        None => block_on(engine.create_session(options))?,
    };
    Ok(Host { session, _engine: engine, _dir: dir })
}

/// One prompt: time to the first text, deltas, characters.
fn prompt(session: &Session, text: String) -> Result<(f64, usize, usize)> {
    let start = Instant::now();
    let (mut first, mut deltas, mut chars) = (None, 0, 0);
    let run = block_on(session.prompt(text, PromptOptions::default()))?;
    loop {
        let batch = block_on(run.events().next_batch(256));
        if batch.is_empty() {
            break;
        }
        for text in batch.iter().filter_map(|event| event.text_delta()) {
            first.get_or_insert_with(|| start.elapsed().as_secs_f64() * 1e3);
            deltas += 1;
            chars += text.encode_utf16().count();
        }
    }
    let result = block_on(run.result())?;
    if result.stop_reason != Some(branchline::message::StopReason::Stop) {
        return Err(format!("bad stop: {:?}", result.error_message).into());
    }
    Ok((first.unwrap_or(0.0), deltas, chars))
}

/// The spread of some times.
fn quantiles(mut times: Vec<f64>) -> Value {
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times.get((part * times.len().saturating_sub(1) as f64) as usize).copied().unwrap_or(0.0);
    json!({"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0)})
}

/// `prompts` answers of `tokens` text deltas. params: {port, tokens, prompts}
fn sse(params: &Value) -> Result<Value> {
    let (tokens, prompts) = (number(params, "tokens", 100_000), number(params, "prompts", 1));
    let host = host(params, tokens, None)?;
    let (mut ms, mut firsts, mut chars) = (Vec::new(), Vec::new(), 0);
    let (memory, cpu) = (Memory::start(), cpu_ms());
    for at in 0..prompts {
        let (time, (first, _, got)) = timed(|| prompt(&host.session, format!("prompt {at}")))?;
        ms.push(time);
        firsts.push(first);
        chars += got;
    }
    let cpu = cpu_ms() - cpu;
    let all = (tokens * prompts) as f64;
    let mut report = memory.report(&ms, json!({"got": tokens * prompts, "chars": chars}));
    report["cpu_ms"] = json!(cpu);
    report["ttft_ms"] = quantiles(firsts);
    report["tokens_per_s"] = json!(all / ms.iter().sum::<f64>() * 1e3);
    report["cpu_us_per_token"] = json!(cpu * 1e3 / all);
    Ok(report)
}

/// One-token answers on a long context. params: {port, file, prompts}
fn long_context(params: &Value) -> Result<Value> {
    let prompts = number(params, "prompts", 20);
    let host = host(params, 1, params["file"].as_str())?;
    let (mut ms, mut firsts) = (Vec::new(), Vec::new());
    let (memory, cpu) = (Memory::start(), cpu_ms());
    for at in 0..prompts {
        let (time, (first, ..)) = timed(|| prompt(&host.session, format!("prompt {at}")))?;
        ms.push(time);
        firsts.push(first);
    }
    let cpu = cpu_ms() - cpu;
    let mut report = memory.report(&ms, json!({}));
    report["ttft_ms"] = quantiles(firsts);
    report["cpu_ms_per_prompt"] = json!(cpu / prompts as f64);
    Ok(report)
}

/// An answer of `tokens` text deltas read from memory: what parsing and assembling alone cost. params: {api, tokens}
fn read(params: &Value) -> Result<Value> {
    let tokens = number(params, "tokens", 100_000);
    let api = params["api"].as_str().unwrap_or("anthropic-messages");
    let (begin, delta, end) = match api {
        "anthropic-messages" => (
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\n\
             event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" function\"}}\n\n",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n\
             event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        "google-generative-ai" => (
            "",
            "data: {\"responseId\":\"g\",\"candidates\":[{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\" function\"}]}}]}\n\n",
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
        ),
        "openai-completions" => (
            "",
            "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1767600000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" function\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
            "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        other => return Err(format!("no answers of {other}").into()),
    };
    let body = format!("{begin}{}{end}", delta.repeat(tokens));
    let (memory, cpu) = (Memory::start(), cpu_ms());
    let (total, events) =
        timed(|| read_recorded(Model::new("p", "m", api), body.as_bytes()).ok_or_else(|| "no such protocol".into()))?;
    let cpu = cpu_ms() - cpu;
    let text = |event: &&StreamEvent| matches!(event, StreamEvent::Block(BlockEvent::TextDelta { .. }));
    let got = events.iter().filter(text).count();
    let mut report = memory.report(&[total], json!({"got": got}));
    report["cpu_us_per_token"] = json!(cpu * 1e3 / tokens as f64);
    Ok(report)
}
