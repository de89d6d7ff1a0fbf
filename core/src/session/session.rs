//! The handle of a session.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use async_channel::Sender;
use futures::future::{Either, select};
use serde_json::Value;
use tokio::sync::oneshot;

use super::asked::{
    CustomMessage, Delivery, Fork, ForkMessage, ForkPosition, NavigateOptions, NavigateResult, PromptOptions,
    SubscribeOptions,
};
use super::command::{Command, Input, Reply};
use super::estimate::{self, ContextUsage};
use super::event::CompactionResult;
use super::shared::{Shared, Step, closed};
use super::state::SessionState;
use super::stats::SessionStats;
use super::{Events, Run, RunResult, fork};
use crate::engine::EngineShared;
use crate::error::Result;
use crate::message::{BashExecution, Role, check_images};
use crate::tree::{EntryKind, Tree};

/// A live session.
///
/// Cheap to clone; all clones are the same session. Every method is legal from any thread and from inside any callback;
/// futures are driven by any executor. When the last clone is dropped (a [`Run`] counts as one, [`Events`] do not) the
/// run is aborted and the session ends. Its file is free for others once every session over it has ended, see
/// [`branch`](Session::branch).
///
/// Every call fails with `closed` once the session or its engine was closed.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    engine: Arc<EngineShared>,
    commands: Sender<Command>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close.cancel();
    }
}

impl Session {
    pub(super) fn engine(&self) -> &Arc<EngineShared> {
        &self.inner.engine
    }

    pub(crate) fn new(shared: Arc<Shared>, engine: Arc<EngineShared>, commands: Sender<Command>) -> Session {
        Session { inner: Arc::new(Handle { shared, engine, commands }) }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// The session's id.
    pub fn id(&self) -> String {
        self.shared().id.to_string()
    }

    /// The session's file; `None` in memory. It may not exist yet (S42).
    pub fn path(&self) -> Option<PathBuf> {
        self.tree().path()
    }

    /// The working directory.
    pub fn cwd(&self) -> PathBuf {
        self.shared().cwd.clone()
    }

    /// The entry the session stands on.
    pub fn leaf(&self) -> Option<String> {
        self.shared().leaf()
    }

    /// The session's name.
    pub fn name(&self) -> Option<String> {
        self.tree().name()
    }

    /// A snapshot of what the session is doing.
    pub fn state(&self) -> SessionState {
        self.shared().state()
    }

    /// The tree, to read. It is shared with the running session and sees new entries as they come.
    pub fn tree(&self) -> Tree {
        self.shared().tree.clone()
    }

    /// Sends a prompt and returns once it is accepted.
    ///
    /// Errors: `running` when a run is active and `options` do not say to queue it, `compacting`, `no_model`,
    /// `unknown_model`, `read_only`, `storage_failed` when a skill that is called cannot be read, `invalid_argument` for
    /// an image that is no image block,
    /// `no_credentials` when there is no key for the model's provider.
    pub async fn prompt(&self, text: impl Into<String>, options: PromptOptions) -> Result<Run> {
        self.start(Input::Text(text.into()), options).await
    }

    /// Prompts, waits until the run has settled and says what it came to; its events are for who subscribed before.
    ///
    /// Errors: as [`prompt`](Session::prompt) and [`Run::result`].
    ///
    /// ```
    /// # use branchline::{Engine, EngineOptions, PromptOptions, SessionOptions};
    /// # branchline::block_on(async {
    /// let engine = Engine::new(EngineOptions::default())?;
    /// let session = engine.create_session(SessionOptions::new(".").model("scripted/demo").in_memory(true)).await?;
    /// println!("{}", session.run("What is in this folder?", PromptOptions::default()).await?.text);
    /// # Ok::<(), branchline::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn run(&self, text: impl Into<String>, options: PromptOptions) -> Result<RunResult> {
        self.prompt(text, options).await?.result().await
    }

