//! What an exploration is asked for, and what came of each of its prompts.

use std::sync::Arc;

use serde_json::Value;

use super::sibling::{BranchOptions, BranchPoint};
use super::{RunResult, Session};
use crate::agent::{Budget, BudgetExceeded};
use crate::error::{Error, ErrorCode, Result};
use crate::message::{Message, StopReason, Usage};

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
    pub(super) fn new(session: Session, outcome: Result<RunResult>) -> ExploreResult {
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
