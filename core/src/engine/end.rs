//! The end of an engine: its sessions are closed, its toolboxes' calls ended, its threads let go.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::{Engine, EngineShared, Inner, lock};
use crate::error::{Error, ErrorCode, Result};
use crate::session::Shared;
use crate::tools::under_way::PATIENCE;

/// How long sessions may take to store what they have when their engine is dropped.
const LINGER: Duration = Duration::from_secs(5);

impl Engine {
    /// Aborts and closes every session, ends the calls of toolboxes, and waits until files are released and processes
    /// have ended. Idempotent.
    pub async fn shutdown(&self) {
        let sessions = self.shared().close();
        for session in &sessions {
            session.wait_closed().await;
        }
        let calls = self.shared().tool_calls.clone();
        if !calls.is_idle() {
            let _ = self.shared().handle.spawn(calls.idle()).await;
        }
        if let Some(recorder) = self.shared().recorder.clone() {
            let _ = self.shared().handle.spawn_blocking(move || recorder.finish()).await;
        }
        if let Some(runtime) = lock(&self.inner.runtime).take() {
            runtime.shutdown_background();
        }
    }

    /// [`shutdown`](Engine::shutdown) for a thread that may block, which also waits for the worker threads to end: after
    /// it nothing of the engine is left running. Never call it from an executor's task.
    ///
    /// Errors: `timeout` when that took longer than `limit`; what was begun goes on.
    pub fn shutdown_blocking(&self, limit: Duration) -> Result<()> {
        let start = Instant::now();
        let sessions = self.shared().close();
        while sessions.iter().any(|session| !session.is_closed()) {
            if start.elapsed() >= limit {
                return Err(Error::new(ErrorCode::Timeout, "sessions took longer to close than the time allowed"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let patience = start.elapsed().saturating_add(PATIENCE).min(limit);
        while !self.shared().tool_calls.is_idle() && start.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(runtime) = lock(&self.inner.runtime).take() {
            runtime.shutdown_timeout(limit.saturating_sub(start.elapsed()));
        }
        if let Some(recorder) = &self.shared().recorder {
            recorder.finish();
        }
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let sessions = self.shared.close();
        let Some(runtime) = lock(&self.runtime).take() else { return };
        let calls = self.shared.tool_calls.clone();
        if sessions.is_empty() && calls.is_idle() {
            return runtime.shutdown_background();
        }
        // Dropping must not wait, but what the sessions have should be stored: a thread of its own sees them out. The
        // runtime travels in a slot, so that it is shut down (and not dropped, which would wait) without that thread.
        let slot = Arc::new(Mutex::new(Some(runtime)));
        let theirs = slot.clone();
        let reaper = move || {
            let start = Instant::now();
            let open = || sessions.iter().any(|session| !session.is_closed());
            while start.elapsed() < LINGER && open() || start.elapsed() < PATIENCE && !calls.is_idle() {
                std::thread::sleep(Duration::from_millis(2));
            }
            if let Some(runtime) = lock(&theirs).take() {
                runtime.shutdown_background();
            }
        };
        if std::thread::Builder::new().name("branchline-end".into()).spawn(reaper).is_err()
            && let Some(runtime) = lock(&slot).take()
        {
            runtime.shutdown_background();
        }
    }
}

impl EngineShared {
    /// Tells every session to end and takes no new ones.
    fn close(&self) -> Vec<Arc<Shared>> {
        self.closing.cancel();
        let sessions = lock(&self.sessions).take().unwrap_or_default();
        let sessions: Vec<_> = sessions.iter().filter_map(Weak::upgrade).collect();
        sessions.iter().for_each(|session| session.close.cancel());
        sessions
    }
}
