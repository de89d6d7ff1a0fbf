//! The summary of a branch that is being left (S168, S175–S182).

use super::actor::Actor;
use super::asked::NavigateOptions;
use super::{serialise, summary, summary_request};
use crate::error::Result;
use crate::tree::BranchSummaryEntry;

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
        let reserve = self.settings().branch_summary().reserve_tokens;
        let prepared = summary::prepare_branch(&left.entries, summary::budget(Some(window), reserve));
        let details = Some(prepared.files.details());
        let entry = BranchSummaryEntry { details, from_hook: Some(false), ..BranchSummaryEntry::default() };
        if prepared.messages.is_empty() {
            return Ok(Some(BranchSummaryEntry { summary: NOTHING.to_owned(), ..entry }));
        }
        let instructions = match options.instructions.as_deref() {
            Some(text) if options.replace_instructions && !text.is_empty() => text.to_owned(),
            focus => summary_request::with_focus(summary_request::BRANCH, focus),
        };
        let text = summary_request::tagged(&serialise::conversation(&prepared.messages), &instructions);
        let (text, usage) = self.ask_summary(&text, None).await?;
        Ok(Some(BranchSummaryEntry { summary: format!("{INTRO}{text}{}", prepared.files.suffix()), usage, ..entry }))
    }
}
