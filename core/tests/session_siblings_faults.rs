//! A disk that fails one sibling is nothing to the others.

#[path = "sibling_support/mod.rs"]
mod support;

#[path = "storage_support/mod.rs"]
#[allow(dead_code)]
mod storage;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use branchline::tree::StorageFile;
use branchline::{ExploreOptions, block_on};
use storage::{Call, Watch, Watched};
use support::*;

/// Fails appends that hold a word, half-way; and the creation of files, so many times.
#[derive(Debug, Clone, Default)]
struct Faults {
    word: Arc<Mutex<Option<&'static str>>>,
    torn: Arc<AtomicBool>,
    opens: Arc<AtomicUsize>,
    syncs: Arc<AtomicUsize>,
}

impl Faults {
    fn take(count: &AtomicUsize, what: &str) -> io::Result<()> {
        match count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Err(io::Error::other(format!("no {what} today"))),
            Err(_) => Ok(()),
        }
    }
}

impl Watch for Faults {
    fn before(&self, call: Call) -> io::Result<()> {
        match call {
            Call::Open => Faults::take(&self.opens, "open"),
            Call::Sync => Faults::take(&self.syncs, "sync"),
            _ => Ok(()),
        }
    }

    fn append(&self, file: &dyn StorageFile, bytes: &[u8]) -> io::Result<usize> {
        if self.torn.swap(false, Ordering::SeqCst) {
            return Err(io::Error::other("the disk is full"));
        }
        let text = String::from_utf8_lossy(bytes);
        if self.word.lock().unwrap().is_some_and(|word| text.contains(word)) {
            self.torn.store(true, Ordering::SeqCst);
            return file.append(&bytes[..bytes.len() / 2]);
        }
        file.append(bytes)
    }
}

#[test]
fn a_failed_append_ends_one_run() {
    let setup = Setup::new();
    let faults = Faults::default();
    let options = setup.options().storage(Arc::new(Watched(faults.clone())));
    let session = block_on(setup.engine.create_session(options)).unwrap();
    say(&session, "base");
    *faults.word.lock().unwrap() = Some("\"s3-1\"");
    let prompts = (0..10).map(|n| format!("s{n} turns=3"));
    let exploration = block_on(session.explore(prompts, ExploreOptions::default().limit(10))).unwrap();
    let results = block_on(exploration.results()).unwrap();
    for (n, result) in results.iter().enumerate() {
        let code = result.error.as_ref().map(|error| error.code().name());
        assert_eq!((code, result.is_complete()), (Some("storage_failed").filter(|_| n == 3), n != 3), "{n}");
    }
    let file = session.path().unwrap();
    check_file(&file);
    // It stands where the last thing was stored, and can go on.
    *faults.word.lock().unwrap() = None;
    assert_eq!(say(&results[3].session, "again").text, "again");
    let lines = check_file(&file);
    for result in &results {
        path_to(&lines, result.session.leaf().as_deref().unwrap());
    }
}

#[test]
fn a_file_that_cannot_be_made_yet() {
    let setup = Setup::new();
    let faults = Faults::default();
    let options = setup.options().storage(Arc::new(Watched(faults.clone())));
    let session = block_on(setup.engine.create_session(options)).unwrap();
    let exploration = {
        faults.opens.store(2, Ordering::SeqCst);
        block_on(session.explore(["aa", "bb", "cc", "dd"], ExploreOptions::default().limit(1))).unwrap()
    };
    let results = block_on(exploration.results()).unwrap();
    assert_eq!(results.iter().filter(|result| result.is_complete()).count(), 3, "a failed run tries twice");
    assert!(results[0].error.is_some());
    let lines = check_file(&session.path().unwrap());
    assert!(!results[1..].iter().any(|it| path_to(&lines, it.leaf.as_deref().unwrap()).is_empty()));
}

/// After a failed sync nobody knows what is on the disk, so nobody may write any more (contract of the log).
#[test]
fn a_failed_sync_stops_all() {
    let setup = Setup::new();
    let faults = Faults::default();
    let durable =
        setup.options().storage(Arc::new(Watched(faults.clone()))).durability(branchline::tree::Durability::Entry);
    let session = block_on(setup.engine.create_session(durable)).unwrap();
    say(&session, "base");
    faults.syncs.store(1, Ordering::SeqCst);
    let options = ExploreOptions::default().limit(3);
    let exploration = block_on(session.explore(["aa", "bb", "cc"], options)).unwrap();
    let results = block_on(exploration.results()).unwrap();
    for result in &results {
        assert_eq!(result.error.as_ref().unwrap().code().name(), "storage_failed");
    }
    check_file(&session.path().unwrap());
}