    /// Starts a run with a message of the host instead of a user's (S238). Of the options `images` and `expand` are not
    /// used: the message has its images in its content, and its text is sent as it is.
    ///
    /// Errors: as [`prompt`](Session::prompt), and `invalid_argument` for a content that is no string and no list.
    pub async fn prompt_custom(&self, message: CustomMessage, options: PromptOptions) -> Result<Run> {
        self.start(Input::Custom(message), options).await
    }

    async fn start(&self, input: Input, options: PromptOptions) -> Result<Run> {
        check_images(&options.images)?;
        let input = match input {
            Input::Text(text) if options.expand => Input::Text(self.expanded(text).await?),
            input => input,
        };
        if let Some(model) = self.state().model {
            self.inner.engine.check_key(&model).await?;
        }
        let (events, outcome) = self.ask(|reply| Command::Prompt { input, options, reply }).await?;
        Ok(Run::new(self.clone(), events, outcome))
    }

    /// Queues a text for the current run: it is delivered before the run's next request (S232). On an idle session it
    /// waits for the next prompt. Calls of skills and prompt templates are replaced, as in a prompt.
    pub async fn steer(&self, text: impl Into<String>) -> Result<()> {
        let text = self.expanded(text.into()).await?;
        self.ask(|reply| Command::Queue { text, images: Vec::new(), steer: true, reply }).await
    }

    /// Queues a text for when the current run would end (S233). On an idle session it waits for the next prompt.
    pub async fn follow_up(&self, text: impl Into<String>) -> Result<()> {
        let text = self.expanded(text.into()).await?;
        self.ask(|reply| Command::Queue { text, images: Vec::new(), steer: false, reply }).await
    }

    /// Empties both queues and returns their texts, steering first (S235).
    pub async fn clear_queues(&self) -> Result<(Vec<String>, Vec<String>)> {
        self.ask(|reply| Command::ClearQueues { reply }).await
    }

    /// Whether a queue is delivered all at once instead of one text at a time (S231); `None` leaves a mode as it is.
    pub async fn set_queue_modes(&self, steer_all: Option<bool>, follow_up_all: Option<bool>) -> Result<()> {
        self.ask(|reply| Command::SetQueueModes { steer_all, follow_up_all, reply }).await
    }

