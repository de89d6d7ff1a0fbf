//! What the host does.

use serde_json::{Value, json};

use super::generate::{Draw, WAITING};

/// A picture of one point.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";
impl Draw {
    pub(super) fn target(&mut self) -> Value {
        match self.dice.roll(6) {
            0 | 1 => json!({"role": "user", "index": self.dice.roll(4)}),
            2 => json!({"role": "assistant", "index": self.dice.roll(5)}),
            3 => json!({"role": "toolResult", "index": self.dice.roll(3)}),
            4 => json!({"leaf": true}),
            _ => json!({"entry": self.dice.roll(25)}),
        }
    }

    /// Something the host can do at any time.
    pub(super) fn aside(&mut self) {
        let which = self.dice.roll(15);
        self.changed |= matches!(which, 0 | 1 | 7);
        let step = match which {
            0 => json!({"do": "setModel", "model": *self.dice.pick(&["one", "two"])}),
            1 => {
                json!({"do": "setThinkingLevel", "level": *self.dice.pick(&["off", "minimal", "low", "medium", "high", "xhigh"])})
            }
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
                let some: Vec<&str> = ["echo", "odd", "alone", "last", "read", "blocks"]
                    .into_iter()
                    .filter(|_| self.chance(60))
                    .collect();
                json!({"do": "setTools", "tools": some})
            }
            8 => json!({"do": "bash", "command": "make", "output": self.text(), "exitCode": self.dice.roll(3)}),
            9 => {
                json!({"do": "bash", "command": "sleep", "output": "", "exitCode": null, "cancelled": true, "excludeFromContext": true})
            }
            10 => {
                json!({"do": "runBash", "command": *self.dice.pick(&["echo mine; exit 1", "printf 'a\\033[1mb\\r\\n'", "true"])})
            }
            11 => {
                json!({"do": "setQueueModes", "steering": *self.dice.pick(&["all", "one-at-a-time"]), "followUp": *self.dice.pick(&["all", "one-at-a-time"])})
            }
            12 => {
                json!({"do": "sendCustomMessage", "customType": "note", "content": self.text(), "display": self.chance(50)})
            }
            13 => {
                json!({"do": "sendCustomMessage", "customType": "note", "content": [{"type": "text", "text": "next"}], "deliverAs": "nextTurn"})
            }
            _ => json!({"do": "sendCustomMessage", "customType": "late", "content": "kept", "triggerTurn": false}),
        };
        self.step(step);
    }

    /// Something that only makes sense while a run is active.
    pub(super) fn meanwhile(&mut self) {
        let step = match self.dice.roll(12) {
            0..=2 => json!({"do": "steer", "text": self.words()}),
            3 | 4 => json!({"do": "followUp", "text": self.words()}),
            5 => json!({"do": "prompt", "text": self.words(), "behaviour": *self.dice.pick(&["steer", "followUp"])}),
            6 => json!({"do": "prompt", "text": "refused"}),
            7 => json!({"do": "navigate", "target": self.target()}),
            8 => {
                json!({"do": "sendCustomMessage", "customType": "ask", "content": "now", "deliverAs": *self.dice.pick(&["steer", "followUp"]), "triggerTurn": self.chance(50)})
            }
            9 => json!({"do": "clearQueue"}),
            _ => return self.aside(),
        };
        self.step(step);
    }

    pub(super) fn prompt(&mut self) {
        let mut step = json!({"do": "prompt", "text": self.words()});
        // A picture may be too much for a small window (D-long-prompt).
        if !self.tight && self.chance(8) {
            step["images"] = json!([{"type": "image", "data": DOT, "mimeType": "image/png"}]);
        }
        self.replies();
        self.step(step);
    }

    /// A run that stands somewhere while the host does things.
    pub(super) fn busy(&mut self) {
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
            if !self.tight && self.chance(20) {
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

    pub(super) fn amid(&mut self) {
        for _ in 0..=self.dice.roll(4) {
            self.meanwhile();
        }
    }

    pub(super) fn compact(&mut self) {
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

    pub(super) fn navigate(&mut self) {
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

    /// A summary of a branch that somebody calls off.
    pub(super) fn navigate_and_stop(&mut self) {
        let number = self.script.len();
        self.script.push(json!({"content": [{"type": "text", "text": "half"}], "hang": true}));
        let name = format!("navigate {number}");
        let step = json!({"do": "navigate", "target": self.target(), "summarize": true, "as": name});
        self.step(step);
        self.step(json!({"do": "waitModel", "reply": number}));
        for _ in 0..self.dice.roll(2) {
            self.aside();
        }
        let ending = *self.dice.pick(&["abort", "abortBranchSummary"]);
        self.step(json!({"do": ending}));
        self.step(json!({"do": "join", "of": name}));
    }

    /// A wait for another try, during which things happen.
    pub(super) fn retry(&mut self) {
        let text = self.words();
        let error = format!("overloaded, number {}", self.script.len());
        let failed = match self.chance(50) {
            true => json!({"immediateError": error}),
            false => json!({"stop": "error", "error": error, "content": self.spoken()}),
        };
        self.script.push(failed);
        self.step(json!({"do": "start", "text": text}));
        self.step(json!({"do": "waitEvent", "event": {"type": "auto_retry_start", "errorMessage": error}}));
        for _ in 0..self.dice.roll(4) {
            self.meanwhile();
        }
        let ending = *self.dice.pick(&["abort", "abortRetry", "compact"]);
        if ending == "compact" {
            let summary = self.summary();
            self.reply(summary);
        }
        self.step(json!({"do": ending}));
        for _ in 0..self.dice.roll(3) {
            self.replies();
        }
        self.step(json!({"do": "waitIdle"}));
    }

    pub(super) fn act(&mut self) {
        match self.dice.roll(20) {
            0 | 1 if self.patient => self.retry(),
            0..=6 => self.prompt(),
            7..=10 => self.busy(),
            11 | 12 => self.compact(),
            13 | 14 if self.chance(15) => self.navigate_and_stop(),
            13 | 14 => self.navigate(),
            15 if self.patient => self.retry(),
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
