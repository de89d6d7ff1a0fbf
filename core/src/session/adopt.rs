//! Going on with what a sibling found, and keeping in a few words what the others did.

use std::collections::HashSet;

use super::Session;
use super::actor::Actor;
use super::asked::NavigateResult;
use super::command::Command;
use super::files::FileOperations;
use super::shared::Step;
use super::state::Phase;
use super::{serialise, summary, summary_request};
use crate::error::{Error, ErrorCode, Result};
use crate::tree::{BranchSummaryEntry, Entry, Tree};

/// In front of a stored summary.
const INTRO: &str = "Notes on other lines of work that began at the same point and were not taken up. What they changed outside of this \
conversation, in files for example, is still there:\n\n";

/// What the summary is to say.
const OTHERS: &str = "Above are several lines of work that began at the same point of a conversation. The person goes on \
with another one, which is not shown. Write down what these lines found out, for somebody who goes on there. For each line \
one section, in the order above, headed by a few words for what it tried:

- what it found out or built, and how far it came
- what worked, what failed, and why
- what is worth taking over

End with a section of conclusions that hold for all of them, if there are any. Keep names of files, functions and commands \
exactly as they are, and leave out what does not matter for going on.";

/// Details of [`Session::adopt`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AdoptOptions {
    /// Store one summary of what the others did, at the new leaf.
    pub summarize_others: bool,
    /// The leaves of the others. `None`: the other siblings of the winner's exploration, or, where it comes from none,
    /// the living siblings that began at the same entry. What this session itself said since then counts as well.
    pub others: Option<Vec<String>>,
    /// What the summary should pay attention to.
    pub instructions: Option<String>,
    /// `instructions` replace the usual ones instead of adding to them.
    pub replace_instructions: bool,
}

impl AdoptOptions {
    /// Sets [`summarize_others`](Self::summarize_others).
    pub fn summarize_others(mut self, summarize: bool) -> Self {
        self.summarize_others = summarize;
        self
    }

    /// Sets [`others`](Self::others).
    pub fn others<T: Into<String>>(mut self, leaves: impl IntoIterator<Item = T>) -> Self {
        self.others = Some(leaves.into_iter().map(Into::into).collect());
        self
    }

    /// Sets [`instructions`](Self::instructions).
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets [`replace_instructions`](Self::replace_instructions).
    pub fn replace_instructions(mut self, replace: bool) -> Self {
        self.replace_instructions = replace;
        self
    }
}

impl Session {
    /// Moves this session to where a [sibling](Session::branch) stands, so that it goes on from there. The sibling stays
    /// as it is and may be closed. Model and level of this session stay; its tools are what the path declares (S172).
    ///
    /// With [`AdoptOptions::summarize_others`] the model is asked once about what the others did, and one `branch_summary`
    /// is stored at the new leaf (S89). Nothing is stored when the others said nothing. [`abort`](Session::abort) and
    /// [`abort_summary`](Session::abort_summary) end that: the result is `cancelled` and nothing has changed.
    ///
    /// Errors: `running` when this session or the winner runs, `compacting`, `invalid_argument` for a session over
    /// another tree, `no_model` (a summary without a model), `entry_not_found`, `summary_failed`, `read_only`.
    pub async fn adopt(&self, winner: &Session, options: AdoptOptions) -> Result<NavigateResult> {
        if !self.is_sibling_of(winner) {
            let text = "only a session over the same tree can be adopted; this one is over another file";
            return Err(Error::new(ErrorCode::InvalidArgument, text));
        }
        let theirs = winner.state();
        if theirs.running && winner.sibling() != self.sibling() {
            let text = "the session to adopt is running; wait for it or abort it";
            return Err(Error::new(ErrorCode::Running, text));
        }
        let others = match (&options.others, options.summarize_others) {
            (_, false) => Vec::new(),
            (Some(leaves), true) => leaves.clone(),
            (None, true) => self.others(winner)?,
        };
        self.ask(|reply| Command::Adopt { target: theirs.leaf, others, options, reply }).await
    }

    /// Where the siblings stand that tried something else than the winner.
    fn others(&self, winner: &Session) -> Result<Vec<String>> {
        let Some(origin) = &winner.shared().origin else { return Ok(Vec::new()) };
        if let Some(group) = &origin.group {
            return Ok(group.leaves());
        }
        let sessions = self.shared().family()?.sessions();
        let beside = sessions.iter().filter(|session| {
            let theirs = session.origin.as_ref();
            theirs.is_some_and(|theirs| theirs.group.is_none() && theirs.footing.leaf == origin.footing.leaf)
        });
        Ok(beside.filter_map(|session| session.leaf()).collect())
    }
}

