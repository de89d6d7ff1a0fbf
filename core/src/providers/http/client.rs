//! Sending requests: redirects, repetitions, time limits, and the body as it arrives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use reqwest::{Client, StatusCode, Url};
use tokio_util::sync::CancellationToken;

use super::failure::{self, Failure, Refusal};
use super::gate::{Gates, Pass};
use super::outgoing::Outgoing;
use super::{NetworkOptions, ProxyChoice, WireObserver, tls};

/// How we introduce ourselves: never as anybody else.
const USER_AGENT: &str = concat!("branchline/", env!("CARGO_PKG_VERSION"));
/// How much of an error's body is read.
const ERROR_BODY: usize = 64 << 10;
const REDIRECTS: usize = 5;
/// What is left of an answer after its logical end is read for a moment, so that the connection can be used again.
const DRAIN: (Duration, usize) = (Duration::from_millis(300), 64 << 10);

/// Repetition of requests that were refused before anything was answered (P103–P105).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryPolicy {
    /// How often at the most.
    pub(crate) max_retries: u32,
    /// A service that asks for a longer pause fails at once; `None` for no limit.
    pub(crate) max_delay: Option<Duration>,
    /// The longest wait for the head of an answer.
    pub(crate) head: Option<Duration>,
    /// The longest silence.
    pub(crate) idle: Option<Duration>,
}

/// HTTP of an engine.
pub(crate) struct Http {
    options: NetworkOptions,
    client: OnceLock<Result<Client, String>>,
    gates: Gates,
    observer: Option<Arc<dyn WireObserver>>,
    exchanges: AtomicU64,
}

impl Http {
    /// Nothing is set up before the first request.
    pub(crate) fn new(options: NetworkOptions, observer: Option<Arc<dyn WireObserver>>) -> Http {
        let gates = Gates::new(options.max_requests_per_origin);
        Http { options, client: OnceLock::new(), gates, observer, exchanges: AtomicU64::new(0) }
    }

    /// The longest silence when nothing else was said.
    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        self.options.idle_timeout
    }

    fn client(&self) -> Result<Client, Failure> {
        let built = self.client.get_or_init(|| self.build());
        built.clone().map_err(Failure::Setup)
    }

    fn build(&self) -> Result<Client, String> {
        let options = &self.options;
        let mut headers = HeaderMap::new();
        for (name, value) in &options.headers {
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
            let (name, value) = parsed.ok_or_else(|| format!("the header {name:?} cannot be sent"))?;
            headers.insert(name, value);
        }
        let builder = Client::builder()
            .tls_backend_preconfigured(tls::config(options.ca_file.as_deref())?)
            .user_agent(USER_AGENT)
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(60))
            .http2_adaptive_window(true);
        let builder = match &options.proxy {
            ProxyChoice::Environment => builder,
            ProxyChoice::Direct => builder.no_proxy(),
            ProxyChoice::Url(url) => {
                let proxy = reqwest::Proxy::all(url).map_err(|_| "the proxy's address is no URL".to_owned())?;
                builder.no_proxy().proxy(proxy)
            }
        };
        builder.build().map_err(|error| format!("cannot set up HTTP: {}", error.without_url()))
    }

    /// Sends a request until it is answered with success.
    pub(crate) async fn send(
        &self,
        out: &Outgoing,
        policy: RetryPolicy,
        cancel: &CancellationToken,
    ) -> Result<Answer, Failure> {
        let mut attempt = 0;
        loop {
            let failure = match cancel.run_until_cancelled(self.once(out, policy)).await {
                None => return Err(Failure::Aborted),
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(failure)) => failure,
            };
            let retryable = match &failure {
                Failure::Refused(refusal) => refusal.is_retryable(),
                Failure::Network(_) => true,
                _ => false,
            };
            if !retryable || attempt >= policy.max_retries {
                return Err(failure);
            }
            let pause = match (failure, policy.max_delay) {
                (Failure::Refused(refusal), Some(allowed)) if refusal.retry_after.is_some_and(|it| it > allowed) => {
                    let asked = refusal.retry_after.unwrap_or_default();
                    return Err(Failure::TooLong { asked, allowed, refusal });
                }
                (failure, _) => failure.retry_after().unwrap_or_else(|| backoff(attempt)),
            };
            attempt += 1;
            if cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return Err(Failure::Aborted);
            }
        }
    }

    async fn once(&self, out: &Outgoing, policy: RetryPolicy) -> Result<Answer, Failure> {
        let idle = policy.idle;
        let head = policy.head.into_iter().chain(idle).min();
        if let Some(problem) = &out.problem {
            return Err(Failure::Setup(problem.clone()));
        }
        let client = self.client()?;
        let mut url =
            Url::parse(&out.url).map_err(|error| Failure::Setup(format!("the address is no URL: {error}")))?;
        let home = url.origin();
        let gate = self.gates.gate(&home.ascii_serialization(), out.secrets.account());
        let pass = gate.enter().await;
        for _ in 0..=REDIRECTS {
            let mut headers = out.headers.clone();
            if url.origin() == home {
                headers.extend(out.private.clone());
            }
            let exchange = Exchange::begin(self, out, &url, &headers);
            let request = client.post(url.clone()).headers(headers).body(out.body.clone()).send();
            let response = timed(head, request).await?.map_err(failure::network)?;
            exchange.response(&response);
            let status = response.status();
            if status.is_success() {
                gate.accepted();
                let body = response.bytes_stream().boxed();
                return Ok(Answer { body, idle, exchange, _pass: pass });
            }
            if status.is_redirection() {
                url = redirected(&url, &response)?;
                continue;
            }
            let refusal = self.refusal(response, out, idle, &exchange).await;
            if matches!(refusal.status, 429 | 503 | 529) {
                gate.refused(refusal.retry_after);
            }
            return Err(Failure::Refused(refusal));
        }
        Err(Failure::Setup("the service redirects in a circle".to_owned()))
    }

    async fn refusal(
        &self,
        response: reqwest::Response,
        out: &Outgoing,
        idle: Option<Duration>,
        exchange: &Exchange,
    ) -> Refusal {
        let headers = response.headers();
        let should_retry = headers.get("x-should-retry").and_then(|value| match value.as_bytes() {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        });
        let (status, retry_after) = (response.status().as_u16(), failure::retry_after(headers));
        let mut stream = response.bytes_stream();
        let mut body = Vec::new();
        while body.len() < ERROR_BODY
            && let Ok(Some(Ok(chunk))) = timed(idle, stream.next()).await
        {
            exchange.bytes(&chunk);
            body.extend_from_slice(&chunk);
        }
        body.truncate(ERROR_BODY);
        let body = out.secrets.redact(String::from_utf8_lossy(&body).into_owned());
        Refusal { status, body, retry_after, should_retry }
    }
}

