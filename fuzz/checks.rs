//! What must hold for any input. Shared by the fuzz targets and by the test that runs their seeds.

use branchline::providers::sse::SseReader;
use branchline::providers::{Model, PartialJson, StreamEvent, parse_arguments, read_recorded, repair_strings};

/// Input for each target, by its name.
#[allow(dead_code)]
pub(crate) fn check(target: &str, data: &[u8]) {
    match target {
        "sse" => sse(data),
        "partial_json" => partial_json(data),
        "anthropic" => stream("anthropic-messages", data),
        "google" => stream("google-generative-ai", data),
        "openai_chat" => stream("openai-completions", data),
        "openai_responses" => stream("openai-responses", data),
        other => panic!("no target {other}"),
    }
}

/// The first byte says where the reads are cut; the events must not depend on it.
pub(crate) fn sse(data: &[u8]) {
    let Some((size, text)) = data.split_first() else { return };
    let read = |size: usize| {
        let mut reader = SseReader::new(1 << 20);
        let mut events = Vec::new();
        for piece in text.chunks(size.max(1)) {
            reader.push(piece);
            while let Ok(Some(event)) = reader.next_event() {
                events.push((event.name.into_owned(), event.data.into_owned()));
            }
        }
        events.extend(reader.finish().map(|event| (event.name.into_owned(), event.data.into_owned())));
        events
    };
    assert_eq!(read(usize::from(*size)), read(text.len()));
}

/// A view does not depend on the pieces, and what is valid ends as it is read at once.
pub(crate) fn partial_json(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut whole = PartialJson::new();
    whole.push(&text);
    let mut pieces = PartialJson::new();
    for (at, character) in text.char_indices() {
        pieces.push(&text[at..at + character.len_utf8()]);
    }
    assert_eq!(whole.value(), pieces.value());
    let _ = repair_strings(&text);
    let complete = parse_arguments(&text);
    if complete.error.is_none() && repair_strings(&text) == text && text.len() < 4096 {
        assert_eq!(whole.object(), complete.object);
    }
}

/// Whatever arrives, a response ends exactly once.
pub(crate) fn stream(api: &str, data: &[u8]) {
    let Some(events) = read_recorded(Model::new("p", "m", api), data) else { return };
    let ends = events.iter().filter(|event| matches!(event, StreamEvent::Done(_))).count();
    assert!(ends == 1 && matches!(events.last(), Some(StreamEvent::Done(_))));
}
