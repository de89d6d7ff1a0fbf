//! What a call is about: the paths it names, with every link followed, and its command.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::fence::Root;
use super::{Effect, RequestedPath};
use crate::message::JsonObject;
use crate::tools::operations::{FileOperations, Replaced};
use crate::tools::{Operations, ToolDefinition, ToolError, path};

/// Links followed for one path before it counts as a loop: what Linux follows.
pub(super) const MOST_LINKS: u32 = 40;

/// What a call is about.
pub(super) struct Target {
    pub(super) effect: Effect,
    pub(super) command: Option<String>,
    pub(super) paths: Vec<RequestedPath>,
}

/// Looks at a call. `roots` say what counts as inside.
///
/// Errors: what the tool itself would say to a path that is none, or that cannot be followed.
pub(super) async fn of(
    definition: &ToolDefinition,
    arguments: &JsonObject,
    cwd: &Path,
    operations: &Operations,
    roots: &[Root],
) -> Result<Target, ToolError> {
    let effect = definition.effect;
    let command = (effect == Effect::Execute).then(|| arguments.get("command").and_then(Value::as_str)).flatten();
    let mut given: Vec<String> = Vec::new();
    for name in &definition.path_arguments {
        match arguments.get(name) {
            // A path that is left out is the working directory.
            None | Some(Value::Null) => given.push(String::new()),
            Some(Value::String(path)) => given.push(path.clone()),
            Some(Value::Array(paths)) => given.extend(paths.iter().filter_map(Value::as_str).map(str::to_owned)),
            Some(_) => {}
        }
    }
    let mut paths = Vec::with_capacity(given.len());
    if !given.is_empty() {
        let files = &operations.files;
        let failed = |error: io::Error| ToolError::new(format!("Cannot tell where the path leads: {error}"));
        let replaced = files.replaced().await.map_err(failed)?;
        for given in given {
            let resolved = path::resolve_with(&given, cwd, files.home())?;
            let (path, real) = if replaced.contains(&resolved) {
                served(&**files, resolved, &replaced).await.map_err(failed)?
            } else {
                local(resolved, effect).await.map_err(failed)?
            };
            let inside = roots.iter().any(|root| root.contains(&real));
            paths.push(RequestedPath { given, path, real, inside });
        }
    }
    Ok(Target { effect, command: command.map(str::to_owned), paths })
}

/// A path on the disk of this machine, and where it leads.
async fn local(path: PathBuf, effect: Effect) -> io::Result<(PathBuf, PathBuf)> {
    let work = move || {
        // The spelling that reading will find.
        let path = if effect == Effect::Read { path::existing_variant(path) } else { path };
        prospective(&path).map(|real| (path, real))
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(io::Error::other("looking at it failed")))
}

/// A path that the host serves, and where it leads as far as the host says.
async fn served(files: &dyn FileOperations, path: PathBuf, replaced: &Replaced) -> io::Result<(PathBuf, PathBuf)> {
    if matches!(replaced, Replaced::Files(_)) {
        // A buffer is where its name says.
        return Ok((path.clone(), path));
    }
    let path = path::existing_variant_of(files, path).await;
    let mut above = path.as_path();
    let mut below: Vec<OsString> = Vec::new();
    loop {
        match files.real_path(above).await {
            Ok(real) => {
                let real = below.iter().rev().fold(real, |real, name| real.join(name));
                return Ok((path.clone(), real));
            }
            Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(error);
            }
            Err(_) => match (above.parent(), above.file_name()) {
                (Some(parent), Some(name)) => {
                    below.push(name.to_owned());
                    above = parent;
                }
                _ => return Ok((path.clone(), path.clone())),
            },
        }
    }
}

/// An absolute path with every link followed, also the last one, as far as there is anything; the rest is taken as it
/// would be made. A link to nothing leads to the place where its target would be.
///
/// Errors: a loop of links, a directory that may not be looked into.
pub(super) fn prospective(path: &Path) -> io::Result<PathBuf> {
    // The usual case in one call.
    if let Ok(real) = std::fs::canonicalize(path) {
        return Ok(real);
    }
    let mut real = PathBuf::from("/");
    let mut rest: Vec<OsString> = parts(path);
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                rest.extend(parts(&target));
            }
            // No link, or nothing there.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT | libc::ENOTDIR)) => {
                real = next;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(real)
}

/// The names of a path, the last first. `..` stays: what it means depends on where the links before it lead.
pub(super) fn parts(path: &Path) -> Vec<OsString> {
    let mut out: Vec<OsString> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect();
    out.reverse();
    out
}
