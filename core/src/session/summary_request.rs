//! Asking the model for a summary: of a branch that is left (S180–S182), or of what a compaction takes out of the
//! context (S276–S278). A failed request is repeated like any other (S248).

use std::sync::Arc;

use serde_json::Value;

use super::actor::Actor;
use super::event::{CompactionReason, EventKind, RetryWait};
use crate::agent::classify::is_retryable_response;
use crate::error::{Error, ErrorCode, Result};
use crate::message::{Message, StopReason, SystemMessage};
use crate::providers::{CacheRetention, Purpose, Request};
use crate::system::clock::now_ms;

const SYSTEM: &str = "You write handover notes. You get a conversation between a person and a coding agent and write \
down what somebody needs who goes on from there. You do not continue the conversation and answer nothing asked in it.";

/// The usual instructions for a branch that is left.
pub(crate) const BRANCH: &str =
    "Summarise the conversation above under these headings, in this order. Keep names of files, \
functions and commands exactly as they are, and leave out what does not matter for going on.

## Goal
What the person wants.

## Constraints & Preferences
What they asked for or ruled out.

## Progress
### Done
### In Progress
### Blocked

## Key Decisions
Each with its reason.

## Next Steps
In order.";

/// The same for the history that a compaction takes out.
const HISTORY: &str = "\n\n## Critical Context
Facts, values, error messages and references without which the work cannot go on.";

/// When there is a summary of what came before already.
const UPDATE: &str = "The conversation above goes on where the summary in <previous-summary> ends. Write one new summary \
of both: keep what still holds, move what was finished, drop what was given up. ";

/// For the beginning of a turn whose end stays in context.
const PREFIX: &str = "The conversation above is the beginning of a turn whose later part will be kept word for word. Say in a \
few lines what that part needs to be understood: what was asked, what was done and found so far, and what was decided. \
Keep names of files, functions and commands exactly as they are.";

/// Custom wishes stand last.
pub(crate) fn with_focus(instructions: &str, focus: Option<&str>) -> String {
    match focus.filter(|focus| !focus.is_empty()) {
        Some(focus) => format!("{instructions}\n\nAdditional focus: {focus}"),
        None => instructions.to_owned(),
    }
}

/// A conversation in tags, then what to do with it.
pub(crate) fn tagged(conversation: &str, instructions: &str) -> String {
    format!("<conversation>\n{conversation}\n</conversation>\n\n{instructions}")
}

/// The request for the history of a compaction (S276).
pub(crate) fn history(conversation: &str, previous: Option<&str>, focus: Option<&str>) -> String {
    match previous.filter(|previous| !previous.is_empty()) {
        None => tagged(conversation, &with_focus(&format!("{BRANCH}{HISTORY}"), focus)),
        Some(previous) => {
            let instructions = with_focus(&format!("{UPDATE}{BRANCH}{HISTORY}"), focus);
            tagged(conversation, &format!("<previous-summary>\n{previous}\n</previous-summary>\n\n{instructions}"))
        }
    }
}

/// The request for the beginning of a split turn (S277).
pub(crate) fn turn_prefix(conversation: &str, focus: Option<&str>) -> String {
    format!("# Conversation\n{conversation}\n\n# Instructions\n{}", with_focus(PREFIX, focus))
}

impl Actor {
    /// Asks for a summary and repeats the request if that may help. `compaction` says what it is for.
    ///
    /// Errors: `cancelled` after an abort, `summary_failed`, `no_model`.
    pub(crate) async fn ask_summary(
        &mut self,
        text: &str,
        compaction: Option<CompactionReason>,
    ) -> Result<(String, Option<Value>)> {
        let request = self.summary_request()?;
        self.ask_summary_as(request, text, compaction).await
    }

    /// A request for a summary by the model and at the level of now, without a text. All requests of one compaction are made
    /// of one, whatever is chosen meanwhile.
    pub(crate) fn summary_request(&self) -> Result<Request> {
        let mut request = self.request()?;
        // Nothing like it is sent again (S181).
        Arc::make_mut(&mut request.options).cache_retention = CacheRetention::None;
        request.messages = Arc::new(Vec::new());
        request.tools = Arc::new(Vec::new());
        request.purpose = Purpose::Summary;
        Ok(request)
    }

    /// [`Actor::ask_summary`] with a request of [`Actor::summary_request`].
    pub(crate) async fn ask_summary_as(
        &mut self,
        mut request: Request,
        text: &str,
        compaction: Option<CompactionReason>,
    ) -> Result<(String, Option<Value>)> {
        let system = SystemMessage { content: SYSTEM.to_owned(), timestamp: now_ms(), ..SystemMessage::default() };
        let messages = vec![Arc::new(system.message()), Arc::new(Message::user(text, Vec::new(), now_ms()))];
        request.messages = Arc::new(messages);
        request.session_id = uuid::Uuid::now_v7().to_string();
        let retry = self.settings().retry();
        let mut attempt = 0;
        let response = loop {
            if request.cancel.is_cancelled() {
                break Err(aborted());
            }
            let response = self.ask(request.clone()).await;
            let error = match &response {
                Ok(response) if retry.enabled && self.asked_pause().is_some() && is_retryable_response(response) => {
                    response.get_str("errorMessage")
                }
                _ => None,
            };
            let Some(error) = error.filter(|_| u64::from(attempt) < retry.max_retries) else { break response };
            attempt += 1;
            let delay = retry.delay(attempt).max(self.asked_pause().unwrap_or_default());
            let wait = RetryWait {
                attempt,
                max_attempts: retry.max_retries,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                error: error.into(),
            };
            self.emit(EventKind::SummarizationRetryScheduled { wait }).await;
            let cancel = request.cancel.clone();
            if self.wait(async move { cancel.run_until_cancelled(tokio::time::sleep(delay)).await }).await.is_none() {
                break Err(aborted());
            }
            self.emit(EventKind::SummarizationRetryAttemptStart { compaction }).await;
        };
        if attempt > 0 {
            self.emit(EventKind::SummarizationRetryFinished).await;
        }
        let response = response?;
        Ok((summary_text(&response)?, response.get("usage").cloned()))
    }
}

fn aborted() -> Error {
    Error::new(ErrorCode::Cancelled, "the summary was aborted")
}

/// The text of a response that is a proper summary (S182, S278).
fn summary_text(response: &Message) -> Result<String> {
    let failed = |why: &str| Error::new(ErrorCode::SummaryFailed, format!("no summary could be made: {why}"));
    match response.stop_reason() {
        Some(StopReason::Aborted) => return Err(aborted()),
        Some(StopReason::Error) => {
            return Err(failed(response.get("errorMessage").and_then(Value::as_str).unwrap_or("no reason was given")));
        }
        Some(StopReason::Length) => return Err(failed("it was longer than the model may answer")),
        _ if response.tool_calls().next().is_some() => return Err(failed("the model called a tool")),
        _ => {}
    }
    Ok(response.text("\n"))
}
