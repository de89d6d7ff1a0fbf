//! Where session files live and what they are called (S38–S40).

use std::path::{Component, Path, PathBuf};

use super::time::format_iso;

/// The agent directory: `$PI_CODING_AGENT_DIR`, else `~/.pi/agent`, else `.pi/agent` where there is no home (S38).
pub fn agent_dir() -> PathBuf {
    match std::env::var_os("PI_CODING_AGENT_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => expand_home(Path::new(&dir)),
        None => home_dir().unwrap_or_default().join(".pi").join("agent"),
    }
}

/// The session directory that the environment names for all working directories, if it does (S38).
pub(crate) fn session_dir_override() -> Option<PathBuf> {
    let directory = std::env::var_os("PI_CODING_AGENT_SESSION_DIR").filter(|directory| !directory.is_empty())?;
    Some(given(Path::new(&directory)))
}

/// The default session directory of a working directory below an agent directory (S39).
pub fn session_dir(agent_dir: &Path, cwd: &Path) -> PathBuf {
    agent_dir.join("sessions").join(session_dir_name(&resolve(cwd).to_string_lossy()))
}

/// The name of a working directory's session directory, for an absolute path (S39).
pub fn session_dir_name(cwd: &str) -> String {
    let trimmed = cwd.strip_prefix(['/', '\\']).unwrap_or(cwd);
    format!("--{}--", trimmed.replace(['/', '\\', ':'], "-"))
}

/// The name of a session file (S40).
pub(crate) fn file_name(created_ms: i64, id: &str) -> String {
    format!("{}_{id}.jsonl", format_iso(created_ms).replace([':', '.'], "-"))
}

/// Absolute form of a path with `.` and `..` taken out by their letters; links are not followed.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    let absolute = match path.is_absolute() {
        true => path.to_path_buf(),
        false => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")).join(path),
    };
    let mut out = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// A path that a caller gives, absolute: a leading `~` is the home directory (S38), as pi reads it.
pub(crate) fn given(path: &Path) -> PathBuf {
    resolve(&expand_home(path))
}

/// Replaces a leading `~` by the home directory (S38).
pub(crate) fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}

fn home_dir() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s39_directory_names() {
        assert_eq!(session_dir_name("/work/demo"), "--work-demo--");
        assert_eq!(session_dir_name("/"), "----");
        assert_eq!(session_dir_name("C:\\work\\pi"), "--C--work-pi--");
    }

    #[test]
    fn resolving_is_lexical() {
        assert_eq!(resolve(Path::new("/a/./b/../c/")), Path::new("/a/c"));
        assert_eq!(resolve(Path::new("/../x")), Path::new("/x"));
    }
}
