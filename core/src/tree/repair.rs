//! Replacing a session file as a whole, on request or for a migration: never in place, never losing a line.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::json;

use super::fact::is_blank;
use super::open::{find_header, not_a_session, without_mark};
use super::options::{Durability, OpenOptions};
use super::session_file::{create_file, open_locked};
use super::storage::{FileMode, Storage, StorageFile, append_all, read_range};

/// What [`repair`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Bad lines moved out of the session file.
    pub moved_lines: usize,
    /// Where they are now; `None` if there were none.
    pub side_file: Option<PathBuf>,
}

/// Moves every line that is not JSON out of a session file into a side file next to it (`NAME.damaged`, appended to if
/// it exists). All other lines stay byte for byte, the file keeps its
/// permissions, and a last line without LF gets one. The file is replaced in one step; nobody ever sees half of it.
///
/// # Errors
/// `invalid_session_file`, `session_locked`, `storage_failed`; the file is then as it was.
pub fn repair(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Repair> {
    let path = super::location::given(path.as_ref());
    let storage = &*options.storage;
    let fail = |error: &std::io::Error| Error::storage("read the session file", &path, error);
    let file = open_locked(storage, &path)?;
    let len = file.facts().map_err(|error| fail(&error))?.len;
    let found = find_header(&*file, len).map_err(|error| fail(&error))?;
    if found.header.is_none() {
        return Err(not_a_session(&path, found.why_not));
    }
    let bytes = read_range(&*file, 0, len as usize).map_err(|error| fail(&error))?;
    let (mut good, mut bad, mut moved_lines) = (Vec::with_capacity(bytes.len()), Vec::new(), 0);
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let text = if number == 0 { without_mark(line) } else { line };
        let is_bad = json::validate(text).is_err() && !is_blank(text);
        moved_lines += usize::from(is_bad);
        let out = if is_bad { &mut bad } else { &mut good };
        out.extend_from_slice(line);
        if line.last() != Some(&b'\n') {
            out.push(b'\n');
        }
    }
    let target = storage.canonicalize(&path).unwrap_or_else(|_| path.clone());
    if moved_lines > 0 {
        replace_file(storage, &target, &good, &bad)?;
    }
    Ok(Repair { moved_lines, side_file: (moved_lines > 0).then(|| side_path(&target)) })
}

/// Replaces the file at `path` (links are followed) by `bytes` in one step and returns it open and locked. `removed`
/// holds the lines that are not in `bytes` any more; they are kept in the side file.
pub(crate) fn replace_file(
    storage: &dyn Storage,
    path: &Path,
    bytes: &[u8],
    removed: &[u8],
) -> Result<Box<dyn StorageFile>> {
    let target = storage.canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if !removed.is_empty() {
        keep_aside(storage, &side_path(&target), removed)?;
    }
    // A name that nobody else has: what lies there may be somebody's.
    let temporary = named(&target, &format!("{:08x}.tmp", uuid::Uuid::new_v4().as_fields().0));
    let file = create_file(storage, &temporary, bytes, Durability::Entry)?;
    let renamed = (storage.copy_permissions(&target, &temporary)).and_then(|()| storage.rename(&temporary, &target));
    if let Err(error) = renamed {
        let _ = storage.remove(&temporary);
        return Err(Error::storage("replace the session file", &target, &error));
    }
    // Both files are whole on the disk, so whichever has the name after a crash is good.
    let _ = storage.sync_dir(target.parent().unwrap_or(Path::new(".")));
    Ok(file)
}

fn keep_aside(storage: &dyn Storage, side: &Path, lines: &[u8]) -> Result<()> {
    let mode = if storage.facts(side).is_ok() { FileMode::Append } else { FileMode::CreateNew };
    let fail = |error: &std::io::Error| Error::storage("keep damaged lines aside", side, error);
    let file = storage.open(side, mode).map_err(|error| fail(&error))?;
    append_all(&*file, lines).map_err(|(_, error)| fail(&error))?;
    file.sync().map_err(|error| fail(&error))
}

fn side_path(path: &Path) -> PathBuf {
    named(path, "damaged")
}

fn named(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}
