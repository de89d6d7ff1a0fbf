//! Events: everything a session tells its host (S196–S198).

use std::sync::Arc;

use serde_json::Value;

use crate::agent::BudgetExceeded;
use crate::message::{Message, Usage};
use crate::permissions::PermissionDecision;
use crate::providers::BlockEvent;
use crate::tools::ToolResult;

/// One event of a session. Small and cheap to clone: texts and messages are shared, JSON is made only when asked for.
#[derive(Debug, Clone)]
pub struct Event {
    pub(crate) sequence: u64,
    pub(crate) session: Arc<str>,
    pub(crate) sibling: u32,
    pub(crate) kind: EventKind,
}

/// What happened. New kinds may come; ignore what you do not know.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum EventKind {
    /// A pass of the run begins: it has one, and further ones for what follows by itself.
    AgentStart,
    /// A turn began: its messages, one response, and the calls it asks for follow.
    TurnStart,
    /// A message begins; an assistant message is empty and `pending` here.
    MessageStart {
        /// The message as it is now.
        message: Arc<Message>,
    },
    /// The response grew.
    MessageUpdate {
        /// Tokens known by now; often zero until the end.
        usage: Arc<Usage>,
        /// What grew.
        update: BlockEvent,
    },
    /// A message is complete and stored.
    MessageEnd {
        /// The message as it was stored.
        message: Arc<Message>,
        /// The entry that holds it. Not part of the JSON form.
        entry_id: Option<Arc<str>>,
    },
    /// A tool call is about to be prepared and run.
    ToolExecutionStart {
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// Arguments as the model gave them.
        args: Arc<Value>,
        /// The call that made it; `None` for calls of the model.
        parent: Option<Arc<str>>,
    },
    /// A running tool reports progress.
    ToolExecutionUpdate {
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// Arguments as the model gave them.
        args: Arc<Value>,
        /// The result so far; replaces the one before.
        partial: Arc<ToolResult>,
        /// The call that made it; `None` for calls of the model.
        parent: Option<Arc<str>>,
    },
    /// A tool call is over.
    ToolExecutionEnd {
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// What it came to.
        result: Arc<ToolResult>,
        /// Whether it failed.
        is_error: bool,
        /// Milliseconds it ran; `None` when it did not run.
        duration_ms: Option<u64>,
        /// The call that made it; `None` for calls of the model.
        parent: Option<Arc<str>>,
    },
    /// It was decided whether a tool call runs. Comes between its start and its end, and never where everything is
    /// allowed.
    PermissionDecision {
        /// What was decided.
        decision: Arc<PermissionDecision>,
    },
    /// A turn is over.
    TurnEnd {
        /// The response.
        message: Arc<Message>,
        /// Result messages in the order of the calls.
        tool_results: Arc<[Arc<Message>]>,
    },
    /// A pass is over.
    AgentEnd {
        /// The messages of this pass.
        messages: Arc<[Arc<Message>]>,
        /// The same request follows again, after a wait.
        will_retry: bool,
    },
    /// The run is over: nothing follows by itself any more, the session is idle.
    AgentSettled {
        /// An abort was asked for.
        aborted: bool,
    },
    /// The queues of waiting texts changed.
    QueueUpdate {
        /// Texts for the current run.
        steering: Arc<[Arc<str>]>,
        /// Texts for after it.
        follow_up: Arc<[Arc<str>]>,
    },
    /// An entry was stored that no other event speaks of (S198).
    EntryAppended {
        /// The entry as its line in the file.
        entry: Arc<str>,
    },
    /// The session's name changed.
    SessionInfoChanged {
        /// `None` when it was cleared.
        name: Option<Arc<str>>,
    },
    /// The effective thinking level changed.
    ThinkingLevelChanged {
        /// The new level.
        level: Arc<str>,
    },
    /// A compaction began.
    CompactionStart {
        /// Why.
        reason: CompactionReason,
    },
    /// A compaction is over. One without a start reports a recovery that is not tried again (S252).
    CompactionEnd {
        /// Why it was made.
        reason: CompactionReason,
        /// What came of it; `None` when it failed or was aborted.
        result: Option<Arc<CompactionResult>>,
        /// It was aborted.
        aborted: bool,
        /// The failed request is made again.
        will_retry: bool,
        /// Why it failed.
        error: Option<Arc<str>>,
    },
    /// A failed request will be made again after a wait.
    AutoRetryStart {
        /// The wait.
        wait: RetryWait,
    },
    /// Retrying is over.
    AutoRetryEnd {
        /// A response came.
        success: bool,
        /// Which attempt was the last.
        attempt: u32,
        /// The last error, when there was no success.
        error: Option<Arc<str>>,
    },
    /// A failed request for a summary will be made again after a wait.
    SummarizationRetryScheduled {
        /// The wait.
        wait: RetryWait,
    },
    /// A request for a summary is made again.
    SummarizationRetryAttemptStart {
        /// What the summary is for; `None` for that of a branch that is left.
        compaction: Option<CompactionReason>,
    },
    /// Retrying a request for a summary is over.
    SummarizationRetryFinished,
    /// A limit of the session's budgets was reached: the request was not sent, or what ran was stopped. The run ends.
    BudgetExceeded {
        /// Which, and how far.
        over: BudgetExceeded,
    },
    /// A shell run of the user printed something (see [`Session::run_bash`](super::Session::run_bash)).
    BashExecutionUpdate {
        /// The host's name for it.
        id: Option<Arc<str>>,
        /// The new part of its output, cleaned of control sequences.
        delta: Arc<str>,
    },
}

