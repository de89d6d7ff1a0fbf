//! The tree as JavaScript reads it. Questions are answered from memory or with one read, so they are synchronous;
//! everything that may be long comes in pages.

use std::sync::{Arc, Mutex, PoisonError};

use branchline::Result;
use branchline::tree::{Entries, Entry, EntryKind, Structure};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::bridge::Shared;
use crate::failure::guard;
use crate::outcome::Outcome;

/// Texts of a long list are cut about here: few enough calls, and far below the string limit.
const PAGE_BYTES: usize = 4 << 20;

#[napi]
pub struct Tree {
    shared: Arc<Shared>,
    tree: branchline::tree::Tree,
}

impl Tree {
    pub(crate) fn new(shared: Arc<Shared>, tree: branchline::tree::Tree) -> Tree {
        Tree { shared, tree }
    }
}

#[napi]
impl Tree {
    #[napi(getter)]
    pub fn size(&self) -> u32 {
        u32::try_from(self.tree.entry_count()).unwrap_or(u32::MAX)
    }

    #[napi(getter)]
    pub fn last_id(&self) -> Option<String> {
        self.tree.last_id()
    }

    #[napi(getter)]
    pub fn name(&self) -> Option<String> {
        self.tree.name()
    }

    #[napi(getter)]
    pub fn header(&self) -> napi::Result<String> {
        guard(|| self.shared.text(self.tree.header_json()))
    }

    #[napi]
    pub fn has(&self, id: String) -> bool {
        self.tree.contains(&id)
    }

    #[napi]
    pub fn parent(&self, id: String) -> Option<String> {
        self.tree.parent(&id)
    }

    #[napi]
    pub fn children(&self, id: Option<String>) -> napi::Result<String> {
        guard(|| self.shared.text(branchline::json::to_string(&self.tree.children(id.as_deref()))))
    }

    #[napi]
    pub fn branch(&self, leaf: Option<String>) -> napi::Result<String> {
        guard(|| {
            let ids: Vec<String> = self.tree.branch(leaf.as_deref()).ids().collect();
            self.shared.text(branchline::json::to_string(&ids))
        })
    }

    #[napi]
    pub fn entry(&self, id: String) -> napi::Result<Option<String>> {
        guard(|| match self.tree.entry(&id)? {
            Some(entry) => self.shared.text(String::from_utf8_lossy(entry.json()).into_owned()).map(Some),
            None => Ok(None),
        })
    }

    /// The entry's line, byte for byte.
    #[napi]
    pub fn raw(&self, id: String) -> napi::Result<Option<Buffer>> {
        guard(|| Ok(self.tree.entry(&id)?.map(|entry| Buffer::from(entry.json().to_vec()))))
    }

    #[napi]
    pub fn entries(&self, after: Option<String>) -> napi::Result<EntryPages> {
        guard(|| {
            let entries = match after {
                Some(id) => self.tree.entries_after(&id)?,
                None => self.tree.entries(),
            };
            Ok(EntryPages { shared: self.shared.clone(), state: Mutex::new((entries, None)) })
        })
    }

    #[napi]
    pub fn walk(&self) -> napi::Result<Walk> {
        guard(|| {
            let structure = self.tree.structure();
            let stack = structure.roots().iter().rev().map(|root| (*root, 0)).collect();
            Ok(Walk { shared: self.shared.clone(), tree: self.tree.clone(), structure, stack: Mutex::new(stack) })
        })
    }

    #[napi]
    pub fn label(&self, id: String) -> napi::Result<Option<String>> {
        guard(|| match self.tree.label(&id) {
            Some(label) => {
                self.shared.text(json!({"text": label.text, "timestamp": label.timestamp}).to_string()).map(Some)
            }
            None => Ok(None),
        })
    }

    #[napi]
    pub fn labels(&self) -> napi::Result<String> {
        guard(|| {
            let labels = self.tree.labels().into_iter();
            let labels = labels.map(|(id, label)| json!([id, {"text": label.text, "timestamp": label.timestamp}]));
            self.shared.text(Value::Array(labels.collect()).to_string())
        })
    }

    #[napi]
    pub fn diagnostics(&self) -> napi::Result<String> {
        guard(|| self.shared.text(branchline::json::to_string(&self.tree.diagnostics())))
    }

