//! The answer of a host's model, while it is written and while it is read.
//!
//! Writing never waits. What a slow reader has not taken yet is kept: pieces of text are joined, and a whole answer is
//! bounded, so that memory stays bounded, too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::stream::HostStream;
use crate::error::{Error, ErrorCode, Result};
use crate::json;
use crate::message::{StopReason, Usage};
use crate::providers::assemble::Assembler;
use crate::providers::{Request, StreamEvent};

/// With more waiting events than this, pieces of text are joined.
const WAITING: usize = 1024;
/// Most blocks of an answer.
const BLOCKS: usize = 10_000;
/// Most bytes of an answer.
const BYTES: usize = 256 * 1024 * 1024;

/// The answer to one request. Cheap to clone; all clones are the same answer, and every method is legal from any thread.
///
/// Text goes into the block that is open, and opens one if there is none of its kind. Every method fails with `cancelled`
/// once nobody waits for the answer any more, and with `invalid_argument` after its end.
#[derive(Clone)]
pub struct HostResponse {
    handle: Arc<Handle>,
}

/// Held by the clones of a response; the stream holds the inner part only, so that it notices when the last one goes.
struct Handle(Arc<Inner>);

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.abandoned = true;
        if !state.working {
            state.give_up();
            state.wake();
        }
    }
}

pub(super) struct Inner {
    state: Mutex<State>,
    pub(super) cancel: CancellationToken,
}

pub(super) struct State {
    pub(super) out: Assembler,
    pub(super) waiting: VecDeque<StreamEvent>,
    /// Text that arrived while too much was waiting.
    held: Option<(usize, String)>,
    open: Option<(Kind, usize)>,
    blocks: usize,
    bytes: usize,
    pub(super) waker: Option<Waker>,
    /// A future does the work: what it says at its end counts more than that it let go of the response.
    pub(super) working: bool,
    /// The last clone of the response is gone.
    pub(super) abandoned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
    Call,
}

/// An answer and its reader.
pub(super) fn pair(request: &Request) -> (HostResponse, HostStream) {
    let state = State {
        out: Assembler::new(request.model.clone()),
        waiting: VecDeque::new(),
        held: None,
        open: None,
        blocks: 0,
        bytes: 0,
        waker: None,
        working: false,
        abandoned: false,
    };
    let inner = Arc::new(Inner { state: Mutex::new(state), cancel: request.cancel.clone() });
    let response = HostResponse { handle: Arc::new(Handle(inner.clone())) };
    (response, HostStream::new(inner))
}

impl Inner {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes over what the assembler has to tell.
    pub(super) fn drain(&mut self) {
        while let Some(event) = self.out.pop() {
            self.waiting.push_back(event);
        }
    }

    /// The same, and tells the reader.
    fn wake(&mut self) {
        self.drain();
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Nobody is left who could finish the answer.
    pub(super) fn give_up(&mut self) {
        if !self.out.is_over() {
            self.flush();
            self.out.fail("the host's model stopped without finishing its answer");
        }
    }

    pub(super) fn flush(&mut self) {
        if let Some((index, text)) = self.held.take() {
            self.put(index, &text);
        }
    }

    fn put(&mut self, index: usize, text: &str) {
        match self.open {
            Some((Kind::Text, open)) if open == index => self.out.text_delta(index, text),
            Some((Kind::Thinking, open)) if open == index => self.out.thinking_delta(index, text),
            Some((Kind::Call, open)) if open == index => self.out.call_delta(index, text),
            _ => {}
        }
    }

    fn end_block(&mut self) {
        self.flush();
        if let Some((_, index)) = self.open.take() {
            self.out.end(index);
        }
    }

    fn begin(&mut self, kind: Kind, id: &str, name: &str) -> Result<usize> {
        self.end_block();
        self.blocks += 1;
        if self.blocks > BLOCKS {
            return Err(Error::new(ErrorCode::TooLarge, format!("an answer has at most {BLOCKS} blocks")));
        }
        let index = match kind {
            Kind::Text => self.out.text_start(),
            Kind::Thinking => self.out.thinking_start(),
            Kind::Call => self.out.call_start(id, name),
        };
        self.open = Some((kind, index));
        Ok(index)
    }

    fn delta(&mut self, kind: Kind, text: &str) -> Result<()> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > BYTES {
            return Err(Error::new(ErrorCode::TooLarge, format!("an answer has at most {BYTES} bytes")));
        }
        let index = match self.open {
            Some((open, index)) if open == kind => index,
            _ if kind == Kind::Call => {
                return Err(Error::new(ErrorCode::InvalidArgument, "arguments need a tool call that has begun"));
            }
            _ => self.begin(kind, "", "")?,
        };
        match &mut self.held {
            Some((held, more)) if *held == index => more.push_str(text),
            _ if self.waiting.len() >= WAITING => self.held = Some((index, text.to_owned())),
            _ => self.put(index, text),
        }
        Ok(())
    }
}

