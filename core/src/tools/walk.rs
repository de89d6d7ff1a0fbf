//! Walking a directory tree in parallel and yet in one fixed order.
//!
//! Jobs (a directory to list, a handful of files to look into) wait in a heap ordered by path, and every thread takes the
//! first. A visitor that has enough sets a *bound*: what comes after it in the order is not looked at any more. So a
//! search with a limit reads about as much as the answer needs, and the answer is the same whatever the threads did.
//!
//! Paths are compared component by component: a *key* is a path relative to the root with NUL for `/`, which makes that
//! a comparison of bytes. Links are listed and not followed, so there are no cycles.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::operations::FileKind;
use super::walk_rules::{Level, Rules};
use super::walk_source::Source;

/// Files in one job: enough to make the heap cheap, few enough to share the work.
const FILES_PER_JOB: usize = 32;
/// Threads at most; more than this wait for the disk and each other.
const MAX_THREADS: usize = 12;

/// A path relative to the root, with NUL between its components.
pub(super) type Key = Box<[u8]>;

/// What is not ignored.
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) kind: FileKind,
}

impl Entry {
    /// The path relative to the root.
    pub(super) fn relative(&self) -> Vec<u8> {
        relative(&self.key)
    }

    /// The path on disk.
    pub(super) fn path(&self, root: &Path) -> PathBuf {
        root.join(OsStr::from_bytes(&self.relative()))
    }
}

/// A key as a relative path with `/`.
pub(super) fn relative(key: &[u8]) -> Vec<u8> {
    key.iter().map(|&byte| if byte == 0 { b'/' } else { byte }).collect()
}

/// A relative path as a key.
pub(super) fn key(relative: &Path) -> Key {
    relative.as_os_str().as_bytes().iter().map(|&byte| if byte == b'/' { 0 } else { byte }).collect()
}

/// What is done with a tree. Called on several threads at once.
pub(super) trait Visit: Sync {
    /// State of one thread.
    type Local;
    /// Whether [`file`](Visit::file) is wanted.
    const FILES: bool;
    /// Makes a thread's state.
    fn local(&self) -> Self::Local;
    /// The entries of one directory, in order.
    fn listed(&self, _entries: &[Entry], _bound: &Bound) {}
    /// Whether to go into a directory.
    fn enters(&self, _directory: &Entry) -> bool {
        true
    }
    /// One file that is no directory and no link.
    fn file(&self, _local: &mut Self::Local, _file: &Entry, _bound: &Bound) {}
}

/// The last key that is still of interest.
#[derive(Default)]
pub(super) struct Bound {
    set: AtomicBool,
    key: Mutex<Option<Key>>,
}

impl Bound {
    /// Nothing after this key is looked at any more.
    pub(super) fn lower(&self, to: &[u8]) {
        let mut key = lock(&self.key);
        if key.as_deref().is_none_or(|key| to < key) {
            *key = Some(to.into());
            self.set.store(true, Relaxed);
        }
    }

    fn excludes(&self, key: &[u8]) -> bool {
        self.set.load(Relaxed) && lock(&self.key).as_deref().is_some_and(|bound| key > bound)
    }
}

/// Why a walk gave nothing.
pub(super) enum Failed {
    /// The token fired.
    Cancelled,
    /// The root cannot be listed.
    Root(io::Error),
}

/// A directory to walk.
pub(super) struct Root {
    /// As the caller names it: below it files are opened.
    pub(super) given: PathBuf,
    /// Without links: ignore files are about this one.
    pub(super) real: PathBuf,
}

/// Walks the tree below `root`. What cannot be listed below it is passed over.
pub(super) fn walk<V: Visit>(
    root: &Root,
    source: &Source,
    rules: &Rules,
    cancel: &CancellationToken,
    visit: &V,
) -> Result<(), Failed> {
    let walker = Walker {
        root,
        source,
        rules,
        cancel,
        visit,
        queue: Mutex::default(),
        wake: Condvar::new(),
        bound: Bound::default(),
    };
    let level = rules.parents(&root.real, source);
    // The root first, alone: its failure is the walk's.
    walker.list(&[], &level).map_err(Failed::Root)?;
    for (key, level) in walker.unlisted(&level) {
        let entry = Entry { key, kind: FileKind::File };
        if rules.allows(&level, &entry.path(&root.real), false) {
            visit.listed(std::slice::from_ref(&entry), &walker.bound);
            let files = if V::FILES { vec![entry] } else { Vec::new() };
            walker.offer(files, Vec::new());
        }
    }
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(MAX_THREADS);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let spawned =
                std::thread::Builder::new().name("branchline-walk".to_owned()).spawn_scoped(scope, || walker.work());
            if spawned.is_err() {
                break; // fewer threads do it too
            }
        }
        walker.work();
    });
    if cancel.is_cancelled() { Err(Failed::Cancelled) } else { Ok(()) }
}

struct Job {
    key: Key,
    work: Work,
}

enum Work {
    List(Arc<Level>),
    Files(Vec<Entry>),
}

