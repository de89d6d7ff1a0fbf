//! Playing replies: one response is a small state machine that is asked for its next event.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream;
use serde_json::{Value, json};

use super::{Answers, AtEnd, Reply, Script, ScriptControl, lock};
use crate::message::{AssistantStart, Message, Usage};
use crate::providers::{BlockEvent, Request, ResponseStream, StreamEvent};
use crate::system::clock::now_ms;

/// Error text of an aborted response.
const ABORTED: &str = "scripted abort";

/// A script and the position in it.
pub(super) struct Player {
    script: Script,
    position: Mutex<Position>,
}

#[derive(Default)]
struct Position {
    reply: usize,
    used: u64,
}

impl Player {
    pub(super) fn new(script: Script) -> Player {
        Player { script, position: Mutex::new(Position::default()) }
    }

    fn next(&self) -> Option<(usize, Reply)> {
        let replies = &self.script.replies;
        let mut position = lock(&self.position);
        if position.reply >= replies.len() {
            match self.script.at_end {
                AtEnd::Fail => return None,
                AtEnd::RepeatLast => position.reply = replies.len().checked_sub(1)?,
                AtEnd::Loop => position.reply = 0,
            }
        }
        let index = position.reply;
        let reply = replies.get(index)?.clone();
        position.used += 1;
        if position.used >= reply.times.unwrap_or(1) {
            *position = Position { reply: index + 1, used: 0 };
        }
        Some((index, reply))
    }
}

impl Answers for Player {
    fn stream(&self, request: Request) -> ResponseStream {
        let control = self.script.control();
        if request.cancel.is_cancelled() {
            control.note(&request);
            return once(StreamEvent::Done(ended(start(&request), "aborted", Some(ABORTED))));
        }
        let Some((index, reply)) = self.next() else {
            control.note(&request);
            return failed(&request, "the script has no reply left for this request");
        };
        if let Some(error) = reply.throw {
            return once(StreamEvent::Failed(error));
        }
        control.note(&request);
        let pace = Pace {
            chunk: reply.chunk.unwrap_or(self.script.chunk),
            delay: Duration::from_millis(reply.delay_ms.unwrap_or(self.script.delay_ms)),
            chunk_delay: Duration::from_millis(reply.chunk_delay_ms.unwrap_or(self.script.chunk_delay_ms)),
        };
        play(request, reply, pace, Some((control, index)))
    }
}

/// How fast a reply is streamed.
pub(super) struct Pace {
    /// Characters per delta; 0 for all at once.
    pub(super) chunk: usize,
    /// Before the first event.
    pub(super) delay: Duration,
    /// Between deltas.
    pub(super) chunk_delay: Duration,
}

/// A response that is one error.
pub(super) fn failed(request: &Request, error: &str) -> ResponseStream {
    once(StreamEvent::Done(ended(start(request), "error", Some(error))))
}

fn once(event: StreamEvent) -> ResponseStream {
    Box::pin(stream::once(std::future::ready(event)))
}

fn start(request: &Request) -> Message {
    let model = &request.model;
    AssistantStart { api: &model.api, provider: &model.provider, model: &model.id, timestamp: now_ms() }.message()
}

fn ended(mut message: Message, stop: &str, error: Option<&str>) -> Message {
    message.set("stopReason", stop);
    if let Some(error) = error {
        message.set("errorMessage", error);
    }
    message
}

/// Streams one reply.
pub(super) fn play(
    request: Request,
    reply: Reply,
    pace: Pace,
    control: Option<(ScriptControl, usize)>,
) -> ResponseStream {
    let usage = match &reply.usage {
        Some(usage) => usage.usage(),
        None => Usage { input: 100, output: 10, total_tokens: 110, ..Usage::default() },
    };
    let playing = Playing { request, reply, pace, control, usage, message: None, block: 0, at: At::Begin };
    Box::pin(stream::unfold(playing, |mut playing| async move { Some((playing.next().await?, playing)) }))
}

struct Playing {
    request: Request,
    reply: Reply,
    pace: Pace,
    control: Option<(ScriptControl, usize)>,
    usage: Usage,
    message: Option<Message>,
    block: usize,
    at: At,
}

/// Where in the reply the stream stands.
enum At {
    Begin,
    BlockStart,
    /// Inside a block's text, `sent` bytes of which are out.
    Inside {
        text: Arc<str>,
        sent: usize,
    },
    Over,
}

impl Playing {
    async fn next(&mut self) -> Option<StreamEvent> {
        let cancelled = self.request.cancel.is_cancelled();
        let at = std::mem::replace(&mut self.at, At::Over);
        match at {
            At::Begin => Some(self.begin().await),
            At::Over => None,
            _ if cancelled => Some(self.finish(Some(at))),
            At::BlockStart => Some(match self.reply.content.get(self.block) {
                Some(_) => self.block_start(),
                None => self.after_content().await,
            }),
            At::Inside { text, sent } if sent < text.len() || text.is_empty() && sent == 0 => {
                if !self.pace.chunk_delay.is_zero() && !self.pause(self.pace.chunk_delay).await {
                    return Some(self.finish(Some(At::Inside { text, sent })));
                }
                Some(self.delta(text, sent))
            }
            At::Inside { text, .. } => Some(self.block_end(&text)),
        }
    }

