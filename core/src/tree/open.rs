//! Opening and creating trees (S41–S58, S99–S101).

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use crate::error::{Error, ErrorCode, Result};

use super::fact::FactBlock;
use super::header::{FirstLine, Header, first_line};
use super::ids::is_valid_session_id;
use super::index::Index;
use super::lines::for_each_line;
use super::location;
use super::log::Log;
use super::options::{CreateOptions, OpenOptions};
use super::scan;
use super::storage::{FileMode, StorageFile, read_range};
use super::tree::{Shared, State, Tree};
use super::{discover, migrate, repair, session_file};

/// Files below this size are indexed without a guess of their number of entries.
const SMALL: u64 = 64 << 10;

impl Tree {
    /// A new session for a working directory. Nothing is on the disk but its directory until the first user or assistant
    /// message is appended (S41–S43).
    ///
    /// # Errors
    /// `invalid_session_id` for a chosen id that breaks S16; `storage_failed` if the directory cannot be created.
    pub fn create(cwd: impl AsRef<Path>, options: CreateOptions) -> Result<Tree> {
        let cwd = location::given(cwd.as_ref());
        let id = match &options.id {
            Some(id) if !is_valid_session_id(id) => {
                let message = format!(
                    "{id:?} cannot be a session id: it is made of ASCII letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
                );
                return Err(Error::new(ErrorCode::InvalidSessionId, message));
            }
            Some(id) => id.clone(),
            None => options.ids.session_uuid().to_string(),
        };
        let now = options.ids.now_ms();
        let (directory, path) = match options.in_memory {
            true => (None, None),
            false => {
                let directory = session_directory(&options, &cwd);
                (options.storage.create_dir_all(&directory))
                    .map_err(|error| Error::storage("create the session directory", &directory, &error))?;
                let path = directory.join(location::file_name(now, &id));
                (Some(directory), Some(path))
            }
        };
        let header = Header::new(&id, now, &cwd.to_string_lossy(), options.parent_session.as_deref());
        Ok(Tree::unsaved(header, path, Shared::from_create(&options, cwd, directory)))
    }

    /// Opens a session file. A path that does not exist starts a new session that keeps the path (S48).
    ///
    /// Opening for writing takes the writer's lock, seals a last line without LF (S54), gives an empty file its header
    /// (S49) and migrates versions 1 and 2 (S66). Opening read-only changes nothing.
    ///
    /// # Errors
    /// `invalid_session_file` (the bytes stay as they are, S50), `session_locked`, `storage_failed`.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Tree> {
        let path = location::given(path.as_ref());
        let chosen = options.session_dir.as_ref().map(|directory| location::given(directory));
        let directory = chosen.or_else(|| path.parent().map(Path::to_path_buf));
        let shared = |cwd| Shared::from_open(&options, cwd, directory.clone());
        match options.storage.facts(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !options.read_only => {
                let cwd = working_directory(&options, None);
                if let Some(directory) = &directory {
                    (options.storage.create_dir_all(directory))
                        .map_err(|error| Error::storage("create the session directory", directory, &error))?;
                }
                return Ok(Tree::unsaved(fresh_header(&options, &cwd), Some(path), shared(cwd)));
            }
            Err(error) => return Err(Error::storage("open the session file", &path, &error)),
            // Looked at before opening: opening a pipe would wait for its other end.
            Ok(facts) if !facts.is_file => return Err(not_a_session(&path, "it is not a regular file")),
            Ok(_) => {}
        }
        let storage = &*options.storage;
        let file = match options.read_only {
            true => (storage.open(&path, FileMode::Read))
                .map_err(|error| Error::storage("open the session file", &path, &error))?,
            false => session_file::open_locked(storage, &path)?,
        };
        let loaded = load(file, &path, &options)?;
        let cwd = working_directory(&options, loaded.header.cwd.as_deref());
        Ok(Tree::from_state(loaded, shared(cwd)))
    }

    /// An in-memory session made of lines of JSON (S100). A header among them is adopted and older versions are migrated;
    /// without one, a new header is made.
    ///
    /// # Errors
    /// `invalid_session_id` as for [`Tree::create`].
    pub fn in_memory_from(lines: &[u8], cwd: impl AsRef<Path>, options: CreateOptions) -> Result<Tree> {
        let tree = Tree::create(cwd, CreateOptions { in_memory: true, ..options })?;
        let lines = lines.strip_prefix(b"\xef\xbb\xbf").unwrap_or(lines);
        let lines_of = |bytes| <[u8]>::split(bytes, |byte: &u8| *byte == b'\n');
        let read = |line| match first_line(line) {
            FirstLine::Object(line) => Header::read(line),
            _ => None,
        };
        let mut state = tree.write();
        let migrated;
        let mut rest = lines;
        if let Some(header) = lines_of(lines).find_map(read) {
            if migrate::is_needed(&header) {
                migrated = migrate::migrate(lines, &header, &*tree.shared.ids).bytes;
                rest = &migrated;
            }
            state.header = lines_of(rest).find_map(read).unwrap_or(header);
        }
        // The header may stand anywhere among the lines; here it comes first.
        let mut bytes = state.header.line.clone();
        bytes.push(b'\n');
        let start = bytes.len();
        let mut adopted = false;
        for line in lines_of(rest).filter(|line| !line.is_empty()) {
            if !adopted && line == state.header.line {
                adopted = true;
                continue;
            }
            bytes.extend_from_slice(line);
            bytes.push(b'\n');
        }
        state.index = Index::after_lines(1);
        state.index.absorb(&scan::scan_bytes(&bytes[start..], start as u64));
        state.index.finish();
        state.log = Log::buffer(tree.shared.storage.clone(), None, options.durability, bytes);
        drop(state);
        Ok(tree)
    }

    /// The most recent session of a working directory, or a new one (S102, S103).
    ///
    /// # Errors
    /// As for [`Tree::open`] and [`Tree::create`].
    pub fn continue_recent(cwd: impl AsRef<Path>, options: CreateOptions) -> Result<Tree> {
        let cwd = location::given(cwd.as_ref());
        let directory = session_directory(&options, &cwd);
        match discover::most_recent(&*options.storage, &directory, discover::cwd_filter(&options, &cwd)) {
            Some(path) => Tree::open(
                path,
                OpenOptions {
                    cwd: Some(cwd),
                    session_dir: Some(directory),
                    read_only: false,
                    durability: options.durability,
                    storage: options.storage,
                    ids: options.ids,
                },
            ),
            None => Tree::create(cwd, options),
        }
    }

    pub(crate) fn unsaved(header: Header, path: Option<PathBuf>, shared: Shared) -> Tree {
        let mut bytes = header.line.clone();
        bytes.push(b'\n');
        let index = Index::after_lines(1);
        let log = Log::buffer(shared.storage.clone(), path, shared.durability, bytes);
        Tree::from_state(State::new(index, log, header), shared)
    }

    pub(crate) fn from_state(state: State, shared: Shared) -> Tree {
        Tree { shared: Arc::new(shared), state: Arc::new(RwLock::new(state)) }
    }
}

