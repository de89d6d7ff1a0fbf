//! Kind `table`: inputs and outputs without a file. A table is recognised by the keys of its rows.

use branchline::agent::classify;
use branchline::message::{Message, Usage};
use branchline::providers::thinking;
use branchline::resources::settings::Settings;
use branchline::session::stats::SessionStats;
use serde_json::{Map, Value, json};

use super::Case;
use super::dir::default_dir_name;
use crate::compare::Comparer;
use crate::report::{Outcome, problem};

/// Runs a case.
pub(super) fn run(case: &Case) -> Outcome {
    let mut comparer = Comparer::new(super::clock::placeholders(""));
    table("", &case.expected["results"], &mut comparer);
    super::outcome(comparer.mismatches, Vec::new())
}

/// A list of rows, or several tables under names.
fn table(path: &str, results: &Value, comparer: &mut Comparer) {
    match results {
        Value::Array(rows) => {
            let settings = rows.iter().rev().find_map(|row| row.get("settings")).cloned();
            for (at, row) in rows.iter().enumerate() {
                one(&format!("{path}[{at}]"), row, settings.as_ref(), comparer);
            }
        }
        Value::Object(tables) if tables.contains_key("delays") => {
            table(&format!("{path}.resolved"), &tables["resolved"], comparer);
            // The delays are those of the last settings, whose limit is low, and of the defaults.
            let last =
                tables["resolved"].as_array().and_then(|rows| rows.last()).and_then(|row| row.get("settings")).cloned();
            for (at, row) in tables["delays"].as_array().into_iter().flatten().enumerate() {
                one(&format!("{path}.delays[{at}]"), row, last.as_ref(), comparer);
            }
        }
        Value::Object(tables) => {
            for (name, rows) in tables {
                table(&format!("{path}.{name}"), rows, comparer);
            }
        }
        other => comparer.mismatches.push(problem(path, "a table", other.to_string())),
    }
}

fn one(path: &str, row: &Value, settings: Option<&Value>, comparer: &mut Comparer) {
    match answer(row, settings) {
        Some(answers) => {
            for (key, answer) in answers {
                comparer.value(&format!("{path}.{key}"), row.get(&key).unwrap_or(&Value::Null), Some(&answer));
            }
        }
        None => {
            comparer.mismatches.push(problem(path, &row.to_string(), "the runner does not know this kind of table"))
        }
    }
}

