//! The loop: turns until the model is done and nothing waits (S202–S210, S222–S236).

use std::sync::Arc;

use super::recovery::Start;
use super::{Broken, forced};
use crate::error::{Error, ErrorCode, Result};
use crate::message::{AssistantStart, Message, Role, StopReason, SystemMessage};
use crate::providers::Model;
use crate::session::{Accepted, Actor, EventKind, Events, Input, Phase, PromptOptions};
use crate::system::clock::now_ms;
use crate::tree::Durability;
use tokio::sync::oneshot;

/// Responses in a row that are cut off at the output limit before their calls could run. A model that does it again and
/// again would go on for ever (bug 86).
const MOST_CUT_OFF: usize = 5;

impl Actor {
    /// A prompt on an idle session: accepts it, then runs until the session has settled.
    pub(crate) async fn prompt(
        &mut self,
        input: Input,
        options: PromptOptions,
        reply: oneshot::Sender<Result<Accepted>>,
    ) {
        let message = match self.ready().and_then(|()| input.message(options.images)) {
            Ok(message) => message,
            Err(error) => {
                return self.reply(reply, Err(error));
            }
        };
        if reply.is_closed() {
            return; // who asked has changed their mind
        }
        let outcome = self.begin(Phase::Running);
        if let (Some(activity), Some(text)) = (&mut self.activity, options.forced_prompt) {
            activity.forced_prompt = Some(forced::message(text));
        }
        let events = Events::new(self.shared.hub.subscribe(options.capacity, true));
        self.reply(reply, Ok((events, outcome)));
        let result = self.work(message).await;
        let result = result.and(self.sync_turn().await);
        self.settle(result);
    }

    fn ready(&self) -> Result<()> {
        if self.shared.choices_made().read_only {
            return Err(Error::new(ErrorCode::ReadOnly, "the session was opened read-only; open it for writing"));
        }
        self.chosen_model().map(drop)
    }

    pub(crate) fn chosen_model(&self) -> Result<Arc<Model>> {
        self.model.clone().ok_or_else(|| {
            let text =
                "no model is chosen; set one when the session is made or with set_model, for example scripted/demo";
            Error::new(ErrorCode::NoModel, text)
        })
    }

    /// Runs, and further runs as long as something follows by itself.
    async fn work(&mut self, message: Message) -> Result<()> {
        let outcome = self.work_through(message).await;
        outcome.and(self.store_all_held().await)
    }

    async fn work_through(&mut self, message: Message) -> Result<()> {
        self.record_new_root()?;
        self.store_all_held().await?;
        let compacted = self.projection.compacted_at();
        self.make_room_for_prompt().await?;
        let mut initial = vec![message];
        initial.append(&mut self.next_turn);
        if self.projection.compacted_at() == compacted {
            self.make_room_for_new(&initial).await?;
        }
        if let Some(level) = self.projection.level()
            && self.clamp(level) != self.level
        {
            self.record_level()?;
        }
        let mut start = Some(Start::Messages(initial));
        while let Some(next) = start {
            if let Err(broken) = self.run_once(next).await {
                self.broken(broken).await?;
            }
            start = self.after_run().await?;
        }
        Ok(())
    }

    /// One run: `agent_start` to `agent_end`.
    async fn run_once(&mut self, start: Start) -> Result<(), Broken> {
        if let Some(activity) = &mut self.activity {
            activity.run_start = activity.messages.len();
            activity.last_response = None;
        }
        self.emit(EventKind::AgentStart).await;
        let queued = matches!(start, Start::Queued);
        let mut next = match start {
            Start::Messages(messages) => messages,
            Start::Queued | Start::Again => Vec::new(),
        };
        next.extend(self.pending.drain_steering());
        // A prompt that a recovery left without an answer is answered first (S237).
        if queued && next.is_empty() && self.projection.ends_with_response() {
            next = self.pending.drain_follow_up();
        }
        let mut cut_off = 0;
        loop {
            self.emit(EventKind::TurnStart).await;
            self.announce_system().await?;
            for message in next {
                self.say(message).await?;
            }
            let response = self.respond().await?;
            let batch = self.run_tools(&response).await?;
            self.sync_turn().await?;
            self.emit(EventKind::TurnEnd { message: response.clone(), tool_results: batch.results.into() }).await;
            self.store_held().await?;
            if matches!(response.stop_reason(), Some(StopReason::Error | StopReason::Aborted)) {
                break;
            }
            // Also after an abort while tools ran: the turn that closes the run delivers it (S228, S232).
            next = self.pending.drain_steering();
            cut_off = if response.stop_reason() == Some(StopReason::Length) { cut_off + 1 } else { 0 };
            if (!batch.more || cut_off >= MOST_CUT_OFF) && next.is_empty() {
                next = self.pending.drain_follow_up();
                if next.is_empty() {
                    break;
                }
            }
            if !self.aborted() {
                self.make_room_for_turn().await?;
            }
            if next.is_empty() {
                next = self.pending.drain_steering();
            }
        }
        self.tell_budget().await;
        let messages = self.run_messages();
        let last = self.activity.as_ref().and_then(|activity| activity.last_response.as_ref());
        let will_retry = last.is_some_and(|last| self.will_retry(&last.message));
        self.emit(EventKind::AgentEnd { messages, will_retry }).await;
        Ok(())
    }

