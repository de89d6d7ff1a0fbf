//! Keys as a host gives them, and where an engine may look for others.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use secrecy::SecretString;

use super::logins::LoginSource;

/// A key, and how it is sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Key {
    /// The key.
    pub secret: SecretString,
    /// It is sent as `Authorization: Bearer` also where the protocol has a header of its own for keys.
    pub bearer: bool,
}

impl Key {
    /// A key that is sent the way the protocol has it.
    pub fn new(secret: impl Into<SecretString>) -> Key {
        Key { secret: secret.into(), bearer: false }
    }

    /// A token that is sent as `Authorization: Bearer`.
    pub fn bearer(secret: impl Into<SecretString>) -> Key {
        Key { secret: secret.into(), bearer: true }
    }
}

/// What a key is asked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyRequest {
    /// The model's provider.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// Where the request goes.
    pub base_url: String,
}

/// The answer of a [`KeySource`]: a key, or `None` for "look elsewhere". An error becomes the failure of the request;
/// its text must not hold secrets.
pub type KeyFuture = Pin<Box<dyn Future<Output = Result<Option<Key>, String>> + Send>>;

/// A host that hands out keys, for example short-lived tokens.
///
/// Asked before every request, on a worker thread of the engine; `key` must return at once and the future must not block
/// its thread. When the request is aborted meanwhile the future is dropped.
pub trait KeySource: Send + Sync {
    /// The key for a request.
    fn key(&self, request: KeyRequest) -> KeyFuture;
}

impl<F: Fn(KeyRequest) -> KeyFuture + Send + Sync> KeySource for F {
    fn key(&self, request: KeyRequest) -> KeyFuture {
        self(request)
    }
}

/// Where an engine takes keys from.
#[derive(Clone)]
#[non_exhaustive]
pub struct KeyOptions {
    /// Provider names and their keys. They win over everything else.
    pub keys: Vec<(String, Key)>,
    /// Asked next.
    pub source: Option<Arc<dyn KeySource>>,
    /// An `auth.json`; it is read at each request when it changed.
    pub auth_file: Option<PathBuf>,
    /// Environment variables such as `ANTHROPIC_API_KEY` count (P33), and `PI_CACHE_RETENTION` (P40). Default true.
    pub environment: bool,
    /// Makes the logins of `auth.json` anew (P32). Without it a stored login is of no use.
    pub logins: Option<Arc<dyn LoginSource>>,
    /// Values in `auth.json` and `models.json` that begin with `!` are run as shell commands (P34). Default false.
    pub commands: bool,
}

impl Default for KeyOptions {
    fn default() -> KeyOptions {
        KeyOptions { keys: Vec::new(), source: None, auth_file: None, environment: true, logins: None, commands: false }
    }
}

impl fmt::Debug for KeyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self.keys.iter().map(|(provider, _)| provider.as_str()).collect();
        f.debug_struct("KeyOptions")
            .field("keys", &keys)
            .field("source", &self.source.is_some())
            .field("auth_file", &self.auth_file)
            .field("environment", &self.environment)
            .field("logins", &self.logins.is_some())
            .field("commands", &self.commands)
            .finish()
    }
}

impl KeyOptions {
    /// Adds one of the [`keys`](Self::keys).
    pub fn key(mut self, provider: impl Into<String>, key: impl Into<SecretString>) -> Self {
        self.keys.push((provider.into(), Key::new(key)));
        self
    }

    /// Sets [`source`](Self::source).
    pub fn source(mut self, source: Arc<dyn KeySource>) -> Self {
        self.source = Some(source);
        self
    }

    /// Sets [`auth_file`](Self::auth_file).
    pub fn auth_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.auth_file = Some(path.into());
        self
    }

    /// Sets [`environment`](Self::environment).
    pub fn environment(mut self, read: bool) -> Self {
        self.environment = read;
        self
    }

    /// Sets [`logins`](Self::logins).
    pub fn logins(mut self, source: Arc<dyn LoginSource>) -> Self {
        self.logins = Some(source);
        self
    }

    /// Sets [`commands`](Self::commands).
    pub fn commands(mut self, run: bool) -> Self {
        self.commands = run;
        self
    }
}
