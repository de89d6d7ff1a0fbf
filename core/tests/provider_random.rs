//! What services send may be anything: readers neither panic nor depend on how it is cut (P45, P227).

use branchline::providers::sse::SseReader;
use branchline::providers::{Model, PartialJson, StreamEvent, parse_arguments, read_recorded, repair_strings};
use proptest::prelude::*;
use serde_json::{Map, Value};

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("\\PC{0,6}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Cuts a text at characters.
fn pieces(text: &str, cuts: &[usize]) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (characters.len() + 1)).collect();
    places.extend([0, characters.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| characters[pair[0]..pair[1]].iter().collect()).collect()
}

fn events(bytes: &[u8], size: usize) -> Vec<(String, String)> {
    let mut reader = SseReader::default();
    let mut out = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        reader.push(piece);
        while let Ok(Some(event)) = reader.next_event() {
            out.push((event.name.into_owned(), event.data.into_owned()));
        }
    }
    out.extend(reader.finish().map(|event| (event.name.into_owned(), event.data.into_owned())));
    out
}

/// Shuffled parts of real answers.
fn answer() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n".to_owned()),
        Just("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"y\",\"input\":{}}}\n\n".to_owned()),
        Just("data: {\"type\":\"content_block_start\",\"index\":99999999999,\"content_block\":{\"type\":\"text\"}}\n\n".to_owned()),
        Just("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\"}}\n\n".to_owned()),
        Just("data: {\"type\":\"content_block_stop\",\"index\":0}\n\n".to_owned()),
        Just("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":18446744073709551615,\"input_tokens\":1e300}}\n\n".to_owned()),
        Just("data: {\"type\":\"message_stop\"}\n\n".to_owned()),
        Just("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\",\"thought\":true},{\"functionCall\":{\"name\":\"f\"}}]},\"finishReason\":\"STOP\"}]}\n\n".to_owned()),
        Just("data: [DONE]\n\n".to_owned()),
        "\\PC{0,20}".prop_map(|text| format!("data: {text}\n\n")),
        json().prop_map(|value| format!("data: {value}\n\n")),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #[test]
    fn events_do_not_depend_on_reads(bytes in prop::collection::vec(prop_oneof![
        Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), any::<u8>()], 0..120), size in 1_usize..9) {
        prop_assert_eq!(events(&bytes, size), events(&bytes, bytes.len()));
        let text = [b"data: x\r\ndata:", &bytes[..], b"\n\n"].concat();
        prop_assert_eq!(events(&text, size), events(&text, text.len()));
    }

    #[test]
    fn partial_arguments_end_as_the_complete_ones(value in json(), cuts in prop::collection::vec(any::<usize>(), 0..9)) {
        let text = serde_json::json!({"a": value}).to_string();
        let mut partial = PartialJson::new();
        for piece in pieces(&text, &cuts) {
            partial.push(&piece);
            let _ = partial.object();
        }
        prop_assert_eq!(Value::Object(partial.object()), Value::Object(parse_arguments(&text).object));
    }

    #[test]
    fn partial_views_do_not_depend_on_pieces(text in "[\\[\\]{},:\"\\\\u0-9a-ftrnlse. -]{0,60}", cuts in prop::collection::vec(any::<usize>(), 0..9)) {
        let mut whole = PartialJson::new();
        whole.push(&text);
        let mut cut = PartialJson::new();
        for piece in pieces(&text, &cuts) {
            cut.push(&piece);
        }
        prop_assert_eq!(whole.value(), cut.value());
        let _ = parse_arguments(&text);
        let _ = repair_strings(&text);
    }

    #[test]
    fn every_answer_ends_once(body in answer(), noise in prop::collection::vec(any::<u8>(), 0..20), at in any::<usize>()) {
        let mut body = body;
        let at = at % (body.len() + 1);
        body.splice(at..at, noise);
        for api in ["anthropic-messages", "google-generative-ai", "openai-completions", "openai-responses"] {
            let Some(events) = read_recorded(Model::new("p", "m", api), &body) else { continue };
            let ends = events.iter().filter(|event| matches!(event, StreamEvent::Done(_))).count();
            prop_assert_eq!(ends, 1);
            prop_assert!(matches!(events.last(), Some(StreamEvent::Done(_))));
        }
    }
}
