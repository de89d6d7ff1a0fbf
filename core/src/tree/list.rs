//! Listing sessions with what a chooser shows of them (S105–S112). Files are read in parallel, each line once.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::blank;
use crate::error::{Error, ErrorCode, Result};
use crate::json;
use crate::message::Role;

use super::discover::{cwd_filter, passes, session_files};
use super::fact::{read_time, string_is};
use super::header::{FirstLine, first_line};
use super::lines::for_each_line;
use super::location;
use super::name_order::NameOrder;
use super::open::without_mark;
use super::options::CreateOptions;
use super::storage::{FileMode, Storage};
use super::time::MOST_MS;

/// What [`list`] tells of one session. Serialised, it has these fields in camelCase: the form all bindings give.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// The session file. Serialised, bytes that are no UTF-8 become U+FFFD.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// Session id; `None` if the header has none.
    pub id: Option<String>,
    /// Working directory; empty if the header has none.
    pub cwd: String,
    /// Name (S85).
    pub name: Option<String>,
    /// The session it was derived from.
    pub parent_session_path: Option<String>,
    /// Header time, milliseconds since the Unix epoch; `None` if it cannot be read.
    pub created: Option<i64>,
    /// Time of the latest user or assistant message, else of the header, else of the file (S109). Milliseconds.
    pub modified: i64,
    /// Messages of any role on all branches.
    pub message_count: usize,
    /// Text of the first user message that has one, else `(no messages)`.
    pub first_message: String,
    /// Texts of all user and assistant messages, joined by spaces (S108). Only with [`ListOptions::text`].
    pub all_messages_text: Option<String>,
}

fn lossy_path<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// How far a listing has come.
#[derive(Debug)]
pub struct ListProgress<'a> {
    /// Files read.
    pub loaded: usize,
    /// Files to read.
    pub total: usize,
    /// What was found so far, newest first; given only now and then.
    pub partial: Option<&'a [SessionInfo]>,
}

