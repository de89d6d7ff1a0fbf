//! Current labels, over the whole file (S83, S84).

use std::collections::HashMap;

use crate::json;

/// A label as it stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Its text, never empty.
    pub text: String,
    /// When it was set: the label entry's own timestamp, as written.
    pub timestamp: String,
}

/// Raw JSON of a label's text and timestamp: they are written again byte for byte when a path is extracted (S94).
#[derive(Debug, Clone)]
pub(crate) struct RawLabel {
    pub(crate) label: Box<[u8]>,
    pub(crate) timestamp: Box<[u8]>,
}

impl RawLabel {
    pub(crate) fn read(&self) -> Label {
        Label {
            text: json::decode_string(&self.label).unwrap_or_default(),
            timestamp: json::decode_string(&self.timestamp).unwrap_or_default(),
        }
    }
}

/// Target id → label, in the order of S84: changing keeps the place, clearing and setting again moves to the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels {
    map: HashMap<Box<str>, (u64, RawLabel)>,
    next: u64,
}

impl Labels {
    /// Takes over one label entry; an absent, empty or non-string label clears.
    pub(crate) fn set(&mut self, target: &str, label: &[u8], timestamp: &[u8]) {
        if label.len() <= 2 || !label.starts_with(b"\"") {
            self.map.remove(target);
            return;
        }
        let raw = RawLabel { label: label.into(), timestamp: timestamp.into() };
        match self.map.get_mut(target) {
            Some((_, current)) => *current = raw,
            None => {
                self.map.insert(target.into(), (self.next, raw));
                self.next += 1;
            }
        }
    }

    pub(crate) fn get(&self, target: &str) -> Option<&RawLabel> {
        self.map.get(target).map(|(_, label)| label)
    }

    /// All labels in map order.
    pub(crate) fn list(&self) -> Vec<(&str, &RawLabel)> {
        let mut list: Vec<_> = self.map.iter().collect();
        list.sort_unstable_by_key(|(_, (order, _))| *order);
        list.into_iter().map(|(target, (_, label))| (&**target, label)).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}
