//! Texts that wait for their turn: steering and follow-up (S231–S235).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::message::Message;

/// A list of texts as events share it.
type Texts = Arc<[Arc<str>]>;

/// Both queues, and the lists shown to the host. A text leaves the shown list when it is delivered, which can be later
/// than it leaves the queue.
#[derive(Default)]
pub(crate) struct Pending {
    steering: Line,
    follow_up: Line,
}

#[derive(Default)]
struct Line {
    messages: VecDeque<Message>,
    shown: Vec<Arc<str>>,
    all: bool,
}

impl Line {
    fn drain(&mut self) -> Vec<Message> {
        match self.all {
            true => self.messages.drain(..).collect(),
            false => self.messages.pop_front().into_iter().collect(),
        }
    }

    fn hide(&mut self, text: &str) -> bool {
        let found = self.shown.iter().position(|shown| **shown == *text);
        found.map(|at| self.shown.remove(at)).is_some()
    }

    fn clear(&mut self) -> Vec<String> {
        self.messages.clear();
        self.shown.drain(..).map(|text| text.to_string()).collect()
    }
}

impl Pending {
    pub(crate) fn push(&mut self, steer: bool, text: &str, message: Message) {
        let line = if steer { &mut self.steering } else { &mut self.follow_up };
        line.shown.push(text.into());
        line.messages.push_back(message);
    }

    /// Queues a message that the shown lists do not tell of.
    pub(crate) fn push_silently(&mut self, steer: bool, message: Message) {
        let line = if steer { &mut self.steering } else { &mut self.follow_up };
        line.messages.push_back(message);
    }

    pub(crate) fn drain_steering(&mut self) -> Vec<Message> {
        self.steering.drain()
    }

    pub(crate) fn drain_follow_up(&mut self) -> Vec<Message> {
        self.follow_up.drain()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steering.messages.is_empty() && self.follow_up.messages.is_empty()
    }

    /// A user message is delivered: its text leaves the shown lists. True if one changed.
    pub(crate) fn delivered(&mut self, text: &str) -> bool {
        self.steering.hide(text) || self.follow_up.hide(text)
    }

    pub(crate) fn clear(&mut self) -> (Vec<String>, Vec<String>) {
        (self.steering.clear(), self.follow_up.clear())
    }

    pub(crate) fn set_modes(&mut self, steer_all: Option<bool>, follow_up_all: Option<bool>) {
        self.steering.all = steer_all.unwrap_or(self.steering.all);
        self.follow_up.all = follow_up_all.unwrap_or(self.follow_up.all);
    }

    /// The shown lists: steering, follow-up.
    pub(crate) fn shown(&self) -> (Texts, Texts) {
        (self.steering.shown.as_slice().into(), self.follow_up.shown.as_slice().into())
    }
}
