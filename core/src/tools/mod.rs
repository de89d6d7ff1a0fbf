//! Tools: what the model may do, one tool a file.
//!
//! A tool is a [`Tool`]: a definition and a function from a call to a future. Built in are [`read`], [`write`](mod@write),
//! [`edit`], [`bash`], [`grep`], [`find`], [`ls`] and `powershell`; a host adds its own to an engine, a session or a [`Toolbox`].

pub mod accumulate;
mod ansi;
pub mod bash;
mod bash_local;
mod bash_output;
pub mod bash_user;
mod coerce;
pub mod diff;
pub mod edit;
mod edit_match;
mod edit_places;
mod edit_text;
pub mod environment;
pub mod find;
mod fold;
pub mod grep;
mod grep_search;
pub mod image;
mod image_codec;
mod lenient_json;
mod line_index;
mod list_text;
pub(crate) mod local;
pub mod ls;
mod ls_order;
pub mod mutation_queue;
pub(crate) mod nested;
mod number;
mod offsets;
pub mod operations;
mod os_error;
pub mod path;
mod plain_schema;
mod powershell;
mod quick_disk;
pub mod read;
mod read_text;
mod replace_file;
mod spill;
mod tool;
mod toolbox;
pub mod truncate;
pub(crate) mod under_way;
#[doc(hidden)]
pub mod units;
mod utf8_stream;
pub mod validate;
mod walk;
mod walk_rules;
mod walk_source;
pub mod write;

pub use operations::Operations;
pub use tool::{ExecutionMode, Progress, Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult};
pub use toolbox::{CancelCall, PendingCall, Toolbox};

use std::sync::Arc;

/// The built-in tools, in the order in which they are declared.
pub fn builtin() -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(read::ReadTool::new()),
        Arc::new(bash::BashTool::new()),
        Arc::new(edit::EditTool::new()),
        Arc::new(write::WriteTool::new()),
        Arc::new(grep::GrepTool::new()),
        Arc::new(find::FindTool::new()),
        Arc::new(ls::LsTool::new()),
    ];
    // Only where there is a PowerShell.
    tools.extend(bash::BashTool::powershell().map(|tool| Arc::new(tool) as Arc<dyn Tool>));
    tools
}

/// The names of all built-in tools, those of other systems too. Which of them a session has by itself the settings say
/// (T1, S281); tools of the host it has in any case.
pub(crate) fn builtin_names() -> [&'static str; 8] {
    ["read", "bash", "edit", "write", "grep", "find", "ls", "powershell"]
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

/// A search of files in the background. It watches the call's token itself and ends in its own time; the call is over at
/// once when that is set. A future that is dropped ends its search as well.
fn search(
    mut call: ToolCall,
    work: fn(&ToolCall, &walk_source::Source) -> Result<ToolResult, ToolError>,
) -> ToolFuture {
    Box::pin(async move {
        let cancel = call.cancel.clone();
        call.cancel = cancel.child_token();
        let _ends_with_this = call.cancel.clone().drop_guard();
        let source = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ToolError::aborted()),
            source = walk_source::Source::new(&call.operations) => source,
        };
        let source = source.map_err(|error| ToolError::new(error.to_string()))?;
        let searching = blocking(move || work(&call, &source));
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ToolError::aborted()),
            result = searching => result,
        }
    })
}

/// Makes the images of a result fit (T16).
pub(crate) async fn fit_images(
    result: Result<ToolResult, ToolError>,
    target: Option<image::ImageTarget>,
) -> Result<ToolResult, ToolError> {
    let mut result = result?;
    if !image::has_images(&result) {
        return Ok(result);
    }
    blocking(move || {
        image::normalise(&mut result, target.as_ref());
        Ok(result)
    })
    .await
}
