//! Writing a file in an open directory, so that it is entirely the old one or entirely the new one: what
//! `tools::replace_file` does by path.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::beneath::Place;

/// Replaces the content of the file at a place, or makes it.
pub(super) fn replace(place: &Place, content: &[u8]) -> io::Result<()> {
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match open(place, new, 0o666) {
        Ok(mut file) => {
            return file.write_all(content).inspect_err(|_| {
                let _ = rustix::fs::unlinkat(&place.directory, &place.name, AtFlags::empty());
            });
        }
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    // A file that may not be written is not replaced either. A pipe that nobody reads is an error, not a wait.
    let there = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mut old = open(place, there, 0)?;
    let facts = old.metadata()?;
    if facts.is_file() && replaceable(&old, &facts) && put_in_place(place, content, facts.mode() & 0o7777).is_ok() {
        return Ok(());
    }
    if facts.is_file() {
        old.set_len(0)?;
    }
    old.write_all(content)
}

fn open(place: &Place, flags: OFlags, mode: u32) -> Result<File, Errno> {
    rustix::fs::openat(&place.directory, &place.name, flags, Mode::from_bits_truncate(mode as _)).map(File::from)
}

/// Whether a new file can be all that the old one is.
fn replaceable(file: &File, old: &std::fs::Metadata) -> bool {
    let mine = old.uid() == rustix::process::geteuid().as_raw();
    let group = old.gid() == rustix::process::getegid().as_raw();
    old.nlink() == 1 && mine && group && !has_attributes(file)
}

/// Access lists and other extended attributes, but for labels that every file gets.
fn has_attributes(file: &File) -> bool {
    let mut names = [0; 1024];
    match rustix::fs::flistxattr(file, &mut names) {
        Ok(length) => names[..length].split(|byte| *byte == 0).any(|name| !matches!(name, b"" | b"security.selinux")),
        Err(Errno::OPNOTSUPP) => false,
        Err(_) => true,
    }
}

/// Writes beside the file, then takes its name.
fn put_in_place(place: &Place, content: &[u8], mode: u32) -> io::Result<()> {
    let directory = &place.directory;
    let name = format!(".branchline-{}", uuid::Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = File::from(rustix::fs::openat(directory, &name, flags, Mode::from_bits_truncate(0o600))?);
    let filled = file.write_all(content).and_then(|()| file.set_permissions(Permissions::from_mode(mode)));
    let done = filled.and_then(|()| Ok(rustix::fs::renameat(directory, &name, directory, &place.name)?));
    done.inspect_err(|_| remove(directory, &name))
}

fn remove(directory: &OwnedFd, name: &str) {
    let _ = rustix::fs::unlinkat(directory.as_fd(), name, AtFlags::empty());
}
