//! Exploring: one prompt each for several siblings that begin at the same entry.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::StreamExt;
use futures::future::{Either, select};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::queue::Queue;
use super::shared::Shared;
use super::sibling::{BranchOptions, BranchPoint};
use super::{Events, PromptOptions, RunResult, Session};
use crate::agent::{Budget, BudgetExceeded};
use crate::error::{Error, ErrorCode, Result};
use crate::message::{Message, StopReason, Usage};
use serde_json::Value;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// How many siblings run at a time unless told otherwise.
const DEFAULT_LIMIT: usize = 4;
/// Events an exploration holds unless told otherwise.
const DEFAULT_CAPACITY: usize = 1024;

/// One line of an exploration.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ExplorePrompt {
    /// What is said.
    pub text: String,
    /// Image blocks, `{type:"image", data, mimeType}`.
    pub images: Vec<Value>,
    /// Model, level and tools of this sibling; what is `None` here is as the exploration's options say.
    pub branch: BranchOptions,
}

impl ExplorePrompt {
    /// A prompt.
    pub fn new(text: impl Into<String>) -> Self {
        ExplorePrompt { text: text.into(), ..ExplorePrompt::default() }
    }

    /// Sets [`images`](Self::images).
    pub fn images(mut self, images: Vec<Value>) -> Self {
        self.images = images;
        self
    }

    /// Sets [`branch`](Self::branch).
    pub fn branch(mut self, branch: BranchOptions) -> Self {
        self.branch = branch;
        self
    }

    /// Sets the sibling's model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.branch.model = Some(model.into());
        self
    }
}

impl From<&str> for ExplorePrompt {
    fn from(text: &str) -> Self {
        ExplorePrompt::new(text)
    }
}

impl From<String> for ExplorePrompt {
    fn from(text: String) -> Self {
        ExplorePrompt::new(text)
    }
}

/// Details of [`Session::explore`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExploreOptions {
    /// Where all siblings begin.
    pub at: BranchPoint,
    /// How many run at a time; the others wait for their turn, in the order of the prompts. At least 1; default 4.
    pub limit: usize,
    /// Model, level and tools of all siblings, where a prompt does not say otherwise. Its budgets are shared by them: what
    /// the whole exploration may spend.
    pub branch: BranchOptions,
    /// Events held before the siblings wait for the reader. At least 1; default 1024.
    pub capacity: usize,
}

impl Default for ExploreOptions {
    fn default() -> Self {
        ExploreOptions {
            at: BranchPoint::Leaf,
            limit: DEFAULT_LIMIT,
            branch: BranchOptions::default(),
            capacity: DEFAULT_CAPACITY,
        }
    }
}

impl ExploreOptions {
    /// Sets [`at`](Self::at).
    pub fn at(mut self, at: impl Into<BranchPoint>) -> Self {
        self.at = at.into();
        self
    }

    /// Sets [`limit`](Self::limit).
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets [`branch`](Self::branch).
    pub fn branch(mut self, branch: BranchOptions) -> Self {
        self.branch = branch;
        self
    }

    /// Adds a limit of what all siblings together may spend.
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.branch.budgets.push(budget.clone());
        self
    }

    /// Sets [`capacity`](Self::capacity).
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }
}

/// What became of one prompt of an exploration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExploreResult {
    /// The sibling that ran it. It lives on as long as somebody holds it, and can be asked further, or adopted.
    pub session: Session,
    /// Its number, as in its events.
    pub sibling: u32,
    /// The text of its last response.
    pub text: String,
    /// What was said, from the prompt on.
    pub messages: Vec<Arc<Message>>,
    /// Tokens and cost of all its responses.
    pub usage: Usage,
    /// Why its last response ended; `None` when there was none.
    pub stop_reason: Option<StopReason>,
    /// The error text of the last response, when it failed or was aborted.
    pub error_message: Option<String>,
    /// The entry the sibling stood on when it was done.
    pub leaf: Option<String>,
    /// An abort was asked for.
    pub aborted: bool,
    /// The limit that stopped it, if one did.
    pub budget_exceeded: Option<BudgetExceeded>,
    /// There was no run, or it could not be stored: `cancelled` when it was aborted before its turn, `no_model`,
    /// `storage_failed`, `closed`.
    pub error: Option<Error>,
}

impl ExploreResult {
    fn new(session: Session, outcome: Result<RunResult>) -> ExploreResult {
        let sibling = session.sibling();
        match outcome {
            Ok(run) => ExploreResult {
                session,
                sibling,
                text: run.text,
                messages: run.messages,
                usage: run.usage,
                stop_reason: run.stop_reason,
                error_message: run.error_message,
                leaf: run.leaf,
                aborted: run.aborted,
                budget_exceeded: run.budget_exceeded,
                error: None,
            },
            Err(error) => ExploreResult {
                leaf: session.leaf(),
                session,
                sibling,
                text: String::new(),
                messages: Vec::new(),
                usage: Usage::default(),
                stop_reason: None,
                error_message: None,
                aborted: error.code() == ErrorCode::Cancelled,
                budget_exceeded: None,
                error: Some(error),
            },
        }
    }

    /// Whether it came to its end by itself, without an error.
    pub fn is_complete(&self) -> bool {
        let failed = matches!(self.stop_reason, None | Some(StopReason::Error | StopReason::Aborted));
        self.error.is_none() && !self.aborted && !failed
    }
}

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
