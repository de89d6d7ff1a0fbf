//! Moving to another entry of the same tree (S163–S173).

use super::Step;
use super::actor::Actor;
use super::asked::{NavigateOptions, NavigateResult};
use super::state::Phase;
use crate::agent::Projection;
use crate::error::{Error, ErrorCode, Result};
use crate::message::Role;
use crate::tree::{BranchSummaryEntry, Context, EntryKind};

impl Actor {
    /// Moves the idle session. Checks are made in the order of the rules: same entry, model, target.
    pub(crate) async fn navigate(&mut self, target: &str, options: NavigateOptions) -> Result<NavigateResult> {
        if self.cursor.leaf() == Some(target) {
            return Ok(self.arrived(None, None));
        }
        if options.summarize && self.model.is_none() {
            return Err(Error::new(ErrorCode::NoModel, "a summary needs a model; choose one first"));
        }
        let tree = self.cursor.tree().clone();
        let Some(entry) = tree.entry(target)? else {
            return Err(Error::new(ErrorCode::EntryNotFound, format!("the session has no entry {target:?}")));
        };
        let (leaf, editor_text) = match entry.kind() {
            EntryKind::Message(Role::User) => {
                (tree.parent(target), Some(entry.message().map(|message| message.text("")).unwrap_or_default()))
            }
            EntryKind::CustomMessage => (tree.parent(target), Some(custom_text(&entry.value()))),
            _ => (Some(target.to_owned()), None),
        };
        let summary = match options.summarize {
            true => match self.summarise(target, &options).await {
                Err(error) if error.code() == ErrorCode::Cancelled => {
                    return Ok(NavigateResult { cancelled: true, ..self.arrived(None, None) });
                }
                summary => summary?,
            },
            false => None,
        };
        let mut summary_entry = None;
        match (&summary, &leaf) {
            (Some(summary), leaf) => {
                let id = self.append(|cursor| cursor.move_with_summary(leaf.as_deref(), summary))?;
                summary_entry = Some(id);
            }
            (None, Some(leaf)) => self.cursor.move_to(leaf)?,
            (None, None) => self.cursor.reset(),
        }
        let label = options.label.as_deref().filter(|label| !label.is_empty());
        let labelled = match label {
            Some(_) => {
                let entry = summary_entry.as_deref().unwrap_or(target).to_owned();
                self.append(|cursor| cursor.append_label(&entry, label)).map(drop)
            }
            None => Ok(()),
        };
        self.rebuild()?; // also when the label could not be stored: the session has moved
        labelled?;
        self.sync_turn().await?;
        Ok(self.arrived(editor_text, summary_entry))
    }

    /// Makes the summary. Meanwhile the session counts as compacting (S194), takes commands and can be aborted.
    async fn summarise(&mut self, target: &str, options: &NavigateOptions) -> Result<Option<BranchSummaryEntry>> {
        self.begin(Phase::Compacting);
        self.begin_step(Step::Summary);
        let summary = self.branch_summary(target, options).await;
        self.end_step();
        let synced = self.sync_turn().await;
        self.end_quietly();
        let summary = summary?.filter(|summary| !summary.summary.is_empty());
        synced.map(|()| summary)
    }

    /// Reads the context at the leaf again.
    pub(crate) fn reload_context(&mut self) -> Result<Context> {
        let context = self.cursor.tree().context(self.cursor.leaf())?;
        self.projection = Projection::new(&context, self.settings().block_images());
        Ok(context)
    }

    /// Reads context and tools at the leaf again (S172).
    pub(super) fn rebuild(&mut self) -> Result<()> {
        self.reload_context()?;
        if let Some(declared) = super::open::declared_tools(self.cursor.tree(), self.cursor.leaf())? {
            let (names, mentioned) = declared.tool_names();
            self.tools.restore(&names, mentioned);
        }
        self.show();
        Ok(())
    }

    pub(super) fn arrived(&self, editor_text: Option<String>, summary_entry: Option<String>) -> NavigateResult {
        let leaf = self.cursor.leaf().map(str::to_owned);
        NavigateResult { leaf, editor_text, cancelled: false, summary_entry }
    }
}

/// The text of a `custom_message` entry.
fn custom_text(entry: &serde_json::Value) -> String {
    let mut message = crate::message::Message::default();
    message.set("content", entry.get("content").cloned().unwrap_or_default());
    message.text("")
}
