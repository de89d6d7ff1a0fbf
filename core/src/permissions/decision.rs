//! What was decided about a call, for the host.

use std::sync::Arc;

use super::Effect;

/// What was decided about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermissionDecision {
    /// The call's id.
    pub call_id: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// What the call does, at most.
    pub effect: Effect,
    /// It runs.
    pub allowed: bool,
    /// The rule that decided or asked: `root`, `tool.NAME`, `effect.EFFECT`, or `PRESET.EFFECT` with `.inside` or
    /// `.outside` behind it where paths were named.
    pub rule: Arc<str>,
    /// Who decided.
    pub by: DecidedBy,
    /// Why it was denied.
    pub reason: Option<Arc<str>>,
}

/// Who decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The policy itself.
    Policy,
    /// The handler.
    Handler,
    /// An earlier answer of the handler that holds for the session.
    Earlier,
    /// Nobody: there is no handler.
    NoHandler,
    /// Nobody: the handler failed.
    HandlerFailed,
    /// Nobody: the handler gave no answer in time.
    Timeout,
}

impl DecidedBy {
    /// The word for it in events.
    pub fn name(self) -> &'static str {
        match self {
            DecidedBy::Policy => "policy",
            DecidedBy::Handler => "handler",
            DecidedBy::Earlier => "earlier",
            DecidedBy::NoHandler => "no_handler",
            DecidedBy::HandlerFailed => "handler_failed",
            DecidedBy::Timeout => "timeout",
        }
    }
}
