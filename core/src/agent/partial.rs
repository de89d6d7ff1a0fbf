//! The part of a response that has arrived, for when the rest never does.

use serde_json::{Value, json};

use crate::message::{Message, Usage};
use crate::providers::BlockEvent;

/// A growing assistant message.
pub(crate) struct Partial {
    start: Message,
    blocks: Vec<Block>,
    usage: Usage,
}

enum Block {
    Text(String),
    Thinking(String),
    /// Complete, as it will be stored; `None` while its arguments are still arriving.
    ToolCall(Option<Value>),
}

impl Partial {
    pub(crate) fn new(start: Message) -> Partial {
        let usage = start.usage().unwrap_or_default();
        Partial { start, blocks: Vec::new(), usage }
    }

    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    pub(crate) fn apply(&mut self, event: &BlockEvent) {
        let index = event.index();
        match event {
            BlockEvent::TextStart { .. } => self.put(index, Block::Text(String::new())),
            BlockEvent::ThinkingStart { .. } => self.put(index, Block::Thinking(String::new())),
            BlockEvent::ToolCallStart { .. } => self.put(index, Block::ToolCall(None)),
            BlockEvent::TextDelta { delta, .. } | BlockEvent::ThinkingDelta { delta, .. } => {
                if let Some(Block::Text(text) | Block::Thinking(text)) = self.blocks.get_mut(index) {
                    text.push_str(delta);
                }
            }
            BlockEvent::TextEnd { content, .. } => self.put(index, Block::Text(content.to_string())),
            BlockEvent::ThinkingEnd { content, .. } => self.put(index, Block::Thinking(content.to_string())),
            BlockEvent::ToolCallEnd { tool_call, .. } => {
                self.put(index, Block::ToolCall(Some(Value::clone(tool_call))));
            }
            BlockEvent::ToolCallDelta { .. } => {}
        }
    }

    fn put(&mut self, index: usize, block: Block) {
        match self.blocks.get_mut(index) {
            Some(known) => *known = block,
            None => self.blocks.push(block),
        }
    }

    /// The message as it stands, ended for this reason. Half a call is no call.
    pub(crate) fn ended(self, stop: &str, error: &str) -> Message {
        let mut message = self.start;
        let blocks = self.blocks.into_iter().filter_map(|block| match block {
            Block::Text(text) => Some(json!({"type": "text", "text": text})),
            Block::Thinking(text) => Some(json!({"type": "thinking", "thinking": text})),
            Block::ToolCall(call) => call,
        });
        message.set("content", blocks.collect::<Vec<Value>>());
        message.set("usage", self.usage.to_value());
        message.set("stopReason", stop);
        message.set("errorMessage", error);
        message
    }
}
