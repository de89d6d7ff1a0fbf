//! Changes to recorded answers that keep them readable: most random bytes only break the JSON of one event.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Value, json};

use crate::checks::Dice;

/// Words the protocols know: kinds of events, blocks and items, reasons to stop, names of fields.
const WORDS: &str = "message_start content_block_start content_block_delta content_block_stop message_delta message_stop \
    error ping text thinking redacted_thinking tool_use text_delta thinking_delta input_json_delta signature_delta end_turn \
    stop_sequence pause_turn max_tokens refusal sensitive STOP MAX_TOKENS SAFETY CONTINUATION stop length tool_calls \
    function_call content_filter response.created response.output_item.added response.output_item.done \
    response.output_text.delta response.output_text.done response.refusal.delta response.reasoning_summary_text.delta \
    response.reasoning_summary_part.done response.reasoning_text.delta response.function_call_arguments.delta \
    response.function_call_arguments.done response.custom_tool_call_input.delta response.completed response.incomplete \
    response.failed message reasoning custom_tool_call output_text summary_text reasoning.text reasoning.summary \
    reasoning.encrypted completed incomplete failed cancelled max_output_tokens flex priority final_answer";
const KEYS: &str = "type index id name delta content text thinking signature data input usage error message stop_reason \
    partial_json choices finish_reason tool_calls function arguments reasoning_content reasoning reasoning_details format \
    output_index item_id item call_id response status output summary encrypted_content incomplete_details code phase \
    service_tier candidates parts functionCall args thought thoughtSignature finishReason usageMetadata promptFeedback \
    blockReason responseId modelVersion prompt_tokens completion_tokens input_tokens output_tokens cost cost_details is_byok";

/// libFuzzer's mutator for answers: half of the time its own, half of the time one that knows events.
pub(crate) fn answer(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = Dice::new(&seed.to_le_bytes());
    if dice.below(2) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let text = String::from_utf8_lossy(&data[..size]).into_owned();
    let mut events: Vec<String> = text.split_inclusive("\n\n").map(str::to_owned).collect();
    for _ in 0..=dice.below(3) {
        change_events(&mut events, &mut dice);
    }
    let changed = events.concat().into_bytes();
    if changed.is_empty() || changed.len() > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..changed.len()].copy_from_slice(&changed);
    changed.len()
}

fn change_events(events: &mut Vec<String>, dice: &mut Dice) {
    if events.is_empty() {
        return;
    }
    let (at, other) = (dice.below(events.len()), dice.below(events.len()));
    match dice.below(8) {
        0 => drop(events.remove(at)),
        1 => events.insert(at, events[other].clone()),
        2 => events.swap(at, other),
        3 => {
            let from = data_of(&events[other]);
            change_data(&mut events[at], from, dice);
        }
        _ => change_data(&mut events[at], None, dice),
    }
}

fn data_of(event: &str) -> Option<Value> {
    event.lines().find_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok())
}

/// Changes one place in the JSON of an event; `other` is one whose parts may be used.
fn change_data(event: &mut String, other: Option<Value>, dice: &mut Dice) {
    let Some(mut data) = data_of(event) else { return };
    let new = match other {
        Some(other) => nth(&other, dice.below(places(&other))),
        None => Some(some_value(dice)),
    };
    let place = dice.below(places(&data));
    if let Some(target) = nth_mut(&mut data, &mut { place }) {
        match (target, dice.below(4)) {
            (Value::Object(object), 0) => {
                let key = word(KEYS, dice);
                object.insert(key, new.unwrap_or_default());
            }
            (Value::Object(object), 1) if !object.is_empty() => {
                let key = object.keys().nth(dice.below(object.len())).cloned().unwrap_or_default();
                object.shift_remove(&key);
            }
            (Value::Array(items), 0 | 1) => items.push(new.unwrap_or_default()),
            (Value::Array(items), 2) if !items.is_empty() => drop(items.remove(dice.below(items.len()))),
            (Value::String(text), 0) => text.push_str(&some_value(dice).to_string()),
            (target, _) => *target = new.unwrap_or_default(),
        }
    }
    let name = data.get("type").and_then(Value::as_str).filter(|_| event.starts_with("event:") && dice.below(4) > 0);
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    *event = format!("{name}data: {data}\n\n");
}

fn word(words: &str, dice: &mut Dice) -> String {
    words.split_whitespace().nth(dice.below(words.split_whitespace().count())).unwrap_or_default().to_owned()
}

fn some_value(dice: &mut Dice) -> Value {
    match dice.below(18) {
        0 => Value::Null,
        1 => false.into(),
        2 => true.into(),
        3 => "".into(),
        4 => "a\n\u{0}é🍋\"\\".into(),
        5 => "{\"a\":[1,{\"b\":\"".into(),
        6 => dice.below(4).into(),
        7 => u64::MAX.into(),
        8 => (-1).into(),
        9 => 1.5.into(),
        10 => 1e300.into(),
        11 => json!([]),
        12 => json!({}),
        13 => json!([{"type": word(WORDS, dice), "text": "x"}]),
        14 => json!({"type": word(WORDS, dice), "id": "i", "name": "n", "text": "t", "index": dice.below(3)}),
        _ => word(WORDS, dice).into(),
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(object) => object.values().collect(),
        _ => Vec::new(),
    }
}

fn places(value: &Value) -> usize {
    1 + children(value).into_iter().map(places).sum::<usize>()
}

/// A part of a value, counted in the order it is written.
fn nth(value: &Value, at: usize) -> Option<Value> {
    let mut value = value.clone();
    nth_mut(&mut value, &mut { at }).cloned()
}

fn nth_mut<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth_mut(item, at)),
        Value::Object(object) => object.values_mut().find_map(|item| nth_mut(item, at)),
        _ => None,
    }
}
