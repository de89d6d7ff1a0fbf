//! What a thinking level means to a Gemini model (P508–P510).

use serde_json::{Value, json};

use super::super::{Model, Request};
use super::generation;

/// The `thinkingConfig`; `None` for a model that does not reason.
///
/// Errors: the model's map has a word for the level that the service does not know.
pub(super) fn config(request: &Request) -> Result<Option<Value>, String> {
    let model = &*request.model;
    if !model.reasoning {
        return Ok(None);
    }
    let by_level = thinks_by_level(&model.id);
    if request.thinking_level == "off" {
        if !by_level {
            return Ok(Some(json!({"thinkingBudget": 0})));
        }
        // Such a model cannot stop thinking; as little as it can is nearest.
        let lowest = model.thinking_levels.iter().find(|level| *level != "off");
        return lowest.map(|level| Ok(json!({"thinkingLevel": word(model, level)?}))).transpose();
    }
    let level = model.clamp_level(&request.thinking_level);
    if by_level {
        return Ok(Some(json!({"includeThoughts": true, "thinkingLevel": word(model, level)?})));
    }
    let own = &request.options.thinking_budgets;
    let own = own.get(level).or_else(|| own.get("high").filter(|_| matches!(level, "xhigh" | "max")));
    let budget = own.map_or_else(|| budget(&model.id, level), |own| i64::try_from(*own).unwrap_or(i64::MAX));
    Ok(Some(json!({"includeThoughts": true, "thinkingBudget": budget})))
}

fn thinks_by_level(id: &str) -> bool {
    match generation(id) {
        Some(3) => id.contains("pro") || id.contains("flash"),
        Some(generation) => generation >= 4,
        None => id.starts_with("gemma-4") || matches!(id, "gemini-flash-latest" | "gemini-flash-lite-latest"),
    }
}

fn word(model: &Model, level: &str) -> Result<&'static str, String> {
    let word = model.level_word(level).flatten().unwrap_or(match level {
        "xhigh" | "max" => "high",
        level => level,
    });
    match word {
        "minimal" => Ok("MINIMAL"),
        "low" => Ok("LOW"),
        "medium" => Ok("MEDIUM"),
        "high" => Ok("HIGH"),
        other => {
            Err(format!("the thinking level {level} of {} is mapped to {other:?}, which Gemini has not", model.id))
        }
    }
}

/// The usual budget; -1 lets the model decide.
fn budget(id: &str, level: &str) -> i64 {
    let budgets = if id.contains("2.5-pro") {
        [128, 2048, 8192, 32_768]
    } else if id.contains("2.5-flash-lite") {
        [512, 2048, 8192, 24_576]
    } else if id.contains("2.5-flash") {
        [128, 2048, 8192, 24_576]
    } else {
        return -1;
    };
    match level {
        "minimal" => budgets[0],
        "low" => budgets[1],
        "medium" => budgets[2],
        _ => budgets[3],
    }
}
