//! Tools that change during a conversation: which of them head a request, and which are told where they changed
//! (P218, P409).
//!
//! A list of tools at the head of a request is a part of the prefix that services cache, so a change of it costs the whole
//! conversation. Services that take changes in place keep that prefix.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::Request;
use crate::message::{Message, Role};
use crate::tree::SystemFold;

/// Writes declarations in a service's form.
///
/// Errors: a tool requires what the service cannot do.
pub(crate) type Define<'a> = dyn Fn(&[Value]) -> Result<Vec<Value>, String> + 'a;

/// What a service can be told in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InPlace {
    /// Nothing: the list at the head is always the present one.
    Nothing,
    /// New tools, but no removal, and no other form of a known tool.
    Additions,
    /// Every change.
    Changes,
}

/// Where the tools of a request stand.
#[derive(Debug, Default)]
pub(crate) struct ToolPlan {
    /// The list at the head.
    pub(crate) head: Vec<Value>,
    /// So many of the system messages are contained in it; those after them tell their changes.
    pub(crate) folded: usize,
}

impl ToolPlan {
    /// Plans a request. `Nothing` is the plan too if the messages do not tell the tools of the request, which then counts.
    pub(crate) fn of(request: &Request, support: InPlace) -> ToolPlan {
        let system: Vec<&Message> =
            request.messages.iter().map(Arc::as_ref).filter(|message| message.shape().role == Role::System).collect();
        let leads = request.messages.first().is_some_and(|message| message.role() == Role::System);
        let present = |folded| ToolPlan { head: request.tools.to_vec(), folded };
        if support == InPlace::Nothing {
            return present(usize::MAX);
        }
        // Tools that came beside the messages are those of the beginning.
        if system.iter().all(|message| added(message).is_empty() && list(message, "toolsRemoved").is_empty()) {
            return present(usize::from(leads));
        }
        if fold(&system) != request.tools.as_slice() {
            return present(usize::MAX);
        }
        let folded = match support {
            InPlace::Additions => last_other_change(&system).map_or(usize::from(leads), |at| at + 1),
            _ => usize::from(leads),
        };
        ToolPlan { head: fold(&system[..folded]), folded }
    }

    /// Whether a system message tells its changes; messages are counted over the whole conversation.
    pub(crate) fn tells(&self, at: usize) -> bool {
        at >= self.folded
    }
}

fn fold(messages: &[&Message]) -> Vec<Value> {
    let mut fold = SystemFold::default();
    messages.iter().for_each(|message| fold.add(message));
    fold.tools().to_vec()
}

/// The last message that does more than add a tool nobody knew; the first prompt adds all of its tools.
fn last_other_change(system: &[&Message]) -> Option<usize> {
    let mut known = HashSet::new();
    let mut last = None;
    for (at, message) in system.iter().enumerate() {
        let again = added(message).iter().filter(|tool| !known.insert(name(tool))).count();
        if again > 0 || !list(message, "toolsRemoved").is_empty() {
            last = Some(at);
        }
    }
    last
}

fn list<'a>(message: &'a Message, key: &str) -> &'a [Value] {
    message.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The name of a declaration.
pub(crate) fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The tools a system message adds.
pub(crate) fn added(message: &Message) -> &[Value] {
    list(message, "toolsAdded")
}

/// The names of tools a system message takes away. One that it adds again at once is only replaced.
pub(crate) fn removed(message: &Message) -> Vec<&str> {
    let again: HashSet<&str> = added(message).iter().map(name).collect();
    list(message, "toolsRemoved").iter().map(name).filter(|name| !again.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::providers::Model;

    fn tool(name: &str) -> Value {
        json!({"name": name, "description": "", "parameters": {"type": "object"}})
    }

    fn request(changes: &[(&[&str], &[&str])]) -> Request {
        let mut messages = vec![];
        let mut fold = SystemFold::default();
        for (add, remove) in changes {
            let remove: Vec<Value> = remove.iter().map(|name| json!({"name": name})).collect();
            let add: Vec<Value> = add.iter().map(|name| tool(name)).collect();
            let message = json!({"role": "system", "content": "", "toolsAdded": add, "toolsRemoved": remove});
            let message = Message::from_value(message).unwrap();
            fold.add(&message);
            messages.push(Arc::new(message));
        }
        let mut request = Request::new(Arc::new(Model::new("p", "m", "a")), messages);
        request.tools = Arc::new(fold.tools().to_vec());
        request
    }

    fn plan(request: &Request, support: InPlace) -> (Vec<&str>, usize) {
        let plan = ToolPlan::of(request, support);
        let names = plan.head.iter().map(|tool| ["a", "b", "c"].into_iter().find(|it| *it == name(tool)).unwrap());
        (names.collect(), plan.folded)
    }

    #[test]
    fn p409_additions_stay_where_they_are_until_something_else_changes() {
        let added = request(&[(&["a"], &[]), (&["b"], &[]), (&["c"], &[])]);
        assert_eq!(plan(&added, InPlace::Nothing), (vec!["a", "b", "c"], usize::MAX));
        assert_eq!(plan(&added, InPlace::Additions), (vec!["a"], 1));
        assert_eq!(plan(&added, InPlace::Changes), (vec!["a"], 1));
        let removed = request(&[(&["a"], &[]), (&["b"], &["a"]), (&["c"], &[])]);
        assert_eq!(plan(&removed, InPlace::Additions), (vec!["b"], 2));
        assert_eq!(plan(&removed, InPlace::Changes), (vec!["a"], 1));
        let replaced = request(&[(&["a"], &[]), (&["b"], &[]), (&["a"], &[])]);
        assert_eq!(plan(&replaced, InPlace::Additions), (vec!["a", "b"], 3));
    }

    #[test]
    fn p409_messages_that_do_not_tell_the_tools_change_nothing() {
        let mut other = request(&[(&["a"], &[]), (&["b"], &[])]);
        other.tools = Arc::new(vec![tool("b")]);
        assert_eq!(plan(&other, InPlace::Changes), (vec!["b"], usize::MAX));
    }
}
