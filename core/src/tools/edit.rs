//! `edit`: exact replacements in one file (T120–T168).

use std::path::Path;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::edit_match::{Edited, apply};
use super::mutation_queue::{turn, unresolvable};
use super::operations::{Access, FileKind, FileOperations, Replaced};
use super::os_error::{code, is_a_directory, os_error, os_error_without_path};
use super::replace_file::replace_file;
use super::write::go_on;
use super::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, blocking, lenient_json, local, path};
use crate::permissions::Effect;

pub use super::edit_match::Edit;

const DESCRIPTION: &str = "Replace text in one file. Each oldText must be in the file as it stands, letter by letter, and in \
one place only; the places of several edits must not overlap, and all are looked for in the file as it was before the call. \
Make one edit of changes that are close together, and leave out long stretches that do not change.";

/// The tool.
pub struct EditTool {
    definition: ToolDefinition,
}

impl EditTool {
    /// The tool with its standard definition.
    pub fn new() -> EditTool {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to change, relative to the working directory or absolute"},
                "edits": {
                    "type": "array",
                    "description": "The replacements",
                    "items": {
                        "type": "object",
                        "properties": {
                            "oldText": {"type": "string", "description": "Text that is in the file exactly once"},
                            "newText": {"type": "string", "description": "Text to put in its place"}
                        },
                        "required": ["oldText", "newText"]
                    }
                }
            },
            "required": ["path", "edits"]
        });
        let mut definition = ToolDefinition::new("edit", DESCRIPTION, parameters).with_effect(Effect::Write, &["path"]);
        definition.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
        definition.snippet = Some("replace exact pieces of a file, several in one call".to_owned());
        definition.guidelines = vec![
            "To change a file use edit, with all changes of one file in one call.".to_owned(),
            "Keep each oldText short, but long enough to be in the file only once.".to_owned(),
        ];
        EditTool { definition }
    }
}

impl Default for EditTool {
    fn default() -> Self {
        EditTool::new()
    }
}

impl Tool for EditTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare(&self, arguments: Value) -> Value {
        match arguments {
            Value::Object(object) => Value::Object(repair(object)),
            other => other,
        }
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        Box::pin(edit(call))
    }
}

/// Forms of the arguments that models mix up: a list as text, one edit in place of a list, an edit beside the path
/// (T122, T123).
fn repair(mut arguments: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::String(text)) = arguments.get("edits") {
        match lenient_json::parse(text) {
            Some(list @ Value::Array(_)) => drop(arguments.insert("edits".to_owned(), list)),
            Some(one) if is_edit(&one) => drop(arguments.insert("edits".to_owned(), json!([one]))),
            _ => {}
        }
    }
    if let Some(one) = arguments.get_mut("edits").filter(|edits| is_edit(edits)) {
        *one = Value::Array(vec![one.take()]);
    }
    let text = |key: &str| arguments.get(key).filter(|value| value.is_string()).cloned();
    if let (Some(old), Some(new)) = (text("oldText"), text("newText")) {
        let edit = json!({"oldText": old, "newText": new});
        match arguments.get_mut("edits") {
            Some(Value::Array(edits)) => edits.push(edit),
            _ => drop(arguments.insert("edits".to_owned(), json!([edit]))),
        }
        arguments.shift_remove("oldText");
        arguments.shift_remove("newText");
    }
    arguments
}

fn is_edit(value: &Value) -> bool {
    value["oldText"].is_string() && value["newText"].is_string()
}

fn edits(call: &ToolCall) -> Result<Vec<Edit>, ToolError> {
    let given = call.arguments.get("edits").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let text = |edit: &Value, key: &str| edit[key].as_str().unwrap_or_default().to_owned();
    let edits: Vec<Edit> =
        given.iter().map(|edit| Edit { old: text(edit, "oldText"), new: text(edit, "newText") }).collect();
    if edits.is_empty() {
        return Err(ToolError::new("The input is invalid: edits must hold at least one replacement."));
    }
    Ok(edits)
}

async fn edit(call: ToolCall) -> Result<ToolResult, ToolError> {
    let given = path::argument(&call)?;
    let edits = edits(&call)?;
    let files = call.operations.files.clone();
    let path = path::resolve_with(&given, &call.cwd, files.home())?;
    let cancel = call.cancel.clone();
    let turn = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(ToolError::aborted()),
        turn = turn(&*files, &path) => turn.map_err(|error| os_error(&error, "realpath", &path))?,
    };
    let count = edits.len();
    let name = given.clone();
    let local = files.replaced().await.map_err(|error| os_error(&error, "access", &path))? == Replaced::None;
    let edited = if local {
        blocking(move || {
            let edited = edit_local(&name, &path, &edits, &cancel);
            drop(turn);
            edited
        })
        .await?
    } else {
        edit_through(&*files, &name, &path, edits, &cancel).await?
    };
    let mut details = json!({"diff": edited.diff.display, "patch": edited.diff.patch});
    if let Some(line) = edited.diff.first_changed_line {
        details["firstChangedLine"] = line.into();
    }
    let text = format!("Successfully replaced {count} block(s) in {given}.");
    Ok(ToolResult { details: Some(details), ..ToolResult::text(text) })
}

fn edit_local(name: &str, path: &Path, edits: &[Edit], cancel: &CancellationToken) -> Result<Edited, ToolError> {
    go_on(cancel)?;
    local::check_access(path, Access::ReadWrite).map_err(|error| match unresolvable(path) {
        Some(why) => os_error(&why, "realpath", path),
        None => inaccessible(name, &error),
    })?;
    go_on(cancel)?;
    let bytes = local::read_regular(path)?;
    go_on(cancel)?;
    let mut edited = apply(name, &bytes, edits)?;
    let content = std::mem::take(&mut edited.bytes);
    replace_file(path, &content).map_err(|error| os_error(&error, "open", path))?;
    go_on(cancel)?;
    Ok(edited)
}

async fn edit_through(
    files: &dyn FileOperations,
    name: &str,
    path: &Path,
    edits: Vec<Edit>,
    cancel: &CancellationToken,
) -> Result<Edited, ToolError> {
    go_on(cancel)?;
    files.access(path, Access::ReadWrite).await.map_err(|error| inaccessible(name, &error))?;
    go_on(cancel)?;
    if files.metadata(path).await.is_ok_and(|it| it.kind == FileKind::Directory) {
        return Err(is_a_directory("read"));
    }
    let bytes = files.read(path).await.map_err(|error| os_error_without_path(&error, "read"))?;
    go_on(cancel)?;
    let owned = name.to_owned();
    let mut edited = blocking(move || apply(&owned, &bytes, &edits)).await?;
    let content = std::mem::take(&mut edited.bytes);
    files.write(path, content).await.map_err(|error| os_error(&error, "open", path))?;
    go_on(cancel)?;
    Ok(edited)
}

fn inaccessible(name: &str, error: &std::io::Error) -> ToolError {
    match code(error) {
        Some(code) => ToolError::new(format!("Could not edit file: {name}. Error code: {code}.")),
        None => ToolError::new(format!("Could not edit file: {name}. {error}")),
    }
}

/// What a call would change, without changing anything (T167).
///
/// Errors: as the call's.
pub fn preview(path: &str, content: &[u8], edits: &[Edit]) -> Result<super::diff::Diff, ToolError> {
    apply(path, content, edits).map(|edited| edited.diff)
}
