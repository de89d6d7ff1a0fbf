//! Things that can be done to a session, done alike by pi and by us, and drawn at random from a seed.

use branchline::message::Message;
use branchline::tree::{BranchSummaryEntry, CompactionEntry, Cursor};
use serde_json::{Value, json};

use crate::Peer;
use crate::state::quote;

/// One operation. Bodies are JSON texts.
#[derive(Debug, Clone)]
pub enum Op {
    /// Append a message of any role.
    Message(String),
    /// Append a thinking level.
    Thinking(String),
    /// Append a model: provider and id.
    Model(String, String),
    /// Append usage of its own: kind, note.
    Usage(String, Option<String>),
    /// Append a compaction that keeps from an entry on, or nothing.
    Compaction(String, Option<String>),
    /// Append state of an extension.
    Custom(String, Option<String>),
    /// Append a message of an extension: content, whether it is shown, details.
    CustomMessage(String, bool, Option<String>),
    /// Set or clear a label.
    Label(String, Option<String>),
    /// Name the session.
    Name(String),
    /// Change what the model sees of an entry.
    ContextEdit(String, String),
    /// Move the leaf.
    MoveTo(String),
    /// Move the leaf before the first entry.
    Reset,
    /// Move the leaf and append a summary there.
    Summary(Option<String>, String, Option<bool>),
}

/// Usage of a message or entry.
const USAGE: &str = r#"{"input":3,"output":5,"cacheRead":7,"cacheWrite":0,"totalTokens":15,"cost":{"input":0.000003,"output":1e-7,"cacheRead":0.1,"cacheWrite":0,"total":0.1000031}}"#;

