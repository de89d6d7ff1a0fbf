//! Exploring: one prompt each for several siblings that begin at the same entry.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use futures::StreamExt;
use futures::future::{Either, select};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::explore_options::{ExploreOptions, ExplorePrompt, ExploreResult};
use super::queue::Queue;
use super::shared::Shared;
use super::sibling::BranchOptions;
use super::{Events, PromptOptions, RunResult, Session};
use crate::error::{Error, ErrorCode, Result};

/// The siblings of one exploration: what the others are when one is adopted.
pub(crate) struct Group {
    members: Mutex<Vec<Member>>,
}

struct Member {
    session: Weak<Shared>,
    sibling: u32,
    /// Where it was last seen.
    leaf: Option<String>,
}

impl Group {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, session: &Session) {
        let sibling = session.sibling();
        self.lock().push(Member { session: Arc::downgrade(session.shared()), sibling, leaf: session.leaf() });
    }

    fn seen(&self, session: &Session) {
        let sibling = session.sibling();
        if let Some(member) = self.lock().iter_mut().find(|member| member.sibling == sibling) {
            member.leaf = session.leaf();
        }
    }

    /// Where all of them stand, or stood when they ended.
    pub(crate) fn leaves(&self) -> Vec<String> {
        let leaf = |member: &Member| match member.session.upgrade() {
            Some(session) => session.leaf(),
            None => member.leaf.clone(),
        };
        self.lock().iter().filter_map(leaf).collect()
    }
}

/// What [`Session::explore`] started: the events of all its siblings in one stream, and their results.
///
/// Like any subscription it slows its siblings when it is neither read nor dropped. Dropping it aborts what still runs;
/// it keeps its siblings alive until then.
pub struct Exploration {
    siblings: Vec<Session>,
    events: Events,
    outcome: watch::Receiver<Option<Arc<[ExploreResult]>>>,
    all: CancellationToken,
    each: Vec<CancellationToken>,
}

impl Exploration {
    /// The siblings, in the order of their prompts. Their [`sibling`](Session::sibling) numbers are those of the events.
    pub fn siblings(&self) -> &[Session] {
        &self.siblings
    }

    /// The next event of any sibling, each sibling's in its own order; `None` when all are done.
    pub async fn next(&self) -> Option<Event> {
        self.events.next().await
    }

    /// The subscription itself, for waiting with a time limit, in batches or by descriptor.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Waits until all are done and returns the results in the order of the prompts. Events not read yet are discarded.
    /// What failed or was aborted is a result, not an error.
    ///
    /// Errors: `closed` when the engine ended first.
    pub async fn results(&self) -> Result<Vec<ExploreResult>> {
        self.events.discard();
        let mut outcome = self.outcome.clone();
        match outcome.wait_for(Option::is_some).await {
            Ok(results) => Ok(results.iter().flat_map(|results| results.iter().cloned()).collect()),
            Err(_) => Err(ended()),
        }
    }

    /// The results if all are done.
    pub fn try_results(&self) -> Option<Result<Vec<ExploreResult>>> {
        match &*self.outcome.borrow() {
            None if self.outcome.has_changed().is_err() => Some(Err(ended())),
            results => results.as_ref().map(|results| Ok(results.to_vec())),
        }
    }

    /// Waits until all are done. It leaves the events alone, so somebody has to read or discard them meanwhile.
    pub fn done(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut outcome = self.outcome.clone();
        async move {
            let _ = outcome.wait_for(Option::is_some).await;
        }
    }

    /// Aborts everything and waits until all are idle; who waited for a turn gets none. The signal is given when this
    /// is called, also if the future is never driven.
    pub fn abort(&self) -> impl Future<Output = ()> + Send + 'static {
        self.all.cancel();
        self.done()
    }

    /// Aborts one sibling, by the position of its prompt, and nothing else. Like every result, its comes with the others.
    ///
    /// Errors: `invalid_argument` when there is no such prompt.
    pub fn abort_one(&self, prompt: usize) -> Result<()> {
        match self.each.get(prompt) {
            Some(token) => token.cancel(),
            None => {
                let text = format!("the exploration has {} prompts, there is none at {prompt}", self.each.len());
                return Err(Error::new(ErrorCode::InvalidArgument, text));
            }
        }
        Ok(())
    }
}

