//! The commands of a session, one function each. They run between the steps of a run as well as on an idle session, so
//! none of them waits: events they cause are pushed (see [`super::queue`]).

use serde_json::Value;

use super::actor::Actor;
use super::asked::{PromptOptions, WhenRunning};
use super::command::{Command, Input, Reply};
use super::event::EventKind;
use super::{Events, command};
use crate::error::{Error, ErrorCode, Result};
use crate::message::Message;
use crate::providers::thinking;
use crate::system::clock::now_ms;

impl Actor {
    pub(crate) fn handle(&mut self, command: Command) {
        match command {
            Command::Prompt { input, options, reply } => {
                self.answer(reply, |actor| actor.queue_prompt(input, options));
            }
            Command::Queue { text, images, steer, reply } => self.answer(reply, |actor| {
                actor.queue(steer, &text, images);
                Ok(())
            }),
            Command::ClearQueues { reply } => self.answer(reply, |actor| {
                let cleared = actor.pending.clear();
                actor.queue_changed();
                Ok(cleared)
            }),
            Command::SetQueueModes { steer_all, follow_up_all, reply } => self.answer(reply, |actor| {
                actor.pending.set_modes(steer_all, follow_up_all);
                Ok(())
            }),
            Command::Navigate { reply, .. } => self.answer(reply, |actor| Err(actor.busy())),
            Command::Adopt { reply, .. } => self.answer(reply, |actor| Err(actor.busy())),
            Command::Context { leaf, reply } => self.answer(reply, |actor| Ok(actor.context_at(leaf.as_deref()))),
            Command::Compact { reply, .. } => self.answer(reply, |actor| Err(actor.busy())),
            Command::SetLabel { target, label, reply } => {
                let label = label.as_deref();
                self.answer(reply, |actor| actor.append(|cursor| cursor.append_label(&target, label)));
            }
            Command::SetName { name, reply } => self.answer(reply, |actor| actor.set_name(&name)),
            Command::SetModel { name, reply } => self.answer(reply, |actor| actor.set_model(&name)),
            Command::SetThinkingLevel { level, reply } => self.answer(reply, |actor| actor.set_level(&level)),
            Command::SetTools { names, reply } => self.answer(reply, |actor| {
                let chosen = actor.tools.choose(&names);
                actor.show(); // before the answer: who asks for the state then finds the choice
                chosen
            }),
            Command::AppendCustom { custom_type, data, reply } => {
                self.answer(reply, |actor| actor.append_custom(&custom_type, data));
            }
            Command::SendCustom { message, delivery, reply } => {
                self.answer(reply, |actor| actor.send_custom(message, delivery));
            }
            Command::RecordBash { execution, reply } => self.answer(reply, |actor| actor.record_bash(execution)),
            Command::SetResources { options, resources, reply } => self.answer(reply, |actor| {
                actor.set_resources(options, resources);
                Ok(())
            }),
            Command::EditContext { target, replacement, reply } => {
                self.answer(reply, |actor| actor.edit_context(&target, &replacement));
            }
        }
    }

    /// Does what a command asks for and answers it.
    fn answer<T>(&mut self, reply: Reply<T>, work: impl FnOnce(&mut Actor) -> Result<T>) {
        let result = work(self);
        self.reply(reply, result);
    }

    /// Answers a command. Who reads the events that it caused is woken before who asked for it.
    pub(crate) fn reply<T>(&self, reply: Reply<T>, result: Result<T>) {
        self.shared.hub.wake();
        let _ = reply.send(result);
    }

    /// Why a call that needs an idle session is refused (S163).
    fn busy(&self) -> Error {
        match self.is_running() {
            false => Error::new(ErrorCode::Compacting, "a summary or navigation is under way; wait for it or abort it"),
            true => Error::new(ErrorCode::Running, "a run is active; wait for it, abort it, or queue the text instead"),
        }
    }

    /// A prompt that came while something runs.
    fn queue_prompt(&mut self, input: Input, options: PromptOptions) -> Result<command::Accepted> {
        let outcome = self.activity.as_ref().map(|activity| activity.outcome.subscribe());
        let (Some(outcome), true, false) = (outcome, self.is_running(), options.when_running == WhenRunning::Refuse)
        else {
            return Err(self.busy());
        };
        if options.forced_prompt.is_some() {
            let text = "a forced prompt is for a run that begins, and one is active; wait for it";
            return Err(Error::new(ErrorCode::InvalidArgument, text));
        }
        let steer = options.when_running == WhenRunning::Steer;
        match input {
            Input::Text(text) => self.queue(steer, &text, options.images),
            Input::Custom(message) => self.pending.push_silently(steer, message.message()?),
        }
        let events = Events::new(self.shared.hub.subscribe(options.capacity, true));
        Ok((events, outcome))
    }

    fn queue(&mut self, steer: bool, text: &str, images: Vec<Value>) {
        self.pending.push(steer, text, Message::user(text, images, now_ms()));
        self.queue_changed();
    }

    /// Tells the host what is waiting.
    pub(crate) fn queue_changed(&mut self) {
        let (steering, follow_up) = self.pending.shown();
        self.show();
        self.shared.hub.push(EventKind::QueueUpdate { steering, follow_up });
    }

    fn set_name(&mut self, name: &str) -> Result<()> {
        self.append(|cursor| cursor.append_name(name))?;
        let name = self.shared.tree.name().map(Into::into);
        self.shared.hub.push(EventKind::SessionInfoChanged { name });
        Ok(())
    }

    fn set_model(&mut self, name: &str) -> Result<()> {
        let model = self.engine.model(name)?;
        self.settings().compaction(Some(model.name_parts()))?;
        self.append(|cursor| cursor.append_model(&model.provider, &model.id))?;
        // A level of its own in the settings, else the one that is set for all models, else the current one (S294).
        let settings = self.settings();
        let level = settings.model_thinking_level(&model.provider, &model.id);
        let level = level.or(settings.set_thinking_level()).unwrap_or(&self.level).to_owned();
        self.model = Some(model);
        self.shared.change(|state| state.model_notice = None);
        self.apply_level(&level)?;
        self.show();
        Ok(())
    }

    fn set_level(&mut self, level: &str) -> Result<()> {
        if !thinking::LEVELS.contains(&level) {
            let known = thinking::LEVELS.join(", ");
            return Err(Error::new(ErrorCode::InvalidArgument, format!("{level:?} is no thinking level; use {known}")));
        }
        self.apply_level(level)
    }

    /// Takes over a level, clamped, and stores it if it is another (S295).
    fn apply_level(&mut self, level: &str) -> Result<()> {
        let level = self.clamp(level);
        if level == self.level {
            return Ok(());
        }
        self.level = level;
        self.record_level()?;
        self.show();
        self.shared.hub.push(EventKind::ThinkingLevelChanged { level: self.level.as_str().into() });
        Ok(())
    }
}
