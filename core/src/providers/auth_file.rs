//! `auth.json`: keys that a person stored for their programs (P31). Here it is read; `auth_write` changes it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use secrecy::SecretString;
use serde_json::Value;

use super::lock_dir::LockDir;
use crate::error::{Error, ErrorCode, Result};

/// Most bytes of the file.
const LIMIT: u64 = 4 * 1024 * 1024;
/// How long a program that writes the file is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// What is stored for one provider.
pub(super) enum Stored {
    /// A key, in the form of configured values, and variables for this provider alone.
    ApiKey { key: Option<SecretString>, environment: Vec<(String, SecretString)> },
    /// A login, as the JSON it is (P32).
    Login(SecretString),
    /// Something else.
    Other(String),
}

/// Everything stored, by provider.
pub(super) type Entries = Arc<HashMap<String, Stored>>;

/// The file, read again when it changed.
pub(crate) struct AuthFile {
    path: PathBuf,
    read: Mutex<Option<(Revision, Entries)>>,
}

/// What tells one state of the file from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Revision {
    modified: Option<SystemTime>,
    length: u64,
    file: u64,
}

impl Revision {
    fn of(metadata: &std::fs::Metadata) -> Revision {
        #[cfg(unix)]
        let file = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let file = 0;
        Revision { modified: metadata.modified().ok(), length: metadata.len(), file }
    }
}

impl AuthFile {
    pub(super) fn new(path: PathBuf) -> AuthFile {
        AuthFile { path, read: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is stored now; a missing file stores nothing. Blocks.
    ///
    /// Errors: `storage_failed` for a file that cannot be read, or is no JSON object. The text holds nothing of it.
    pub(super) fn load(&self) -> Result<Entries> {
        let failed = |what: &str, error: &dyn std::fmt::Display| self.failed(what, error);
        let revision = match std::fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_file() => Revision::of(&metadata),
            Ok(_) => return Err(failed("cannot read", &"it is no regular file")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(failed("cannot read", &error)),
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, stored)) = &*read
            && *known == revision
        {
            return Ok(stored.clone());
        }
        let text = self.text().map_err(|error| failed("cannot read", &error))?;
        let value: Value = serde_json::from_slice(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text))
            .map_err(|error| failed("cannot understand", &error))?;
        let Value::Object(entries) = value else {
            return Err(failed("cannot understand", &"it does not hold a JSON object"));
        };
        let stored = Arc::new(entries.into_iter().map(|(name, value)| (name, Stored::of(&value))).collect());
        *read = Some((revision, Arc::clone(&stored)));
        Ok(stored)
    }

    /// It has to be read again.
    pub(super) fn forget(&self) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn failed(&self, what: &str, error: &dyn std::fmt::Display) -> Error {
        Error::new(ErrorCode::StorageFailed, format!("{what} the file with keys: {error}")).at(&self.path)
    }

    fn text(&self) -> std::io::Result<Vec<u8>> {
        // Some write it in place, and hold the lock for moments. Where it cannot be had the file is read all the same: JSON
        // tells whether the text is whole.
        let lock = LockDir::take(&self.path.canonicalize()?, LOCK_WAIT);
        let file = File::open(&self.path)?;
        let mut text = Vec::new();
        (&file).take(LIMIT).read_to_end(&mut text)?;
        drop(lock);
        Ok(text)
    }
}

impl Stored {
    fn of(value: &Value) -> Stored {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "oauth" {
            return Stored::Login(crate::json::to_string(value).into());
        }
        if kind != "api_key" {
            return Stored::Other(kind.to_owned());
        }
        let variables = value.get("env").and_then(Value::as_object).into_iter().flatten();
        Stored::ApiKey {
            key: value.get("key").and_then(Value::as_str).filter(|key| !key.trim().is_empty()).map(SecretString::from),
            environment: variables
                .filter_map(|(name, value)| Some((name.clone(), SecretString::from(value.as_str()?))))
                .collect(),
        }
    }
}
