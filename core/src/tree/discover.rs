//! Finding session files in a directory by their headers alone (S56, S102–S104).

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::header::Header;
use super::list;
use super::location;
use super::open::find_header;
use super::options::CreateOptions;
use super::storage::{FileMode, Storage};

/// A header further in does not count (S56).
const SEARCHED: u64 = 1 << 20;

/// The working directory that sessions must have been made for: only where a directory was chosen that is not the
/// default one of this working directory (S102).
pub(crate) fn cwd_filter(options: &CreateOptions, cwd: &Path) -> Option<PathBuf> {
    let chosen = options.session_dir.clone().or_else(location::session_dir_override)?;
    let agent_dir = options.agent_dir.clone().unwrap_or_else(location::agent_dir);
    let default = location::session_dir(&location::given(&agent_dir), cwd);
    (location::given(&chosen) != default).then(|| cwd.to_path_buf())
}

/// Whether a header's working directory passes the filter; an empty or missing one never does.
pub(crate) fn passes(filter: Option<&Path>, cwd: Option<&str>) -> bool {
    match filter {
        None => true,
        Some(wanted) => cwd.is_some_and(|cwd| !cwd.is_empty() && location::resolve(Path::new(cwd)) == wanted),
    }
}

/// The `*.jsonl` files of a directory with the time of their last change, newest first. A directory that cannot be read
/// has none.
pub(crate) fn session_files(storage: &dyn Storage, directory: &Path) -> Vec<(PathBuf, SystemTime)> {
    let paths = storage.list(directory).unwrap_or_default();
    let mut files: Vec<(PathBuf, SystemTime)> = (paths.into_iter())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".jsonl")))
        .filter_map(|path| {
            let facts = storage.facts(&path).ok().filter(|facts| facts.is_file)?;
            Some((path, facts.modified))
        })
        .collect();
    files.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    files
}

/// The header of a file, if it is a session.
pub(crate) fn peek(storage: &dyn Storage, path: &Path) -> Option<Header> {
    let file = storage.open(path, FileMode::Read).ok()?;
    let len = file.facts().ok()?.len.min(SEARCHED);
    find_header(&*file, len).ok()?.header
}

/// The most recently changed session of a directory (S102).
pub(crate) fn most_recent(storage: &dyn Storage, directory: &Path, filter: Option<PathBuf>) -> Option<PathBuf> {
    let files = session_files(storage, directory);
    let wanted =
        |path: &PathBuf| peek(storage, path).is_some_and(|header| passes(filter.as_deref(), header.cwd.as_deref()));
    files.into_iter().map(|(path, _)| path).find(wanted)
}

/// How an id given by a person is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdMatch {
    /// The whole id.
    Exact,
    /// The beginning of the id.
    Prefix,
}

/// The session file of a working directory whose id matches (S104). If there are several: the first by name for a whole
/// id, the first of a listing (S110) for the beginning of one.
pub fn find_by_id(cwd: &Path, id: &str, how: IdMatch, options: &CreateOptions) -> Option<PathBuf> {
    let cwd = location::given(cwd);
    let directory = super::open::session_directory(options, &cwd);
    let filter = cwd_filter(options, &cwd);
    let storage = &*options.storage;
    let mut files = session_files(storage, &directory);
    if how == IdMatch::Exact {
        files.sort();
    }
    let matches = |path: &Path| {
        peek(storage, path).is_some_and(|header| {
            let same = match how {
                IdMatch::Exact => header.id == id,
                IdMatch::Prefix => header.id.starts_with(id),
            };
            same && passes(filter.as_deref(), header.cwd.as_deref())
        })
    };
    let mut found = files.into_iter().filter(|(path, _)| matches(path));
    if how == IdMatch::Exact {
        return found.next().map(|(path, _)| path);
    }
    let found: Vec<_> = found.collect();
    match &found[..] {
        [] => None,
        [(path, _)] => Some(path.clone()),
        _ => list::first(storage, found),
    }
}
