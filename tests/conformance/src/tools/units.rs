//! Unit cases: functions under the tools.

use std::path::Path;

use branchline::tools::truncate::{self, Limits, Truncation};
use branchline::tools::validate::Checker;
use branchline::tools::{diff, path, units};
use serde_json::{Value, json};

use super::Case;
use super::expect::Expect;
use super::setup;
use crate::report::{Outcome, problem};

/// Runs a case.
pub(super) fn run(case: &Case) -> Outcome {
    let unit = case.text("unit");
    let tmp = Path::new("/nowhere");
    let mut expect = Expect::new(tmp);
    let mut compare = |at: &str, arguments: &Value, wanted: &Value| match perform(unit, arguments) {
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

fn perform(unit: &str, arguments: &Value) -> Option<Value> {
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
