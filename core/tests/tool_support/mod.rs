//! What tests of tools share.
#![allow(dead_code)] // each test file uses its part

use std::path::Path;
use std::sync::{Arc, LazyLock};

use branchline::tools::{self, Tool, ToolCall, ToolError, ToolResult};
use serde_json::Value;

static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap());

thread_local! {
    /// Built-in tools that live as long as the thread of the test, and with them the files of long output: those of a
    /// static would stay behind.
    static TOOLS: Vec<Arc<dyn Tool>> = tools::builtin();
}

pub(crate) fn tool(name: &str) -> Arc<dyn Tool> {
    TOOLS.with(|tools| tools.iter().find(|tool| tool.definition().name == name).unwrap().clone())
}

pub(crate) fn new_call(name: &str, arguments: Value, cwd: &Path) -> ToolCall {
    ToolCall::detached(name, arguments.as_object().unwrap().clone(), cwd)
}

pub(crate) fn run(tool: &Arc<dyn Tool>, call: ToolCall) -> Result<ToolResult, ToolError> {
    RUNTIME.block_on(tool.execute(call))
}

pub(crate) fn call(name: &str, arguments: Value, cwd: &Path) -> Result<ToolResult, ToolError> {
    run(&tool(name), new_call(name, arguments, cwd))
}

pub(crate) fn text(result: &ToolResult) -> &str {
    result.content[0]["text"].as_str().unwrap()
}

/// The text of a call that must not fail.
pub(crate) fn ok(name: &str, arguments: Value, cwd: &Path) -> String {
    let result = call(name, arguments, cwd).unwrap();
    assert!(!result.is_error, "{}", text(&result));
    text(&result).to_owned()
}

/// The sentence of a call that must fail.
pub(crate) fn failure(name: &str, arguments: Value, cwd: &Path) -> String {
    call(name, arguments, cwd).unwrap_err().0
}

pub(crate) fn write(directory: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Sorted lines, without notices.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split("\n\n[").next().unwrap().lines().collect();
    lines.sort_unstable();
    lines
}

/// Open descriptors, threads and uncollected children of this process.
#[cfg(target_os = "linux")]
pub(crate) fn held() -> (usize, usize, usize) {
    let count = |path: &str| std::fs::read_dir(path).unwrap().count();
    let me = std::process::id().to_string();
    let zombie = |entry: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.next() == Some("Z") && fields.next() == Some(&me)
    };
    let zombies = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(|entry| zombie(entry)).count();
    (count("/proc/self/fd"), count("/proc/self/task"), zombies)
}

/// Whether a process runs (a zombie does not).
pub(crate) fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).is_some_and(|state| state != 'Z')
}
