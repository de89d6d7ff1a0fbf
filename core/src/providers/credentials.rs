//! Where keys come from (P30–P37): the host, its callback, `auth.json`, `models.json`, the environment, in this order.
//!
//! A key is looked up for each request, so that short-lived ones are fresh, and only for the address it belongs to: one
//! that nobody gave for this engine, a variable or a stored one, goes to the provider's own address or to one that the
//! configuration names for that provider, and nowhere else. Keys are kept in memory that is wiped, and no `Debug` form,
//! error or event shows them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;

use super::auth_file::{AuthFile, Stored};
use super::catalogue::{Access, Catalogue};
use super::config_value::seems_resolvable;
pub use super::config_value::{Environment, Unresolved, config_value};
use super::keys::{Key, KeyOptions, KeyRequest, KeySource};
use super::logins::{self, LoginSource};
use super::services::service;
use super::{Auth, AuthFuture, Credentials, Model};
use crate::error::{Error, ErrorCode, Result};

/// The keys of an engine.
pub(crate) struct Keyring {
    inner: Arc<Inner>,
}

struct Inner {
    keys: Mutex<HashMap<String, Key>>,
    source: Mutex<Option<Arc<dyn KeySource>>>,
    file: Option<Arc<AuthFile>>,
    logins: Mutex<Option<Arc<dyn LoginSource>>>,
    handle: Handle,
    environment: Environment,
    commands: bool,
    /// Output of the commands of stored keys: it holds as long as the engine (P34).
    outputs: Mutex<HashMap<String, SecretString>>,
    catalogue: Arc<Catalogue>,
}

impl Keyring {
    pub(crate) fn new(options: &KeyOptions, catalogue: Arc<Catalogue>, handle: Handle) -> Keyring {
        let environment = if options.environment { Environment::process() } else { Environment::default() };
        let inner = Inner {
            keys: Mutex::new(options.keys.iter().cloned().collect()),
            source: Mutex::new(options.source.clone()),
            file: options.auth_file.clone().map(|path| Arc::new(AuthFile::new(path))),
            logins: Mutex::new(options.logins.clone()),
            handle,
            environment,
            commands: options.commands,
            outputs: Mutex::default(),
            catalogue,
        };
        Keyring { inner: Arc::new(inner) }
    }

    /// Sets or, with `None`, forgets the key the host gives for a provider.
    pub(crate) fn set(&self, provider: &str, key: Option<Key>) {
        let mut keys = lock(&self.inner.keys);
        match key {
            Some(key) => drop(keys.insert(provider.to_owned(), key)),
            None => drop(keys.remove(provider)),
        }
    }

    /// Sets or, with `None`, takes away whom to ask next.
    pub(crate) fn set_source(&self, source: Option<Arc<dyn KeySource>>) {
        let before = std::mem::replace(&mut *lock(&self.inner.source), source);
        drop(before); // not under the lock: it is the host's
    }

    /// Sets or, with `None`, takes away who makes stored logins anew.
    pub(crate) fn set_logins(&self, source: Option<Arc<dyn LoginSource>>) {
        let before = std::mem::replace(&mut *lock(&self.inner.logins), source);
        drop(before); // not under the lock, as above
    }

    /// The file with stored keys, for changing it.
    pub(crate) fn file(&self) -> Option<Arc<AuthFile>> {
        self.inner.file.clone()
    }

    /// Whether a key for the model is configured; runs no command and asks nobody (P36). Reads a small file at the most.
    pub(crate) fn is_configured(&self, model: &Model) -> bool {
        lock(&self.inner.source).is_some() || self.holds(model)
    }

    /// The same, without the hope that the host's callback has one.
    pub(crate) fn holds(&self, model: &Model) -> bool {
        let inner = &self.inner;
        if lock(&inner.keys).contains_key(&model.provider) {
            return true;
        }
        let access = inner.catalogue.access(model);
        let (own, stored) = match inner.stored(&model.provider) {
            Ok(stored) => stored,
            Err(_) => return false,
        };
        let resolvable = |text: &str| seems_resolvable(text, &own, inner.commands);
        let by_header = access.headers.iter().any(|(name, value)| {
            carries_key(name) && value.as_deref().is_some_and(|value| !value.is_empty() && resolvable(value))
        });
        if by_header {
            return true;
        }
        match stored {
            Some(Found::Key(key, _)) => inner.belongs(model, &access) && resolvable(key.expose_secret()),
            Some(Found::Login) => inner.belongs(model, &access),
            Some(Found::Unusable(_)) => false,
            None => {
                access.api_key.as_deref().is_some_and(resolvable)
                    || (inner.belongs(model, &access) && variable(&model.provider, &own).is_some())
            }
        }
    }
}

