//! Keys: where they come from is not a provider's business.

use std::future::Future;
use std::pin::Pin;

use secrecy::SecretString;

use super::Model;
use crate::error::Result;

/// What a request is authorised with.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Auth {
    /// The key, sent the way the protocol has it; `None` if nothing is needed or a header carries it.
    pub key: Option<SecretString>,
    /// Send the key as `Authorization: Bearer` also where the protocol has another header.
    pub bearer: bool,
    /// Further headers with resolved values, above those of the model; `None` removes one. Treated as secrets.
    pub headers: Vec<(String, Option<SecretString>)>,
    /// Where requests go instead of the model's base URL, templates filled (P37).
    pub base_url: Option<String>,
}

impl Auth {
    /// A key and nothing else.
    pub fn key(key: impl Into<SecretString>) -> Auth {
        Auth { key: Some(key.into()), ..Auth::default() }
    }

    /// Whether anything authorises: a key, or a header for it (P30).
    pub fn is_some(&self) -> bool {
        let carries = |name: &str| {
            ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cf-aig-authorization"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        };
        self.key.is_some() || self.headers.iter().any(|(name, value)| value.is_some() && carries(name))
    }
}

/// The future of a key.
pub type AuthFuture<'a> = Pin<Box<dyn Future<Output = Result<Auth>> + Send + 'a>>;

/// Looks up keys when a request is made, so that short-lived tokens are fresh.
pub trait Credentials: Send + Sync {
    /// What authorises requests to `model`. Without any, an empty [`Auth`]: the request fails with a sentence that
    /// names the provider, except for services on this machine, which need no key.
    ///
    /// Runs on a worker thread and must not block it. Errors become the failure of the request, so their text must not
    /// hold secrets.
    fn resolve<'a>(&'a self, model: &'a Model) -> AuthFuture<'a>;
}

impl std::fmt::Debug for dyn Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}
