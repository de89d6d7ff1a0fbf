//! Playing a scenario without knowing its results: everything that came of it, in full, to be compared with what another
//! program makes of the same scenario (tests/interop/loop.mjs, which describes the form).

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use branchline::providers::Purpose;
use branchline::providers::scripted::RecordedRequest;
use branchline::session::RunBashOptions;
use branchline::{Error, Phase, PromptOptions, WhenRunning, block_on};
use futures::FutureExt as _;
use serde_json::{Map, Value, json};

use super::host::Host;
use super::{record, steps};

/// A scenario hangs when nothing happens for so long.
const LIMIT: Duration = Duration::from_secs(8);
/// How long a wait for something in particular goes on before what stands is let go.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same for an action of the host that may end at once.
const SOON: Duration = Duration::from_millis(700);
/// Of these events the last one tells whether a wait before another try goes on.
const RETRIES: [&str; 8] = [
    "auto_retry_start",
    "auto_retry_end",
    "summarization_retry_scheduled",
    "summarization_retry_attempt_start",
    "summarization_retry_finished",
    "compaction_end",
    "agent_start",
    "agent_settled",
];

/// Plays a scenario in `dir`, which holds its files.
///
/// # Errors
/// There is no session, or the scenario does not end.
pub fn play(scenario: &Value, dir: &Path) -> Result<Value, String> {
    let mut host = Host::in_dir(scenario, 2, dir)?;
    let mut play = Play { host: &mut host, scenario, let_go: Vec::new() };
    let mut outcomes = Vec::new();
    for step in scenario["steps"].as_array().into_iter().flatten() {
        outcomes.push(match play.step(step)? {
            Ok(value) => json!({"value": value}),
            Err(error) => json!({"error": error.to_string()}),
        });
    }
    play.until(LIMIT, |play| !play.busy())?;
    host.drain();
    let session = host.session();
    let context = session.tree().context(session.leaf().as_deref()).map_err(|error| error.to_string())?;
    let context: Vec<Value> = context.messages().map(Value::from).collect();
    let lines = |path: &std::path::PathBuf| -> Option<Vec<Value>> {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect())
    };
    Ok(json!({
        "outcomes": outcomes,
        "events": host.told(),
        "requests": host.requests().iter().map(|it| request(it, &host)).collect::<Vec<Value>>(),
        "files": host.files().iter().map(lines).collect::<Vec<_>>(),
        "paths": host.files(),
        "context": context,
        "state": state(&host).map_err(|error| error.to_string())?,
    }))
}

struct Play<'a> {
    host: &'a mut Host,
    scenario: &'a Value,
    /// What stood somewhere and was let go: replies and calls.
    let_go: Vec<String>,
}

/// Something that waits for the host: a reply or a call, and its gate; without one only an abort helps.
type Standing = (String, Option<String>);

