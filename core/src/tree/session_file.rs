//! Creating and opening session files, with the writer's lock.

use std::io;
use std::path::Path;

use crate::error::{Error, ErrorCode, Result};

use super::options::Durability;
use super::storage::{FileMode, Storage, StorageFile, append_all};

/// Creates a session file exclusively, locks it and writes `bytes`. On failure nothing of it is left.
pub(crate) fn create_file(
    storage: &dyn Storage,
    path: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<Box<dyn StorageFile>> {
    if let Some(directory) = path.parent() {
        storage
            .create_dir_all(directory)
            .map_err(|error| Error::storage("create the session directory", directory, &error))?;
    }
    let file = storage.open(path, FileMode::CreateNew).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Error::new(ErrorCode::FileExists, "a file with the name of the new session exists; it was left alone")
                .at(path)
        }
        _ => Error::storage("create the session file", path, &error),
    })?;
    let written = lock(&*file, path).and_then(|()| {
        append_all(&*file, bytes).map_err(|(_, error)| Error::storage("write the session file", path, &error))?;
        sync_new(storage, &*file, path, durability)
    });
    match written {
        Ok(()) => Ok(file),
        Err(error) => {
            // The name is ours: it was created exclusively a moment ago.
            let _ = storage.remove(path);
            Err(error)
        }
    }
}

/// Brings a new file and its name to the disk, if that is asked for.
pub(crate) fn sync_new(
    storage: &dyn Storage,
    file: &dyn StorageFile,
    path: &Path,
    durability: Durability,
) -> Result<()> {
    if durability == Durability::None {
        return Ok(());
    }
    let synced = file.sync().and_then(|()| path.parent().map_or(Ok(()), |directory| storage.sync_dir(directory)));
    synced.map_err(|error| Error::storage("bring the session file to the disk", path, &error))
}

/// Opens a session file for writing, with its lock.
///
/// Between opening and locking, another process may have put a new file in its place (a migration does that). The lock
/// would then be on a file without a name, so it is looked at again under the lock.
pub(crate) fn open_locked(storage: &dyn Storage, path: &Path) -> Result<Box<dyn StorageFile>> {
    const TRIES: usize = 10;
    for _ in 0..TRIES {
        let file = storage
            .open(path, FileMode::Append)
            .map_err(|error| Error::storage("open the session file", path, &error))?;
        lock(&*file, path)?;
        let facts = file.facts().map_err(|error| Error::storage("open the session file", path, &error))?;
        if storage.facts(path).is_ok_and(|named| named.identity == facts.identity) {
            return Ok(file);
        }
    }
    Err(Error::new(ErrorCode::StorageChanged, "the session file is replaced again and again; try later").at(path))
}

/// Takes the writer's lock or says who cannot.
fn lock(file: &dyn StorageFile, path: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(true) => Ok(()),
        Ok(false) => {
            let message = "another writer has this session open; close it there, or open it read-only here";
            Err(Error::new(ErrorCode::SessionLocked, message).at(path))
        }
        Err(error) => Err(Error::storage("lock the session file", path, &error)),
    }
}
