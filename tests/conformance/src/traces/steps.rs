//! What the host does: one step after the other.

use std::time::{Duration, Instant};

use branchline::message::BashExecution;
use branchline::{
    CompactionResult, CustomMessage, Delivery, Error, ForkPosition, NavigateOptions, NavigateResult, Phase,
    PromptOptions, Session, WhenRunning, block_on,
};
use serde_json::{Value, json};

use super::check::Check;
use super::host::{Host, Next};
use super::record;
use crate::compare::Mismatch;
use crate::report::problem;

/// Runs one step and checks what it gives.
pub(super) fn run(host: &mut Host, step: &Value) -> Result<(), Mismatch> {
    let outcome = perform(host, step);
    let replacing = matches!(step["do"].as_str(), Some("fork" | "clone" | "newSession" | "switchSession" | "reopen"));
    match (outcome, step["expectError"].as_str()) {
        (Ok(_), Some(code)) => Err(problem(": error", code, "no error")),
        (Err(error), Some(code)) => {
            if replacing {
                host.last = json!({"refused": true});
            }
            let name = error.code().name().to_uppercase();
            if name == code { Ok(()) } else { Err(problem(": error", code, format!("{name}: {error}"))) }
        }
        (Err(error), None) => Err(problem(": error", "no error", format!("{}: {error}", error.code()))),
        (Ok(value), None) => {
            let mut mismatches = Vec::new();
            if let Some(expected) = step.get("returns") {
                Check::new(&Value::Null).value(": returns", expected, Some(&value), &mut mismatches);
            }
            host.last = value;
            mismatches.into_iter().next().map_or(Ok(()), Err)
        }
    }
}

