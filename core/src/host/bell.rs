//! The descriptor that tells an event loop of a queue of requests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::system::wake_fd::WakeFd;

/// A descriptor that is made when somebody wants it. Its lock orders setting and clearing.
#[derive(Default)]
pub(super) struct Bell {
    fd: Mutex<Option<WakeFd>>,
}

impl Bell {
    /// Nothing more will come.
    pub(super) fn ring(&self) {
        self.update(|| false);
    }

    /// Something came or was taken. `is_quiet` is asked under the lock, after that.
    pub(super) fn update(&self, is_quiet: impl FnOnce() -> bool) {
        if let Some(fd) = &*self.lock() {
            if is_quiet() { fd.clear() } else { fd.set() }
        }
    }

    /// The descriptor. A new one is readable.
    pub(super) fn fd(&self) -> Result<std::os::fd::RawFd> {
        let mut fd = self.lock();
        if let Some(fd) = &*fd {
            return Ok(fd.raw());
        }
        let new = WakeFd::new()?;
        new.set();
        let raw = new.raw();
        *fd = Some(new);
        Ok(raw)
    }

    fn lock(&self) -> MutexGuard<'_, Option<WakeFd>> {
        self.fd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bell")
    }
}