    /// The path to `leaf` as the bytes of a session file.
    #[napi]
    pub fn export_branch(&self, ticket: u32, leaf: Option<String>) {
        let tree = self.tree.clone();
        self.shared.start_blocking(ticket, move || {
            let mut bytes = Vec::new();
            tree.export_branch(leaf.as_deref(), &mut bytes)?;
            Ok(Outcome::Bytes(bytes))
        });
    }

    /// What the model sees at `leaf`: first a text with the facts, then JSON lists of `[entryId, message]`.
    #[napi]
    pub fn context(&self, ticket: u32, leaf: Option<String>) {
        let tree = self.tree.clone();
        self.shared.start_blocking(ticket, move || context(&tree, leaf.as_deref()).map(Outcome::Texts));
    }
}

fn context(tree: &branchline::tree::Tree, leaf: Option<&str>) -> Result<Vec<String>> {
    let context = tree.context(leaf)?;
    let model = context.model().map(|(provider, id)| json!({"provider": provider, "modelId": id}));
    let facts = json!({"thinkingLevel": context.thinking_level(), "model": model});
    let mut texts = vec![facts.to_string()];
    let mut page = Page::default();
    for message in context.messages() {
        let id = branchline::json::to_string(message.entry_id());
        page.add(&format!("[{id},{}]", String::from_utf8_lossy(&message.raw())));
        if page.is_full() {
            texts.push(std::mem::take(&mut page).end());
        }
    }
    texts.push(page.end());
    Ok(texts)
}

/// A JSON list under construction.
#[derive(Default)]
struct Page(String);

impl Page {
    fn add(&mut self, item: &str) {
        self.0.push(if self.0.is_empty() { '[' } else { ',' });
        self.0.push_str(item);
    }

    fn is_full(&self) -> bool {
        self.0.len() >= PAGE_BYTES
    }

    fn end(self) -> String {
        if self.0.is_empty() { "[]".to_owned() } else { self.0 + "]" }
    }
}

/// Entries in file order, a page at a time.
#[napi]
pub struct EntryPages {
    shared: Arc<Shared>,
    /// The entries to come, and one that did not fit on the last page.
    state: Mutex<(Entries, Option<Entry>)>,
}

#[napi]
impl EntryPages {
    /// At most `max` entries as a JSON list; `null` at the end.
    #[napi]
    pub fn next(&self, max: u32) -> napi::Result<Option<String>> {
        guard(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let (entries, left) = &mut *state;
            let mut page = Page::default();
            for count in 0..max {
                let Some(entry) = left.take().map(Ok).or_else(|| entries.next()).transpose()? else { break };
                // A huge entry goes alone, so that only it fails at the string limit.
                if count > 0 && page.0.len() + entry.json().len() > 2 * PAGE_BYTES {
                    *left = Some(entry);
                    break;
                }
                page.add(&String::from_utf8_lossy(entry.json()));
                if page.is_full() {
                    break;
                }
            }
            if page.0.is_empty() { Ok(None) } else { self.shared.text(page.end()).map(Some) }
        })
    }
}

/// The shape of the whole tree, parents before their children, a page at a time. Bodies are not read.
#[napi]
pub struct Walk {
    shared: Arc<Shared>,
    tree: branchline::tree::Tree,
    structure: Structure,
    stack: Mutex<Vec<(u32, usize)>>,
}

#[napi]
impl Walk {
    /// At most `max` nodes as a JSON list; `null` at the end.
    #[napi]
    pub fn next(&self, max: u32) -> napi::Result<Option<String>> {
        guard(|| {
            let mut stack = self.stack.lock().unwrap_or_else(PoisonError::into_inner);
            let mut page = Page::default();
            for _ in 0..max {
                let Some((node, depth)) = stack.pop() else { break };
                stack.extend(self.structure.children(node).iter().rev().map(|child| (*child, depth + 1)));
                page.add(&branchline::json::to_string(&self.node(node, depth)));
            }
            if page.0.is_empty() { Ok(None) } else { self.shared.text(page.end()).map(Some) }
        })
    }
}

impl Walk {
    fn node(&self, node: u32, depth: usize) -> Value {
        let id = self.structure.id(node);
        let kind = self.structure.kind(node);
        let mut value = json!({"id": id, "parentId": self.tree.parent(&id), "type": kind.type_name(), "depth": depth});
        if let EntryKind::Message(role) = kind {
            value["role"] = role.name().into();
        }
        if let Some(label) = self.structure.label(node) {
            value["label"] = label.text.into();
        }
        value
    }
}
