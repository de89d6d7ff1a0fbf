//! Every call to the disk may fail. A fault is put at the first, second, third… call until the scenario runs through;
//! after each, file and memory must agree, the error must be typed, and a later append must work.

#[path = "storage_support/mod.rs"]
mod storage_support;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use branchline::message::Message;
use branchline::tree::*;
use branchline::{Error, ErrorCode};
use storage_support::{Call, Watch, Watched};

/// What goes wrong at the chosen call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// The call does nothing and fails.
    Refused,
    /// A write takes half of what it was given, and everything after it fails: a full disk.
    Full,
}

#[derive(Debug, Clone)]
struct Faulty {
    fault: Fault,
    /// Calls until the fault; negative once it has struck.
    left: Arc<AtomicI64>,
}

impl Faulty {
    fn at(call: i64, fault: Fault) -> Faulty {
        Faulty { fault, left: Arc::new(AtomicI64::new(call)) }
    }

    fn heal(&self) {
        self.left.store(i64::MAX / 2, Ordering::SeqCst);
    }

    fn struck(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }

    fn check(&self) -> io::Result<()> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst) - 1;
        let strikes = left == -1 || (left < 0 && self.fault == Fault::Full);
        if strikes { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    }
}

impl Watch for Faulty {
    fn before(&self, _: Call) -> io::Result<()> {
        self.check()
    }

    fn append(&self, file: &dyn StorageFile, bytes: &[u8]) -> io::Result<usize> {
        let checked = self.check();
        if checked.is_err() && self.fault == Fault::Full && bytes.len() > 1 {
            return file.append(&bytes[..bytes.len() / 2]);
        }
        checked?;
        file.append(bytes)
    }
}

fn create(dir: &Path, storage: Faulty, durability: Durability) -> Result<Tree, Error> {
    let options = CreateOptions {
        session_dir: Some(dir.to_path_buf()),
        storage: Arc::new(Watched(storage)),
        durability,
        ..Default::default()
    };
    Tree::create("/work/demo", options)
}

fn all_ids(tree: &Tree) -> Vec<String> {
    tree.entries().map(|entry| entry.unwrap().id().to_owned()).collect()
}

/// Appends six entries, going on after failures as a host would.
fn append_some(cursor: &mut Cursor, errors: &mut Vec<Error>) {
    let mut note = |result: Result<String, Error>| errors.extend(result.err());
    note(cursor.append_model("lantern", "small"));
    note(cursor.append_message(&Message::user("one", vec![], 1)));
    note(cursor.append_name("a name"));
    note(cursor.append_message(&Message::user("two", vec![], 2)));
    note(cursor.append_custom("state", None));
    note(cursor.append_message(&Message::user("three", vec![], 3)));
}

/// `poisoned`: a sync failed, and perhaps also the attempt to take the entry back; it may then stand at the end.
fn agree(tree: &Tree, dir: &Path, poisoned: bool) {
    let in_memory = all_ids(tree);
    let Some(path) = tree.path().filter(|path| path.exists()) else { return };
    let reader = Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).unwrap();
    let mut in_file = all_ids(&reader);
    if poisoned {
        in_file.truncate(in_memory.len());
    }
    assert_eq!(in_file, in_memory, "file and memory agree");
    let files = std::fs::read_dir(dir).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count();
    assert!(files <= 2, "nothing half-made is left behind");
}

