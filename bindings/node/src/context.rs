//! What the model sees, how much of it there is, and what is put into it besides prompts.

use branchline::message::BashExecution;
use branchline::session::RunBashOptions;
use branchline::{CustomMessage, Delivery, Result};
use napi_derive::napi;
use serde::{Deserialize, Serialize};

use crate::failure::guard;
use crate::feed::Feed;
use crate::options;
use crate::outcome::Outcome;
use crate::session::{Session, nothing};

fn told<T: Serialize>(value: T) -> Outcome {
    Outcome::Text(branchline::json::to_string(&value))
}

fn maybe(id: Option<String>) -> Outcome {
    id.map_or(Outcome::Null, Outcome::Text)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct QueueModes {
    steer_all: Option<bool>,
    follow_up_all: Option<bool>,
}

#[napi]
impl Session {
    #[napi]
    pub fn run_bash(&self, ticket: u32, command: String, options: String) -> napi::Result<()> {
        let options: RunBashOptions = guard(|| options::read(&options))?;
        self.call(ticket, |session| async move { session.run_bash(&command, options).await.map(told) });
        Ok(())
    }

    #[napi]
    pub fn abort_bash(&self) {
        self.session.abort_bash();
    }

    #[napi]
    pub fn compact(&self, ticket: u32, instructions: Option<String>) {
        self.call(ticket, |session| async move { session.compact(instructions.as_deref()).await.map(told) });
    }

    #[napi]
    pub fn stats(&self, ticket: u32) {
        self.call(ticket, |session| async move { session.stats().await.map(told) });
    }

    #[napi]
    pub fn context_usage(&self, ticket: u32) {
        self.call(ticket, |session| async move { session.context_usage().await.map(told) });
    }

    #[napi]
    pub fn fork_messages(&self, ticket: u32) {
        self.call(ticket, |session| async move {
            // A text each: together they could be longer than a string.
            let messages = session.fork_messages().await?;
            Ok(Outcome::Texts(messages.iter().map(branchline::json::to_string).collect()))
        });
    }

    #[napi]
    pub fn set_queue_modes(&self, ticket: u32, modes: String) -> napi::Result<()> {
        let modes: QueueModes = guard(|| options::read(&modes))?;
        self.call(ticket, |session| async move {
            session.set_queue_modes(modes.steer_all, modes.follow_up_all).await.map(nothing)
        });
        Ok(())
    }

    #[napi]
    pub fn abort_retry(&self) {
        self.session.abort_retry();
    }

    #[napi]
    pub fn abort_summary(&self) {
        self.session.abort_summary();
    }

    #[napi]
    pub fn prompt_custom(&self, ticket: u32, message: String, options: String) -> napi::Result<()> {
        let message: CustomMessage = guard(|| options::read(&message))?;
        let options = guard(|| options::read::<options::CustomPrompt>(&options))?.into();
        let shared = self.shared.clone();
        self.call(ticket, |session| async move {
            let run = session.prompt_custom(message, options).await?;
            Ok(Outcome::Feed(Feed::run(shared, run)))
        });
        Ok(())
    }

    #[napi]
    pub fn send_custom_message(&self, ticket: u32, message: String, delivery: String) -> napi::Result<()> {
        let message: CustomMessage = guard(|| options::read(&message))?;
        let delivery: Delivery = guard(|| options::read(&delivery))?;
        self.call(ticket, |session| async move { session.send_custom_message(message, delivery).await.map(maybe) });
        Ok(())
    }

    #[napi]
    pub fn record_bash(&self, ticket: u32, execution: String) -> napi::Result<()> {
        let execution: BashExecution = guard(|| options::read(&execution))?;
        self.call(ticket, |session| async move { session.record_bash(execution).await.map(maybe) });
        Ok(())
    }

    #[napi]
    pub fn edit_context(&self, ticket: u32, entry_id: String, replacement: String) -> napi::Result<()> {
        let replacement = guard(|| options::value(&replacement))?;
        let call = move |session: branchline::Session| async move {
            let id: Result<String> = session.edit_context(&entry_id, replacement).await;
            id.map(Outcome::Text)
        };
        self.call(ticket, call);
        Ok(())
    }
}
