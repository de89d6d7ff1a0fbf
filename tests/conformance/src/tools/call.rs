//! Tool cases: a directory, one or more calls through a toolbox, and what they must come to.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use branchline::tools::bash::{BashOptions, BashTool};
use branchline::tools::image::{ImageOptions, ResizeProfile};
use branchline::tools::read::ReadTool;
use branchline::tools::{PendingCall, Tool, ToolResult, Toolbox};
use serde_json::{Value, json};

use super::expect::Expect;
use super::{Case, difference, setup};
use crate::report::{Outcome, problem};

/// A result and the updates before it.
pub(super) struct Ended {
    pub(super) result: Value,
    pub(super) updates: Vec<Value>,
}

/// Runs a case.
pub(super) fn run(case: &Case) -> Outcome {
    let failed = |text: String| Outcome::Failed(vec![problem("", "a case that can be run", text)]);
    let dir = match tempfile::tempdir() {
        Ok(dir) => dir,
        Err(error) => return failed(error.to_string()),
    };
    let tmp = match dir.path().canonicalize().and_then(|tmp| setup::make(&case.value["setup"], &tmp).map(|()| tmp)) {
        Ok(tmp) => tmp,
        Err(error) => return failed(format!("setup: {error}")),
    };
    let before = setup_bytes(case, &tmp);
    let begun = Instant::now();
    let environment = Environment::set(&case.value["env"], &tmp);
    let (ended, _toolbox) = match perform(case, &tmp) {
        Ok(ended) => ended,
        Err(text) => return failed(text),
    };
    drop(environment);
    let elapsed = begun.elapsed();
    let mut expect = Expect::new(&tmp);
    judge(case, &ended, elapsed, &mut expect);
    if expect.mismatches.is_empty() {
        return Outcome::Same;
    }
    match difference::explained(case, &before, &ended, &tmp) {
        Some(id) => Outcome::Different(vec![id]),
        None => Outcome::Failed(expect.mismatches),
    }
}

/// What the setup put into its files, by path.
fn setup_bytes(case: &Case, tmp: &Path) -> Vec<(String, Vec<u8>)> {
    let files = case.value["setup"]["files"].as_array().cloned().unwrap_or_default();
    let one = |file: &Value| (file["path"].as_str().unwrap_or_default().to_owned(), setup::content(file, tmp));
    files.iter().map(one).collect()
}

/// Variables set for the time of a case. Cases run one after the other.
struct Environment {
    before: Vec<(String, Option<std::ffi::OsString>)>,
}

impl Environment {
    fn set(variables: &Value, tmp: &Path) -> Environment {
        let mut before = Vec::new();
        for (name, value) in variables.as_object().into_iter().flatten() {
            before.push((name.clone(), std::env::var_os(name)));
            let value = setup::with_tmp(value.as_str().unwrap_or_default(), tmp);
            // SAFETY: this program reads its environment through `std` only, which locks it.
            unsafe { std::env::set_var(name, value) };
        }
        Environment { before }
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        for (name, value) in self.before.drain(..) {
            match value {
                // SAFETY: as in `set`.
                Some(value) => unsafe { std::env::set_var(name, value) },
                // SAFETY: as in `set`.
                None => unsafe { std::env::remove_var(name) },
            }
        }
    }
}

/// The results, and the toolbox: what it keeps (logs) is there as long as it is.
fn perform(case: &Case, tmp: &Path) -> Result<(Vec<Ended>, Toolbox), String> {
    let cwd = case.value["cwd"].as_str().map_or_else(|| tmp.to_path_buf(), |cwd| tmp.join(cwd));
    let toolbox = Toolbox::new(cwd).map_err(|error| error.to_string())?;
    let name = case.text("tool");
    if let Some(tool) = special(name, &case.value["options"], tmp)? {
        toolbox.add(tool);
    }
    if !toolbox.definitions().iter().any(|tool| tool.name == name) {
        return Err(format!("there is no tool {name} yet"));
    }
    let calls = match case.value["calls"].as_array() {
        Some(calls) => calls.clone(),
        None => vec![case.value["args"].clone()],
    };
    let start = |arguments: &Value| {
        let call = toolbox.start(name, setup::arguments(arguments, tmp));
        let cancel = call.cancel_token();
        if case.value["abortBefore"] == true {
            cancel.cancel();
        }
        if let Some(after) = case.value["abortAfterMs"].as_u64() {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(after));
                cancel.cancel();
            });
        }
        call
    };
    if case.value["parallel"] == true {
        let together = futures::future::join_all(calls.iter().map(|arguments| finish(start(arguments))));
        return Ok((branchline::block_on(together), toolbox));
    }
    let ended = calls.iter().map(|arguments| branchline::block_on(finish(start(arguments)))).collect();
    Ok((ended, toolbox))
}

async fn finish(mut call: PendingCall) -> Ended {
    let mut updates = Vec::new();
    while let Some(update) = call.next_update().await {
        updates.push(update.to_value());
    }
    let result = call.result().await;
    Ended { result: as_value(&result), updates }
}

fn as_value(result: &ToolResult) -> Value {
    let mut value = result.to_value();
    value["isError"] = result.is_error.into();
    value
}

