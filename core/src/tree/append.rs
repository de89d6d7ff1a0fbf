//! Appending: the only way a tree changes (S13, S42–S45, S72–S78).

use crate::error::{Error, ErrorCode, Result};
use crate::json;

use super::ids::IdSource;
use super::index::{Index, ORPHAN, Place, ROOT};
use super::kind::EntryKind;
use super::log::{Appended, Growth};
use super::new_entry::{Base, NewEntry};
use super::open::scan_into;
use super::options::Durability;
use super::storage::{StorageFile, read_range};
use super::tree::{State, Tree};

/// The room of the last line is kept for the next one, unless it was an unusually long line.
const KEPT_ROOM: usize = 256 << 10;

impl Tree {
    /// Appends one entry below `parent` and returns its id.
    pub(crate) fn append(&self, parent: Option<&str>, entry: &NewEntry<'_>) -> Result<String> {
        let mut state = self.write();
        let state = &mut *state;
        state.log.check_writable()?;
        state.catch_up(Tail::Take)?;
        let parent_node = match parent {
            None => ROOT,
            Some(id) => match state.index.find_from_end(id).ok_or_else(|| not_found(id))? {
                // An empty `parentId` names nobody (S79): the tree is what the next reader sees.
                _ if id.is_empty() => ORPHAN,
                node => node,
            },
        };
        let id = fresh_id(&state.index, &*self.shared.ids);
        let now = self.shared.ids.now_ms();
        let kind = entry.kind();
        let base = Base { id: &id, parent, timestamp: state.stamp.at(now) };
        let (line, message) = entry.line(kind, base, std::mem::take(&mut state.line));
        let written = state.write_line(&id, &line, state.index.has_conversation || kind.is_conversation());
        if line.capacity() <= KEPT_ROOM {
            state.line = line;
        }
        let Some(place) = written? else { return Ok(id) };
        state.index.push(&id, parent_node, now, kind, message, place);
        match entry {
            NewEntry::Label { target, label } => {
                let (mut label_json, mut time_json) = (Vec::new(), Vec::new());
                json::write_string(&mut label_json, label.unwrap_or_default());
                json::write_string(&mut time_json, state.stamp.at(now));
                state.index.labels.set(target, &label_json, &time_json);
            }
            NewEntry::SessionInfo { name } => state.index.name = Some((*name).into()),
            _ => {}
        }
        Ok(id)
    }

    /// Takes in what someone else appended to the file since it was last looked at; returns how many entries came.
    /// Appends do this by themselves; a reader that follows a running session calls it when it likes.
    ///
    /// # Errors
    /// `storage_changed` if the file was shortened or replaced; `storage_failed`.
    pub fn refresh(&self) -> Result<usize> {
        let mut state = self.write();
        let before = state.index.line_count();
        state.catch_up(Tail::Wait)?;
        Ok(state.index.line_count() - before)
    }

    /// Whether an entry has this id, also one that someone else appended a moment ago.
    pub(crate) fn knows(&self, id: &str) -> bool {
        // A failing look is no answer; the append that follows will tell.
        self.contains(id) || (self.refresh().is_ok() && self.contains(id))
    }

    /// Brings everything appended so far to the disk.
    ///
    /// # Errors
    /// `storage_failed`; later appends then fail too, since nobody can tell what is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.write().log.sync()
    }

    /// Gives up the right to write, and with it the lock: others may open the file for writing now. Every clone of this
    /// tree can still read and refuses to append. A session that has no file yet never gets one.
    ///
    /// # Errors
    /// `storage_failed` if the file cannot be opened for reading; the lock is then kept.
    pub fn release(&self) -> Result<()> {
        self.write().log.release()
    }

    /// The place of `turn_end` in the durability contract: syncs if that is when this tree syncs.
    pub(crate) fn end_turn(&self) -> Result<()> {
        let mut state = self.write();
        match state.log.durability() {
            Durability::Turn => state.log.sync(),
            Durability::None | Durability::Entry => Ok(()),
        }
    }
}

