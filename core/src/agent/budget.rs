//! Hard limits for what sessions may spend.
//!
//! A request is counted before it is sent, and one that would go over a limit is not sent. What is under way counts with
//! its estimated prompt until its usage is known, so that sessions that share a budget do not overdraw it together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::message::Usage;
use crate::providers::{Model, Purpose};

/// Limits; `None` is no limit. They may be changed at any time, also while sessions run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct BudgetLimits {
    /// Requests to models: turns, summaries, and every repetition of a failed one. What a provider repeats by itself
    /// within a request counts once.
    pub requests: Option<u64>,
    /// Requests for the next message of a conversation.
    pub turns: Option<u64>,
    /// Tokens in and out, cached ones included.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
    /// Time during which at least one of the sessions runs. Stops a request and tools that are under way.
    pub wall_time: Option<Duration>,
    /// With a limit of cost, a model whose prices nobody knows is refused: an unknown price is not zero. This counts such
    /// requests as free instead; [`BudgetUse::unpriced_requests`] says how many there were.
    pub ignore_unknown_prices: bool,
}

impl BudgetLimits {
    /// Sets [`requests`](Self::requests).
    pub fn requests(mut self, most: u64) -> Self {
        self.requests = Some(most);
        self
    }

    /// Sets [`turns`](Self::turns).
    pub fn turns(mut self, most: u64) -> Self {
        self.turns = Some(most);
        self
    }

    /// Sets [`tokens`](Self::tokens).
    pub fn tokens(mut self, most: u64) -> Self {
        self.tokens = Some(most);
        self
    }

    /// Sets [`cost`](Self::cost), in US dollars.
    pub fn cost(mut self, most: f64) -> Self {
        self.cost = Some(most);
        self
    }

    /// Sets [`wall_time`](Self::wall_time).
    pub fn wall_time(mut self, most: Duration) -> Self {
        self.wall_time = Some(most);
        self
    }

    /// Sets [`ignore_unknown_prices`](Self::ignore_unknown_prices).
    pub fn ignore_unknown_prices(mut self, ignore: bool) -> Self {
        self.ignore_unknown_prices = ignore;
        self
    }
}

/// What was spent so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct BudgetUse {
    /// Requests sent.
    pub requests: u64,
    /// Those for the next message of a conversation.
    pub turns: u64,
    /// Tokens of the responses, as their services counted them.
    pub tokens: u64,
    /// US dollars, of requests whose price is known.
    pub cost: f64,
    /// Requests whose price nobody knows.
    pub unpriced_requests: u64,
    /// Time during which a session ran.
    pub wall_time: Duration,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BudgetLimit {
    /// [`BudgetLimits::requests`].
    Requests,
    /// [`BudgetLimits::turns`].
    Turns,
    /// [`BudgetLimits::tokens`].
    Tokens,
    /// [`BudgetLimits::cost`].
    Cost,
    /// [`BudgetLimits::wall_time`].
    WallTime,
}

impl BudgetLimit {
    /// The word for it in every language, `snake_case`.
    pub fn name(self) -> &'static str {
        match self {
            BudgetLimit::Requests => "requests",
            BudgetLimit::Turns => "turns",
            BudgetLimit::Tokens => "tokens",
            BudgetLimit::Cost => "cost",
            BudgetLimit::WallTime => "wall_time",
        }
    }
}

/// Why a run was stopped by its budget.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BudgetExceeded {
    /// The limit.
    pub limit: BudgetLimit,
    /// What is spent, with the least the next request would spend: a number, tokens, US dollars, or seconds.
    pub used: f64,
    /// What may be.
    pub max: f64,
    /// The cost is limited and the model's price is not known. `used` says nothing about the request then.
    pub price_unknown: bool,
}

impl std::fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let limit = self.limit.name();
        if self.price_unknown {
            return f.write_str(
                "Budget exceeded: the cost is limited and the price of this model is not known; give the model its \
                 prices, or have unknown prices ignored",
            );
        }
        write!(f, "Budget exceeded: {limit} {} of {}", self.used, self.max)
    }
}

/// Limits and what was spent of them. Cheap to clone; all clones are the same budget, so that several sessions may
/// share one. Legal from any thread.
///
/// ```
/// use branchline::{Budget, BudgetLimits};
/// let budget = Budget::new(BudgetLimits::default().requests(20).cost(0.5));
/// budget.set_limits(budget.limits().requests(40)); // a stopped session can go on
/// ```
#[derive(Clone, Debug)]
pub struct Budget {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    limits: BudgetLimits,
    used: BudgetUse,
    /// Estimated prompts of requests under way.
    pending_tokens: u64,
    pending_cost: f64,
    /// Sessions that run, and since when any does.
    running: usize,
    since: Instant,
    changed: Arc<tokio::sync::Notify>,
}

