//! The question whether a call may run, put after the hooks: what they made of the arguments is what is judged.

use std::sync::Arc;

use super::hooks::HookedCall;
use super::tool_call::Outcome;
use crate::permissions::{Asking, Verdict};
use crate::session::{Actor, EventKind};
use crate::tools::{Operations, Tool};

impl Actor {
    /// Judges a call and tells what was decided. Gives the files and commands it may use, or its result.
    pub(super) async fn permit(&mut self, tool: &dyn Tool, call: &HookedCall) -> Result<Operations, Outcome> {
        let operations = self.engine.options.operations.clone();
        if self.shared.gate.is_open() {
            return Ok(operations);
        }
        let shared = self.shared.clone();
        let asking = Asking {
            session_id: &call.session_id,
            sibling: call.sibling,
            call_id: &call.id,
            definition: tool.definition(),
            arguments: &call.arguments,
            operations: &operations,
            cancel: &call.cancel,
        };
        let Verdict { decision, outcome } = self.wait(shared.gate.judge(asking)).await;
        if let Some(decision) = decision {
            self.emit(EventKind::PermissionDecision { decision: Arc::new(decision) }).await;
        }
        match outcome {
            Ok(_) if self.aborted() => Err(Outcome::aborted()),
            Ok(operations) => Ok(operations),
            Err(error) => Err(Outcome::refused(error.0)),
        }
    }
}
