//! Replay: a session file is a cassette. Its recorded answers are given again to the same conversation.
//!
//! A request is answered by what followed the same messages in the file, on whatever branch they are; so a host may
//! navigate, fork and prompt again as it did then. The model does not count, nor does the system prompt, nor what a session
//! draws anew: ids and times. Where the conversation leaves the recording the request fails, and [`Replay::divergence`] has
//! both sides. Tools run live, or are [`Replay::tools`], which give the recorded results.
//!
//! A failed answer that was tried again is followed by the next one, as it was; who asks more often than it was recorded gets
//! the last one again. Summaries are given in the order of the
//! file; what they say is not compared.

mod index;
mod tool;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::index::{Index, Position};
use crate::agent::classify;
use crate::error::Result;
use crate::message::{AssistantStart, Block, Message};
use crate::providers::host::check_name;
use crate::providers::{BlockEvent, Model, Provider, Purpose, Request, ResponseStream, StreamEvent};
use crate::system::clock::now_ms;
use crate::tools::Tool;
use crate::tree::{OpenOptions, Tree};

/// Wire protocol of replayed models.
const API: &str = "replay";
/// Most characters of one side in an error.
const SHOWN: usize = 200;

/// Where a conversation left the recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Divergence {
    /// Which message of the conversation it is, system messages not counted, from 0.
    pub at: usize,
    /// What follows there in the recording; none if it ends there.
    pub recorded: Vec<RecordedMessage>,
    /// What the session had instead; `None` if it asked for an answer that was not recorded.
    pub actual: Option<Value>,
}

/// A message of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RecordedMessage {
    /// Its entry.
    pub entry_id: String,
    /// The message.
    pub message: Value,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "The replay left the recording at message {}. Recorded: ", self.at)?;
        match self.recorded.as_slice() {
            [] => f.write_str("nothing more")?,
            [first, rest @ ..] => {
                write!(f, "{} (entry {})", shown(&first.message), first.entry_id)?;
                if !rest.is_empty() {
                    write!(f, " and {} other branches", rest.len())?;
                }
            }
        }
        match &self.actual {
            Some(actual) => write!(f, ". Now: {}", shown(actual)),
            None => f.write_str(". Now: a request for an answer"),
        }
    }
}

/// A message in a few words.
fn shown(message: &Value) -> String {
    let role = message.get("role").and_then(Value::as_str).unwrap_or("message");
    let text = Message::from_value(message.clone()).unwrap_or_default();
    let mut parts: Vec<String> = Vec::new();
    for block in text.blocks() {
        match block {
            Block::Text(block) => parts.push(block.text.to_owned()),
            Block::ToolCall(call) => parts.push(format!("{} {}", call.name, call.arguments)),
            Block::Image(_) => parts.push("[image]".to_owned()),
            _ => {}
        }
    }
    let text = parts.join(" ");
    let cut: String = text.chars().take(SHOWN).collect();
    format!("{role} {cut:?}{}", if cut.len() < text.len() { "…" } else { "" })
}

/// A recorded session. Cheap to clone; all clones are the same replay. It is a [`Provider`].
#[derive(Clone)]
pub struct Replay {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    models: Vec<Model>,
    index: Index,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How often the answers at a place were asked for.
    asked: HashMap<u64, usize>,
    summaries: usize,
    divergence: Option<Divergence>,
}

/// How a recording is compared.
///
/// As JSON `{compareToolResults?}`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ReplayOptions {
    /// Tool results have to be the recorded ones. Default true; false lets live tools say something else.
    pub compare_tool_results: bool,
}

impl Default for ReplayOptions {
    fn default() -> ReplayOptions {
        ReplayOptions { compare_tool_results: true }
    }
}

impl ReplayOptions {
    /// Sets [`compare_tool_results`](Self::compare_tool_results).
    pub fn compare_tool_results(mut self, compare: bool) -> Self {
        self.compare_tool_results = compare;
        self
    }
}

impl Replay {
    /// Opens a recorded session read-only and reads all of it. `name` is the provider's; its models are those that answered
    /// in the recording. Blocks.
    ///
    /// Errors: `invalid_argument` for a name with a `/` or a space, `invalid_session_file`, `storage_failed`
    /// (also when there is no such file).
    pub fn open(name: impl Into<String>, path: impl AsRef<Path>, options: ReplayOptions) -> Result<Replay> {
        let tree = Tree::open(path, OpenOptions { read_only: true, ..OpenOptions::default() })?;
        Replay::of(name, &tree, options)
    }

    /// A replay of what a tree holds now.
    ///
    /// Errors: `invalid_argument` for a name with a `/` or a space, `storage_failed`.
    pub fn of(name: impl Into<String>, tree: &Tree, options: ReplayOptions) -> Result<Replay> {
        let name = name.into();
        check_name(&name)?;
        let index = Index::new(tree, options)?;
        let models = index.models.iter().map(|id| model(&name, id)).collect();
        Ok(Replay { inner: Arc::new(Inner { name, models, index, state: Mutex::default() }) })
    }

    /// The first place where a conversation left the recording.
    pub fn divergence(&self) -> Option<Divergence> {
        self.inner.state().divergence.clone()
    }

