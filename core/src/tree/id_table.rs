//! Entry ids, each stored once: id → number of its node.
//!
//! Ids are short texts (S13), but readers must accept any string, so the texts live in one arena and the hash table
//! holds only node numbers: about 17 bytes for each usual id.

use std::hash::BuildHasher;

use hashbrown::HashTable;

#[derive(Debug, Clone, Default)]
pub(crate) struct IdTable {
    text: String,
    /// Where each id ends in `text`; it begins where the one before ends.
    ends: Vec<u64>,
    table: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
}

impl IdTable {
    pub(crate) fn reserve(&mut self, count: usize) {
        let Self { text, ends, table, hasher } = self;
        text.reserve(count * 8);
        ends.reserve(count);
        let seen = |node: &u32| hasher.hash_one(id_at(text, ends, *node));
        table.reserve(count, seen);
    }

    pub(crate) fn get(&self, id: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(id);
        self.table.find(hash, |node| self.id(*node) == id).copied()
    }

    /// The node of `id` and whether it is new.
    pub(crate) fn insert(&mut self, id: &str) -> (u32, bool) {
        let hash = self.hasher.hash_one(id);
        if let Some(node) = self.table.find(hash, |node| id_at(&self.text, &self.ends, *node) == id) {
            return (*node, false);
        }
        let node = self.ends.len() as u32;
        self.text.push_str(id);
        self.ends.push(self.text.len() as u64);
        let Self { text, ends, table, hasher } = self;
        table.insert_unique(hash, node, |node| hasher.hash_one(id_at(text, ends, *node)));
        (node, true)
    }

    pub(crate) fn id(&self, node: u32) -> &str {
        id_at(&self.text, &self.ends, node)
    }
}

fn id_at<'a>(text: &'a str, ends: &[u64], node: u32) -> &'a str {
    let node = node as usize;
    let start = if node == 0 { 0 } else { ends[node - 1] as usize };
    &text[start..ends[node] as usize]
}
