//! Errors of the operating system as models are used to reading them (T13).

use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::ToolError;

/// `CODE: description, call 'path'`. An error that a host made with a text of its own is that text.
pub(super) fn os_error(error: &io::Error, call: &str, path: &Path) -> ToolError {
    describe(error, &format!("{call} '{}'", path.display()))
}

/// `CODE: description, call`, for calls that are not about a path (reading an open file).
pub(super) fn os_error_without_path(error: &io::Error, call: &str) -> ToolError {
    describe(error, call)
}

/// The error of using a directory as a file.
pub(super) fn is_a_directory(call: &str) -> ToolError {
    describe(&Errno::ISDIR.into(), call)
}

fn describe(error: &io::Error, call: &str) -> ToolError {
    match errno(error).and_then(wording) {
        Some((code, text)) => ToolError::new(format!("{code}: {text}, {call}")),
        None if error.raw_os_error().is_none() => ToolError::new(error.to_string()),
        None => ToolError::new(format!("{error}, {call}")),
    }
}

/// The code alone, such as `ENOENT`.
pub(super) fn code(error: &io::Error) -> Option<&'static str> {
    errno(error).and_then(wording).map(|(code, _)| code)
}

fn errno(error: &io::Error) -> Option<Errno> {
    if let Some(raw) = error.raw_os_error() {
        return Some(Errno::from_raw_os_error(raw));
    }
    // A host's error without a text of its own has only its kind.
    if error.get_ref().is_some() && error.kind() == io::ErrorKind::Other {
        return None;
    }
    Some(match error.kind() {
        io::ErrorKind::NotFound => Errno::NOENT,
        io::ErrorKind::PermissionDenied => Errno::ACCESS,
        io::ErrorKind::IsADirectory => Errno::ISDIR,
        io::ErrorKind::NotADirectory => Errno::NOTDIR,
        io::ErrorKind::AlreadyExists => Errno::EXIST,
        io::ErrorKind::StorageFull => Errno::NOSPC,
        io::ErrorKind::ReadOnlyFilesystem => Errno::ROFS,
        io::ErrorKind::InvalidFilename => Errno::NAMETOOLONG,
        io::ErrorKind::InvalidInput => Errno::INVAL,
        _ => return None,
    })
}

fn wording(errno: Errno) -> Option<(&'static str, &'static str)> {
    Some(match errno {
        Errno::NOENT => ("ENOENT", "no such file or directory"),
        Errno::ACCESS => ("EACCES", "permission denied"),
        Errno::PERM => ("EPERM", "operation not permitted"),
        Errno::ISDIR => ("EISDIR", "illegal operation on a directory"),
        Errno::NOTDIR => ("ENOTDIR", "not a directory"),
        Errno::EXIST => ("EEXIST", "file already exists"),
        Errno::LOOP => ("ELOOP", "too many symbolic links encountered"),
        Errno::NAMETOOLONG => ("ENAMETOOLONG", "name too long"),
        Errno::NOSPC => ("ENOSPC", "no space left on device"),
        Errno::DQUOT => ("EDQUOT", "disk quota exceeded"),
        Errno::FBIG => ("EFBIG", "file too large"),
        Errno::ROFS => ("EROFS", "read-only file system"),
        Errno::TXTBSY => ("ETXTBSY", "text file is busy"),
        Errno::BUSY => ("EBUSY", "resource busy or locked"),
        Errno::NXIO => ("ENXIO", "no such device or address"),
        Errno::MFILE => ("EMFILE", "too many open files"),
        Errno::NFILE => ("ENFILE", "file table overflow"),
        Errno::INVAL => ("EINVAL", "invalid argument"),
        Errno::IO => ("EIO", "i/o error"),
        _ => return None,
    })
}
