//! Who is whose child: lists that are linked through the nodes, so that one more child costs the same whoever gets it.

use super::index::{ORPHAN, ROOT};

const NO_NODE: u32 = u32::MAX;

#[derive(Debug, Clone)]
pub(crate) struct Adjacency {
    first: Vec<u32>,
    last: Vec<u32>,
    next: Vec<u32>,
    first_root: u32,
    last_root: u32,
}

impl Adjacency {
    /// Of nodes 0, 1, 2, …, given by their parents.
    pub(crate) fn new(parents: impl ExactSizeIterator<Item = u32>) -> Adjacency {
        let count = parents.len();
        let mut adjacency = Adjacency {
            first: vec![NO_NODE; count],
            last: vec![NO_NODE; count],
            next: Vec::with_capacity(count),
            first_root: NO_NODE,
            last_root: NO_NODE,
        };
        for (node, parent) in parents.enumerate() {
            adjacency.push(node as u32, parent);
        }
        adjacency
    }

    /// Appends `node` (the next number) to the children of `parent`; an orphan is nobody's child.
    pub(crate) fn push(&mut self, node: u32, parent: u32) {
        self.next.push(NO_NODE);
        if self.first.len() < self.next.len() {
            self.first.push(NO_NODE);
            self.last.push(NO_NODE);
        }
        let (first, last) = match parent {
            ROOT => (&mut self.first_root, &mut self.last_root),
            ORPHAN => return,
            parent => (&mut self.first[parent as usize], &mut self.last[parent as usize]),
        };
        if *last == NO_NODE {
            *first = node;
        } else {
            self.next[*last as usize] = node;
        }
        *last = node;
    }

    /// The children of a node, or of `null`, in order of their numbers.
    pub(crate) fn children(&self, parent: Option<u32>) -> Vec<u32> {
        let mut at = parent.map_or(self.first_root, |node| self.first[node as usize]);
        let mut children = Vec::new();
        while at != NO_NODE {
            children.push(at);
            at = self.next[at as usize];
        }
        children
    }
}
