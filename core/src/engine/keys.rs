//! Storing keys for the programs of a person: the `auth.json` that the engine reads (P31).

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::engine::{Engine, EngineOptions};
use crate::error::{Error, ErrorCode, Result};
use crate::providers::{self, Login, LoginSource, StoredKey};

/// What is stored for one provider, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoredEntry {
    /// Whose it is.
    pub provider: String,
    /// `api_key`, `oauth`, or what another program wrote.
    #[serde(rename = "type")]
    pub kind: String,
}

impl EngineOptions {
    /// Sets the [`logins`](crate::providers::KeyOptions::logins) of [`keys`](Self::keys).
    pub fn login_source(mut self, source: Arc<dyn LoginSource>) -> Self {
        self.keys.logins = Some(source);
        self
    }
}

impl Engine {
    /// Sets or, with `None`, takes away who makes stored logins anew (P32), from the next request on. Without one they are of
    /// no use.
    pub fn set_login_source(&self, source: Option<Arc<dyn LoginSource>>) {
        self.shared().keyring.set_logins(source);
    }

    /// Stores a key for a provider in the engine's [`auth_file`](crate::providers::KeyOptions::auth_file), in the place of what
    /// was stored for it. Other entries and their order stay, also those of other programs; the file and its directory are
    /// made if they are not there, readable by their owner only. It is the file of pi: what is stored there is known to pi, too.
    /// From the next request on the key is used.
    ///
    /// Errors: `invalid_argument` without a file or a provider, `storage_failed`; then the file is what it was.
    /// `would_deadlock` in a [`LoginSource`] that is asked under the lock of this file, `closed`.
    pub async fn store_key(&self, provider: &str, key: StoredKey) -> Result<()> {
        self.change_stored(provider, Some(key.entry())).await.map(drop)
    }

    /// The same for a login (P32). Its entry gets the type `oauth`. What a [`LoginSource`] gives is stored by itself.
    ///
    /// Errors: as [`store_key`](Engine::store_key).
    pub async fn store_login(&self, login: Login) -> Result<()> {
        let mut entry = login.entry;
        entry.insert("type".to_owned(), "oauth".into());
        self.change_stored(&login.provider, Some(Value::Object(entry))).await.map(drop)
    }

    /// Removes what is stored for a provider. Tells whether something was.
    ///
    /// Errors: as [`store_key`](Engine::store_key).
    pub async fn forget_stored(&self, provider: &str) -> Result<bool> {
        self.change_stored(provider, None).await
    }

    /// What is stored, in the order of the file. Secrets are not told.
    ///
    /// Errors: as [`store_key`](Engine::store_key).
    pub async fn stored_keys(&self) -> Result<Vec<StoredEntry>> {
        let file = self.shared().keyring.file().ok_or_else(no_file)?;
        let lock = providers::locking(file.clone());
        let read = move || {
            let kind = |entry: &Value| entry.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
            if !file.path().exists() {
                return Ok(Vec::new());
            }
            let entries = lock()?.entries()?;
            Ok(entries.into_iter().map(|(provider, entry)| StoredEntry { kind: kind(&entry), provider }).collect())
        };
        self.shared().blocking(read).await
    }

    async fn change_stored(&self, provider: &str, entry: Option<Value>) -> Result<bool> {
        let file = self.shared().keyring.file().ok_or_else(no_file)?;
        if provider.trim().is_empty() {
            return Err(Error::new(ErrorCode::InvalidArgument, "a key is stored for a provider; give its name"));
        }
        let provider = provider.to_owned();
        let lock = providers::locking(file);
        self.shared().blocking(move || lock()?.put(&provider, entry)).await
    }
}

fn no_file() -> Error {
    let text = "the engine has no file with keys; name one in its options (auth_file, or agent_files)";
    Error::new(ErrorCode::InvalidArgument, text)
}
