//! `ls`: the entries of one directory (T300–T309).

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::list_text::{Listing, limit, path_text};
use super::ls_order::sort_by_name;
use super::operations::FileKind;
use super::os_error::os_error;
use super::walk_source::Source;
use super::write::go_on;
use super::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, path, search};
use crate::permissions::Effect;

const DESCRIPTION: &str = "List a directory: names in alphabetical order, directories with a / at the end, hidden entries \
included. Shows up to 500 entries or 50 KB.";
const DEFAULT_LIMIT: usize = 500;

/// The tool.
pub struct LsTool {
    definition: ToolDefinition,
}

impl LsTool {
    /// The tool with its standard definition.
    pub fn new() -> LsTool {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Directory to list. Default: the working directory"},
                "limit": {"type": "number", "description": "Most entries to show. Default 500"}
            }
        });
        let mut definition = ToolDefinition::new("ls", DESCRIPTION, parameters).with_effect(Effect::Read, &["path"]);
        definition.snippet = Some("list a directory".to_owned());
        LsTool { definition }
    }
}

impl Default for LsTool {
    fn default() -> Self {
        LsTool::new()
    }
}

impl Tool for LsTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        search(call, list)
    }
}

/// On a thread that may block: a directory may have a million entries, and its disk may be far away.
fn list(call: &ToolCall, source: &Source) -> Result<ToolResult, ToolError> {
    let given = call.arguments.get("path").and_then(Value::as_str).unwrap_or_default();
    let directory = path::resolve_with(given, &call.cwd, call.operations.files.home())?;
    let limit = limit(&call.arguments, DEFAULT_LIMIT);
    match source.kind(&directory) {
        Ok(FileKind::Directory) => {}
        Ok(_) => return Err(ToolError::new(format!("Not a directory: {}", directory.display()))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(ToolError::new(format!("Path not found: {}", directory.display())));
        }
        Err(error) => return Err(os_error(&error, "stat", &directory)),
    }
    let mut entries = source.list(&directory, &call.cancel).map_err(|error| {
        let error = os_error(&error, "scandir", &directory);
        ToolError::new(format!("Cannot read directory: {error}"))
    })?;
    // What a host serves here and the disk does not have.
    for file in source.unlisted(&directory) {
        if let (true, Some(name)) = (file.parent() == Some(&directory), file.file_name()) {
            entries.push((name.to_owned(), FileKind::File));
        }
    }
    go_on(&call.cancel)?;
    let entries = sort_by_name(entries, |(name, _)| name.to_string_lossy());

    let mut listing = Listing::default();
    let mut shown = 0;
    let mut more = false;
    for (name, kind) in entries {
        if shown == limit {
            more = true;
            break;
        }
        go_on(&call.cancel)?;
        let is_directory = match kind {
            FileKind::Directory => true,
            FileKind::Symlink => match leads_to_directory(source, &directory.join(&name)) {
                Some(is_directory) => is_directory,
                None => continue,
            },
            _ => false,
        };
        let mut line = path_text(name.as_encoded_bytes());
        if is_directory {
            line.push('/');
        }
        listing.line(&line);
        shown += 1;
    }
    if listing.is_empty() {
        return Ok(ToolResult::text("(empty directory)"));
    }
    if more {
        let notice = format!("{limit} entries limit reached. Use limit={} for more", limit.saturating_mul(2));
        listing.notice(notice, "entryLimitReached", json!(limit));
    }
    Ok(listing.result())
}

/// Whether a link leads to a directory; `None` when it leads nowhere (T305). A target that may not be looked at is
/// there all the same.
fn leads_to_directory(source: &Source, link: &Path) -> Option<bool> {
    match source.kind(link) {
        Ok(kind) => Some(kind == FileKind::Directory),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(false),
        Err(_) => None,
    }
}
