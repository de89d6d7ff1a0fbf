//! `write`: a whole file (T70–T76).

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::mutation_queue::{turn, unresolvable};
use super::operations::{FileOperations, Replaced};
use super::os_error::os_error;
use super::replace_file::replace_file;
use super::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, blocking, path, quick_disk};
use crate::permissions::Effect;

const DESCRIPTION: &str = "Write a text file: a new one, or in place of all that an existing one holds. Directories that \
are missing on the way to it are made.";

/// The tool.
pub struct WriteTool {
    definition: ToolDefinition,
}

impl WriteTool {
    /// The tool with its standard definition.
    pub fn new() -> WriteTool {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to write, relative to the working directory or absolute"},
                "content": {"type": "string", "description": "All that the file is to hold"}
            },
            "required": ["path", "content"]
        });
        let mut definition =
            ToolDefinition::new("write", DESCRIPTION, parameters).with_effect(Effect::Write, &["path"]);
        definition.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
        definition.snippet = Some("make a file, or replace all of one".to_owned());
        definition.guidelines = vec!["Take write for new files and for rewriting a file from the start.".to_owned()];
        WriteTool { definition }
    }
}

impl Default for WriteTool {
    fn default() -> Self {
        WriteTool::new()
    }
}

impl Tool for WriteTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        Box::pin(write(call))
    }
}

async fn write(call: ToolCall) -> Result<ToolResult, ToolError> {
    let given = path::argument(&call)?;
    let content = call.arguments.get("content").and_then(Value::as_str);
    let content = content.ok_or_else(|| ToolError::new("content must be a string"))?.as_bytes().to_vec();
    let files = call.operations.files.clone();
    let path = path::resolve_with(&given, &call.cwd, files.home())?;
    let cancel = call.cancel.clone();
    // Waiting for one's turn may be given up at any time; from then on every step that was begun is ended (T14).
    let turn = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(ToolError::aborted()),
        turn = turn(&*files, &path) => turn.map_err(|error| os_error(&error, "realpath", &path))?,
    };
    let local = files.replaced().await.map_err(|error| os_error(&error, "open", &path))? == Replaced::None;
    if local {
        let quick = content.len() <= quick_disk::SMALL && path.parent().is_some_and(quick_disk::is_quick);
        let work = move || {
            let done = write_local(&path, &content, &cancel);
            drop(turn);
            done
        };
        if quick { work() } else { blocking(work).await }?;
    } else {
        write_through(&*files, &path, content, &cancel).await?;
    }
    Ok(ToolResult::text(format!("Successfully wrote to {given}")))
}

/// Fails when the call was aborted.
pub(super) fn go_on(cancel: &CancellationToken) -> Result<(), ToolError> {
    if cancel.is_cancelled() { Err(ToolError::aborted()) } else { Ok(()) }
}

fn write_local(path: &Path, content: &[u8], cancel: &CancellationToken) -> Result<(), ToolError> {
    go_on(cancel)?;
    let failed = |error: io::Error| match unresolvable(path) {
        Some(why) => os_error(&why, "realpath", path),
        None => os_error(&error, "open", path),
    };
    match replace_file(path, content) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let dir = parent(path);
            std::fs::create_dir_all(&dir).map_err(|error| os_error(&error, "mkdir", &dir))?;
            go_on(cancel)?;
            replace_file(path, content).map_err(failed)?;
        }
        other => other.map_err(failed)?,
    }
    go_on(cancel)
}

async fn write_through(
    files: &dyn FileOperations,
    path: &Path,
    content: Vec<u8>,
    cancel: &CancellationToken,
) -> Result<(), ToolError> {
    go_on(cancel)?;
    let dir = parent(path);
    files.create_dirs(&dir).await.map_err(|error| os_error(&error, "mkdir", &dir))?;
    go_on(cancel)?;
    files.write(path, content).await.map_err(|error| os_error(&error, "open", path))?;
    go_on(cancel)
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_path_buf()
}
