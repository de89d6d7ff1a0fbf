//! Opening below a directory without leaving it, whatever is done to the names meanwhile.
//!
//! Linux does it in one call (`openat2` with `RESOLVE_BENEATH`). Where that is missing, and for links that are absolute
//! but lead back inside, which it refuses, the path is walked name by name: each directory is opened from the one before
//! and never through a link; links are read and their text is walked like the rest. So nothing is ever opened that was
//! not reached from the root.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::fence::outside;
use super::target::{MOST_LINKS, parts};

/// A name in an open directory.
pub(super) struct Place {
    pub(super) directory: OwnedFd,
    /// `.` for the directory itself. No link when it was looked at; to be used without following any.
    pub(super) name: OsString,
    /// The whole path without links.
    pub(super) real: PathBuf,
}

/// How directories on the way are opened: without the right to read them where the system can do that.
#[cfg(target_os = "linux")]
const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
#[cfg(not(target_os = "linux"))]
const ON_THE_WAY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Opens `rest` below `anchor` in one call of the system. `None` where that cannot decide.
#[cfg(target_os = "linux")]
pub(super) fn open_directly(anchor: &Path, rest: &Path, flags: OFlags) -> Option<io::Result<OwnedFd>> {
    use rustix::fs::{CWD, ResolveFlags};
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let anchor = rustix::fs::openat2(CWD, anchor, ON_THE_WAY, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
    match rustix::fs::openat2(&anchor, rest, flags, Mode::empty(), beneath) {
        Ok(opened) => Some(Ok(opened)),
        // It leads out, is a special link, was moved meanwhile, or there is no such call (or a filter against it).
        Err(Errno::XDEV | Errno::LOOP | Errno::AGAIN | Errno::NOSYS | Errno::PERM | Errno::INVAL) => None,
        Err(error) => Some(Err(error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_directly(_anchor: &Path, _rest: &Path, _flags: OFlags) -> Option<io::Result<OwnedFd>> {
    None
}

/// Opens a directory by an absolute path that must have no links in it.
fn open_plain(path: &Path, make: bool) -> io::Result<OwnedFd> {
    let mut at = rustix::fs::open("/", ON_THE_WAY, Mode::empty())?;
    let mut names = parts(path);
    while let Some(name) = names.pop() {
        at = step(&at, &name, make)?;
    }
    Ok(at)
}

/// From a directory to one in it.
fn step(at: &OwnedFd, name: &OsString, make: bool) -> io::Result<OwnedFd> {
    match rustix::fs::openat(at, name, ON_THE_WAY, Mode::empty()) {
        Err(Errno::NOENT) if make => {
            match rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(rustix::fs::openat(at, name, ON_THE_WAY, Mode::empty())?)
        }
        opened => Ok(opened?),
    }
}

/// Makes a directory and those above it that are missing, by an absolute path that must have no links in it.
pub(super) fn make_plain(path: &Path) -> io::Result<()> {
    open_plain(path, true).map(drop)
}

/// Makes the directory that a place names, unless it is there.
pub(super) fn make_directory(place: &Place) -> io::Result<()> {
    match rustix::fs::mkdirat(&place.directory, &place.name, Mode::from_raw_mode(0o777)) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => {
            let there = rustix::fs::statat(&place.directory, &place.name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
            let kind = rustix::fs::FileType::from_raw_mode(there.st_mode);
            if kind == rustix::fs::FileType::Directory { Ok(()) } else { Err(Errno::EXIST.into()) }
        }
        Err(error) => Err(error.into()),
    }
}

/// The place of one name in a directory, neither of which may be a link.
pub(super) fn exactly(anchor: &Path, name: &Path) -> io::Result<Place> {
    let directory = open_plain(anchor, false)?;
    match rustix::fs::readlinkat(&directory, name, Vec::new()) {
        Ok(_) => Err(outside()),
        Err(Errno::INVAL | Errno::NOENT) => Ok(Place { directory, name: name.into(), real: anchor.join(name) }),
        Err(error) => Err(error.into()),
    }
}

/// Walks from `anchor` down `rest` and gives the place it leads to, the last link followed too. What is missing on the
/// way is an error, or with `make` is made; the last name may be missing. `inside` says where the absolute target of a
/// link lies: the root to go on from, and the rest; `None` is outside.
pub(super) fn walk(
    anchor: &Path,
    rest: &Path,
    make: bool,
    inside: impl Fn(&Path) -> Option<(PathBuf, PathBuf)>,
) -> io::Result<Place> {
    let mut way = vec![open_plain(anchor, false)?];
    let mut real = anchor.to_path_buf();
    let mut names = parts(rest);
    let mut links = 0;
    while let Some(name) = names.pop() {
        if name == ".." {
            if way.len() == 1 {
                return Err(outside());
            }
            way.pop();
            real.pop();
            continue;
        }
        let Some(at) = way.last() else { return Err(outside()) };
        match rustix::fs::readlinkat(at, &name, Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target =
                    PathBuf::from(<OsString as std::os::unix::ffi::OsStringExt>::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    let (anchor, rest) = inside(&target).ok_or_else(outside)?;
                    way = vec![open_plain(&anchor, false)?];
                    real = anchor;
                    names.extend(parts(&rest));
                } else {
                    names.extend(parts(&target));
                }
            }
            // Nothing there, or no link: the last name is the place.
            Err(Errno::INVAL | Errno::NOENT) if names.is_empty() => {
                let directory = way.pop().ok_or_else(outside)?;
                return Ok(Place { directory, real: real.join(&name), name });
            }
            Err(Errno::INVAL) => {
                let next = step(at, &name, false)?;
                way.push(next);
                real.push(name);
            }
            Err(Errno::NOENT) if make => {
                let next = step(at, &name, true)?;
                way.push(next);
                real.push(name);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let directory = way.pop().ok_or_else(outside)?;
    Ok(Place { directory, name: ".".into(), real })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn nowhere(_: &Path) -> Option<(PathBuf, PathBuf)> {
        None
    }

    /// The walk by itself, as systems without the one call do it.
    #[test]
    fn the_walk_stays_below() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let root = base.join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(base.join("rootx")).unwrap();
        fs::write(base.join("rootx/secret"), "s").unwrap();
        symlink("../../rootx", root.join("a/out")).unwrap();
        symlink("../../root/a", root.join("a/around")).unwrap();
        symlink("b/../b", root.join("a/in")).unwrap();
        symlink(base.join("rootx/secret"), root.join("absolute")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("a/new", root.join("dangling")).unwrap();
        let real = |rest: &str| walk(&root, Path::new(rest), false, nowhere).map(|place| place.real);
        assert_eq!(real("a/in/file").unwrap(), root.join("a/b/file"));
        assert_eq!(real("dangling").unwrap(), root.join("a/new"));
        assert_eq!(real("").unwrap(), root);
        for rest in ["a/out/secret", "a/around/b", "absolute", "..", "a/../../rootx/secret"] {
            assert_eq!(real(rest).unwrap_err().kind(), io::ErrorKind::PermissionDenied, "{rest}");
        }
        assert_eq!(real("loop").unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert_eq!(real("missing/x").unwrap_err().kind(), io::ErrorKind::NotFound);
        let back = |target: &Path| Some((root.clone(), target.strip_prefix(&root).ok()?.to_path_buf()));
        symlink(root.join("a/b"), root.join("back")).unwrap();
        assert_eq!(walk(&root, Path::new("back/x"), false, back).unwrap().real, root.join("a/b/x"));
        let made = walk(&root, Path::new("n1/n2/n3"), true, nowhere).unwrap();
        assert!(root.join("n1/n2").is_dir() && !root.join("n1/n2/n3").exists());
        assert_eq!(made.real, root.join("n1/n2/n3"));
    }

    /// An anchor that became a link is not followed.
    #[test]
    fn a_swapped_root_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(base.join("elsewhere")).unwrap();
        symlink("elsewhere", base.join("root")).unwrap();
        assert!(open_plain(&base.join("root"), false).is_err());
        assert!(open_directly(&base.join("root"), Path::new("x"), OFlags::RDONLY).is_none());
        assert!(exactly(&base, Path::new("root")).is_err());
    }
}