impl Drop for Exploration {
    fn drop(&mut self) {
        self.all.cancel();
    }
}

impl futures::Stream for Exploration {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}

impl std::fmt::Debug for Exploration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exploration").field("siblings", &self.siblings.len()).finish_non_exhaustive()
    }
}

fn ended() -> Error {
    Error::new(ErrorCode::Closed, "the engine was shut down before the exploration was done")
}

impl Session {
    /// Tries several prompts at once: each gets a [sibling](Session::branch) that begins at the same entry, with its own
    /// model if wished, and runs there. One that fails does not disturb the others. This session stays where it is, may
    /// run, and may go on with one of them by [`adopt`](Session::adopt).
    ///
    /// All siblings are made before this returns; nothing is written until they have their turn.
    ///
    /// Errors: `invalid_argument` without a prompt, and those of [`branch`](Session::branch); nothing is run then.
    pub async fn explore<P: Into<ExplorePrompt>>(
        &self,
        prompts: impl IntoIterator<Item = P>,
        options: ExploreOptions,
    ) -> Result<Exploration> {
        let prompts: Vec<ExplorePrompt> = prompts.into_iter().map(Into::into).collect();
        self.explore_all(prompts, options).await
    }

    async fn explore_all(&self, prompts: Vec<ExplorePrompt>, options: ExploreOptions) -> Result<Exploration> {
        if prompts.is_empty() {
            return Err(Error::new(ErrorCode::InvalidArgument, "an exploration needs at least one prompt"));
        }
        let footing = self.footing(options.at).await?;
        let group = Arc::new(Group { members: Mutex::default() });
        let queue = Arc::new(Queue::shared(options.capacity));
        let all = CancellationToken::new();
        let (mut siblings, mut each, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for prompt in prompts {
            let common = options.branch.clone();
            let branch = BranchOptions {
                model: prompt.branch.model.clone().or(common.model),
                thinking_level: prompt.branch.thinking_level.clone().or(common.thinking_level),
                tools: prompt.branch.tools.clone().or(common.tools),
                budgets: [common.budgets, prompt.branch.budgets.clone()].concat(),
            };
            let session = self.sibling_on(footing.clone(), branch, Some(group.clone())).await?;
            group.join(&session);
            let token = all.child_token();
            siblings.push(session.clone());
            each.push(token.clone());
            lines.push(Line { session, prompt, token, queue: queue.clone(), group: group.clone() });
        }
        let (done, outcome) = watch::channel(None);
        let events = Events::new(queue.clone());
        self.engine().handle.spawn(async move {
            let running = lines.into_iter().enumerate().map(|(at, line)| async move { (at, line.run().await) });
            let mut results: Vec<(usize, ExploreResult)> =
                futures::stream::iter(running).buffer_unordered(options.limit.max(1)).collect().await;
            results.sort_by_key(|(at, _)| *at);
            let _ = done.send(Some(results.into_iter().map(|(_, result)| result).collect()));
            queue.end();
        });
        Ok(Exploration { siblings, events, outcome, all, each })
    }
}

/// One sibling and what it is to do.
struct Line {
    session: Session,
    prompt: ExplorePrompt,
    token: CancellationToken,
    queue: Arc<Queue>,
    group: Arc<Group>,
}

impl Line {
    async fn run(self) -> ExploreResult {
        let Line { session, prompt, token, queue, group } = self;
        let outcome = run(&session, prompt, &token, &queue).await;
        session.shared().hub.leave(&queue);
        group.seen(&session);
        ExploreResult::new(session, outcome)
    }
}

async fn run(
    session: &Session,
    prompt: ExplorePrompt,
    token: &CancellationToken,
    queue: &Arc<Queue>,
) -> Result<RunResult> {
    if token.is_cancelled() {
        return Err(Error::new(ErrorCode::Cancelled, "the exploration was aborted before this prompt had its turn"));
    }
    session.shared().hub.join(queue);
    let run = session.prompt(prompt.text, PromptOptions::default().images(prompt.images)).await?;
    let result = pin!(run.result());
    match select(result, pin!(token.cancelled())).await {
        Either::Left((result, _)) => result,
        Either::Right(((), result)) => {
            drop(session.abort()); // the signal is given; the result says when it is over
            result.await
        }
    }
}