/// What `auth.json` has for a provider.
enum Found {
    /// In the form of configured values; and whether it is sent as a bearer token.
    Key(SecretString, bool),
    /// A login that the host can make anew.
    Login,
    Unusable(String),
}

impl Credentials for Keyring {
    fn resolve<'a>(&'a self, model: &'a Model) -> AuthFuture<'a> {
        Box::pin(async move {
            let inner = &self.inner;
            let mut key = lock(&inner.keys).get(&model.provider).cloned();
            let source = lock(&inner.source).clone();
            if let (None, Some(source)) = (&key, source) {
                let (provider, id, base_url) = (model.provider.clone(), model.id.clone(), model.base_url.clone());
                let asked = source.key(KeyRequest { provider, model: id, base_url }).await;
                key = asked.map_err(|problem| {
                    let text = format!("the host gave no key for {}: {problem}", model.provider);
                    Error::new(ErrorCode::NoCredentials, text)
                })?;
            }
            if key.is_none() {
                key = inner.login(model).await?;
            }
            let (theirs, model) = (inner.clone(), model.clone());
            // The rest may read a file or run a command.
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => {
                    let work = runtime.spawn_blocking(move || theirs.complete(&model, key));
                    work.await.unwrap_or_else(|_| Err(Error::new(ErrorCode::Closed, "the engine was shut down")))
                }
                Err(_) => theirs.complete(&model, key),
            }
        })
    }
}

impl Inner {
    /// The key of a stored login, made anew if it is time (P32).
    async fn login(&self, model: &Model) -> Result<Option<Key>> {
        let source = lock(&self.logins).clone();
        let (Some(file), Some(source)) = (&self.file, source) else { return Ok(None) };
        let work = logins::key(file.clone(), source, model.provider.clone());
        let closed = |_| Err(Error::new(ErrorCode::Closed, "the engine was shut down"));
        let key = self.handle.spawn(work).await.unwrap_or_else(closed)?;
        if key.is_some() {
            self.check_origin(model, &self.catalogue.access(model), "the stored login")?;
        }
        Ok(key)
    }

    /// Adds what configuration says to a key of the host's, or finds one.
    fn complete(&self, model: &Model, given: Option<Key>) -> Result<Auth> {
        let access = self.catalogue.access(model);
        let mut auth = Auth::default();
        let mut own = self.environment.clone();
        let key = match given {
            Some(key) => Some(key),
            None => {
                let (theirs, stored) = self.stored(&model.provider)?;
                own = theirs;
                self.found(model, &access, stored, &own)?
            }
        };
        for (name, value) in &access.headers {
            let value = match value {
                Some(text) => Some(self.value(text, &own, false).map_err(|why| {
                    let what = format!("the header {name:?} of {}", model.full_name());
                    unresolved(&what, "the configuration of models", &why)
                })?),
                None => None,
            };
            auth.headers.push((name.clone(), value));
        }
        if access.auth_header {
            let Some(key) = &key else {
                let text = format!("authHeader is set for {}, but there is no key for it", model.provider);
                return Err(Error::new(ErrorCode::NoCredentials, text));
            };
            let bearer = SecretString::from(format!("Bearer {}", key.secret.expose_secret()));
            auth.headers.push(("Authorization".to_owned(), Some(bearer)));
        }
        if let Some(key) = key {
            auth.bearer = key.bearer;
            auth.key = Some(key.secret);
        }
        auth.base_url = filled(&model.base_url, &own)?;
        Ok(auth)
    }

    /// The environment of a provider, and what is stored for it.
    fn stored(&self, provider: &str) -> Result<(Environment, Option<Found>)> {
        let Some(file) = &self.file else { return Ok((self.environment.clone(), None)) };
        let stored = file.load()?;
        match stored.get(provider) {
            None => Ok((self.environment.clone(), None)),
            Some(Stored::Login(_)) if lock(&self.logins).is_some() => {
                Ok((self.environment.clone(), Some(Found::Login)))
            }
            Some(stored @ (Stored::Login(_) | Stored::Other(_))) => {
                let kind = if let Stored::Other(kind) = stored { kind } else { "oauth" };
                let text = format!(
                    "what {} stores for {provider} is no API key but {kind:?}, and no source of logins was given to the \
                     engine; store an API key, or give the engine one",
                    file.path().display()
                );
                Ok((self.environment.clone(), Some(Found::Unusable(text))))
            }
            Some(Stored::ApiKey { key, environment }) => {
                let variables = environment.iter().map(|(name, value)| (name.as_str(), value.expose_secret()));
                let own = self.environment.with(variables);
                if let Some(key) = key {
                    return Ok((own, Some(Found::Key(key.clone(), false))));
                }
                // Only variables are stored, an account for example: the key is one of them, or one of the environment (P31).
                // The provider is owned by the entry all the same.
                let found = match variable(provider, &own) {
                    Some((_, key)) => Found::Key(escaped(key.secret.expose_secret()), key.bearer),
                    None => Found::Unusable(format!("{} stores no key for {provider}", file.path().display())),
                };
                Ok((own, Some(found)))
            }
        }
    }