impl State {
    fn wall_time(&self) -> Duration {
        match self.running {
            0 => self.used.wall_time,
            _ => self.used.wall_time + self.since.elapsed(),
        }
    }

    fn time_is_up(&self) -> Option<BudgetExceeded> {
        let max = self.limits.wall_time?;
        let used = self.wall_time();
        (used >= max).then(|| exceeded(BudgetLimit::WallTime, used.as_secs_f64(), max.as_secs_f64()))
    }
}

fn exceeded(limit: BudgetLimit, used: f64, max: f64) -> BudgetExceeded {
    BudgetExceeded { limit, used, max, price_unknown: false }
}

impl Budget {
    /// A budget of which nothing is spent.
    pub fn new(limits: BudgetLimits) -> Budget {
        let state = State {
            limits,
            used: BudgetUse::default(),
            pending_tokens: 0,
            pending_cost: 0.0,
            running: 0,
            since: Instant::now(),
            changed: Arc::default(),
        };
        Budget { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits now.
    pub fn limits(&self) -> BudgetLimits {
        self.state().limits
    }

    /// Replaces the limits. What was spent stays spent; a session that was stopped goes on with its next prompt.
    pub fn set_limits(&self, limits: BudgetLimits) {
        let mut state = self.state();
        state.limits = limits;
        state.changed.notify_waiters();
    }

    /// What was spent so far.
    pub fn used(&self) -> BudgetUse {
        let state = self.state();
        BudgetUse { wall_time: state.wall_time(), ..state.used }
    }

    /// Counts a request that is about to be sent, or says which limit it would break.
    pub(crate) fn reserve(
        &self,
        model: &Model,
        purpose: Purpose,
        prompt_tokens: u64,
    ) -> Result<Reservation, BudgetExceeded> {
        let mut state = self.state();
        let State { limits, used, .. } = *state;
        if let Some(over) = state.time_is_up() {
            return Err(over);
        }
        let turn = u64::from(purpose == Purpose::Turn);
        let counted = |limit, used: u64, max: Option<u64>| match max {
            Some(max) if used > max => Err(exceeded(limit, used as f64, max as f64)),
            _ => Ok(()),
        };
        counted(BudgetLimit::Requests, used.requests + 1, limits.requests)?;
        counted(BudgetLimit::Turns, used.turns + turn, limits.turns)?;
        // Full is full, whatever the estimate.
        let tokens = used.tokens.saturating_add(state.pending_tokens).saturating_add(prompt_tokens.max(1));
        counted(BudgetLimit::Tokens, tokens, limits.tokens)?;
        let price = price(model, prompt_tokens);
        if let Some(max) = limits.cost {
            let spent = used.cost + state.pending_cost;
            match price {
                Some(price) if spent >= max || spent + price > max => {
                    return Err(exceeded(BudgetLimit::Cost, spent + price, max));
                }
                None if !limits.ignore_unknown_prices => {
                    return Err(BudgetExceeded { price_unknown: true, ..exceeded(BudgetLimit::Cost, spent, max) });
                }
                _ => {}
            }
        }
        state.used.requests += 1;
        state.used.turns += turn;
        state.used.unpriced_requests += u64::from(price.is_none());
        let cost = price.unwrap_or(0.0);
        state.pending_tokens += prompt_tokens;
        state.pending_cost += cost;
        Ok(Reservation { budget: self.clone(), tokens: prompt_tokens, cost, priced: price.is_some(), turn })
    }

    /// Counts what was spent in another way than by a request of the session: by a tool.
    pub(crate) fn spend(&self, usage: &Usage) {
        let mut state = self.state();
        state.used.tokens = state.used.tokens.saturating_add(usage.total());
        state.used.cost += usage.cost.total;
    }

    /// A session runs, until the guard is dropped.
    pub(crate) fn enter(&self) -> Running {
        let mut state = self.state();
        if state.running == 0 {
            state.since = Instant::now();
        }
        state.running += 1;
        Running(self.clone())
    }

    /// Ends when the time is up, which may be never. Needs the timers of the engine.
    pub(crate) async fn time_up(&self) -> BudgetExceeded {
        loop {
            let (left, changed) = {
                let state = self.state();
                if let Some(over) = state.time_is_up() {
                    return over;
                }
                (state.limits.wall_time.map(|max| max - state.wall_time()), state.changed.clone())
            };
            let changed = changed.notified();
            match left {
                // A limit that is set between the look and here is seen at the next look.
                Some(left) => drop(tokio::time::timeout(left.min(LOOK), changed).await),
                None => drop(tokio::time::timeout(LOOK, changed).await),
            }
        }
    }
}

/// How often limits are looked at again that may have been changed in an unlucky moment.
const LOOK: Duration = Duration::from_secs(60);

/// The least a prompt costs; `None` when the model's prices are not known.
fn price(model: &Model, prompt_tokens: u64) -> Option<f64> {
    let rates = model.prices.rates;
    let known = rates.input > 0.0 || rates.output > 0.0 || !model.prices.tiers.is_empty();
    // It may all come from a cache.
    let usage = Usage { input: prompt_tokens, ..Usage::default() };
    let rates = model.prices.rates_for(&usage);
    let least = if rates.cache_read > 0.0 { rates.cache_read.min(rates.input) } else { rates.input };
    known.then(|| least / 1e6 * prompt_tokens as f64)
}

/// A request under way. Dropped without a usage it cost nothing that is known.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Budget,
    tokens: u64,
    cost: f64,
    priced: bool,
    turn: u64,
}

impl Reservation {
    /// The request is not sent after all.
    pub(crate) fn take_back(self) {
        let mut state = self.budget.state();
        state.used.requests -= 1;
        state.used.turns -= self.turn;
        state.used.unpriced_requests -= u64::from(!self.priced);
    }

