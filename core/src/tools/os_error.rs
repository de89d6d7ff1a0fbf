//! Errors of the operating system as models are used to reading them (T13).

use std::io;
use std::path::Path;

use super::ToolError;

/// `CODE: description, call 'path'`.
pub(super) fn os_error(error: &io::Error, call: &str, path: &Path) -> ToolError {
    let (code, text) = match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NOENT) => ("ENOENT", "no such file or directory"),
        Some(rustix::io::Errno::ACCESS) => ("EACCES", "permission denied"),
        Some(rustix::io::Errno::PERM) => ("EPERM", "operation not permitted"),
        Some(rustix::io::Errno::ISDIR) => ("EISDIR", "illegal operation on a directory"),
        Some(rustix::io::Errno::NOTDIR) => ("ENOTDIR", "not a directory"),
        Some(rustix::io::Errno::EXIST) => ("EEXIST", "file already exists"),
        Some(rustix::io::Errno::LOOP) => ("ELOOP", "too many symbolic links encountered"),
        Some(rustix::io::Errno::NAMETOOLONG) => ("ENAMETOOLONG", "name too long"),
        Some(rustix::io::Errno::NOSPC) => ("ENOSPC", "no space left on device"),
        Some(rustix::io::Errno::ROFS) => ("EROFS", "read-only file system"),
        Some(rustix::io::Errno::MFILE) => ("EMFILE", "too many open files"),
        Some(rustix::io::Errno::IO) => ("EIO", "i/o error"),
        _ => return ToolError::new(format!("{error}, {call} '{}'", path.display())),
    };
    ToolError::new(format!("{code}: {text}, {call} '{}'", path.display()))
}
