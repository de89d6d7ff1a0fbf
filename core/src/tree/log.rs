//! The bytes of a session: an append-only log in a file, or in memory until there is a file (S42, S43).
//!
//! Whatever fails, file and memory agree afterwards: a write that stopped half-way is cut away again, and where even
//! that fails the torn piece is sealed with an LF before the next entry and stays as a line that readers skip.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorCode, Result};

use super::index::Place;
use super::open::load;
use super::options::{Durability, OpenOptions};
use super::session_file::create_file;
use super::storage::{FileMode, Storage, StorageFile, append_all, fill};
use super::tree::State;

#[derive(Debug)]
pub(crate) struct Log {
    storage: Arc<dyn Storage>,
    /// Where the file is or will be; `None` in memory.
    path: Option<PathBuf>,
    backing: Backing,
    durability: Durability,
    read_only: bool,
    /// A sync failed: what is on the disk is unknown, so nothing may be acknowledged any more.
    poisoned: bool,
}

#[derive(Debug)]
enum Backing {
    Buffer(Vec<u8>),
    File(LogFile),
}

#[derive(Debug)]
struct LogFile {
    file: Box<dyn StorageFile>,
    /// Bytes known to the index.
    len: u64,
    /// The file does not end with LF; the next append begins with one.
    unsealed: bool,
    /// Something was appended since the last sync.
    unsynced: bool,
}

/// Where [`Log::append`] put a line.
pub(crate) enum Appended {
    At(Place),
    /// Somewhere behind lines that someone else appended at the same moment; [`Log::growth`] tells of both.
    Elsewhere,
}

/// What [`Log::growth`] found.
pub(crate) enum Growth {
    /// The file is as we left it.
    None,
    /// Someone else appended; the bytes from `0` on are not in the index yet.
    From(u64, u64),
}

impl Log {
    /// A log without a file yet. `path` is where it will be created.
    pub(crate) fn buffer(
        storage: Arc<dyn Storage>,
        path: Option<PathBuf>,
        durability: Durability,
        bytes: Vec<u8>,
    ) -> Log {
        Log { storage, path, backing: Backing::Buffer(bytes), durability, read_only: false, poisoned: false }
    }

    /// A log over an open file of which `len` bytes are indexed.
    pub(crate) fn file(
        storage: Arc<dyn Storage>,
        path: PathBuf,
        file: Box<dyn StorageFile>,
        len: u64,
        durability: Durability,
    ) -> Log {
        let file = LogFile { file, len, unsealed: false, unsynced: false };
        Log { storage, path: Some(path), backing: Backing::File(file), durability, read_only: false, poisoned: false }
    }

    pub(crate) fn read_only(mut self) -> Log {
        self.read_only = true;
        self
    }

    /// From now on read-only: the file is opened again without the lock.
    pub(crate) fn release(&mut self) -> Result<()> {
        if let (Backing::File(log), Some(path), false) = (&mut self.backing, &self.path, self.read_only) {
            log.file = (self.storage.open(path, FileMode::Read))
                .map_err(|error| Error::storage("open the session file for reading", path, &error))?;
        }
        self.read_only = true;
        Ok(())
    }

    /// Reads the file of this log again, with its lock kept.
    pub(crate) fn reload(self, path: &Path, options: &OpenOptions) -> Result<State> {
        match self.backing {
            Backing::File(log) => load(log.file, path, options),
            Backing::Buffer(_) => Err(Error::new(ErrorCode::Internal, "there is no file to read again")),
        }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether the session is in a file already.
    pub(crate) fn is_saved(&self) -> bool {
        matches!(self.backing, Backing::File(_))
    }

    pub(crate) fn len(&self) -> u64 {
        match &self.backing {
            Backing::Buffer(bytes) => bytes.len() as u64,
            Backing::File(file) => file.len,
        }
    }

    /// Reads bytes that are in the index.
    pub(crate) fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_into(offset, len, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends bytes that are in the index to `out`.
    pub(crate) fn read_into(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let filled = match &self.backing {
            Backing::Buffer(bytes) => {
                let from = (offset as usize).min(bytes.len());
                let piece = &bytes[from..from.saturating_add(len).min(bytes.len())];
                out.extend_from_slice(piece);
                piece.len()
            }
            Backing::File(log) => {
                out.resize(start + len, 0);
                fill(&*log.file, offset, &mut out[start..])
                    .map_err(|error| self.failed("read the session file", &error))?
            }
        };
        match filled {
            filled if filled < len => {
                Err(self.changed("the session file became shorter while it was open; open it again"))
            }
            _ => Ok(()),
        }
    }

    /// The open file, for a scan of its tail.
    pub(crate) fn storage_file(&self) -> Option<&dyn StorageFile> {
        match &self.backing {
            Backing::Buffer(_) => None,
            Backing::File(log) => Some(&*log.file),
        }
    }

    /// Refuses what a writer may not do.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            let error =
                Error::new(ErrorCode::ReadOnly, "the session is open read-only; open it for writing to change it");
            return Err(self.with_path(error));
        }
        if self.poisoned {
            let message =
                "an earlier sync of the session file failed, so nothing more is written; open the session again";
            return Err(self.with_path(Error::new(ErrorCode::StorageFailed, message)));
        }
        Ok(())
    }

