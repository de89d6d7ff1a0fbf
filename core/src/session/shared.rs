//! What a session's handles and its actor both see.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::family::{Family, Origin};
use super::hub::Hub;
use super::open::Choices;
use super::state::{Phase, SessionState};
use crate::error::{Error, ErrorCode, Result};
use crate::permissions::Gate;
use crate::resources::{ResourceOptions, Resources};
use crate::tree::Tree;

pub(crate) struct Shared {
    pub(crate) id: Arc<str>,
    /// Which of the sessions over its tree it is.
    pub(crate) sibling: u32,
    pub(crate) cwd: PathBuf,
    pub(crate) tree: Tree,
    pub(crate) hub: Hub,
    /// Ends the session: set by `close`, by dropping the last handle, and by the engine.
    pub(crate) close: CancellationToken,
    choices: Choices,
    known: Mutex<Known>,
    /// Where it comes from, for sessions made by branching.
    pub(crate) origin: Option<Origin>,
    /// `None` once the session is over.
    family: Mutex<Option<Arc<Family>>>,
    /// Ends the user's commands; replaced when it has fired.
    bash: Mutex<CancellationToken>,
    /// Judges the tool calls of this session.
    pub(crate) gate: Gate,
    status: Mutex<Status>,
    phase: watch::Sender<Turnover>,
    /// Fires when the actor is gone. Every command waits for it, so it is apart from the phase, which changes with each run.
    ended: CancellationToken,
}

/// What was read for the session, and by which options.
struct Known {
    options: ResourceOptions,
    resources: Arc<Resources>,
}

struct Status {
    state: SessionState,
    activity: Option<CancellationToken>,
    /// The part of the activity that can be cancelled alone.
    step: Option<(Step, CancellationToken)>,
}

/// A part of an activity that can be cancelled without the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The wait before a request is repeated.
    RetryWait,
    /// A compaction, or the summary of a branch that is left.
    Summary,
}

/// The phase and how many activities there were, so that a wait for one does not wait for the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turnover {
    pub(crate) phase: Phase,
    pub(crate) activity: u64,
}

impl Shared {
    pub(crate) fn new(
        family: Arc<Family>,
        state: SessionState,
        choices: Choices,
        resources: Arc<Resources>,
        origin: Option<Origin>,
    ) -> Shared {
        let tree = family.tree().clone();
        let id: Arc<str> = tree.session_id().into();
        let known = Known { options: choices.resources.clone(), resources };
        let phase = Turnover { phase: state.phase, activity: 0 };
        let gate = Gate::new(choices.permissions.clone(), tree.cwd());
        Shared {
            gate,
            bash: Mutex::default(),
            cwd: tree.cwd().to_path_buf(),
            hub: Hub::new(id.clone(), state.sibling),
            id,
            sibling: state.sibling,
            tree,
            close: CancellationToken::new(),
            choices,
            known: Mutex::new(known),
            origin,
            family: Mutex::new(Some(family)),
            status: Mutex::new(Status { state, activity: None, step: None }),
            phase: watch::Sender::new(phase),
            ended: CancellationToken::new(),
        }
    }

    /// What ends a command of the user that is about to begin.
    pub(crate) fn bash_token(&self) -> CancellationToken {
        let all = self.bash.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token = all.child_token();
        if self.close.is_cancelled() {
            token.cancel();
        }
        token
    }

    /// Ends the user's commands.
    pub(crate) fn abort_bash(&self) {
        std::mem::take(&mut *self.bash.lock().unwrap_or_else(PoisonError::into_inner)).cancel();
    }

    /// What the host chose when the session was made.
    pub(crate) fn choices_made(&self) -> &Choices {
        &self.choices
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was read for the session.
    pub(crate) fn resources(&self) -> Arc<Resources> {
        self.known().resources.clone()
    }

    /// What the session may read.
    pub(crate) fn resource_options(&self) -> ResourceOptions {
        self.known().options.clone()
    }

    pub(crate) fn set_resources(&self, options: ResourceOptions, resources: Arc<Resources>) {
        *self.known() = Known { options, resources };
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> SessionState {
        let status = self.status();
        let mut state = status.state.clone();
        state.running = state.phase == Phase::Running;
        state.phase = match (&status.step, state.phase) {
            (Some((Step::RetryWait, _)), Phase::Running) => Phase::Retrying,
            (Some((Step::Summary, _)), Phase::Running) => Phase::Compacting,
            (_, phase) => phase,
        };
        state
    }

    /// The sessions over this one's tree.
    ///
    /// Errors: `closed`.
    pub(crate) fn family(&self) -> Result<Arc<Family>> {
        self.family.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(closed)
    }

    pub(crate) fn leaf(&self) -> Option<String> {
        self.status().state.leaf.clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut SessionState)) {
        change(&mut self.status().state);
    }

    /// An activity begins: it is aborted through `token`.
    pub(crate) fn begin(&self, phase: Phase, token: CancellationToken) {
        let mut status = self.status();
        status.state.phase = phase;
        status.activity = Some(token);
        self.phase.send_modify(|turnover| *turnover = Turnover { phase, activity: turnover.activity + 1 });
    }

    /// The activity is over for those who look; [`idle`](Shared::idle) tells those who wait. Between the two comes the
    /// last event, so that who sees the event finds an idle session, and who waited finds the event.
    pub(crate) fn settle(&self) {
        let mut status = self.status();
        status.state.phase = Phase::Idle;
        status.activity = None;
    }

    pub(crate) fn idle(&self) {
        self.phase.send_modify(|turnover| turnover.phase = Phase::Idle);
    }

    /// The actor is gone; if it was the last one over its file, that is free for others. The tree can still be read.
    pub(crate) fn closed(&self) {
        self.close.cancel();
        self.abort_bash();
        drop(self.family.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut status = self.status();
        status.state.phase = Phase::Closed;
        status.activity = None;
        drop(status);
        self.hub.close();
        self.phase.send_modify(|turnover| turnover.phase = Phase::Closed);
        self.ended.cancel();
    }

    /// A step begins or, with `None`, is over.
    pub(crate) fn step(&self, step: Option<(Step, CancellationToken)>) {
        self.status().step = step;
    }

    /// Cancels the step if it is this one.
    pub(crate) fn cancel_step(&self, wanted: Step) {
        if let Some((step, token)) = &self.status().step
            && *step == wanted
        {
            token.cancel();
        }
    }

    /// Signals the running activity, if there is one, and says which it was.
    pub(crate) fn abort(&self) -> Option<u64> {
        let status = self.status();
        status.activity.as_ref()?.cancel();
        Some(self.phase.borrow().activity)
    }

    /// Waits until the session is idle, or `activity` is over.
    pub(crate) async fn wait_idle(&self, activity: Option<u64>) -> Result<()> {
        let over = |turnover: &Turnover| {
            matches!(turnover.phase, Phase::Idle | Phase::Closed) || activity.is_some_and(|it| it != turnover.activity)
        };
        match self.phase.subscribe().wait_for(over).await.map(|turnover| turnover.phase) {
            Ok(Phase::Closed) | Err(_) => Err(closed()),
            Ok(_) => Ok(()),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase.borrow().phase == Phase::Closed
    }

    pub(crate) async fn wait_closed(&self) {
        self.ended.cancelled().await;
    }
}

/// The error of a call to a session that is over.
pub(crate) fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the session is closed; open its file again to go on")
}
