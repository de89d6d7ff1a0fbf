//! The tree in memory: who is whose parent, and where each entry's line lies in the log.
//!
//! A *line* is one entry of the file; a *node* is one distinct id. They differ only where an id was written twice: both
//! lines stay in the entry list, and the node stands for the later one (S60, S67). Parents are node numbers, so a child
//! of a repeated id needs no repair. Bodies stay in the log. About 70 bytes an entry.

use std::collections::{HashMap, HashSet};

use super::adjacency::Adjacency;
use super::diagnostic::{DiagnosticKind, Diagnostics};
use super::fact::{Extra, Fact, FactBlock, ParentRef};
use super::id_table::IdTable;
use super::kind::{EntryKind, MessagePlace};
use super::labels::Labels;

/// A node without parent because its `parentId` is `null`.
pub(crate) const ROOT: u32 = u32::MAX;
/// A node whose `parentId` is unusable or names no entry: shown as a root, but not a child of `null` (S68).
pub(crate) const ORPHAN: u32 = u32::MAX - 1;

/// Entries an index can hold: node numbers are 32 bits wide, two of them are taken.
pub(crate) const MAX_ENTRIES: usize = (u32::MAX - 2) as usize;

/// Where an entry's line lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    offset: u64,
    len: u32,
    node: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// Milliseconds, or [`super::time::UNREADABLE`].
    pub(crate) time: i64,
    /// The line that stands for this id.
    line: u32,
    /// Node number, [`ROOT`] or [`ORPHAN`].
    pub(crate) parent: u32,
    pub(crate) message: MessagePlace,
    kind: u8,
}

impl Node {
    pub(crate) fn kind(&self) -> EntryKind {
        EntryKind::from_code(self.kind)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    lines: Vec<Line>,
    nodes: Vec<Node>,
    ids: IdTable,
    /// Parent ids that no entry has (yet): a merged or sorted file may name a parent before it comes.
    /// Each child with the line that names the parent: a later line of the same id makes it void.
    missing: HashMap<Box<str>, Vec<(u32, u32)>>,
    /// (entry, lines that are no entries before it), where that number changes: header, blank and bad lines.
    skipped: Vec<(u32, u64)>,
    /// Edges taken out because they closed a cycle: parent → the nodes that name it, each with its line.
    cut: HashMap<u32, Vec<(u32, u32)>>,
    /// Set when an edge was added that does not point backwards; only such edges can close a cycle.
    check_cycles: bool,
    adjacency: Option<Adjacency>,
    pub(crate) labels: Labels,
    pub(crate) name: Option<Box<str>>,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) has_conversation: bool,
    /// (line, node) whose parent was unknown when they came; looked at again by [`Index::finish`].
    unchecked: Vec<(u32, u32)>,
    /// Lines of the file read so far, header, blank and bad ones included.
    pub(crate) file_lines: u64,
}

impl Index {
    /// An empty index of a file whose first `lines` lines (up to the header) are no entries.
    pub(crate) fn after_lines(lines: u64) -> Index {
        Index { file_lines: lines, ..Index::default() }
    }

    pub(crate) fn reserve(&mut self, count: usize) {
        self.lines.reserve(count);
        self.nodes.reserve(count);
        self.ids.reserve(count);
    }

    /// Takes over the facts of the next lines of the file.
    pub(crate) fn absorb(&mut self, block: &FactBlock) {
        for fault in &block.faults {
            self.diagnostics.push(
                self.file_lines + u64::from(fault.line) + 1,
                fault.offset,
                fault.kind,
                fault.message.as_str(),
            );
        }
        self.diagnostics.add_uncounted(block.more_faults);
        for fact in &block.facts {
            self.insert(fact, block);
        }
        self.file_lines += u64::from(block.lines);
    }

    /// Call after the last [`Index::absorb`] of a load or refresh: cuts cycles and reports parents that never came.
    pub(crate) fn finish(&mut self) {
        if std::mem::take(&mut self.check_cycles) {
            self.cut_cycles();
        }
        if self.unchecked.is_empty() {
            return;
        }
        let unchecked = std::mem::take(&mut self.unchecked);
        // A node that waited for its parent may since have been cut from it.
        let cut: HashSet<u32> = self.cut.values().flatten().map(|(node, _)| *node).collect();
        for (line, node) in unchecked {
            let entry = self.nodes[node as usize];
            if entry.line == line && entry.parent == ORPHAN && !cut.contains(&node) {
                self.report_missing_parent(line, node);
            }
        }
    }

