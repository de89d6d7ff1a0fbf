//! Unit cases: functions under the tools.

use std::path::Path;
use std::time::Duration;

use branchline::tools::accumulate::Accumulator;
use branchline::tools::bash::BashOptions;
use branchline::tools::truncate::{self, Limits, Truncation};
use branchline::tools::validate::Checker;
use branchline::tools::{Operations, bash_user, diff, path, units};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Case;
use super::expect::Expect;
use super::setup;
use crate::report::{Outcome, problem};

/// Runs a case.
pub(super) fn run(case: &Case) -> Outcome {
    let unit = case.text("unit");
    let tmp = Path::new("/nowhere");
    let mut expect = Expect::new(tmp);
    let abort = case.value["abortAfterMs"].as_u64().map(Duration::from_millis);
    let mut compare = |at: &str, arguments: &Value, wanted: &Value| match perform(unit, arguments, abort) {
        Some(got) => expect.value(at, wanted, Some(&got)),
        None => expect.mismatches.push(problem(at, "a result", format!("there is no unit {unit} yet"))),
    };
    let expected = &case.value["expect"];
    match (&case.value["args"], expected.as_array()) {
        (Value::Null, Some(pairs)) => {
            for (at, pair) in pairs.iter().enumerate() {
                let arguments = setup::arguments(&pair["in"], tmp);
                compare(&format!("[{at}] {}", pair["in"]), &Value::Array(vec![arguments]), &pair["out"]);
            }
        }
        (arguments, _) => compare("", &setup::arguments(arguments, tmp), expected),
    }
    match expect.mismatches.is_empty() {
        true => Outcome::Same,
        false => Outcome::Failed(expect.mismatches),
    }
}

fn perform(unit: &str, arguments: &Value, abort: Option<Duration>) -> Option<Value> {
    let text = |at: usize| arguments[at].as_str().unwrap_or_default();
    Some(match unit {
        "truncateHead" => shown(&truncate::head_within(text(0), limits(&arguments[1]))),
        "truncateTail" => shown(&truncate::tail_within(text(0), limits(&arguments[1]))),
        "truncateLine" => {
            let (text, cut) = truncate::line(text(0), arguments[1].as_u64().unwrap_or(500) as usize);
            json!({"text": text, "wasTruncated": cut})
        }
        "formatSize" => truncate::size(arguments[0].as_u64().unwrap_or(0) as usize).into(),
        "normalizeForFuzzyMatch" => units::normalize_for_fuzzy_match(text(0)).into(),
        "normalizeToLF" => units::normalize_to_lf(text(0)).into(),
        "resolveToCwd" => {
            let cwd = arguments[1].as_str().unwrap_or("/base/dir");
            match path::resolve_with(text(0), Path::new(cwd), Some("/home/u".into())) {
                Ok(path) => path.display().to_string().into(),
                Err(error) => json!({"error": error.0}),
            }
        }
        "editDiff" => {
            let diff = diff::whole("f.txt", text(0), text(1));
            json!({"diff": diff.display, "patch": diff.patch, "firstChangedLine": diff.first_changed_line})
        }
        "stripAnsi" => bash_user::strip(text(0)).into(),
        "splitIncompleteAnsiSuffix" => {
            let (complete, pending) = bash_user::split_unfinished(text(0));
            json!({"complete": complete, "pending": pending})
        }
        "sanitizeBinaryOutput" => bash_user::remove_controls(text(0)).into(),
        "accumulator" => accumulator(arguments),
        "executeBash" => user_command(text(0), abort),
        "validate" => validate(&arguments[0]),
        _ => return None,
    })
}

fn limits(options: &Value) -> Limits {
    let usual = Limits::default();
    let number = |key: &str, default: usize| options[key].as_u64().map_or(default, |it| it as usize);
    Limits { lines: number("maxLines", usual.lines), bytes: number("maxBytes", usual.bytes) }
}

fn shown(cut: &Truncation) -> Value {
    cut.to_value()
}

/// A snapshot after every chunk, the last one, and the full text.
fn accumulator(arguments: &Value) -> Value {
    let mut output = Accumulator::new("pi-output", limits(&arguments[0]));
    let snapshot = |output: &Accumulator| {
        let cut = output.snapshot();
        let mut value = json!({"content": cut.content, "truncation": cut.to_value()});
        if let Some(path) = output.full_output().filter(|_| cut.truncated) {
            value["fullOutputPath"] = path.display().to_string().into();
        }
        value
    };
    let mut steps = Vec::new();
    for chunk in arguments[1].as_array().into_iter().flatten().filter_map(Value::as_str) {
        match chunk.strip_prefix("hex:") {
            Some(digits) => output.push(&setup::hex(digits)),
            None => output.push(chunk.as_bytes()),
        }
        steps.push(snapshot(&output));
    }
    output.finish();
    let most = arguments[2].as_u64().unwrap_or(1 << 20) as usize;
    let (full, cut) = output.full_text(most);
    json!({
        "steps": steps,
        "final": snapshot(&output),
        "lastLineBytes": output.last_line(),
        "full": {"content": full, "truncated": cut},
    })
}

fn user_command(command: &str, abort: Option<Duration>) -> Value {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return Value::Null };
    let (cancel, operations, options) = (CancellationToken::new(), Operations::local(), BashOptions::default());
    let ended = runtime.block_on(async {
        let running = bash_user::execute(&operations, command, Path::new("/"), &options, &cancel, |_: &str| {});
        tokio::pin!(running);
        if let Some(after) = abort {
            tokio::select! {
                ended = &mut running => return ended,
                () = tokio::time::sleep(after) => cancel.cancel(),
            }
        }
        running.await
    });
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => return json!({"error": error.to_string()}),
    };
    let mut value = json!({"output": ended.output, "cancelled": ended.cancelled, "truncated": ended.truncated});
    if let Some(code) = ended.exit_code {
        value["exitCode"] = code.into();
    }
    if let Some(path) = ended.full_output_path {
        value["fullOutputPath"] = path.display().to_string().into();
    }
    value
}

/// `{ok: arguments}` or `{error: text}`; the corpus leaves out what follows the problems.
fn validate(case: &Value) -> Value {
    let checker = match Checker::new(&case["schema"]) {
        Ok(checker) => checker,
        Err(error) => return json!({"schema": error}),
    };
    match checker.check("demo", &case["args"]) {
        Ok(arguments) => json!({ "ok": arguments }),
        Err(text) => json!({"error": text.split("\n\nReceived arguments:").next()}),
    }
}
