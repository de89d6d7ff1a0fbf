//! Making compactions (S262–S264, S277): what is planned in [`super::compaction`] is summarised and stored.

use std::sync::Arc;

use super::actor::Actor;
use super::compaction::{self, Preparation};
use super::event::{CompactionReason, CompactionResult, EventKind};
use super::shared::Step;
use super::state::Phase;
use super::{estimate, serialise, summary_request};
use crate::error::{Error, ErrorCode, Result};
use crate::message::Usage;
use crate::providers::Model;
use crate::tree::{CompactionEntry, EntryKind};

/// Stands for the history when a split turn is all there is.
const NO_HISTORY: &str = "(The conversation begins with this turn.)";

/// Heads the summary of a split turn's beginning.
const SPLIT_HEADING: &str = "**How the current turn began:**";

impl Actor {
    /// The compaction a host asks for, on an idle session (S262).
    pub(crate) async fn compact(&mut self, instructions: Option<&str>) -> Result<CompactionResult> {
        if self.shared.choices_made().read_only {
            return Err(Error::new(ErrorCode::ReadOnly, "the session was opened read-only; open it for writing"));
        }
        self.chosen_model()?;
        self.begin(Phase::Compacting);
        self.begin_step(Step::Summary); // first: who hears of it may cancel it at once
        self.emit(EventKind::CompactionStart { reason: CompactionReason::Manual }).await;
        let result = match self.plan() {
            Ok(Some(plan)) => self.make_compaction(plan, instructions, CompactionReason::Manual).await,
            Ok(None) => Err(self.nothing_to_compact()),
            Err(error) => Err(error),
        };
        self.end_step();
        self.compaction_end(CompactionReason::Manual, &result, false, "Compaction failed").await;
        let synced = self.sync_turn().await;
        self.end_quietly();
        synced.and(result)
    }

    /// A compaction by itself. True if one was made; failures are told as events and stop nothing (S263).
    pub(crate) async fn compact_by_itself(&mut self, reason: CompactionReason, retry: bool) -> Result<bool> {
        let Some(plan) = self.plan()? else { return Ok(false) };
        self.begin_step(Step::Summary);
        self.emit(EventKind::CompactionStart { reason }).await;
        let result = self.make_compaction(plan, None, reason).await;
        let failed = match reason {
            CompactionReason::Overflow => "Context overflow recovery failed",
            _ => "Auto-compaction failed",
        };
        self.compaction_end(reason, &result, retry, failed).await;
        Ok(result.is_ok())
    }

    async fn compaction_end(
        &mut self,
        reason: CompactionReason,
        result: &Result<CompactionResult>,
        retry: bool,
        failed: &str,
    ) {
        let aborted = result.as_ref().is_err_and(|error| error.code() == ErrorCode::Cancelled);
        let error = result.as_ref().err().filter(|_| !aborted).map(|error| format!("{failed}: {error}").into());
        let result = result.as_ref().ok().map(|result| Arc::new(result.clone()));
        let will_retry = retry && result.is_some();
        self.emit(EventKind::CompactionEnd { reason, result, aborted, will_retry, error }).await;
    }

    fn plan(&self) -> Result<Option<Preparation>> {
        let model = self.model.as_deref().map(Model::name_parts);
        let keep = self.settings().compaction(model)?.keep_recent_tokens;
        let context = self.cursor.tree().context(self.cursor.leaf())?;
        Ok(compaction::prepare(&context, keep))
    }

    fn nothing_to_compact(&self) -> Error {
        let leaf = self.cursor.leaf().and_then(|leaf| self.cursor.tree().entry(leaf).ok().flatten());
        match leaf.map(|leaf| leaf.kind()) {
            Some(EntryKind::Compaction) => {
                Error::new(ErrorCode::AlreadyCompacted, "the session was just compacted; there is nothing new")
            }
            _ => Error::new(ErrorCode::NothingToCompact, "the session is too short to be compacted; go on with it"),
        }
    }

    /// Summarises and stores, and reads the context again. It can be cancelled alone.
    async fn make_compaction(
        &mut self,
        plan: Preparation,
        focus: Option<&str>,
        reason: CompactionReason,
    ) -> Result<CompactionResult> {
        let summary = self.summarise_plan(&plan, focus, reason).await;
        self.end_step();
        let (summary, usage) = summary?;
        let files = plan.files.lists();
        let mut entry = CompactionEntry {
            summary: summary + &files.suffix(),
            first_kept_entry_id: Some(plan.first_kept_entry_id),
            tokens_before: plan.tokens_before,
            details: Some(files.details()),
            usage: usage.map(|usage| usage.to_value()),
            from_hook: Some(false),
        };
        let entry_id = self.append(|cursor| cursor.append_compaction(&entry))?;
        let context = self.reload_context()?;
        self.show();
        Ok(CompactionResult {
            entry_id,
            summary: std::mem::take(&mut entry.summary),
            first_kept_entry_id: entry.first_kept_entry_id.unwrap_or_default(),
            tokens_before: entry.tokens_before,
            estimated_tokens_after: estimate::sum_of_estimates(&context),
            usage: entry.usage,
            details: entry.details.unwrap_or_default(),
        })
    }

    /// The text of the summary, without its lists of files, and what it cost.
    async fn summarise_plan(
        &mut self,
        plan: &Preparation,
        focus: Option<&str>,
        reason: CompactionReason,
    ) -> Result<(String, Option<Usage>)> {
        let request = self.summary_request()?;
        let mut spent: Option<Usage> = None;
        let mut summary = None;
        if !plan.history.is_empty() {
            let conversation = serialise::conversation(&plan.history);
            let text = summary_request::history(&conversation, plan.previous_summary.as_deref(), focus);
            let (text, usage) = self.ask_summary_as(request.clone(), &text, Some(reason)).await?;
            spent = usage.as_ref().and_then(Usage::from_value);
            summary = Some(text);
        }
        if plan.turn_prefix.is_empty() {
            return Ok((summary.unwrap_or_default(), spent));
        }
        let history = summary.or(plan.previous_summary.clone()).unwrap_or_else(|| NO_HISTORY.to_owned());
        let text = summary_request::turn_prefix(&serialise::conversation(&plan.turn_prefix), focus);
        let (prefix, usage) = self.ask_summary_as(request, &text, Some(reason)).await?;
        let usage = usage.as_ref().and_then(Usage::from_value);
        let spent = match (spent, usage) {
            (Some(a), Some(b)) => Some(a.add(&b)),
            (a, b) => a.or(b),
        };
        Ok((format!("{history}\n\n---\n\n{SPLIT_HEADING}\n\n{prefix}"), spent))
    }
}
