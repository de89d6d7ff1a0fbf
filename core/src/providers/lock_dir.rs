//! The lock that pi takes on files it shares with other programs: a directory beside the file, named `FILE.lock`. Who can
//! make it has the lock; one that nobody has touched for half a minute was left behind (P31).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A lock older than this belongs to nobody. A holder works for less than that.
const STALE: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(25);

/// The lock, until it is dropped.
pub(super) struct LockDir {
    path: PathBuf,
    /// When it was made, as the file system has it: a lock that is another one by now is not ours to remove.
    made: Option<SystemTime>,
}

impl LockDir {
    /// Waits for the lock of a file, which need not exist; its directory must. Blocks.
    ///
    /// Errors: `TimedOut`, or why it cannot be made.
    pub(super) fn take(file: &Path, patience: Duration) -> io::Result<LockDir> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let begun = Instant::now();
        loop {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(LockDir { made: modified(&path), path }),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if is_stale(&path) => {
                    // Fails for someone who was quicker, and for a directory with something in it.
                    let _ = fs::remove_dir(&path);
                }
                Err(_) => {}
            }
            if begun.elapsed() >= patience {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another program holds its lock"));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for LockDir {
    fn drop(&mut self) {
        if modified(&self.path) == self.made {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

fn is_stale(path: &Path) -> bool {
    modified(path).and_then(|time| time.elapsed().ok()).is_some_and(|age| age > STALE)
}
