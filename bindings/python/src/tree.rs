//! Session trees, to read. Long lists cross in slices, so that a big tree never becomes a big Python list by itself.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use branchline::tree::{self, EntryKind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::IntoPyResult;
use crate::owned::Owned;

/// `(id, type, role, line)`.
type EntryRow<'py> = (String, &'static str, Option<&'static str>, Bound<'py, PyBytes>);
/// `(id, type, role, depth, label)`.
type NodeRow = (String, &'static str, Option<&'static str>, usize, Option<String>);

fn role(kind: EntryKind) -> Option<&'static str> {
    match kind {
        EntryKind::Message(role) => Some(role.name()),
        _ => None,
    }
}

fn entry_row<'py>(py: Python<'py>, entry: &tree::Entry) -> EntryRow<'py> {
    (entry.id().to_owned(), entry.kind().type_name(), role(entry.kind()), PyBytes::new(py, entry.json()))
}

fn entry_rows(py: Python<'_>, entries: Vec<branchline::Result<tree::Entry>>) -> PyResult<Vec<EntryRow<'_>>> {
    entries.into_iter().map(|entry| Ok(entry_row(py, &entry.py(py)?))).collect()
}

/// `branchline::tree::Tree`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Tree {
    tree: Owned<tree::Tree>,
}

impl Tree {
    pub(crate) fn new(tree: tree::Tree) -> Tree {
        Tree { tree: Owned::new(tree) }
    }

    /// Asks the tree with the interpreter released: it may read the disk, or wait for one who writes.
    fn ask<T: Send>(&self, py: Python<'_>, question: impl FnOnce(&tree::Tree) -> T + Send) -> PyResult<T> {
        let tree = self.tree.get(py)?;
        Ok(py.detach(|| question(tree)))
    }
}

/// Opens a file to read it: without a session, an engine or the lock. Never makes or changes one.
#[pyfunction]
pub(crate) fn read_session(py: Python<'_>, path: PathBuf) -> PyResult<Tree> {
    let options = tree::OpenOptions { read_only: true, ..tree::OpenOptions::default() };
    Ok(Tree::new(py.detach(|| tree::Tree::open(path, options)).py(py)?))
}