/// The session directory that options and working directory give (S38, S39).
pub(crate) fn session_directory(options: &CreateOptions, cwd: &Path) -> PathBuf {
    match &options.session_dir {
        Some(directory) => location::given(directory),
        None => location::session_dir_override().unwrap_or_else(|| {
            let agent_dir = options.agent_dir.clone().unwrap_or_else(location::agent_dir);
            location::session_dir(&location::given(&agent_dir), cwd)
        }),
    }
}

/// S47: the override, else the header's directory, else the process's.
fn working_directory(options: &OpenOptions, header: Option<&str>) -> PathBuf {
    match &options.cwd {
        Some(cwd) => location::given(cwd),
        None => location::resolve(Path::new(header.unwrap_or("."))),
    }
}

fn fresh_header(options: &OpenOptions, cwd: &Path) -> Header {
    let id = options.ids.session_uuid().to_string();
    Header::new(&id, options.ids.now_ms(), &cwd.to_string_lossy(), None)
}

pub(crate) fn not_a_session(path: &Path, why: &str) -> Error {
    let message = format!("not a session file: {why}; it was left as it is");
    Error::new(ErrorCode::InvalidSessionFile, message).at(path)
}

/// Loads an existing file that is locked if it may be changed.
pub(crate) fn load(file: Box<dyn StorageFile>, path: &Path, options: &OpenOptions) -> Result<State> {
    let fail = |error: &io::Error| Error::storage("read the session file", path, error);
    let len = file.facts().map_err(|error| fail(&error))?.len;
    let storage = options.storage.clone();
    if len == 0 {
        return initialise(file, path, options);
    }
    let found = find_header(&*file, len).map_err(|error| fail(&error))?;
    let header = found.header.ok_or_else(|| not_a_session(path, found.why_not))?;
    if migrate::is_needed(&header) {
        let bytes = read_range(&*file, 0, len as usize).map_err(|error| fail(&error))?;
        return load_migrated(file, path, options, &bytes, &header);
    }
    let mut index = Index::after_lines(0);
    index.absorb(&found.before);
    index.file_lines = found.lines;
    scan_into(&mut index, &*file, found.end, len).map_err(|error| fail(&error))?;
    index.finish();
    let sealed = read_range(&*file, len - 1, 1).map_err(|error| fail(&error))? == b"\n";
    let mut log = Log::file(storage, path.to_path_buf(), file, len, options.durability);
    if options.read_only {
        log = log.read_only();
    } else {
        log.seal(sealed);
    }
    Ok(State::new(index, log, header))
}