    /// The tools that the recording declares; a call gives the result that was recorded under its id.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        tool::tools(self)
    }
}

/// A model that can do what any recorded one could.
fn model(provider: &str, id: &str) -> Model {
    let mut model = Model::new(provider, id, API).reasoning();
    model.images = true;
    model.context_window = 1_000_000;
    model.max_tokens = 128_000;
    model
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Request) -> Result<Message, String> {
        if request.purpose == Purpose::Summary {
            let mut state = self.state();
            let at = state.summaries;
            state.summaries += 1;
            let summaries = &self.index.summaries;
            let text = summaries.get(at).or(summaries.last()).map_or("No summary was recorded.", String::as_str);
            return Ok(summary(request, text));
        }
        let position = self.index.position(&request.messages);
        let mut state = self.state();
        let divergence = match position {
            Position::Known { place, answers } if !answers.is_empty() => {
                let asked = state.asked.entry(place).or_default();
                let answer = &answers[(*asked).min(answers.len() - 1)];
                *asked += 1;
                return self.index.message(answer).map_err(|error| error.to_string());
            }
            Position::Known { place, .. } => {
                Divergence { at: self.index.length(&request.messages), recorded: self.recorded(place), actual: None }
            }
            Position::Left { at, place, message } => {
                let actual = Some(Message::clone(message).into_value());
                Divergence { at, recorded: self.recorded(place), actual }
            }
        };
        let text = divergence.to_string();
        let plain = format!("The replay left the recording at message {}.", divergence.at);
        state.divergence.get_or_insert(divergence);
        // What somebody wrote in a message must not look like an error that is worth another try.
        let misread = classify::is_retryable(&text) || classify::is_overflow_text(&text, &self.name);
        Err(if misread { plain } else { text })
    }

    fn recorded(&self, place: u64) -> Vec<RecordedMessage> {
        let following = self.index.following(place);
        let read = |id: &String| {
            let message = self.index.message(id).ok()?.into_value();
            Some(RecordedMessage { entry_id: id.clone(), message })
        };
        following.iter().filter_map(read).collect()
    }
}

/// A response to a request, empty.
fn begun(request: &Request) -> Message {
    let model = &request.model;
    AssistantStart { api: &model.api, provider: &model.provider, model: &model.id, timestamp: now_ms() }.message()
}

fn summary(request: &Request, text: &str) -> Message {
    let mut message = begun(request);
    message.set("content", json!([{"type": "text", "text": text}]));
    message.set("stopReason", "stop");
    message
}

impl Provider for Replay {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn models(&self) -> Vec<Model> {
        self.inner.models.clone()
    }

    fn stream(&self, request: Request) -> ResponseStream {
        let inner = self.inner.clone();
        let events = move || match inner.answer(&request) {
            Ok(message) => events(message, &request.model),
            Err(text) => {
                let mut message = begun(&request);
                message.set("stopReason", "error");
                message.set("errorMessage", text);
                vec![StreamEvent::Done(message)]
            }
        };
        // Looked up when the stream is read.
        Box::pin(futures::stream::iter(std::iter::once_with(events).flatten()))
    }
}

/// A recorded answer as a response of `model`: the message as it was, but made now.
fn events(mut message: Message, model: &Model) -> Vec<StreamEvent> {
    for (key, value) in [("api", &model.api), ("provider", &model.provider), ("model", &model.id)] {
        message.set(key, value.as_str());
    }
    message.set("timestamp", now_ms());
    message.object_mut().shift_remove("durationMs");
    let mut start = message.clone();
    start.set("content", Vec::<Value>::new());
    start.set("stopReason", "pending");
    for key in ["errorMessage", "responseId", "rawStopReason"] {
        start.object_mut().shift_remove(key);
    }
    let mut events = vec![StreamEvent::Start(start)];
    let content = message.get("content").and_then(Value::as_array);
    for (index, value) in content.into_iter().flatten().enumerate() {
        let mut tell = |event| events.push(StreamEvent::Block(event));
        match Block::new(value) {
            Block::Text(block) => {
                tell(BlockEvent::TextStart { index });
                tell(BlockEvent::TextDelta { index, delta: block.text.into() });
                tell(BlockEvent::TextEnd { index, content: block.text.into() });
            }
            Block::Thinking(block) => {
                tell(BlockEvent::ThinkingStart { index });
                tell(BlockEvent::ThinkingDelta { index, delta: block.thinking.into() });
                tell(BlockEvent::ThinkingEnd { index, content: block.thinking.into() });
            }
            Block::ToolCall(call) => {
                tell(BlockEvent::ToolCallStart { index, id: call.id.into(), name: call.name.into() });
                tell(BlockEvent::ToolCallDelta { index, delta: call.arguments.to_string().into() });
                tell(BlockEvent::ToolCallEnd { index, tool_call: Arc::new(value.clone()) });
            }
            _ => {}
        }
    }
    if let Some(usage) = message.usage() {
        events.push(StreamEvent::Usage(usage));
    }
    events.push(StreamEvent::Done(message));
    events
}
