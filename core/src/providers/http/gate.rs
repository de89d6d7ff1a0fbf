//! What all sessions of an engine know together about a service: how many requests are under way, and that it asked for
//! patience. One 429 slows the others, instead of each finding out for itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The pause after a 429 that names none: this, doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause for which others are held back. A longer one may concern one account only.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Origins nobody has asked for longer than this are forgotten when there are many.
const FORGET: Duration = Duration::from_secs(600);
/// How many origins are remembered before that.
const MANY: usize = 256;

/// The gates of an engine, one for each origin and account.
#[derive(Debug)]
pub(crate) struct Gates {
    max: usize,
    gates: Mutex<HashMap<String, Arc<Gate>>>,
}

#[derive(Debug)]
pub(crate) struct Gate {
    max: usize,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    under_way: usize,
    /// At most `max`; halved by a 429, grown again by one with each success.
    limit: usize,
    closed_until: Option<Instant>,
    /// Refusals in a row.
    refusals: u32,
    used: Instant,
}

/// The right to have one request under way; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Pass(Arc<Gate>);

impl Gates {
    pub(crate) fn new(max: usize) -> Gates {
        Gates { max: max.max(1), gates: Mutex::new(HashMap::new()) }
    }

    /// The gate of an origin, `account` telling keys of one origin apart.
    pub(crate) fn gate(&self, origin: &str, account: u64) -> Arc<Gate> {
        let mut gates = lock(&self.gates);
        if gates.len() > MANY {
            gates.retain(|_, gate| {
                let state = lock(&gate.state);
                state.under_way > 0 || state.used.elapsed() < FORGET
            });
        }
        gates.entry(format!("{origin} {account:x}")).or_insert_with(|| Arc::new(Gate::new(self.max))).clone()
    }
}

impl Gate {
    fn new(max: usize) -> Gate {
        let state = State { under_way: 0, limit: max, closed_until: None, refusals: 0, used: Instant::now() };
        Gate { max, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Waits until a request may start. Cancel it by dropping.
    pub(crate) async fn enter(self: &Arc<Gate>) -> Pass {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let until = {
                let mut state = lock(&self.state);
                let now = Instant::now();
                state.used = now;
                match state.closed_until.filter(|until| *until > now) {
                    Some(until) => Some(until),
                    None if state.under_way < state.limit => {
                        state.under_way += 1;
                        return Pass(self.clone());
                    }
                    None => None,
                }
            };
            match until {
                Some(until) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(until) => {}
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// The service said 429, 503 or 529, perhaps naming a pause.
    pub(crate) fn refused(&self, pause: Option<Duration>) {
        let mut state = lock(&self.state);
        state.refusals = state.refusals.saturating_add(1);
        let own = FIRST_PAUSE.saturating_mul(1 << (state.refusals - 1).min(4));
        let until = Instant::now() + pause.unwrap_or(own).min(LONGEST_PAUSE);
        state.closed_until = Some(state.closed_until.map_or(until, |known| known.max(until)));
        state.limit = (state.under_way / 2).clamp(1, self.max);
    }

    /// The service answered.
    pub(crate) fn accepted(&self) {
        let mut state = lock(&self.state);
        state.refusals = 0;
        if state.limit < self.max {
            state.limit += 1;
            drop(state);
            self.changed.notify_waiters();
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.under_way = state.under_way.saturating_sub(1);
        drop(state);
        self.0.changed.notify_waiters();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    async fn enters(gate: &Arc<Gate>) -> Option<Pass> {
        tokio::time::timeout(Duration::from_millis(30), gate.enter()).await.ok()
    }

    #[test]
    fn one_more_than_allowed_waits() {
        runtime().block_on(async {
            let gates = Gates::new(2);
            let gate = gates.gate("https://a", 0);
            let (first, _second) = (gate.enter().await, gates.gate("https://a", 0).enter().await);
            assert!(enters(&gate).await.is_none());
            assert!(enters(&gates.gate("https://a", 1)).await.is_some());
            drop(first);
            assert!(enters(&gate).await.is_some());
        });
    }

    #[test]
    fn a_refusal_holds_the_others_back() {
        runtime().block_on(async {
            let gate = Gates::new(8).gate("https://a", 0);
            let passes = [gate.enter().await, gate.enter().await, gate.enter().await, gate.enter().await];
            gate.refused(Some(Duration::from_millis(200)));
            drop(passes);
            let begun = Instant::now();
            assert!(enters(&gate).await.is_none());
            let _one = gate.enter().await;
            assert!(begun.elapsed() >= Duration::from_millis(190));
            let _two = gate.enter().await;
            assert!(enters(&gate).await.is_none(), "half as many as before");
            gate.accepted();
            assert!(enters(&gate).await.is_some());
        });
    }
}