    fn found(&self, model: &Model, access: &Access, stored: Option<Found>, own: &Environment) -> Result<Option<Key>> {
        let what = format!("the key of {}", model.provider);
        match stored {
            // Was asked for before; it is gone by now.
            Some(Found::Login) => return Ok(None),
            Some(Found::Unusable(text)) => return Err(Error::new(ErrorCode::NoCredentials, text)),
            Some(Found::Key(text, bearer)) => {
                self.check_origin(model, access, "the stored key")?;
                let key = self.value(text.expose_secret(), own, true);
                return key
                    .map(|secret| Some(Key { secret, bearer }))
                    .map_err(|why| unresolved(&what, "the file with keys", &why));
            }
            None => {}
        }
        if let Some(text) = &access.api_key {
            let key = self.value(text, own, false);
            return key
                .map(|secret| Some(Key { secret, bearer: false }))
                .map_err(|why| unresolved(&what, "the configuration of models", &why));
        }
        let Some((name, key)) = variable(&model.provider, own) else { return Ok(None) };
        if self.belongs(model, access) {
            return Ok(Some(key));
        }
        // A server of one's own that bears a known name needs no key.
        if super::protocol::is_local(&model.base_url) {
            return Ok(None);
        }
        self.check_origin(model, access, &format!("the key in {name}"))?;
        Ok(Some(key))
    }

    /// Whether keys that the host did not give for this address may go there.
    fn belongs(&self, model: &Model, access: &Access) -> bool {
        let own = service(&model.provider).and_then(|service| service.usual).map(|(_, url)| url);
        let known = access.addresses.iter().map(String::as_str).chain(own);
        let wanted = origin(&model.base_url);
        let mut known = known.peekable();
        // A provider that nobody but the host knows has no other address.
        known.peek().is_none() || known.any(|address| origin(address) == wanted)
    }

    fn check_origin(&self, model: &Model, access: &Access, what: &str) -> Result<()> {
        if self.belongs(model, access) {
            return Ok(());
        }
        let text = format!(
            "{what} for {} belongs to another address than {}; give the engine a key for this provider, or use another \
             provider name for this address",
            model.provider,
            origin(&model.base_url)
        );
        Err(Error::new(ErrorCode::NoCredentials, text))
    }

    /// The value of a configured text; the output of a stored key's command is kept.
    fn value(&self, text: &str, own: &Environment, keep: bool) -> Result<SecretString, Unresolved> {
        let keep = keep && text.starts_with('!');
        if keep && let Some(known) = lock(&self.outputs).get(text) {
            return Ok(known.clone());
        }
        let value = config_value(text, own, self.commands)?;
        let value = SecretString::from(value);
        if keep {
            lock(&self.outputs).insert(text.to_owned(), value.clone());
        }
        Ok(value)
    }
}

fn unresolved(what: &str, place: &str, why: &Unresolved) -> Error {
    Error::new(ErrorCode::NoCredentials, format!("{what} from {place} is not there: {why}"))
}

/// The variable that holds a provider's key (P33).
fn variable(provider: &str, environment: &Environment) -> Option<(&'static str, Key)> {
    let names = service(provider)?.variables;
    names.iter().find_map(|name| {
        let secret = SecretString::from(environment.get(name)?.trim());
        Some((*name, Key { secret, bearer: matches!(*name, "ANTHROPIC_AUTH_TOKEN" | "ANTHROPIC_OAUTH_TOKEN") }))
    })
}

/// The variables that may hold a provider's key.
pub(crate) fn variables(provider: &str) -> &'static [&'static str] {
    service(provider).map_or(&[], |service| service.variables)
}

/// A text that stands for itself in configuration.
pub(super) fn escaped(text: &str) -> SecretString {
    let text = text.replace('$', "$$");
    SecretString::from(if text.starts_with('!') { format!("${text}") } else { text })
}

/// Fills `{NAME}` in an address (P37); `None` if there is nothing to fill.
fn filled(url: &str, environment: &Environment) -> Result<Option<String>> {
    if !url.contains('{') {
        return Ok(None);
    }
    let mut out = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        let Some(value) = environment.get(name) else {
            let text = format!("the address {url} needs the environment variable {name}");
            return Err(Error::new(ErrorCode::NoCredentials, text));
        };
        out.push_str(before);
        out.push_str(value.trim());
        rest = after;
    }
    out.push_str(rest);
    Ok(Some(out))
}

/// Scheme, host and port.
fn origin(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(parsed) => parsed.origin().ascii_serialization(),
        Err(_) => url.to_owned(),
    }
}

fn carries_key(name: &str) -> bool {
    ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cf-aig-authorization"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