impl Actor {
    /// Moves the idle session to the winner's leaf.
    pub(crate) async fn adopt(
        &mut self,
        target: Option<String>,
        others: &[String],
        options: &AdoptOptions,
    ) -> Result<NavigateResult> {
        if options.summarize_others {
            self.chosen_model()?;
            self.cursor.tree().check_writable()?;
        }
        let tree = self.cursor.tree().clone();
        let unknown = |id: &&String| !tree.knows(id);
        if let Some(id) = target.iter().chain(others).find(unknown) {
            return Err(Error::new(ErrorCode::EntryNotFound, format!("the session has no entry {id:?}")));
        }
        let summary = match options.summarize_others {
            true => match self.summarise_others(target.as_deref(), others, options).await {
                Err(error) if error.code() == ErrorCode::Cancelled => {
                    return Ok(NavigateResult { cancelled: true, ..self.arrived(None, None) });
                }
                summary => summary?,
            },
            false => None,
        };
        let mut summary_entry = None;
        match (&summary, &target) {
            (Some(summary), target) => {
                let id = self.append(|cursor| cursor.move_with_summary(target.as_deref(), summary))?;
                summary_entry = Some(id);
            }
            (None, Some(target)) => self.cursor.move_to(target)?,
            (None, None) => self.cursor.reset(),
        }
        self.rebuild()?;
        self.sync_turn().await?;
        Ok(self.arrived(None, summary_entry))
    }

    /// Makes the summary. Meanwhile the session counts as compacting (S194), takes commands and can be aborted.
    async fn summarise_others(
        &mut self,
        target: Option<&str>,
        others: &[String],
        options: &AdoptOptions,
    ) -> Result<Option<BranchSummaryEntry>> {
        self.begin(Phase::Compacting);
        self.begin_step(Step::Summary);
        let summary = self.summary_of_others(target, others, options).await;
        self.end_step();
        let synced = self.sync_turn().await;
        self.end_quietly();
        let summary = summary?;
        synced.map(|()| summary)
    }

    /// `None` when the others said nothing that is not on the winner's path.
    async fn summary_of_others(
        &mut self,
        target: Option<&str>,
        others: &[String],
        options: &AdoptOptions,
    ) -> Result<Option<BranchSummaryEntry>> {
        let lines = lines_beside(self.cursor.tree(), target, others.iter().map(String::as_str), self.cursor.leaf())?;
        let window = self.chosen_model()?.context_window;
        let reserve = self.settings().branch_summary().reserve_tokens;
        // Everyone gets the same part of the room, and never none, which would mean no limit.
        let share = summary::budget(Some(window), reserve).map(|all| (all / lines.len().max(1) as u64).max(1));
        let mut files = FileOperations::default();
        let mut texts = Vec::new();
        for line in &lines {
            let prepared = summary::prepare_branch(line, share);
            if prepared.messages.is_empty() {
                continue;
            }
            files.add_lists(&prepared.files);
            let number = texts.len() + 1;
            let conversation = serialise::conversation(&prepared.messages);
            texts.push(format!("<line number=\"{number}\">\n{conversation}\n</line>"));
        }
        if texts.is_empty() {
            return Ok(None);
        }
        let instructions = match options.instructions.as_deref() {
            Some(text) if options.replace_instructions && !text.is_empty() => text.to_owned(),
            focus => summary_request::with_focus(OTHERS, focus),
        };
        let (text, usage) = self.ask_summary(&format!("{}\n\n{instructions}", texts.join("\n\n")), None).await?;
        let files = files.lists();
        Ok(Some(BranchSummaryEntry {
            summary: format!("{INTRO}{text}{}", files.suffix()),
            details: Some(files.details()),
            from_hook: Some(false),
            usage,
        }))
    }
}

/// What each of the leaves has behind the path to `target`, oldest first; `own`, the leaf that is left, comes last. Leaves
/// on the path, and such that are on another line, are left out.
fn lines_beside<'a>(
    tree: &Tree,
    target: Option<&str>,
    others: impl Iterator<Item = &'a str>,
    own: Option<&'a str>,
) -> Result<Vec<Vec<Entry>>> {
    let winner: HashSet<String> = tree.branch(target).ids().collect();
    let mut told: HashSet<String> = HashSet::new();
    let mut lines = Vec::new();
    for leaf in others.chain(own) {
        if told.contains(leaf) {
            continue;
        }
        // From the leaf up to the winner's path. A damaged file may have a circle there.
        let mut ids: Vec<String> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        let mut at = Some(leaf.to_owned());
        while let Some(id) = at.take_if(|id| !winner.contains(id) && seen.insert(id.clone())) {
            at = tree.parent(&id);
            ids.push(id);
        }
        let mut line = Vec::with_capacity(ids.len());
        for id in ids.iter().rev() {
            line.extend(tree.entry(id)?);
        }
        told.extend(ids);
        if !line.is_empty() {
            lines.push(line);
        }
    }
    Ok(lines)
}