impl HostResponse {
    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.handle.0
    }

    fn change(&self, change: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        let inner = self.inner();
        if inner.cancel.is_cancelled() {
            return Err(Error::new(ErrorCode::Cancelled, "nobody waits for this answer any more"));
        }
        let mut state = inner.state();
        if state.out.is_over() {
            return Err(Error::new(ErrorCode::InvalidArgument, "the answer is finished"));
        }
        state.out.start();
        let changed = change(&mut state);
        if let Err(error) = &changed
            && error.code() == ErrorCode::TooLarge
        {
            state.flush();
            state.out.fail(error.message());
        }
        state.wake();
        changed
    }

    /// Tells that the answer has begun, before there is anything of it. Not needed.
    pub fn start(&self) -> Result<()> {
        self.change(|_| Ok(()))
    }

    /// Adds text.
    pub fn text(&self, text: &str) -> Result<()> {
        self.change(|state| state.delta(Kind::Text, text))
    }

    /// Adds thinking.
    pub fn thinking(&self, text: &str) -> Result<()> {
        self.change(|state| state.delta(Kind::Thinking, text))
    }

    /// Adds a whole tool call. An empty id is replaced by one that is new.
    pub fn tool_call(&self, id: &str, name: &str, arguments: &Value) -> Result<()> {
        let text = json::to_string(arguments);
        self.change(|state| {
            state.begin(Kind::Call, &call_id(id), name)?;
            state.delta(Kind::Call, &text)?;
            state.end_block();
            Ok(())
        })
    }

    /// Begins a tool call whose arguments follow. An empty id is replaced by one that is new.
    pub fn tool_call_start(&self, id: &str, name: &str) -> Result<()> {
        self.change(|state| state.begin(Kind::Call, &call_id(id), name).map(drop))
    }

    /// Adds to the JSON text of the arguments.
    ///
    /// Errors: `invalid_argument` when no call is open.
    pub fn tool_call_arguments(&self, text: &str) -> Result<()> {
        self.change(|state| state.delta(Kind::Call, text))
    }

    /// Ends the block that is open; what comes next opens another.
    pub fn end_block(&self) -> Result<()> {
        self.change(|state| {
            state.end_block();
            Ok(())
        })
    }

    /// Begins a text or thinking block although one of its kind is open.
    pub(super) fn begin(&self, kind: Kind) -> Result<()> {
        self.change(|state| state.begin(kind, "", "").map(drop))
    }

    /// Sets what the model wants back with the block that is open, to recognise it.
    ///
    /// Errors: `invalid_argument` when no block is open.
    pub fn signature(&self, signature: &str) -> Result<()> {
        self.change(|state| match state.open {
            Some((_, index)) => {
                state.out.set_signature(index, signature);
                Ok(())
            }
            None => Err(Error::new(ErrorCode::InvalidArgument, "a signature needs a block that is open")),
        })
    }

    /// Tells what is known of the usage so far. Without a total it is the sum, without a cost computed with the model's prices.
    pub fn usage(&self, mut usage: Usage) -> Result<()> {
        if usage.total_tokens == 0 {
            let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
            usage.total_tokens = parts.into_iter().fold(0, u64::saturating_add);
        }
        self.change(|state| {
            match usage.cost.total == 0.0 {
                true => state.out.set_usage(usage),
                false => state.out.set_priced_usage(usage),
            }
            Ok(())
        })
    }

    /// Finishes the answer: with `toolUse` if there are calls, else with `stop`.
    pub fn finish(&self) -> Result<()> {
        self.finish_with(None)
    }

    /// Finishes the answer, which reached the limit of its length.
    pub fn finish_at_limit(&self) -> Result<()> {
        self.finish_with(Some(StopReason::Length))
    }

    pub(super) fn finish_with(&self, reason: Option<StopReason>) -> Result<()> {
        self.change(|state| {
            state.end_block();
            let own = if state.out.has_calls() { StopReason::ToolUse } else { StopReason::Stop };
            state.out.finish(reason.unwrap_or(own));
            Ok(())
        })
    }

    /// Ends the answer with an error. What was written stays. Whether the session tries again depends on the text, as with
    /// any provider: a rate limit or a lost connection is tried again.
    pub fn fail(&self, error: &str) -> Result<()> {
        self.fail_after(error, None)
    }

    /// The same, naming the pause that the service asked for.
    pub fn fail_after(&self, error: &str, pause: Option<Duration>) -> Result<()> {
        self.change(|state| {
            state.flush();
            if let Some(pause) = pause {
                state.out.push(StreamEvent::RetryAfter(pause));
            }
            state.out.fail(error);
            Ok(())
        })
    }

    /// Whether the answer has blocks.
    pub(super) fn is_empty(&self) -> bool {
        self.inner().state().out.len() == 0
    }

    /// Whether the answer is finished.
    pub fn is_over(&self) -> bool {
        self.inner().state().out.is_over()
    }

    /// Whether nobody waits for the answer any more.
    pub fn is_cancelled(&self) -> bool {
        self.inner().cancel.is_cancelled()
    }

    /// Ends when nobody waits for the answer any more. Any executor can drive the future.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.inner().cancel.clone().cancelled_owned()
    }
}

impl std::fmt::Debug for HostResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostResponse").field("over", &self.is_over()).finish_non_exhaustive()
    }
}

fn call_id(id: &str) -> String {
    if id.is_empty() { format!("call_{}", uuid::Uuid::now_v7().simple()) } else { id.to_owned() }
}