    fn run_messages(&self) -> Arc<[Arc<Message>]> {
        self.activity.as_ref().map_or(&[][..], |activity| &activity.messages[activity.run_start..]).into()
    }

    /// Says what changed in prompt and tools, if anything did (S299, S301).
    async fn announce_system(&mut self) -> Result<()> {
        self.tools.offer();
        let version = self.tools.version();
        if self.projection.system().is_checked(version) {
            return Ok(());
        }
        let definitions: Vec<_> = self.tools.active().iter().map(|tool| tool.definition()).collect();
        let sections = self.prompt.sections(&definitions);
        let changes = self.projection.system_mut().changes(&sections, self.tools.declared(), version);
        if changes.is_empty() {
            return Ok(());
        }
        let message = SystemMessage {
            content: String::new(),
            sections: changes.sections,
            tools_added: changes.tools_added,
            tools_removed: changes.tools_removed,
            timestamp: now_ms(),
        };
        self.deliver(message.message()).await
    }

    /// Delivers a user message; if it waited in a queue, that is told first (S234).
    async fn say(&mut self, message: Message) -> Result<()> {
        if message.role() == Role::User && self.pending.delivered(&message.text("")) {
            self.queue_changed();
        }
        self.deliver(message).await
    }

    /// Stores custom messages that came during a turn (S238). They belong to no run.
    pub(crate) async fn store_held(&mut self) -> Result<()> {
        for message in std::mem::take(&mut self.held) {
            let message = Arc::new(message);
            self.emit(EventKind::MessageStart { message: message.clone() }).await;
            let entry_id = self.store(&message)?;
            self.emit(EventKind::MessageEnd { message, entry_id }).await;
        }
        Ok(())
    }

    /// With [`Durability::Turn`] what was stored is on the disk from here on: before `turn_end` says so, and before the
    /// session counts as settled or closed.
    pub(crate) async fn sync_turn(&mut self) -> Result<()> {
        if self.shared.choices_made().durability != Durability::Turn || !std::mem::take(&mut self.unsynced) {
            return Ok(());
        }
        let tree = self.cursor.tree().clone();
        let sync = self.engine.handle.spawn_blocking(move || tree.end_turn());
        self.wait(sync).await.unwrap_or_else(|_| Err(Error::new(ErrorCode::Closed, "the engine ended before the sync")))
    }

    /// The run itself failed: a message says so, and ends it (S33, S225).
    async fn broken(&mut self, broken: Broken) -> Result<()> {
        let (text, outcome) = match broken {
            Broken::Request(reason) => (reason, Ok(())),
            Broken::Storage(error) => (error.to_string(), Err(error)),
            Broken::Budget(over) => {
                self.tell_budget().await;
                (over.to_string(), Ok(()))
            }
        };
        // What is stored is an error for every reader; the event and the result say which.
        let stop = if self.aborted() { "aborted" } else { "error" };
        let (api, provider, model) = match &self.model {
            Some(model) => (model.api.as_str(), model.provider.as_str(), model.id.as_str()),
            None => ("", "", ""),
        };
        let message = Arc::new(AssistantStart { api, provider, model, timestamp: now_ms() }.failed(stop, &text));
        self.emit(EventKind::MessageStart { message: message.clone() }).await;
        if self.message_end(message.clone()).await.is_err() {
            self.emit(EventKind::MessageEnd { message: message.clone(), entry_id: None }).await;
        }
        let outcome = outcome.and(self.sync_turn().await);
        self.emit(EventKind::TurnEnd { message: message.clone(), tool_results: [].into() }).await;
        let will_retry = outcome.is_ok() && self.will_retry(&message);
        self.emit(EventKind::AgentEnd { messages: [message].into(), will_retry }).await;
        outcome
    }
}
