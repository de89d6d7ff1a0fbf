//! The trait between the agent loop and a model's service (S199).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Model, RequestOptions};
use crate::message::{Message, Usage};

/// The events of one response. It ends after [`StreamEvent::Done`]; one that ends without it counts as failed.
pub type ResponseStream = Pin<Box<dyn Stream<Item = StreamEvent> + Send>>;

/// A service with models.
///
/// A provider knows nothing of sessions: it turns a [`Request`] into a stream. It never fails by an error of its own:
/// a request that cannot be made is a stream of one `Done` whose message has `stopReason` `error`.
pub trait Provider: Send + Sync {
    /// The name in `provider/model`.
    fn name(&self) -> &str;
    /// The models it offers, in order of preference.
    fn models(&self) -> Vec<Model>;
    /// Starts a request. Must return at once; the stream does the work when polled, on a worker thread of the engine.
    ///
    /// When the request's token fires the stream should end soon with a `Done` whose message has `stopReason`
    /// `aborted` and holds what had arrived.
    fn stream(&self, request: Request) -> ResponseStream;
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// The next message of a conversation.
    Turn,
    /// A summary of a conversation.
    Summary,
}

/// One request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The model to ask.
    pub model: Arc<Model>,
    /// The conversation, system messages included; prompt and tools are a fold over those (S139).
    pub messages: Arc<Vec<Arc<Message>>>,
    /// Declarations of the tools in force, `{name, description, parameters, …}`, the same as that fold gives.
    pub tools: Arc<Vec<Value>>,
    /// How much the model should think; `off` when it does not.
    pub thinking_level: String,
    /// Routing key: requests with the same one share a prompt cache.
    pub session_id: String,
    /// Which of the sessions over its tree it is, see [`Session::sibling`](crate::Session::sibling); 0 without a session.
    pub sibling: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// Everything else that may be asked for.
    pub options: Arc<RequestOptions>,
    /// Fires when the caller no longer wants an answer.
    pub cancel: CancellationToken,
}

impl Request {
    /// A request without tools, thinking or options, which nobody cancels. Set what differs.
    pub fn new(model: Arc<Model>, messages: Vec<Arc<Message>>) -> Request {
        Request {
            model,
            messages: Arc::new(messages),
            tools: Arc::default(),
            thinking_level: "off".to_owned(),
            session_id: String::new(),
            sibling: 0,
            purpose: Purpose::Turn,
            options: Arc::default(),
            cancel: CancellationToken::new(),
        }
    }
}

/// One event of a response.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The response began: an assistant message with empty content and `stopReason` `pending`.
    Start(Message),
    /// Part of a content block. Ignored before `Start` (S200).
    Block(BlockEvent),
    /// The usage known by now.
    Usage(Usage),
    /// The service asked for this pause before the next request. Comes right before a failed `Done`, if at all.
    RetryAfter(Duration),
    /// The complete message, also when it failed or was aborted. Nothing follows.
    Done(Message),
    /// There is no response at all, for this reason: the run itself has failed (S225). Nothing follows.
    Failed(String),
}

/// Growth of one content block. `index` counts the blocks of the message from 0.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BlockEvent {
    /// A text block begins.
    TextStart {
        /// Which block.
        index: usize,
    },
    /// Text arrived.
    TextDelta {
        /// Which block.
        index: usize,
        /// The new part.
        delta: Arc<str>,
    },
    /// A text block is complete.
    TextEnd {
        /// Which block.
        index: usize,
        /// All of it.
        content: Arc<str>,
    },
    /// A thinking block begins.
    ThinkingStart {
        /// Which block.
        index: usize,
    },
    /// Thinking arrived.
    ThinkingDelta {
        /// Which block.
        index: usize,
        /// The new part.
        delta: Arc<str>,
    },
    /// A thinking block is complete.
    ThinkingEnd {
        /// Which block.
        index: usize,
        /// All of it.
        content: Arc<str>,
    },
    /// A tool call begins.
    ToolCallStart {
        /// Which block.
        index: usize,
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
    },
    /// Argument text arrived.
    ToolCallDelta {
        /// Which block.
        index: usize,
        /// The new part of the JSON text.
        delta: Arc<str>,
    },
    /// A tool call is complete.
    ToolCallEnd {
        /// Which block.
        index: usize,
        /// The block: `{type:"toolCall", id, name, arguments, …}`.
        tool_call: Arc<Value>,
    },
}

impl BlockEvent {
    /// The event's name on the wire, for example `text_delta`.
    pub fn type_name(&self) -> &'static str {
        match self {
            BlockEvent::TextStart { .. } => "text_start",
            BlockEvent::TextDelta { .. } => "text_delta",
            BlockEvent::TextEnd { .. } => "text_end",
            BlockEvent::ThinkingStart { .. } => "thinking_start",
            BlockEvent::ThinkingDelta { .. } => "thinking_delta",
            BlockEvent::ThinkingEnd { .. } => "thinking_end",
            BlockEvent::ToolCallStart { .. } => "toolcall_start",
            BlockEvent::ToolCallDelta { .. } => "toolcall_delta",
            BlockEvent::ToolCallEnd { .. } => "toolcall_end",
        }
    }

    /// Which content block it belongs to.
    pub fn index(&self) -> usize {
        match self {
            BlockEvent::TextStart { index }
            | BlockEvent::TextDelta { index, .. }
            | BlockEvent::TextEnd { index, .. }
            | BlockEvent::ThinkingStart { index }
            | BlockEvent::ThinkingDelta { index, .. }
            | BlockEvent::ThinkingEnd { index, .. }
            | BlockEvent::ToolCallStart { index, .. }
            | BlockEvent::ToolCallDelta { index, .. }
            | BlockEvent::ToolCallEnd { index, .. } => *index,
        }
    }
}
