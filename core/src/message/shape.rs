//! What every request asks of each of its messages, read once.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Message, Role, StopReason, is_image};

/// So many calls are looked through one by one; the places of more are found by a hash.
const FEW: usize = 16;

/// The facts of a message that decide how it stands among the others of a request.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) role: Role,
    /// A response that failed or was aborted.
    pub(crate) failed: bool,
    /// There are images in its content.
    pub(crate) images: bool,
    /// It can be sent to any model as it is.
    pub(crate) plain: bool,
    /// Milliseconds since the Unix epoch.
    pub(crate) timestamp: Option<f64>,
    /// The calls of a response.
    pub(crate) calls: Calls,
    /// The call that it is the result of.
    pub(crate) answers: Option<Arc<str>>,
}

impl Shape {
    pub(super) fn of(message: &Message) -> Shape {
        let role = message.role();
        let content = message.get("content").filter(|content| !content.is_null());
        let images = content.and_then(Value::as_array).is_some_and(|content| content.iter().any(is_image));
        let answers = if role == Role::ToolResult { message.get_str("toolCallId") } else { None };
        Shape {
            role,
            failed: role == Role::Assistant
                && matches!(message.stop_reason(), Some(StopReason::Error | StopReason::Aborted)),
            images,
            plain: content.is_some() && !images && role != Role::Assistant,
            timestamp: message.timestamp(),
            calls: Calls::new(message.tool_calls().map(|call| call.id.into()).collect()),
            answers: answers.map(Arc::from),
        }
    }
}

/// The ids of the tool calls of a response, in order.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    ids: Box<[Arc<str>]>,
    /// Where each is, if there are many.
    places: HashMap<Arc<str>, usize>,
}

impl Calls {
    fn new(ids: Box<[Arc<str>]>) -> Calls {
        let many = if ids.len() > FEW { &ids[..] } else { &[] };
        let places = many.iter().cloned().enumerate().map(|(place, id)| (id, place)).collect();
        Calls { ids, places }
    }

    pub(crate) fn ids(&self) -> &[Arc<str>] {
        &self.ids
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Which of the calls has this id; the last one if several do.
    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        match self.places.is_empty() {
            true => self.ids.iter().rposition(|known| **known == *id),
            false => self.places.get(id).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_among_few_and_among_many() {
        for count in [1, FEW, FEW + 1, 100] {
            let mut ids: Vec<Arc<str>> = (0..count).map(|at| format!("call_{at}").into()).collect();
            ids.push("call_0".into());
            let calls = Calls::new(ids.into());
            assert_eq!(calls.place("call_0"), Some(count), "the last of two");
            assert_eq!(calls.place(&format!("call_{}", count - 1)), Some(if count == 1 { 1 } else { count - 1 }));
            assert_eq!(calls.place("call"), None);
        }
    }
}