impl Op {
    /// Does it in pi. The new entry's id, if one was appended; pi's message if it refused.
    pub fn in_pi(&self, peer: &mut Peer) -> Result<Option<String>, String> {
        let text = |text: &str| quote(Some(text));
        // A trailing null is not the same as an absent argument: the former may be written.
        let some = |parts: &[Option<String>]| -> Vec<String> { parts.iter().map_while(Clone::clone).collect() };
        let (method, args) = match self {
            Op::Message(message) => ("appendMessage", vec![message.clone()]),
            Op::Thinking(level) => ("appendThinkingLevelChange", vec![text(level)]),
            Op::Model(provider, id) => ("appendModelChange", vec![text(provider), text(id)]),
            Op::Usage(kind, note) => {
                let fixed = [text(kind), text("p"), text("m"), USAGE.to_owned()].map(Some);
                ("appendUsage", some(&[&fixed[..], &[note.as_deref().map(text)]].concat()))
            }
            Op::Compaction(summary, kept) => (
                "appendCompaction",
                vec![
                    text(summary),
                    quote(kept.as_deref()),
                    "12345".into(),
                    r#"{"readFiles":["a"]}"#.into(),
                    "true".into(),
                ],
            ),
            Op::Custom(kind, data) => ("appendCustomEntry", some(&[Some(text(kind)), data.clone()])),
            Op::CustomMessage(content, display, details) => (
                "appendCustomMessageEntry",
                some(&[Some(text("ext")), Some(content.clone()), Some(display.to_string()), details.clone()]),
            ),
            Op::Label(target, label) => ("appendLabelChange", some(&[Some(text(target)), label.as_deref().map(text)])),
            Op::Name(name) => ("appendSessionInfo", vec![text(name)]),
            Op::ContextEdit(target, replacement) => ("appendContextEdit", vec![text(target), replacement.clone()]),
            Op::MoveTo(target) => ("branch", vec![text(target)]),
            Op::Reset => ("resetLeaf", vec![]),
            Op::Summary(target, summary, from_hook) => {
                let details = from_hook.map(|_| r#"{"k":1}"#.to_owned());
                (
                    "branchWithSummary",
                    some(&[
                        Some(quote(target.as_deref())),
                        Some(text(summary)),
                        details,
                        from_hook.map(|hook| hook.to_string()),
                    ]),
                )
            }
        };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let answer = peer.call(method, &args)?;
        // appendUsage gives the entry, all others its id
        let answer: Value = serde_json::from_str(&answer).map_err(|e| e.to_string())?;
        Ok(answer.as_str().or_else(|| answer["id"].as_str()).map(str::to_owned))
    }

    /// Does it in ours.
    ///
    /// # Errors
    /// What the cursor gives.
    ///
    /// # Panics
    /// When a body is not JSON.
    pub fn in_ours(&self, cursor: &mut Cursor) -> branchline::Result<Option<String>> {
        let value = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
        Ok(Some(match self {
            Op::Message(message) => {
                cursor.append_message(&Message::from_json(message.as_bytes()).expect("an object"))?
            }
            Op::Thinking(level) => cursor.append_thinking_level(level)?,
            Op::Model(provider, id) => cursor.append_model(provider, id)?,
            Op::Usage(kind, note) => cursor.append_usage(kind, "p", "m", &value(USAGE), note.as_deref())?,
            Op::Compaction(summary, kept) => cursor.append_compaction(&CompactionEntry {
                summary: summary.clone(),
                first_kept_entry_id: kept.clone(),
                tokens_before: 12345,
                details: Some(json!({"readFiles": ["a"]})),
                usage: None,
                from_hook: Some(true),
            })?,
            Op::Custom(kind, data) => cursor.append_custom(kind, data.as_deref().map(value).as_ref())?,
            Op::CustomMessage(content, display, details) => cursor.append_custom_message(
                "ext",
                &value(content),
                *display,
                details.as_deref().map(value).as_ref(),
            )?,
            Op::Label(target, label) => cursor.append_label(target, label.as_deref())?,
            Op::Name(name) => cursor.append_name(name)?,
            Op::ContextEdit(target, replacement) => cursor.append_context_edit(target, &value(replacement))?,
            Op::MoveTo(target) => return cursor.move_to(target).map(|()| None),
            Op::Reset => {
                cursor.reset();
                return Ok(None);
            }
            Op::Summary(target, summary, from_hook) => cursor.move_with_summary(
                target.as_deref(),
                &BranchSummaryEntry {
                    summary: summary.clone(),
                    details: from_hook.map(|_| json!({"k": 1})),
                    from_hook: *from_hook,
                    usage: None,
                },
            )?,
        }))
    }
}

/// A source of operations: the same seed gives the same ones.
#[derive(Debug)]
pub struct Ops(u64);

/// Texts that break careless writers.
const TEXTS: &[&str] = &[
    "",
    "plain",
    "quote \" backslash \\ slash / tab \t line\nbreak \r\n bell \u{7} delete \u{7f}",
    "line separators \u{2028}\u{2029}, BOM \u{feff}, nul \u{0}",
    "日本語, naïve, 👩‍👩‍👧, \u{10ffff}",
    "  spaces around  ",
    "{\"type\":\"session\"}",
];

impl Ops {
    /// Operations for a seed.
    pub fn new(seed: u64) -> Ops {
        Ops(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    fn text(&mut self) -> String {
        TEXTS[self.below(TEXTS.len())].to_owned()
    }

    fn maybe<T>(&mut self, value: T) -> Option<T> {
        (self.below(2) == 0).then_some(value)
    }

    /// An entry: mostly a late one.
    fn target(&mut self, ids: &[String]) -> String {
        let back = if self.below(4) == 0 { ids.len() } else { ids.len().min(8) };
        ids[ids.len() - 1 - self.below(back)].clone()
    }

    /// A value with everything that numbers and names can do.
    fn data(&mut self) -> String {
        let n = self.below(5);
        [
            r#"{"b":1,"a":-0,"10":"ten","9":"nine","__proto__":{"x":1},"constructor":null}"#,
            "[1e21,1e-7,0.1,100.0,123456789012345680000,-1.5e300,5e-324,true,null,[]]",
            r#""""#,
            "null",
            r#"{"deep":[[[[{"a":{"b":{}}}]]]],"text":"é\u0001\ud83d\ude00"}"#,
        ][n]
            .to_owned()
    }

    fn message(&mut self) -> String {
        let (text, other) = (self.text(), self.text());
        let block = json!({"type": "text", "text": text});
        let usage: Value = serde_json::from_str(USAGE).expect("JSON");
        match self.below(10) {
            0 | 1 => json!({"role": "user", "content": text, "timestamp": 1767600000000u64}),
            2 | 3 => json!({"role": "user", "content": [block, {"type": "image", "data": "aGk=", "mimeType": "image/png"}], "timestamp": 1}),
            4 | 5 => json!({"role": "assistant", "content": [
                    {"type": "thinking", "thinking": other, "thinkingSignature": "sig=="}, block,
                    {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": text, "2": 1, "1": 2}}],
                "api": "anthropic-messages", "provider": "anthropic", "model": "claude", "usage": usage, "stopReason": "toolUse",
                "timestamp": 1767600000001u64, "unknownField": [1.50, 2e3], "durationMs": 12.75, "thinkingLevel": "high"}),
            6 | 7 => json!({"role": "toolResult", "toolCallId": "call_1", "toolName": "read", "content": [block],
                "details": {"diff": other}, "isError": false, "timestamp": 1767600000002u64}),
            8 => json!({"role": "system", "content": text, "sections": {"a": other, "b": null}, "timestamp": 3,
                "toolsAdded": [{"name": "read", "description": "d", "parameters": {"type": "object"}}], "toolsRemoved": [{"name": "bash"}]}),
            _ => json!({"role": "bashExecution", "command": "ls", "output": text, "exitCode": 0, "cancelled": false,
                "truncated": false, "timestamp": 4, "excludeFromContext": true}),
        }
        .to_string()
    }

    /// The next operation on a session whose entries have these ids. Context edits are often refused; the others are not.
    pub fn next(&mut self, ids: &[String]) -> Op {
        if ids.is_empty() {
            return Op::Message(json!({"role": "user", "content": "first", "timestamp": 1}).to_string());
        }
        match self.below(30) {
            0 => Op::Thinking("high".into()),
            1 => Op::Model("p".into(), self.text()),
            2 => Op::Usage("cache_warm".into(), self.maybe("note".into())),
            3 => {
                let kept = self.target(ids);
                Op::Compaction(self.text(), self.maybe(kept))
            }
            4 => {
                let data = self.data();
                Op::Custom("ext".into(), self.maybe(data))
            }
            5 => Op::CustomMessage(quote(Some(&self.text())), true, None),
            6 => Op::CustomMessage(r#"[{"type":"text","text":"blocks"}]"#.into(), false, Some(self.data())),
            7..=9 => {
                let label = self.text();
                Op::Label(self.target(ids), self.maybe(label))
            }
            10 => Op::Name(self.text()),
            11..=13 => {
                let content = quote(Some(&self.text()));
                let replacement = match self.below(3) {
                    0 => "null".to_owned(),
                    1 => format!(r#"{{"content":{content}}}"#),
                    _ => format!(r#"{{"content":[{{"type":"text","text":{content}}}]}}"#),
                };
                Op::ContextEdit(self.target(ids), replacement)
            }
            14 | 15 => Op::MoveTo(self.target(ids)),
            16 if self.below(3) == 0 => Op::Reset,
            17 => {
                let (target, hook) = (self.target(ids), self.below(2) == 0);
                Op::Summary(self.maybe(target), self.text(), self.maybe(hook))
            }
            _ => Op::Message(self.message()),
        }
    }
}
