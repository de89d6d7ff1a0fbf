//! What a session shows of itself.

use serde::Serialize;

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Nothing; it takes a prompt.
    Idle,
    /// A run: from an accepted prompt to `agent_settled`.
    Running,
    /// A run that waits before it makes a failed request again (S243).
    Retrying,
    /// A compaction, also one in the middle of a run; a branch summary or navigation (S194).
    Compacting,
    /// Over.
    Closed,
}

impl Phase {
    /// The word for it in every language, `snake_case`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Running => "running",
            Phase::Retrying => "retrying",
            Phase::Compacting => "compacting",
            Phase::Closed => "closed",
        }
    }
}

/// A snapshot of a session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionState {
    /// What it is doing.
    pub phase: Phase,
    /// A run is active, whatever it is doing just now: a prompt must be queued.
    pub running: bool,
    /// Which of the sessions over its file it is, see [`Session::sibling`](super::Session::sibling).
    pub sibling: u32,
    /// The entry it stands on.
    pub leaf: Option<String>,
    /// `provider/model`.
    pub model: Option<String>,
    /// Why it is another one than the file says, if it is: that one is not known or has no key (S292). Gone when a model is
    /// chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_notice: Option<String>,
    /// The effective thinking level.
    pub thinking_level: String,
    /// Names of the active tools.
    pub tools: Vec<String>,
    /// Texts waiting to steer the run.
    pub steering: Vec<String>,
    /// Texts waiting for its end.
    pub follow_up: Vec<String>,
    /// Shell runs that wait for the end of what runs.
    pub pending_bash: usize,
    /// Messages in the model's context.
    pub context_messages: usize,
}
