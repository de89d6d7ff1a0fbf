//! Where the lines of a file begin, without keeping the file.
//!
//! Counting line breaks takes one pass over the bytes, at the speed of memory. While it counts, it notes the number of
//! breaks before each block. With these notes any line is found by looking at one block, so paging through a large file
//! reads it once. Notes are kept for some files, and used again while number, size and times of the file are the same.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use super::local::read_at_most;

/// Bytes between notes, and read at once.
const BLOCK: usize = 256 << 10;
/// Files up to this size are read whole.
const SMALL: u64 = 1 << 20;
/// A file whose size is not known in advance (`/proc`) is read up to this.
const UNKNOWN_SIZE: usize = 64 << 20;
/// Files whose notes are kept.
const KEPT: usize = 16;
/// A file that was changed this shortly ago may change again without its times showing it.
const SETTLED: Duration = Duration::from_secs(2);

/// Notes about files, shared by the calls of a tool.
#[derive(Debug, Clone, Default)]
pub(super) struct Indexes {
    kept: Arc<Mutex<VecDeque<Known>>>,
}

type Known = (Identity, Arc<Index>);

/// What is the same as long as a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    number: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The number of breaks before each block, and in the whole file.
#[derive(Debug)]
pub(super) struct Index {
    before: Vec<usize>,
    breaks: usize,
}

impl Indexes {
    fn find(&self, identity: &Identity) -> Option<Arc<Index>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == identity).map(|(_, index)| index.clone())
    }

    fn keep(&self, identity: Identity, index: Arc<Index>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known.number != identity.number);
        kept.push_front((identity, index));
        kept.truncate(KEPT);
    }
}

/// The lines of one text: the pieces between LFs, the last of which may be empty (T84).
pub(super) enum Lines {
    /// All of it is in memory.
    Memory { bytes: Vec<u8>, breaks: usize },
    /// It is read when needed.
    Disk { file: File, length: u64, index: Arc<Index> },
}

impl Lines {
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Lines {
        let breaks = memchr::memchr_iter(b'\n', &bytes).count();
        Lines::Memory { bytes, breaks }
    }

    /// A regular file. Of one that grows meanwhile, what was there at first is seen (T91).
    pub(super) fn of_file(
        file: File,
        facts: &Metadata,
        indexes: &Indexes,
        cancel: &CancellationToken,
    ) -> io::Result<Lines> {
        let length = facts.len();
        if length <= SMALL {
            let most = if length == 0 { UNKNOWN_SIZE } else { length as usize };
            return Ok(Lines::of_bytes(read_at_most(&file, 0, most)?));
        }
        let identity = Identity {
            number: (facts.dev(), facts.ino()),
            size: length,
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        };
        if let Some(index) = indexes.find(&identity) {
            return Ok(Lines::Disk { file, length, index });
        }
        let (index, length) = count(&file, length, cancel)?;
        let index = Arc::new(index);
        let settled =
            facts.modified().is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age >= SETTLED));
        if settled && length == facts.len() {
            indexes.keep(identity, index.clone());
        }
        Ok(Lines::Disk { file, length, index })
    }

    /// Number of lines.
    pub(super) fn total(&self) -> usize {
        1 + match self {
            Lines::Memory { breaks, .. } => *breaks,
            Lines::Disk { index, .. } => index.breaks,
        }
    }

    /// Number of bytes.
    pub(super) fn length(&self) -> u64 {
        match self {
            Lines::Memory { bytes, .. } => bytes.len() as u64,
            Lines::Disk { length, .. } => *length,
        }
    }

    /// Bytes of a range, as many of them as there are.
    pub(super) fn bytes(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        match self {
            Lines::Memory { bytes, .. } => {
                let at = |position: u64| (position as usize).min(bytes.len());
                Ok(bytes[at(from)..at(to)].to_vec())
            }
            Lines::Disk { file, .. } => read_at_most(file, from, (to - from) as usize),
        }
    }

    /// Where a line begins. It must exist.
    pub(super) fn start_of(&self, line: usize) -> io::Result<u64> {
        if line == 0 {
            return Ok(0);
        }
        let nth = |bytes: &[u8], skip: usize| memchr::memchr_iter(b'\n', bytes).nth(skip).map(|at| at as u64 + 1);
        let found = match self {
            Lines::Memory { bytes, .. } => nth(bytes, line - 1),
            Lines::Disk { file, index, .. } => {
                // The last block with fewer breaks before it than end the lines before.
                let block = index.before.partition_point(|before| *before < line).saturating_sub(1);
                let from = (block * BLOCK) as u64;
                let bytes = read_at_most(file, from, BLOCK)?;
                nth(&bytes, line - 1 - index.before[block]).map(|at| from + at)
            }
        };
        found.ok_or_else(|| io::Error::other("the file was changed while it was read"))
    }

    /// Bytes of a line without its LF.
    pub(super) fn line_length(&self, line: usize) -> io::Result<usize> {
        let start = self.start_of(line)?;
        let end = if line + 1 < self.total() { self.start_of(line + 1)? - 1 } else { self.length() };
        Ok((end - start) as usize)
    }
}

/// Counts breaks up to `length`, or to the end if that comes first.
fn count(file: &File, length: u64, cancel: &CancellationToken) -> io::Result<(Index, u64)> {
    use std::os::unix::fs::FileExt;

    let mut index = Index { before: Vec::with_capacity((length / BLOCK as u64) as usize + 1), breaks: 0 };
    let mut buffer = vec![0; BLOCK];
    let mut done = 0;
    while done < length {
        if cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        index.before.push(index.breaks);
        let block = (BLOCK as u64).min(length - done) as usize;
        let mut filled = 0;
        while filled < block {
            match file.read_at(&mut buffer[filled..block], done + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        index.breaks += memchr::memchr_iter(b'\n', &buffer[..filled]).count();
        done += filled as u64;
        if filled < block {
            break;
        }
    }
    Ok((index, done))
}
