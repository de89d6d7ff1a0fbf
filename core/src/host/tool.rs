//! Tools that a host in another language provides: each call is a [`Request`](super::Request).

use serde_json::Value;

use super::queue::Asker;
use super::request::{Answer, NoAnswer, Question, RequestKind};
use crate::error::Result;
use crate::tools::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture};

/// A tool whose calls are requests to the host. When a call is cancelled it is over at once, and the host is told; an
/// answer that comes later goes nowhere.
#[derive(Debug)]
pub struct HostTool {
    definition: ToolDefinition,
    asker: Asker,
    target: u64,
}

impl HostTool {
    /// A tool with a definition `{name, description, parameters, executionMode?, snippet?, guidelines?,
    /// constrainedSampling?}`. Its calls go to `asker`'s queue with the number `target`, by which the host knows them.
    ///
    /// Errors: `invalid_argument` when the definition is none.
    pub fn new(definition: Value, asker: Asker, target: u64) -> Result<HostTool> {
        Ok(HostTool::with_definition(ToolDefinition::from_host_value(definition)?, asker, target))
    }

    /// The same for a definition that was read.
    pub fn with_definition(definition: ToolDefinition, asker: Asker, target: u64) -> HostTool {
        HostTool { definition, asker, target }
    }
}

impl Tool for HostTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        let asker = self.asker.clone();
        let question = Question {
            kind: RequestKind::Tool,
            target: self.target,
            name: call.name,
            call_id: call.id,
            session_id: call.session_id,
            sibling: call.sibling,
            cwd: call.cwd,
            arguments: Value::Object(call.arguments),
            progress: Some(call.progress),
            response: None,
        };
        Box::pin(async move {
            let answer = asker.ask(question, call.cancel).await;
            match answer {
                Ok(Answer::Tool(result)) => Ok(result),
                Err(NoAnswer::Failed(message)) => Err(ToolError::new(message)),
                Err(NoAnswer::Cancelled) => Err(ToolError::aborted()),
                Ok(_) | Err(NoAnswer::Dropped) => {
                    Err(ToolError::new("The program that provides this tool gave no answer."))
                }
                Err(NoAnswer::Closed) => {
                    Err(ToolError::new("The program that provides this tool takes no more calls."))
                }
            }
        })
    }
}