#[test]
fn s44_file_and_memory_agree_after_any_failed_append() {
    for durability in [Durability::None, Durability::Entry] {
        for fault in [Fault::Refused, Fault::Full] {
            for call in 0.. {
                let dir = tempfile::tempdir().unwrap();
                let storage = Faulty::at(call, fault);
                let mut errors = Vec::new();
                let tree = match create(dir.path(), storage.clone(), durability) {
                    Ok(tree) => tree,
                    Err(error) => {
                        assert_eq!(error.code(), ErrorCode::StorageFailed);
                        continue;
                    }
                };
                let mut cursor = Cursor::new(tree.clone());
                append_some(&mut cursor, &mut errors);
                let struck = storage.struck();
                storage.heal();
                assert!(errors.iter().all(|error| error.code() == ErrorCode::StorageFailed), "{errors:?}");
                let before = cursor.leaf().map(str::to_owned);
                let later = cursor.append_message(&Message::user("later", vec![], 4));
                let poisoned = later.is_err();
                match later {
                    Ok(id) => assert_eq!(tree.branch(Some(&id)).ids().next_back(), Some(id)),
                    Err(error) => {
                        // Only a failed sync may refuse what comes later.
                        assert!(durability == Durability::Entry && !errors.is_empty(), "{error} after {errors:?}");
                        assert_eq!(cursor.leaf().map(str::to_owned), before);
                    }
                }
                agree(&tree, dir.path(), poisoned);
                if !struck {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_failed_fork_leaves_nothing_behind() {
    for fault in [Fault::Refused, Fault::Full] {
        for call in 0.. {
            let dir = tempfile::tempdir().unwrap();
            let storage = Faulty::at(i64::MAX / 2, fault);
            let tree = create(dir.path(), storage.clone(), Durability::Turn).unwrap();
            let mut cursor = Cursor::new(tree.clone());
            append_some(&mut cursor, &mut Vec::new());
            cursor.append_label(&tree.last_id().unwrap(), Some("here")).unwrap();
            storage.left.store(call, Ordering::SeqCst);
            let forked = tree.extract_branch(cursor.leaf().unwrap());
            let struck = storage.struck();
            storage.heal();
            match &forked {
                Ok(forked) => assert_eq!(forked.entry_count(), 7),
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::StorageFailed);
                    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "call {call}");
                }
            }
            if !struck {
                break;
            }
        }
    }
}

/// Of a long file one thread reads while another writes (S97).
#[test]
fn a_failed_fork_of_a_long_file_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let never = Faulty::at(i64::MAX / 2, Fault::Refused);
    let tree = create(dir.path(), never, Durability::None).unwrap();
    let mut cursor = Cursor::new(tree.clone());
    for n in 0..10 {
        cursor.append_message(&Message::user(&"long ".repeat(200_000), vec![], n)).unwrap();
    }
    let (source, forks) = (tree.path().unwrap(), dir.path().join("forks"));
    for fault in [Fault::Refused, Fault::Full] {
        for call in 0.. {
            let storage = Faulty::at(call, fault);
            let options = CreateOptions {
                session_dir: Some(forks.clone()),
                storage: Arc::new(Watched(storage.clone())),
                durability: Durability::Turn,
                ..Default::default()
            };
            let forked = Tree::fork_from(&source, "/work/other", options);
            let struck = storage.struck();
            storage.heal();
            match forked {
                Ok(fork) => {
                    assert_eq!(fork.entry_count(), 10);
                    let text = |path| std::fs::read_to_string(path).unwrap().split_once('\n').unwrap().1.to_owned();
                    assert!(text(fork.path().unwrap()) == text(source.clone()), "call {call}");
                    std::fs::remove_file(fork.path().unwrap()).unwrap();
                }
                Err(error) => {
                    assert!(matches!(error.code(), ErrorCode::StorageFailed | ErrorCode::ForkSourceInvalid), "{error}");
                    assert!(std::fs::read_dir(&forks).map_or(0, Iterator::count) == 0, "call {call}");
                }
            }
            if !struck {
                break;
            }
        }
    }
}

#[test]
fn a_failed_migration_leaves_the_old_file() {
    let old = "{\"type\":\"session\",\"id\":\"s\"}\n{bad\n{\"type\":\"message\",\"message\":{\"role\":\"user\"}}\n";
    for fault in [Fault::Refused, Fault::Full] {
        for call in 0.. {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s.jsonl");
            std::fs::write(&path, old).unwrap();
            let storage = Faulty::at(call, fault);
            let opened =
                Tree::open(&path, OpenOptions { storage: Arc::new(Watched(storage.clone())), ..Default::default() });
            match opened {
                Ok(tree) => assert_eq!(tree.entry_count(), 1),
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::StorageFailed, "{error}");
                    assert_eq!(std::fs::read_to_string(&path).unwrap(), old);
                    assert!(Tree::open(&path, OpenOptions::default()).is_ok(), "a later try works");
                }
            }
            if !storage.struck() {
                break;
            }
        }
    }
}

#[test]
fn a_failed_sync_is_never_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Faulty::at(i64::MAX / 2, Fault::Refused);
    let tree = create(dir.path(), storage.clone(), Durability::Entry).unwrap();
    let mut cursor = Cursor::new(tree.clone());
    cursor.append_message(&Message::user("kept", vec![], 1)).unwrap();
    // extent, append, sync: the third call from here.
    storage.left.store(2, Ordering::SeqCst);
    assert_eq!(cursor.append_name("lost").unwrap_err().code(), ErrorCode::StorageFailed);
    storage.heal();
    assert_eq!(cursor.append_name("refused").unwrap_err().code(), ErrorCode::StorageFailed);
    assert_eq!(tree.entry_count(), 1);
    agree(&tree, dir.path(), true);
}
