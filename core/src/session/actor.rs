//! The actor of a session: one task that owns all its state.
//!
//! Hazard: a run waits for a model, for tools and for slow subscribers, and meanwhile the host must be able to steer,
//! label, ask and abort, also from the very thread that should read the events. So every wait of a run goes through
//! [`Actor::wait`], which serves commands while it waits, and aborts do not travel by command at all: they fire the
//! activity's token. Nothing else touches the state, so there are no locks around it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use async_channel::Receiver;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::command::Command;
use super::event::EventKind;
use super::options::Phase;
use super::run::{Outcome, RunResult};
use super::{Pending, Shared, thinking};
use crate::agent::{Projection, SystemPrompt, Toolset};
use crate::engine::EngineShared;
use crate::error::Result;
use crate::message::{Message, Role, Usage};
use crate::providers::Model;
use crate::tree::Cursor;

pub(crate) struct Actor {
    pub(crate) engine: Arc<EngineShared>,
    pub(crate) shared: Arc<Shared>,
    inbox: Receiver<Command>,
    pub(crate) cursor: Cursor,
    /// What the model sees at the leaf.
    pub(crate) projection: Projection,
    pub(crate) tools: Toolset,
    pub(crate) prompt: SystemPrompt,
    pub(crate) model: Option<Arc<Model>>,
    /// The effective thinking level.
    pub(crate) level: String,
    pub(crate) pending: Pending,
    /// Custom messages to store after the current turn.
    pub(crate) held: Vec<Message>,
    pub(crate) activity: Option<Activity>,
    /// Something was stored that may not be on the disk.
    pub(crate) unsynced: bool,
    /// Last, so that it is dropped last: who sees the end finds everything else gone.
    _ended: Ended,
}

/// From an accepted prompt to `agent_settled`.
pub(crate) struct Activity {
    pub(crate) token: CancellationToken,
    pub(crate) outcome: Outcome,
    /// Everything said in it.
    pub(crate) messages: Vec<Arc<Message>>,
    /// Where in `messages` the current run began.
    pub(crate) run_start: usize,
}

/// Tells everyone when the actor is gone, also by a panic or because it never ran.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.closed();
    }
}

impl Actor {
    pub(crate) fn new(
        engine: Arc<EngineShared>,
        shared: Arc<Shared>,
        cursor: Cursor,
        projection: Projection,
        tools: Toolset,
        model: Option<Arc<Model>>,
        level: String,
    ) -> Actor {
        let prompt = SystemPrompt::new(shared.choices_made().system_prompt.clone(), shared.cwd.clone());
        let mut actor = Actor {
            engine,
            _ended: Ended(shared.clone()),
            shared,
            inbox: async_channel::bounded(1).1,
            cursor,
            projection,
            tools,
            prompt,
            model,
            level: String::new(),
            pending: Pending::default(),
            held: Vec::new(),
            activity: None,
            unsynced: false,
        };
        actor.level = actor.clamp(&level);
        actor.show();
        actor
    }

    /// The level the current model can do (S293).
    pub(crate) fn clamp(&self, level: &str) -> String {
        let Some(model) = &self.model else { return "off".to_owned() };
        let supported: Vec<&str> = model.thinking_levels.iter().map(String::as_str).collect();
        thinking::clamp(level, &supported).to_owned()
    }

    /// The first entries of a new session, and what an existing one lacks (S289, S291).
    pub(crate) fn record_start(&mut self, existing: bool) -> Result<()> {
        if !existing && let Some(model) = self.model.clone() {
            self.append(|cursor| cursor.append_model(&model.provider, &model.id))?;
        }
        if !existing || self.projection.level().is_none() {
            self.record_level()?;
        }
        Ok(())
    }

    /// Stores the current thinking level.
    pub(crate) fn record_level(&mut self) -> Result<()> {
        let level = self.level.clone();
        self.append(|cursor| cursor.append_thinking_level(&level))?;
        self.projection.set_level(&level);
        Ok(())
    }

    /// Works until the session is closed.
    pub(crate) async fn run(self, inbox: Receiver<Command>) {
        let mut actor = self;
        actor.inbox = inbox.clone();
        let close = actor.shared.close.clone();
        loop {
            let command = tokio::select! {
                biased;
                () = close.cancelled() => break,
                command = inbox.recv() => command,
            };
            match command {
                Ok(Command::Prompt { text, options, reply }) => actor.prompt(&text, options, reply).await,
                Ok(Command::Navigate { target, options, reply }) => {
                    let _ = reply.send(actor.navigate(&target, options).await);
                }
                Ok(command) => actor.handle(command),
                Err(_) => break,
            }
        }
        // What was stored outside of runs. Nobody is left to be told of a failure.
        let _ = actor.sync_turn().await;
    }

    /// Waits, serving commands meanwhile.
    pub(crate) async fn wait<T>(&mut self, future: impl Future<Output = T> + Send) -> T {
        let mut future = pin!(future);
        let inbox = self.inbox.clone();
        loop {
            let command = tokio::select! {
                biased;
                value = &mut future => return value,
                command = inbox.recv() => command,
            };
            match command {
                Ok(command) => self.handle(command),
                Err(_) => return future.await, // no handle is left; the activity's token has fired
            }
        }
    }