impl Play<'_> {
    /// A step's outcome. Errors of the outer kind end the scenario.
    fn step(&mut self, step: &Value) -> Result<Result<Value, Error>, String> {
        let word = |key: &str| step[key].as_str().unwrap_or_default();
        let session = self.host.session().clone();
        if self.idle() {
            let over = self.standing().into_iter().map(|(name, _)| name);
            self.let_go.extend(over);
        }
        match word("do") {
            "prompt" | "start" => {
                let when = match step["behaviour"].as_str() {
                    Some("steer") => WhenRunning::Steer,
                    Some(_) => WhenRunning::FollowUp,
                    None => WhenRunning::Refuse,
                };
                let queued = self.busy();
                let images = step["images"].as_array().cloned().unwrap_or_default();
                let options = PromptOptions::default().images(images).when_running(when);
                let run = match block_on(session.prompt(word("text"), options)) {
                    Ok(run) => run,
                    Err(error) => return Ok(Err(error)),
                };
                run.events().discard();
                self.host.runs.push(run);
                if word("do") == "prompt" && !queued {
                    self.until(LIMIT, |play| !play.busy())?;
                }
                Ok(Ok(Value::Null))
            }
            "runBash" => {
                let options = RunBashOptions::default().exclude_from_context(step["excludeFromContext"] == true);
                Ok(block_on(session.run_bash(word("command"), options)).map(|ended| {
                    json!({"output": ended.output, "exitCode": ended.exit_code, "cancelled": ended.cancelled,
                        "truncated": ended.truncated})
                }))
            }
            "compact" | "navigate" | "abort" if step.get("as").is_none() => {
                let mut named = step.clone();
                named["as"] = "this step".into();
                if let Err(error) = steps::perform(self.host, &named) {
                    return Ok(Err(error));
                }
                let over = |play: &mut Play<'_>| play.host.background.values().all(JoinHandle::is_finished);
                self.until(SOON, over)?;
                Ok(steps::perform(self.host, &json!({"do": "join", "of": "this step"})).map(navigated))
            }
            "join" => {
                let name = word("of").to_owned();
                self.until(PATIENCE, |play| play.host.background.get(&name).is_none_or(JoinHandle::is_finished))?;
                Ok(steps::perform(self.host, step).map(navigated))
            }
            "sendCustomMessage" if step["triggerTurn"] == true && step["deliverAs"] != "nextTurn" && !self.busy() => {
                match block_on(session.prompt_custom(steps::custom_message(step), PromptOptions::default())) {
                    Ok(run) => {
                        run.events().discard();
                        self.host.runs.push(run);
                        self.until(LIMIT, |play| !play.busy())?;
                        Ok(Ok(Value::Null))
                    }
                    Err(error) => Ok(Err(error)),
                }
            }
            "switchSession" | "reopen" => {
                let number = step["session"].as_u64().map_or(0, |number| number as usize);
                let path = if word("do") == "reopen" { session.path() } else { self.host.file(number) };
                match path.is_some_and(|path| path.exists()) {
                    true => Ok(steps::perform(self.host, step)),
                    false => Ok(Ok("no file".into())),
                }
            }
            "waitIdle" => self.until(LIMIT, |play| !play.busy()).map(|()| Ok(Value::Null)),
            "waitModel" | "waitTool" => {
                let key = match step["reply"].as_u64() {
                    Some(reply) => reply.to_string(),
                    None => word("call").to_owned(),
                };
                let there = |play: &mut Play| play.idle() || play.standing().iter().any(|(name, _)| *name == key);
                self.until(PATIENCE, there).map(|()| Ok(Value::Null))
            }
            "waitEvent" => {
                let wanted = step["event"].as_object().cloned().unwrap_or_default();
                let fits = |event: &Value| wanted.iter().all(|(key, value)| event[key] == *value);
                let seen = |play: &mut Play| {
                    play.host.drain();
                    play.idle() || play.host.told().iter().any(fits)
                };
                self.until(PATIENCE, seen).map(|()| Ok(Value::Null))
            }
            _ => Ok(steps::perform(self.host, step)),
        }
    }

    fn busy(&self) -> bool {
        let state = self.host.session().state();
        state.running || state.phase != Phase::Idle
    }

    fn idle(&self) -> bool {
        !self.busy() && self.host.background.values().all(JoinHandle::is_finished)
    }

    /// Waits until `over`; what stands for longer than `patience` is let go (after [`LIMIT`]: at once).
    fn until(&mut self, patience: Duration, over: impl Fn(&mut Play<'_>) -> bool) -> Result<(), String> {
        let begun = Instant::now();
        let patience = if patience == LIMIT { Duration::ZERO } else { patience };
        loop {
            if over(self) {
                return Ok(());
            }
            if begun.elapsed() > LIMIT {
                return Err("nothing happens any more".to_owned());
            }
            if begun.elapsed() >= patience && self.waits() {
                std::thread::sleep(Duration::from_millis(50));
                if over(self) {
                    return Ok(());
                }
                if self.waits() {
                    let aborted = self.host.session().abort();
                    block_on(aborted).map_err(|error| error.to_string())?;
                }
            }
            if begun.elapsed() >= patience && !self.standing().is_empty() {
                // What follows by itself has happened by then; an abort would end it.
                let ends = self.standing().iter().any(|(_, gate)| gate.is_none());
                std::thread::sleep(Duration::from_millis(if ends { 150 } else { 15 }));
                if over(self) {
                    return Ok(());
                }
                self.release()?;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A long wait before a request is made again.
    fn waits(&mut self) -> bool {
        self.host.drain();
        let told = self.host.told().iter().rev();
        let mut last = told.filter(|event| RETRIES.contains(&event["type"].as_str().unwrap_or_default()));
        last.next().is_some_and(|event| event["delayMs"].as_u64().is_some_and(|delay| delay > 1_000))
    }

    fn release(&mut self) -> Result<(), String> {
        let mut abort = false;
        for (name, gate) in self.standing() {
            match gate {
                Some(gate) => self.host.control().gates().open(gate),
                None => abort = true,
            }
            self.let_go.push(name);
        }
        if abort {
            let aborted = self.host.session().abort();
            block_on(aborted).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// What stands now and was not let go.
    fn standing(&self) -> Vec<Standing> {
        let mut out = Vec::new();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let gates = self.host.control().gates();
        let behaviours = self.scenario["tools"].as_array().into_iter().flatten();
        let behaviours: Map<String, Value> = behaviours
            .filter_map(|tool| {
                let steps = tool["behaviour"].as_array()?;
                let wait = steps.iter().find(|step| matches!(step["do"].as_str(), Some("waitGate" | "waitAbort")))?;
                Some((text(&tool["name"])?, wait.clone()))
            })
            .collect();
        for (number, reply) in self.scenario["script"].as_array().into_iter().flatten().enumerate() {
            let waits = reply["hang"] == true || reply.get("waitGate").is_some();
            if waits && self.host.control().reached(number).now_or_never().is_some() {
                out.push((number.to_string(), text(&reply["waitGate"])));
            }
            for block in reply["content"].as_array().into_iter().flatten() {
                if let (Some(wait), Some(id)) =
                    (behaviours.get(block["name"].as_str().unwrap_or_default()), text(&block["id"]))
                    && self.host.standing().is_open(&id)
                {
                    out.push((id, text(&wait["gate"])));
                }
            }
        }
        out.retain(|(name, gate)| {
            !self.let_go.contains(name) && !gate.as_ref().is_some_and(|gate| gates.is_open(gate))
        });
        out
    }
}

/// Of a summary's entry only its number.
fn navigated(mut result: Value) -> Value {
    if let Some(entry) = result.pointer("/summaryEntry/entry").cloned() {
        result["summaryEntry"] = entry;
    }
    result
}

fn request(request: &RecordedRequest, host: &Host) -> Value {
    let mut out = json!({"model": request.model, "reasoning": request.thinking_level, "aborted": request.aborted});
    if request.purpose == Purpose::Turn {
        out["messages"] = request.messages.iter().map(|message| (**message).clone().into_value()).collect();
        return out;
    }
    let text = request.messages.last().map(|message| message.text("")).unwrap_or_default();
    let mut parts = json!({});
    record::summary(&text, host, &mut parts);
    let form = match parts["form"].as_str() {
        Some("conversation-tags") => "conversation",
        Some("turn-prefix") => "turn prefix",
        _ => "other",
    };
    out["summary"] = json!({"form": form, "conversation": parts["conversation"], "previous": parts["previousSummary"],
        "focus": parts["additionalFocus"]});
    out
}

fn state(host: &Host) -> Result<Value, Error> {
    let session = host.session();
    let state = session.state();
    let stats = block_on(session.stats())?;
    let tokens = &stats.tokens;
    let model = state.model.as_deref().map(|name| name.split_once('/').map_or(name, |(_, id)| id));
    Ok(json!({
        "leaf": record::leaf(session),
        "name": session.name(),
        "model": model,
        "thinkingLevel": state.thinking_level,
        "tools": state.tools,
        "labels": record::labels(session),
        "forkable": block_on(session.fork_messages())?.into_iter().map(|message| message.text).collect::<Vec<_>>(),
        "contextTokens": block_on(session.context_usage())?.tokens,
        "pending": state.steering.len() + state.follow_up.len(),
        "stats": {
            "userMessages": stats.user_messages, "assistantMessages": stats.assistant_messages,
            "toolCalls": stats.tool_calls, "toolResults": stats.tool_results, "totalMessages": stats.messages,
            "tokens": {"input": tokens.input, "output": tokens.output, "cacheRead": tokens.cache_read,
                "cacheWrite": tokens.cache_write, "total": tokens.total()},
            "cost": 0,
        },
    }))
}