/// The tool of a case with its own options.
fn special(name: &str, options: &Value, tmp: &Path) -> Result<Option<Arc<dyn Tool>>, String> {
    if options.is_null() {
        return Ok(None);
    }
    match name {
        "read" => {
            let mut profile = ResizeProfile::default();
            let wanted = &options["resizeOptions"];
            let number = |key: &str| wanted[key].as_u64();
            profile.max_width = number("maxWidth").map_or(profile.max_width, |it| it as u32);
            profile.max_height = number("maxHeight").map_or(profile.max_height, |it| it as u32);
            profile.max_bytes = number("maxBytes").map_or(profile.max_bytes, |it| it as usize);
            profile.jpeg_quality = number("jpegQuality").map_or(profile.jpeg_quality, |it| it as u8);
            let auto = options["autoResizeImages"].as_bool().unwrap_or(true);
            let images = ImageOptions::default().auto_resize(auto).profile(profile);
            Ok(Some(Arc::new(ReadTool::with_images(images))))
        }
        "bash" => {
            let mut bash = BashOptions::default();
            if let Some(prefix) = options["commandPrefix"].as_str() {
                bash = bash.prefix(prefix);
            }
            if let Some(shell) = options["shellPath"].as_str() {
                bash = bash.shell(setup::with_tmp(shell, tmp));
            }
            Ok(Some(Arc::new(BashTool::with_options(bash))))
        }
        other => Err(format!("there are no options for {other} yet")),
    }
}

fn judge(case: &Case, ended: &[Ended], elapsed: Duration, expect: &mut Expect<'_>) {
    let expected = &case.value["expect"];
    match expected["results"].as_array() {
        Some(results) => {
            for (at, (expected, ended)) in results.iter().zip(ended).enumerate() {
                judge_one(&format!("results[{at}]"), expected, ended, expect);
            }
            if results.len() != ended.len() {
                expect.mismatches.push(problem("results", &results.len().to_string(), ended.len().to_string()));
            }
        }
        None => {
            if let Some(ended) = ended.first() {
                judge_one("", expected, ended, expect);
            }
        }
    }
    expect.files(&expected["filesAfter"]);
    if let Some(log) = expected.get("logFile") {
        expect.log_file(log);
    }
    if let Some(most) = expected["maxElapsedMs"].as_u64().filter(|most| elapsed > Duration::from_millis(*most)) {
        expect.mismatches.push(problem("maxElapsedMs", &most.to_string(), elapsed.as_millis().to_string()));
    }
}

fn judge_one(at: &str, expected: &Value, ended: &Ended, expect: &mut Expect<'_>) {
    let result = &ended.result;
    expect.value(&format!("{at}.isError"), &expected["isError"], result.get("isError"));
    if expected["errorTextIsFrom"].is_string() {
        return;
    }
    content(at, expected, result, expect);
    for key in ["details", "structuredContent"] {
        match (expected.get(key), result.get(key)) {
            (None, None) => {}
            (None, Some(got)) => {
                expect.mismatches.push(problem(&format!("{at}.{key}"), "(absent)", got.to_string()));
            }
            (Some(wanted), got) => expect.value(&format!("{at}.{key}"), wanted, got),
        }
    }
    if let Some(wanted) = expected.get("updates") {
        updates(&format!("{at}.updates"), wanted, &ended.updates, expect);
    }
}

fn content(at: &str, expected: &Value, result: &Value, expect: &mut Expect<'_>) {
    let got = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let at_text = format!("{at}.content[0].text");
    if let Some(tail) = expected.get("contentTail") {
        let got = expect.neutral(&got);
        match tail.as_str() {
            Some(tail) if got.ends_with(tail) => {}
            Some(_) => expect.fail(&at_text, tail, Some(&Value::String(got))),
            None => expect.value(&at_text, tail, Some(&Value::String(got))),
        }
        return;
    }
    if let Some(count) = expected["lineCount"].as_u64() {
        let got = expect.neutral(&got);
        let (body, notice) = split_notice(&got);
        let lines = body.lines().filter(|line| !line.is_empty()).count() as u64;
        let wanted = expected["notice"].as_str().unwrap_or_default();
        if lines != count || notice.unwrap_or_default() != wanted {
            let actual = format!("{lines} lines, notice {notice:?}");
            expect.mismatches.push(problem(&at_text, &format!("{count} lines, notice {wanted:?}"), actual));
        }
        return;
    }
    if expected["unordered"] == true {
        let wanted = expected["content"][0]["text"].as_str().unwrap_or_default();
        let got = expect.neutral(&got);
        if as_set(wanted) != as_set(&got) {
            expect.mismatches.push(problem(&at_text, wanted, got));
        }
        return;
    }
    if let Some(wanted) = expected.get("content") {
        expect.value(&format!("{at}.content"), wanted, result.get("content"));
    }
}

/// The last bracketed line, and what stands before it.
fn split_notice(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once("\n\n") {
        Some((body, notice)) if notice.starts_with('[') && notice.ends_with(']') => (body, Some(notice)),
        _ => (text, None),
    }
}

fn as_set(text: &str) -> (Vec<&str>, Option<&str>) {
    let (body, notice) = split_notice(text);
    let mut lines: Vec<&str> = body.split('\n').collect();
    lines.sort_unstable();
    (lines, notice)
}

fn updates(at: &str, wanted: &Value, got: &[Value], expect: &mut Expect<'_>) {
    let least = wanted["count"].as_str().and_then(|text| text.rsplit(' ').next()?.parse().ok()).unwrap_or(0);
    if got.len() < least {
        expect.mismatches.push(problem(&format!("{at}.count"), &format!("at least {least}"), got.len().to_string()));
    }
    for (key, update) in [("first", got.first()), ("last", got.last())] {
        if let Some(wanted) = wanted.get(key) {
            let empty = json!({});
            let update = update.unwrap_or(&empty);
            // Updates without truncation may leave their empty details out.
            for (key, wanted) in wanted.as_object().into_iter().flatten() {
                let got = update.get(key).or_else(|| (key == "details").then_some(&empty));
                expect.value(&format!("{at}.{key}"), wanted, got);
            }
        }
    }
}
