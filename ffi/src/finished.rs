//! Threads that run callbacks, and how somebody waits for their end.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::block_on::Deadline;
use crate::error::Failure;
use crate::status::branchline_status;

/// Something that is set once, and those who wait for it.
#[derive(Default)]
pub(crate) struct Flag {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Flag {
    pub(crate) fn set(&self) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is set. False when the time ran out.
    pub(crate) fn wait(&self, deadline: Deadline) -> bool {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        while !*set {
            let left = deadline.left();
            if left.is_zero() {
                return false;
            }
            // The longest waits are cut in pieces: not every system can wait for `Duration::MAX`.
            let piece = left.min(Duration::from_secs(3600));
            set = self.changed.wait_timeout(set, piece).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// What runs on a thread of its own and calls the host.
pub(crate) trait Worker: Send + Sync {
    /// Tells it to end, if the end of its engine does not do so already.
    fn stop(&self) {}
    /// Waits until it is about to end: `destroy` has run. False when the time ran out.
    fn wait_finished(&self, deadline: Deadline) -> bool;
}

/// Starts a thread that runs callbacks. When it cannot be started `work` is dropped.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Failure> {
    std::thread::Builder::new().name("branchline-call".into()).spawn(work).map_err(|error| {
        Failure::new(branchline_status::INTERNAL, format!("cannot start a thread for callbacks: {error}"))
    })
}

/// The threads of an engine that run callbacks, to wait for them at its end.
#[derive(Default)]
pub(crate) struct Threads(Mutex<Vec<Thread>>);

type Thread = (Arc<dyn Worker>, JoinHandle<()>);

impl Threads {
    pub(crate) fn add(&self, worker: Arc<dyn Worker>, thread: JoinHandle<()>) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|(_, thread)| !thread.is_finished());
        threads.push((worker, thread));
    }

    /// Tells all to end.
    pub(crate) fn stop(&self) {
        let workers: Vec<_> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(worker, _)| worker.clone()).collect();
        workers.iter().for_each(|worker| worker.stop());
    }

    /// Waits until all have ended. False when the time ran out. Must not be called by one of them.
    pub(crate) fn join(&self, deadline: Deadline) -> bool {
        loop {
            let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some((worker, thread)) = next else { return true };
            if !worker.wait_finished(deadline) {
                self.add(worker, thread);
                return false;
            }
            let _ = thread.join();
        }
    }
}