    /// The request has ended with this usage.
    pub(crate) fn settle(self, usage: Option<&Usage>, model: &Model) {
        let Some(usage) = usage else { return };
        let mut state = self.budget.state();
        state.used.tokens = state.used.tokens.saturating_add(usage.total());
        // A provider that fills in no costs leaves them to the prices.
        let told = if usage.cost.total > 0.0 { usage.cost.total } else { model.prices.cost(usage).total };
        state.used.cost += told;
        if !self.priced && usage.cost.total > 0.0 {
            state.used.unpriced_requests = state.used.unpriced_requests.saturating_sub(1);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.pending_tokens = state.pending_tokens.saturating_sub(self.tokens);
        state.pending_cost = (state.pending_cost - self.cost).max(0.0);
    }
}

/// See [`Budget::enter`].
#[derive(Debug)]
pub(crate) struct Running(Budget);

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        if state.running == 0 {
            let ran = state.since.elapsed();
            state.used.wall_time += ran;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(input: f64) -> Model {
        let mut model = Model::new("p", "m", "a");
        model.prices.rates.input = input;
        model
    }

    #[test]
    fn what_is_under_way_counts() {
        let budget = Budget::new(BudgetLimits::default().tokens(100));
        let model = model(1.0);
        let first = budget.reserve(&model, Purpose::Turn, 60).unwrap();
        let over = budget.reserve(&model, Purpose::Turn, 60).unwrap_err();
        assert_eq!((over.limit, over.used, over.max), (BudgetLimit::Tokens, 120.0, 100.0));
        drop(first);
        let second = budget.reserve(&model, Purpose::Turn, 60).unwrap();
        second.settle(Some(&Usage { total_tokens: 99, ..Usage::default() }), &model);
        assert!(budget.reserve(&model, Purpose::Turn, 1).is_ok());
        assert!(budget.reserve(&model, Purpose::Turn, 2).is_err());
        assert_eq!(budget.used().requests, 3);
    }

    #[test]
    fn an_unknown_price_is_not_zero() {
        let budget = Budget::new(BudgetLimits::default().cost(1.0));
        let unknown = budget.reserve(&model(0.0), Purpose::Turn, 10).unwrap_err();
        assert!(unknown.price_unknown && unknown.limit == BudgetLimit::Cost);
        budget.set_limits(budget.limits().ignore_unknown_prices(true));
        budget.reserve(&model(0.0), Purpose::Turn, 10).unwrap().settle(Some(&Usage::default()), &model(0.0));
        assert_eq!(budget.used().unpriced_requests, 1);
        // A dollar a token: the prompt alone is too much.
        assert!(budget.reserve(&model(1e6), Purpose::Turn, 2).is_err());
        let usage = Usage { input: 1, total_tokens: 1, ..Usage::default() };
        budget.reserve(&model(1e6), Purpose::Turn, 1).unwrap().settle(Some(&usage), &model(1e6));
        assert_eq!(budget.used().cost, 1.0);
        assert!(budget.reserve(&model(1e6), Purpose::Turn, 0).is_err(), "full is full");
    }

    #[test]
    fn time_counts_once_for_all_that_run() {
        let budget = Budget::new(BudgetLimits::default());
        let (a, b) = (budget.enter(), budget.enter());
        std::thread::sleep(Duration::from_millis(20));
        drop(a);
        drop(b);
        let used = budget.used().wall_time;
        assert!(used >= Duration::from_millis(20) && used < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(budget.used().wall_time, used);
    }
}