/// Called from the threads that read, one call at a time.
pub type OnProgress = Arc<dyn Fn(&ListProgress<'_>) + Send + Sync>;

/// Options of [`list`] and [`list_all`].
#[derive(Clone, Default)]
pub struct ListOptions {
    /// Where sessions are: directories, file system.
    pub location: CreateOptions,
    /// Also collect all text of each session, for searching. Needs memory for all of it.
    pub text: bool,
    /// Told of every file.
    pub progress: Option<OnProgress>,
    /// Set to true to end the listing with `cancelled`.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl fmt::Debug for ListOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListOptions")
            .field("location", &self.location)
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

/// The sessions of a working directory, newest first (S105–S110).
///
/// # Errors
/// `cancelled`. Files that are no sessions or cannot be read are left out.
pub fn list(cwd: impl AsRef<Path>, options: &ListOptions) -> Result<Vec<SessionInfo>> {
    let cwd = location::given(cwd.as_ref());
    let directory = super::open::session_directory(&options.location, &cwd);
    let filter = cwd_filter(&options.location, &cwd);
    read_all(by_name(session_files(&*options.location.storage, &directory)), filter, options)
}

/// The sessions of all working directories, newest first; with a chosen session directory, or one that the environment
/// names, exactly those in it (S38, S110).
///
/// # Errors
/// As for [`list`].
pub fn list_all(options: &ListOptions) -> Result<Vec<SessionInfo>> {
    let storage = &*options.location.storage;
    let chosen = options.location.session_dir.as_deref().map(location::given).or_else(location::session_dir_override);
    let files = match chosen {
        Some(directory) => by_name(session_files(storage, &directory)),
        None => {
            let agent_dir = options.location.agent_dir.clone().unwrap_or_else(location::agent_dir);
            let root = location::given(&agent_dir).join("sessions");
            let mut directories = storage.list(&root).unwrap_or_default();
            directories.sort();
            let files = directories.iter().flat_map(|directory| session_files(storage, directory)).collect();
            let mut files = by_name(files);
            files.sort_by_key(|(_, modified)| Reverse(*modified));
            files
        }
    };
    read_all(files, None, options)
}

/// The order of sessions that changed at the same time: by name, the last one first.
fn by_name(mut files: Vec<(PathBuf, SystemTime)>) -> Vec<(PathBuf, SystemTime)> {
    let order = NameOrder::new();
    files.sort_by(|(a, _), (b, _)| order.compare(b, a));
    files
}

/// The file that a listing would show first.
pub(crate) fn first(storage: &dyn Storage, files: Vec<(PathBuf, SystemTime)>) -> Option<PathBuf> {
    let mut buffer = Vec::new();
    let mut modified = |(path, time): &(PathBuf, SystemTime)| {
        read_session(storage, path, *time, false, &mut buffer, &|| false).map(|info| info.modified)
    };
    let mut files = by_name(files);
    files.sort_by_cached_key(|file| Reverse(modified(file)));
    files.into_iter().next().map(|(path, _)| path)
}

/// Reads files whose order counts where sessions changed at the same time.
fn read_all(
    files: Vec<(PathBuf, SystemTime)>,
    filter: Option<PathBuf>,
    options: &ListOptions,
) -> Result<Vec<SessionInfo>> {
    const PARTIAL_EVERY: Duration = Duration::from_millis(250);
    let cancelled = || options.cancel.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
    let places: HashMap<&Path, usize> = files.iter().enumerate().map(|(at, (path, _))| (&**path, at)).collect();
    let newest_first = |sessions: &mut [SessionInfo]| {
        sessions.sort_by_key(|info| (Reverse(info.modified), places.get(&*info.path).copied()));
    };
    let next = AtomicUsize::new(0);
    let found = Mutex::new((Vec::new(), 0, Instant::now()));
    let work = || {
        let mut buffer = Vec::new();
        while let Some((path, modified)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            if cancelled() {
                return;
            }
            let info = read_session(&*options.location.storage, path, *modified, options.text, &mut buffer, &cancelled);
            let info = info.filter(|info| passes(filter.as_deref(), Some(&info.cwd)));
            let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (sessions, loaded, last_partial) = &mut *found;
            sessions.extend(info);
            *loaded += 1;
            if let Some(progress) = &options.progress {
                let due = last_partial.elapsed() >= PARTIAL_EVERY;
                if due {
                    newest_first(sessions);
                    *last_partial = Instant::now();
                }
                let partial = due.then_some(&sessions[..]);
                progress(&ListProgress { loaded: *loaded, total: files.len(), partial });
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8)).min(files.len().max(1));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    if cancelled() {
        return Err(Error::new(ErrorCode::Cancelled, "the listing of sessions was cancelled"));
    }
    let (mut sessions, ..) = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    newest_first(&mut sessions);
    Ok(sessions)
}

fn read_session(
    storage: &dyn Storage,
    path: &Path,
    file_time: SystemTime,
    with_text: bool,
    buffer: &mut Vec<u8>,
    cancelled: &dyn Fn() -> bool,
) -> Option<SessionInfo> {
    let file = storage.open(path, FileMode::Read).ok()?;
    let len = file.facts().ok()?.len;
    let mut reader = Reader { with_text, ..Reader::default() };
    let read = for_each_line(&*file, 0, len, buffer, |line| match reader.line(line) {
        ControlFlow::Continue(()) if !cancelled() => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    read.ok()?;
    let header = reader.header?;
    let file_ms = file_time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64);
    Some(SessionInfo {
        path: path.to_path_buf(),
        id: header.id,
        cwd: header.cwd.unwrap_or_default(),
        name: reader.name.map(|name| blank::trim(&name).to_owned()).filter(|name| !name.is_empty()),
        parent_session_path: header.parent_session,
        created: header.created,
        modified: reader.modified.filter(|ms| *ms > 0).or(header.modified).unwrap_or(file_ms),
        message_count: reader.message_count,
        first_message: reader.first_message.unwrap_or_else(|| "(no messages)".to_owned()),
        all_messages_text: with_text.then_some(reader.text),
    })
}

/// What a listing collects from the lines of one file.
#[derive(Default)]
struct Reader {
    with_text: bool,
    header: Option<HeaderFacts>,
    name: Option<String>,
    message_count: usize,
    first_message: Option<String>,
    modified: Option<i64>,
    text: String,
}

struct HeaderFacts {
    id: Option<String>,
    cwd: Option<String>,
    parent_session: Option<String>,
    created: Option<i64>,
    /// The same, where it is a text (S109).
    modified: Option<i64>,
}

#[derive(Default)]
struct Fields<'a> {
    entry_type: &'a [u8],
    timestamp: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    role: &'a [u8],
    content: Option<&'a [u8]>,
    time: Option<&'a [u8]>,
}

impl<'a> json::Members<'a> for Fields<'a> {
    fn member(&mut self, depth: u8, key: &'a [u8], value: &'a [u8]) {
        // Keys written with escapes are the same keys; nobody writes them.
        let decoded = memchr::memchr(b'\\', key).and_then(|_| json::decode_string(&[b"\"", key, b"\""].concat()));
        match (depth, decoded.as_ref().map_or(key, |key| key.as_bytes())) {
            (0, b"type") => self.entry_type = value,
            (0, b"timestamp") => self.timestamp = Some(value),
            (0, b"name") => self.name = Some(value),
            (1, b"role") => self.role = value,
            (1, b"content") => self.content = Some(value),
            (1, b"timestamp") => self.time = Some(value),
            _ => {}
        }
    }

    fn descend(&mut self, key: &'a [u8]) -> bool {
        json::raw_str_eq(key, "message")
    }
}

impl Reader {
    fn line(&mut self, line: &[u8]) -> ControlFlow<()> {
        if self.header.is_none() {
            return match first_line(without_mark(line)) {
                FirstLine::Object(line) => self.header_line(line),
                FirstLine::Value => ControlFlow::Break(()),
                FirstLine::Nothing => ControlFlow::Continue(()),
            };
        }
        let mut fields = Fields::default();
        if json::members(line, &mut fields).is_ok() {
            self.entry(&fields);
        }
        ControlFlow::Continue(())
    }

    fn header_line(&mut self, line: &[u8]) -> ControlFlow<()> {
        if !json::get(line, "type").is_some_and(|raw| string_is(raw, "session")) {
            return ControlFlow::Break(());
        }
        let string = |key| json::get(line, key).and_then(json::decode_string);
        let time = json::get(line, "timestamp");
        self.header = Some(HeaderFacts {
            id: string("id"),
            cwd: string("cwd"),
            parent_session: string("parentSession"),
            created: time.and_then(read_time),
            modified: time.filter(|raw| raw.starts_with(b"\"")).and_then(read_time),
        });
        ControlFlow::Continue(())
    }

    fn entry(&mut self, fields: &Fields<'_>) {
        match fields.entry_type {
            b"\"session_info\"" => self.name = fields.name.and_then(json::decode_string),
            b"\"message\"" => self.message(fields),
            _ => {}
        }
    }

    fn message(&mut self, fields: &Fields<'_>) {
        self.message_count += 1;
        let role = match fields.role {
            b"\"user\"" => Role::User,
            b"\"assistant\"" => Role::Assistant,
            _ => return,
        };
        // Without any content it is no activity.
        let Some(content) = fields.content else { return };
        let number = fields.time.and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<f64>().ok());
        let time = match number {
            // Further than dates go: there is no such time.
            Some(ms) => (ms.abs() <= MOST_MS as f64).then_some(ms as i64),
            None => fields.timestamp.and_then(read_time),
        };
        self.modified = self.modified.max(time);
        let wants_first = role == Role::User && self.first_message.is_none();
        if !wants_first && !self.with_text {
            return;
        }
        let text = content_text(content);
        if text.is_empty() {
            return;
        }
        if self.with_text {
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(&text);
        }
        if wants_first {
            self.first_message = Some(text);
        }
    }
}

/// A string content, or the text blocks joined by one space (S107); anything else is empty (S111).
fn content_text(content: &[u8]) -> String {
    match content.first() {
        Some(b'"') => json::decode_string(content).unwrap_or_default(),
        Some(b'[') => {
            let mut out = String::new();
            let mut first = true;
            for block in json::elements(content).into_iter().filter(|block| block.starts_with(b"{")) {
                if !json::get(block, "type").is_some_and(|raw| string_is(raw, "text")) {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push(' ');
                }
                out.push_str(&json::get(block, "text").and_then(json::decode_string).unwrap_or_default());
            }
            out
        }
        _ => String::new(),
    }
}
