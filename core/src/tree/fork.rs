//! New session files made from old ones: a path, a whole file, an export, an empty successor (S90–S99, S113).
//!
//! Lines are copied byte for byte; only the `parentId` of an entry whose parent was left out, and a compaction's
//! reference to a left-out label, are changed in place. So nothing another program wrote is lost on the way.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorCode, Result};
use crate::json;

use super::append::{fresh_id_unless, not_found};
use super::copy::Output;
use super::fact::read_time;
use super::header::Header;
use super::index::{Index, ORPHAN, Place, ROOT};
use super::kind::{EntryKind, MessagePlace};
use super::location;
use super::new_entry::LineWriter;
use super::open::{session_directory, without_mark};
use super::options::{CreateOptions, OpenOptions};
use super::time::{UNREADABLE, format_iso};
use super::tree::{State, Tree};

impl Tree {
    /// A new session holding the path to `leaf` (S90–S96). Ids and times stay; labels on the path are left out, and the
    /// current labels of what was kept are added at the end. This tree is untouched.
    ///
    /// The new file is in the same directory and exists at once if the path holds a user or assistant message.
    ///
    /// # Errors
    /// `entry_not_found`; `storage_changed`; `storage_failed`, after which nothing of the new file is left.
    pub fn extract_branch(&self, leaf: &str) -> Result<Tree> {
        self.refresh()?; // labels that another program has set meanwhile
        let state = self.read();
        let path = state.path(Some(leaf));
        if path.is_empty() {
            return Err(not_found(leaf));
        }
        let parent = state.log.path().map(|path| path.to_string_lossy().into_owned());
        let (header, path_new) = self.successor(parent.as_deref());
        let kept: Vec<u32> =
            path.iter().copied().filter(|node| state.index.node(*node).kind() != EntryKind::Label).collect();
        let has_conversation = kept.iter().any(|node| state.index.node(*node).kind().is_conversation());
        let write_to = path_new.as_deref().filter(|_| has_conversation);
        let mut out = Output::start(self, &header, write_to)?;
        let index = match copy_path(&state, &path, &kept, &mut out, self) {
            Ok(index) => index,
            Err(error) => return Err(out.discard(error)),
        };
        let log = out.finish(self, path_new)?;
        drop(state);
        Ok(Tree::from_state(State::new(index, log, header), (*self.shared).clone()))
    }

    /// An empty new session in the same directory (or in memory), whose header may name this one (S99, S185).
    ///
    /// # Errors
    /// None today; the file is created with the first user or assistant message.
    pub fn new_session(&self, record_parent: bool) -> Result<Tree> {
        let parent = self.path().filter(|_| record_parent).map(|path| path.to_string_lossy().into_owned());
        let (header, path) = self.successor(parent.as_deref());
        Ok(Tree::unsaved(header, path, (*self.shared).clone()))
    }

    /// A copy of a whole session file, all branches, for another working directory (S97). Versions 1 and 2 are migrated in
    /// the copy (S98). The source is opened read-only and not changed in any way. The new tree's file exists at once.
    ///
    /// # Errors
    /// `fork_source_invalid`, `invalid_session_id`, `file_exists`, `storage_failed`.
    pub fn fork_from(source: impl AsRef<Path>, target_cwd: impl AsRef<Path>, options: CreateOptions) -> Result<Tree> {
        let source = location::given(source.as_ref());
        let cwd = location::given(target_cwd.as_ref());
        let open = OpenOptions {
            cwd: Some(cwd.clone()),
            session_dir: Some(session_directory(&options, &cwd)),
            read_only: true,
            durability: options.durability,
            storage: options.storage.clone(),
            ids: options.ids.clone(),
        };
        let from = Tree::open(&source, open.clone()).map_err(|error| {
            Error::new(ErrorCode::ForkSourceInvalid, format!("the source cannot be forked: {}", error.message()))
                .at(&source)
        })?;
        let state = from.read();
        // An empty file opens as a new session (S49), but there is nothing to fork in it.
        if from.shared.storage.facts(&source).is_ok_and(|facts| facts.len == 0) {
            return Err(Error::new(ErrorCode::ForkSourceInvalid, "the source of the fork is empty").at(&source));
        }
        let parent = source.to_string_lossy().into_owned();
        let target = Tree::create(&cwd, CreateOptions { parent_session: Some(parent), in_memory: false, ..options })?;
        let header = target.read().header.clone();
        let Some(path) = target.path() else { return Err(Error::new(ErrorCode::Internal, "a fork needs a file")) };
        let mut out = Output::start(&target, &header, Some(&path))?;
        let offsets = match copy_file(&state, &mut out).and_then(|offsets| out.flush().map(|()| offsets)) {
            Ok(offsets) => offsets,
            Err(error) => return Err(out.discard(error)),
        };
        if state.index.diagnostics.total() == 0 {
            // The copy holds exactly the entries that are indexed already.
            let index = state.index.moved(&offsets);
            let log = out.finish(&target, Some(path))?;
            return Ok(Tree::from_state(State::new(index, log, header), (*target.shared).clone()));
        }
        // Lines of other programs lie between the entries; a fresh look tells where.
        let log = out.finish(&target, Some(path.clone()))?;
        let state = log.reload(&path, &OpenOptions { read_only: false, ..open })?;
        Ok(Tree::from_state(state, (*target.shared).clone()))
    }