/// Why a compaction is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompactionReason {
    /// The host asked for it.
    Manual,
    /// The context came near the model's window.
    Threshold,
    /// A request or its answer did not fit.
    Overflow,
}

impl CompactionReason {
    /// As written in events.
    pub fn name(self) -> &'static str {
        match self {
            CompactionReason::Manual => "manual",
            CompactionReason::Threshold => "threshold",
            CompactionReason::Overflow => "overflow",
        }
    }
}

/// A wait before a request is repeated (S243, S248).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryWait {
    /// Which repetition this will be, from 1.
    pub attempt: u32,
    /// How many there may be.
    pub max_attempts: u64,
    /// How long is waited.
    pub delay_ms: u64,
    /// The error that made it necessary.
    pub error: Arc<str>,
}

/// What a compaction came to (S263).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompactionResult {
    /// The compaction's entry.
    pub entry_id: String,
    /// The summary as it was stored.
    pub summary: String,
    /// The first entry that stays in context.
    pub first_kept_entry_id: String,
    /// Estimated tokens of the context before.
    pub tokens_before: u64,
    /// Estimated tokens of the context after.
    pub estimated_tokens_after: u64,
    /// What the summary cost.
    pub usage: Option<Value>,
    /// `{readFiles, modifiedFiles}`.
    pub details: Value,
}

impl Event {
    /// Counts the events of the session from 1. Merged deltas carry the number of the last one, so numbers may jump.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The session's id.
    pub fn session_id(&self) -> &str {
        &self.session
    }

    /// Which of the sessions over one file it comes from, see [`Session::sibling`](super::Session::sibling). Not part of
    /// the JSON form.
    pub fn sibling(&self) -> u32 {
        self.sibling
    }

    /// What happened.
    pub fn kind(&self) -> &EventKind {
        &self.kind
    }

    /// The event's name on the wire, for example `message_update`.
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            EventKind::AgentStart => "agent_start",
            EventKind::TurnStart => "turn_start",
            EventKind::MessageStart { .. } => "message_start",
            EventKind::MessageUpdate { .. } => "message_update",
            EventKind::MessageEnd { .. } => "message_end",
            EventKind::ToolExecutionStart { .. } => "tool_execution_start",
            EventKind::ToolExecutionUpdate { .. } => "tool_execution_update",
            EventKind::ToolExecutionEnd { .. } => "tool_execution_end",
            EventKind::PermissionDecision { .. } => "permission_decision",
            EventKind::TurnEnd { .. } => "turn_end",
            EventKind::AgentEnd { .. } => "agent_end",
            EventKind::AgentSettled { .. } => "agent_settled",
            EventKind::QueueUpdate { .. } => "queue_update",
            EventKind::EntryAppended { .. } => "entry_appended",
            EventKind::SessionInfoChanged { .. } => "session_info_changed",
            EventKind::ThinkingLevelChanged { .. } => "thinking_level_changed",
            EventKind::CompactionStart { .. } => "compaction_start",
            EventKind::CompactionEnd { .. } => "compaction_end",
            EventKind::AutoRetryStart { .. } => "auto_retry_start",
            EventKind::AutoRetryEnd { .. } => "auto_retry_end",
            EventKind::SummarizationRetryScheduled { .. } => "summarization_retry_scheduled",
            EventKind::SummarizationRetryAttemptStart { .. } => "summarization_retry_attempt_start",
            EventKind::SummarizationRetryFinished => "summarization_retry_finished",
            EventKind::BudgetExceeded { .. } => "budget_exceeded",
            EventKind::BashExecutionUpdate { .. } => "bash_execution_update",
        }
    }

    /// The new text when this is a text delta.
    pub fn text_delta(&self) -> Option<&str> {
        match &self.kind {
            EventKind::MessageUpdate { update: BlockEvent::TextDelta { delta, .. }, .. } => Some(delta),
            _ => None,
        }
    }

    /// The new text when this is a thinking delta.
    pub fn thinking_delta(&self) -> Option<&str> {
        match &self.kind {
            EventKind::MessageUpdate { update: BlockEvent::ThinkingDelta { delta, .. }, .. } => Some(delta),
            _ => None,
        }
    }

    /// The message of a `message_start`, `message_end` or `turn_end`.
    pub fn message(&self) -> Option<&Arc<Message>> {
        match &self.kind {
            EventKind::MessageStart { message }
            | EventKind::MessageEnd { message, .. }
            | EventKind::TurnEnd { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The entry that holds the message of a `message_end`.
    pub fn entry_id(&self) -> Option<&str> {
        match &self.kind {
            EventKind::MessageEnd { entry_id, .. } => entry_id.as_deref(),
            _ => None,
        }
    }

    /// The event as pi writes it: one compact JSON object (S196–S201).
    pub fn to_json(&self) -> String {
        super::event_json::write(self)
    }
}
