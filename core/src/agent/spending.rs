//! A session and its budgets: every request is counted before it is sent, and time that is up stops what is under way.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::{CancellationToken, DropGuard};

use super::budget::{Budget, BudgetExceeded, Reservation, Running};
use crate::message::Usage;
use crate::providers::Request;
use crate::session::estimate::message_tokens;
use crate::session::{Actor, EventKind};

/// The budgets of one activity.
pub(crate) struct Spending {
    running: Vec<Running>,
    /// The first limit that was reached.
    over: Arc<Mutex<Option<BudgetExceeded>>>,
    told: bool,
    /// Ends the watch over the time.
    _watch: Option<DropGuard>,
}

/// A request under way, as its budgets count it.
pub(super) struct Spent {
    reservations: Vec<Reservation>,
    request: Request,
}

impl Spent {
    /// The request has ended with this usage.
    pub(super) fn settle(self, usage: Option<&Usage>) {
        for reservation in self.reservations {
            reservation.settle(usage, &self.request.model);
        }
    }
}

impl Spending {
    /// An activity begins; `token` is what aborts it.
    pub(crate) fn begin(budgets: &[Budget], token: &CancellationToken) -> Spending {
        let over: Arc<Mutex<Option<BudgetExceeded>>> = Arc::default();
        let mut watch = None;
        if !budgets.is_empty() {
            let end = CancellationToken::new();
            let (ended, token, slot, budgets) = (end.clone(), token.clone(), over.clone(), budgets.to_vec());
            tokio::spawn(async move {
                let first = futures::future::select_all(budgets.iter().map(|budget| Box::pin(budget.time_up())));
                if let Some((reached, ..)) = ended.run_until_cancelled(first).await {
                    slot.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reached);
                    token.cancel();
                }
            });
            watch = Some(end.drop_guard());
        }
        let running = budgets.iter().map(Budget::enter).collect();
        Spending { running, over, told: false, _watch: watch }
    }

    /// The limit that was reached, if any was.
    pub(crate) fn over(&self) -> Option<BudgetExceeded> {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time no longer counts: before anybody is told that the session is idle.
    pub(crate) fn stop_clock(&mut self) {
        self.running.clear();
    }

    /// What is to be told and was not yet.
    pub(crate) fn untold(&mut self) -> Option<BudgetExceeded> {
        let over = self.over()?;
        (!std::mem::replace(&mut self.told, true)).then_some(over)
    }
}

impl Actor {
    /// Counts a request that is about to be sent, or says which limit it would break. One that is aborted already is
    /// not sent, and costs nothing.
    pub(super) fn reserve(&self, request: &Request) -> Result<Spent, BudgetExceeded> {
        let mut spent = Spent { reservations: Vec::new(), request: request.clone() };
        let budgets = &self.shared.choices_made().budgets;
        if budgets.is_empty() || request.cancel.is_cancelled() {
            return Ok(spent);
        }
        let tokens = match request.purpose {
            crate::providers::Purpose::Turn => self.projection.gauge().projected(),
            crate::providers::Purpose::Summary => request.messages.iter().map(|message| message_tokens(message)).sum(),
        };
        for budget in budgets {
            match budget.reserve(&request.model, request.purpose, tokens) {
                Ok(reservation) => spent.reservations.push(reservation),
                Err(over) => {
                    spent.reservations.drain(..).for_each(Reservation::take_back);
                    if let Some(activity) = &self.activity {
                        let slot = &activity.spending.over;
                        slot.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(over);
                    }
                    return Err(over);
                }
            }
        }
        Ok(spent)
    }

    /// The limit that stops this activity, if one does.
    pub(crate) fn over_budget(&self) -> Option<BudgetExceeded> {
        self.activity.as_ref().and_then(|activity| activity.spending.over())
    }

    /// Tells that a limit was reached, once.
    pub(crate) async fn tell_budget(&mut self) {
        let over = self.activity.as_mut().and_then(|activity| activity.spending.untold());
        if let Some(over) = over {
            self.emit(EventKind::BudgetExceeded { over }).await;
        }
    }

    /// Counts what a tool says it spent.
    pub(super) fn count_tool_usage(&self, usage: Option<&serde_json::Value>) {
        let budgets = &self.shared.choices_made().budgets;
        if let Some(usage) = usage.filter(|_| !budgets.is_empty()).and_then(Usage::from_value) {
            budgets.iter().for_each(|budget| budget.spend(&usage));
        }
    }
}
