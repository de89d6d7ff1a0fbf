//! Asking the model for a summary of a branch that is being left (S168, S175–S182).

use std::sync::Arc;

use serde_json::Value;

use super::actor::Actor;
use super::options::NavigateOptions;
use super::{serialise, summary};
use crate::error::{Error, ErrorCode, Result};
use crate::message::{Message, StopReason, SystemMessage};
use crate::providers::{Purpose, Request};
use crate::system::clock::now_ms;
use crate::tree::BranchSummaryEntry;

/// Tokens kept free for the answer, unless settings say otherwise (S175).
const RESERVE_TOKENS: u64 = 16_384;

const SYSTEM: &str = "You write handover notes. You get a conversation between a person and a coding agent and write \
down what somebody needs who goes on from there. You do not continue the conversation and answer nothing asked in it.";

const INSTRUCTIONS: &str =
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

/// In front of a stored summary.
const INTRO: &str = "Notes on a line of work that was explored and left:\n\n";

/// Stands for a summary when there was nothing to say.
const NOTHING: &str = "That line of work held no messages to summarise.";

impl Actor {
    /// The summary of what moving to `target` leaves behind; `None` if nothing is left behind.
    ///
    /// Errors: `cancelled` after an abort, `summary_failed`.
    pub(crate) async fn branch_summary(
        &mut self,
        target: &str,
        options: &NavigateOptions,
    ) -> Result<Option<BranchSummaryEntry>> {
        let left = summary::left_behind(self.cursor.tree(), self.cursor.leaf(), Some(target))?;
        if left.entries.is_empty() {
            return Ok(None);
        }
        let window = self.chosen_model()?.context_window;
        let prepared = summary::prepare_branch(&left.entries, summary::budget(Some(window), RESERVE_TOKENS));
        let details = Some(prepared.files.details());
        let entry = BranchSummaryEntry { details, from_hook: Some(false), ..BranchSummaryEntry::default() };
        if prepared.messages.is_empty() {
            return Ok(Some(BranchSummaryEntry { summary: NOTHING.to_owned(), ..entry }));
        }
        let request = self.summary_request(&serialise::conversation(&prepared.messages), options)?;
        let response = self.ask(request).await?;
        let text = summary_text(&response)?;
        Ok(Some(BranchSummaryEntry {
            summary: format!("{INTRO}{text}{}", prepared.files.suffix()),
            usage: response.get("usage").cloned(),
            ..entry
        }))
    }

    /// The conversation in tags, then what to do with it (S180, S181).
    fn summary_request(&self, conversation: &str, options: &NavigateOptions) -> Result<Request> {
        let instructions = match options.instructions.as_deref().filter(|text| !text.is_empty()) {
            Some(text) if options.replace_instructions => text.to_owned(),
            Some(text) => format!("{INSTRUCTIONS}\n\nAdditional focus: {text}"),
            None => INSTRUCTIONS.to_owned(),
        };
        let text = format!("<conversation>\n{conversation}\n</conversation>\n\n{instructions}");
        let system = SystemMessage { content: SYSTEM.to_owned(), timestamp: now_ms(), ..SystemMessage::default() };
        let messages = vec![Arc::new(system.message()), Arc::new(Message::user(&text, Vec::new(), now_ms()))];
        Ok(Request {
            messages: Arc::new(messages),
            tools: Arc::new(Vec::new()),
            session_id: uuid::Uuid::now_v7().to_string(),
            purpose: Purpose::Summary,
            ..self.request()?
        })
    }
}

/// The text of a response that is a proper summary (S182).
fn summary_text(response: &Message) -> Result<String> {
    let failed = |why: &str| Error::new(ErrorCode::SummaryFailed, format!("the summary failed: {why}"));
    match response.stop_reason() {
        Some(StopReason::Aborted) => return Err(Error::new(ErrorCode::Cancelled, "the summary was aborted")),
        Some(StopReason::Error) => {
            return Err(failed(response.get("errorMessage").and_then(Value::as_str).unwrap_or("no reason was given")));
        }
        Some(StopReason::Length) => return Err(failed("it was longer than the model may answer")),
        _ if response.tool_calls().next().is_some() => return Err(failed("the model called a tool")),
        _ => {}
    }
    Ok(response.text("\n"))
}
