//! Driving a future on the caller's thread, with a time limit.
//!
//! What a call of the core waits for is a channel, so any thread can wait. Library threads that run callbacks are
//! ordinary threads too, never workers of the async runtime: blocking there stalls one subscription and nothing else.
//!
//! Parking is done with a condition variable rather than `std::thread::park`: that would make a record of the host's
//! main thread that is never freed, a lost block for every host that looks for leaks.

use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// A timeout that means none. Milliseconds.
pub const BRANCHLINE_WAIT_FOREVER: u32 = 0xFFFF_FFFF;

/// The time a caller is ready to wait.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn from_ms(timeout_ms: u32) -> Deadline {
        Deadline::after(match timeout_ms {
            BRANCHLINE_WAIT_FOREVER => None,
            ms => Some(Duration::from_millis(ms.into())),
        })
    }

    pub(crate) fn after(time: Option<Duration>) -> Deadline {
        Deadline(time.and_then(|time| Instant::now().checked_add(time)))
    }

    /// What is left; [`Duration::MAX`] without a limit.
    pub(crate) fn left(self) -> Duration {
        self.0.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()))
    }
}

/// A thread that waits to be woken.
#[derive(Default)]
struct Parker {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Parker {
    /// Waits until woken, or for at most `time`.
    fn park(&self, time: Duration) {
        // Not every system can wait for `Duration::MAX`; waking early is no harm.
        let time = time.min(Duration::from_secs(3600));
        let woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(woken, time, |woken| !*woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

/// The future's value; `None` when the time ran out first. A future that is ready is never too late.
pub(crate) fn block_until<F: Future>(future: F, deadline: Deadline) -> Option<F::Output> {
    let parker = Arc::new(Parker::default());
    let waker = Waker::from(parker.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        let left = deadline.left();
        if left.is_zero() {
            return None;
        }
        parker.park(left);
    }
}

/// The future's value.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Some(value) = block_until(future.as_mut(), Deadline::after(None)) {
            return value;
        }
    }
}