    /// Writes the path to `leaf` as a session file of its own: same session id, current time, no parent session; labels on
    /// the path stay ordinary entries (S113).
    ///
    /// # Errors
    /// `storage_failed` if reading or writing fails.
    pub fn export_branch(&self, leaf: Option<&str>, out: &mut dyn Write) -> Result<()> {
        let failed =
            |error: std::io::Error| Error::new(ErrorCode::StorageFailed, format!("cannot write the export: {error}"));
        let state = self.read();
        let cwd = self.shared.cwd.to_string_lossy();
        let header = Header::new(&state.header.id, self.shared.ids.now_ms(), &cwd, None);
        out.write_all(&header.line).and_then(|()| out.write_all(b"\n")).map_err(failed)?;
        let path = state.path(leaf);
        for (at, node) in path.iter().enumerate() {
            let place = state.index.place(*node);
            let mut line = state.log.read(place.offset, place.len as usize)?;
            if at == 0 && state.index.node(*node).parent != ROOT {
                line = json::replace_member(&line, "parentId", b"null");
            }
            line.push(b'\n');
            out.write_all(&line).map_err(failed)?;
        }
        Ok(())
    }

    /// Header and file name of a session that follows this one (S99).
    fn successor(&self, parent: Option<&str>) -> (Header, Option<PathBuf>) {
        let shared = &self.shared;
        let (id, now) = (shared.ids.session_uuid().to_string(), shared.ids.now_ms());
        let header = Header::new(&id, now, &shared.cwd.to_string_lossy(), parent);
        let path = shared.session_dir.as_ref().map(|directory| directory.join(location::file_name(now, &id)));
        (header, path)
    }
}

/// Copies the kept entries of a path and adds current labels (S91–S94); returns the index of the copy.
fn copy_path(state: &State, path: &[u32], kept: &[u32], out: &mut Output, tree: &Tree) -> Result<Index> {
    let source = &state.index;
    let mut index = Index::after_lines(1);
    index.reserve(kept.len());
    // A left-out label stands for the next kept entry after it (S92).
    let mut stands_for: HashMap<u32, u32> = HashMap::new();
    let mut next_kept = None;
    for node in path.iter().rev() {
        match source.node(*node).kind() {
            EntryKind::Label => next_kept.and_then(|next| stands_for.insert(*node, next)),
            _ => next_kept.replace(*node),
        };
    }
    let mut run: Option<(u64, u64)> = None;
    let mut shift = 0;
    for (at, node) in kept.iter().enumerate() {
        let place = source.place(*node);
        let entry = source.node(*node);
        let follows = match at {
            0 => entry.parent == ROOT,
            _ => entry.parent == kept[at - 1],
        };
        let line = match (follows, entry.kind()) {
            (true, EntryKind::Compaction) => relinked_compaction(state, *node, &stands_for)?,
            (true, _) => None,
            (false, _) => Some(relinked(state, *node, at.checked_sub(1).map(|at| kept[at]), &stands_for)?),
        };
        let parent = if at == 0 { ROOT } else { at as u32 - 1 };
        let push = |index: &mut Index, message, place| {
            index.push(source.id(*node), parent, entry.time, entry.kind(), message, place)
        };
        if let Some(line) = line {
            if let Some((start, end)) = run.take() {
                out.push_run(&state.log, start, end)?;
            }
            // The change may have moved the message.
            let message = MessagePlace { at: 0, ..entry.message };
            push(&mut index, message, out.push_line(&line)?);
        } else {
            let end = place.offset + u64::from(place.len);
            run = match run {
                Some((start, last)) if place.offset == last + 1 => Some((start, end)),
                other => {
                    if let Some((start, end)) = other {
                        out.push_run(&state.log, start, end)?;
                    }
                    shift = out.position();
                    Some((place.offset, end))
                }
            };
            let start = run.map_or(place.offset, |(start, _)| start);
            push(&mut index, entry.message, Place { offset: shift + place.offset - start, len: place.len });
        }
    }
    if let Some((start, end)) = run.take() {
        out.push_run(&state.log, start, end)?;
    }
    let name = kept.iter().rev().find(|node| source.node(**node).kind() == EntryKind::SessionInfo);
    index.name = match name {
        Some(node) => Some(state.entry(*node)?.string("name").unwrap_or_default().into()),
        None => None,
    };
    add_labels(state, kept, &mut index, out, tree)?;
    Ok(index)
}