    /// Aborts what runs and waits until the session is idle (S226). Does nothing on an idle session. Queued texts stay
    /// queued for the next prompt; what steers is still delivered in the turn that closes an aborted batch of tools (S228).
    ///
    /// The signal is given when this is called, also if the future is never driven. Calling it from a tool of the same
    /// session waits for that tool; it is given up after a short grace, so the wait ends.
    pub fn abort(&self) -> impl Future<Output = Result<()>> + Send + 'static {
        let shared = self.inner.shared.clone();
        let activity = shared.abort();
        async move {
            match activity {
                Some(_) => shared.wait_idle(activity).await,
                None => Ok(()),
            }
        }
    }

    /// Cancels the wait before a failed request is repeated, and with it the repetition; nothing else (S245).
    pub fn abort_retry(&self) {
        self.shared().cancel_step(Step::RetryWait);
    }

    /// Cancels a compaction, or the summary of a branch that is left; nothing else.
    pub fn abort_summary(&self) {
        self.shared().cancel_step(Step::Summary);
    }

    /// Replaces the older part of the context by a summary (S262). A run is aborted first and not taken up again.
    ///
    /// `instructions` say what the summary should pay attention to. The history itself stays in the tree.
    /// Errors: `nothing_to_compact`, `already_compacted`, `cancelled` after an abort, `summary_failed`, `no_model`,
    /// `compacting`, `running` when another prompt was faster, `read_only`.
    pub async fn compact(&self, instructions: Option<&str>) -> Result<CompactionResult> {
        if self.state().running {
            self.abort().await?;
        }
        let instructions = instructions.map(str::to_owned);
        self.ask(|reply| Command::Compact { instructions, reply }).await
    }

    /// Waits until the session is idle. Events must be read meanwhile by someone else, or not be subscribed to.
    pub async fn wait_idle(&self) -> Result<()> {
        self.shared().wait_idle(None).await
    }

    /// Subscribes to the session's events from now on. A closed session gives a subscription that has ended.
    pub fn subscribe(&self, options: SubscribeOptions) -> Events {
        Events::new(self.shared().hub.subscribe(options.capacity, false))
    }

    /// Moves the session to another entry of its tree (S163–S173).
    ///
    /// Errors: `running`, `compacting`, `no_model` (a summary without a model), `entry_not_found`, `summary_failed`.
    pub async fn navigate(&self, entry_id: &str, options: NavigateOptions) -> Result<NavigateResult> {
        let target = entry_id.to_owned();
        self.ask(|reply| Command::Navigate { target, options, reply }).await
    }

    /// Copies the path to an entry into a new file and opens that as a session of its own (S184–S186). This session
    /// stays as it is, also while it runs.
    ///
    /// Errors: `entry_not_found`, `invalid_fork_target`, `not_saved` when this session has no file yet.
    pub async fn fork(&self, entry_id: &str, position: ForkPosition) -> Result<Fork> {
        fork::fork(&self.inner.engine, self.inner.shared.clone(), entry_id.to_owned(), position).await
    }

    /// Copies the path to the leaf into a new file and opens that as a session of its own (S188).
    ///
    /// Errors: `entry_not_found` when the session is empty, `not_saved`.
    pub async fn clone_session(&self) -> Result<Session> {
        fork::clone(&self.inner.engine, self.inner.shared.clone()).await
    }

    /// Sets or, with `None`, clears the label of an entry. Returns the id of the label entry, which becomes the leaf.
    ///
    /// Errors: `entry_not_found`, `read_only`.
    pub async fn set_label(&self, entry_id: &str, label: Option<&str>) -> Result<String> {
        let (target, label) = (entry_id.to_owned(), label.map(str::to_owned));
        self.ask(|reply| Command::SetLabel { target, label, reply }).await
    }

    /// Sets the session's name; an empty one clears it.
    pub async fn set_name(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.ask(|reply| Command::SetName { name, reply }).await
    }

    /// Chooses the model, `provider/model`, from the next request on (S294).
    ///
    /// Errors: `unknown_model`; `invalid_argument` for a wrong number in the settings for this model.
    pub async fn set_model(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.ask(|reply| Command::SetModel { name, reply }).await
    }

    /// Chooses the thinking level, clamped to the model (S295).
    ///
    /// Errors: `invalid_argument` for an unknown word.
    pub async fn set_thinking_level(&self, level: &str) -> Result<()> {
        let level = level.to_owned();
        self.ask(|reply| Command::SetThinkingLevel { level, reply }).await
    }

    /// Chooses the active tools by name, from the next turn on. Those that stay keep their places, the others follow in this
    /// order (S303).
    ///
    /// Errors: `unknown_tool`; nothing is changed then.
    pub async fn set_tools(&self, names: Vec<String>) -> Result<()> {
        self.ask(|reply| Command::SetTools { names, reply }).await
    }

    /// Stores data of the host that the model never sees (S23). Returns the entry's id.
    pub async fn append_custom(&self, custom_type: impl Into<String>, data: Option<Value>) -> Result<String> {
        let custom_type = custom_type.into();
        self.ask(|reply| Command::AppendCustom { custom_type, data, reply }).await
    }

    /// Stores a message of the host that the model sees (S24, S238). `content` is a string or a list of text and image
    /// blocks. Returns the entry's id; `None` when a run is active, as the message is stored after the current turn.
    pub async fn append_custom_message(
        &self,
        custom_type: impl Into<String>,
        content: Value,
        display: bool,
        details: Option<Value>,
    ) -> Result<Option<String>> {
        let message = CustomMessage { custom_type: custom_type.into(), content, display, details };
        self.send_custom_message(message, Delivery::Store).await
    }

    /// Gives a message of the host to the model without starting a run (S238); [`prompt_custom`](Session::prompt_custom)
    /// starts one. Returns the entry's id when the message was stored at once.
    ///
    /// Errors: `invalid_argument` for a content that is no string and no list, `read_only`.
    pub async fn send_custom_message(&self, message: CustomMessage, delivery: Delivery) -> Result<Option<String>> {
        self.ask(|reply| Command::SendCustom { message, delivery, reply }).await
    }

    /// Stores a shell run of the user that is over, so that the model sees it unless it is excluded (S239). A timestamp
    /// of 0 is replaced by now. Returns the entry's id; `None` when something runs, as it is stored after that.
    pub async fn record_bash(&self, execution: BashExecution) -> Result<Option<String>> {
        self.ask(|reply| Command::RecordBash { execution, reply }).await
    }

    /// Changes what the model sees of an entry on the path from the next request on: `null` leaves it out, `{content}`
    /// replaces its content (S76). What is stored stays. Returns the id of the edit's entry.
    ///
    /// Errors: `invalid_replacement`, `entry_not_found`, `not_on_active_branch`, `not_editable`, `read_only`.
    pub async fn edit_context(&self, entry_id: &str, replacement: Value) -> Result<String> {
        let target = entry_id.to_owned();
        self.ask(|reply| Command::EditContext { target, replacement, reply }).await
    }

    /// How full the model's context is (S261). Reads the context, so it is not for every event.
    ///
    /// Errors: `storage_failed`.
    pub async fn context_usage(&self) -> Result<ContextUsage> {
        let (tree, leaf) = (self.tree(), self.leaf());
        let model = self.state().model.and_then(|name| self.inner.engine.model(&name).ok());
        let window = model.map(|model| model.context_window);
        self.inner.engine.blocking(move || Ok(estimate::context_usage(&tree.context(leaf.as_deref())?, window))).await
    }

    /// Counts and costs of the whole session, all branches (S114). Reads every entry.
    ///
    /// Errors: `storage_failed`.
    pub async fn stats(&self) -> Result<SessionStats> {
        let tree = self.tree();
        let read = move || {
            let mut stats = SessionStats::default();
            for entry in tree.entries() {
                stats.add(&entry?.value());
            }
            Ok(stats)
        };
        self.inner.engine.blocking(read).await
    }

    /// The user messages that [`fork`](Session::fork) can go before: of all branches, in file order, those with a text
    /// (S183).
    ///
    /// Errors: `storage_failed`.
    pub async fn fork_messages(&self) -> Result<Vec<ForkMessage>> {
        let tree = self.tree();
        let read = move || {
            let structure = tree.structure();
            let mut messages = Vec::new();
            for node in 0..structure.len() as u32 {
                if structure.kind(node) != EntryKind::Message(Role::User) {
                    continue;
                }
                let entry_id = structure.id(node);
                let text = tree.entry(&entry_id)?.and_then(|entry| entry.message()).map(|message| message.text(""));
                messages.extend(text.filter(|text| !text.is_empty()).map(|text| ForkMessage { entry_id, text }));
            }
            Ok(messages)
        };
        self.inner.engine.blocking(read).await
    }

    /// Aborts what runs, ends the session and, if no [sibling](Session::branch) uses it any more, releases its file;
    /// returns when that is done. It begins when this is called, whether the future is awaited or not. Idempotent.
    pub fn close(&self) -> impl Future<Output = Result<()>> + Send + 'static {
        let shared = self.shared().clone();
        shared.close.cancel();
        async move {
            shared.wait_closed().await;
            Ok(())
        }
    }

    /// Sends a command and waits for its answer.
    pub(super) async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        if self.inner.commands.try_send(command(reply)).is_err() {
            return Err(closed());
        }
        // A command that arrives while the session ends stays in the queue unread: the end is an answer, too.
        match select(answer, pin!(self.shared().wait_closed())).await {
            Either::Left((answer, _)) => answer.unwrap_or_else(|_| Err(closed())),
            Either::Right(((), mut answer)) => answer.try_recv().unwrap_or_else(|_| Err(closed())),
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.shared().id).finish_non_exhaustive()
    }
}
