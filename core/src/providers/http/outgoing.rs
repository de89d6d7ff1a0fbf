//! A request before it is sent: its body, and headers by who may see them.

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::Secrets;
use crate::message::JsonObject;

/// A request to a service.
pub(crate) struct Outgoing {
    /// Where to.
    pub(crate) url: String,
    /// Sent also to another origin a redirect names.
    pub(super) headers: HeaderMap,
    /// Sent to the origin of `url` only.
    pub(super) private: HeaderMap,
    /// The JSON body.
    pub(crate) body: Bytes,
    /// What must not appear in any text.
    pub(crate) secrets: Secrets,
    /// Why it cannot be sent: a header that is none.
    pub(super) problem: Option<String>,
    /// What the protocol wants to know again when this is answered.
    pub(crate) memo: Option<Memo>,
}

/// See [`Outgoing::memo`].
pub(crate) type Memo = Box<dyn std::any::Any + Send + Sync>;

impl Outgoing {
    /// A POST of a JSON body.
    pub(crate) fn new(url: String, body: &JsonObject) -> Outgoing {
        let mut text = Vec::with_capacity(4096);
        crate::json::write_object(&mut text, body);
        Outgoing::of_text(url, text)
    }

    /// A POST of a JSON text.
    pub(crate) fn of_text(url: String, text: Vec<u8>) -> Outgoing {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let (private, secrets) = (HeaderMap::new(), Secrets::default());
        Outgoing { url, headers, private, body: text.into(), secrets, problem: None, memo: None }
    }

    /// Sets a header that any origin may see.
    pub(crate) fn header(&mut self, name: &str, value: &str) {
        self.put(name, value, None);
    }

    /// Sets a header for the service's own origin only, for example one that came from configuration.
    pub(crate) fn private_header(&mut self, name: &str, value: &str) {
        self.put(name, value, Some(false));
    }

    /// Sets a header that holds a secret after `prefix`.
    pub(crate) fn secret_header(&mut self, name: &str, prefix: &str, secret: &SecretString) {
        self.secrets.add(secret);
        self.put(name, &format!("{prefix}{}", secret.expose_secret()), Some(true));
    }

    /// Takes a header away.
    pub(crate) fn remove_header(&mut self, name: &str) {
        self.headers.remove(name);
        self.private.remove(name);
    }

    /// Whether there is such a header.
    #[allow(dead_code, reason = "each protocol uses a part")]
    pub(crate) fn has_header(&self, name: &str) -> bool {
        self.headers.contains_key(name) || self.private.contains_key(name)
    }

    fn put(&mut self, name: &str, value: &str, private: Option<bool>) {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        let Some((name, mut value)) = parsed else {
            // The value may be a secret: it is not told.
            self.problem = Some(format!(
                "the header {name:?} has a value that cannot be sent: it holds a line break or another control character (a key \
                 that was read from a file may end with one)"
            ));
            return;
        };
        self.remove_header(name.as_str());
        match private {
            None => self.headers.insert(name, value),
            Some(secret) => {
                value.set_sensitive(secret);
                self.private.insert(name, value)
            }
        };
    }
}