impl PartialEq for Job {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Job {}

impl PartialOrd for Job {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Job {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

#[derive(Default)]
struct Queue {
    jobs: BinaryHeap<Reverse<Job>>,
    /// Threads that may still add jobs.
    busy: usize,
}

struct Walker<'a, V> {
    root: &'a Root,
    source: &'a Source,
    rules: &'a Rules,
    cancel: &'a CancellationToken,
    visit: &'a V,
    queue: Mutex<Queue>,
    wake: Condvar,
    bound: Bound,
}

/// Ends a thread's turn also when its visitor panics, so that the others do not wait for it.
struct Turn<'a, 'b, V>(&'a Walker<'b, V>);

impl<V> Drop for Turn<'_, '_, V> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        queue.busy -= 1;
        if queue.busy == 0 && queue.jobs.is_empty() {
            self.0.wake.notify_all();
        }
    }
}

impl<V: Visit> Walker<'_, V> {
    fn work(&self) {
        let mut local = self.visit.local();
        while let Some(job) = self.take() {
            let _turn = Turn(self);
            match job.work {
                Work::List(level) => drop(self.list(&job.key, &level)),
                Work::Files(files) => {
                    for file in files {
                        if self.cancel.is_cancelled() || self.bound.excludes(&file.key) {
                            break;
                        }
                        self.visit.file(&mut local, &file, &self.bound);
                    }
                }
            }
        }
    }

    /// The first job. `None` when there is no more to do.
    fn take(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if self.cancel.is_cancelled() || queue.jobs.peek().is_some_and(|job| self.bound.excludes(&job.0.key)) {
                queue.jobs.clear();
            }
            if let Some(Reverse(job)) = queue.jobs.pop() {
                queue.busy += 1;
                return Some(job);
            }
            if queue.busy == 0 {
                self.wake.notify_all();
                return None;
            }
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lists a directory: tells the visitor and adds jobs for what is in it.
    fn list(&self, directory: &[u8], above: &Arc<Level>) -> io::Result<()> {
        let inside = relative(directory);
        let below = |root: &Path| match inside.is_empty() {
            true => root.to_path_buf(),
            false => root.join(OsStr::from_bytes(&inside)),
        };
        let listed = self.source.list(&below(&self.root.given), self.cancel)?;
        let mut child = below(&self.root.real);
        let level = self.rules.level(above, &child, &listed, self.source);
        let mut entries = Vec::with_capacity(listed.len());
        let ruled = self.rules.matter(&level);
        for (at, (name, kind)) in listed.into_iter().enumerate() {
            if at % 1024 == 0 && self.cancel.is_cancelled() {
                return Ok(());
            }
            if ruled {
                child.push(&name);
                let allowed = self.rules.allows(&level, &child, kind == FileKind::Directory);
                child.pop();
                if !allowed {
                    continue;
                }
            }
            let mut key = Vec::with_capacity(directory.len() + 1 + name.len());
            if !directory.is_empty() {
                key.extend_from_slice(directory);
                key.push(0);
            }
            key.extend_from_slice(name.as_bytes());
            entries.push(Entry { key: key.into_boxed_slice(), kind });
        }
        if !sort(&mut entries, self.cancel) {
            return Ok(());
        }
        self.visit.listed(&entries, &self.bound);
        let mut jobs = Vec::new();
        let mut files = Vec::new();
        for entry in entries {
            match entry.kind {
                FileKind::Directory if self.visit.enters(&entry) => {
                    jobs.push(Job { key: entry.key, work: Work::List(level.clone()) });
                }
                FileKind::File if V::FILES => files.push(entry),
                _ => {}
            }
        }
        self.offer(files, jobs);
        Ok(())
    }

    fn offer(&self, files: Vec<Entry>, mut jobs: Vec<Job>) {
        let mut files = files.into_iter().peekable();
        while let Some(first) = files.peek() {
            let key = first.key.clone();
            jobs.push(Job { key, work: Work::Files(files.by_ref().take(FILES_PER_JOB).collect()) });
        }
        jobs.retain(|job| !self.bound.excludes(&job.key));
        if jobs.is_empty() {
            return;
        }
        let more = jobs.len() > 1;
        lock(&self.queue).jobs.extend(jobs.into_iter().map(Reverse));
        if more {
            self.wake.notify_all();
        } else {
            self.wake.notify_one();
        }
    }

    /// Files that the host serves and no directory on disk would list, with the rules that hold for them.
    fn unlisted(&self, level: &Arc<Level>) -> Vec<(Key, Arc<Level>)> {
        let mut out = Vec::new();
        for path in self.source.unlisted(&self.root.given) {
            let Ok(inside) = path.strip_prefix(&self.root.given) else { continue };
            let mut level = level.clone();
            let mut directory = self.root.real.clone();
            let mut allowed = true;
            for name in inside.parent().into_iter().flat_map(Path::iter) {
                let listed = self.source.list(&directory, self.cancel).unwrap_or_default();
                level = self.rules.level(&level, &directory, &listed, self.source);
                directory.push(name);
                allowed &= self.rules.allows(&level, &directory, true);
            }
            if allowed {
                let listed = self.source.list(&directory, self.cancel).unwrap_or_default();
                out.push((key(inside), self.rules.level(&level, &directory, &listed, self.source)));
            }
        }
        out
    }
}

/// Sorts, or gives up and says so when the token fires.
fn sort(entries: &mut [Entry], cancel: &CancellationToken) -> bool {
    const PIECE: usize = 16 * 1024;
    if entries.len() <= PIECE {
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        return true;
    }
    for piece in entries.chunks_mut(PIECE) {
        if cancel.is_cancelled() {
            return false;
        }
        piece.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    }
    // This one finds the sorted pieces and merges them.
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    true
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
