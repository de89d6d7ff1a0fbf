//! Logins that are stored in `auth.json` beside keys (P32): tokens that live shortly and are made anew.
//!
//! A token belongs to the program that somebody logged in with, so it is the host that makes new ones; this library finds out
//! when, sees to it that only one program does it at a time, and stores what came of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::Value;

use super::auth_file::{AuthFile, Stored};
use super::keys::Key;
use crate::error::{Error, ErrorCode, Result};
use crate::message::JsonObject;
use crate::system::clock::now_ms;

/// A token that lives no longer than this is made anew.
const MARGIN_MS: f64 = 5.0 * 60_000.0;
/// How long that may take.
const LIMIT: Duration = Duration::from_secs(15);

/// A login as it is stored: `{"type": "oauth", "access": …, "refresh": …, "expires": milliseconds, …}`. Whatever else is in it
/// stays as it is.
#[derive(Clone)]
#[non_exhaustive]
pub struct Login {
    /// Whose it is.
    pub provider: String,
    /// The entry of `auth.json`.
    pub entry: JsonObject,
}

impl Login {
    /// A login.
    pub fn new(provider: impl Into<String>, entry: JsonObject) -> Login {
        Login { provider: provider.into(), entry }
    }

    /// The access token.
    pub fn access(&self) -> Option<&str> {
        self.entry.get("access").and_then(Value::as_str).filter(|token| !token.is_empty())
    }

    /// When it ends, in milliseconds since 1970.
    pub fn expires(&self) -> Option<f64> {
        self.entry.get("expires").and_then(Value::as_f64)
    }

    fn lives(&self, margin: f64) -> bool {
        self.expires().is_some_and(|end| end - margin > now_ms() as f64)
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// The answer of a [`LoginSource`]: the new entry. An error must not hold secrets.
pub type LoginFuture = Pin<Box<dyn Future<Output = Result<JsonObject, String>> + Send>>;

/// A host whose people are logged in at services.
pub trait LoginSource: Send + Sync {
    /// Makes a login anew: gives the entry that takes the place of the stored one, with new `access` and `expires`.
    ///
    /// Asked on a worker thread when fewer than five minutes remain, by one program at a time. It must return at once; the
    /// future has 15 seconds, and is finished and its answer stored also if the request that needed it is aborted. The file
    /// is locked meanwhile: storing something in it from here, or from the future, fails with `would_deadlock`; elsewhere it
    /// waits.
    fn refresh(&self, login: Login) -> LoginFuture;

    /// How the login is sent: by default its `access` as a bearer token. `None` if it has none.
    fn key(&self, login: &Login) -> Option<Key> {
        login.access().map(Key::bearer)
    }
}

impl std::fmt::Debug for dyn LoginSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoginSource")
    }
}

/// The key of a provider's stored login, made anew if it is time; `None` if no login is stored. Runs on a runtime.
pub(super) async fn key(file: Arc<AuthFile>, source: Arc<dyn LoginSource>, provider: String) -> Result<Option<Key>> {
    let login = {
        let (file, provider) = (file.clone(), provider.clone());
        off_thread(move || stored(&file, &provider)).await?
    };
    let Some(login) = login else { return Ok(None) };
    let login = if login.lives(MARGIN_MS) {
        login
    } else {
        // A task of its own: once begun it is finished, whoever asked.
        let work = refreshed(file.clone(), source.clone(), login);
        tokio::spawn(work).await.unwrap_or_else(|_| Err(Error::new(ErrorCode::Closed, "the engine was shut down")))?
    };
    match source.key(&login) {
        Some(key) => Ok(Some(key)),
        None => Err(Error::new(ErrorCode::NoCredentials, format!("the stored login of {provider} has no token"))),
    }
}

async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let work = tokio::task::spawn_blocking(work).await;
    work.unwrap_or_else(|_| Err(Error::new(ErrorCode::Closed, "the engine was shut down")))
}

fn stored(file: &AuthFile, provider: &str) -> Result<Option<Login>> {
    Ok(match file.load()?.get(provider) {
        Some(Stored::Login(text)) => login(provider, serde_json::from_str(text.expose_secret()).ok()),
        _ => None,
    })
}

fn login(provider: &str, entry: Option<Value>) -> Option<Login> {
    match entry {
        Some(Value::Object(entry)) => Some(Login { provider: provider.to_owned(), entry }),
        _ => None,
    }
}

async fn refreshed(file: Arc<AuthFile>, source: Arc<dyn LoginSource>, known: Login) -> Result<Login> {
    let provider = known.provider.clone();
    let failed = |why: &str| {
        let text = format!("the stored login of {provider} could not be made anew: {why}; log in again");
        Error::new(ErrorCode::NoCredentials, text)
    };
    // Somebody else may have done it while the lock was waited for, or have logged out.
    let wanted = provider.clone();
    let look = move || {
        let locked = file.lock(None)?;
        let entry = locked.entries()?.get(&wanted).cloned();
        Ok((locked, entry))
    };
    let (locked, entry) = off_thread(look).await?;
    let Some(current) = login(&provider, entry) else { return Err(failed("it is no longer stored")) };
    if current.lives(MARGIN_MS) {
        return Ok(current);
    }
    let question = locked.held().asking(async { source.refresh(current.clone()).await });
    let answer = tokio::time::timeout(LIMIT, question).await;
    match answer.unwrap_or_else(|_| Err("it took longer than 15 seconds".to_owned())) {
        Ok(mut entry) => {
            entry.insert("type".to_owned(), "oauth".into()); // or it would be a login no more
            let new = Login { provider: provider.clone(), entry };
            let value = Value::Object(new.entry.clone());
            off_thread(move || locked.put(&provider, Some(value))).await?;
            Ok(new)
        }
        // It may be good for the moment that is left.
        Err(_) if current.lives(0.0) => Ok(current),
        Err(why) => Err(failed(&why)),
    }
}