    /// Sleeps; false if the request was cancelled meanwhile.
    async fn pause(&self, time: Duration) -> bool {
        if time.is_zero() {
            return !self.request.cancel.is_cancelled();
        }
        tokio::select! {
            () = tokio::time::sleep(time) => true,
            () = self.request.cancel.cancelled() => false,
        }
    }

    async fn begin(&mut self) -> StreamEvent {
        let waited = self.pause(self.pace.delay).await;
        let mut message = start(&self.request);
        if let (true, Some(error)) = (waited, &self.reply.immediate_error) {
            message.set("usage", self.usage.to_value());
            return StreamEvent::Done(ended(message, "error", Some(error)));
        }
        self.message = Some(message.clone());
        if !waited {
            return self.finish(None);
        }
        self.at = At::BlockStart;
        StreamEvent::Start(message)
    }

    fn block_start(&mut self) -> StreamEvent {
        let index = self.block;
        let block = &self.reply.content[index];
        let field = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let (text, event): (Arc<str>, _) = match field("type") {
            "thinking" => (field("thinking").into(), BlockEvent::ThinkingStart { index }),
            "toolCall" => {
                let arguments = block.get("arguments").cloned().unwrap_or_else(|| json!({}));
                let start = BlockEvent::ToolCallStart { index, id: field("id").into(), name: field("name").into() };
                (crate::json::to_string(&arguments).into(), start)
            }
            _ => (field("text").into(), BlockEvent::TextStart { index }),
        };
        self.at = At::Inside { text, sent: 0 };
        StreamEvent::Block(event)
    }

    fn delta(&mut self, text: Arc<str>, sent: usize) -> StreamEvent {
        let rest = &text[sent..];
        let length = match self.pace.chunk {
            0 => rest.len(),
            chunk => rest.char_indices().nth(chunk).map_or(rest.len(), |(at, _)| at),
        };
        let index = self.block;
        let delta: Arc<str> = rest[..length].into();
        // An empty block still has its one delta; `max(1)` marks it as sent.
        self.at = At::Inside { sent: (sent + length).max(1), text };
        StreamEvent::Block(match self.reply.content[index].get("type").and_then(Value::as_str) {
            Some("thinking") => BlockEvent::ThinkingDelta { index, delta },
            Some("toolCall") => BlockEvent::ToolCallDelta { index, delta },
            _ => BlockEvent::TextDelta { index, delta },
        })
    }

    fn block_end(&mut self, text: &Arc<str>) -> StreamEvent {
        let index = self.block;
        let block = self.reply.content[index].clone();
        self.push(block.clone());
        self.block += 1;
        self.at = At::BlockStart;
        StreamEvent::Block(match block.get("type").and_then(Value::as_str) {
            Some("thinking") => BlockEvent::ThinkingEnd { index, content: text.clone() },
            Some("toolCall") => BlockEvent::ToolCallEnd { index, tool_call: Arc::new(block) },
            _ => BlockEvent::TextEnd { index, content: text.clone() },
        })
    }

    fn push(&mut self, block: Value) {
        let content = self.message.as_mut().and_then(|message| message.object_mut().get_mut("content"));
        if let Some(Value::Array(blocks)) = content {
            blocks.push(block);
        }
    }

    async fn after_content(&mut self) -> StreamEvent {
        let cancelled = self.request.cancel.clone();
        if let Some((control, index)) = &self.control {
            if self.reply.hang || self.reply.wait_gate.is_some() {
                control.stands(*index);
            }
            if self.reply.hang {
                cancelled.cancelled().await;
            } else if let Some(gate) = &self.reply.wait_gate {
                tokio::select! {
                    () = control.gates().wait(gate) => {}
                    () = cancelled.cancelled() => {}
                }
            }
        }
        self.finish(None)
    }

    /// The final event; `inside` is the unfinished block of an aborted reply.
    fn finish(&mut self, inside: Option<At>) -> StreamEvent {
        if let Some(At::Inside { text, sent }) = inside
            && sent > 0
        {
            let part = &text[..sent.min(text.len())];
            match self.reply.content[self.block].get("type").and_then(Value::as_str) {
                Some("thinking") => self.push(json!({"type": "thinking", "thinking": part})),
                // Half a call is no call.
                Some("toolCall") => {}
                _ => self.push(json!({"type": "text", "text": part})),
            }
        }
        let mut message = self.message.take().unwrap_or_else(|| start(&self.request));
        message.set("usage", self.usage.to_value());
        if self.request.cancel.is_cancelled() {
            return StreamEvent::Done(ended(message, "aborted", Some(ABORTED)));
        }
        let calls = message.tool_calls().next().is_some();
        let stop = self.reply.stop.as_deref().unwrap_or(if calls { "toolUse" } else { "stop" });
        StreamEvent::Done(ended(message, stop, self.reply.error.as_deref()))
    }
}
