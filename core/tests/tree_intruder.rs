//! Another program appends in the very moment between our look at the file and our write. pi takes no lock, so it can.

#[path = "storage_support/mod.rs"]
mod storage_support;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use branchline::ErrorCode;
use branchline::message::Message;
use branchline::tree::*;
use storage_support::{Call, Watch, Watched};

const FOREIGN: &str = r#"{"type":"custom","customType":"x","id":"foreign","parentId":null,"timestamp":""}"#;

/// Writes a line just before our next append when armed.
#[derive(Debug, Clone, Default)]
struct Intruder {
    armed: Arc<AtomicBool>,
    /// It stops in the middle of its line.
    torn: bool,
    /// It does so before every append.
    always: bool,
}

impl Watch for Intruder {
    fn before(&self, _: Call) -> io::Result<()> {
        Ok(())
    }

    fn append(&self, file: &dyn StorageFile, bytes: &[u8]) -> io::Result<usize> {
        if self.armed.swap(self.always, Ordering::SeqCst) {
            match self.torn {
                true => file.append(&FOREIGN.as_bytes()[..20])?,
                false => file.append(format!("{FOREIGN}\n").as_bytes())?,
            };
        }
        file.append(bytes)
    }
}

/// Puts another file in the place of the one that was just opened, as another process's migration does.
#[derive(Debug, Clone)]
struct Replacer {
    /// How often it still does so.
    left: Arc<AtomicUsize>,
}

impl Watch for Replacer {
    fn before(&self, _: Call) -> io::Result<()> {
        Ok(())
    }

    fn opened(&self, path: &Path) -> io::Result<()> {
        let strike = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if strike.is_ok() {
            let other = path.with_extension("new");
            std::fs::copy(path, &other)?;
            std::fs::rename(&other, path)?;
        }
        Ok(())
    }
}

/// A session in a directory where the intruder is.
fn visited(dir: &Path, intruder: &Intruder) -> Tree {
    let options = CreateOptions {
        session_dir: Some(dir.to_path_buf()),
        storage: Arc::new(Watched(intruder.clone())),
        ..Default::default()
    };
    Tree::create("/work/demo", options).unwrap()
}

#[test]
fn s308_a_torn_line_that_slips_in_swallows_none_of_ours() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Intruder { torn: true, ..Default::default() };
    let tree = visited(dir.path(), &storage);
    let mut cursor = Cursor::new(tree.clone());
    let first = cursor.append_message(&Message::user("one", vec![], 1)).unwrap();
    storage.armed.store(true, Ordering::SeqCst);
    let second = cursor.append_message(&Message::user("two", vec![], 2)).unwrap();
    let third = cursor.append_message(&Message::user("three", vec![], 3)).unwrap();

    let ids = |tree: &Tree| tree.entries().map(|entry| entry.unwrap().id().to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(&tree), [&*first, &second, &third]);
    let path = tree.path().unwrap();
    drop((cursor, tree));
    let tree = Tree::open(&path, OpenOptions::default()).unwrap();
    assert_eq!(ids(&tree), [&*first, &second, &third]);
    assert_eq!(tree.diagnostics().len(), 1, "the torn line");
}

#[test]
fn s308_an_append_that_is_swallowed_again_and_again_fails() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Intruder { torn: true, always: true, armed: Arc::default() };
    let mut cursor = Cursor::new(visited(dir.path(), &storage));
    let first = cursor.append_message(&Message::user("one", vec![], 1)).unwrap();
    storage.armed.store(true, Ordering::SeqCst);
    let error = cursor.append_message(&Message::user("two", vec![], 2)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StorageChanged);
    assert_eq!(cursor.leaf(), Some(&*first));
    storage.armed.store(false, Ordering::SeqCst);
    cursor.append_message(&Message::user("two", vec![], 2)).unwrap();
}

#[test]
fn s308_a_line_that_slips_in_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Intruder::default();
    let tree = visited(dir.path(), &storage);
    let mut cursor = Cursor::new(tree.clone());
    let first = cursor.append_message(&Message::user("one", vec![], 1)).unwrap();
    storage.armed.store(true, Ordering::SeqCst);
    let second = cursor.append_label(&first, Some("mine")).unwrap();
    let third = cursor.append_message(&Message::user("three", vec![], 3)).unwrap();
    assert!(!storage.armed.load(Ordering::SeqCst), "the intruder was there");

    let ids: Vec<String> = tree.entries().map(|entry| entry.unwrap().id().to_owned()).collect();
    assert_eq!(ids, [&*first, "foreign", &second, &third]);
    for id in &ids {
        let entry = tree.entry(id).unwrap().unwrap();
        assert_eq!(entry.string("id").as_deref(), Some(&**id), "each id leads to its own line");
    }
    assert_eq!(tree.branch(cursor.leaf()).ids().collect::<Vec<_>>(), [first.as_str(), &second, &third]);
    assert_eq!(tree.label(&first).unwrap().text, "mine");
}

#[test]
fn a_file_replaced_between_opening_and_locking_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/w"}"#;
    std::fs::write(&path, format!("{header}\n{FOREIGN}\n")).unwrap();
    let open = |times| {
        let storage = Arc::new(Watched(Replacer { left: Arc::new(AtomicUsize::new(times)) }));
        Tree::open(&path, OpenOptions { storage, ..Default::default() })
    };
    let tree = open(2).unwrap();
    let mut cursor = Cursor::new(tree);
    cursor.append_message(&Message::user("mine", vec![], 1)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3, "written to the file that has the name");
    drop(cursor);
    assert_eq!(open(1000).unwrap_err().code(), ErrorCode::StorageChanged);
}
