//! The whole tree at once, compactly (S81–S83): for tree views and for hosts that walk it.

use std::cmp::Ordering;

use crate::json;

use super::index::{Index, ORPHAN};
use super::kind::EntryKind;
use super::labels::Label;
use super::time::UNREADABLE;
use super::tree::Tree;

/// A snapshot of the shape of a tree: roots, and each node's children sorted by time.
///
/// Nodes are numbers from 0 to [`Structure::len`]; ids, kinds and labels are looked up in the tree when asked for.
/// About 12 bytes an entry.
#[derive(Debug, Clone)]
pub struct Structure {
    tree: Tree,
    roots: Vec<u32>,
    /// Children of node `n` are `children[starts[n]..starts[n + 1]]`.
    starts: Vec<u32>,
    children: Vec<u32>,
}

impl Tree {
    /// The whole tree. Every entry appears exactly once (a repeated id once, in its last place; an entry whose parent is
    /// unknown or would close a cycle as a root). Costs O(entries); bodies are not read.
    pub fn structure(&self) -> Structure {
        let state = self.read();
        let index = &state.index;
        let count = index.node_count();
        let mut starts = vec![0u32; count + 1];
        let mut roots = Vec::new();
        let nodes = || (0..index.line_count()).filter_map(|line| index.stood_for_by(line));
        for node in nodes() {
            match index.node(node).parent {
                parent if parent < ORPHAN => starts[parent as usize + 1] += 1,
                _ => roots.push(node),
            }
        }
        for n in 0..count {
            starts[n + 1] += starts[n];
        }
        let mut next = starts.clone();
        let mut children = vec![0u32; count - roots.len()];
        for node in nodes() {
            let parent = index.node(node).parent;
            if parent < ORPHAN {
                let at = &mut next[parent as usize];
                children[*at as usize] = node;
                *at += 1;
            }
        }
        for n in 0..count {
            let (from, to) = (starts[n] as usize, starts[n + 1] as usize);
            if to - from > 1 {
                sort_by_time(&mut children[from..to], index);
            }
        }
        Structure { tree: self.clone(), roots, starts, children }
    }
}

impl Index {
    /// The node of a line, if no later line has its id.
    fn stood_for_by(&self, line: usize) -> Option<u32> {
        let (node, _) = self.line(line);
        (self.line_of(node) == line).then_some(node)
    }
}

impl Structure {
    /// Nodes in the tree.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The roots in file order (S81, S82).
    pub fn roots(&self) -> &[u32] {
        &self.roots
    }

    /// The children of a node, oldest first (S82). Empty for a number that is no node.
    pub fn children(&self, node: u32) -> &[u32] {
        let n = node as usize;
        match (self.starts.get(n), self.starts.get(n + 1)) {
            (Some(from), Some(to)) => &self.children[*from as usize..*to as usize],
            _ => &[],
        }
    }

    /// The id of a node; empty for a number that is no node.
    pub fn id(&self, node: u32) -> String {
        if (node as usize) < self.len() { self.tree.id_of(node) } else { String::new() }
    }

    /// The kind of a node.
    pub fn kind(&self, node: u32) -> EntryKind {
        if (node as usize) < self.len() { self.tree.read().index.node(node).kind() } else { EntryKind::Unknown }
    }

    /// The label of a node (S83).
    pub fn label(&self, node: u32) -> Option<Label> {
        self.tree.label(&self.id(node))
    }

    /// All nodes, parents before their children, with their depth (roots have 0).
    pub fn walk(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let mut stack: Vec<(u32, usize)> = self.roots.iter().rev().map(|root| (*root, 0)).collect();
        std::iter::from_fn(move || {
            let (node, depth) = stack.pop()?;
            stack.extend(self.children(node).iter().rev().map(|child| (*child, depth + 1)));
            Some((node, depth))
        })
    }

    /// The tree as JSON: a list of `{"id","type","parentId","label"?,"labelTimestamp"?}` in walk order. Flat, because a long
    /// conversation would nest deeper than most JSON readers go.
    pub fn to_json(&self) -> String {
        let state = self.tree.read();
        let mut out = b"[".to_vec();
        for (node, _) in self.walk() {
            if out.len() > 1 {
                out.push(b',');
            }
            let id = state.index.id(node);
            let entry = state.index.node(node);
            out.extend_from_slice(b"{\"id\":");
            json::write_string(&mut out, id);
            out.extend_from_slice(b",\"type\":");
            json::write_string(&mut out, entry.kind().type_name());
            if let EntryKind::Message(role) = entry.kind() {
                out.extend_from_slice(b",\"role\":");
                json::write_string(&mut out, role.name());
            }
            out.extend_from_slice(b",\"parentId\":");
            match entry.parent < ORPHAN {
                true => json::write_string(&mut out, state.index.id(entry.parent)),
                false => out.extend_from_slice(b"null"),
            }
            if let Some(label) = state.index.labels.get(id) {
                out.extend_from_slice(b",\"label\":");
                out.extend_from_slice(&label.label);
                out.extend_from_slice(b",\"labelTimestamp\":");
                out.extend_from_slice(if label.timestamp.is_empty() { b"null" } else { &label.timestamp });
            }
            out.push(b'}');
        }
        out.push(b']');
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Sorts siblings by time, stable; times that cannot be read compare as equal to all others (S82).
///
/// That is no order once such a time is among several (equal to both ends, though the ends differ), and the standard
/// sort may refuse it. Keeping the ordered beginning and inserting the others one after the other is defined for any
/// comparison and gives what the reference gives for short lists.
fn sort_by_time(nodes: &mut [u32], index: &Index) {
    let time = |node: &u32| index.node(*node).time;
    if nodes.iter().all(|node| time(node) != UNREADABLE) {
        nodes.sort_by_key(time);
        return;
    }
    let compare = |a: &u32, b: &u32| match (time(a), time(b)) {
        (UNREADABLE, _) | (_, UNREADABLE) => Ordering::Equal,
        (a, b) => a.cmp(&b),
    };
    // Beyond this length inserting would be quadratic; the readable ones are then sorted and the others stay behind.
    const SHORT: usize = 63;
    if nodes.len() > SHORT {
        nodes.sort_by_key(|node| match time(node) {
            UNREADABLE => i64::MAX,
            ms => ms,
        });
        return;
    }
    for end in run(nodes, compare)..nodes.len() {
        let (mut low, mut high) = (0, end);
        while low < high {
            let middle = (low + high) / 2;
            match compare(&nodes[end], &nodes[middle]) {
                Ordering::Less => high = middle,
                _ => low = middle + 1,
            }
        }
        nodes[low..=end].rotate_right(1);
    }
}

/// How many nodes at the beginning are in order already; a falling beginning is turned round first.
fn run(nodes: &mut [u32], compare: impl Fn(&u32, &u32) -> Ordering) -> usize {
    let falls = |pair: &[u32]| compare(&pair[1], &pair[0]) == Ordering::Less;
    let Some(first) = nodes.windows(2).next() else { return nodes.len() };
    let falling = falls(first);
    let length = 1 + nodes.windows(2).take_while(|pair| falls(pair) == falling).count();
    if falling {
        nodes[..length].reverse();
    }
    length
}
