//! What the sessions over one tree share: the right to write to it, and what they find where they begin.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::explore::Group;
use super::open::declared_tools;
use super::shared::Shared;
use crate::agent::{Projection, SystemState};
use crate::error::Result;
use crate::tree::Tree;

/// All sessions over one tree. Each holds it as long as it lives; with the last one the right to write ends, and with
/// that the lock on the file. A session that is being made holds it, too, so closing the others meanwhile is safe.
pub(crate) struct Family {
    tree: Tree,
    /// Siblings made so far.
    siblings: AtomicU32,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    sessions: Vec<Weak<Shared>>,
    footings: Vec<Weak<Footing>>,
}

impl Drop for Family {
    fn drop(&mut self) {
        // A failure keeps the lock as long as somebody reads the tree. Nobody is left to be told.
        let _ = self.tree.release();
    }
}

impl Family {
    pub(crate) fn new(tree: Tree) -> Arc<Family> {
        Arc::new(Family { tree, siblings: AtomicU32::new(0), members: Mutex::default() })
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The number of the next sibling, from 1.
    pub(crate) fn next_sibling(&self) -> u32 {
        self.siblings.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session over the tree was made.
    pub(crate) fn join(&self, session: &Arc<Shared>) {
        let mut members = self.lock();
        members.sessions.retain(|known| known.strong_count() > 0);
        members.sessions.push(Arc::downgrade(session));
    }

    /// The sessions that somebody still holds.
    pub(crate) fn sessions(&self) -> Vec<Arc<Shared>> {
        self.lock().sessions.iter().filter_map(Weak::upgrade).collect()
    }

    /// What a living sibling found at this entry.
    pub(crate) fn footing(&self, leaf: Option<&str>) -> Option<Arc<Footing>> {
        self.lock().footings.iter().filter_map(Weak::upgrade).find(|footing| footing.leaf.as_deref() == leaf)
    }

    /// Keeps a footing for further siblings, as long as one of them lives.
    pub(crate) fn remember(&self, footing: &Arc<Footing>) {
        let mut members = self.lock();
        members.footings.retain(|known| known.strong_count() > 0);
        members.footings.push(Arc::downgrade(footing));
    }
}

/// Where a session made by branching comes from.
pub(crate) struct Origin {
    pub(crate) footing: Arc<Footing>,
    /// The exploration it was made for.
    pub(crate) group: Option<Arc<Group>>,
}

/// What a session finds at the entry it begins at: read once for all siblings that begin there.
pub(crate) struct Footing {
    pub(crate) leaf: Option<String>,
    /// What the model sees.
    pub(crate) projection: Projection,
    /// The model in force on the path (S119), `provider/model`.
    pub(crate) model: Option<String>,
    /// The tools that the path declares (S304).
    pub(crate) tools: Option<SystemState>,
}

impl Footing {
    /// Reads what is at an entry; `known` is what the model sees there, if somebody has it.
    pub(crate) fn read(
        tree: &Tree,
        leaf: Option<String>,
        known: Option<Projection>,
        block_images: bool,
    ) -> Result<Footing> {
        let at = leaf.as_deref();
        let projection = match known {
            Some(projection) => projection,
            None => Projection::new(&tree.context(at)?, block_images).share(),
        };
        let model = tree.settings_at(at)?.1.map(|(provider, id)| format!("{provider}/{id}"));
        Ok(Footing { projection, model, tools: declared_tools(tree, at)?, leaf })
    }
}