/// The row's outputs, computed from its inputs.
fn answer(row: &Value, settings: Option<&Value>) -> Option<Map<String, Value>> {
    let has = |key: &str| row.get(key).is_some();
    let first = |keys: &[&'static str]| keys.iter().copied().find(|key| has(key));
    let mut out = Map::new();
    if has("text") && (has("retryable") || has("overflow")) {
        let text = row["text"].as_str().unwrap_or_default();
        out.insert("overflow".into(), classify::is_overflow_text(text, "lantern").into());
        out.insert("overflowForCerebras".into(), classify::is_overflow_text(text, "cerebras").into());
        out.insert("retryable".into(), classify::is_retryable(text).into());
    } else if has("a") && has("b") && has("sum") {
        let sum = Usage::from_value(&row["a"])?.add(&Usage::from_value(&row["b"])?);
        out.insert("sum".into(), sum.to_value());
    } else if let Some(entries) = row.get("entries").and_then(Value::as_array) {
        totals(&SessionStats::of(entries), row, &mut out);
    } else if has("settings") {
        settings_answers(row, &mut out);
    } else if has("attempt") {
        let delay =
            |settings: Settings| settings.retry().delay(row["attempt"].as_u64().unwrap_or(0) as u32).as_millis() as u64;
        out.insert("default".into(), delay(Settings::default()).into());
        out.insert("capped".into(), delay(read_settings(settings?)).into());
    } else if let Some(key) = first(&["clamped", "result", "level"]).filter(|_| has("supported") || has("levels")) {
        let wanted = first(&["wanted", "requested", "level"]).and_then(|key| row[key].as_str())?;
        let supported = row.get("supported").or(row.get("levels"))?.as_array()?;
        let supported: Vec<&str> = supported.iter().filter_map(Value::as_str).collect();
        out.insert(key.into(), thinking::clamp(wanted, &supported).into());
    } else if let Some(key) =
        first(&["recoverable", "recoverableLength", "recoverableLengthStop", "isRecoverableLength"])
    {
        let limit =
            first(&["maxTokens", "modelMaxTokens", "desiredMaxOutput", "limit"]).and_then(|key| row[key].as_u64());
        out.insert(key.into(), classify::is_recoverable_length_stop(&response(row)?, limit).into());
    } else if let Some(key) = first(&["overflow", "contextOverflow", "isOverflow", "isContextOverflow", "result"]) {
        let window = first(&["window", "contextWindow"]).and_then(|key| row[key].as_u64());
        out.insert(key.into(), classify::is_context_overflow(&response(row)?, window).into());
    } else if let (Some(cwd), Some(key)) =
        (row.get("cwd").and_then(Value::as_str), first(&["dir", "name", "directory"]))
    {
        out.insert(key.into(), default_dir_name(cwd, row[key].as_str().unwrap_or_default()).into());
    }
    // An output nobody computed is an unknown table, not a passed one; unstated outputs are no claim.
    out.retain(|key, _| has(key));
    (!out.is_empty()).then_some(out)
}

/// Totals and costs of a session's entries (S114, S115). The bucket of what names no model has a name of the
/// implementation's own.
fn totals(stats: &SessionStats, row: &Value, out: &mut Map<String, Value>) {
    let spent = &stats.tokens;
    let mut totals = json!({"input": spent.input, "output": spent.output, "cacheRead": spent.cache_read,
        "cacheWrite": spent.cache_write, "cost": spent.cost});
    for key in ["totals", "usage"] {
        if row.get(key).is_some_and(|totals| totals.get("total").is_some()) {
            totals["total"] = spent.total().into();
        }
        out.insert(key.into(), totals.clone());
    }
    let models: Vec<String> = stats.costs().into_iter().filter_map(|group| group.model).collect();
    let stated = |key: &str| row.get(key).and_then(Value::as_array).into_iter().flatten();
    for key in ["breakdown", "costs"] {
        let bucket = stated(key)
            .filter_map(|group| group["key"].as_str())
            .find(|name| !models.iter().any(|model| model == name));
        let groups = stats.costs().into_iter().map(|group| {
            let name = group.model.or(bucket.map(str::to_owned));
            json!({"key": name, "cost": group.tokens.cost, "tokens": group.tokens.total()})
        });
        out.insert(key.into(), groups.collect());
    }
}

/// The response a row describes: as a whole, or by its parts.
fn response(row: &Value) -> Option<Message> {
    if let Some(message) = row.get("message").cloned().and_then(Message::from_value) {
        return Some(message);
    }
    let mut usage = row.get("usage").cloned().unwrap_or_else(|| json!({}));
    for key in ["input", "output", "cacheRead", "cacheWrite", "totalTokens"] {
        if let Some(number) = row.get(key) {
            usage[key] = number.clone();
        }
    }
    let mut message = row.as_object()?.clone();
    message.insert("role".into(), "assistant".into());
    message.insert("usage".into(), usage);
    for key in ["stop", "reason"] {
        if let (Some(stop), false) = (row.get(key), message.contains_key("stopReason")) {
            message.insert("stopReason".into(), stop.clone());
        }
    }
    message.get("stopReason")?;
    Message::from_value(Value::Object(message))
}

fn read_settings(value: &Value) -> Settings {
    Settings::from_values(value.as_object().cloned().unwrap_or_default())
}

fn settings_answers(row: &Value, out: &mut Map<String, Value>) {
    let settings = read_settings(&row["settings"]);
    let model = row.get("model").and_then(Value::as_object);
    let model = model
        .and_then(|model| model.get("provider").and_then(Value::as_str).zip(model.get("id").and_then(Value::as_str)));
    match settings.compaction(model) {
        Ok(compaction) => out.insert(
            "compaction".into(),
            json!({
                "enabled": compaction.enabled,
                "reserveTokens": compaction.reserve_tokens,
                "keepRecentTokens": compaction.keep_recent_tokens,
            }),
        ),
        Err(_) => out.insert("invalid".into(), true.into()),
    };
    let retry = settings.retry();
    out.insert(
        "retry".into(),
        json!({
            "enabled": retry.enabled,
            "maxRetries": retry.max_retries,
            "baseDelayMs": retry.base_delay_ms,
            "maxAgentDelayMs": retry.max_agent_delay_ms,
        }),
    );
    out.insert("steeringMode".into(), settings.steering_mode().name().into());
    out.insert("followUpMode".into(), settings.follow_up_mode().name().into());
    let branch = settings.branch_summary();
    out.insert(
        "branchSummary".into(),
        json!({"reserveTokens": branch.reserve_tokens, "skipPrompt": branch.skip_prompt}),
    );
    out.insert("providerMaxRetryDelayMs".into(), (settings.provider_max_retry_delay().as_millis() as u64).into());
    out.insert("defaultThinkingLevel".into(), settings.default_thinking_level().into());
    out.insert("blockImages".into(), settings.block_images().into());
}
