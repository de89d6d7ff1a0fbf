//! How many calls of an engine's toolboxes are under way, so that its end can wait for them: they need its timers to end
//! their processes.

use std::time::Duration;

use tokio::sync::watch;

/// How long the end of an engine waits for calls that were told to end. One that nobody polls does not end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Counts calls. Cheap to clone; all clones count together.
#[derive(Debug, Clone)]
pub(crate) struct UnderWay(watch::Sender<usize>);

impl UnderWay {
    pub(crate) fn new() -> UnderWay {
        UnderWay(watch::Sender::new(0))
    }

    /// A call has begun; it ends when the result is dropped.
    pub(super) fn begin(&self) -> OneCall {
        self.0.send_modify(|count| *count += 1);
        OneCall(self.clone())
    }

    pub(crate) fn is_idle(&self) -> bool {
        *self.0.borrow() == 0
    }

    /// Waits until all have ended, or for [`PATIENCE`]. On the runtime's threads.
    pub(crate) async fn idle(self) {
        let mut changes = self.0.subscribe();
        let _ = tokio::time::timeout(PATIENCE, changes.wait_for(|count| *count == 0)).await;
    }
}

pub(super) struct OneCall(UnderWay);

impl Drop for OneCall {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
