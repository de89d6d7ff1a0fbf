//! Unit files: functions under the protocols.

use std::sync::Arc;

use branchline::agent::{classify, transform};
use branchline::message::{Message, Usage};
use branchline::providers::{Model, PartialJson, Prices, limits, parse_arguments, repair_strings, strict_schema};
use branchline::resources::settings::Settings;
use serde_json::{Map, Value, json};

use super::Case;
use crate::report::{Outcome, problem};

/// The files this module knows.
pub(super) const KNOWN: [&str; 14] = [
    "bash-execution-text",
    "cost",
    "estimate",
    "final-args",
    "max-tokens-clamp",
    "overflow-errors",
    "overflow-silent",
    "partial-json",
    "repair-json",
    "retry-delay",
    "retryable",
    "strict-schema",
    "thinking-budgets",
    "thinking-levels",
];

/// Runs a file as one case.
pub(super) fn run(case: &Case) -> Outcome {
    let mut mismatches = Vec::new();
    for (at, item) in case.value["items"].as_array().into_iter().flatten().enumerate() {
        let wanted = if item["error"].is_string() { json!("an error") } else { item["out"].clone() };
        let got = perform(&case.name, &item["in"]);
        if !equal(&wanted, &got) {
            mismatches.push(problem(&format!("[{at}] {}", item["in"]), &wanted.to_string(), got.to_string()));
        }
    }
    if mismatches.is_empty() { Outcome::Same } else { Outcome::Failed(mismatches) }
}

/// Equal, numbers by value, and but for the parser's words in front of arguments.
fn equal(wanted: &Value, got: &Value) -> bool {
    match (wanted, got) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let one = |(key, a): (&String, &Value)| match (key.as_str(), a.as_str(), b.get(key)) {
                ("argumentsError", Some(a), Some(Value::String(b))) => {
                    a.split_once("\n\n").map(|it| it.1) == b.split_once("\n\n").map(|it| it.1)
                }
                (_, _, b) => b.is_some_and(|b| equal(a, b)),
            };
            a.len() == b.len() && a.iter().all(one)
        }
        (a, b) => a == b,
    }
}

fn perform(id: &str, input: &Value) -> Value {
    let text = input.as_str().unwrap_or_default();
    match id {
        "bash-execution-text" => bash(input),
        "cost" => cost(input),
        "estimate" => message(input).map(|it| limits::message_tokens(&it)).into(),
        "final-args" => {
            let arguments = parse_arguments(text);
            let mut out = json!({"arguments": arguments.object});
            if let Some(error) = arguments.error {
                out["argumentsError"] = error.into();
            }
            out
        }
        "max-tokens-clamp" => clamp(input),
        "overflow-errors" => classify::is_overflow_text(text, "").into(),
        "overflow-silent" => {
            let message = message(input).unwrap_or_default();
            classify::is_context_overflow(&message, input["w"].as_u64()).into()
        }
        "partial-json" => {
            let mut json = PartialJson::new();
            let pieces = input.as_array().into_iter().flatten().filter_map(Value::as_str);
            pieces
                .map(|piece| {
                    json.push(piece);
                    json.value().unwrap_or_default()
                })
                .collect()
        }
        "repair-json" => repair_strings(text).into(),
        "retry-delay" => {
            let delay = Settings::default().retry().delay(input.as_u64().unwrap_or(0) as u32);
            json!(delay.as_millis() as u64)
        }
        "retryable" => classify::is_retryable(text).into(),
        "strict-schema" => strict_schema(input).unwrap_or_else(|| json!("an error")),
        "thinking-budgets" => {
            let mut model = Model::new("p", "m", "a");
            model.max_tokens = input[1].as_u64().unwrap_or(0);
            let budget = limits::thinking_budget(input[2].as_str().unwrap_or_default(), &Default::default());
            let (limit, budget) = limits::thinking_limits(&model, input[0].as_u64(), 0, budget);
            json!({"maxTokens": limit, "thinkingBudget": budget})
        }
        "thinking-levels" => levels(input),
        _ => Value::Null,
    }
}

fn message(input: &Value) -> Option<Message> {
    Message::from_value(input.clone())
}

fn bash(input: &Value) -> Value {
    let mut fields = Map::new();
    fields.insert("role".to_owned(), "bashExecution".into());
    fields.extend(input.as_object().cloned().unwrap_or_default());
    let message = Message::from_value(Value::Object(fields)).unwrap_or_default();
    transform::to_llm([&message]).first().map(|message| message.text("")).into()
}

/// The prices of the file are not in it: two tiers above ordinary ones, deduced from its title and results.
fn cost(input: &Value) -> Value {
    let prices = Prices::from_json(&json!({"input": 2, "output": 8, "cacheRead": 0.2, "cacheWrite": 2.5, "tiers": [
        {"inputTokensAbove": 200, "input": 4, "output": 16, "cacheRead": 0.4, "cacheWrite": 5},
        {"inputTokensAbove": 1000, "input": 6, "output": 24, "cacheRead": 0.6, "cacheWrite": 7.5}]}));
    let mut usage = Usage::from_value(input).unwrap_or_default();
    usage.cost = prices.cost(&usage);
    usage.to_value()["cost"].clone()
}

fn clamp(input: &Value) -> Value {
    let user = json!({"role": "user", "content": "x".repeat(input["chars"].as_u64().unwrap_or(0) as usize)});
    let messages = [Arc::new(Message::from_value(user).unwrap_or_default())];
    let number = |key: &str| input[key].as_u64().unwrap_or(0);
    limits::clamp_output(number("max"), limits::conversation_tokens(&messages), number("cw")).into()
}

fn levels(input: &Value) -> Value {
    let mut value = json!({"provider": "p", "id": "m", "api": "a"});
    for (key, field) in input.as_object().into_iter().flatten() {
        value[key] = field.clone();
    }
    let Some(model) = Model::from_json(&value) else { return Value::Null };
    let all = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
    let clamped: Map<String, Value> =
        all.iter().map(|level| ((*level).to_owned(), model.clamp_level(level).into())).collect();
    json!({"supported": model.thinking_levels, "clamp": clamped})
}