    /// Serves the commands that are waiting, without waiting for more: for runs that never have to wait.
    pub(crate) fn serve(&mut self) {
        while let Ok(command) = self.inbox.try_recv() {
            self.handle(command);
        }
    }

    /// The token that aborts the current activity.
    pub(crate) fn token(&self) -> CancellationToken {
        self.activity.as_ref().map_or_else(|| self.shared.close.clone(), |activity| activity.token.clone())
    }

    pub(crate) fn aborted(&self) -> bool {
        self.activity.as_ref().is_some_and(|activity| activity.token.is_cancelled())
    }

    /// Sends an event of a run, then waits until every subscriber has room. After an abort it does not wait: what is
    /// left to say then is little, and who aborted may be the one who should read.
    pub(crate) async fn emit(&mut self, kind: EventKind) {
        if self.shared.hub.push(kind) || self.aborted() {
            return;
        }
        let (shared, token) = (self.shared.clone(), self.token());
        self.wait(async move {
            tokio::select! {
                () = poll_fn(|cx| shared.hub.poll_room(cx)) => {}
                () = token.cancelled() => {}
            }
        })
        .await;
    }

    /// Appends an entry and shows the new leaf.
    pub(crate) fn append(&mut self, append: impl FnOnce(&mut Cursor) -> Result<String>) -> Result<String> {
        let id = append(&mut self.cursor)?;
        self.unsynced = true;
        self.shared.change(|state| state.leaf = Some(id.clone()));
        Ok(id)
    }

    /// Stores a message and adds it to the context (S284). Returns its entry.
    pub(crate) fn store(&mut self, message: &Arc<Message>) -> Result<Option<Arc<str>>> {
        let id = match message.role() {
            Role::System | Role::User | Role::Assistant | Role::ToolResult => {
                self.append(|cursor| cursor.append_message(message))?
            }
            Role::Custom => {
                let field = |key: &str| message.get(key);
                let display = field("display").and_then(serde_json::Value::as_bool).unwrap_or(true);
                let content = field("content").cloned().unwrap_or_default();
                let custom_type = message.get_str("customType").unwrap_or_default();
                self.append(|cursor| cursor.append_custom_message(custom_type, &content, display, field("details")))?
            }
            _ => return Ok(None),
        };
        self.projection.push(message.clone());
        let count = self.projection.len();
        self.shared.change(|state| state.context_messages = count);
        Ok(Some(id.into()))
    }

    /// Announces, stores and ends a message that is complete from the start.
    pub(crate) async fn deliver(&mut self, message: Message) -> Result<()> {
        let message = Arc::new(message);
        self.emit(EventKind::MessageStart { message: message.clone() }).await;
        self.message_end(message).await
    }

    /// Stores a message, then says so.
    pub(crate) async fn message_end(&mut self, message: Arc<Message>) -> Result<()> {
        let entry_id = self.store(&message)?;
        if let Some(activity) = &mut self.activity {
            activity.messages.push(message.clone());
        }
        self.emit(EventKind::MessageEnd { message, entry_id }).await;
        Ok(())
    }

    /// Begins an activity. Returns where its outcome will be.
    pub(crate) fn begin(&mut self, phase: Phase) -> watch::Receiver<Option<Result<RunResult>>> {
        let token = self.shared.close.child_token();
        let (outcome, receiver) = watch::channel(None);
        self.activity = Some(Activity { token: token.clone(), outcome, messages: Vec::new(), run_start: 0 });
        self.shared.begin(phase, token);
        receiver
    }

    /// Ends the activity: the last event, then the result, then idle.
    pub(crate) fn settle(&mut self, result: Result<()>) {
        let Some(activity) = self.activity.take() else { return };
        let aborted = activity.token.is_cancelled();
        self.shared.settle();
        self.shared.hub.push(EventKind::AgentSettled { aborted });
        let responses: Vec<_> =
            activity.messages.iter().filter(|message| message.role() == Role::Assistant).cloned().collect();
        let last = responses.last();
        let usages = responses.iter().filter_map(|message| message.usage());
        let result = result.map(|()| RunResult {
            text: last.map(|message| message.text("\n")).unwrap_or_default(),
            usage: usages.reduce(|a, b| a.add(&b)).unwrap_or_else(Usage::default),
            stop_reason: last.and_then(|message| message.stop_reason()),
            error_message: last.and_then(|message| message.get_str("errorMessage")).map(str::to_owned),
            leaf: self.cursor.leaf().map(str::to_owned),
            aborted,
            messages: activity.messages,
        });
        let _ = activity.outcome.send(Some(result));
        self.shared.idle();
    }

    /// Ends an activity that nothing was told about.
    pub(crate) fn end_quietly(&mut self) {
        self.activity = None;
        self.shared.settle();
        self.shared.idle();
    }

    /// Brings what the handles see up to date with model, level, tools and queues.
    pub(crate) fn show(&self) {
        let (steering, follow_up) = self.pending.shown();
        let texts = |list: &[Arc<str>]| list.iter().map(|text| text.to_string()).collect();
        self.shared.change(|state| {
            state.leaf = self.cursor.leaf().map(str::to_owned);
            state.model = self.model.as_ref().map(|model| model.full_name());
            state.thinking_level.clone_from(&self.level);
            state.tools = self.tools.names();
            state.steering = texts(&steering);
            state.follow_up = texts(&follow_up);
            state.context_messages = self.projection.len();
        });
    }
}
