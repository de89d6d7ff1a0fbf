//! Totals over a whole session, all branches (S114–S116).

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use crate::message::{Message, Role, Usage};

/// Tokens and cost, added up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenTotals {
    /// Prompt tokens that were not cached.
    pub input: u64,
    /// Produced tokens.
    pub output: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// Price in US dollars.
    pub cost: f64,
}

impl TokenTotals {
    /// All four together; the providers' own totals are not used (S114).
    pub fn total(&self) -> u64 {
        [self.output, self.cache_read, self.cache_write].into_iter().fold(self.input, u64::saturating_add)
    }

    fn add(&mut self, usage: &Usage) {
        self.input = self.input.saturating_add(usage.input);
        self.output = self.output.saturating_add(usage.output);
        self.cache_read = self.cache_read.saturating_add(usage.cache_read);
        self.cache_write = self.cache_write.saturating_add(usage.cache_write);
        self.cost += usage.cost.total;
    }
}

/// The part of a session's cost that one model caused (S115).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostGroup {
    /// `provider/model`; `None` for everything that names no model (tools, summaries).
    pub model: Option<String>,
    /// What it spent.
    pub tokens: TokenTotals,
}

/// Counts and sums over all entries of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionStats {
    /// User messages.
    pub user_messages: usize,
    /// Assistant messages.
    pub assistant_messages: usize,
    /// Tool results.
    pub tool_results: usize,
    /// Messages of any role.
    pub messages: usize,
    /// Tool-call blocks.
    pub tool_calls: usize,
    /// Everything spent.
    pub tokens: TokenTotals,
    groups: HashMap<Option<String>, (usize, TokenTotals)>,
}

impl SessionStats {
    /// Statistics of a session, given the objects of all its entries.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Value>) -> SessionStats {
        let mut stats = SessionStats::default();
        for entry in entries {
            stats.add(entry);
        }
        stats
    }

    /// Takes one more entry into account.
    pub fn add(&mut self, entry: &Value) {
        let string = |key: &str| entry.get(key).and_then(Value::as_str);
        match string("type") {
            Some("message") => {
                if let Some(message) = entry.get("message").cloned().and_then(Message::from_value) {
                    self.add_message(&message);
                }
            }
            Some("usage") => {
                let name =
                    string("provider").zip(string("model")).map(|(provider, model)| format!("{provider}/{model}"));
                self.spend(name, entry.get("usage").and_then(Usage::from_value));
            }
            Some("compaction" | "branch_summary") => self.spend(None, entry.get("usage").and_then(Usage::from_value)),
            _ => {}
        }
    }

    fn add_message(&mut self, message: &Message) {
        self.messages += 1;
        match message.role() {
            Role::User => self.user_messages += 1,
            Role::Assistant => {
                self.assistant_messages += 1;
                self.tool_calls += message.tool_calls().count();
                let model = message.get_str("responseModel").filter(|model| !model.is_empty());
                let model = model.or_else(|| message.get_str("model")).unwrap_or_default();
                let name = format!("{}/{model}", message.get_str("provider").unwrap_or_default());
                self.spend(Some(name), message.usage());
            }
            Role::ToolResult => {
                self.tool_results += 1;
                self.spend(None, message.usage());
            }
            _ => {}
        }
    }

    fn spend(&mut self, model: Option<String>, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.tokens.add(&usage);
            let order = self.groups.len();
            self.groups.entry(model).or_insert((order, TokenTotals::default())).1.add(&usage);
        }
    }

    /// Cost by model, highest first; groups without cost and tokens are left out (S115).
    pub fn costs(&self) -> Vec<CostGroup> {
        let mut groups: Vec<_> =
            self.groups.iter().filter(|(_, (_, spent))| spent.cost != 0.0 || spent.total() > 0).collect();
        // Equal costs stay in order of first appearance.
        groups.sort_by(|(_, (order_a, a)), (_, (order_b, b))| b.cost.total_cmp(&a.cost).then(order_a.cmp(order_b)));
        groups.into_iter().map(|(model, (_, tokens))| CostGroup { model: model.clone(), tokens: *tokens }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_that_spent_counts() {
        let usage = |n: u64, cost: f64| json!({"input": n, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 999, "cost": {"total": cost}});
        let entries = [
            json!({"type": "message", "message": {"role": "user", "content": "x"}}),
            json!({"type": "message", "message": {"role": "assistant", "provider": "p", "model": "m", "usage": usage(1, 0.5),
                "content": [{"type": "toolCall", "id": "c", "name": "n", "arguments": {}}]}}),
            json!({"type": "message", "message": {"role": "assistant", "provider": "p", "model": "m", "responseModel": "r",
                "usage": usage(2, 1.0), "content": []}}),
            json!({"type": "message", "message": {"role": "toolResult", "usage": usage(3, 0.25)}}),
            json!({"type": "usage", "provider": "p", "model": "m", "usage": usage(4, 0.25)}),
            json!({"type": "compaction", "usage": usage(5, 0.5)}),
            json!({"type": "branch_summary", "usage": usage(6, 0.5)}),
            json!({"type": "usage", "provider": "p", "model": "free", "usage": {}}),
            json!({"type": "message"}),
        ];
        let stats = SessionStats::of(&entries);
        assert_eq!((stats.messages, stats.user_messages, stats.assistant_messages, stats.tool_results), (4, 1, 2, 1));
        assert_eq!((stats.tool_calls, stats.tokens.total(), stats.tokens.cost), (1, 27, 3.0));
        let costs: Vec<_> = stats.costs().into_iter().map(|group| (group.model, group.tokens.cost)).collect();
        assert_eq!(costs, [(None, 1.25), (Some("p/r".into()), 1.0), (Some("p/m".into()), 0.75)]);
    }
}
