//! Looking at files behind a fence.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, OFlags};

use super::fence::Fence;
use crate::tools::local;
use crate::tools::operations::{Access, FileKind, Metadata};

/// Enough to ask for facts.
#[cfg(target_os = "linux")]
const FACTS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const FACTS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

impl Fence {
    /// Facts about what a path leads to.
    pub(crate) fn facts(&self, path: &Path) -> io::Result<Metadata> {
        File::from(self.open(path, FACTS)?).metadata().map(|it| local::facts(&it))
    }

    /// Fails unless the file may be used so.
    pub(crate) fn access(&self, path: &Path, access: Access) -> io::Result<()> {
        let wanted = match access {
            Access::Read => rustix::fs::Access::READ_OK,
            Access::ReadWrite => rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK,
        };
        let place = self.place(path)?;
        Ok(rustix::fs::accessat(&place.directory, &place.name, wanted, AtFlags::empty())?)
    }

    /// The path without links of something that is there.
    pub(crate) fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        if self.is_on_the_way(path) {
            return std::fs::canonicalize(path);
        }
        let place = self.place(path)?;
        rustix::fs::statat(&place.directory, &place.name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(place.real)
    }

    /// Tells the entries of a directory, until `each` gives false.
    pub(crate) fn list(&self, path: &Path, mut each: impl FnMut(OsString, FileKind) -> bool) -> io::Result<()> {
        let directory = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Dir::read_from(&directory)?;
        for entry in &mut entries {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                // Removed since it was listed: it is not there.
                let Ok(it) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                kind = FileType::from_raw_mode(it.st_mode);
            }
            if !each(name.to_owned(), file_kind(kind)) {
                break;
            }
        }
        Ok(())
    }
}

fn file_kind(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => FileKind::Device,
        FileType::Unknown => FileKind::Other,
    }
}
