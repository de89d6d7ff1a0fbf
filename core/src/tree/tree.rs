//! The tree of one session: queries.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::blank;
use crate::error::Result;

use super::diagnostic::Diagnostic;
use super::entry::{Entry, Line};
use super::header::Header;
use super::ids::IdSource;
use super::index::{Index, Place};
use super::labels::Label;
use super::log::Log;
use super::options::{CreateOptions, Durability, OpenOptions};
use super::storage::Storage;
use super::time::Stamp;

/// A session tree: every entry of one session file (or of one session in memory).
///
/// Cheap to clone; all clones are the same tree. Any number of [`Cursor`](super::Cursor)s may stand on it, each with its
/// own leaf; appends are serialised. All methods may be called from any thread. They block for as long as the disk needs.
///
/// ```
/// use branchline::message::Message;
/// use branchline::tree::{CreateOptions, Cursor, Tree};
///
/// let tree = Tree::create("/work/demo", CreateOptions { in_memory: true, ..Default::default() })?;
/// let mut cursor = Cursor::new(tree.clone());
/// let question = cursor.append_message(&Message::user("Which tea?", vec![], 0))?;
/// cursor.append_label(&question, Some("start"))?;
/// assert_eq!(tree.branch(cursor.leaf()).len(), 2);
/// # Ok::<(), branchline::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<RwLock<State>>,
}

/// What never changes.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) cwd: PathBuf,
    /// Where sessions made from this one go; `None` in memory.
    pub(crate) session_dir: Option<PathBuf>,
    pub(crate) durability: Durability,
}

impl Shared {
    pub(crate) fn from_create(options: &CreateOptions, cwd: PathBuf, session_dir: Option<PathBuf>) -> Shared {
        Shared {
            storage: options.storage.clone(),
            ids: options.ids.clone(),
            cwd,
            session_dir,
            durability: options.durability,
        }
    }

    pub(crate) fn from_open(options: &OpenOptions, cwd: PathBuf, session_dir: Option<PathBuf>) -> Shared {
        Shared {
            storage: options.storage.clone(),
            ids: options.ids.clone(),
            cwd,
            session_dir,
            durability: options.durability,
        }
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) index: Index,
    pub(crate) log: Log,
    pub(crate) header: Header,
    /// Room for the next line to append.
    pub(crate) line: Vec<u8>,
    pub(crate) stamp: Stamp,
}

impl State {
    pub(crate) fn new(index: Index, log: Log, header: Header) -> State {
        State { index, log, header, line: Vec::new(), stamp: Stamp::default() }
    }
}

impl State {
    pub(crate) fn entry(&self, node: u32) -> Result<Entry> {
        self.entry_at(node, self.index.place(node))
    }

    pub(crate) fn entry_at(&self, node: u32, place: Place) -> Result<Entry> {
        let line = self.log.read(place.offset, place.len as usize)?;
        let facts = self.index.node(node);
        Ok(Entry {
            id: self.index.id(node).to_owned(),
            kind: facts.kind(),
            message: facts.message,
            line: Line::whole(line),
        })
    }

    /// The path that S79 gives for an id; empty for an unknown one.
    pub(crate) fn path(&self, leaf: Option<&str>) -> Vec<u32> {
        leaf.and_then(|leaf| self.index.find(leaf)).map_or_else(Vec::new, |node| self.index.path(node))
    }
}

