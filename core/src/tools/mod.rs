//! Tools: what the model may do, one tool a file.
//!
//! A tool is a [`Tool`]: a definition and a function from a call to a future. [`read`] and [`bash`] are built in; a host
//! adds its own to an engine or to one session.

mod accumulate;
pub mod bash;
mod environment;
mod local;
pub mod operations;
mod os_error;
pub mod path;
pub mod read;
mod tool;
pub mod truncate;
pub mod validate;

pub use operations::Operations;
pub use tool::{ExecutionMode, Progress, Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult};

use std::sync::Arc;

/// The built-in tools, in the order in which they are declared.
pub fn builtin() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(read::ReadTool::new()), Arc::new(bash::BashTool::new())]
}

/// Runs blocking work of a tool beside the worker threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(ToolError::new("The tool failed inside the library.")),
    }
}
