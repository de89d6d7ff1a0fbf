//! Files of versions 1 and 2 become version 3 (S61–S66). The only time lines are ever rewritten.

use std::collections::HashSet;

use crate::json;

use super::append::fresh_id_unless;
use super::fact::{FactBlock, is_blank, string_is};
use super::header::{FirstLine, Header, first_line};
use super::ids::IdSource;

/// A migrated file.
pub(crate) struct Migrated {
    /// Every parsed line in version 3, each with its LF.
    pub(crate) bytes: Vec<u8>,
    /// Lines that are not JSON. The rewrite leaves them out (S66), so the caller keeps them elsewhere.
    pub(crate) dropped: Vec<u8>,
    /// What is wrong with them.
    pub(crate) damaged: FactBlock,
}

/// Whether a file with this header needs [`migrate`] (S61).
pub(crate) fn is_needed(header: &Header) -> bool {
    header.version() < 3.0
}

/// Migrates a whole file. `bytes` holds a valid header.
pub(crate) fn migrate(bytes: &[u8], header: &Header, ids: &dyn IdSource) -> Migrated {
    // With a byte order mark in front, the header would be no JSON and be left out (S53).
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut offset = (bytes.len() - text.len()) as u64;
    let mut dropped = Vec::new();
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut damaged = FactBlock::default();
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        damaged.lines = number as u32;
        match first_line(line) {
            FirstLine::Object(_) | FirstLine::Value => lines.push(json::rewrite(line)),
            FirstLine::Nothing if is_blank(line) => {}
            FirstLine::Nothing => {
                dropped.extend_from_slice(line);
                dropped.push(b'\n');
                damaged.read_line(line, offset, true);
            }
        }
        offset += line.len() as u64 + 1;
    }
    if header.version() < 2.0 {
        link_lines(&mut lines, ids);
    }
    let mut out = Vec::with_capacity(bytes.len() + lines.len() * 48);
    for mut line in lines {
        if is_header(&line) {
            line = json::replace_member(&line, "version", b"3");
        } else if is_hook_message(&line)
            && let Some(message) = json::get(&line, "message")
        {
            let message = json::replace_member(message, "role", b"\"custom\"");
            line = json::replace_member(&line, "message", &message);
        }
        out.extend_from_slice(&line);
        out.push(b'\n');
    }
    Migrated { bytes: out, dropped, damaged }
}

/// 1 → 2: a linear list of lines becomes a chain (S62–S64).
fn link_lines(lines: &mut [Vec<u8>], ids: &dyn IdSource) {
    let mut parent = b"null".to_vec();
    let mut taken = HashSet::new();
    for at in 0..lines.len() {
        if !lines[at].starts_with(b"{") || is_header(&lines[at]) {
            continue;
        }
        // The reference does not look for collisions here (S14); among ten thousand entries one is likely enough.
        let id = fresh_id_unless(ids, |id| taken.contains(id));
        taken.insert(id.clone());
        let id = format!("\"{id}\"").into_bytes();
        let line = json::replace_member(&lines[at], "id", &id);
        lines[at] = json::replace_member(&line, "parentId", &parent);
        parent = id;
        if json::get(&lines[at], "type").is_some_and(|raw| string_is(raw, "compaction")) {
            lines[at] = with_first_kept_id(lines, at);
        }
    }
}

/// A compaction's index of a line becomes that line's id as it stands at this moment (S63, S64).
fn with_first_kept_id(lines: &[Vec<u8>], at: usize) -> Vec<u8> {
    let line = &lines[at];
    let raw =
        json::get(line, "firstKeptEntryIndex").filter(|raw| raw.first().is_some_and(|b| b"-0123456789".contains(b)));
    let Some(raw) = raw else { return line.clone() };
    let index: f64 = std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok()).unwrap_or(-1.0);
    let out = json::remove_member(line, "firstKeptEntryIndex");
    let target = lines.get(index as usize).filter(|_| index >= 0.0 && index.fract() == 0.0);
    let id = target
        .filter(|target| target.starts_with(b"{") && !is_header(target))
        .and_then(|target| json::get(target, "id"));
    match id {
        Some(id) => json::replace_member(&out, "firstKeptEntryId", id),
        None => json::remove_member(&out, "firstKeptEntryId"),
    }
}

fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"{") && json::get(line, "type").is_some_and(|raw| string_is(raw, "session"))
}

fn is_hook_message(line: &[u8]) -> bool {
    line.starts_with(b"{")
        && json::get(line, "type").is_some_and(|raw| string_is(raw, "message"))
        && (json::get(line, "message").filter(|message| message.starts_with(b"{")))
            .and_then(|message| json::get(message, "role"))
            .is_some_and(|raw| string_is(raw, "hookMessage"))
}
