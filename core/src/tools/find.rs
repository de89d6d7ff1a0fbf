//! `find`: files and directories by glob (T320–T335).

use std::collections::BinaryHeap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use globset::{GlobBuilder, GlobMatcher};
use ignore::overrides::Override;
use serde_json::{Value, json};

use super::list_text::{Listing, limit, path_text};
use super::operations::FileKind;
use super::os_error::os_error;
use super::walk::{self, Bound, Entry, Failed, Key, Root, Visit};
use super::walk_rules::Rules;
use super::walk_source::Source;
use super::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, path, search};
use crate::permissions::Effect;

const DESCRIPTION: &str = "Find files and directories by a glob pattern. Prints paths relative to the searched directory, \
directories with a / at the end. Passes over what .gitignore excludes; hidden files are included. \
Shows up to 1000 results or 50 KB.";
const DEFAULT_LIMIT: usize = 1000;

/// The tool.
pub struct FindTool {
    definition: ToolDefinition,
}

impl FindTool {
    /// The tool with its standard definition.
    pub fn new() -> FindTool {
        let pattern = "Glob. Without a / it matches names at any depth (`*.ts`); with one it matches the path from the \
                       searched directory (`src/**/*.test.ts`, `**/src/*.ts`)";
        let parameters = json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": pattern},
                "path": {"type": "string", "description": "Directory to search. Default: the working directory"},
                "limit": {"type": "number", "description": "Most results to show. Default 1000"}
            },
            "required": ["pattern"]
        });
        let mut definition = ToolDefinition::new("find", DESCRIPTION, parameters).with_effect(Effect::Read, &["path"]);
        definition.snippet = Some("find files by name".to_owned());
        FindTool { definition }
    }
}

impl Default for FindTool {
    fn default() -> Self {
        FindTool::new()
    }
}

impl Tool for FindTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        search(call, find)
    }
}

fn find(call: &ToolCall, source: &Source) -> Result<ToolResult, ToolError> {
    let text = |key: &str| call.arguments.get(key).and_then(Value::as_str);
    let pattern = text("pattern").ok_or_else(|| ToolError::new("pattern must be a string"))?;
    let limit = limit(&call.arguments, DEFAULT_LIMIT);
    let home = call.operations.files.home();
    let given = path::resolve_with(text("path").unwrap_or_default(), &call.cwd, home)?;
    let pattern = Pattern::new(pattern, &given)?;
    match source.kind(&given) {
        Ok(FileKind::Directory) => {}
        Ok(_) => return Err(ToolError::new(format!("Not a directory: {}", given.display()))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(ToolError::new(format!("Path not found: {}", given.display())));
        }
        Err(error) => return Err(os_error(&error, "stat", &given)),
    }
    let root = Root { real: source.real_path(&given), given };
    // Outside of repositories .gitignore counts as well; inside of one git's own rules do (T323).
    let in_repository = root.real.ancestors().any(|above| source.kind(&above.join(".git")).is_ok());
    let rules = Rules::new(&root.real, ".fdignore", in_repository, Override::empty());
    let finder = Finder { pattern, limit, found: Mutex::default() };
    walk::walk(&root, source, &rules, &call.cancel, &finder).map_err(|failed| match failed {
        Failed::Cancelled => ToolError::aborted(),
        Failed::Root(error) => os_error(&error, "scandir", &root.given),
    })?;
    Ok(finder.result())
}

/// A glob and what it is matched against.
struct Pattern {
    glob: GlobMatcher,
    /// The path relative to the root, or an absolute one; otherwise the name alone.
    whole: bool,
    /// The root, where absolute paths are matched.
    root: Option<Vec<u8>>,
    /// The plain names the glob begins with: nothing else is gone into.
    start: Vec<Vec<u8>>,
    ignore_case: bool,
    /// It ends with a separator, as no path does.
    never: bool,
}

