//! Scenarios for both programs, drawn from a seed.
//!
//! A scenario is made of *acts*: something the host does, with the replies it will most likely use up. A reply that goes to
//! another request than it was drawn for (a compaction nobody planned) is no fault: both programs get the same one.

use branchline_interop::generated::Dice;
use serde_json::{Value, json};

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
/// A picture of one point.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";
/// Tools that wait, each at a gate of its own.
const WAITING: usize = 6;

/// A scenario and the files of its folder.
pub struct Scenario {
    /// What both programs play.
    pub json: Value,
    /// Names and texts.
    pub files: &'static [(&'static str, &'static str)],
}

/// The scenario of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut draw = Draw {
        dice: Dice(seed),
        script: Vec::new(),
        steps: Vec::new(),
        calls: 0,
        gates: 0,
        waits: 0,
        sessions: 1,
        real: false,
        changed: false,
        tight: false,
    };
    // Numbers of tokens are exact only where both declare the same tools.
    draw.real = draw.chance(40);
    draw.tight = !draw.real && draw.chance(50);
    let acts = 3 + draw.dice.roll(7);
    for _ in 0..acts {
        draw.act();
    }
    let (window, keep) = match draw.tight {
        true => (*draw.dice.pick(&[3_000, 8_000, 20_000]), *draw.dice.pick(&[1, 20, 60, 200, 1_000])),
        false => (200_000, *draw.dice.pick(&[1, 20_000])),
    };
    let mut settings = json!({
        "retry": {"enabled": draw.chance(90), "maxRetries": draw.dice.roll(4), "baseDelayMs": 1},
        "compaction": {"enabled": draw.chance(85), "reserveTokens": *draw.dice.pick(&[0, 500, 2_000]), "keepRecentTokens": keep},
        "cacheWarming": "off",
    });
    if draw.chance(30) {
        settings["steeringMode"] = "all".into();
    }
    if draw.chance(30) {
        settings["followUpMode"] = "all".into();
    }
    if draw.chance(15) {
        settings["defaultThinkingLevel"] = "low".into();
    }
    let level = match draw.chance(50) {
        true => Value::Null,
        false => (*draw.dice.pick(&["off", "minimal", "low", "medium", "high"])).into(),
    };
    let replacement = if draw.chance(70) { "explicit" } else { "restore" };
    let json = json!({
        "prompt": "Answer briefly.",
        "settings": settings,
        "models": [
            {"id": "one", "reasoning": true, "contextWindow": window, "maxTokens": 4_000},
            {"id": "two", "reasoning": false, "contextWindow": window * 2, "maxTokens": 1_000},
        ],
        "options": {"model": *draw.dice.pick(&["one", "one", "two"]), "thinkingLevel": level, "replacement": replacement},
        "builtins": if draw.real { json!(["read", "bash", "edit", "write", "grep", "ls"]) } else { json!([]) },
        "tools": tools(draw.real),
        "script": draw.script,
        "steps": draw.steps,
    });
    let files = &[("a.txt", "one\ntwo\nthree\n"), ("b.txt", "x = 1\r\ny = 2\r\n"), ("sub/c.md", "# Title\n\ntext\n")];
    Scenario { json, files }
}

fn tools(real: bool) -> Value {
    let word = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tool = |name: &str, schema: &Value, behaviour: Value| {
        json!({"name": name, "description": format!("The tool {name}."), "schema": schema, "behaviour": behaviour})
    };
    let any = json!({"type": "object", "properties": {}});
    let odd = json!({"type": "object", "properties": {
        "n": {"type": "integer"}, "flag": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "string"}},
        "kind": {"enum": ["a", "b"]}}, "required": ["n"]});
    let mut out = vec![
        tool("echo", &word, json!([{"do": "reply", "text": "said {text}"}])),
        tool("odd", &odd, json!([{"do": "reply", "text": "{*}", "details": {"k": [1, null, {"z": 1, "a": 2}]}}])),
        tool("fails", &any, json!([{"do": "update", "text": "half"}, {"do": "throw", "message": "it broke: {text}"}])),
        tool("sorry", &any, json!([{"do": "reply", "text": "no", "isError": true, "details": {"why": "so"}}])),
        tool("last", &any, json!([{"do": "reply", "text": "over", "terminate": true}])),
        tool("blocks", &any, json!([{"do": "update", "text": "1"}, {"do": "update", "text": "2"},
            {"do": "reply", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}],
                "usage": {"input": 5, "output": 1}}])),
        tool("empty", &any, json!([{"do": "reply", "content": []}])),
    ];
    let mut alone = tool("alone", &word, json!([{"do": "update", "text": "now"}, {"do": "reply", "text": "alone {text}"}]));
    alone["executionMode"] = "sequential".into();
    out.push(alone);
    if !real {
        // Names by which a compaction knows files (S274).
        let path = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        for name in ["read", "write"] {
            out.push(tool(name, &path, json!([{"do": "reply", "text": "{path}: fine"}])));
        }
    }
    for n in 0..WAITING {
        let gate = format!("tool {n}");
        out.push(tool(&format!("wait{n}"), &any, json!([{"do": "waitGate", "gate": gate}, {"do": "reply", "text": "waited"}])));
    }
    out.push(tool("stuck", &any, json!([{"do": "waitAbort"}, {"do": "reply", "text": "ended"}])));
    out.into()
}

