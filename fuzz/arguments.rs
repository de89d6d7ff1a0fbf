//! Arguments of calls, while they arrive and complete (P45–P47).

use branchline::providers::{PartialJson, parse_arguments, repair_strings};
use serde_json::{Map, Value};

use super::Dice;

pub(crate) fn check(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let mut dice = Dice::new(data);
    let whole = read(&[text]);
    assert_eq!(read(&cut(text, &mut dice)), whole, "it depends on the pieces");

    let repaired = repair_strings(text);
    assert_eq!(repair_strings(&repaired), repaired, "a repaired text is repaired again");
    let complete = parse_arguments(text);
    match &complete.error {
        Some(error) => assert!(complete.object.is_empty() && error.ends_with(text) && error.len() > text.len()),
        // The parser refuses a repaired text if it was not told so.
        None if repaired == text => assert_eq!(object(whole), complete.object, "the preview ends elsewhere"),
        None => {}
    }
    if let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
        assert_eq!(repaired, text, "valid JSON is changed by the repair");
        assert_eq!(Value::Object(complete.object), value, "valid JSON is read as something else");
        if text.len() < 300 && !repeats_a_key(text, &value) {
            for (at, _) in text.char_indices() {
                if let Some(so_far) = read(&[&text[..at]]) {
                    assert!(leads_to(&so_far, &value), "{so_far} is no beginning of {value}");
                }
            }
        }
    }
    if dice.below(512) == 0 && !text.is_empty() {
        // A quadratic reader does not come to an end here.
        let long = text.repeat(1 + 0x4_0000 / text.len());
        read(&cut(&long, &mut dice));
        let _ = parse_arguments(&long);
    }
}

fn read(pieces: &[&str]) -> Option<Value> {
    let mut partial = PartialJson::new();
    pieces.iter().for_each(|piece| partial.push(piece));
    partial.value()
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// Pieces of at least one character each.
fn cut<'a>(text: &'a str, dice: &mut Dice) -> Vec<&'a str> {
    let mut out = Vec::new();
    let mut from = 0;
    for piece in dice.pieces(text.as_bytes()) {
        let mut to = (piece.as_ptr() as usize - text.as_ptr() as usize) + piece.len();
        while !text.is_char_boundary(to) {
            to += 1;
        }
        if to > from {
            out.push(&text[from..to]);
            from = to;
        }
    }
    out
}

/// Whether something is shown that can grow into the complete value.
fn leads_to(so_far: &Value, value: &Value) -> bool {
    match (so_far, value) {
        (Value::String(so_far), Value::String(value)) => value.starts_with(so_far.as_str()),
        (Value::Number(_), Value::Number(_)) => true,
        (Value::Array(so_far), Value::Array(value)) => {
            so_far.len() <= value.len()
                && so_far.iter().zip(value).enumerate().all(|(at, (so_far_item, item))| match at + 1 == so_far.len() {
                    true => leads_to(so_far_item, item),
                    false => so_far_item == item,
                })
        }
        (Value::Object(so_far), Value::Object(value)) => so_far.iter().enumerate().all(|(at, (key, member))| {
            value.get(key).is_some_and(|whole| match at + 1 == so_far.len() {
                true => leads_to(member, whole),
                false => member == whole,
            })
        }),
        (so_far, value) => so_far == value,
    }
}

/// The last of equal keys wins, so what is shown before may differ. Told by the count of colons outside of strings.
fn repeats_a_key(text: &str, value: &Value) -> bool {
    let (mut colons, mut inside, mut escaped) = (0, false, false);
    for character in text.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            ':' if !inside => colons += 1,
            _ => {}
        }
    }
    colons != members(value)
}

fn members(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(members).sum(),
        Value::Object(object) => object.len() + object.values().map(members).sum::<usize>(),
        _ => 0,
    }
}