impl Pattern {
    fn new(given: &str, root: &Path) -> Result<Pattern, ToolError> {
        let mut pattern = given;
        while let Some(rest) = pattern.strip_prefix("./") {
            pattern = rest.trim_start_matches('/');
        }
        if pattern.is_empty() {
            return Err(ToolError::new("The pattern is empty. To list everything use *"));
        }
        let ignore_case = pattern.to_lowercase() == pattern;
        let glob = GlobBuilder::new(pattern).literal_separator(true).case_insensitive(ignore_case).build();
        let glob = glob.map_err(|error| ToolError::new(format!("invalid glob: {error}")))?;
        let whole = pattern.contains('/');
        let absolute = pattern.starts_with('/');
        let plain = |part: &&str| !part.is_empty() && !part.contains(['*', '?', '[', ']', '{', '}', '\\', ',']);
        let parts: Vec<&str> = pattern.split('/').collect();
        // A brace may span separators: then its end is in a part that is not plain, but so is its start.
        let start = match whole && !absolute && pattern.is_ascii() {
            true => parts[..parts.len() - 1]
                .iter()
                .copied()
                .take_while(plain)
                .map(|part| part.as_bytes().to_vec())
                .collect(),
            false => Vec::new(),
        };
        let root = absolute.then(|| {
            let mut root = root.as_os_str().as_encoded_bytes().to_vec();
            if root.last() != Some(&b'/') {
                root.push(b'/');
            }
            root
        });
        Ok(Pattern { glob: glob.compile_matcher(), whole, root, start, ignore_case, never: pattern.ends_with('/') })
    }

    fn matches(&self, entry: &Entry) -> bool {
        use std::os::unix::ffi::OsStrExt;
        if self.never {
            return false;
        }
        let matches = |bytes: &[u8]| self.glob.is_match(std::ffi::OsStr::from_bytes(bytes));
        if !self.whole {
            return matches(entry.key.rsplit(|&byte| byte == 0).next().unwrap_or_default());
        }
        let inside = entry.relative();
        match &self.root {
            Some(root) => matches(&[root.as_slice(), &inside].concat()),
            None => matches(&inside),
        }
    }

    /// Whether anything below a directory can match.
    fn enters(&self, directory: &[u8]) -> bool {
        let same = |a: &[u8], b: &[u8]| if self.ignore_case { a.eq_ignore_ascii_case(b) } else { a == b };
        directory.split(|&byte| byte == 0).zip(&self.start).all(|(name, wanted)| same(name, wanted))
    }
}

struct Finder {
    pattern: Pattern,
    limit: usize,
    /// The first of what was found, one more than wanted; the last of them on top.
    found: Mutex<BinaryHeap<(Key, bool)>>,
}

impl Visit for Finder {
    type Local = ();
    const FILES: bool = false;

    fn local(&self) {}

    fn enters(&self, directory: &Entry) -> bool {
        self.pattern.enters(&directory.key)
    }

    fn listed(&self, entries: &[Entry], bound: &Bound) {
        let matching: Vec<_> = entries
            .iter()
            .filter(|entry| self.pattern.matches(entry))
            .map(|entry| (entry.key.clone(), entry.kind == FileKind::Directory))
            .collect();
        if matching.is_empty() {
            return;
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(matching);
        while found.len() > self.limit.saturating_add(1) {
            found.pop();
        }
        if found.len() > self.limit
            && let Some((last, _)) = found.peek()
        {
            bound.lower(last);
        }
    }
}

impl Finder {
    fn result(self) -> ToolResult {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner).into_sorted_vec();
        let more = found.len() > self.limit;
        found.truncate(self.limit);
        let mut listing = Listing::default();
        for (key, is_directory) in found {
            let mut line = path_text(&walk::relative(&key));
            if is_directory {
                line.push('/');
            }
            // As the reference shows them (T335).
            let line = line.trim();
            if !line.is_empty() {
                listing.line(line);
            }
        }
        if listing.is_empty() {
            return ToolResult::text("No files found matching pattern");
        }
        if more {
            let limit = self.limit;
            let notice = format!(
                "{limit} results limit reached. Use limit={} for more, or refine pattern",
                limit.saturating_mul(2)
            );
            listing.notice(notice, "resultLimitReached", json!(limit));
        }
        listing.result()
    }
}
