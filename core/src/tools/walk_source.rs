//! Where a walk gets directories and files from: the disk, or the host where it replaces them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use tokio_util::sync::CancellationToken;

use super::local;
use super::operations::{FileKind, Operations, Replaced};
use crate::permissions::Fence;

/// Files of one call. Its methods block, and may be called on any thread that may.
pub(super) struct Source {
    operations: Operations,
    replaced: Replaced,
    /// What must not be left, where anything must not.
    fence: Option<Arc<Fence>>,
    runtime: tokio::runtime::Handle,
}

/// A file's content, or the file to take it from.
pub(super) enum Content {
    Bytes(Vec<u8>),
    Disk(File),
}

impl Source {
    /// Asks which files are replaced. To be called on the runtime.
    pub(super) async fn new(operations: &Operations) -> io::Result<Source> {
        let fence = operations.fence.clone();
        // A fence serves the disk's own files by itself.
        let replaced = match &fence {
            Some(fence) => fence.inner().replaced().await?,
            None => operations.files.replaced().await?,
        };
        Ok(Source { operations: operations.clone(), replaced, fence, runtime: tokio::runtime::Handle::current() })
    }

    /// The entries of a directory, unsorted. Gives up half-way when the token fires.
    pub(super) fn list(&self, path: &Path, cancel: &CancellationToken) -> io::Result<Vec<(OsString, FileKind)>> {
        if self.replaced == Replaced::All {
            let entries = self.runtime.block_on(self.operations.files.read_dir(path))?;
            return Ok(entries.into_iter().map(|entry| (entry.name, entry.kind)).collect());
        }
        let mut out = Vec::new();
        if let Some(fence) = &self.fence {
            fence.list(path, |name, kind| {
                out.push((name, kind));
                out.len() % 1024 != 0 || !cancel.is_cancelled()
            })?;
            return Ok(out);
        }
        for entry in fs::read_dir(path)? {
            let Ok(entry) = entry else { continue };
            let Ok(kind) = entry.file_type() else { continue };
            out.push((entry.file_name(), local::kind(kind)));
            if out.len() % 1024 == 0 && cancel.is_cancelled() {
                break;
            }
        }
        Ok(out)
    }

    /// Opens a file, or asks the host for it.
    pub(super) fn open(&self, path: &Path) -> io::Result<Content> {
        match self.replaced.contains(path) {
            true => self.runtime.block_on(self.operations.files.read(path)).map(Content::Bytes),
            false => match &self.fence {
                Some(fence) => Ok(Content::Disk(fence.open(path, OFlags::RDONLY)?.into())),
                None => File::open(path).map(Content::Disk),
            },
        }
    }

    /// Opens a directory below which many files will be opened; `None` where that is of no use.
    pub(super) fn anchor(&self, root: &Path) -> Option<OwnedFd> {
        if self.replaced == Replaced::All {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Some(fence) = &self.fence {
            return fence.open(root, flags).ok();
        }
        rustix::fs::open(root, flags, Mode::empty()).ok()
    }

    /// Opens a file below a root, from its anchor if there is one: the kernel need not walk the root's path every time.
    pub(super) fn open_below(&self, root: &Path, anchor: Option<&OwnedFd>, relative: &[u8]) -> io::Result<Content> {
        match anchor {
            Some(anchor) if self.replaced == Replaced::None => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
                if self.fence.is_some() {
                    // The walk goes through no links, so none is expected here.
                    return Ok(Content::Disk(beneath(anchor, relative, flags)?));
                }
                Ok(Content::Disk(File::from(rustix::fs::openat(anchor, relative, flags, Mode::empty())?)))
            }
            _ => self.open(&root.join(OsStr::from_bytes(relative))),
        }
    }

    /// The whole content of a small file.
    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if self.replaced != Replaced::All && self.fence.as_ref().is_some_and(|fence| is_rule_above(fence, path)) {
            return local::read_regular(path).map_err(|error| io::Error::other(error.0));
        }
        match self.open(path)? {
            Content::Bytes(bytes) => Ok(bytes),
            Content::Disk(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                Ok(bytes)
            }
        }
    }

    /// What a path leads to, links followed.
    pub(super) fn kind(&self, path: &Path) -> io::Result<FileKind> {
        match &self.replaced {
            Replaced::All => return self.runtime.block_on(self.operations.files.metadata(path)).map(|it| it.kind),
            Replaced::Files(files) if files.iter().any(|file| file == path) => return Ok(FileKind::File),
            _ => {}
        }
        match &self.fence {
            Some(fence) if !is_rule_above(fence, path) => fence.facts(path).map(|it| it.kind),
            _ => fs::metadata(path).map(|it| local::kind(it.file_type())),
        }
    }

    /// The path without links, where that can be known.
    pub(super) fn real_path(&self, path: &Path) -> PathBuf {
        let real = match self.replaced {
            _ if self.fence.is_some() => self.runtime.block_on(self.operations.files.real_path(path)),
            Replaced::All => self.runtime.block_on(self.operations.files.real_path(path)),
            _ => fs::canonicalize(path),
        };
        real.unwrap_or_else(|_| path.to_path_buf())
    }

    /// Files below `root` that the host serves and the disk does not have.
    pub(super) fn unlisted(&self, root: &Path) -> Vec<PathBuf> {
        let Replaced::Files(files) = &self.replaced else { return Vec::new() };
        let new = |file: &&PathBuf| file.starts_with(root) && fs::symlink_metadata(file).is_err();
        files.iter().filter(new).cloned().collect()
    }
}

/// Whether a path is a rule of git or of a search in a directory above what must not be left. Such files say what is
/// passed over below them and are never shown.
fn is_rule_above(fence: &Fence, path: &Path) -> bool {
    const RULES: [&str; 6] = [".gitignore", ".ignore", ".rgignore", ".fdignore", ".git", ".jj"];
    let named = |name: &OsStr| RULES.iter().any(|rule| name == *rule);
    path.parent().is_some_and(|above| fence.is_below(above))
        && (path.file_name().is_some_and(named) || path.ends_with(".git/info/exclude"))
}

/// Opens a file below an open directory and never above it, through no link.
#[cfg(target_os = "linux")]
fn beneath(anchor: &OwnedFd, relative: &[u8], flags: OFlags) -> io::Result<File> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(anchor, relative, flags, Mode::empty(), resolve) {
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => step_by_step(anchor, relative, flags),
        opened => Ok(File::from(opened?)),
    }
}

#[cfg(not(target_os = "linux"))]
fn beneath(anchor: &OwnedFd, relative: &[u8], flags: OFlags) -> io::Result<File> {
    step_by_step(anchor, relative, flags)
}

fn step_by_step(anchor: &OwnedFd, relative: &[u8], flags: OFlags) -> io::Result<File> {
    let mut at: Option<OwnedFd> = None;
    let mut names = relative.split(|&byte| byte == b'/').peekable();
    while let Some(name) = names.next() {
        let flags = match names.peek() {
            Some(_) => OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            None => flags,
        };
        let from = at.as_ref().unwrap_or(anchor);
        at = Some(rustix::fs::openat(from, name, flags | OFlags::NOFOLLOW, Mode::empty())?);
    }
    at.map(File::from).ok_or_else(|| io::ErrorKind::NotFound.into())
}
