//! Answers of services: whatever arrives, in whatever pieces, becomes one well-formed stream of events (P41–P46).

use branchline::message::{Message, Role, StopReason};
use branchline::providers::repair::{TargetModel, repair};
use branchline::providers::{BlockEvent, Model, PartialJson, Prices, StreamEvent, read_recorded_pieces};
use serde_json::{Value, json};

use super::Dice;

pub(crate) fn check(api: &str, data: &[u8]) {
    let mut dice = Dice::new(data);
    let events = read(api, &[data]);
    let message = well_formed(api, &events);
    bounded(data, &events, &message);
    goes_on(api, message);
    assert_eq!(comparable(&read(api, &dice.pieces(data))), comparable(&events), "it depends on the pieces");
    if dice.below(256) == 0 {
        let long = prolonged(data, &mut dice);
        well_formed(api, &read(api, &[&long]));
    }
}

fn read(api: &str, pieces: &[&[u8]]) -> Vec<StreamEvent> {
    let mut model = Model::new("p", "m", api);
    model.prices = Prices::from_json(&json!({"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75,
        "tiers": [{"inputTokensAbove": 200_000, "input": 6, "output": 22.5, "cacheRead": 0.6, "cacheWrite": 7.5}]}));
    read_recorded_pieces(model, pieces).expect("the protocol is known")
}

/// A block as its events tell it.
#[derive(Default)]
struct Told {
    kind: &'static str,
    text: String,
    end: Option<Value>,
}

/// Start, then blocks that begin in order, grow while they are open and end once, then one end; and the message says the
/// same as the events.
fn well_formed(api: &str, events: &[StreamEvent]) -> Message {
    let [StreamEvent::Start(start), middle @ .., StreamEvent::Done(message)] = events else {
        panic!("no start or no end: {events:?}");
    };
    assert!(start.blocks().next().is_none() && start.get_str("stopReason") == Some("pending"));
    let mut blocks: Vec<Told> = Vec::new();
    let mut usage = None;
    for event in middle {
        match event {
            StreamEvent::Block(event) => block_event(event, &mut blocks),
            StreamEvent::Usage(known) => usage = Some(*known),
            other => panic!("{other:?} in the middle"),
        }
    }
    if let Some(usage) = usage {
        assert_eq!(message.usage(), Some(usage), "the last usage is not the message's");
        let cost = usage.cost;
        let sum = cost.input + cost.output + cost.cache_read + cost.cache_write;
        assert!(cost.total.is_finite() && cost.total >= 0.0 && sum.is_finite(), "{cost:?}");
        assert!(cost.total_from_provider == Some(true) || (cost.total - sum).abs() <= sum * 1e-9, "{cost:?}");
    }
    let content = message.get("content").and_then(Value::as_array).expect("content is a list");
    assert_eq!(content.len(), blocks.len());
    let failed = match message.stop_reason() {
        Some(StopReason::Stop | StopReason::Length | StopReason::ToolUse) => false,
        Some(StopReason::Error) => true,
        other => panic!("stopReason {other:?}"),
    };
    assert_eq!(failed, message.get_str("errorMessage").is_some_and(|error| !error.trim().is_empty()), "{message:?}");
    for (told, block) in blocks.iter().zip(content) {
        assert!(failed || told.end.is_some(), "a block never ends: {block}");
        same_block(api, told, block);
    }
    message.clone()
}

fn block_event(event: &BlockEvent, blocks: &mut Vec<Told>) {
    let name = event.type_name();
    let (kind, step) = name.split_once('_').expect("two words");
    if step == "start" {
        assert_eq!(event.index(), blocks.len(), "blocks begin in order");
        blocks.push(Told { kind: name.split('_').next().unwrap_or_default(), ..Told::default() });
        return;
    }
    let block = blocks.get_mut(event.index()).unwrap_or_else(|| panic!("{name} of a block that never began"));
    assert!(block.kind == kind && block.end.is_none(), "{name} of a {} block, ended: {:?}", block.kind, block.end);
    match event {
        BlockEvent::TextDelta { delta, .. } | BlockEvent::ThinkingDelta { delta, .. } => {
            block.text.push_str(delta);
        }
        BlockEvent::ToolCallDelta { delta, .. } => block.text.push_str(delta),
        BlockEvent::TextEnd { content, .. } | BlockEvent::ThinkingEnd { content, .. } => {
            block.end = Some((&**content).into());
        }
        BlockEvent::ToolCallEnd { tool_call, .. } => block.end = Some((**tool_call).clone()),
        _ => unreachable!(),
    }
}

