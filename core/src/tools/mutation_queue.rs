//! One change at a time for each file (T60–T63).
//!
//! Two calls that read, change and write one file at once would lose one of the changes. So a call holds the file's
//! [`Turn`] from its first look to its last write. Calls for one file go in the order in which they were started; other
//! files are not held up. The queue is the process's, since files are.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::operations::{FileOperations, Replaced};

/// Files that are being changed or waited for.
static FILES: LazyLock<Mutex<HashMap<Key, Arc<AsyncMutex<()>>>>> = LazyLock::new(Mutex::default);

/// Finding out which file a path means takes a while. Calls do it one after the other, so that they queue in their order.
static REGISTRATION: AsyncMutex<()> = AsyncMutex::const_new(());

/// What is the same for all names of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// Its path with every link resolved.
    Path(PathBuf),
    /// Its device and number, for a file that has several names.
    Number(u64, u64),
}

/// The right to change a file, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    key: Key,
    guard: Option<OwnedMutexGuard<()>>,
}

/// Waits for the right to change the file at an absolute path. It need not exist.
///
/// Dropping the future leaves the queue.
///
/// Errors: when the path cannot be resolved for another reason than that nothing is there (a loop of links).
pub async fn turn(files: &dyn FileOperations, path: &Path) -> io::Result<Turn> {
    // A host may take its time to resolve a path; that must not hold up everybody else.
    let local = files.replaced().await? == Replaced::None;
    let order = if local { Some(REGISTRATION.lock().await) } else { None };
    let key = if local { local_key(path)? } else { key(files, path).await? };
    let queue = lock_files().entry(key.clone()).or_default().clone();
    // A fair lock: the place in its queue is taken when it is first polled, which must happen before the next call
    // registers.
    let mut turn = Turn { key, guard: None };
    let mut waiting = Box::pin(queue.lock_owned());
    match futures::poll!(waiting.as_mut()) {
        std::task::Poll::Ready(guard) => turn.guard = Some(guard),
        std::task::Poll::Pending => {
            drop(order);
            turn.guard = Some(waiting.await);
        }
    }
    Ok(turn)
}

fn lock_files() -> std::sync::MutexGuard<'static, HashMap<Key, Arc<AsyncMutex<()>>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut files = lock_files();
        drop(self.guard.take());
        // The map's own reference is the last: nobody holds or waits.
        if files.get(&self.key).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            files.remove(&self.key);
        }
    }
}

/// Resolving links takes microseconds on a local disk, less than handing it to another thread.
fn local_key(path: &Path) -> io::Result<Key> {
    use std::os::unix::fs::MetadataExt;
    match std::fs::metadata(path) {
        Ok(it) if it.is_file() && it.nlink() > 1 => return Ok(Key::Number(it.dev(), it.ino())),
        Ok(_) | Err(_) => {}
    }
    resolve_existing(path, |path| std::fs::canonicalize(path))
}

/// The real path of the nearest ancestor that exists, and the rest of the path below it.
fn resolve_existing(path: &Path, mut real: impl FnMut(&Path) -> io::Result<PathBuf>) -> io::Result<Key> {
    let mut existing = path;
    loop {
        match real(existing) {
            Ok(resolved) => return Ok(Key::Path(below(resolved, path, existing))),
            Err(error) if !is_missing(&error) => return Err(error),
            Err(_) => match existing.parent() {
                Some(parent) => existing = parent,
                None => return Ok(Key::Path(path.to_path_buf())),
            },
        }
    }
}

async fn key(files: &dyn FileOperations, path: &Path) -> io::Result<Key> {
    let mut existing = path;
    loop {
        match files.real_path(existing).await {
            Ok(resolved) => return Ok(Key::Path(below(resolved, path, existing))),
            Err(error) if !is_missing(&error) => return Err(error),
            Err(_) => match existing.parent() {
                Some(parent) => existing = parent,
                None => return Ok(Key::Path(path.to_path_buf())),
            },
        }
    }
}

fn below(resolved: PathBuf, path: &Path, existing: &Path) -> PathBuf {
    match path.strip_prefix(existing) {
        Ok(rest) if !rest.as_os_str().is_empty() => resolved.join(rest),
        _ => resolved,
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
