//! How an engine reaches services.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Which proxy requests go through.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyChoice {
    /// What `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    #[default]
    Environment,
    /// None, whatever the environment says.
    Direct,
    /// This one for everything, `http://[user:password@]host:port`. The password never appears in errors.
    Url(String),
}

impl fmt::Debug for ProxyChoice {
    /// The address may hold a password, so it is not told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProxyChoice::Environment => "Environment",
            ProxyChoice::Direct => "Direct",
            ProxyChoice::Url(_) => "Url",
        })
    }
}

/// Network settings of an engine; they hold for all its sessions.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NetworkOptions {
    /// The proxy.
    pub proxy: ProxyChoice,
    /// A PEM file with certificates that are trusted beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// The longest wait for a connection; 30 s by default.
    pub connect_timeout: Duration,
    /// The longest silence of a service that is to answer, before its answer and within it; 5 minutes by default, `None`
    /// for none. The setting `httpIdleTimeoutMs` of a session wins.
    pub idle_timeout: Option<Duration>,
    /// Requests to one service at a time; 32 by default. Further ones wait. 429 answers lower it for a while.
    pub max_requests_per_origin: usize,
    /// Headers sent with every request, below those of a model. Not for secrets.
    pub headers: Vec<(String, String)>,
}

impl Default for NetworkOptions {
    fn default() -> NetworkOptions {
        NetworkOptions {
            proxy: ProxyChoice::default(),
            ca_file: None,
            connect_timeout: Duration::from_secs(30),
            idle_timeout: Some(Duration::from_secs(300)),
            max_requests_per_origin: 32,
            headers: Vec::new(),
        }
    }
}

impl NetworkOptions {
    /// Sets [`proxy`](Self::proxy).
    pub fn proxy(mut self, proxy: ProxyChoice) -> Self {
        self.proxy = proxy;
        self
    }

    /// Sets [`ca_file`](Self::ca_file).
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Sets [`connect_timeout`](Self::connect_timeout).
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets [`idle_timeout`](Self::idle_timeout).
    pub fn idle_timeout(mut self, limit: Option<Duration>) -> Self {
        self.idle_timeout = limit;
        self
    }

    /// Sets [`max_requests_per_origin`](Self::max_requests_per_origin).
    pub fn max_requests_per_origin(mut self, limit: usize) -> Self {
        self.max_requests_per_origin = limit;
        self
    }

    /// Adds to [`headers`](Self::headers).
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}
