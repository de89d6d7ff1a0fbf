//! Changing `auth.json` (P31): one entry at a time, under the lock that pi takes; other entries and their order stay, and
//! whoever reads sees the old file or the new one.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::auth_file::AuthFile;
use super::credentials::escaped;
use super::held_lock::HeldLock;
use super::lock_dir::LockDir;
use crate::error::Result;
use crate::message::JsonObject;

/// How long other programs are waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A key to be stored in `auth.json`, and variables for its provider alone.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoredKey {
    /// In the form of configured values (P34): `$NAME` is a variable, `!` in front makes it a command.
    key: Option<SecretString>,
    environment: Vec<(String, SecretString)>,
}

impl StoredKey {
    /// A key as it is, whatever characters it has.
    pub fn new(key: impl Into<SecretString>) -> StoredKey {
        StoredKey { key: Some(escaped(key.into().expose_secret())), environment: Vec::new() }
    }

    /// A configured value: `$NAME` and `${NAME}` are variables, `$$` is a `$`, and one that begins with `!` is a command.
    pub fn configured(text: impl Into<SecretString>) -> StoredKey {
        StoredKey { key: Some(text.into()), environment: Vec::new() }
    }

    /// No key, only variables.
    pub fn variables() -> StoredKey {
        StoredKey::default()
    }

    /// Adds a variable that only this provider sees, for example the account of an address (P37).
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> StoredKey {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// As `auth.json` has it.
    pub(crate) fn entry(&self) -> Value {
        let mut entry = json!({"type": "api_key"});
        if let Some(key) = &self.key {
            entry["key"] = key.expose_secret().into();
        }
        if !self.environment.is_empty() {
            let variables = self.environment.iter().map(|(name, value)| (name.clone(), value.expose_secret().into()));
            entry["env"] = Value::Object(variables.collect());
        }
        entry
    }
}

/// The file while nobody else changes it.
pub(crate) struct Locked {
    file: Arc<AuthFile>,
    /// Links followed: it is the real file that is locked and replaced.
    path: PathBuf,
    _lock: LockDir,
}

impl AuthFile {
    /// Waits until nobody else changes the file. Its directory is made if it is not there. Blocks.
    ///
    /// Errors: `storage_failed`, and `would_deadlock` when it is the lock that the caller is asked under.
    pub(super) fn lock(self: &Arc<AuthFile>, held: Option<&HeldLock>) -> Result<Locked> {
        let cannot = |error: io::Error| self.failed("cannot lock", &error);
        let path = real(self.path()).map_err(cannot)?;
        if let Some(held) = held.filter(|held| held.is_of(&path)) {
            return Err(held.refusal());
        }
        let lock = LockDir::take(&path, PATIENCE).map_err(cannot)?;
        Ok(Locked { file: self.clone(), path, _lock: lock })
    }
}

impl Locked {
    /// For questions that are asked meanwhile.
    pub(super) fn held(&self) -> HeldLock {
        HeldLock::new(self.path.clone())
    }

    /// Every entry. A missing or empty file has none.
    pub(crate) fn entries(&self) -> Result<JsonObject> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(JsonObject::new()),
            Err(error) => return Err(self.file.failed("cannot read", &error)),
        };
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        if text.trim_ascii().is_empty() {
            return Ok(JsonObject::new());
        }
        // What is broken is somebody's keys all the same, and stays.
        match serde_json::from_slice(text) {
            Ok(Value::Object(entries)) => Ok(entries),
            Ok(_) => Err(self.file.failed("cannot understand", &"it does not hold a JSON object")),
            Err(error) => Err(self.file.failed("cannot understand", &error)),
        }
    }

    /// Sets or, with `None`, removes the entry of a provider. Tells whether there was one.
    pub(crate) fn put(&self, provider: &str, entry: Option<Value>) -> Result<bool> {
        let mut entries = self.entries()?;
        let before = match entry {
            Some(entry) => entries.insert(provider.to_owned(), entry),
            None => entries.shift_remove(provider),
        };
        if before.is_some() || entries.contains_key(provider) {
            self.write(&entries).map_err(|error| self.file.failed("cannot write", &error))?;
            self.file.forget();
        }
        Ok(before.is_some())
    }

    fn write(&self, entries: &JsonObject) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(entries)?;
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        let mut file = tempfile::Builder::new().prefix(".auth-").tempfile_in(dir)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        // The new name is on the disk only when the directory is.
        fs::File::open(dir)?.sync_all()
    }
}

/// Where a file really is; its directory is made, for its owner only. A link to nothing leads to where its target would be.
fn real(path: &Path) -> io::Result<PathBuf> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    if let Ok(target) = fs::read_link(path) {
        let target = dir.join(target);
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        return Ok(target.parent().unwrap_or(dir).canonicalize()?.join(name));
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(dir.canonicalize()?.join(name))
}
