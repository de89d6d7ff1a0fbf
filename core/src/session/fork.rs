//! Forks and clones: one path copied to a file of its own, opened as another session (S183–S188).
//!
//! pi replaces the running session by the fork; here the original stays open, so nothing has to be aborted and forking
//! is legal at any time: it only reads what is stored.

use std::sync::Arc;

use super::asked::{Fork, ForkPosition};
use super::open::{Choices, launch};
use super::{Session, Shared};
use crate::engine::EngineShared;
use crate::error::{Error, ErrorCode, Result};
use crate::message::Role;
use crate::tree::{EntryKind, Tree};

pub(crate) async fn fork(
    engine: &Arc<EngineShared>,
    shared: Arc<Shared>,
    entry_id: String,
    position: ForkPosition,
) -> Result<Fork> {
    let choices = shared.choices();
    let (tree, editor_text) = engine.blocking(move || copy(&shared.tree, &entry_id, position)).await?;
    let session = launch(engine, tree, choices).await?;
    Ok(Fork { session, editor_text })
}

pub(crate) async fn clone(engine: &Arc<EngineShared>, shared: Arc<Shared>) -> Result<Session> {
    let Some(leaf) = shared.leaf() else {
        return Err(Error::new(ErrorCode::EntryNotFound, "the session is empty; there is nothing to clone"));
    };
    Ok(fork(engine, shared, leaf, ForkPosition::At).await?.session)
}

/// The new tree, and the text to edit when a user message was forked before.
fn copy(tree: &Tree, entry_id: &str, position: ForkPosition) -> Result<(Tree, Option<String>)> {
    let Some(entry) = tree.entry(entry_id)? else {
        return Err(Error::new(ErrorCode::EntryNotFound, format!("the session has no entry {entry_id:?}")));
    };
    let (leaf, text) = match position {
        ForkPosition::At => (Some(entry_id.to_owned()), None),
        ForkPosition::Before if entry.kind() == EntryKind::Message(Role::User) => {
            (tree.parent(entry_id), entry.message().map(|message| message.text("")))
        }
        ForkPosition::Before => {
            let text = "a fork before an entry needs a user message; fork at the entry instead";
            return Err(Error::new(ErrorCode::InvalidForkTarget, text));
        }
    };
    let in_memory = tree.path().is_none();
    if !in_memory && !tree.is_saved() {
        return Err(Error::new(ErrorCode::NotSaved, "the session has no file yet; send a message first"));
    }
    let copy = match leaf {
        Some(leaf) => tree.extract_branch(&leaf)?,
        None => tree.new_session(true)?,
    };
    Ok((copy, text))
}

/// What a fork takes over from its session.
impl Shared {
    pub(crate) fn choices(&self) -> Choices {
        let state = self.state();
        Choices {
            name: None, // the copied path has it already
            model: state.model,
            thinking_level: Some(state.thinking_level),
            tools: Some(state.tools),
            resources: self.resource_options(),
            loaded: Some(self.resources()),
            ..self.choices_made().clone()
        }
    }
}
