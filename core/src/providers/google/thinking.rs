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
    let level = model.clamp_level(&request.thinking_level);
    if request.thinking_level == "off" || level == "off" {
        // A model that cannot stop thinking does it as little as it can.
        return Ok(Some(match level {
            level if by_level && level != "off" => json!({"thinkingLevel": word(model, level)?.to_uppercase()}),
            _ => json!({"thinkingBudget": 0}),
        }));
    }
    let word = word(model, level)?;
    if by_level {
        return Ok(Some(json!({"includeThoughts": true, "thinkingLevel": word.to_uppercase()})));
    }
    let own = &request.options.thinking_budgets;
    let budget = own.get(word).map_or_else(|| budget(&model.id, word), |own| i64::try_from(*own).unwrap_or(i64::MAX));
    Ok(Some(json!({"includeThoughts": true, "thinkingBudget": budget})))
}

/// Gemini 3 pro and flash, everything from Gemini 4 on, Gemma 4; with something in front of the name too.
fn thinks_by_level(id: &str) -> bool {
    let id = id.to_lowercase();
    let name = id.find("gemini-").map_or("", |at| &id[at..]);
    match generation(name) {
        Some(3) => {
            let kind = name["gemini-3".len()..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
            kind.starts_with("-pro") || kind.starts_with("-flash")
        }
        Some(generation) => generation >= 4,
        None => {
            ["gemma-4", "gemma4"].iter().any(|gemma| id.contains(gemma))
                || matches!(&*id, "gemini-flash-latest" | "gemini-flash-lite-latest")
        }
    }
}

/// The service's word for a level, in lower case.
fn word(model: &Model, level: &str) -> Result<&'static str, String> {
    let word = model.level_word(level).flatten().unwrap_or(match level {
        "xhigh" | "max" => "high",
        level => level,
    });
    ["minimal", "low", "medium", "high"].into_iter().find(|known| known.eq_ignore_ascii_case(word)).ok_or_else(|| {
        format!("the thinking level {level} of {} is mapped to {word:?}, which Gemini has not", model.id)
    })
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
