//! From a path as the model wrote it to a path on disk (T20–T29).

use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use super::operations::{Access, FileOperations};
use super::{ToolCall, ToolError};

/// The `path` argument of a call, as the model gave it.
pub(super) fn argument(call: &ToolCall) -> Result<String, ToolError> {
    let given = call.arguments.get("path").and_then(Value::as_str);
    given.map(str::to_owned).ok_or_else(|| ToolError::new("path must be a string"))
}

/// Resolves a `path` argument against the working directory, in the steps of T20. The file need not exist.
///
/// Errors: a file URL that is none, or `~` when the home directory is not known.
pub fn resolve(path: &str, cwd: &Path) -> Result<PathBuf, ToolError> {
    resolve_with(path, cwd, std::env::home_dir())
}

/// Resolves like [`resolve`], with a home directory of the host's ([`home`](super::operations::FileOperations::home)).
pub fn resolve_with(path: &str, cwd: &Path, home: Option<PathBuf>) -> Result<PathBuf, ToolError> {
    let path: String = path.chars().map(|c| if is_odd_space(c) { ' ' } else { c }).collect();
    let path = path.strip_prefix('@').unwrap_or(&path);
    if path == "~" || path.starts_with("~/") {
        let rest = path[1..].trim_start_matches('/');
        let home = home.ok_or_else(|| ToolError::new("the home directory is not known; use an absolute path"))?;
        return Ok(normalise(&home.join(rest)));
    }
    match path.strip_prefix("file://") {
        Some(rest) => Ok(normalise(&file_url(rest)?)),
        None => Ok(normalise(&cwd.join(path))),
    }
}

/// The path to read: the resolved one, or if there is nothing, the same name as screenshots, typographers and other
/// file systems spell it (T27–T30).
pub fn existing_variant(path: PathBuf) -> PathBuf {
    if path.exists() {
        return path;
    }
    variants(&path).into_iter().find(|variant| variant.exists()).unwrap_or(path)
}

/// The same for files that a host serves.
pub(crate) async fn existing_variant_of(files: &dyn FileOperations, path: PathBuf) -> PathBuf {
    if files.access(&path, Access::Read).await.is_ok() {
        return path;
    }
    for variant in variants(&path) {
        if files.access(&variant, Access::Read).await.is_ok() {
            return variant;
        }
    }
    path
}

fn variants(path: &Path) -> Vec<PathBuf> {
    let Some(text) = path.to_str() else { return Vec::new() };
    let decomposed: String = text.nfd().collect();
    let curly = |text: &str| text.replace('\'', "\u{2019}");
    // Composed names last: no rule asks for them, but a model that saw a decomposed name means the same file.
    let variants =
        [narrow_space_before_meridiem(text), decomposed.clone(), curly(text), curly(&decomposed), text.nfc().collect()];
    variants.into_iter().filter(|variant| variant != text).map(PathBuf::from).collect()
}

fn is_odd_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// What follows `file://`: an empty host or `localhost`, then a percent-encoded path (T24).
fn file_url(rest: &str) -> Result<PathBuf, ToolError> {
    let invalid = || ToolError::new(format!("invalid file URL: file://{rest}"));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Err(invalid());
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if !path.starts_with('/') {
        return Err(invalid());
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = (digit().ok_or_else(invalid)?, digit().ok_or_else(invalid)?);
        let byte = (high * 16 + low) as u8;
        if byte == b'/' {
            return Err(invalid());
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes).map(PathBuf::from).map_err(|_| invalid())
}

/// `.`, `..` and doubled separators are resolved without looking at the disk (T26).
fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Every space before `AM.` or `PM.` (any case) becomes U+202F.
fn narrow_space_before_meridiem(text: &str) -> String {
    let bytes = text.as_bytes();
    let before = |at: usize| {
        bytes
            .get(at + 1..at + 4)
            .is_some_and(|next| matches!(next[0] | 0x20, b'a' | b'p') && next[1] | 0x20 == b'm' && next[2] == b'.')
    };
    text.char_indices().map(|(at, c)| if c == ' ' && before(at) { '\u{202f}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_in_order() {
        let cwd = Path::new("/w");
        let resolved = |path| resolve(path, cwd).map(|path| path.display().to_string());
        assert_eq!(resolved("a/../b//c/.").unwrap(), "/w/b/c");
        assert_eq!(resolved("@a").unwrap(), "/w/a");
        assert_eq!(resolved("@/abs").unwrap(), "/abs");
        assert_eq!(resolved("a\u{a0}b").unwrap(), "/w/a b");
        assert_eq!(resolved("file:///x%20y").unwrap(), "/x y");
        assert_eq!(resolved("").unwrap(), "/w");
        assert!(resolved("file://host/x").is_err());
        assert_eq!(narrow_space_before_meridiem("/a at 3.04 PM.png"), "/a at 3.04\u{202f}PM.png");
    }
}