/// What to do with a last line that has no LF: another program may be in the middle of writing it.
#[derive(Clone, Copy, PartialEq)]
enum Tail {
    /// Leave it for the next look.
    Wait,
    /// Count it as a line. The next append seals it; if it is torn, it stays as a line that is skipped.
    Take,
}

/// Where the last line of `start..end` begins; that line has no LF.
fn last_line_start(file: &dyn StorageFile, start: u64, end: u64) -> std::io::Result<u64> {
    const STEP: u64 = 64 << 10;
    let mut to = end;
    while to > start {
        let from = to.saturating_sub(STEP).max(start);
        if let Some(found) = memchr::memrchr(b'\n', &read_range(file, from, (to - from) as usize)?) {
            return Ok(from + found as u64 + 1);
        }
        to = from;
    }
    Ok(start)
}

impl State {
    /// Puts the line of entry `id` into the log and says where; nowhere if it is in the index already, with the lines that
    /// someone else appended at the same moment. `begins`: the session may get its file now (S43).
    fn write_line(&mut self, id: &str, line: &[u8], begins: bool) -> Result<Option<Place>> {
        const TRIES: usize = 10;
        for _ in 0..TRIES {
            let written = if begins { self.log.create_with(line) } else { self.log.append(line) };
            if let Appended::At(place) = written? {
                return Ok(Some(place));
            }
            self.catch_up(Tail::Take)?;
            if self.index.contains(id) {
                return Ok(None);
            }
            // The stranger's line had no LF, and ours became the end of it: a line that readers skip. So once more.
        }
        let message = "another program writes into the session file, so that no line of ours stays whole; stop it";
        Err(self.log.changed(message))
    }

    /// Brings the index up to the end of the file, so that no append can reuse an id or write over a stranger's line.
    fn catch_up(&mut self, tail: Tail) -> Result<()> {
        let Growth::From(start, mut end) = self.log.growth()? else { return Ok(()) };
        let Some(file) = self.log.storage_file() else { return Ok(()) };
        let path = self.log.path().unwrap_or(std::path::Path::new("")).to_path_buf();
        let fail = |error: std::io::Error| Error::storage("read the session file", &path, &error);
        let sealed = read_range(file, end - 1, 1).map_err(fail)? == b"\n";
        if !sealed && tail == Tail::Wait {
            end = last_line_start(file, start, end).map_err(fail)?;
        }
        scan_into(&mut self.index, file, start, end).map_err(fail)?;
        self.index.finish();
        self.log.indexed(end, sealed || tail == Tail::Wait);
        Ok(())
    }
}

pub(crate) fn not_found(id: &str) -> Error {
    Error::new(
        ErrorCode::EntryNotFound,
        format!("no entry of this session has the id {id:?}; use the id of an entry of its tree"),
    )
}

/// S13: eight digits of a random UUID that are not taken; after 100 collisions a whole UUID.
pub(crate) fn fresh_id(index: &Index, ids: &dyn IdSource) -> String {
    fresh_id_unless(ids, |id| index.contains(id))
}

pub(crate) fn fresh_id_unless(ids: &dyn IdSource, taken: impl Fn(&str) -> bool) -> String {
    const DRAWS: usize = 100;
    let mut buffer = uuid::Uuid::encode_buffer();
    for _ in 0..DRAWS {
        let text = ids.random_uuid().hyphenated().encode_lower(&mut buffer);
        if !taken(&text[..8]) {
            return text[..8].to_owned();
        }
    }
    ids.random_uuid().to_string()
}

/// Kinds are looked at by cursors that append on behalf of others.
pub(crate) fn kind_of(state: &State, id: &str) -> Result<EntryKind> {
    state.index.find(id).map(|node| state.index.node(node).kind()).ok_or_else(|| not_found(id))
}