/// Scans `start..end` of a file into the index.
pub(crate) fn scan_into(index: &mut Index, file: &dyn StorageFile, start: u64, end: u64) -> io::Result<()> {
    let mut first = true;
    scan::scan(file, start, end, |block| {
        if std::mem::take(&mut first) && end - start > SMALL {
            // Growing by doubling would need half as much memory again; guess from the first block instead.
            let bytes: u64 = block.facts.iter().map(|fact| u64::from(fact.len) + 1).sum();
            let guess = (end - start).saturating_mul(block.facts.len() as u64 + 1) / bytes.max(1);
            index.reserve((guess + guess / 16).min((end - start) / 64 + 1) as usize);
        }
        index.absorb(&block);
    })
}

/// S49: an empty file gets its header at once.
fn initialise(file: Box<dyn StorageFile>, path: &Path, options: &OpenOptions) -> Result<State> {
    let header = fresh_header(options, &working_directory(options, None));
    let mut line = header.line.clone();
    line.push(b'\n');
    let index = Index::after_lines(1);
    let storage = options.storage.clone();
    let log = match options.read_only {
        true => Log::buffer(storage, Some(path.to_path_buf()), options.durability, line).read_only(),
        false => {
            let mut log = Log::file(storage, path.to_path_buf(), file, 0, options.durability);
            log.append(&line)?;
            log
        }
    };
    Ok(State::new(index, log, header))
}

/// S66: the migrated file replaces the old one in one step; read-only, it stays in memory.
fn load_migrated(
    file: Box<dyn StorageFile>,
    path: &Path,
    options: &OpenOptions,
    bytes: &[u8],
    header: &Header,
) -> Result<State> {
    let migrated = migrate::migrate(bytes, header, &*options.ids);
    let mut index = Index::after_lines(0);
    index.absorb(&migrated.damaged);
    let start = first_text_line(&migrated.bytes).len() as u64 + 1;
    index.file_lines = 1;
    index.absorb(&scan::scan_bytes(&migrated.bytes[(start as usize).min(migrated.bytes.len())..], start));
    index.finish();
    let header = Header::read(first_text_line(&migrated.bytes)).unwrap_or_else(|| header.clone());
    let storage = options.storage.clone();
    let log = if options.read_only {
        Log::buffer(storage, Some(path.to_path_buf()), options.durability, migrated.bytes).read_only()
    } else {
        let len = migrated.bytes.len() as u64;
        let file_now = repair::replace_file(&*storage, path, &migrated.bytes, &migrated.dropped)?;
        // The old file's lock is held until the new one is in place and locked.
        drop(file);
        Log::file(storage, path.to_path_buf(), file_now, len, options.durability)
    };
    Ok(State::new(index, log, header))
}

fn first_text_line(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// Where the header was found.
pub(crate) struct HeaderSearch {
    pub(crate) header: Option<Header>,
    /// Position after the header's line.
    pub(crate) end: u64,
    /// Lines up to and including the header.
    pub(crate) lines: u64,
    pub(crate) why_not: &'static str,
    /// The lines before the header: none of them is an entry.
    pub(crate) before: FactBlock,
}

/// Finds the first parsed line of a file and sees whether it is a header (S8, S52).
///
/// A byte order mark in front of it is passed over (S53 allows it; it is never written).
pub(crate) fn find_header(file: &dyn StorageFile, len: u64) -> io::Result<HeaderSearch> {
    let why_not = "no line of it is a JSON object";
    let mut search = HeaderSearch { header: None, end: 0, lines: 0, why_not, before: FactBlock::default() };
    for_each_line(file, 0, len, &mut Vec::new(), |line| {
        let offset = search.end;
        search.lines += 1;
        search.end = (offset + line.len() as u64 + 1).min(len);
        let line = if offset == 0 { without_mark(line) } else { line };
        match first_line(line) {
            FirstLine::Nothing => {
                search.before.read_line(line, offset, true);
                return ControlFlow::Continue(());
            }
            FirstLine::Object(line) => {
                search.header = Header::read(line);
                search.why_not = "its first JSON line is not a session header with a string id";
            }
            FirstLine::Value => search.why_not = "its first JSON line is not an object",
        }
        ControlFlow::Break(())
    })?;
    Ok(search)
}

/// A line without the byte order mark that some editors put in front of a file.
pub(crate) fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}
