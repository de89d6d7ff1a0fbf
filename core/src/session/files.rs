//! Which files a stretch of conversation read and changed (S178, S274, S275).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::message::{Message, Role};

/// Paths by what was done to them, as the tools were given them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOperations {
    /// Read.
    pub read: BTreeSet<Path16>,
    /// Written as a whole.
    pub written: BTreeSet<Path16>,
    /// Edited.
    pub edited: BTreeSet<Path16>,
}

/// What is stored with a summary: `{readFiles, modifiedFiles}`, both sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLists {
    /// Read and not modified.
    pub read: Vec<String>,
    /// Edited or written.
    pub modified: Vec<String>,
}

/// A path that sorts by UTF-16 code units, like a JavaScript string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path16(pub String);

impl Ord for Path16 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.encode_utf16().cmp(other.0.encode_utf16())
    }
}

impl PartialOrd for Path16 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl FileOperations {
    /// Adds the lists of an earlier summary, given its entry; a summary made by an extension does not count.
    pub fn add_summary(&mut self, entry: &Value) {
        if entry.get("fromHook").and_then(Value::as_bool) == Some(true) {
            return;
        }
        let paths = |key: &str| {
            let list = entry.get("details").and_then(|details| details.get(key)).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(|path| Path16(path.to_owned()))
        };
        self.read.extend(paths("readFiles"));
        self.edited.extend(paths("modifiedFiles"));
    }

    /// Adds what the calls of an assistant message did.
    pub fn add_calls(&mut self, message: &Message) {
        for call in message.tool_calls() {
            self.add_call(call.name, call.arguments);
        }
    }

    /// Adds what the calls of an assistant message, or the nested calls recorded on a tool result, did.
    pub fn add_message(&mut self, message: &Message) {
        self.add_calls(message);
        if message.role() == Role::ToolResult {
            let calls = message.get("nestedCalls").and_then(|nested| nested.get("calls")).and_then(Value::as_array);
            for call in calls.into_iter().flatten() {
                if let (Some(name), Some(arguments)) = (call.get("name").and_then(Value::as_str), call.get("arguments"))
                {
                    self.add_call(name, arguments);
                }
            }
        }
    }

    /// Adds lists made before.
    pub fn add_lists(&mut self, lists: &FileLists) {
        self.read.extend(lists.read.iter().cloned().map(Path16));
        self.edited.extend(lists.modified.iter().cloned().map(Path16));
    }

    fn add_call(&mut self, tool: &str, arguments: &Value) {
        let path = arguments.get("path").and_then(Value::as_str).filter(|path| !path.is_empty());
        let Some(path) = path else { return };
        let set = match tool {
            "read" => &mut self.read,
            "write" => &mut self.written,
            "edit" => &mut self.edited,
            _ => return,
        };
        set.insert(Path16(path.to_owned()));
    }

    /// The lists as they are stored (S275).
    pub fn lists(&self) -> FileLists {
        let modified: BTreeSet<&Path16> = self.written.union(&self.edited).collect();
        let read = self.read.iter().filter(|path| !modified.contains(path));
        FileLists {
            read: read.map(|path| path.0.clone()).collect(),
            modified: modified.into_iter().map(|path| path.0.clone()).collect(),
        }
    }
}

impl FileLists {
    /// `{readFiles, modifiedFiles}` for a summary's `details`.
    pub fn details(&self) -> Value {
        json!({"readFiles": self.read, "modifiedFiles": self.modified})
    }

    /// What is appended to a summary's text; empty when there are no files (S275).
    pub fn suffix(&self) -> String {
        let mut out = String::new();
        for (tag, paths) in [("read-files", &self.read), ("modified-files", &self.modified)] {
            if !paths.is_empty() {
                out.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", paths.join("\n")));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_sort_by_utf16() {
        // U+1F375 is a surrogate pair, so it sorts before U+FF5E although its code point is higher.
        let mut operations = FileOperations::default();
        operations.add_call("read", &json!({"path": "\u{ff5e}"}));
        operations.add_call("read", &json!({"path": "\u{1f375}"}));
        operations.add_call("read", &json!({"path": 7}));
        operations.add_call("edit", &json!({"path": ""}));
        operations.add_call("write", &json!({"path": "w"}));
        operations.add_call("read", &json!({"path": "w"}));
        let lists = operations.lists();
        assert_eq!(lists.read, ["\u{1f375}", "\u{ff5e}"]);
        assert_eq!(lists.modified, ["w"]);
        assert_eq!(FileLists { read: vec![], ..lists }.suffix(), "\n\n<modified-files>\nw\n</modified-files>");
    }
}
