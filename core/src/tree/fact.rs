//! What the index needs to know of one line, read in a single pass that also validates the whole line.
//!
//! A block of lines becomes one [`FactBlock`]: fixed-size facts plus one text arena, so that worker threads can hand
//! over thousands of lines without an allocation for each.

use crate::blank;
use crate::json::{self, Kind, ObjectError};
use crate::message::Role;

use super::diagnostic::{DiagnosticKind, KEPT};
use super::kind::{EntryKind, MessagePlace};
use super::time;

/// Longest line that becomes an entry. Positions in a block's text arena are 32 bits wide, and an arena holds at most
/// one line that goes on past its block.
const MAX_LINE: u32 = 1 << 31;

/// A piece of a block's text arena.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

/// The `parentId` of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParentRef {
    /// `null`: a root (S11).
    Null,
    /// An id, which may or may not exist.
    Id(Span),
    /// No key, an empty string or something that is no string: a root that is not a child of `null` (S68).
    Unusable,
}

/// Facts that only a few lines have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extra {
    None,
    /// A label entry: target id, raw JSON of the label (empty span when absent) and raw JSON of the timestamp (S83).
    Label {
        target: Span,
        label: Span,
        timestamp: Span,
    },
    /// A session name, decoded (S85).
    Name(Span),
}

/// One entry line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fact {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Line number inside the block, counted from 0.
    pub(crate) line: u32,
    pub(crate) kind: EntryKind,
    pub(crate) message: MessagePlace,
    pub(crate) id: Span,
    pub(crate) parent: ParentRef,
    /// Entry timestamp in milliseconds, or [`time::UNREADABLE`].
    pub(crate) time: i64,
    pub(crate) extra: Extra,
}

/// One fault found while reading lines.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) offset: u64,
    pub(crate) line: u32,
    pub(crate) kind: DiagnosticKind,
    pub(crate) message: String,
}

/// The facts of a run of lines.
#[derive(Debug, Default)]
pub(crate) struct FactBlock {
    pub(crate) facts: Vec<Fact>,
    pub(crate) faults: Vec<Fault>,
    /// Faults beyond those kept.
    pub(crate) more_faults: u64,
    /// All lines, blank and bad ones included.
    pub(crate) lines: u32,
    text: Vec<u8>,
}

impl FactBlock {
    pub(crate) fn text(&self, span: Span) -> &str {
        // Only whole `str`s are pushed, so this cannot fail; an empty text is the harmless answer if it ever did.
        std::str::from_utf8(self.bytes(span)).unwrap_or("")
    }

    pub(crate) fn bytes(&self, span: Span) -> &[u8] {
        &self.text[span.start as usize..span.end as usize]
    }

    fn push(&mut self, bytes: &[u8]) -> Span {
        let start = self.text.len() as u32;
        self.text.extend_from_slice(bytes);
        Span { start, end: self.text.len() as u32 }
    }

    /// Pushes the decoded form of a raw JSON string; `None` if `raw` is not a string.
    fn push_string(&mut self, raw: &[u8]) -> Option<Span> {
        let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if inner.is_ascii() && memchr::memchr(b'\\', inner).is_none() {
            return Some(self.push(inner));
        }
        let decoded = json::decode_string(raw)?;
        Some(self.push(decoded.as_bytes()))
    }

    /// Reads one line (without its LF) that begins at `offset` of the file. `sealed` tells whether the LF was there.
    pub(crate) fn read_line(&mut self, line: &[u8], offset: u64, sealed: bool) {
        let number = self.lines;
        self.lines += 1;
        if let Err((kind, message)) = self.read_entry(line, offset, number) {
            let torn = !sealed && matches!(kind, DiagnosticKind::InvalidJson);
            let (kind, message) = match torn {
                true => {
                    (DiagnosticKind::TornTail, "the last line is incomplete; it is kept in the file and skipped".into())
                }
                false => (kind, message),
            };
            if self.faults.len() < KEPT {
                self.faults.push(Fault { offset, line: number, kind, message });
            } else {
                self.more_faults += 1;
            }
        }
    }

