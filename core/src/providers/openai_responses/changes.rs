//! What changes during a conversation, told where it changes (P409): tools and the level of thinking.
//!
//! Items that add tools add up: a later one replaces a tool of the same name, and none takes one away. So a removal is told in
//! words, and words tell the model that a later list does not stand for all.

use serde_json::{Value, json};

use crate::message::Message;
use crate::providers::call_id;
use crate::providers::tool_changes::{self, Define, ToolPlan, name};

/// What is told in place.
pub(super) struct Changes<'a> {
    /// Where the tools stand, if changes are told.
    pub(super) plan: Option<&'a ToolPlan>,
    /// The service's form of declarations.
    pub(super) define: &'a Define<'a>,
    /// The first tools, if an item declares them too.
    pub(super) head: Option<&'a [Value]>,
    /// Tools are added as if a search had found them.
    pub(super) additions_only: bool,
    /// The level of the answer to come.
    pub(super) effort: Option<&'a str>,
}

/// From here on the level is this one.
pub(super) fn effort(level: &str) -> Value {
    json!({"type": "configuration_update", "reasoning": {"effort": level}})
}

/// Something that stands in front of a system message.
pub(super) enum ToolItem {
    Item(Value),
    /// Words of the system's.
    Notice(String),
}

/// The items of one conversation, in order.
pub(super) struct ToolItems<'a> {
    changes: &'a Changes<'a>,
    declared: bool,
    /// Told as gone, and not declared again since.
    gone: Vec<String>,
}

impl<'a> ToolItems<'a> {
    pub(super) fn new(changes: &'a Changes<'a>) -> ToolItems<'a> {
        ToolItems { changes, declared: false, gone: Vec::new() }
    }

    /// The tools of the beginning, if they are an item.
    pub(super) fn first(&mut self) -> Option<Value> {
        let head = self.changes.head.filter(|head| !head.is_empty())?;
        self.declared = true;
        Some(additional(head.to_vec()))
    }

    /// What stands in front of the system message with this number, and what its text says besides.
    ///
    /// Errors: a tool cannot be declared.
    pub(super) fn of(&mut self, message: &Message, number: usize) -> Result<(Vec<ToolItem>, String), String> {
        let mut out = Vec::new();
        if !self.changes.plan.is_some_and(|plan| plan.tells(number)) {
            return Ok((out, String::new()));
        }
        let added = tool_changes::added(message);
        if !added.is_empty() {
            self.gone.retain(|gone| !added.iter().any(|tool| name(tool) == gone));
            let mut tools = (self.changes.define)(added)?;
            if self.changes.additions_only {
                tools.iter_mut().for_each(|tool| tool["defer_loading"] = true.into());
                out.extend(found(added, tools, number));
            } else {
                if self.declared {
                    out.push(ToolItem::Notice(self.notice()));
                }
                self.declared = true;
                out.push(ToolItem::Item(additional(tools)));
            }
        }
        let removed = tool_changes::removed(message);
        let text = match removed.is_empty() {
            true => String::new(),
            false => format!("These tools are gone and must not be called any more: {}.", removed.join(", ")),
        };
        for name in removed {
            if !self.gone.iter().any(|gone| gone == name) {
                self.gone.push(name.to_owned());
            }
        }
        Ok((out, text))
    }

    fn notice(&self) -> String {
        let mut text =
            "The tools that follow are added to those you have; one of a name you know replaces it. Tools declared \
                        before can still be called unless you were told that they are gone."
                .to_owned();
        if !self.gone.is_empty() {
            text.push_str(&format!(" Still gone: {}.", self.gone.join(", ")));
        }
        text
    }
}

fn additional(tools: Vec<Value>) -> Value {
    json!({"type": "additional_tools", "role": "developer", "tools": tools})
}

/// A search for tools that found these, as if the model had asked for it.
fn found(added: &[Value], tools: Vec<Value>, number: usize) -> [ToolItem; 2] {
    let names: Vec<&str> = added.iter().map(name).collect();
    let id = format!("tools_{}", call_id::hash(&format!("{number}:{}", names.join(","))));
    let item = |kind: &str| json!({"type": kind, "call_id": id, "execution": "client", "status": "completed"});
    let (mut call, mut output) = (item("tool_search_call"), item("tool_search_output"));
    call["arguments"] = json!({"query": names.join(" "), "limit": names.len()});
    output["tools"] = tools.into();
    [ToolItem::Item(call), ToolItem::Item(output)]
}
