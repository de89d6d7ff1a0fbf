//! Replies of the model.

use serde_json::{Value, json};

use super::generate::Draw;

/// Texts that are more than letters.
const TEXTS: &[&str] = &[
    "plain words",
    "quote \" backslash \\ slash / tab \t line\nbreak",
    "separators \u{2028}\u{2029}, 日本語, naïve, 👩‍👩‍👧, \u{10ffff}",
    "  spaces around  ",
    "a longer answer that says one thing after the other, as models like to do, and takes a while to come to its end",
];
/// Errors worth repeating the request for (S247).
const PASSING: &[&str] = &[
    "overloaded_error: Overloaded",
    "429 too many requests",
    "500 internal server error",
    "503 Service Unavailable",
    "fetch failed",
    "read ECONNRESET",
    "stream ended before message_stop",
    "rate limit reached",
];
/// And others.
const LASTING: &[&str] = &[
    "401 invalid x-api-key",
    "insufficient_quota: 429",
    "something odd",
    "Monthly usage limit reached",
    "HTTP 4290",
    "content filtered",
];
/// The conversation is too long (S249).
const TOO_LONG: &[&str] = &[
    "prompt is too long: 210000 tokens > 200000 maximum",
    "context_length_exceeded",
    "413 payload",
    "input token count 9 exceeds the maximum",
];
impl Draw {
    pub(super) fn reply(&mut self, mut reply: Value) {
        if self.chance(if self.tight { 60 } else { 25 }) {
            let most = if self.tight { 9_000 } else { 90_000 };
            let mut usage = json!({"input": self.dice.roll(most), "output": self.dice.roll(300)});
            if self.chance(30) {
                usage["cacheRead"] = self.dice.roll(most / 4).into();
            }
            if self.chance(10) {
                usage = json!({"input": 0, "output": 0});
            }
            reply["usage"] = usage;
        }
        self.script.push(reply);
    }

    pub(super) fn text(&mut self) -> String {
        match self.chance(if self.tight { 35 } else { 10 }) {
            true => self.dice.pick(TEXTS).repeat(1 + self.dice.roll(20)),
            false => (*self.dice.pick(TEXTS)).to_owned(),
        }
    }

    /// A prompt's text; some are used again and again (S234).
    pub(super) fn words(&mut self) -> String {
        match self.dice.roll(4) {
            0 => (*self.dice.pick(&["again", "more"])).to_owned(),
            _ => format!("{} ({})", self.text(), self.steps.len()),
        }
    }

