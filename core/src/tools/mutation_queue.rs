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
static QUEUES: LazyLock<Mutex<Queues>> = LazyLock::new(Mutex::default);

/// Finding out which file a path means takes a while. Calls do it one after the other, so that they queue in their order.
static REGISTRATION: AsyncMutex<()> = AsyncMutex::const_new(());

type Queue = Arc<AsyncMutex<()>>;

#[derive(Default)]
struct Queues {
    known: HashMap<Key, Queue>,
    /// The only call there was when it began: nobody could be in its way, so which file its path means was not asked. The
    /// next call that comes while it runs asks for both.
    alone: Option<(PathBuf, Queue)>,
}

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
    /// `None` for a call that began alone.
    key: Option<Key>,
    queue: Queue,
    guard: Option<OwnedMutexGuard<()>>,
}

/// Waits for the right to change the file at an absolute path. It need not exist.
///
/// Dropping the future leaves the queue.
///
/// Errors: when the path cannot be resolved for another reason than that nothing is there (a loop of links). Such a path
/// may also be given a turn; using it fails then.
pub async fn turn(files: &dyn FileOperations, path: &Path) -> io::Result<Turn> {
    // A host may take its time to resolve a path; that must not hold up everybody else.
    let local = files.replaced().await? == Replaced::None;
    let order = if local { Some(REGISTRATION.lock().await) } else { None };
    if let Some(turn) = Some(path).filter(|_| local).and_then(turn_alone) {
        return Ok(turn);
    }
    let key = if local { local_key(path)? } else { key(files, path).await? };
    let queue = queue_of(&key);
    // A fair lock: the place in its queue is taken when it is first polled, which must happen before the next call
    // registers.
    let mut turn = Turn { key: Some(key), queue: queue.clone(), guard: None };
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

fn lock_queues() -> std::sync::MutexGuard<'static, Queues> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The turn of a call while there is no other one.
fn turn_alone(path: &Path) -> Option<Turn> {
    let mut queues = lock_queues();
    if !queues.known.is_empty() || queues.alone.is_some() {
        return None;
    }
    let queue = Queue::default();
    let guard = queue.clone().try_lock_owned().ok()?;
    queues.alone = Some((path.to_path_buf(), queue.clone()));
    Some(Turn { key: None, queue, guard: Some(guard) })
}

/// The queue of a file. A call that began alone gets its place first.
fn queue_of(key: &Key) -> Queue {
    let mut known_now: Option<(PathBuf, Key)> = None;
    loop {
        let mut queues = lock_queues();
        if let Some((path, _)) = &queues.alone {
            match known_now.take().filter(|(known, _)| known == path) {
                Some((_, key)) => {
                    if let Some((_, queue)) = queues.alone.take() {
                        queues.known.insert(key, queue);
                    }
                }
                None => {
                    let path = path.clone();
                    drop(queues);
                    let key = local_key(&path).unwrap_or_else(|_| Key::Path(path.clone()));
                    known_now = Some((path, key));
                    continue;
                }
            }
        }
        return queues.known.entry(key.clone()).or_default().clone();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queues = lock_queues();
        drop(self.guard.take());
        // This one's own reference and the table's are the last: nobody holds or waits.
        if Arc::strong_count(&self.queue) > 2 {
            return;
        }
        let mine = |queue: &Queue| Arc::ptr_eq(queue, &self.queue);
        match &self.key {
            Some(key) => drop(queues.known.remove(key)),
            None if queues.alone.as_ref().is_some_and(|(_, queue)| mine(queue)) => queues.alone = None,
            // It was given a place meanwhile.
            None => queues.known.retain(|_, queue| !mine(queue)),
        }
        if queues.known.is_empty() {
            queues.known.shrink_to_fit(); // an idle process keeps nothing
        }
    }
}

/// Why the file that a path means cannot be told, when using the path failed: a turn may have been given without asking.
pub(super) fn unresolvable(path: &Path) -> Option<io::Error> {
    local_key(path).err()
}

/// Resolving links takes microseconds on a local disk, less than handing it to another thread.
fn local_key(path: &Path) -> io::Result<Key> {
    if let Some(key) = key_in_directory(path) {
        return Ok(key);
    }
    match std::fs::canonicalize(path) {
        // The same spelling for everybody.
        Ok(real) => Ok(key_in_directory(&real).unwrap_or(Key::Path(real))),
        Err(error) if is_missing(&error) => {
            let target = link_to_nothing(path);
            resolve_existing(target.as_deref().unwrap_or(path), |path| std::fs::canonicalize(path))
        }
        Err(error) => Err(error),
    }
}

/// What a link leads to that leads nowhere yet: writing through it makes that file.
fn link_to_nothing(path: &Path) -> Option<PathBuf> {
    /// As many as the system follows.
    const MOST: usize = 40;
    let mut target = path.to_path_buf();
    for _ in 0..MOST {
        match std::fs::read_link(&target) {
            // A relative link starts where it is; joining an absolute one leaves only that.
            Ok(next) => target = target.parent()?.join(next),
            Err(_) => return Some(target).filter(|target| target != path),
        }
    }
    None
}

/// The key of a path that is no link itself, in a directory that exists: asking the system where an open directory is
/// takes one call, resolving its path one for each of its parts.
#[cfg(target_os = "linux")]
fn key_in_directory(path: &Path) -> Option<Key> {
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStringExt;

    use rustix::fs::{AtFlags, FileType, Mode, OFlags};

    let (parent, name) = (path.parent()?, path.file_name()?);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, flags, Mode::empty()).ok()?;
    match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(it) => match FileType::from_raw_mode(it.st_mode) {
            FileType::Symlink => return None,
            FileType::RegularFile if it.st_nlink > 1 => return Some(Key::Number(it.st_dev, it.st_ino)),
            _ => {}
        },
        Err(rustix::io::Errno::NOENT) => {}
        Err(_) => return None,
    }
    let real = rustix::fs::readlink(format!("/proc/self/fd/{}", directory.as_raw_fd()), Vec::new()).ok()?;
    let real = PathBuf::from(std::ffi::OsString::from_vec(real.into_bytes()));
    // A directory that cannot be seen from here has no absolute path.
    real.is_absolute().then(|| Key::Path(real.join(name)))
}

#[cfg(not(target_os = "linux"))]
fn key_in_directory(path: &Path) -> Option<Key> {
    use std::os::unix::fs::MetadataExt;
    match std::fs::metadata(path) {
        Ok(it) if it.is_file() && it.nlink() > 1 => Some(Key::Number(it.dev(), it.ino())),
        _ => None,
    }
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