pub(super) fn perform(host: &mut Host, step: &Value) -> Result<Value, Error> {
    let word = |key: &str| step[key].as_str().unwrap_or_default();
    let session = host.session().clone();
    let done = |result: Result<(), Error>| result.map(|()| Value::Null);
    match word("do") {
        "prompt" => prompt(&session, step),
        "start" => {
            let run = block_on(session.prompt(word("text"), PromptOptions::default()))?;
            run.events().discard();
            host.runs.push(run);
            Ok(Value::Null)
        }
        "steer" => done(block_on(session.steer(word("text")))),
        "followUp" => done(block_on(session.follow_up(word("text")))),
        "abort" => {
            let aborting = session.abort();
            background(host, step, move || done(block_on(aborting)))
        }
        "abortRetry" => {
            session.abort_retry();
            Ok(Value::Null)
        }
        "abortCompaction" | "abortBranchSummary" => {
            session.abort_summary();
            Ok(Value::Null)
        }
        "clearQueue" => {
            let (steering, follow_up) = block_on(session.clear_queues())?;
            Ok(json!({"steering": steering, "followUp": follow_up}))
        }
        "setQueueModes" => {
            let all = |key: &str| step[key].as_str().map(|mode| mode == "all");
            done(block_on(session.set_queue_modes(all("steering"), all("followUp"))))
        }
        "bash" => bash(&session, step),
        "compact" => {
            let instructions = step["instructions"].as_str().map(str::to_owned);
            let compact = move || {
                let result = block_on(session.compact(instructions.as_deref()))?;
                Ok(compaction(&session, &result))
            };
            background(host, step, compact)
        }
        "navigate" => navigate(host, step),
        "setModel" => done(block_on(session.set_model(&format!("script/{}", word("model"))))),
        "setThinkingLevel" => done(block_on(session.set_thinking_level(word("level")))),
        "setTools" => {
            let names = step["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
            done(block_on(session.set_tools(names.map(str::to_owned).collect())))
        }
        "setName" => done(block_on(session.set_name(word("name")))),
        "label" => block_on(session.set_label(&target(&session, step), step["label"].as_str())).map(|_| Value::Null),
        "contextEdit" => {
            block_on(session.edit_context(&target(&session, step), step["replacement"].clone())).map(|_| Value::Null)
        }
        "sendCustomMessage" => custom(&session, step),
        "fork" => {
            let target = target(&session, step);
            let mut text = None;
            host.replace("fork", |_| {
                let fork = block_on(session.fork(&target, ForkPosition::Before))?;
                text = fork.editor_text;
                Ok(Next::Made(fork.session))
            })?;
            Ok(json!({"cancelled": false, "selectedText": text}))
        }
        "clone" => {
            host.replace("clone", |_| Ok(Next::Made(block_on(session.clone_session())?)))?;
            Ok(json!({"cancelled": false}))
        }
        "newSession" => {
            let parent = step.get("parentSession").filter(|parent| !parent.is_null()).map(|parent| match parent {
                Value::String(path) => path.clone(),
                _ => session.path().unwrap_or_default().display().to_string(),
            });
            host.replace("new", |_| Ok(Next::Create(parent)))?;
            Ok(json!({"cancelled": false}))
        }
        "switchSession" => {
            let number = step["session"].as_u64().unwrap_or(0) as usize;
            host.replace("switch", |host| Ok(Next::Open(host.file(number).unwrap_or_default())))?;
            Ok(json!({"cancelled": false}))
        }
        "reopen" => {
            host.replace("switch", |_| Ok(Next::Open(session.path().unwrap_or_default())))?;
            Ok(json!({"cancelled": false}))
        }
        "query" => query(&session, word("what")),
        "note" => {
            host.note(&step["text"]);
            Ok(Value::Null)
        }
        "openGate" => {
            host.control().gates().open(word("gate"));
            Ok(Value::Null)
        }
        "waitIdle" => {
            host.wait_idle();
            Ok(Value::Null)
        }
        "waitModel" => {
            block_on(host.control().reached(step["reply"].as_u64().unwrap_or(0) as usize));
            Ok(Value::Null)
        }
        "waitTool" => {
            block_on(host.standing().wait(word("call")));
            Ok(Value::Null)
        }
        "waitEvent" => {
            wait_event(host, step);
            Ok(Value::Null)
        }
        "join" => match host.background.remove(word("of")).map(|thread| thread.join()) {
            Some(Ok(result)) => result,
            _ => Ok(json!("nothing of that name runs")),
        },
        "sleep" => {
            std::thread::sleep(Duration::from_millis(step["ms"].as_u64().unwrap_or(0)));
            Ok(Value::Null)
        }
        other => Ok(json!(format!("unknown step {other}"))),
    }
}

/// With a name the action runs beside the following steps.
fn background(
    host: &mut Host,
    step: &Value,
    action: impl FnOnce() -> Result<Value, Error> + Send + 'static,
) -> Result<Value, Error> {
    match step["as"].as_str() {
        None => action(),
        Some(name) => {
            host.background.insert(name.to_owned(), std::thread::spawn(action));
            Ok(Value::Null)
        }
    }
}

fn prompt(session: &Session, step: &Value) -> Result<Value, Error> {
    let images = step["images"].as_array().cloned().unwrap_or_default();
    let when = match step["behaviour"].as_str() {
        Some("steer") => WhenRunning::Steer,
        Some(_) => WhenRunning::FollowUp,
        None => WhenRunning::Refuse,
    };
    let options = PromptOptions::default().images(images).when_running(when);
    let running = session.state().running;
    let run = block_on(session.prompt(step["text"].as_str().unwrap_or_default(), options))?;
    if !running {
        block_on(run.result())?;
    }
    Ok(Value::Null)
}

fn bash(session: &Session, step: &Value) -> Result<Value, Error> {
    let word = |key: &str| step[key].as_str().map(str::to_owned);
    let execution = BashExecution {
        command: word("command").unwrap_or_default(),
        output: word("output").unwrap_or_default(),
        exit_code: step["exitCode"].as_i64().map(|code| code as i32),
        cancelled: step["cancelled"] == true,
        truncated: step["truncated"] == true,
        full_output_path: word("fullOutputPath"),
        timestamp: 0,
        exclude_from_context: step["excludeFromContext"].as_bool(),
    };
    block_on(session.record_bash(execution)).map(|_| Value::Null)
}

fn compaction(session: &Session, result: &CompactionResult) -> Value {
    json!({"summary": result.summary, "firstKept": record::index(session, &result.first_kept_entry_id),
        "details": result.details})
}

pub(super) fn custom_message(step: &Value) -> CustomMessage {
    CustomMessage::new(step["customType"].as_str().unwrap_or_default(), step["content"].clone())
        .display(step["display"] != false)
}

fn custom(session: &Session, step: &Value) -> Result<Value, Error> {
    let message = custom_message(step);
    let delivery = match (step["deliverAs"].as_str(), step["triggerTurn"].as_bool()) {
        (Some("nextTurn"), _) => Delivery::NextTurn,
        (_, Some(true)) if session.state().phase == Phase::Idle => {
            let run = block_on(session.prompt_custom(message, PromptOptions::default()))?;
            return block_on(run.result()).map(|_| Value::Null);
        }
        (_, Some(false)) => Delivery::Store,
        (Some("followUp"), _) => Delivery::FollowUp,
        _ => Delivery::Steer,
    };
    block_on(session.send_custom_message(message, delivery)).map(|_| Value::Null)
}

fn navigate(host: &mut Host, step: &Value) -> Result<Value, Error> {
    let session = host.session().clone();
    let replace = step["replaceInstructions"] == true;
    let mut options = NavigateOptions::default().summarize(step["summarize"] == true).replace_instructions(replace);
    if let Some(label) = step["label"].as_str() {
        options = options.label(label);
    }
    if let Some(instructions) = step["instructions"].as_str() {
        options = options.instructions(instructions);
        if replace {
            host.instructions.push(instructions.to_owned());
        }
    }
    let target = target(&session, step);
    background(host, step, move || {
        let result = block_on(session.navigate(&target, options))?;
        Ok(navigated(&session, &result))
    })
}

fn navigated(session: &Session, result: &NavigateResult) -> Value {
    let mut out = json!({"cancelled": result.cancelled});
    if result.cancelled {
        out["aborted"] = true.into();
    }
    if let Some(text) = &result.editor_text {
        out["editorText"] = text.as_str().into();
    }
    if let Some(id) = &result.summary_entry {
        let entry = session.tree().entry(id).ok().flatten().map(|entry| entry.value()).unwrap_or_default();
        out["summaryEntry"] = json!({"entry": record::index(session, id), "details": entry["details"]});
    }
    out
}

fn target(session: &Session, step: &Value) -> String {
    let target = &step["target"];
    let at = |key: &str| target[key].as_u64().unwrap_or(0) as usize;
    let entries = session.tree().entries().flatten();
    let entry = match target["role"].as_str() {
        _ if target["leaf"] == true => return session.leaf().unwrap_or_default(),
        Some(role) => entries
            .filter(|entry| entry.message().is_some_and(|message| message.role().name() == role))
            .nth(at("index")),
        None if target.get("entry").is_some() => { entries }.nth(at("entry")),
        None => None,
    };
    entry.map_or_else(|| "nowhere".to_owned(), |entry| entry.id().to_owned())
}

/// Waits until so many events have the given fields.
fn wait_event(host: &mut Host, step: &Value) {
    let wanted = step["event"].as_object().cloned().unwrap_or_default();
    let count = step["count"].as_u64().unwrap_or(1) as usize;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        host.drain();
        let fits = |event: &&Value| wanted.iter().all(|(key, value)| event.get(key) == Some(value));
        if host.events().iter().filter(fits).count() >= count {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn query(session: &Session, what: &str) -> Result<Value, Error> {
    let (state, tree) = (session.state(), session.tree());
    let leaf = session.leaf();
    let model_id = |name: &str| name.split_once('/').map_or(name, |(_, id)| id).to_owned();
    Ok(match what {
        "pendingMessages" => (state.steering.len() + state.follow_up.len()).into(),
        "pendingBash" => (state.pending_bash > 0).into(),
        "leaf" => record::leaf(session),
        "fileLines" => record::lines(session.path().as_deref()),
        "forkCandidates" => {
            block_on(session.fork_messages())?.into_iter().map(|message| Value::from(message.text)).collect()
        }
        "pathThinkingLevel" => tree.settings_at(leaf.as_deref())?.0.into(),
        "pathModel" => tree.settings_at(leaf.as_deref())?.1.map(|(_, id)| id).into(),
        "thinkingLevel" => state.thinking_level.into(),
        "model" => state.model.map(|name| model_id(&name)).into(),
        "activeTools" => state.tools.into(),
        "name" => session.name().into(),
        "idle" => (state.phase == Phase::Idle).into(),
        "running" => state.running.into(),
        "labels" => json!(record::labels(session)),
        "contextTokens" => block_on(session.context_usage())?.tokens.into(),
        "stats" => {
            let stats = block_on(session.stats())?;
            let tokens = &stats.tokens;
            json!({
                "userMessages": stats.user_messages,
                "assistantMessages": stats.assistant_messages,
                "toolCalls": stats.tool_calls,
                "toolResults": stats.tool_results,
                "totalMessages": stats.messages,
                "tokens": {"input": tokens.input, "output": tokens.output, "cacheRead": tokens.cache_read,
                    "cacheWrite": tokens.cache_write, "total": tokens.total()},
            })
        }
        other => json!(format!("unknown query {other}")),
    })
}
