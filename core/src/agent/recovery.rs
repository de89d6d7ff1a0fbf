//! What follows a run by itself: the same request again after an error, or after making room for it (S242–S256).

use std::time::Duration;

use super::classify::{is_context_overflow, is_recoverable_length_stop, is_retryable_response};
use super::projection::Response;
use crate::error::Result;
use crate::message::{Message, Role, StopReason};
use crate::providers::Model;
use crate::resources::settings::CompactionSettings;
use crate::session::{Actor, CompactionReason, EventKind, RetryWait, Step};

const OVERFLOW_EXHAUSTED: &str = "The request still does not fit into the model's context after a compaction. Shorten \
the input, or choose a model with a larger context.";
const LENGTH_EXHAUSTED: &str = "The response was cut off again after a compaction. Ask for less at a time, or choose a \
model that may answer at greater length.";

/// What was tried so far.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// Repetitions in a row of requests that failed.
    attempt: u32,
    /// Room was made since the last user message, or since a response that was neither an error nor cut off.
    made_room: bool,
    /// The pause the service asked for when it refused the last request.
    pause: Duration,
}

/// How a run begins.
pub(super) enum Start {
    /// With these messages.
    Messages(Vec<Message>),
    /// With what is queued (S236).
    Queued,
    /// With nothing new: the last request again.
    Again,
}

impl Actor {
    /// Whether a run that ended with this response is to be repeated after a wait (S242).
    pub(super) fn will_retry(&self, response: &Message) -> bool {
        let retry = self.settings().retry();
        let window = self.model.as_ref().map(|model| model.context_window);
        !self.aborted()
            && self.over_budget().is_none()
            && retry.enabled
            && self.asked_pause().is_some()
            && u64::from(self.recovery.attempt) < retry.max_retries
            && is_retryable_response(response)
            && !is_context_overflow(response, window)
    }

    pub(super) fn asked_for(&self) -> Duration {
        self.recovery.pause
    }

    /// The pause the service asked for; `None` when it is longer than any wait of the settings, so that there is no
    /// point in waiting (bug 90).
    pub(crate) fn asked_pause(&self) -> Option<Duration> {
        let longest = Duration::from_millis(self.settings().retry().max_agent_delay_ms);
        Some(self.recovery.pause).filter(|pause| *pause <= longest)
    }

    /// The service asked for a pause before the next request; zero if it did not.
    pub(crate) fn note_pause(&mut self, pause: Duration) {
        self.recovery.pause = pause;
    }

    /// A message was stored and told.
    pub(crate) async fn note_progress(&mut self, message: &Message) {
        match (message.role(), message.stop_reason()) {
            (Role::User, _) => self.recovery.made_room = false,
            (Role::Assistant, Some(StopReason::Error)) => {}
            (Role::Assistant, stop) => {
                if stop != Some(StopReason::Length) {
                    self.recovery.made_room = false;
                }
                let attempt = std::mem::take(&mut self.recovery.attempt);
                if attempt > 0 {
                    self.emit(EventKind::AutoRetryEnd { success: true, attempt, error: None }).await;
                }
            }
            _ => {}
        }
    }

    /// What follows the run that has just ended; `None` lets the session settle.
    pub(super) async fn after_run(&mut self) -> Result<Option<Start>> {
        if self.aborted() || self.over_budget().is_some() {
            let attempt = std::mem::take(&mut self.recovery.attempt);
            if attempt > 0 {
                self.retry_cancelled(attempt).await;
            }
            return Ok(None);
        }
        let last = self.activity.as_ref().and_then(|activity| activity.last_response.clone());
        if let Some(last) = last {
            if self.will_retry(&last.message) {
                if self.wait_for_retry(&last).await? {
                    return Ok(Some(Start::Again));
                }
                // Only this wait was cancelled: what is queued goes on (S236, S245).
                if self.aborted() {
                    return Ok(None);
                }
            }
            let attempt = std::mem::take(&mut self.recovery.attempt);
            if attempt > 0 {
                let error = last.message.get_str("errorMessage").map(Into::into);
                self.emit(EventKind::AutoRetryEnd { success: false, attempt, error }).await;
            }
            if self.make_room(&last, false).await? && !self.aborted() {
                return Ok(Some(Start::Again));
            }
        }
        Ok((!self.aborted() && !self.pending.is_empty()).then_some(Start::Queued))
    }

    /// Leaves the failed response out and waits (S243–S245). False if the wait was cancelled.
    async fn wait_for_retry(&mut self, failed: &Response) -> Result<bool> {
        let retry = self.settings().retry();
        self.recovery.attempt += 1;
        let attempt = self.recovery.attempt;
        // A service that asks for more patience than the settings have gets it.
        let delay = retry.delay(attempt).max(self.asked_pause().unwrap_or_default());
        let wait = RetryWait {
            attempt,
            max_attempts: retry.max_retries,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error: failed.message.get_str("errorMessage").unwrap_or_default().into(),
        };
        // The wait can be cancelled as soon as it is told of.
        let token = self.begin_step(Step::RetryWait);
        self.emit(EventKind::AutoRetryStart { wait }).await;
        let omitted = self.omit(&failed.entry).await;
        let waited = match omitted {
            Ok(()) => {
                self.wait(async move { token.run_until_cancelled(tokio::time::sleep(delay)).await }).await.is_some()
            }
            Err(_) => false,
        };
        self.end_step();
        if !waited {
            self.recovery.attempt = 0;
            self.retry_cancelled(attempt).await;
        }
        omitted.map(|()| waited)
    }

