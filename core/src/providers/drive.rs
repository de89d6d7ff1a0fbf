//! Driving a request: key, HTTP, events, message. The same for every protocol.

use std::sync::{Arc, Mutex, PoisonError};

use futures::stream;

use super::assemble::Assembler;
use super::auth::{Auth, Credentials};
use super::http::{Answer, Failure, Http, Outgoing, RetryPolicy, Secrets};
use super::payload::{self, PayloadHook};
use super::protocol::{Call, Protocol};
use super::reading::Reading;
use super::{Request, ResponseStream, StreamEvent};

/// How many other requests may be made in place of one that was refused, each for another reason.
const OTHER_REQUESTS: usize = 3;

/// What requests of an engine share.
pub(crate) struct Services {
    /// Connections and what is known about services.
    pub(crate) http: Http,
    /// Keys.
    pub(crate) credentials: Arc<dyn Credentials>,
    /// Asked about every body.
    pub(crate) payload_hook: Mutex<Option<Arc<dyn PayloadHook>>>,
}

impl Services {
    /// Sends a request, after the host's look at its body.
    async fn send(&self, request: &Request, outgoing: &mut Outgoing, policy: RetryPolicy) -> Result<Answer, Failure> {
        let cancel = &request.cancel;
        let hook = self.payload_hook.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(hook) = hook {
            let asked = cancel.run_until_cancelled(payload::ask(&*hook, &request.model, outgoing)).await;
            asked.unwrap_or(Err(Failure::Aborted))?;
        }
        self.http.send(outgoing, policy, cancel).await
    }
}

/// Makes a request and streams its response.
pub(crate) fn drive(protocol: Arc<dyn Protocol>, services: Arc<Services>, request: Request) -> ResponseStream {
    let out = Assembler::new(request.model.clone());
    let driver =
        Box::new(Driver { protocol, services, request, out, secrets: Secrets::default(), state: State::Begin });
    Box::pin(stream::unfold(driver, |mut driver| async move { Some((driver.next().await?, driver)) }))
}

/// A response that is one error, for requests that cannot be made.
pub(crate) fn failed(request: &Request, error: &str) -> ResponseStream {
    let mut out = Assembler::new(request.model.clone());
    out.fail(error);
    Box::pin(stream::iter(out.pop()))
}

struct Driver {
    protocol: Arc<dyn Protocol>,
    services: Arc<Services>,
    request: Request,
    out: Assembler,
    secrets: Secrets,
    state: State,
}

#[expect(clippy::large_enum_variant, reason = "there is one for each request, in a box already")]
enum State {
    Begin,
    Streaming { answer: Answer, reading: Reading },
    Over,
}

impl Driver {
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.out.pop() {
                return Some(event);
            }
            // In boxes: these futures are large, and the stream moves this one for every event.
            match self.state {
                State::Begin => {
                    self.state = State::Over;
                    if let Some(event) = Box::pin(self.begin()).await {
                        return Some(event);
                    }
                }
                State::Streaming { .. } => Box::pin(self.more()).await,
                State::Over => return None,
            }
        }
    }

    /// From the request to the head of the answer. An event only if the run itself has failed.
    async fn begin(&mut self) -> Option<StreamEvent> {
        let (request, services) = (self.request.clone(), self.services.clone());
        let cancel = &request.cancel;
        if cancel.is_cancelled() {
            self.out.abort();
            return None;
        }
        let auth = match &request.options.api_key {
            Some(key) => Ok(Auth::key(key.clone())),
            None => match cancel.run_until_cancelled(services.credentials.resolve(&request.model)).await {
                Some(auth) => auth,
                None => {
                    self.out.abort();
                    return None;
                }
            },
        };
        let auth = match auth {
            Ok(auth) => auth,
            Err(error) => return Some(StreamEvent::Failed(error.to_string())),
        };
        let call = Call { request: &request, auth: &auth };
        let authorised = auth.is_some() || matches!(call.configured_header("authorization"), Some(Some(_)));
        if !authorised && self.protocol.needs_key(&call) {
            let text = format!("No API key for provider: {}", request.model.provider);
            return Some(StreamEvent::Failed(text));
        }
        let mut outgoing = match self.protocol.prepare(&call) {
            Ok(outgoing) => outgoing,
            Err(error) => {
                self.out.fail(&error);
                return None;
            }
        };
        call.configure(&mut outgoing);
        let options = &request.options;
        let policy = RetryPolicy {
            max_retries: options.max_retries,
            max_delay: options.max_retry_delay,
            head: options.timeout,
            idle: options.idle_timeout.unwrap_or(services.http.idle_timeout()),
        };
        self.protocol.begin(&call, &mut self.out);
        let mut sent = services.send(&request, &mut outgoing, policy).await;
        for _ in 0..OTHER_REQUESTS {
            let Err(Failure::Refused(refusal)) = &sent else { break };
            let Some(mut instead) = self.protocol.instead(&call, &outgoing, refusal) else { break };
            call.configure(&mut instead);
            sent = services.send(&request, &mut instead, policy).await;
            outgoing = instead;
        }
        self.secrets = outgoing.secrets;
        match sent {
            Ok(answer) => {
                let interpreter = self.protocol.interpreter(&request, outgoing.memo);
                self.out.start();
                self.state = State::Streaming { answer, reading: Reading::new(interpreter) };
            }
            Err(failure) => self.fail(failure),
        }
        None
    }

    /// Takes in what has arrived, or waits for more.
    async fn more(&mut self) {
        let State::Streaming { answer, reading } = &mut self.state else { return };
        let cancel = &self.request.cancel;
        if cancel.is_cancelled() {
            self.state = State::Over;
            return self.out.abort();
        }
        let (over, ended) = match answer.chunk(cancel).await {
            Ok(Some(bytes)) => (reading.take(&bytes, &mut self.out), false),
            Ok(None) => (reading.end(&mut self.out).map(|()| true), true),
            Err(failure) => {
                self.state = State::Over;
                return self.fail(failure);
            }
        };
        match over {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => {
                let error = self.secrets.redact(error);
                self.out.fail(&error);
            }
        }
        if let State::Streaming { answer, .. } = std::mem::replace(&mut self.state, State::Over)
            && !ended
        {
            answer.finish();
        }
    }

    fn fail(&mut self, failure: Failure) {
        if let Some(pause) = failure.retry_after() {
            self.out.push(StreamEvent::RetryAfter(pause));
        }
        let error = match failure {
            Failure::Aborted => return self.out.abort(),
            Failure::Refused(refusal) => self.protocol.refused(&self.request, &refusal),
            Failure::TooLong { asked, allowed, refusal } => format!(
                "The service asked for a retry delay of {} s, more than the {} s allowed. {}",
                asked.as_secs_f64().ceil(),
                allowed.as_secs_f64(),
                self.protocol.refused(&self.request, &refusal)
            ),
            Failure::Network(error) | Failure::Setup(error) => error,
        };
        let error = self.secrets.redact(error);
        self.out.fail(&error);
    }
}
