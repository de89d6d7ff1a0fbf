//! Cancellation: how long a call goes on after its token fired, and how long its threads do.

use std::time::{Duration, Instant};

use branchline::tools::{self, ToolCall};
use serde_json::{Value, json};

use crate::{Memory, Result};

/// Longest wait for threads that do not end.
const GIVE_UP: Duration = Duration::from_secs(30);

/// Runs a case, or says that it is none of these. `params`: `tool`, `root`, `args`, `delays` (ms from the start to the
/// cancellation), `full` (also once without cancelling). `ms` are the times from the cancellation to the result, of calls
/// that were still running; `threads_ms` those to the end of the call's last thread.
pub(crate) fn run(case: &str, params: &Value) -> Option<Result<Value>> {
    (case == "cancel").then(|| cancel(params))
}

fn cancel(params: &Value) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let name = params["tool"].as_str().unwrap_or_default();
    let tools = tools::builtin();
    let tool = tools.iter().find(|tool| tool.definition().name == name).ok_or("no such tool")?;
    let new_call = || {
        let arguments = params["args"].as_object().cloned().unwrap_or_default();
        ToolCall::detached(name, arguments, params["root"].as_str().unwrap_or("/"))
    };
    let memory = Memory::start();
    let (mut times, mut threads, mut ended_before) = (Vec::new(), Vec::new(), 0);
    for delay in params["delays"].as_array().into_iter().flatten().filter_map(Value::as_u64) {
        let call = new_call();
        let token = call.cancel.clone();
        let running = runtime.spawn(tool.execute(call));
        std::thread::sleep(Duration::from_millis(delay));
        if running.is_finished() {
            ended_before += 1;
            continue;
        }
        let at = Instant::now();
        token.cancel();
        let result = runtime.block_on(running)?;
        times.push(at.elapsed().as_secs_f64() * 1e3);
        if result.is_ok() {
            return Err("a cancelled call gave a result".into());
        }
        while working() && at.elapsed() < GIVE_UP {
            std::thread::sleep(Duration::from_millis(1));
        }
        threads.push(at.elapsed().as_secs_f64() * 1e3);
    }
    // Last, since a whole call may leave something behind that makes the next ones quicker.
    let mut full = Value::Null;
    if params["full"] == true {
        let begun = Instant::now();
        let _ = runtime.block_on(tool.execute(new_call()));
        full = json!(begun.elapsed().as_secs_f64() * 1e3);
    }
    let mut report = memory.report(&times, json!({"ended_before": ended_before}));
    report["threads_ms"] = json!(threads);
    report["full_ms"] = full;
    Ok(report)
}

/// Whether another thread of this process is on a processor or waits for the disk.
fn working() -> bool {
    let me = std::process::id().to_string();
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return false };
    tasks.filter_map(std::result::Result::ok).filter(|task| *task.file_name() != *me).any(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .and_then(|rest| rest.trim().chars().next())
            .is_some_and(|state| matches!(state, 'R' | 'D'))
    })
}