    async fn retry_cancelled(&mut self, attempt: u32) {
        let error = Some("Retry cancelled".into());
        self.emit(EventKind::AutoRetryEnd { success: false, attempt, error }).await;
    }

    /// Takes a response and the results of its calls out of the context (S246).
    async fn omit(&mut self, response: &str) -> Result<()> {
        let tree = self.cursor.tree().clone();
        let mut calls = Vec::new();
        let mut results = Vec::new();
        for entry in tree.branch(self.cursor.leaf()).entries().rev() {
            let entry = entry?;
            let Some(message) = entry.message() else { continue };
            if entry.id() == response {
                calls = message.tool_calls().map(|call| call.id.to_owned()).collect();
                break;
            }
            match message.role() {
                Role::Assistant => results.clear(),
                Role::ToolResult => {
                    results.push((entry.id().to_owned(), message.get_str("toolCallId").unwrap_or_default().to_owned()));
                }
                _ => {}
            }
        }
        let answers = results.into_iter().rev().filter(|(_, call)| calls.contains(call)).map(|(id, _)| id);
        for target in std::iter::once(response.to_owned()).chain(answers) {
            let edit = self.append(|cursor| cursor.append_context_edit(&target, &serde_json::Value::Null))?;
            if let Some(appended) = self.appended(&edit)? {
                self.emit(appended).await;
            }
        }
        self.reload_context()?;
        self.show();
        Ok(())
    }

    /// Compacts before a prompt if the context needs it; never starts a run (S203).
    pub(super) async fn make_room_for_prompt(&mut self) -> Result<()> {
        if let Some(last) = self.projection.last_response().cloned() {
            self.make_room(&last, true).await?;
        }
        Ok(())
    }

    /// The check on a response (S251–S255). True if its request should be made again.
    async fn make_room(&mut self, last: &Response, before_prompt: bool) -> Result<bool> {
        let Some(model) = self.model.clone() else { return Ok(false) };
        let settings = self.settings().compaction(Some(model.name_parts()))?;
        let message = &*last.message;
        let stop = message.stop_reason();
        if !settings.enabled || (stop == Some(StopReason::Aborted) && !before_prompt) {
            return Ok(false);
        }
        let compacted = self.projection.compacted_at();
        let older = |time: Option<f64>| compacted.zip(time).is_some_and(|(compacted, time)| time <= compacted);
        if older(message.timestamp()) {
            return Ok(false);
        }
        // Only what is still in context as it was answered can be recovered from.
        let shown = self.projection.last_response().filter(|shown| shown.entry == last.entry);
        let as_it_was = shown.is_some_and(|shown| !shown.edited_after);
        if shown.is_some() && made_by(message, &model) {
            let overflow = is_context_overflow(message, Some(model.context_window));
            match stop {
                Some(StopReason::Error) if overflow => return self.recover(last, OVERFLOW_EXHAUSTED).await,
                Some(StopReason::Stop) if overflow && as_it_was => {
                    self.compact_by_itself(CompactionReason::Overflow, false).await?;
                    return Ok(false);
                }
                _ if overflow && as_it_was => return self.recover(last, OVERFLOW_EXHAUSTED).await,
                _ if is_recoverable_length_stop(message, Some(model.max_tokens)) => {
                    return self.recover(last, LENGTH_EXHAUSTED).await;
                }
                _ => {}
            }
        }
        let total = message.usage().map_or(0, |usage| usage.total());
        let tokens = if self.projection.is_edited() {
            self.projection.gauge().projected()
        } else if stop == Some(StopReason::Error) || total == 0 {
            let (tokens, reported) = self.projection.gauge().by_usage();
            if older(reported) {
                return Ok(false);
            }
            tokens
        } else {
            total
        };
        if exceeds(tokens, &model, &settings) {
            self.compact_by_itself(CompactionReason::Threshold, false).await?;
        }
        Ok(false)
    }

    /// Leaves the response out, compacts, and has its request made again; once (S252).
    async fn recover(&mut self, last: &Response, exhausted: &str) -> Result<bool> {
        if std::mem::replace(&mut self.recovery.made_room, true) {
            let error = Some(exhausted.into());
            let reason = CompactionReason::Overflow;
            let end = EventKind::CompactionEnd { reason, result: None, aborted: false, will_retry: false, error };
            self.emit(end).await;
            return Ok(false);
        }
        self.omit(&last.entry).await?;
        self.compact_by_itself(CompactionReason::Overflow, true).await
    }

    /// Compacts between two turns if the next request would come too near the window (S256).
    pub(super) async fn make_room_for_turn(&mut self) -> Result<()> {
        let Some(model) = self.model.clone() else { return Ok(()) };
        let settings = self.settings().compaction(Some(model.name_parts()))?;
        if settings.enabled && exceeds(self.projection.gauge().projected(), &model, &settings) {
            self.compact_by_itself(CompactionReason::Threshold, false).await?;
        }
        Ok(())
    }
}

/// Whether so many tokens leave too little of the window; never when the window is unknown (S255).
fn exceeds(tokens: u64, model: &Model, settings: &CompactionSettings) -> bool {
    model.context_window > 0 && tokens > model.context_window.saturating_sub(settings.reserve_tokens)
}

fn made_by(message: &Message, model: &Model) -> bool {
    message.get_str("provider") == Some(&model.provider) && message.get_str("model") == Some(&model.id)
}