    /// An error worth repeating the request for, where that does not take long.
    fn passing(&mut self) -> &'static str {
        let errors = if self.patient { LASTING } else { PASSING };
        let error: &&str = self.dice.pick(errors);
        error
    }

    pub(super) fn spoken(&mut self) -> Vec<Value> {
        let mut content = Vec::new();
        if self.chance(25) {
            let mut block = json!({"type": "thinking", "thinking": self.text()});
            if self.chance(50) {
                block["thinkingSignature"] = "c2ln".into();
            }
            content.push(block);
        }
        if self.chance(90) {
            content.push(json!({"type": "text", "text": self.text()}));
        }
        if self.chance(5) {
            content.push(json!({"type": "text", "text": ""}));
        }
        content
    }

    pub(super) fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.calls += 1;
        json!({"type": "toolCall", "id": format!("call_{}", self.calls), "name": name, "arguments": arguments})
    }

    pub(super) fn any_call(&mut self) -> Value {
        if self.real && self.chance(60) {
            let calls = [
                ("read", json!({"path": "a.txt"})),
                ("read", json!({"path": "b.txt", "offset": 2, "limit": 1})),
                ("read", json!({"path": "a.txt", "offset": 40})),
                ("read", json!({"path": "missing.txt"})),
                ("read", json!({"file": "a.txt"})),
                ("write", json!({"path": "new/deep.txt", "content": "fresh\n"})),
                ("write", json!({"path": "a.txt", "content": "one\ntwo\n"})),
                ("write", json!({"path": "sub", "content": "a folder"})),
                ("edit", json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]})),
                ("edit", json!({"path": "b.txt", "edits": [{"oldText": "x = 1\ny", "newText": "z"}]})),
                ("edit", json!({"path": "a.txt", "edits": [{"oldText": "nowhere", "newText": ""}]})),
                ("edit", json!({"path": "a.txt", "edits": []})),
                ("bash", json!({"command": "echo out; echo err >&2; exit 3"})),
                ("bash", json!({"command": "printf 'a\\nb\\n'"})),
                ("bash", json!({"command": "true"})),
                ("bash", json!({"command": 7})),
                ("ls", json!({"path": "sub"})),
                ("ls", json!({"path": "nothing"})),
                ("grep", json!({"pattern": "t[a-z]xt", "path": "sub"})),
                ("grep", json!({"pattern": "absent", "path": "sub", "limit": "3"})),
            ];
            let (name, arguments) = self.dice.pick(&calls).clone();
            return self.call(name, arguments);
        }
        let calls = [
            ("echo", json!({"text": "hello"})),
            ("echo", json!({"text": 5, "more": [1]})),
            ("echo", json!({})),
            ("echo", json!({"text": null})),
            ("odd", json!({"n": "12", "flag": "true", "list": "one", "kind": "a"})),
            ("odd", json!({"n": 1.5, "flag": 0})),
            ("odd", json!({"n": "many", "kind": "c"})),
            ("odd", json!({"n": 3, "flag": null, "list": [1, true]})),
            ("fails", json!({"text": "x"})),
            ("sorry", json!({})),
            ("last", json!({})),
            ("last", json!({})),
            ("blocks", json!({})),
            ("empty", json!({"left": "over"})),
            ("alone", json!({"text": "é"})),
            ("absent", json!({"a": {"b": []}})),
            ("read", json!({"path": "src/a.rs"})),
            ("read", json!({"path": "z.md"})),
            ("write", json!({"path": "src/a.rs", "content": "x"})),
            ("read", json!({"path": 3})),
        ];
        let (name, arguments) = self.dice.pick(&calls).clone();
        let mut call = self.call(name, arguments);
        if self.chance(3) {
            call["argumentsError"] = "Unexpected end of JSON input".into();
            call["arguments"] = json!({});
        }
        call
    }

    pub(super) fn calls(&mut self) -> Value {
        let mut content = self.spoken();
        for _ in 0..=self.dice.roll(3) {
            let call = self.any_call();
            // What happens first to a file is chance where others use it at the same time.
            let changes = self.real && (call["name"] == "write" || call["name"] == "edit");
            let alone = !content.iter().any(|block| block["type"] == "toolCall");
            if changes && alone {
                content.push(call);
                break;
            }
            if !changes {
                content.push(call);
            }
        }
        json!({"content": content})
    }

    /// A reply after which the model is asked again, if anything is as usual.
    pub(super) fn on(&mut self) {
        let reply = match self.dice.roll(20) {
            0..=10 => self.calls(),
            // What is said instead of running the calls counts in estimates, and its words differ.
            11 if !self.tight => {
                let mut reply = self.calls();
                reply["stop"] = "length".into();
                reply
            }
            12 => {
                let mut reply = self.calls();
                reply["stop"] = "stop".into();
                reply
            }
            13 => json!({"immediateError": self.passing()}),
            14 | 15 => json!({"stop": "error", "error": self.passing(), "content": self.spoken()}),
            16 => {
                let mut reply = self.calls();
                reply["stop"] = "error".into();
                reply["error"] = (self.passing()).into();
                reply
            }
            17 => {
                self.script.push(json!({"stop": "error", "error": *self.dice.pick(TOO_LONG)}));
                self.summary()
            }
            18 => {
                self.script.push(json!({"immediateError": *self.dice.pick(TOO_LONG)}));
                self.summary()
            }
            _ => {
                let content = self.spoken();
                self.script.push(json!({"content": content, "stop": "length", "usage": {"input": 500, "output": 20}}));
                self.summary()
            }
        };
        self.reply(reply);
    }

    /// The last reply of a turn.
    pub(super) fn end(&mut self) {
        let reply = match self.dice.roll(20) {
            0 => json!({"stop": "error", "error": *self.dice.pick(LASTING), "content": self.spoken()}),
            1 => json!({"immediateError": *self.dice.pick(LASTING)}),
            2 => json!({"throw": *self.dice.pick(LASTING)}),
            3 => json!({"throw": self.passing()}),
            4 => json!({"content": []}),
            5 => {
                let mut reply = self.calls();
                reply["stop"] = "error".into();
                reply["error"] = (*self.dice.pick(LASTING)).into();
                reply
            }
            6 => json!({"stop": "error", "error": ""}),
            _ => json!({"content": self.spoken()}),
        };
        self.reply(reply);
    }

    pub(super) fn replies(&mut self) {
        while self.chance(45) {
            self.on();
        }
        self.end();
    }

    /// A reply to a request for a summary.
    pub(super) fn summary(&mut self) -> Value {
        match self.dice.roll(12) {
            0 => {
                let error = self.passing();
                self.script.push(json!({"stop": "error", "error": error}));
                // pi forgets `summarization_retry_finished` (S248) when the repeated request throws.
                match self.summary() {
                    reply if reply.get("throw").is_some() => json!({"content": [{"type": "text", "text": "at last"}]}),
                    reply => reply,
                }
            }
            1 => json!({"stop": "error", "error": *self.dice.pick(LASTING)}),
            2 => json!({"content": [{"type": "text", "text": "cut"}], "stop": "length"}),
            3 => self.calls(),
            4 => {
                json!({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "first"}, {"type": "text", "text": "second"}]})
            }
            5 => json!({"throw": "no connection"}),
            _ => {
                json!({"content": [{"type": "text", "text": format!("Summary {}: {}", self.script.len(), self.text())}]})
            }
        }
    }
}