impl Tree {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether both are clones of one tree.
    pub fn is_same(&self, other: &Tree) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Refuses what cannot be written anyway, before something is done for it.
    ///
    /// # Errors
    /// `read_only`, `storage_failed`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.read().log.check_writable()
    }

    /// The session's id.
    pub fn session_id(&self) -> String {
        self.read().header.id.clone()
    }

    /// The working directory (S47).
    pub fn cwd(&self) -> &Path {
        &self.shared.cwd
    }

    /// Where sessions made from this one go; `None` in memory.
    pub fn session_dir(&self) -> Option<&Path> {
        self.shared.session_dir.as_deref()
    }

    /// The session file, which may not exist yet (S42); `None` in memory.
    pub fn path(&self) -> Option<PathBuf> {
        self.read().log.path().map(Path::to_path_buf)
    }

    /// Whether the session file exists.
    pub fn is_saved(&self) -> bool {
        self.read().log.is_saved()
    }

    /// Whether appends are refused because the tree was opened read-only.
    pub fn is_read_only(&self) -> bool {
        self.read().log.is_read_only()
    }

    /// The header line as it stands in the file.
    pub fn header_json(&self) -> String {
        String::from_utf8_lossy(&self.read().header.line).into_owned()
    }

    /// The session file this one was derived from, as its header names it (S10).
    pub fn parent_session(&self) -> Option<String> {
        self.read().header.parent_session.clone()
    }

    /// Distinct entry ids (S86).
    pub fn entry_count(&self) -> usize {
        self.read().index.node_count()
    }

    /// Entries in the file, repeated ids included.
    pub fn entries_len(&self) -> usize {
        self.read().index.line_count()
    }

    /// Id of the last entry of the file: where a new cursor stands (S58).
    pub fn last_id(&self) -> Option<String> {
        let state = self.read();
        state.index.last().map(|node| state.index.id(node).to_owned())
    }

    /// Whether an entry has this id.
    pub fn contains(&self, id: &str) -> bool {
        self.read().index.contains(id)
    }

    /// The entry with this id: the last one if it was written twice (S60).
    ///
    /// # Errors
    /// `storage_failed` or `storage_changed` if its line cannot be read.
    pub fn entry(&self, id: &str) -> Result<Option<Entry>> {
        let state = self.read();
        state.index.find(id).map(|node| state.entry(node)).transpose()
    }

    /// All entries in file order.
    pub fn entries(&self) -> Entries {
        Entries { tree: self.clone(), next: 0 }
    }

    /// All entries after the one with this id, so that an id serves as a durable position (S86).
    ///
    /// # Errors
    /// `entry_not_found`.
    pub fn entries_after(&self, id: &str) -> Result<Entries> {
        let state = self.read();
        let node = state.index.find(id).ok_or_else(|| super::append::not_found(id))?;
        Ok(Entries { tree: self.clone(), next: state.index.line_of(node) + 1 })
    }

    /// The parent of an entry; `None` for roots and unknown ids.
    pub fn parent(&self, id: &str) -> Option<String> {
        let state = self.read();
        let parent = state.index.node(state.index.find(id)?).parent;
        (parent < super::index::ORPHAN).then(|| state.index.id(parent).to_owned())
    }

    /// The path from the root to `leaf` (S79). Empty for `None` or an unknown id. Costs O(path), bodies are not read.
    pub fn branch(&self, leaf: Option<&str>) -> Branch {
        Branch { nodes: self.read().path(leaf), tree: self.clone() }
    }

    /// Ids of the children of an entry, or of `null`, in order of first appearance (S80). This looks at `parentId` alone, so
    /// in a damaged file an entry may be its own descendant; walk with [`Tree::structure`], which has no cycles. Entries may
    /// also name a parent that is not there.
    pub fn children(&self, id: Option<&str>) -> Vec<String> {
        let mut state = self.write();
        let children = match id.map(|id| (id, state.index.find(id))) {
            None => state.index.children(None),
            Some((_, Some(node))) => state.index.children(Some(node)),
            Some((id, None)) => state.index.waiting_for(id),
        };
        children.into_iter().map(|node| state.index.id(node).to_owned()).collect()
    }

    /// The current label of an entry (S83).
    pub fn label(&self, id: &str) -> Option<Label> {
        self.read().index.labels.get(id).map(|label| label.read())
    }

    /// All current labels with their targets, in the order of S84. A target may be unknown.
    pub fn labels(&self) -> Vec<(String, Label)> {
        let state = self.read();
        state.index.labels.list().into_iter().map(|(target, label)| (target.to_owned(), label.read())).collect()
    }

    /// The session's name (S85).
    pub fn name(&self) -> Option<String> {
        let state = self.read();
        state.index.name.as_deref().map(blank::trim).filter(|name| !name.is_empty()).map(str::to_owned)
    }

    /// What was found wrong with the file, in the order of discovery; at most the first thousand faults.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.read().index.diagnostics.list().to_vec()
    }

    /// How many faults were found in all.
    pub fn diagnostics_total(&self) -> u64 {
        self.read().index.diagnostics.total()
    }

    /// Ids that file order gives to nodes of a [`Structure`](super::Structure) or [`Branch`].
    pub(crate) fn id_of(&self, node: u32) -> String {
        self.read().index.id(node).to_owned()
    }
}

/// A path from the root to a leaf, root first. Ids and entries are fetched when asked for.
#[derive(Debug, Clone)]
pub struct Branch {
    tree: Tree,
    nodes: Vec<u32>,
}

impl Branch {
    /// Entries on the path.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether the entry is on the path. Costs O(path).
    pub fn contains(&self, id: &str) -> bool {
        self.tree.read().index.find(id).is_some_and(|node| self.nodes.contains(&node))
    }

    /// The id at a position of the path, counted from the root.
    pub fn id(&self, position: usize) -> Option<String> {
        self.nodes.get(position).map(|node| self.tree.id_of(*node))
    }

    /// The entry at a position of the path, counted from the root. Reading may fail as [`Tree::entry`] may.
    pub fn entry(&self, position: usize) -> Option<Result<Entry>> {
        self.nodes.get(position).map(|node| self.tree.read().entry(*node))
    }

    /// The ids, root first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = String> + '_ {
        self.nodes.iter().map(|node| self.tree.id_of(*node))
    }

    /// The entries, root first. Each read may fail as [`Tree::entry`] may.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = Result<Entry>> + '_ {
        self.nodes.iter().map(|node| self.tree.read().entry(*node))
    }
}

/// Entries in file order; see [`Tree::entries`]. Entries appended meanwhile are included.
#[derive(Debug, Clone)]
pub struct Entries {
    tree: Tree,
    next: usize,
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        let state = self.tree.read();
        if self.next >= state.index.line_count() {
            return None;
        }
        let (node, place) = state.index.line(self.next);
        self.next += 1;
        Some(state.entry_at(node, place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.tree.entries_len().saturating_sub(self.next), None)
    }
}