    fn read_entry(&mut self, line: &[u8], offset: u64, number: u32) -> Result<(), (DiagnosticKind, String)> {
        let mut raw = RawEntry::default();
        match json::members(line, &mut raw) {
            Ok(()) => {}
            Err(ObjectError::NotAnObject(kind)) => {
                return Err((
                    DiagnosticKind::NotAnObject,
                    format!("a JSON {} is not an entry; it is skipped", kind_name(kind)),
                ));
            }
            Err(ObjectError::Syntax(_)) if is_blank(line) => return Ok(()),
            Err(ObjectError::Syntax(_)) if memchr::memchr(0, line).is_some() => {
                return Err((
                    DiagnosticKind::NulBytes,
                    "the line holds NUL bytes where data was lost; it is skipped".into(),
                ));
            }
            Err(ObjectError::Syntax(error)) => {
                return Err((
                    DiagnosticKind::InvalidJson,
                    format!("not valid JSON at byte {} of the line; it is skipped", error.offset),
                ));
            }
        }
        if raw.is_header() {
            return Err((DiagnosticKind::ExtraHeader, "another session header; it is not an entry".into()));
        }
        let Some(len) = u32::try_from(line.len()).ok().filter(|len| *len <= MAX_LINE) else {
            return Err((DiagnosticKind::LineTooLong, "the line is longer than 2 GiB; it is skipped".into()));
        };
        let Some(id) = raw.id.and_then(|id| self.push_string(id)) else {
            return Err((
                DiagnosticKind::MissingId,
                "an object without a string id is not an entry; it is skipped".into(),
            ));
        };
        let kind = raw.kind();
        let parent = match raw.parent {
            Some(b"null") => ParentRef::Null,
            Some(b"\"\"") | None => ParentRef::Unusable,
            Some(text) => self.push_string(text).map_or(ParentRef::Unusable, ParentRef::Id),
        };
        let time = raw.timestamp.and_then(read_time).unwrap_or(time::UNREADABLE);
        let extra = match kind {
            EntryKind::Label => match raw.target.and_then(|target| self.push_string(target)) {
                Some(target) => Extra::Label {
                    target,
                    label: self.push(raw.label.unwrap_or_default()),
                    timestamp: self.push(raw.timestamp.unwrap_or_default()),
                },
                None => Extra::None,
            },
            EntryKind::SessionInfo => Extra::Name(raw.name.and_then(|name| self.push_string(name)).unwrap_or_default()),
            _ => Extra::None,
        };
        self.facts.push(Fact {
            offset,
            len,
            line: number,
            kind,
            message: raw.message_place(line),
            id,
            parent,
            time,
            extra,
        });
        Ok(())
    }
}

/// The raw values of a line's members that matter here.
#[derive(Debug, Default)]
pub(crate) struct RawEntry<'a> {
    pub(crate) entry_type: Option<&'a [u8]>,
    pub(crate) id: Option<&'a [u8]>,
    pub(crate) parent: Option<&'a [u8]>,
    pub(crate) timestamp: Option<&'a [u8]>,
    pub(crate) target: Option<&'a [u8]>,
    pub(crate) label: Option<&'a [u8]>,
    pub(crate) name: Option<&'a [u8]>,
    pub(crate) role: Option<&'a [u8]>,
    pub(crate) content: Option<&'a [u8]>,
    pub(crate) message: Option<&'a [u8]>,
}

