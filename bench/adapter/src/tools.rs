//! Tool cases: the built-in tools, called as a program that composes tools would.

use std::path::Path;
use std::sync::Arc;

use branchline::tools::{self, Tool, ToolCall, ToolResult};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{Memory, Result, timed};

struct Bench {
    runtime: tokio::runtime::Runtime,
    tools: Vec<Arc<dyn Tool>>,
}

/// Runs a case, or says that it is none of these.
pub(crate) fn run(case: &str, params: &Value) -> Option<Result<Value>> {
    let name = case.strip_prefix("tools.")?;
    Some(Bench::new().and_then(|bench| bench.run(name, params)))
}

fn sha(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn text(result: &ToolResult) -> &str {
    result.content.first().and_then(|block| block["text"].as_str()).unwrap_or_default()
}

/// The last or first characters, counted as JavaScript counts them.
fn ends(text: &str, head: usize, tail: usize) -> (String, String) {
    let units: Vec<u16> = text.encode_utf16().collect();
    let cut = |units: &[u16]| String::from_utf16_lossy(units);
    (cut(&units[..units.len().min(head)]), cut(&units[units.len().saturating_sub(tail)..]))
}

fn text_check(result: &ToolResult) -> Value {
    let text = text(result);
    let (head, tail) = ends(text, 80, 160);
    json!({"chars": text.encode_utf16().count(), "sha": sha(text), "head": head, "tail": tail})
}

fn lines_check(result: &ToolResult) -> Value {
    json!({"lines": text(result).split('\n').count(), "tail": ends(text(result), 0, 100).1})
}

impl Bench {
    fn new() -> Result<Bench> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
        Ok(Bench { runtime, tools: tools::builtin() })
    }

    fn call(&self, name: &str, arguments: Map<String, Value>, cwd: &str) -> Result<ToolResult> {
        let tool = self.tools.iter().find(|tool| tool.definition().name == name).ok_or("no such tool")?;
        Ok(self.runtime.block_on(tool.execute(ToolCall::detached(name, arguments, cwd)))?)
    }

    fn run(&self, name: &str, params: &Value) -> Result<Value> {
        let iters = params["iters"].as_u64().unwrap_or(3);
        let mut arguments = params.as_object().cloned().unwrap_or_default();
        for key in ["iters", "root", "dir", "file", "edits", "count", "fuzzy", "updates", "bytes"] {
            arguments.remove(key);
        }
        match name {
            "read" => self.repeat(iters, name, &arguments, "/", text_check),
            "grep" | "find" => {
                self.repeat(iters, name, &arguments, params["root"].as_str().unwrap_or("."), lines_check)
            }
            "ls" => {
                let directory = params["dir"].as_str().unwrap_or(".");
                arguments.insert("path".to_owned(), directory.into());
                self.repeat(iters, name, &arguments, directory, text_check)
            }
            "bash" => self.bash(iters, &arguments),
            "write" => self.write(params),
            "edit" => self.edit(params),
            _ => Err(format!("no case tools.{name}").into()),
        }
    }

    fn repeat(
        &self,
        iters: u64,
        name: &str,
        arguments: &Map<String, Value>,
        cwd: &str,
        check: impl Fn(&ToolResult) -> Value,
    ) -> Result<Value> {
        let memory = Memory::start();
        let mut times = Vec::new();
        let mut last = None;
        for _ in 0..iters {
            let (ms, result) = timed(|| self.call(name, arguments.clone(), cwd))?;
            times.push(ms);
            last = Some(result);
        }
        let check = last.map_or(Value::Null, |result| check(&result));
        Ok(memory.report(&times, check))
    }

    fn bash(&self, iters: u64, arguments: &Map<String, Value>) -> Result<Value> {
        self.repeat(iters, "bash", arguments, "/", |result| {
            let path = result.details.as_ref().and_then(|details| details["fullOutputPath"].as_str());
            let saved = path.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |it| it.len());
            let shown = text(result);
            let tail = ends(shown, 0, 120).1.replacen(path.unwrap_or_default(), "FILE", 1);
            json!({"chars": shown.encode_utf16().count(), "saved": saved, "updates": 0, "tail": tail})
        })
    }

    fn write(&self, params: &Value) -> Result<Value> {
        let (count, bytes) = (params["count"].as_u64().unwrap_or(10_000), params["bytes"].as_u64().unwrap_or(1024));
        let directory = temp_dir()?;
        let content = format!("{}\n", "x".repeat(bytes as usize - 1));
        let memory = Memory::start();
        let mut times = Vec::new();
        for round in 0..params["iters"].as_u64().unwrap_or(3) {
            let (ms, ()) = timed(|| {
                for number in 0..count {
                    let path = directory.path().join(format!("r{round}/d{}/f{number}.txt", number % 100));
                    let arguments = json!({"path": path.to_string_lossy(), "content": content});
                    self.call("write", arguments.as_object().cloned().unwrap_or_default(), "/")?;
                }
                Ok(())
            })?;
            times.push(ms);
        }
        let last = std::fs::metadata(directory.path().join(format!("r0/d99/f{}.txt", count - 1)))?.len();
        Ok(memory.report(&times, json!({"last": last})))
    }

    fn edit(&self, params: &Value) -> Result<Value> {
        let file = Path::new(params["file"].as_str().unwrap_or_default());
        let mut edits: Vec<Value> =
            serde_json::from_slice(&std::fs::read(params["edits"].as_str().unwrap_or_default())?)?;
        if let Some(count) = params["count"].as_u64() {
            edits.truncate(count as usize);
        }
        if params["fuzzy"] == true {
            let old = edits[0]["oldText"].as_str().unwrap_or_default().replacen('\n', "  \n", 1);
            edits[0]["oldText"] = old.into();
        }
        let directory = temp_dir()?;
        let copy = directory.path().join("edit.ts");
        let arguments = json!({"path": copy.to_string_lossy(), "edits": edits});
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let memory = Memory::start();
        let mut times = Vec::new();
        let mut check = Value::Null;
        for _ in 0..params["iters"].as_u64().unwrap_or(3) {
            std::fs::copy(file, &copy)?;
            let (ms, result) = timed(|| self.call("edit", arguments.clone(), "/"))?;
            times.push(ms);
            let details = result.details.clone().unwrap_or_default();
            let shown = text(&result).replace(&*copy.to_string_lossy(), "F");
            let out = std::fs::read(&copy)?;
            check = json!({"text": shown, "diff": sha(details["diff"].as_str().unwrap_or_default()),
                "first": details["firstChangedLine"], "bytes": out.len(), "out": sha(&out)});
        }
        Ok(memory.report(&times, check))
    }
}

fn temp_dir() -> Result<tempfile::TempDir> {
    let base = std::env::var_os("PB_TMP").map_or_else(std::env::temp_dir, Into::into);
    Ok(tempfile::Builder::new().prefix("pb-").tempdir_in(base)?)
}
