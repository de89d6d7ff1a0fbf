//! Files of this machine: the defaults of `operations`.
//!
//! Calls block, so each runs beside the worker threads.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::ToolError;
use super::operations::{Access, DirEntry, FileKind, Metadata, Operation};
use super::os_error::{os_error, os_error_without_path};
use super::read::refuse_other_kinds;
use super::replace_file::replace_file;

pub(crate) fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Operation<T> {
    Box::pin(async move {
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::other("a file operation failed inside the library")),
        }
    })
}

fn with<T: Send + 'static>(path: &Path, work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static) -> Operation<T> {
    let path = path.to_path_buf();
    blocking(move || work(&path))
}

pub(super) fn metadata(path: &Path) -> Operation<Metadata> {
    with(path, |path| fs::metadata(path).map(|it| facts(&it)))
}

/// What the tools need to know of a file.
pub(crate) fn facts(it: &fs::Metadata) -> Metadata {
    let mut out = Metadata::new(kind(it.file_type()), it.len());
    out.modified = it.modified().ok();
    out.id = Some((it.dev(), it.ino()));
    out
}

pub(super) fn kind(it: fs::FileType) -> FileKind {
    match it {
        it if it.is_file() => FileKind::File,
        it if it.is_dir() => FileKind::Directory,
        it if it.is_symlink() => FileKind::Symlink,
        it if it.is_fifo() => FileKind::Fifo,
        it if it.is_socket() => FileKind::Socket,
        it if it.is_char_device() || it.is_block_device() => FileKind::Device,
        _ => FileKind::Other,
    }
}

pub(super) fn read(path: &Path) -> Operation<Vec<u8>> {
    with(path, |path| {
        let mut file = File::open(path)?;
        let mut out = Vec::new();
        file.read_to_end(&mut out)?;
        Ok(out)
    })
}

pub(super) fn read_range(path: &Path, offset: u64, length: usize) -> Operation<Vec<u8>> {
    with(path, move |path| read_at_most(&File::open(path)?, offset, length))
}

pub(super) fn write(path: &Path, content: Vec<u8>) -> Operation<()> {
    with(path, move |path| replace_file(path, &content))
}

pub(super) fn access(path: &Path, access: Access) -> Operation<()> {
    with(path, move |path| check_access(path, access))
}

pub(super) fn check_access(path: &Path, access: Access) -> io::Result<()> {
    let wanted = match access {
        Access::Read => rustix::fs::Access::READ_OK,
        Access::ReadWrite => rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK,
    };
    Ok(rustix::fs::access(path, wanted)?)
}

pub(super) fn create_dirs(path: &Path) -> Operation<()> {
    with(path, |path| fs::create_dir_all(path))
}

pub(super) fn read_dir(path: &Path) -> Operation<Vec<DirEntry>> {
    with(path, |path| {
        let mut out = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // Removed since it was listed: it is not there.
            let Ok(it) = entry.file_type() else { continue };
            out.push(DirEntry { name: entry.file_name(), kind: kind(it) });
        }
        Ok(out)
    })
}

pub(super) fn real_path(path: &Path) -> Operation<PathBuf> {
    with(path, |path| fs::canonicalize(path))
}

/// Up to `most` bytes of an open file from a position on.
pub(crate) fn read_at_most(file: &File, from: u64, most: usize) -> io::Result<Vec<u8>> {
    const STEP: usize = 1 << 20;
    let mut out = Vec::new();
    let mut filled = 0;
    while filled < most {
        out.resize(most.min(filled + STEP), 0);
        match file.read_at(&mut out[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    out.truncate(filled);
    Ok(out)
}

/// A whole file, if it is one: pipes and devices are refused, and not waited for.
pub(super) fn read_regular(path: &Path) -> Result<Vec<u8>, ToolError> {
    let known = fs::metadata(path).map_err(|error| os_error(&error, "open", path))?;
    refuse_other_kinds(&facts(&known), path)?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let mut file = opened.map_err(|error| os_error(&error, "open", path))?;
    let mut out = Vec::with_capacity(known.len() as usize);
    file.read_to_end(&mut out).map_err(|error| os_error_without_path(&error, "read"))?;
    Ok(out)
}