impl<'a> json::Members<'a> for RawEntry<'a> {
    fn member(&mut self, depth: u8, key: &'a [u8], value: &'a [u8]) {
        if memchr::memchr(b'\\', key).is_some() {
            return self.escaped_member(depth, key, value);
        }
        let slot = match (depth, key) {
            (0, b"type") => &mut self.entry_type,
            (0, b"id") => &mut self.id,
            (0, b"parentId") => &mut self.parent,
            (0, b"timestamp") => &mut self.timestamp,
            (0, b"targetId") => &mut self.target,
            (0, b"label") => &mut self.label,
            (0, b"name") => &mut self.name,
            (1, b"role") => &mut self.role,
            (1, b"content") => &mut self.content,
            (0, b"message") => {
                // A second `message` that is no object takes the first one's fields with it.
                if !value.starts_with(b"{") {
                    (self.role, self.content) = (None, None);
                }
                &mut self.message
            }
            _ => return,
        };
        *slot = Some(value);
    }

    fn descend(&mut self, key: &'a [u8]) -> bool {
        let message = json::raw_str_eq(key, "message");
        if message {
            (self.role, self.content) = (None, None);
        }
        message
    }
}

impl<'a> RawEntry<'a> {
    /// Keys written with escapes (`"\u0069d"`) are the same keys; nobody writes them, so they may be slow.
    #[cold]
    fn escaped_member(&mut self, depth: u8, key: &'a [u8], value: &'a [u8]) {
        const KEYS: [&str; 10] =
            ["type", "id", "parentId", "timestamp", "targetId", "label", "name", "role", "content", "message"];
        if let Some(key) = KEYS.iter().find(|name| json::raw_str_eq(key, name)) {
            json::Members::member(self, depth, key.as_bytes(), value);
        }
    }

    /// The line is a session header (S57).
    pub(crate) fn is_header(&self) -> bool {
        self.entry_type.is_some_and(|raw| string_is(raw, "session"))
    }

    fn message_place(&self, line: &[u8]) -> MessagePlace {
        let Some(message) = self.message.filter(|message| message.starts_with(b"{")) else {
            return MessagePlace::default();
        };
        // Both lie in the same line, so the distance of their beginnings is the position.
        let at = message.as_ptr().addr() - line.as_ptr().addr();
        let is_last = at + message.len() + 1 == line.len();
        MessagePlace {
            at: u16::try_from(at).ok().filter(|_| is_last).unwrap_or(0),
            exists: true,
            has_content: self.content.is_some_and(|content| content != b"null"),
        }
    }

    fn kind(&self) -> EntryKind {
        let Some(entry_type) = self.entry_type else { return EntryKind::Unknown };
        if entry_type == b"\"message\"" || string_is(entry_type, "message") {
            let role = match self.role {
                Some(raw) => json::decode_string(raw).map_or(Role::Other, |role| Role::parse(&role)),
                None => Role::Other,
            };
            return EntryKind::Message(role);
        }
        json::decode_string(entry_type).map_or(EntryKind::Unknown, |name| EntryKind::parse(&name))
    }
}

/// Whether a raw JSON value is the string `text`.
pub(crate) fn string_is(raw: &[u8], text: &str) -> bool {
    raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).is_some_and(|inner| json::raw_str_eq(inner, text))
}

/// Milliseconds of a raw JSON string that is a time.
///
/// Other values count as JavaScript takes them for a time: a number is milliseconds, `null` is their zero.
pub(crate) fn read_time(raw: &[u8]) -> Option<i64> {
    /// The last time there is, in milliseconds before or after the epoch.
    const END: f64 = 8.64e15;
    match raw {
        [b'"', inner @ .., b'"'] => time::parse_iso(std::str::from_utf8(inner).ok()?),
        b"null" | b"false" => Some(0),
        b"true" => Some(1),
        number => {
            let ms: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
            (ms.abs() <= END).then_some(ms as i64)
        }
    }
}

/// Only white space (S51).
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.utf8_chunks().all(|chunk| blank::trim(chunk.valid()).is_empty() && chunk.invalid().is_empty())
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Number => "number",
        Kind::True | Kind::False => "boolean",
        Kind::Null => "null",
    }
}
