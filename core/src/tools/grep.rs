//! `grep`: lines by regular expression (T350–T366).

use std::io;
use std::path::Path;

use ignore::overrides::{Override, OverrideBuilder};
use serde_json::{Value, json};

use super::grep_search::{FileMatches, Search};
use super::list_text::{Listing, limit, path_text};
use super::operations::FileKind;
use super::os_error::os_error;
use super::walk::{self, Entry, Failed, Root};
use super::walk_rules::Rules;
use super::walk_source::Source;
use super::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, path, search};
use crate::permissions::Effect;

const DESCRIPTION: &str = "Search files for lines that match a regular expression (Rust syntax). Prints path:line: text. \
Passes over binary files and what .gitignore excludes; hidden files are searched. \
Shows up to 100 matches or 50 KB; long lines are cut at 500 characters.";
const DEFAULT_LIMIT: usize = 100;

/// The tool.
pub struct GrepTool {
    definition: ToolDefinition,
}

impl GrepTool {
    /// The tool with its standard definition.
    pub fn new() -> GrepTool {
        let glob =
            "Search only files that match this glob, e.g. `*.ts` or `src/**/*.rs`; `!` at its start excludes them";
        let parameters = json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Regular expression, or plain text with literal"},
                "path": {"type": "string", "description": "File or directory to search. Default: the working directory"},
                "glob": {"type": "string", "description": glob},
                "ignoreCase": {"type": "boolean", "description": "Ignore case. Default false"},
                "literal": {"type": "boolean", "description": "Take the pattern as plain text. Default false"},
                "context": {"type": "number", "description": "Lines to show before and after each match. Default 0"},
                "limit": {"type": "number", "description": "Most matches to show. Default 100"}
            },
            "required": ["pattern"]
        });
        let mut definition = ToolDefinition::new("grep", DESCRIPTION, parameters).with_effect(Effect::Read, &["path"]);
        definition.snippet = Some("search the content of files".to_owned());
        GrepTool { definition }
    }
}

impl Default for GrepTool {
    fn default() -> Self {
        GrepTool::new()
    }
}

impl Tool for GrepTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        search(call, grep)
    }
}

fn grep(call: &ToolCall, source: &Source) -> Result<ToolResult, ToolError> {
    let text = |key: &str| call.arguments.get(key).and_then(Value::as_str);
    let flag = |key: &str| call.arguments.get(key).and_then(Value::as_bool).unwrap_or_default();
    let pattern = text("pattern").ok_or_else(|| ToolError::new("pattern must be a string"))?;
    let limit = limit(&call.arguments, DEFAULT_LIMIT);
    let context = call.arguments.get("context").and_then(Value::as_f64).map_or(0, |lines| lines.floor() as usize);
    let home = call.operations.files.home();
    let given = path::resolve_with(text("path").unwrap_or_default(), &call.cwd, home)?;
    let search = Search::new(pattern, flag("literal"), flag("ignoreCase"), context, limit, source, &call.cancel)
        .map_err(|error| ToolError::new(format!("invalid pattern: {error}")))?;
    let kind = source.kind(&given).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            ToolError::new(format!("Path not found: {}", given.display()))
        }
        _ => os_error(&error, "stat", &given),
    })?;
    if kind != FileKind::Directory {
        return one_file(&search, given);
    }
    let root = Root { real: source.real_path(&given), given };
    let rules = Rules::new(&root.real, ".rgignore", true, choice(text("glob"), &root.real)?);
    let search = search.below(&root.given);
    walk::walk(&root, source, &rules, &call.cancel, &search).map_err(|failed| match failed {
        Failed::Cancelled => ToolError::aborted(),
        Failed::Root(error) => os_error(&error, "scandir", &root.given),
    })?;
    Ok(show(search.found(), limit, context))
}

/// A file that is named is searched whatever ignore files say.
fn one_file(search: &Search<'_>, path: std::path::PathBuf) -> Result<ToolResult, ToolError> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ToolError::new(format!("Path not found: {}", path.display())));
    };
    let entry = Entry { key: walk::key(Path::new(name)), kind: FileKind::File };
    let found = search.file_alone(&entry, directory).map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted => ToolError::aborted(),
        _ => os_error(&error, "open", &path),
    })?;
    Ok(show(found.into_iter().collect(), search.limit(), search.context()))
}

/// The `glob` argument: one of ripgrep's `--glob`s (T354).
fn choice(glob: Option<&str>, root: &Path) -> Result<Override, ToolError> {
    let Some(glob) = glob.filter(|glob| !glob.is_empty()) else { return Ok(Override::empty()) };
    let (not, mut glob) = match glob.strip_prefix('!') {
        Some(rest) => ("!", rest),
        None => ("", glob),
    };
    while let Some(rest) = glob.strip_prefix("./") {
        glob = rest;
    }
    let invalid = |error: ignore::Error| ToolError::new(format!("invalid glob: {error}"));
    let mut builder = OverrideBuilder::new(root);
    builder.add(&format!("{not}{glob}")).map_err(invalid)?;
    builder.build().map_err(invalid)
}

/// Prints the matches of files in order, up to the limit (T357, T358, T360).
fn show(files: Vec<FileMatches>, limit: usize, context: usize) -> ToolResult {
    let mut listing = Listing::default();
    let mut matches = 0;
    let mut more = false;
    let mut cut = false;
    for file in files {
        if matches == limit {
            more = true;
            break;
        }
        let path = path_text(&walk::relative(&file.key));
        let mut last_match = None;
        for line in &file.lines {
            let mut is_match = line.is_match;
            if matches == limit {
                // What follows the last match is still shown, a further match there as context.
                more |= is_match;
                is_match = false;
                if last_match.is_none_or(|last: u64| line.number > last.saturating_add(context as u64)) {
                    break;
                }
            }
            if is_match {
                matches += 1;
                last_match = Some(line.number);
            }
            cut |= line.cut;
            let number = line.number;
            match file.text(line) {
                Some(text) if is_match => listing.line(&format!("{path}:{number}: {text}")),
                Some(text) => listing.line(&format!("{path}-{number}- {text}")),
                None => {
                    let digits = number.checked_ilog10().map_or(1, |it| it as usize + 1);
                    listing.unshown(path.len() + digits + 3 + line.length());
                }
            }
        }
        more |= matches == limit && file.more;
    }
    if listing.is_empty() {
        return ToolResult::text("No matches found");
    }
    if more {
        let notice =
            format!("{limit} matches limit reached. Use limit={} for more, or refine pattern", limit.saturating_mul(2));
        listing.notice(notice, "matchLimitReached", json!(limit));
    }
    listing.bytes_notice();
    if cut {
        let notice = "Some lines truncated to 500 chars. Use read tool to see full lines".to_owned();
        listing.notice(notice, "linesTruncated", json!(true));
    }
    listing.result()
}
