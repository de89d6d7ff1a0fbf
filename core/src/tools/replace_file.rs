//! Writing a file so that it is entirely the old one or entirely the new one, whatever happens in between (T73).
//!
//! The content goes to a file without a name in the same directory, which then takes the place of the old one. Mode and
//! links stay. Where a new file could not be like the old one (it has several names, belongs to someone else, carries
//! attributes or cannot be replaced), the old one is written in place, as everybody else does.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Replaces the content of a file, or makes it. Missing directories are not made.
pub(super) fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    // A new file first: it is the common case, and takes no look at what is there.
    match create(path, content) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => return done,
    }
    match fs::metadata(path) {
        Ok(old) if old.is_file() => {
            // A file that may not be written is not replaced either, though its directory would allow it.
            OpenOptions::new().write(true).open(path)?;
            let real = fs::canonicalize(path)?;
            if !replaceable(&real, &old) || put_in_place(&real, content, Some(&old)).is_err() {
                return in_place(path, content);
            }
            Ok(())
        }
        // Also a link to nothing: its target is made.
        Ok(_) => in_place(path, content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => in_place(path, content),
        Err(error) => Err(error),
    }
}

/// Whether a new file can be all that the old one is.
fn replaceable(path: &Path, old: &fs::Metadata) -> bool {
    let mine = old.uid() == rustix::process::geteuid().as_raw();
    let group = old.gid() == rustix::process::getegid().as_raw();
    old.nlink() == 1 && mine && group && !has_attributes(path)
}

/// Access lists and other extended attributes, but for labels that every file gets.
fn has_attributes(path: &Path) -> bool {
    let mut names = [0; 1024];
    match rustix::fs::listxattr(path, &mut names) {
        Ok(length) => names[..length].split(|byte| *byte == 0).any(|name| !matches!(name, b"" | b"security.selinux")),
        Err(rustix::io::Errno::OPNOTSUPP) => false,
        Err(_) => true,
    }
}

fn in_place(path: &Path, content: &[u8]) -> io::Result<()> {
    // A named pipe that nobody reads is an error then, instead of a wait without end.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(path)?;
    file.write_all(content)
}

/// A file that was not there. If it cannot be written whole it is taken away again.
fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

fn put_in_place(path: &Path, content: &[u8], old: Option<&fs::Metadata>) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mode = old.map_or(0o600, |old| old.mode() & 0o7777);
    #[cfg(target_os = "linux")]
    if let Some(done) = with_nameless_file(dir, path, content, mode) {
        return done;
    }
    let mut file = tempfile::Builder::new().prefix(".branchline-").tempfile_in(dir)?;
    fill(file.as_file_mut(), content, mode)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

fn fill(file: &mut File, content: &[u8], mode: u32) -> io::Result<()> {
    file.write_all(content)?;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// Nothing is left behind when the process is killed while it writes: the file has no name yet. `None` where the file
/// system has no such files.
#[cfg(target_os = "linux")]
fn with_nameless_file(dir: &Path, path: &Path, content: &[u8], mode: u32) -> Option<io::Result<()>> {
    use std::os::fd::AsRawFd;

    let flags = rustix::fs::OFlags::TMPFILE.bits() as i32;
    let mut file = OpenOptions::new().write(true).mode(0o600).custom_flags(flags).open(dir).ok()?;
    if let Err(error) = fill(&mut file, content, mode) {
        return Some(Err(error));
    }
    let name = dir.join(format!(".branchline-{}", uuid::Uuid::new_v4().simple()));
    let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
    let cwd = rustix::fs::CWD;
    rustix::fs::linkat(cwd, nameless, cwd, &name, rustix::fs::AtFlags::SYMLINK_FOLLOW).ok()?;
    Some(fs::rename(&name, path).inspect_err(|_| {
        let _ = fs::remove_file(&name);
    }))
}
