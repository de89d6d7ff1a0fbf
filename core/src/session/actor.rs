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
use super::run::{Outcome, RunResult};
use super::state::Phase;
use super::{Pending, Shared, Step};
use crate::agent::{Projection, Recovery, Response, Spending, Toolset};
use crate::engine::EngineShared;
use crate::error::Result;
use crate::message::{Message, Role, Usage};
use crate::providers::{Model, thinking};
use crate::resources::settings::{QueueMode, Settings};
use crate::resources::system_prompt::SystemPrompt;
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
    /// Shell runs to store when nothing runs any more.
    pub(crate) held_bash: Vec<Message>,
    /// Custom messages that follow the next prompt.
    pub(crate) next_turn: Vec<Message>,
    pub(crate) recovery: Recovery,
    /// The token of a part of the activity that can be cancelled alone.
    step: Option<CancellationToken>,
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
    /// The last response of the current run.
    pub(crate) last_response: Option<Response>,
    /// It has runs; else it is a compaction or navigation.
    run: bool,
    pub(crate) spending: Spending,
    /// The system prompt of its requests, instead of the session's (S305).
    pub(crate) forced_prompt: Option<Arc<Message>>,
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
        let prompt = SystemPrompt {
            custom: shared.choices_made().system_prompt.clone(),
            resources: shared.resources(),
            cwd: shared.cwd.clone(),
        };
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
            held_bash: Vec::new(),
            next_turn: Vec::new(),
            recovery: Recovery::default(),
            step: None,
            activity: None,
            unsynced: false,
        };
        let all = |mode| Some(mode == QueueMode::All);
        let modes = (all(actor.settings().steering_mode()), all(actor.settings().follow_up_mode()));
        actor.pending.set_modes(modes.0, modes.1);
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

    /// Works until the session is closed. Who reads its events is woken whenever it has to wait.
    pub(crate) async fn run(self, inbox: Receiver<Command>) {
        let shared = self.shared.clone();
        let mut work = pin!(self.serve_until_closed(inbox));
        poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            shared.hub.wake();
            polled
        })
        .await;
    }

    async fn serve_until_closed(self, inbox: Receiver<Command>) {
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
                Ok(Command::Prompt { input, options, reply }) => actor.prompt(input, options, reply).await,
                Ok(Command::Compact { instructions, reply }) => {
                    let result = actor.compact(instructions.as_deref()).await;
                    actor.reply(reply, result);
                }
                Ok(Command::Navigate { target, options, reply }) => {
                    let result = actor.navigate(&target, options).await;
                    actor.reply(reply, result);
                }
                Ok(Command::Adopt { target, others, options, reply }) => {
                    let result = actor.adopt(target, &others, &options).await;
                    actor.reply(reply, result);
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

    /// The token that aborts what is being done: the step if there is one, else the activity.
    pub(crate) fn token(&self) -> CancellationToken {
        if let Some(step) = &self.step {
            return step.clone();
        }
        self.activity.as_ref().map_or_else(|| self.shared.close.clone(), |activity| activity.token.clone())
    }

    /// Whether a run is active; a compaction or navigation of an idle session is none.
    pub(crate) fn is_running(&self) -> bool {
        self.activity.as_ref().is_some_and(|activity| activity.run)
    }

    pub(crate) fn aborted(&self) -> bool {
        self.activity.as_ref().is_some_and(|activity| activity.token.is_cancelled())
    }

    /// A part of the activity begins that can be cancelled alone.
    pub(crate) fn begin_step(&mut self, step: Step) -> CancellationToken {
        let token = self.token().child_token();
        self.step = Some(token.clone());
        self.shared.step(Some((step, token.clone())));
        token
    }

    pub(crate) fn end_step(&mut self) {
        self.step = None;
        self.shared.step(None);
    }

    /// Sends an event of a run, then waits until every subscriber has room. After an abort it does not wait: what is
    /// left to say then is little, and who aborted may be the one who should read. Outside of runs it never waits.
    pub(crate) async fn emit(&mut self, kind: EventKind) {
        if self.shared.hub.push(kind) || self.aborted() || !self.is_running() {
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
            Role::System | Role::User | Role::Assistant | Role::ToolResult | Role::BashExecution => {
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
        self.projection.push(&id, message.clone());
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
            if message.role() == Role::Assistant {
                activity.last_response = self.projection.last_response().cloned();
            }
        }
        self.emit(EventKind::MessageEnd { message: message.clone(), entry_id }).await;
        self.note_progress(&message).await;
        Ok(())
    }

    /// The settings this session was made with.
    pub(crate) fn settings(&self) -> &Settings {
        &self.shared.choices_made().settings
    }

    /// Begins an activity. Returns where its outcome will be.
    pub(crate) fn begin(&mut self, phase: Phase) -> watch::Receiver<Option<Result<RunResult>>> {
        let token = self.shared.close.child_token();
        let (outcome, receiver) = watch::channel(None);
        self.activity = Some(Activity {
            token: token.clone(),
            outcome,
            messages: Vec::new(),
            run_start: 0,
            last_response: None,
            run: phase == Phase::Running,
            spending: Spending::begin(&self.shared.choices_made().budgets, &token),
            forced_prompt: None,
        });
        self.shared.begin(phase, token);
        receiver
    }

    /// Ends the activity: the last event, then the result, then idle. Readers are woken before who waits for these.
    pub(crate) fn settle(&mut self, result: Result<()>) {
        let Some(mut activity) = self.activity.take() else { return };
        let over = activity.spending.over();
        // Time that is up is no abort of anybody's.
        let aborted = activity.token.is_cancelled() && over.is_none();
        activity.spending.stop_clock();
        if let Some(over) = activity.spending.untold() {
            self.shared.hub.push(EventKind::BudgetExceeded { over });
        }
        self.shared.settle();
        self.shared.hub.push(EventKind::AgentSettled { aborted });
        self.shared.hub.wake();
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
            budget_exceeded: over,
            messages: activity.messages,
        });
        let _ = activity.outcome.send(Some(result));
        self.shared.idle();
    }

    /// Ends an activity that nothing was told about.
    pub(crate) fn end_quietly(&mut self) {
        if let Some(over) = self.activity.as_mut().and_then(|activity| activity.spending.untold()) {
            self.shared.hub.push(EventKind::BudgetExceeded { over });
        }
        self.activity = None;
        self.shared.hub.wake();
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
            state.pending_bash = self.held_bash.len();
            state.context_messages = self.projection.len();
        });
    }
}