#[pymethods]
impl Tree {
    fn session_id(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |tree| tree.session_id())
    }

    fn path(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        self.ask(py, |tree| tree.path())
    }

    fn is_saved(&self, py: Python<'_>) -> PyResult<bool> {
        self.ask(py, |tree| tree.is_saved())
    }

    fn header_json(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |tree| tree.header_json())
    }

    /// Distinct ids.
    fn entry_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.ask(py, |tree| tree.entry_count())
    }

    fn contains(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        self.ask(py, |tree| tree.contains(id))
    }

    fn entry<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Option<EntryRow<'py>>> {
        let entry = self.ask(py, |tree| tree.entry(id))?.py(py)?;
        Ok(entry.map(|entry| entry_row(py, &entry)))
    }

    /// All entries, or those after one, in file order.
    #[pyo3(signature = (after = None))]
    fn entries(&self, py: Python<'_>, after: Option<&str>) -> PyResult<Entries> {
        let entries = self.ask(py, |tree| match after {
            Some(id) => tree.entries_after(id),
            None => Ok(tree.entries()),
        })?;
        Ok(Entries { entries: Owned::new(Mutex::new(entries.py(py)?)) })
    }

    fn parent(&self, py: Python<'_>, id: &str) -> PyResult<Option<String>> {
        self.ask(py, |tree| tree.parent(id))
    }

    #[pyo3(signature = (id))]
    fn children(&self, py: Python<'_>, id: Option<&str>) -> PyResult<Vec<String>> {
        self.ask(py, |tree| tree.children(id))
    }

    #[pyo3(signature = (leaf))]
    fn branch(&self, py: Python<'_>, leaf: Option<&str>) -> PyResult<Branch> {
        Ok(Branch { branch: Owned::new(self.ask(py, |tree| tree.branch(leaf))?) })
    }

    /// `(text, timestamp)`.
    fn label(&self, py: Python<'_>, id: &str) -> PyResult<Option<(String, String)>> {
        let label = self.ask(py, |tree| tree.label(id))?;
        Ok(label.map(|label| (label.text, label.timestamp)))
    }

    /// `(entry id, text, timestamp)` of each.
    fn labels(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String)>> {
        let labels = self.ask(py, |tree| tree.labels())?;
        Ok(labels.into_iter().map(|(id, label)| (id, label.text, label.timestamp)).collect())
    }

    fn last_id(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.ask(py, |tree| tree.last_id())
    }

    fn name(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.ask(py, |tree| tree.name())
    }

    /// `(line, offset, kind, message)` of each.
    fn diagnostics(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64, &'static str, String)>> {
        let found = self.ask(py, |tree| tree.diagnostics())?;
        Ok(found.into_iter().map(|fault| (fault.line, fault.offset, fault.kind.name(), fault.message)).collect())
    }

    fn structure(&self, py: Python<'_>) -> PyResult<Structure> {
        let structure = self.ask(py, |tree| {
            let structure = tree.structure();
            let order = structure.walk().collect();
            (structure, order)
        })?;
        Ok(Structure { structure: Owned::new(structure) })
    }

    /// `([(entry id, role, message as JSON)], thinking level, (provider, model id) or None)`.
    #[pyo3(signature = (leaf))]
    #[allow(clippy::type_complexity)]
    fn context(
        &self,
        py: Python<'_>,
        leaf: Option<&str>,
    ) -> PyResult<(Vec<(String, String, String)>, String, Option<(String, String)>)> {
        let context = self.ask(py, |tree| tree.context(leaf))?.py(py)?;
        let text = |raw: Cow<'_, [u8]>| String::from_utf8_lossy(&raw).into_owned();
        let messages =
            context.messages().map(|message| (message.entry_id().to_owned(), message.role_name(), text(message.raw())));
        let model = context.model().map(|(provider, id)| (provider.to_owned(), id.to_owned()));
        Ok((messages.collect(), context.thinking_level().to_owned(), model))
    }

    /// The path to a leaf as the bytes of a session file.
    #[pyo3(signature = (leaf))]
    fn export_branch<'py>(&self, py: Python<'py>, leaf: Option<&str>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        self.ask(py, |tree| tree.export_branch(leaf, &mut bytes))?.py(py)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// Entries in file order, read in batches.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Entries {
    entries: Owned<Mutex<tree::Entries>>,
}

#[pymethods]
impl Entries {
    /// The next entries; empty at the end.
    fn next_batch<'py>(&self, py: Python<'py>, max: usize) -> PyResult<Vec<EntryRow<'py>>> {
        let entries = self.entries.get(py)?;
        let batch = py.detach(|| {
            let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.by_ref().take(max).collect()
        });
        entry_rows(py, batch)
    }
}

/// A path, root first.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Branch {
    branch: Owned<tree::Branch>,
}

#[pymethods]
impl Branch {
    fn length(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.branch.get(py)?.len())
    }

    fn contains(&self, py: Python<'_>, id: &str) -> PyResult<bool> {
        let branch = self.branch.get(py)?;
        Ok(py.detach(|| branch.contains(id)))
    }

    /// The ids from `start` to before `end`.
    fn ids(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<Vec<String>> {
        let branch = self.branch.get(py)?;
        Ok(py.detach(|| (start..end).map_while(|n| branch.id(n)).collect()))
    }

    /// The entries from `start` to before `end`.
    fn entries<'py>(&self, py: Python<'py>, start: usize, end: usize) -> PyResult<Vec<EntryRow<'py>>> {
        let branch = self.branch.get(py)?;
        entry_rows(py, py.detach(|| (start..end).map_while(|n| branch.entry(n)).collect()))
    }
}

/// The shape of a tree, each node after its parent.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Structure {
    structure: Owned<(tree::Structure, Vec<(u32, usize)>)>,
}

#[pymethods]
impl Structure {
    fn length(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.structure.get(py)?.0.len())
    }

    /// The nodes from `start` to before `end`.
    fn rows(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<Vec<NodeRow>> {
        let (structure, order) = self.structure.get(py)?;
        Ok(py.detach(|| {
            let nodes = order.iter().take(end).skip(start);
            let row = |(node, depth): &(u32, usize)| {
                let kind = structure.kind(*node);
                let label = structure.label(*node).map(|label| label.text);
                (structure.id(*node), kind.type_name(), role(kind), *depth, label)
            };
            nodes.map(row).collect()
        }))
    }
}
