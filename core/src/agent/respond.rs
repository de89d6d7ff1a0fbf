//! One response: the request, its stream, and the message that is stored (S199, S200, S207, S208).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{FutureExt, StreamExt};

use super::partial::Partial;
use super::{Broken, grace_over};
use crate::message::{AssistantStart, Message, StopReason, Usage};
use crate::providers::{BlockEvent, Purpose, Request, ResponseStream, StreamEvent};
use crate::session::{Actor, EventKind};
use crate::system::clock::now_ms;

/// A run serves waiting commands at least every so many stream events, even when it never has to wait.
const SERVE_EVERY: usize = 64;
/// And wakes who reads at least every so many.
const WAKE_EVERY: usize = 4 * SERVE_EVERY;

/// What came of waiting for the stream.
enum Step {
    Event(Option<StreamEvent>),
    Panicked,
    /// The abort grace is over.
    GaveUp,
}

impl Actor {
    /// The request for the next message of the conversation.
    pub(crate) fn request(&self) -> Result<Request, crate::Error> {
        Ok(Request {
            model: self.chosen_model()?,
            messages: self.messages_to_send(),
            tools: self.projection.system().tools(),
            thinking_level: self.level.clone(),
            session_id: self.shared.id.to_string(),
            sibling: self.shared.sibling,
            options: self.request_options(),
            purpose: Purpose::Turn,
            cancel: self.token(),
        })
    }

    /// Asks the model and tells what it says. The stored message is returned.
    pub(super) async fn respond(&mut self) -> Result<Arc<Message>, Broken> {
        let request = self.request()?;
        let level = request.thinking_level.clone();
        let begun = Instant::now();
        let spent = self.reserve(&request).map_err(Broken::Budget)?;
        let (mut message, announced) = self.stream(request).await?;
        spent.settle(message.usage().as_ref());
        if message.get("durationMs").is_none() {
            message.set("durationMs", u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
        }
        if message.stop_reason() == Some(StopReason::Error) && self.asked_pause().is_none() {
            let error = message.get_str("errorMessage").unwrap_or_default();
            let seconds = self.asked_for().as_secs_f64().ceil();
            let text =
                format!("{error} (the service asks for a wait of {seconds} seconds, longer than retries may wait)");
            message.set("errorMessage", text);
        }
        message.set("thinkingLevel", level);
        let message = Arc::new(message);
        if !announced {
            self.emit(EventKind::MessageStart { message: message.clone() }).await;
        }
        self.message_end(message.clone()).await?;
        Ok(message)
    }

    /// Asks the model without telling anyone: for summaries.
    pub(crate) async fn ask(&mut self, request: Request) -> Result<Message, crate::Error> {
        let failed = |why: &str| crate::Error::new(crate::ErrorCode::ProviderFailed, why.to_owned());
        let spent = self.reserve(&request);
        let spent = spent.map_err(|over| crate::Error::new(crate::ErrorCode::BudgetExceeded, over.to_string()))?;
        let mut stream = self.open_stream(request)?;
        self.note_pause(Duration::ZERO);
        loop {
            match self.next_step(&mut stream).await {
                Step::Event(Some(StreamEvent::RetryAfter(pause))) => self.note_pause(pause),
                Step::Event(Some(StreamEvent::Done(message))) => {
                    spent.settle(message.usage().as_ref());
                    return Ok(message);
                }
                Step::Event(Some(StreamEvent::Failed(reason))) => return Err(failed(&reason)),
                Step::Event(Some(_)) => {}
                Step::Event(None) => return Err(failed("the response ended without a final event")),
                Step::Panicked => return Err(failed("the model's provider failed inside the library")),
                Step::GaveUp => return Err(crate::Error::new(crate::ErrorCode::Cancelled, "the request was aborted")),
            }
        }
    }

    /// Streams a response. Returns the final message, and whether its start was announced.
    async fn stream(&mut self, request: Request) -> Result<(Message, bool), Broken> {
        let model = request.model.clone();
        let empty = || {
            let (api, provider) = (&model.api, &model.provider);
            Partial::new(AssistantStart { api, provider, model: &model.id, timestamp: now_ms() }.message())
        };
        let mut stream = self.open_stream(request)?;
        self.note_pause(Duration::ZERO);
        let mut partial: Option<Partial> = None;
        let mut usage = Arc::new(Usage::default());
        let (mut count, mut spoken) = (0_usize, false);
        loop {
            let event = match self.next_step(&mut stream).await {
                Step::Event(Some(event)) => event,
                end => {
                    let (stop, error) = match end {
                        Step::GaveUp => ("aborted", "The request was aborted."),
                        Step::Panicked => ("error", "The model's provider failed inside the library."),
                        Step::Event(_) => ("error", "The response ended without a final event."),
                    };
                    let announced = partial.is_some();
                    return Ok((partial.unwrap_or_else(empty).ended(stop, error), announced));
                }
            };
            match event {
                StreamEvent::Start(message) => {
                    usage = Arc::new(message.usage().unwrap_or_default());
                    partial = Some(Partial::new(message.clone()));
                    self.emit(EventKind::MessageStart { message: Arc::new(message) }).await;
                }
                StreamEvent::Usage(now) => {
                    usage = Arc::new(now);
                    if let Some(partial) = &mut partial {
                        partial.set_usage(now);
                    }
                }
                StreamEvent::Block(update) => {
                    if let Some(partial) = &mut partial {
                        partial.apply(&update);
                        let first = !spoken
                            && matches!(update, BlockEvent::TextDelta { .. } | BlockEvent::ThinkingDelta { .. });
                        self.emit(EventKind::MessageUpdate { usage: usage.clone(), update }).await;
                        if first {
                            // Somebody waits for it; what comes with it need not be read before.
                            self.shared.hub.wake();
                            spoken = true;
                        }
                    }
                }
                StreamEvent::RetryAfter(pause) => self.note_pause(pause),
                StreamEvent::Done(message) => return Ok((message, partial.is_some())),
                StreamEvent::Failed(reason) => return Err(Broken::Request(reason)),
            }
            count += 1;
            if count.is_multiple_of(WAKE_EVERY) {
                self.shared.hub.wake();
            }
            if count.is_multiple_of(SERVE_EVERY) {
                self.serve();
            }
        }
    }

    /// Starts a request.
    pub(crate) fn open_stream(&self, request: Request) -> Result<ResponseStream, crate::Error> {
        let name = request.model.provider.clone();
        let Some(provider) = self.engine.provider(&name) else {
            let text = format!("the provider {name:?} was removed; choose another model");
            return Err(crate::Error::new(crate::ErrorCode::UnknownModel, text));
        };
        std::panic::catch_unwind(AssertUnwindSafe(|| provider.stream(request))).map_err(|_| {
            crate::Error::new(crate::ErrorCode::ProviderFailed, format!("the provider {name:?} failed to start"))
        })
    }

    async fn next_step(&mut self, stream: &mut ResponseStream) -> Step {
        // Usually the next event is there already.
        match AssertUnwindSafe(stream.next()).catch_unwind().now_or_never() {
            Some(Ok(event)) => return Step::Event(event),
            Some(Err(_)) => return Step::Panicked,
            None => {}
        }
        let token = self.token();
        self.wait(async {
            tokio::select! {
                biased;
                event = AssertUnwindSafe(stream.next()).catch_unwind() => match event {
                    Ok(event) => Step::Event(event),
                    Err(_) => Step::Panicked,
                },
                () = grace_over(token) => Step::GaveUp,
            }
        })
        .await
    }
}
