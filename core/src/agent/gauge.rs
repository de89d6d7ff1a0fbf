//! How full the context is, kept up to date message by message, so that asking costs nothing in a long session
//! (S257–S260).

use crate::message::{Message, Role};
use crate::session::estimate::{message_tokens, valid_usage};
use crate::tree::SystemFold;

#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge {
    reported: Option<Reported>,
    /// Estimates of all messages after the reported usage.
    following: u64,
    /// Estimates of all messages but those of the system.
    spoken: u64,
    system: Option<SystemFold>,
}

/// The last usage that can be relied on.
#[derive(Debug, Clone)]
struct Reported {
    total: u64,
    timestamp: Option<f64>,
    /// Nothing changed the context after it.
    fresh: bool,
}

impl Gauge {
    /// Adds the next message; `fresh` is false for what a compaction kept from before.
    pub(crate) fn add(&mut self, message: &Message, fresh: bool) {
        let tokens = message_tokens(message);
        match message.role() {
            Role::System => self.system.get_or_insert_default().add(message),
            _ => self.spoken += tokens,
        }
        match valid_usage(message) {
            Some(total) => {
                self.reported = Some(Reported { total, timestamp: message.timestamp(), fresh });
                self.following = 0;
            }
            None => self.following += tokens,
        }
    }

    /// The context was edited: what was reported before no longer holds.
    pub(crate) fn edited(&mut self) {
        if let Some(reported) = &mut self.reported {
            reported.fresh = false;
        }
    }

    /// The last valid usage and the estimates of what follows it (S259), and when that usage was reported.
    pub(crate) fn by_usage(&self) -> (u64, Option<f64>) {
        let reported = self.reported.as_ref();
        let total = reported.map_or(0, |reported| reported.total);
        (total + self.following, reported.and_then(|reported| reported.timestamp))
    }

    /// The estimate of the whole context (S260).
    pub(crate) fn projected(&self) -> u64 {
        if self.reported.as_ref().is_some_and(|reported| reported.fresh) {
            return self.by_usage().0;
        }
        let system = self.system.clone().map_or(0, |system| message_tokens(&system.into_message()));
        self.spoken + system
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::estimate::projected_tokens;
    use crate::tree::{CreateOptions, Cursor, Tree};
    use serde_json::json;

    fn message(value: serde_json::Value) -> Message {
        Message::from_value(value).unwrap()
    }

    /// The running count equals the one that reads everything again.
    #[test]
    fn equals_the_estimate_of_the_whole_context() {
        let tree = Tree::create("/work/demo", CreateOptions { in_memory: true, ..Default::default() }).unwrap();
        let mut cursor = Cursor::new(tree.clone());
        let mut gauge = Gauge::default();
        let usage = json!({"input": 90, "output": 7, "totalTokens": 97});
        let answer = |usage: serde_json::Value| {
            json!({"role": "assistant", "content": [{"type": "text", "text": "abcdefgh"}],
            "stopReason": "stop", "usage": usage, "timestamp": 5})
        };
        let steps = [
            json!({"role": "system", "content": "be brief", "sections": {"cwd": "/work"}, "timestamp": 1}),
            json!({"role": "user", "content": "hello there", "timestamp": 2}),
            answer(json!({})),
            json!({"role": "system", "content": "", "sections": {"cwd": "/elsewhere"}, "timestamp": 3}),
            answer(usage),
            json!({"role": "user", "content": "and now?", "timestamp": 6}),
        ];
        for step in steps {
            let step = message(step);
            cursor.append_message(&step).unwrap();
            gauge.add(&step, true);
            assert_eq!(gauge.projected(), projected_tokens(&tree.context(cursor.leaf()).unwrap()));
        }
        assert_eq!(gauge.by_usage(), (99, Some(5.0)));
        let target = cursor.leaf().unwrap().to_owned();
        cursor.append_context_edit(&target, &json!({"content": "and now?"})).unwrap();
        gauge.edited();
        assert_eq!(gauge.projected(), projected_tokens(&tree.context(cursor.leaf()).unwrap()));
    }
}