/// What was told of a block is what the message holds. A final form of the Responses API may replace what streamed.
fn same_block(api: &str, told: &Told, block: &Value) {
    let replaces = api == "openai-responses";
    match (told.kind, &told.end) {
        ("text" | "thinking", end) => {
            assert_eq!(block["type"], told.kind);
            let text = block[told.kind].as_str().expect("a text");
            assert!(end.as_ref().is_none_or(|end| end == text));
            assert!(replaces || block["redacted"] == true || told.text == text, "{:?} became {text:?}", told.text);
        }
        ("toolcall", end) => {
            assert!(block["type"] == "toolCall" && block["arguments"].is_object());
            match end {
                Some(end) => {
                    assert!(["id", "name", "arguments", "argumentsError"].iter().all(|key| end[key] == block[key]))
                }
                None if replaces => {}
                None => {
                    let mut partial = PartialJson::new();
                    partial.push(&told.text);
                    assert_eq!(block["arguments"], Value::Object(partial.object()));
                }
            }
        }
        (other, _) => panic!("a {other} block"),
    }
}

/// Nothing grows beyond what was sent.
fn bounded(data: &[u8], events: &[StreamEvent], message: &Message) {
    // A byte that is no UTF-8 becomes three, a control character six; a message has a few hundred bytes of its own.
    assert!(events.len() <= 4 + data.len(), "{} events of {} bytes", events.len(), data.len());
    assert!(message.to_json().len() <= 1000 + 30 * data.len(), "{} bytes of {}", message.to_json().len(), data.len());
}

/// The conversation goes on with it, at the same and at another model: every call has a result (S159–S162).
fn goes_on(api: &str, message: Message) {
    let user = |text| Message::from_value(json!({"role": "user", "content": text})).expect("a message");
    let messages = [user("a"), message, user("b")];
    for (provider, id) in [("p", "m"), ("other", "n")] {
        let target = TargetModel { provider: provider.into(), api: api.into(), id: id.into(), images: true };
        let repaired = repair(&messages, &target, None);
        let calls: usize = repaired.iter().map(|message| message.tool_calls().count()).sum();
        let results = repaired.iter().filter(|message| message.role() == Role::ToolResult).count();
        assert!(results <= calls, "{results} results of {calls} calls");
        assert!(
            repaired
                .iter()
                .flat_map(Message::tool_calls)
                .all(|call| { repaired.iter().any(|message| message.get_str("toolCallId") == Some(call.id)) })
        );
    }
}

/// What two readings must have in common: everything but times, and the ids that are made from them.
fn comparable(events: &[StreamEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| match event {
            StreamEvent::Start(message) | StreamEvent::Done(message) => {
                let mut value = message.clone().into_value();
                let object = value.as_object_mut().expect("an object");
                object.shift_remove("timestamp");
                object.shift_remove("durationMs");
                for block in object.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
                    forget_time(block);
                }
                value.to_string()
            }
            StreamEvent::Block(BlockEvent::ToolCallStart { index, id, name }) => {
                let mut call = json!({"id": **id, "name": **name});
                forget_time(&mut call);
                format!("call {index} {call}")
            }
            StreamEvent::Block(BlockEvent::ToolCallEnd { index, tool_call }) => {
                let mut call = (**tool_call).clone();
                forget_time(&mut call);
                format!("call {index} {call}")
            }
            other => format!("{other:?}"),
        })
        .collect()
}

/// `<name>_<time>_<count>` is an id made here (P521).
fn forget_time(call: &mut Value) {
    let (Some(id), Some(name)) = (call["id"].as_str(), call["name"].as_str()) else { return };
    if let Some((time, count)) = id.strip_prefix(name).and_then(|rest| rest.strip_prefix('_')?.split_once('_'))
        && time.len() == 13
        && time.bytes().chain(count.bytes()).all(|byte| byte.is_ascii_digit())
    {
        call["id"] = "made here".into();
    }
}

/// One of its events many times over: work that grows with the square of the answer does not come to an end.
fn prolonged(data: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut events: Vec<&[u8]> = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(2).position(|two| two == b"\n\n") {
        let (event, after) = rest.split_at(at + 2);
        events.push(event);
        rest = after;
    }
    if events.is_empty() {
        return data.to_vec();
    }
    let at = dice.below(events.len());
    let times = 1 + 0x2_0000 / events[at].len();
    [&events[..at].concat(), &events[at].repeat(times), &events[at..].concat()[..]].concat()
}