/// Where a redirect leads. Only the kinds that keep method and body are followed, and never out of encryption.
fn redirected(from: &Url, response: &reqwest::Response) -> Result<Url, Failure> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let to = location.and_then(|location| from.join(location).ok());
    let keeps = matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let status = response.status().as_u16();
    match to {
        Some(to) if keeps && (from.scheme() != "https" || to.scheme() == "https") => Ok(to),
        Some(to) => {
            let to = to.origin().ascii_serialization();
            Err(Failure::Setup(format!("{status}: the service has moved to {to}; change the model's base URL")))
        }
        None => Err(Failure::Setup(format!("{status}: the service redirects to nowhere"))),
    }
}

/// min(0.5·2ⁿ, 8) seconds less up to a quarter (P104).
fn backoff(attempt: u32) -> Duration {
    let full = Duration::from_millis(500 << attempt.min(4));
    let random = uuid::Uuid::new_v4().as_bytes()[0];
    full - full / 1024 * u32::from(random)
}

async fn timed<T>(limit: Option<Duration>, future: impl Future<Output = T>) -> Result<T, Failure> {
    match limit {
        None => Ok(future.await),
        Some(limit) => tokio::time::timeout(limit, future).await.map_err(|_| {
            Failure::Network(format!("the service timed out: it sent nothing for {} seconds", limit.as_secs_f64()))
        }),
    }
}

/// A successful answer; its body arrives piece by piece.
pub(crate) struct Answer {
    body: futures::stream::BoxStream<'static, reqwest::Result<Bytes>>,
    idle: Option<Duration>,
    exchange: Exchange,
    _pass: Pass,
}

impl Answer {
    /// The next bytes; `None` at the end.
    pub(crate) async fn chunk(&mut self, cancel: &CancellationToken) -> Result<Option<Bytes>, Failure> {
        // Usually the bytes are there already, and no timer is needed.
        let next = match self.body.next().now_or_never() {
            Some(next) => next,
            None => match cancel.run_until_cancelled(timed(self.idle, self.body.next())).await {
                None => return Err(Failure::Aborted),
                Some(next) => next?,
            },
        };
        match next {
            None => Ok(None),
            Some(Ok(bytes)) => {
                self.exchange.bytes(&bytes);
                Ok(Some(bytes))
            }
            Some(Err(error)) => Err(failure::network(error)),
        }
    }

    /// The answer is logically complete. The next request may go, and the connection is kept if its rest comes soon.
    pub(crate) fn finish(self) {
        let Answer { mut body, exchange, .. } = self;
        let (time, mut left) = DRAIN;
        match body.next().now_or_never() {
            Some(None) => {}
            Some(Some(_)) | None => {
                let drain = async move {
                    while left > 0
                        && let Some(Ok(chunk)) = body.next().await
                    {
                        exchange.bytes(&chunk);
                        left = left.saturating_sub(chunk.len());
                    }
                };
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(tokio::time::timeout(time, drain));
                }
            }
        }
    }
}

/// One request and its answer, as an observer sees it.
struct Exchange {
    observer: Option<Arc<dyn WireObserver>>,
    id: u64,
}

impl Exchange {
    fn begin(http: &Http, out: &Outgoing, url: &Url, headers: &HeaderMap) -> Exchange {
        let id = http.exchanges.fetch_add(1, Ordering::Relaxed);
        if let Some(observer) = &http.observer {
            let headers = headers.iter().map(|(name, value)| {
                let value = match value.is_sensitive() {
                    true => "[secret]".to_owned(),
                    false => out.secrets.redact(String::from_utf8_lossy(value.as_bytes()).into_owned()),
                };
                (name.as_str().to_owned(), value)
            });
            let headers: Vec<_> = headers.collect();
            observer.request(id, "POST", &out.secrets.redact(url.to_string()), &headers, &out.body);
        }
        Exchange { observer: http.observer.clone(), id }
    }

    fn response(&self, response: &reqwest::Response) {
        let Some(observer) = &self.observer else { return };
        let headers = response.headers().iter().filter(|(name, _)| *name != SET_COOKIE);
        let headers = headers
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        observer.response(self.id, response.status().as_u16(), &headers.collect::<Vec<_>>());
    }

    fn bytes(&self, bytes: &[u8]) {
        if let Some(observer) = &self.observer {
            observer.bytes(self.id, bytes);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(observer) = &self.observer {
            observer.end(self.id);
        }
    }
}
