//! The tools without a session: a host's files, a tool of the host's own, progress and cancellation.

use std::collections::HashMap;
use std::future::ready;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use branchline::block_on;
use branchline::tools::operations::{FileOperations, LocalFiles, Metadata, Operation, Replaced};
use branchline::tools::{Operations, Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, Toolbox};
use serde_json::json;

/// An editor: open buffers stand before the files on disk, and every write goes through it.
#[derive(Clone, Default)]
struct Editor {
    open: Arc<Mutex<HashMap<PathBuf, Vec<u8>>>>,
    writes: Arc<Mutex<Vec<PathBuf>>>,
}

impl FileOperations for Editor {
    fn metadata(&self, path: &Path) -> Operation<Metadata> {
        LocalFiles.metadata(path)
    }

    fn access(&self, path: &Path, access: branchline::tools::operations::Access) -> Operation<()> {
        match self.open.lock().unwrap().contains_key(path) {
            true => Box::pin(ready(Ok(()))),
            false => LocalFiles.access(path, access),
        }
    }

    fn read(&self, path: &Path) -> Operation<Vec<u8>> {
        match self.open.lock().unwrap().get(path).cloned() {
            // From another thread, some time later.
            Some(bytes) => Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                Ok(bytes)
            }),
            None => LocalFiles.read(path),
        }
    }

    fn write(&self, path: &Path, content: Vec<u8>) -> Operation<()> {
        if path.ends_with("forbidden") {
            return Box::pin(ready(Err(io::Error::other("the document is read-only"))));
        }
        self.writes.lock().unwrap().push(path.to_path_buf());
        self.open.lock().unwrap().insert(path.to_path_buf(), content);
        Box::pin(ready(Ok(())))
    }

    fn replaced(&self) -> Operation<Replaced> {
        let files = self.open.lock().unwrap().keys().cloned().collect();
        Box::pin(ready(Ok(Replaced::Files(files))))
    }
}

fn text(result: &ToolResult) -> &str {
    result.content[0]["text"].as_str().unwrap()
}

#[test]
fn unsaved_buffers_stand_before_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("a.txt");
    std::fs::write(&disk, "saved\n").unwrap();
    let editor = Editor::default();
    editor.open.lock().unwrap().insert(disk.clone(), b"unsaved\nbuffer\n".to_vec());
    editor.open.lock().unwrap().insert(dir.path().join("new.txt"), b"never saved".to_vec());
    let tools = Toolbox::with_operations(dir.path(), Operations::local().files(editor.clone())).unwrap();
    let call = |name: &str, arguments| block_on(tools.call(name, arguments));

    assert_eq!(text(&call("read", json!({"path": "a.txt", "offset": 2}))), "buffer\n");
    assert_eq!(text(&call("read", json!({"path": "new.txt"}))), "never saved");
    let edited = call("edit", json!({"path": "a.txt", "oldText": "unsaved", "newText": "changed"}));
    assert!(!edited.is_error, "{}", text(&edited));
    assert_eq!(editor.open.lock().unwrap()[&disk], b"changed\nbuffer\n");
    assert_eq!(std::fs::read(&disk).unwrap(), b"saved\n");
    assert!(!call("write", json!({"path": "sub/b.txt", "content": "b"})).is_error);
    assert_eq!(*editor.writes.lock().unwrap(), [disk, dir.path().join("sub/b.txt")]);
    let refused = call("write", json!({"path": "forbidden", "content": ""}));
    assert_eq!((refused.is_error, text(&refused)), (true, "the document is read-only"));
}

/// Counts aloud, then waits to be told to stop if it is to count for ever.
struct Count {
    definition: ToolDefinition,
}

impl Count {
    fn new() -> Arc<Count> {
        let schema = json!({
            "type": "object",
            "properties": {"to": {"type": "integer", "minimum": 1}, "forever": {"type": "boolean"}},
            "required": ["to"]
        });
        Arc::new(Count { definition: ToolDefinition::new("count", "Counts", schema) })
    }
}

impl Tool for Count {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        Box::pin(async move {
            let to = call.arguments["to"].as_u64().unwrap();
            for n in 1..=to {
                call.progress.update(ToolResult::text(n.to_string())).await;
            }
            if call.arguments.get("forever").is_some_and(|it| it == true) {
                call.cancel.cancelled().await;
                return Err(ToolError::aborted());
            }
            Ok(ToolResult::text(format!("counted to {to}")))
        })
    }
}

#[test]
fn a_tool_of_the_hosts_own() {
    let tools = Toolbox::new(".").unwrap();
    tools.add(Count::new());
    assert!(tools.definitions().iter().any(|tool| tool.name == "count"));
    // More updates than wait for anybody, with an argument that has to be converted.
    let mut call = tools.start("count", json!({"to": "100"}));
    let mut seen = Vec::new();
    while let Some(update) = block_on(call.next_update()) {
        seen.push(text(&update).parse::<u32>().unwrap());
    }
    assert_eq!(seen, (1..=100).collect::<Vec<_>>());
    assert_eq!(text(&block_on(call.result())), "counted to 100");
    // Nobody looks at the updates.
    assert_eq!(text(&block_on(tools.call("count", json!({"to": 100})))), "counted to 100");
    let wrong = block_on(tools.call("count", json!({"to": 0})));
    assert!(
        text(&wrong).starts_with("Validation failed for tool \"count\":\n  - to: expected >= 1\n"),
        "{}",
        text(&wrong)
    );
    let unknown = block_on(tools.call("county", json!({})));
    assert_eq!((unknown.is_error, text(&unknown)), (true, "Tool county not found"));
}

#[test]
fn calls_end_when_they_are_cancelled() {
    let tools = Toolbox::new(".").unwrap();
    tools.add(Count::new());
    let call = tools.start("count", json!({"to": 1, "forever": true}));
    let cancel = call.cancel_token();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        cancel.cancel();
    });
    assert_eq!(text(&block_on(call.result())), "Operation aborted");
    stopper.join().unwrap();
}

#[test]
fn a_schema_of_the_host_that_is_none_is_told() {
    struct Broken(ToolDefinition);
    impl Tool for Broken {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }
        fn execute(&self, _: ToolCall) -> ToolFuture {
            Box::pin(ready(Ok(ToolResult::text("ran"))))
        }
    }
    let tools = Toolbox::new(".").unwrap();
    tools.add(Arc::new(Broken(ToolDefinition::new("broken", "", json!({"type": 5})))));
    let result = block_on(tools.call("broken", json!({})));
    assert!(result.is_error && text(&result).contains("no valid JSON Schema"), "{}", text(&result));
    // References do not leave the schema.
    let outside = json!({"type": "object", "properties": {"a": {"$ref": "http://localhost:1/schema.json"}}});
    tools.add(Arc::new(Broken(ToolDefinition::new("outside", "", outside))));
    assert!(block_on(tools.call("outside", json!({"a": 1}))).is_error);
}

#[test]
fn an_engine_lends_its_tools() {
    let engine = branchline::Engine::new(branchline::EngineOptions::default()).unwrap();
    engine.add_tool(Count::new());
    let dir = tempfile::tempdir().unwrap();
    let tools = engine.toolbox(dir.path());
    assert!(!block_on(tools.call("write", json!({"path": "f", "content": "x"}))).is_error);
    assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"x");
    assert_eq!(text(&block_on(tools.call("count", json!({"to": 1})))), "counted to 1");
}
