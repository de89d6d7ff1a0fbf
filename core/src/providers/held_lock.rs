//! The lock of `auth.json` while a source of logins is asked (P32): what the source itself waits for there would wait for the
//! source.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::auth_file::AuthFile;
use super::auth_write::Locked;
use crate::error::{Error, ErrorCode, Result};

tokio::task_local! {
    static HELD: HeldLock;
}

/// A lock that is held for as long as a source of logins is asked. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct HeldLock {
    file: Arc<Path>,
}

impl HeldLock {
    /// Of a file, links followed.
    pub(super) fn new(file: PathBuf) -> HeldLock {
        HeldLock { file: file.into() }
    }

    /// The one that the calling task or thread is asked under, if it is.
    pub(crate) fn current() -> Option<HeldLock> {
        HELD.try_with(HeldLock::clone).ok()
    }

    /// A question that is asked under it.
    pub(super) async fn asking<T>(self, question: impl Future<Output = T>) -> T {
        HELD.scope(self, question).await
    }

    /// Runs what a host does about such a question, on this thread.
    pub(crate) fn enter<T>(self, work: impl FnOnce() -> T) -> T {
        HELD.sync_scope(self, work)
    }

    pub(super) fn is_of(&self, file: &Path) -> bool {
        *self.file == *file
    }

    pub(super) fn refusal(&self) -> Error {
        let text = format!(
            "a source of logins is asked under the lock of {}, and this would wait for it; what the source gives is stored, \
            and anything else can be stored when it has answered",
            self.file.display()
        );
        Error::new(ErrorCode::WouldDeadlock, text)
    }
}

/// Prepares the taking of the lock, which blocks, for a call of the host: made where the call is, run anywhere.
///
/// Errors of what it gives: `storage_failed`, and `would_deadlock` in a source of logins that is asked under this lock.
pub(crate) fn locking(file: Arc<AuthFile>) -> impl FnOnce() -> Result<Locked> + Send + 'static {
    let held = HeldLock::current();
    move || file.lock(held.as_ref())
}