    fn insert(&mut self, fact: &Fact, block: &FactBlock) {
        let line_number = self.file_lines + u64::from(fact.line) + 1;
        if self.lines.len() >= MAX_ENTRIES {
            self.diagnostics.push(
                line_number,
                fact.offset,
                DiagnosticKind::LineTooLong,
                "more entries than an index can hold",
            );
            return;
        }
        let id = block.text(fact.id);
        let (node, new) = self.ids.insert(id);
        let line = self.lines.len() as u32;
        self.note_line_number(line_number);
        let parent = match fact.parent {
            ParentRef::Null => ROOT,
            ParentRef::Unusable => ORPHAN,
            ParentRef::Id(span) => {
                let parent = block.text(span);
                self.ids.get(parent).unwrap_or_else(|| {
                    self.missing.entry(parent.into()).or_default().push((node, line));
                    self.unchecked.push((line, node));
                    ORPHAN
                })
            }
        };
        self.lines.push(Line { offset: fact.offset, len: fact.len, node });
        let entry = Node { time: fact.time, line, parent, message: fact.message, kind: fact.kind.code() };
        if new {
            self.nodes.push(entry);
            if parent == node {
                self.check_cycles = true;
            }
            self.adopt(node);
            self.link(node);
        } else {
            let message = format!("the id {id:?} occurred before; this later entry stands for it");
            self.diagnostics.push(line_number, fact.offset, DiagnosticKind::DuplicateId, message);
            // The new parent may be a descendant of the earlier line.
            self.check_cycles |= parent < ORPHAN || !self.cut.is_empty();
            self.nodes[node as usize] = entry;
            self.adjacency = None;
        }
        self.has_conversation |= fact.kind.is_conversation();
        match fact.extra {
            Extra::None => {}
            Extra::Label { target, label, timestamp } => {
                self.labels.set(block.text(target), block.bytes(label), block.bytes(timestamp));
            }
            Extra::Name(name) => self.name = Some(block.text(name).into()),
        }
    }

    /// Links the entries that waited for `node`'s id.
    fn adopt(&mut self, node: u32) {
        if self.missing.is_empty() {
            return;
        }
        let Some(children) = self.missing.remove(self.ids.id(node)) else { return };
        for (child, line) in children {
            if self.nodes[child as usize].line == line {
                self.nodes[child as usize].parent = node;
            }
        }
        self.check_cycles = true;
        self.adjacency = None;
    }

    fn note_line_number(&mut self, number: u64) {
        let skipped = number - 1 - self.lines.len() as u64;
        if self.skipped.last().map_or(0, |(_, last)| *last) != skipped {
            self.skipped.push((self.lines.len() as u32, skipped));
        }
    }

    /// Line number in the file of the `n`-th entry, counted from 1.
    fn line_number(&self, n: u32) -> u64 {
        let at = self.skipped.partition_point(|(entry, _)| *entry <= n);
        u64::from(n) + 1 + at.checked_sub(1).map_or(0, |at| self.skipped[at].1)
    }

    /// Turns one edge of every cycle into a root, so that everything is reachable and no walk can be endless (S69, S70).
    /// The entry that comes first in the file becomes the root.
    fn cut_cycles(&mut self) {
        const NEW: u32 = 0;
        // What was cut before may close no cycle any more: a later line of an id can name another parent.
        let cut = std::mem::take(&mut self.cut);
        let mut told = HashSet::new();
        for (parent, children) in cut {
            for (child, line) in children {
                let node = &mut self.nodes[child as usize];
                if node.line == line {
                    node.parent = parent;
                    self.adjacency = None;
                    told.insert((child, line));
                }
            }
        }
        let mut seen = vec![NEW; self.nodes.len()];
        for start in 0..self.nodes.len() as u32 {
            let walk = start + 1;
            let mut at = start;
            while at < ORPHAN && seen[at as usize] == NEW {
                seen[at as usize] = walk;
                at = self.nodes[at as usize].parent;
            }
            if at >= ORPHAN || seen[at as usize] != walk {
                continue;
            }
            let mut first = at;
            let mut next = self.nodes[at as usize].parent;
            while next != at {
                first = first.min(next);
                next = self.nodes[next as usize].parent;
            }
            let parent = self.nodes[first as usize].parent;
            let line = self.nodes[first as usize].line;
            self.cut.entry(parent).or_default().push((first, line));
            self.nodes[first as usize].parent = ORPHAN;
            self.adjacency = None;
            if told.contains(&(first, line)) {
                continue;
            }
            let place = self.place(first);
            let message =
                format!("following parentId from {:?} comes back to it; it is shown as a root", self.ids.id(first));
            let number = self.line_number(line);
            self.diagnostics.push(number, place.offset, DiagnosticKind::Cycle, message);
        }
    }

