//! Directories that a call may not leave.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::beneath::{self, Place};
use super::target::prospective;
use crate::tools::operations::FileOperations;

/// A directory below which, or a file at which, files may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    /// As the host or the call names it, absolute.
    given: PathBuf,
    /// Where that led when the root was made. What it leads to later does not matter.
    real: PathBuf,
    /// It is one file, which may be missing, and nothing below it.
    file: bool,
}

impl Root {
    /// A directory. It need not exist. Looks at the disk.
    pub(super) fn directory(given: &Path) -> Root {
        let given = std::path::absolute(given).unwrap_or_else(|_| given.to_path_buf());
        let real = prospective(&given).unwrap_or_else(|_| given.clone());
        Root { given, real, file: false }
    }

    /// What a call named and was allowed to use. Looks at the disk.
    pub(super) fn named(given: &Path, real: &Path) -> Root {
        Root { given: given.to_path_buf(), real: real.to_path_buf(), file: !real.is_dir() }
    }

    /// Whether a path without links lies at or below it. Whole names are compared: `/root` does not contain `/rootx`.
    pub(crate) fn contains(&self, real: &Path) -> bool {
        if self.file { real == self.real } else { real.starts_with(&self.real) }
    }

    /// Whether this is a file, by either name below the directory.
    fn is_on_the_way(&self, directory: &Path) -> bool {
        let above = |path: &Path| path.parent().is_some_and(|parent| parent.starts_with(directory));
        self.file && (above(&self.real) || above(&self.given))
    }

    /// The part of a path below this root, by either of its names.
    fn below<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let rest = path.strip_prefix(&self.given).or_else(|_| path.strip_prefix(&self.real)).ok()?;
        (!self.file || rest.as_os_str().is_empty()).then_some(rest)
    }
}

/// What keeps the files of a call below some directories.
pub(crate) struct Fence {
    roots: Vec<Root>,
    /// Where files come from that are not the disk's own.
    inner: Arc<dyn FileOperations>,
}

/// A directory to begin at, without links on the way to it, and what is to be found below it.
struct Start {
    anchor: PathBuf,
    rest: PathBuf,
    /// `rest` is one name, which must be no link.
    exact: bool,
}

impl Fence {
    pub(super) fn new(roots: Vec<Root>, inner: Arc<dyn FileOperations>) -> Fence {
        Fence { roots, inner }
    }

    /// Whether everything inside lies below this directory: it is above, or a root itself.
    pub(crate) fn is_below(&self, directory: &Path) -> bool {
        self.roots.iter().any(|root| root.real.starts_with(directory))
    }

    /// Whether a directory lies above a file that is allowed by its name. Where it is may be known, not what is in it.
    pub(super) fn is_on_the_way(&self, directory: &Path) -> bool {
        self.roots.iter().any(|root| root.is_on_the_way(directory))
    }

    pub(crate) fn inner(&self) -> &Arc<dyn FileOperations> {
        &self.inner
    }

    /// Fails unless a path without links lies inside.
    pub(super) fn check(&self, real: &Path) -> io::Result<()> {
        if self.roots.iter().any(|root| root.contains(real)) { Ok(()) } else { Err(outside()) }
    }

    /// Opens what a path leads to, if that lies inside. `flags` must not create anything.
    pub(crate) fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let start = self.start(path)?;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        if !start.exact
            && let Some(opened) = beneath::open_directly(&start.anchor, &start.rest, flags)
        {
            return opened;
        }
        let place = self.walk(start, false)?;
        Ok(rustix::fs::openat(&place.directory, &place.name, flags | OFlags::NOFOLLOW, rustix::fs::Mode::empty())?)
    }

    /// The directory, open, and the name in it that a path leads to, if that lies inside. Nothing need be there by that
    /// name, but the directory must.
    pub(super) fn place(&self, path: &Path) -> io::Result<Place> {
        let start = self.start(path)?;
        self.walk(start, false)
    }

    /// Makes a directory and those above it that are missing, as far as they lie inside, or on the way to a file that
    /// is allowed by its name.
    pub(super) fn create_directories(&self, path: &Path) -> io::Result<()> {
        let start = match self.start(path) {
            Ok(start) => start,
            Err(error) => {
                // Those of a file that is allowed by its name, where it was when that was judged.
                let to_file = |root: &&Root| root.is_on_the_way(path);
                let Some(parent) = self.roots.iter().find(to_file).and_then(|root| root.real.parent()) else {
                    return Err(error);
                };
                return beneath::make_plain(parent);
            }
        };
        if start.rest.as_os_str().is_empty() {
            return beneath::make_plain(&start.anchor);
        }
        beneath::make_directory(&self.walk(start, true)?)
    }

    fn walk(&self, start: Start, make: bool) -> io::Result<Place> {
        if start.exact {
            return beneath::exactly(&start.anchor, &start.rest);
        }
        beneath::walk(&start.anchor, &start.rest, make, |target| self.lexical(target))
    }

    /// Where to begin for a path.
    fn start(&self, path: &Path) -> io::Result<Start> {
        if let Some(start) = self.by_name(path) {
            return Ok(start);
        }
        // By a third name, through links that lead here from outside.
        let real = prospective(path)?;
        self.by_name(&real).ok_or_else(outside)
    }

    fn by_name(&self, path: &Path) -> Option<Start> {
        self.roots.iter().find_map(|root| {
            let rest = root.below(path)?;
            if !root.file {
                return Some(Start { anchor: root.real.clone(), rest: rest.to_path_buf(), exact: false });
            }
            let (parent, name) = (root.real.parent()?, root.real.file_name()?);
            Some(Start { anchor: parent.to_path_buf(), rest: name.into(), exact: true })
        })
    }

    /// The same for the target of a link met on the way: the directory to go on from, and the rest.
    fn lexical(&self, target: &Path) -> Option<(PathBuf, PathBuf)> {
        self.roots.iter().filter(|root| !root.file).find_map(|root| {
            let rest = root.below(target)?;
            Some((root.real.clone(), rest.to_path_buf()))
        })
    }
}

/// The error of leaving the allowed directories.
pub(super) fn outside() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the path leads outside of the directories that are allowed")
}
