//! A wire protocol: what one directory beside this file implements for each kind of service.

use secrecy::ExposeSecret;

use super::Request;
use super::assemble::Assembler;
use super::auth::Auth;
use super::http::{Memo, Outgoing, Refusal};
use super::sse::SseEvent;

/// One wire protocol, shared by all requests of an engine.
pub(crate) trait Protocol: Send + Sync {
    /// Its name in models, for example `anthropic-messages`.
    fn api(&self) -> &'static str;

    /// Whether a request needs a key of some kind.
    fn needs_key(&self, call: &Call<'_>) -> bool {
        !is_local(call.base_url())
    }

    /// The HTTP request, without headers of configuration: the driver adds those (see [`Call::configure`]).
    ///
    /// Errors: why there can be none; the sentence becomes the error of the response.
    fn prepare(&self, call: &Call<'_>) -> Result<Outgoing, String>;

    /// What the message says of the request before anything is answered.
    fn begin(&self, _call: &Call<'_>, _out: &mut Assembler) {}
    /// Reads the answer of one request; `memo` is that of the request which was answered.
    fn interpreter(&self, request: &Request, memo: Option<Memo>) -> Box<dyn Interpreter>;

    /// The error message for a refusal, in the form of P101.
    fn refused(&self, request: &Request, refusal: &Refusal) -> String;

    /// Another request to make instead when this one was refused. The driver asks a few times at the most.
    fn instead(&self, _call: &Call<'_>, _refused: &Outgoing, _refusal: &Refusal) -> Option<Outgoing> {
        None
    }
}

/// What to do after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// More is to come.
    Continue,
    /// The response is logically complete; what follows on the connection does not matter.
    Done,
}

/// The state of one answer.
pub(crate) trait Interpreter: Send {
    /// Takes in one event.
    ///
    /// Errors: the sentence with which the response fails.
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Assembler) -> Result<Flow, String>;

    /// The stream is complete, by [`Flow::Done`] or because it ended: finishes the message ([`Assembler::finish`]).
    ///
    /// Errors: the sentence with which the response fails, also when it just broke off (P106).
    fn end(&mut self, out: &mut Assembler) -> Result<(), String>;
}

/// A request with what authorises it.
pub(crate) struct Call<'a> {
    /// The request.
    pub(crate) request: &'a Request,
    /// What authorises it.
    pub(crate) auth: &'a Auth,
}

impl Call<'_> {
    /// Where requests go, without a trailing slash.
    pub(crate) fn base_url(&self) -> &str {
        self.auth.base_url.as_deref().unwrap_or(&self.request.model.base_url).trim_end_matches('/')
    }

    /// Sends the key as a bearer token.
    pub(crate) fn bearer(&self, out: &mut Outgoing) {
        if let Some(key) = &self.auth.key {
            out.secret_header("authorization", "Bearer ", key);
        }
    }

    /// Sends the key in this header, or as a bearer token if it is one.
    pub(crate) fn key_header(&self, out: &mut Outgoing, name: &str) {
        match &self.auth.key {
            Some(_) if self.auth.bearer => self.bearer(out),
            Some(key) => out.secret_header(name, "", key),
            None => {}
        }
    }

    /// What configuration says about a header, the last word first: `Some(None)` if it is to be removed.
    pub(crate) fn configured_header(&self, name: &str) -> Option<Option<String>> {
        let same = |known: &str| known.eq_ignore_ascii_case(name);
        let find = |headers: &[(String, Option<String>)]| {
            headers.iter().rev().find(|(known, _)| same(known)).map(|(_, value)| value.clone())
        };
        let secret = || {
            let (_, value) = self.auth.headers.iter().rev().find(|(known, _)| same(known))?;
            Some(value.as_ref().map(|value| value.expose_secret().to_owned()))
        };
        find(&self.request.options.headers).or_else(secret).or_else(|| find(&self.request.model.headers))
    }

    /// Adds the headers of configuration, later ones above earlier ones: the model's, those of credentials, the
    /// request's.
    pub(crate) fn configure(&self, out: &mut Outgoing) {
        let plain = |out: &mut Outgoing, headers: &[(String, Option<String>)]| {
            for (name, value) in headers {
                match value {
                    Some(value) => out.private_header(name, value),
                    None => out.remove_header(name),
                }
            }
        };
        plain(out, &self.request.model.headers);
        for (name, value) in &self.auth.headers {
            match value {
                Some(value) => out.secret_header(name, "", value),
                None => out.remove_header(name),
            }
        }
        plain(out, &self.request.options.headers);
    }
}

/// Whether a URL is of this machine: such services need no key.
pub(crate) fn is_local(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| match url.host_str() {
        Some("localhost" | "[::1]" | "0.0.0.0" | "host.docker.internal") => true,
        Some(host) => host.starts_with("127.") && host.parse::<std::net::Ipv4Addr>().is_ok(),
        None => false,
    })
}