    /// Adds an entry that was just written. The caller has checked that `id` is new and gives its parent's node.
    pub(crate) fn push(
        &mut self,
        id: &str,
        parent: u32,
        time: i64,
        kind: EntryKind,
        message: MessagePlace,
        place: Place,
    ) {
        self.note_line_number(self.file_lines + 1);
        self.file_lines += 1;
        let (node, _) = self.ids.insert(id);
        self.nodes.push(Node { time, line: self.lines.len() as u32, parent, message, kind: kind.code() });
        self.lines.push(Line { offset: place.offset, len: place.len, node });
        self.adopt(node);
        self.link(node);
        self.has_conversation |= kind.is_conversation();
        self.finish();
    }

    /// The index of a file that holds a header and then exactly these entries, in the same order, beginning at `offsets`.
    pub(crate) fn moved(&self, offsets: &[u64]) -> Index {
        let mut index = self.clone();
        for (line, offset) in index.lines.iter_mut().zip(offsets) {
            line.offset = *offset;
        }
        index.skipped = vec![(0, 1)];
        index.file_lines = 1 + index.lines.len() as u64;
        index
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.ids.get(id).is_some()
    }

    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.ids.get(id)
    }

    /// [`find`](Index::find) for what is probably the last entry, as the parent of the next one is.
    pub(crate) fn find_from_end(&self, id: &str) -> Option<u32> {
        self.last().filter(|node| self.id(*node) == id).or_else(|| self.find(id))
    }

    pub(crate) fn id(&self, node: u32) -> &str {
        self.ids.id(node)
    }

    pub(crate) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// Distinct ids (S86).
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Entries in the file, repeated ids included.
    pub(crate) fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Where the line of a node lies.
    pub(crate) fn place(&self, node: u32) -> Place {
        let line = self.lines[self.nodes[node as usize].line as usize];
        Place { offset: line.offset, len: line.len }
    }

    /// The `n`-th entry of the file: its node and place.
    pub(crate) fn line(&self, n: usize) -> (u32, Place) {
        let line = self.lines[n];
        (line.node, Place { offset: line.offset, len: line.len })
    }

    /// Position of a node's line in the entry list.
    pub(crate) fn line_of(&self, node: u32) -> usize {
        self.nodes[node as usize].line as usize
    }

    /// The node of the last entry of the file: the leaf after loading (S58).
    pub(crate) fn last(&self) -> Option<u32> {
        self.lines.last().map(|line| line.node)
    }

    /// Nodes from the root to `node` (S79).
    pub(crate) fn path(&self, node: u32) -> Vec<u32> {
        // Parents usually come before their children, so the node's number bounds the length; what is not used of the
        // reservation costs nothing.
        let mut path = Vec::with_capacity(node as usize + 1);
        let mut at = node;
        while at < ORPHAN {
            path.push(at);
            at = self.nodes[at as usize].parent;
        }
        path.reverse();
        path
    }

    /// Children of a node, or of `null`, in order of first appearance (S80).
    pub(crate) fn children(&mut self, parent: Option<u32>) -> Vec<u32> {
        if self.adjacency.is_none() {
            self.adjacency = Some(Adjacency::new(self.nodes.iter().map(|node| node.parent)));
        }
        let Some(adjacency) = &self.adjacency else { return Vec::new() };
        let mut children = adjacency.children(parent);
        if let Some(cut) = parent.and_then(|parent| self.cut.get(&parent)) {
            children.extend(cut.iter().map(|(node, _)| node));
            children.sort_unstable();
        }
        children
    }

    /// Nodes that name this parent, which is not there, in order of first appearance.
    pub(crate) fn waiting_for(&self, parent: &str) -> Vec<u32> {
        let waiting = self.missing.get(parent).into_iter().flatten();
        let mut nodes: Vec<u32> =
            waiting.filter(|(node, line)| self.nodes[*node as usize].line == *line).map(|(node, _)| *node).collect();
        nodes.sort_unstable();
        nodes
    }

    fn link(&mut self, node: u32) {
        let Some(adjacency) = &mut self.adjacency else { return };
        adjacency.push(node, self.nodes[node as usize].parent);
    }

    /// S68
    fn report_missing_parent(&mut self, line: u32, node: u32) {
        let id = self.ids.id(node);
        let message = format!("the parent of {id:?} does not exist; the entry is shown as a root");
        let (number, offset) = (self.line_number(line), self.lines[line as usize].offset);
        self.diagnostics.push(number, offset, DiagnosticKind::MissingParent, message);
    }
}
