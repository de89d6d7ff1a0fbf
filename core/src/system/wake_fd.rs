//! A file descriptor that hosts can poll: readable while it is set.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorCode, Result};

/// An eventfd on Linux, a pipe elsewhere. Setting twice is setting once.
pub(crate) struct WakeFd {
    read: OwnedFd,
    #[cfg(not(target_os = "linux"))]
    write: OwnedFd,
    set: AtomicBool,
}

impl WakeFd {
    pub(crate) fn new() -> Result<WakeFd> {
        WakeFd::open().map_err(|error| {
            Error::new(ErrorCode::StorageFailed, format!("cannot create a file descriptor for events: {error}"))
        })
    }

    #[cfg(target_os = "linux")]
    fn open() -> std::io::Result<WakeFd> {
        use rustix::event::{EventfdFlags, eventfd};
        let read = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(WakeFd { read, set: AtomicBool::new(false) })
    }

    #[cfg(not(target_os = "linux"))]
    fn open() -> std::io::Result<WakeFd> {
        use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
        let (read, write) = rustix::pipe::pipe()?;
        for fd in [&read, &write] {
            fcntl_setfd(fd, FdFlags::CLOEXEC)?;
            ioctl_fionbio(fd, true)?;
        }
        Ok(WakeFd { read, write, set: AtomicBool::new(false) })
    }

    /// Makes the descriptor readable.
    pub(crate) fn set(&self) {
        if !self.set.swap(true, Ordering::AcqRel) {
            #[cfg(target_os = "linux")]
            let _ = rustix::io::write(&self.read, &1u64.to_ne_bytes());
            #[cfg(not(target_os = "linux"))]
            let _ = rustix::io::write(&self.write, &[1]);
        }
    }

    /// Makes it unreadable. `set` and `clear` must not race; callers hold the lock of what the descriptor stands for.
    pub(crate) fn clear(&self) {
        if self.set.swap(false, Ordering::AcqRel) {
            let _ = rustix::io::read(&self.read, &mut [0u8; 8]);
        }
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.read.as_raw_fd()
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