struct Draw {
    dice: Dice,
    script: Vec<Value>,
    steps: Vec<Value>,
    calls: usize,
    gates: usize,
    waits: usize,
    sessions: usize,
    /// With the real file tools.
    real: bool,
    /// Model, level or tools are not those of the beginning.
    changed: bool,
    /// Windows are small and answers count much.
    tight: bool,
}

impl Draw {
    fn chance(&mut self, percent: usize) -> bool {
        self.dice.roll(100) < percent
    }

    fn step(&mut self, step: Value) {
        self.steps.push(step);
    }

    fn reply(&mut self, mut reply: Value) {
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

    fn text(&mut self) -> String {
        match self.chance(if self.tight { 35 } else { 10 }) {
            true => self.dice.pick(TEXTS).repeat(1 + self.dice.roll(20)),
            false => (*self.dice.pick(TEXTS)).to_owned(),
        }
    }

    /// A prompt's text; some are used again and again (S234).
    fn words(&mut self) -> String {
        match self.dice.roll(4) {
            0 => (*self.dice.pick(&["again", "more"])).to_owned(),
            _ => format!("{} ({})", self.text(), self.steps.len()),
        }
    }

    fn spoken(&mut self) -> Vec<Value> {
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

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.calls += 1;
        json!({"type": "toolCall", "id": format!("call_{}", self.calls), "name": name, "arguments": arguments})
    }

    fn any_call(&mut self) -> Value {
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

    fn calls(&mut self) -> Value {
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
    fn on(&mut self) {
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
            13 => json!({"immediateError": *self.dice.pick(PASSING)}),
            14 | 15 => json!({"stop": "error", "error": *self.dice.pick(PASSING), "content": self.spoken()}),
            16 => {
                let mut reply = self.calls();
                reply["stop"] = "error".into();
                reply["error"] = (*self.dice.pick(PASSING)).into();
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
    fn end(&mut self) {
        let reply = match self.dice.roll(20) {
            0 => json!({"stop": "error", "error": *self.dice.pick(LASTING), "content": self.spoken()}),
            1 => json!({"immediateError": *self.dice.pick(LASTING)}),
            2 => json!({"throw": *self.dice.pick(LASTING)}),
            3 => json!({"throw": *self.dice.pick(PASSING)}),
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

    fn replies(&mut self) {
        while self.chance(45) {
            self.on();
        }
        self.end();
    }

    /// A reply to a request for a summary.
    fn summary(&mut self) -> Value {
        match self.dice.roll(12) {
            0 => {
                self.script.push(json!({"stop": "error", "error": *self.dice.pick(PASSING)}));
                // pi forgets `summarization_retry_finished` (S248) when the repeated request throws.
                match self.summary() {
                    reply if reply.get("throw").is_some() => json!({"content": [{"type": "text", "text": "at last"}]}),
                    reply => reply,
                }
            }
            1 => json!({"stop": "error", "error": *self.dice.pick(LASTING)}),
            2 => json!({"content": [{"type": "text", "text": "cut"}], "stop": "length"}),
            3 => self.calls(),
            4 => json!({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "first"}, {"type": "text", "text": "second"}]}),
            5 => json!({"throw": "no connection"}),
            _ => json!({"content": [{"type": "text", "text": format!("Summary {}: {}", self.script.len(), self.text())}]}),
        }
    }

    fn target(&mut self) -> Value {
        match self.dice.roll(6) {
            0 | 1 => json!({"role": "user", "index": self.dice.roll(4)}),
            2 => json!({"role": "assistant", "index": self.dice.roll(5)}),
            3 => json!({"role": "toolResult", "index": self.dice.roll(3)}),
            4 => json!({"leaf": true}),
            _ => json!({"entry": self.dice.roll(25)}),
        }
    }

    /// Something the host can do at any time.
    fn aside(&mut self) {
        let which = self.dice.roll(15);
        self.changed |= matches!(which, 0 | 1 | 7);
        let step = match which {
            0 => json!({"do": "setModel", "model": *self.dice.pick(&["one", "two"])}),
            1 => json!({"do": "setThinkingLevel", "level": *self.dice.pick(&["off", "minimal", "low", "medium", "high", "xhigh"])}),
            2 => json!({"do": "setName", "name": *self.dice.pick(&["a name", "", "  two\nlines  ", "other"])}),
            3 => json!({"do": "label", "target": self.target(), "label": *self.dice.pick(&["here", "there"])}),
            4 => json!({"do": "label", "target": self.target(), "label": null}),
            5 => json!({"do": "contextEdit", "target": self.target(), "replacement": null}),
            6 => {
                let content = match self.chance(50) {
                    true => json!(self.text()),
                    false => json!([{"type": "text", "text": self.text()}]),
                };
                json!({"do": "contextEdit", "target": self.target(), "replacement": {"content": content}})
            }
            7 => {
                let some: Vec<&str> = ["echo", "odd", "alone", "last", "read", "blocks"].into_iter().filter(|_| self.chance(60)).collect();
                json!({"do": "setTools", "tools": some})
            }
            8 => json!({"do": "bash", "command": "make", "output": self.text(), "exitCode": self.dice.roll(3)}),
            9 => json!({"do": "bash", "command": "sleep", "output": "", "exitCode": null, "cancelled": true, "excludeFromContext": true}),
            10 => json!({"do": "runBash", "command": *self.dice.pick(&["echo mine; exit 1", "printf 'a\\033[1mb\\r\\n'", "true"])}),
            11 => json!({"do": "setQueueModes", "steering": *self.dice.pick(&["all", "one-at-a-time"]), "followUp": *self.dice.pick(&["all", "one-at-a-time"])}),
            12 => json!({"do": "sendCustomMessage", "customType": "note", "content": self.text(), "display": self.chance(50)}),
            13 => json!({"do": "sendCustomMessage", "customType": "note", "content": [{"type": "text", "text": "next"}], "deliverAs": "nextTurn"}),
            _ => json!({"do": "sendCustomMessage", "customType": "late", "content": "kept", "triggerTurn": false}),
        };
        self.step(step);
    }

    /// Something that only makes sense while a run is active.
    fn meanwhile(&mut self) {
        let step = match self.dice.roll(12) {
            0..=2 => json!({"do": "steer", "text": self.words()}),
            3 | 4 => json!({"do": "followUp", "text": self.words()}),
            5 => json!({"do": "prompt", "text": self.words(), "behaviour": *self.dice.pick(&["steer", "followUp"])}),
            6 => json!({"do": "prompt", "text": "refused"}),
            7 => json!({"do": "navigate", "target": self.target()}),
            8 => json!({"do": "sendCustomMessage", "customType": "ask", "content": "now", "deliverAs": *self.dice.pick(&["steer", "followUp"]), "triggerTurn": self.chance(50)}),
            9 => json!({"do": "clearQueue"}),
            _ => return self.aside(),
        };
        self.step(step);
    }

    fn prompt(&mut self) {
        let mut step = json!({"do": "prompt", "text": self.words()});
        // A picture may be too much for a small window (D-long-prompt).
        if !self.tight && self.chance(8) {
            step["images"] = json!([{"type": "image", "data": DOT, "mimeType": "image/png"}]);
        }
        self.replies();
        self.step(step);
    }

    /// A run that stands somewhere while the host does things.
    fn busy(&mut self) {
        while self.chance(20) {
            self.on();
        }
        let text = self.words();
        self.step(json!({"do": "start", "text": text}));
        let number = self.script.len();
        if self.chance(40) && self.waits < WAITING {
            let mut content = self.spoken();
            let (mut gates, mut others) = (Vec::new(), Vec::new());
            for _ in 0..=self.dice.roll(3) {
                if self.waits < WAITING && self.chance(70) {
                    content.push(self.call(&format!("wait{}", self.waits), json!({})));
                    gates.push((self.calls, self.waits));
                    self.waits += 1;
                } else {
                    let call = self.any_call();
                    // A sequential call keeps the others from starting; a file may be read by another one.
                    if !["alone", "write", "edit"].iter().any(|name| call["name"] == *name) {
                        others.push(call["id"].clone());
                        content.push(call);
                    }
                }
            }
            if self.chance(20) {
                content.push(self.call("stuck", json!({})));
                gates.push((self.calls, usize::MAX));
            }
            self.reply(json!({"content": content}));
            for (call, _) in &gates {
                self.step(json!({"do": "waitTool", "call": format!("call_{call}")}));
            }
            if !gates.is_empty() {
                for call in others {
                    self.step(json!({"do": "waitEvent", "event": {"type": "tool_execution_end", "toolCallId": call}}));
                }
                self.amid();
            }
            // After an abort pi still compacts before the turn that closes the run (D-abort-room).
            if !gates.is_empty() && !self.tight && self.chance(30) {
                let aborting = json!({"do": "abort", "as": format!("abort {number}")});
                self.step(aborting);
                for (_, gate) in gates {
                    self.step(json!({"do": "openGate", "gate": format!("tool {gate}")}));
                }
                self.step(json!({"do": "join", "of": format!("abort {number}")}));
            } else {
                for (_, gate) in gates {
                    self.step(json!({"do": "openGate", "gate": format!("tool {gate}")}));
                }
            }
        } else {
            let mut reply = if self.chance(40) { self.calls() } else { json!({"content": self.spoken()}) };
            let gate = format!("gate {}", self.gates);
            self.gates += 1;
            let hangs = self.chance(30);
            match hangs {
                true => reply["hang"] = true.into(),
                false => reply["waitGate"] = gate.as_str().into(),
            }
            self.reply(reply);
            self.step(json!({"do": "waitModel", "reply": number}));
            self.amid();
            match self.dice.roll(10) {
                0 | 1 => self.step(json!({"do": "abort"})),
                2 => {
                    let summary = self.summary();
                    self.reply(summary);
                    self.step(json!({"do": "compact"}));
                }
                _ if hangs => self.step(json!({"do": "abort"})),
                _ => self.step(json!({"do": "openGate", "gate": gate})),
            }
        }
        for _ in 0..self.dice.roll(4) {
            self.replies();
        }
        self.step(json!({"do": "waitIdle"}));
    }

    fn amid(&mut self) {
        for _ in 0..=self.dice.roll(4) {
            self.meanwhile();
        }
    }

    fn compact(&mut self) {
        let mut step = json!({"do": "compact"});
        if self.chance(30) {
            step["instructions"] = self.text().into();
        }
        if self.chance(15) {
            let number = self.script.len();
            self.script.push(json!({"content": [{"type": "text", "text": "half"}], "hang": true}));
            step["as"] = format!("compact {number}").into();
            self.step(step);
            self.step(json!({"do": "waitModel", "reply": number}));
            // A message that starts a run would start one beside pi's compaction.
            for _ in 0..self.dice.roll(3) {
                self.aside();
            }
            let ending = *self.dice.pick(&["abort", "abortCompaction"]);
            self.step(json!({"do": ending}));
            self.step(json!({"do": "join", "of": format!("compact {number}")}));
            return;
        }
        let summary = self.summary();
        self.reply(summary);
        if self.chance(30) {
            let summary = self.summary();
            self.reply(summary);
        }
        self.step(step);
    }

    fn navigate(&mut self) {
        let mut step = json!({"do": "navigate", "target": self.target()});
        if self.chance(50) {
            step["summarize"] = true.into();
            let summary = self.summary();
            self.reply(summary);
            if self.chance(30) {
                step["instructions"] = "the tests".into();
            }
        }
        if self.chance(20) {
            step["label"] = "marked".into();
        }
        self.step(step);
    }

    fn act(&mut self) {
        match self.dice.roll(20) {
            0..=6 => self.prompt(),
            7..=10 => self.busy(),
            11 | 12 => self.compact(),
            13 | 14 => self.navigate(),
            15 => {
                // Ours go on with what the session uses (D-fork-live).
                let which = if self.changed { 4 + self.dice.roll(2) } else { self.dice.roll(6) };
                let step = match which {
                    0 | 1 => json!({"do": "fork", "target": {"role": "user", "index": self.dice.roll(4)}}),
                    2 => json!({"do": "clone"}),
                    3 => json!({"do": "newSession"}),
                    4 => json!({"do": "switchSession", "session": 1 + self.dice.roll(self.sessions)}),
                    _ => json!({"do": "reopen"}),
                };
                self.step(step);
            }
            16 => {
                let text = self.text();
                self.replies();
                self.step(json!({"do": "sendCustomMessage", "customType": "go", "content": text, "triggerTurn": true}));
            }
            17 => {
                let text = self.words();
                let queue = *self.dice.pick(&["steer", "followUp"]);
                self.step(json!({"do": queue, "text": text}));
            }
            _ => self.aside(),
        }
    }
}
