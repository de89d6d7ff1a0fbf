//! Bringing a session file into a session directory (S192).

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorCode, Result};

use super::location;
use super::options::Durability;
use super::session_file::sync_new;
use super::storage::{FileMode, Storage, StorageFile, append_all, read_range};

/// Bytes copied at a time.
const PIECE: u64 = 1 << 20;

/// A file that is in the session directory now.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) path: PathBuf,
    /// It is a copy, which may be removed again.
    pub(crate) copied: bool,
}

/// Copies a file into a directory under its own name; while that is taken, `-1`, `-2`, … is put before the extension. A file
/// that is in the directory already stays as it is. The bytes are copied as they are.
///
/// # Errors
/// `storage_failed`, also when there is no such file; nothing is left of a copy that failed.
pub(crate) fn import(
    storage: &dyn Storage,
    source: &Path,
    directory: &Path,
    durability: Durability,
) -> Result<Imported> {
    let source = location::given(source);
    let directory = location::resolve(directory);
    let unreadable = |error: io::Error| Error::storage("read the session file to import", &source, &error);
    let facts = storage.facts(&source).map_err(unreadable)?;
    let Some(name) = source.file_name().filter(|_| facts.is_file) else {
        return Err(Error::new(ErrorCode::InvalidSessionFile, "this is not a regular file").at(&source));
    };
    let real = |path: &Path| storage.canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if source.parent().is_some_and(|parent| real(parent) == real(&directory)) {
        return Ok(Imported { path: source, copied: false });
    }
    let from = storage.open(&source, FileMode::Read).map_err(unreadable)?;
    (storage.create_dir_all(&directory))
        .map_err(|error| Error::storage("create the session directory", &directory, &error))?;
    let (path, to) = create(storage, &directory, Path::new(name))?;
    match copy(storage, &*from, &source, &*to, &path, durability) {
        Ok(()) => Ok(Imported { path, copied: true }),
        Err(error) => {
            // The name is ours: it was created exclusively a moment ago.
            let _ = storage.remove(&path);
            Err(error)
        }
    }
}

/// The first free name.
fn create(storage: &dyn Storage, directory: &Path, name: &Path) -> Result<(PathBuf, Box<dyn StorageFile>)> {
    let mut path = directory.join(name);
    for number in 1_u32.. {
        match storage.open(&path, FileMode::CreateNew) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::storage("create the session file", &path, &error)),
        }
        let mut other = OsString::from(name.file_stem().unwrap_or_default());
        other.push(format!("-{number}"));
        if let Some(extension) = name.extension() {
            other.push(".");
            other.push(extension);
        }
        path = directory.join(other);
    }
    Err(Error::new(ErrorCode::FileExists, "every name for the copy is taken").at(directory.join(name)))
}

fn copy(
    storage: &dyn Storage,
    from: &dyn StorageFile,
    source: &Path,
    to: &dyn StorageFile,
    path: &Path,
    durability: Durability,
) -> Result<()> {
    let unreadable = |error: io::Error| Error::storage("read the session file to import", source, &error);
    // What is appended meanwhile is not part of the copy.
    let len = from.facts().map_err(unreadable)?.len;
    let mut at = 0;
    while at < len {
        let bytes = read_range(from, at, PIECE.min(len - at) as usize).map_err(unreadable)?;
        append_all(to, &bytes).map_err(|(_, error)| Error::storage("write the session file", path, &error))?;
        at += bytes.len() as u64;
    }
    sync_new(storage, to, path, durability)
}