    /// Has someone else appended? Also brings a deleted file back, so that nothing is written into the void.
    pub(crate) fn growth(&mut self) -> Result<Growth> {
        let Backing::File(log) = &self.backing else { return Ok(Growth::None) };
        let facts = log.file.extent().map_err(|error| self.failed("look at the session file", &error))?;
        if facts.links == 0 && !self.read_only {
            self.restore()?;
            return Ok(Growth::None);
        }
        let Backing::File(log) = &self.backing else { return Ok(Growth::None) };
        match facts.len {
            len if len < log.len => {
                Err(self.changed("the session file became shorter while it was open; open it again"))
            }
            len if len > log.len => Ok(Growth::From(log.len, len)),
            _ => Ok(Growth::None),
        }
    }

    /// After loading: a last line without LF gets one (S54). If that fails, the next append begins with it.
    pub(crate) fn seal(&mut self, sealed: bool) {
        if let Backing::File(log) = &mut self.backing
            && !sealed
        {
            match append_all(&*log.file, b"\n") {
                Ok(()) => log.len += 1,
                Err(_) => log.unsealed = true,
            }
        }
    }

    /// Takes note that the index now covers `len` bytes.
    pub(crate) fn indexed(&mut self, len: u64, sealed: bool) {
        if let Backing::File(log) = &mut self.backing {
            log.len = len;
            log.unsealed = !sealed;
        }
    }

    /// Appends one line (its LF included) and says where it lies.
    pub(crate) fn append(&mut self, line: &[u8]) -> Result<Appended> {
        let len = u32::try_from(line.len() - 1).ok().filter(|len| *len <= 1 << 31);
        let len = len.ok_or_else(|| Error::new(ErrorCode::InvalidArgument, "an entry may be at most 2 GiB long"))?;
        let log = match &mut self.backing {
            Backing::Buffer(bytes) => {
                let place = Place { offset: bytes.len() as u64, len };
                bytes.extend_from_slice(line);
                return Ok(Appended::At(place));
            }
            Backing::File(log) => log,
        };
        let mut written = if log.unsealed { append_all(&*log.file, b"\n") } else { Ok(()) };
        let seal = u64::from(log.unsealed);
        if written.is_ok() {
            written = append_all(&*log.file, line);
        }
        if let Err((part, error)) = written {
            log.take_back(part as u64);
            return Err(self.failed("append to the session file", &error));
        }
        if self.durability == Durability::Entry
            && let Err(error) = log.file.sync()
        {
            log.take_back(seal + line.len() as u64);
            self.poisoned = true;
            return Err(self.failed("bring the session file to the disk", &error));
        }
        log.unsynced = self.durability != Durability::Entry;
        let end = log.len + seal + line.len() as u64;
        if log.file.appended_to().is_ok_and(|position| position.is_some_and(|position| position != end)) {
            return Ok(Appended::Elsewhere);
        }
        log.unsealed = false;
        let place = Place { offset: log.len + seal, len };
        log.len = end;
        Ok(Appended::At(place))
    }

    /// Creates the file with everything so far and `line` (S43). In memory it only appends.
    pub(crate) fn create_with(&mut self, line: &[u8]) -> Result<Appended> {
        let Backing::Buffer(bytes) = &mut self.backing else { return self.append(line) };
        let start = bytes.len();
        let Some(path) = self.path.clone() else { return self.append(line) };
        bytes.extend_from_slice(line);
        match create_file(&*self.storage, &path, bytes, self.durability) {
            Ok(file) => {
                let len = bytes.len() as u64;
                self.backing = Backing::File(LogFile { file, len, unsealed: false, unsynced: true });
                Ok(Appended::At(Place { offset: start as u64, len: (line.len() - 1) as u32 }))
            }
            Err(error) => {
                bytes.truncate(start);
                Err(error)
            }
        }
    }

    /// Brings everything appended so far to the disk.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let Backing::File(log) = &mut self.backing else { return Ok(()) };
        if !log.unsynced {
            return Ok(());
        }
        match log.file.sync() {
            Ok(()) => {
                log.unsynced = false;
                Ok(())
            }
            Err(error) => {
                self.poisoned = true;
                Err(self.failed("bring the session file to the disk", &error))
            }
        }
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// The file was deleted while we hold it open: its bytes are still readable, so it is written again under its name.
    fn restore(&mut self) -> Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        if self.storage.facts(&path).is_ok() {
            return Err(self.changed("another file took the place of the session file; open it again"));
        }
        let bytes = self.read(0, self.len() as usize)?;
        let file = create_file(&*self.storage, &path, &bytes, self.durability)?;
        if let Backing::File(log) = &mut self.backing {
            log.file = file;
        }
        Ok(())
    }

    fn failed(&self, action: &str, error: &io::Error) -> Error {
        Error::storage(action, self.path.as_deref().unwrap_or(Path::new("")), error)
    }

    /// The file is not what it was.
    pub(crate) fn changed(&self, message: &str) -> Error {
        self.with_path(Error::new(ErrorCode::StorageChanged, message))
    }

    fn with_path(&self, error: Error) -> Error {
        match &self.path {
            Some(path) => error.at(path),
            None => error,
        }
    }
}

impl LogFile {
    /// Cuts the `part` bytes of a write that failed. What cannot be cut is found by [`Log::growth`] like a stranger's line:
    /// torn, it is skipped; complete, it counts.
    fn take_back(&self, part: u64) {
        let expected = self.len + part + u64::from(self.unsealed);
        // If more than ours came, cutting would hit what someone else wrote.
        if self.file.extent().is_ok_and(|extent| extent.len <= expected) {
            let _ = self.file.truncate(self.len);
        }
    }
}