/// S94: one new label entry for every current label of a kept entry, with the time of the label's change.
fn add_labels(state: &State, kept: &[u32], index: &mut Index, out: &mut Output, tree: &Tree) -> Result<()> {
    if state.index.labels.is_empty() {
        return Ok(());
    }
    let kept: HashSet<u32> = kept.iter().copied().collect();
    for (target, label) in state.index.labels.list() {
        if !state.index.find(target).is_some_and(|node| kept.contains(&node)) {
            continue;
        }
        let id = fresh_id_unless(&*tree.shared.ids, |id| index.contains(id));
        let parent = index.last();
        let mut line = LineWriter::payload_first(Vec::new(), "label");
        line.string("id", &id);
        match parent {
            Some(parent) => line.string("parentId", index.id(parent)),
            None => line.raw("parentId", b"null"),
        }
        match label.timestamp.is_empty() {
            true => line.string("timestamp", &format_iso(tree.shared.ids.now_ms())),
            false => line.raw("timestamp", &label.timestamp),
        }
        line.string("targetId", target);
        line.raw("label", &label.label);
        let line = line.finish();
        let place = out.push_line(&line[..line.len() - 1])?;
        let time = read_time(&label.timestamp).unwrap_or(UNREADABLE);
        index.push(&id, parent.unwrap_or(ROOT), time, EntryKind::Label, MessagePlace::default(), place);
        index.labels.set(target, &label.label, &label.timestamp);
    }
    Ok(())
}

/// A line with another parent.
fn relinked(state: &State, node: u32, parent: Option<u32>, stands_for: &HashMap<u32, u32>) -> Result<Vec<u8>> {
    let line = match state.index.node(node).kind() {
        EntryKind::Compaction => relinked_compaction(state, node, stands_for)?,
        _ => None,
    };
    let line = match line {
        Some(line) => line,
        None => state.entry(node)?.json().to_vec(),
    };
    let mut id = b"null".to_vec();
    if let Some(parent) = parent {
        id.clear();
        json::write_string(&mut id, state.index.id(parent));
    }
    Ok(json::replace_member(&line, "parentId", &id))
}

/// Whether a node is on the path to another.
fn is_above(state: &State, node: u32, other: u32) -> bool {
    let mut at = state.index.node(other).parent;
    while at < ORPHAN && at != node {
        at = state.index.node(at).parent;
    }
    at == node
}

/// A compaction whose first kept entry is a left-out label; `None` if it needs no change (S92).
fn relinked_compaction(state: &State, node: u32, stands_for: &HashMap<u32, u32>) -> Result<Option<Vec<u8>>> {
    let entry = state.entry(node)?;
    let first = entry.string("firstKeptEntryId").and_then(|id| state.index.find(&id));
    // A label that comes only after the compaction keeps nothing before it.
    let first = first.filter(|first| stands_for.contains_key(first) && is_above(state, *first, node));
    let Some(next) = first.and_then(|first| stands_for.get(&first)) else { return Ok(None) };
    let mut id = Vec::new();
    json::write_string(&mut id, state.index.id(*next));
    Ok(Some(json::replace_member(entry.json(), "firstKeptEntryId", &id)))
}

/// Copies every line that is JSON and no header, in order (S97), and tells where each entry begins in the copy. What is
/// not JSON stays in the source.
fn copy_file(state: &State, out: &mut Output) -> Result<Vec<u64>> {
    let mut offsets = Vec::with_capacity(state.index.line_count());
    // The run of lines that lie one behind the other: from, to, and where it goes.
    let mut run: Option<(u64, u64, u64)> = None;
    let mut at = 0;
    for n in 0..state.index.line_count() {
        let (_, place) = state.index.line(n);
        let end = place.offset + u64::from(place.len);
        let target = match &mut run {
            Some((start, last, target)) if place.offset == *last + 1 => {
                *last = end;
                *target + (place.offset - *start)
            }
            _ => {
                if let Some((start, end, _)) = run.take() {
                    out.push_run(&state.log, start, end)?;
                }
                copy_gap(state, at, place.offset, out)?;
                run = Some((place.offset, end, out.position()));
                out.position()
            }
        };
        offsets.push(target);
        at = end + 1;
    }
    if let Some((start, end, _)) = run {
        out.push_run(&state.log, start, end)?;
    }
    copy_gap(state, at, state.log.len(), out)?;
    Ok(offsets)
}

/// Lines between entries: headers, blank and bad lines and what stands before the header go, other programs' JSON stays.
fn copy_gap(state: &State, start: u64, end: u64, out: &mut Output) -> Result<()> {
    if start >= end {
        return Ok(());
    }
    let bytes = state.log.read(start, (end - start) as usize)?;
    let mut header_seen = start > 0;
    for line in bytes.split(|byte| *byte == b'\n') {
        let plain = if header_seen { line } else { without_mark(line) };
        let is_header = plain.trim_ascii_start().first() == Some(&b'{')
            && json::get(plain, "type").is_some_and(|raw| super::fact::string_is(raw, "session"));
        if header_seen && !is_header && json::validate(line).is_ok() {
            out.push_line(line)?;
        }
        header_seen |= is_header;
    }
    Ok(())
}
