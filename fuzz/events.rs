//! Server-sent events: the reader says what a reader says that sees the whole text at once, wherever the reads are cut.

use branchline::providers::sse::SseReader;

use super::Dice;

/// Names and data, the last id, the pause for reconnecting, and whether an event was too large.
#[derive(Debug, PartialEq, Default)]
struct Told {
    events: Vec<(String, String)>,
    id: String,
    retry: Option<u64>,
    too_large: bool,
}

pub(crate) fn check(data: &[u8]) {
    let mut dice = Dice::new(data);
    let limit = [4, 40, 1 << 20][dice.below(3)];
    let expected = at_once(data, limit);
    assert_eq!(read(&[data], limit), expected, "in one piece, limit {limit}");
    assert_eq!(read(&dice.pieces(data), limit), expected, "in pieces, limit {limit}");
    let size: usize = expected.events.iter().map(|(name, data)| name.len() + data.len()).sum();
    // A byte that is no UTF-8 becomes three.
    assert!(size <= 3 * data.len());
    if dice.below(1024) == 0 && !data.is_empty() {
        // A quadratic reader does not come to an end here.
        let long = data.repeat(1 + 0x10_0000 / data.len());
        read(&long.chunks(3).collect::<Vec<_>>(), usize::MAX);
    }
}

fn read(pieces: &[&[u8]], limit: usize) -> Told {
    let mut reader = SseReader::new(limit);
    let mut told = Told::default();
    'all: for piece in pieces {
        reader.push(piece);
        loop {
            match reader.next_event() {
                Ok(Some(event)) => told.events.push((event.name.into_owned(), event.data.into_owned())),
                Ok(None) => break,
                Err(_) => {
                    told.too_large = true;
                    assert!(reader.finish().is_none() && reader.next_event().is_err(), "it goes on after an error");
                    break 'all;
                }
            }
        }
    }
    if !told.too_large {
        told.events.extend(reader.finish().map(|event| (event.name.into_owned(), event.data.into_owned())));
        assert!(reader.finish().is_none(), "it ends twice");
    }
    told.id = reader.last_id().to_owned();
    told.retry = reader.retry_ms();
    told
}

/// The same in the plainest words (P227).
fn at_once(text: &[u8], limit: usize) -> Told {
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut told = Told::default();
    let (mut name, mut data): (&[u8], Option<Vec<u8>>) = (b"", None);
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let line = &rest[..end.unwrap_or(rest.len())];
        rest = match &rest[line.len()..] {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => &[],
        };
        if line.len() > limit {
            told.too_large = true;
            return told;
        }
        if line.is_empty() {
            told.events.extend(data.take().map(|data| (lossy(name), lossy(&data))));
            name = b"";
            continue;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        match field {
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            b"event" => name = value,
            b"id" if !value.contains(&0) => told.id = lossy(value),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                told.retry = lossy(value).parse().ok();
            }
            _ => {}
        }
        if end.is_some() && data.as_ref().map_or(0, Vec::len) + name.len() > limit {
            told.too_large = true;
            return told;
        }
    }
    told.events.extend(data.map(|data| (lossy(name), lossy(&data))));
    told
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
