//! Scenarios for both programs, drawn from a seed.
//!
//! A scenario is made of *acts*: something the host does, with the replies it will most likely use up. A reply that goes to
//! another request than it was drawn for (a compaction nobody planned) is no fault: both programs get the same one.

use branchline_interop::generated::Dice;
use serde_json::{Value, json};

/// Tools that wait, each at a gate of its own.
pub(super) const WAITING: usize = 6;

/// A scenario and the files of its folder.
pub(super) struct Scenario {
    /// What both programs play.
    pub(super) json: Value,
    /// Names and texts.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// The scenario of a seed.
pub(super) fn scenario(seed: u64) -> Scenario {
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
        patient: false,
        tight: false,
    };
    // Numbers of tokens are exact only where both declare the same tools.
    draw.real = draw.chance(40);
    draw.tight = !draw.real && draw.chance(50);
    draw.patient = draw.chance(15);
    let acts = 3 + draw.dice.roll(7);
    for _ in 0..acts {
        draw.act();
    }
    let (window, keep) = match draw.tight {
        true => (*draw.dice.pick(&[8_000, 20_000]), *draw.dice.pick(&[1, 20, 60, 200, 1_000])),
        false => (200_000, *draw.dice.pick(&[1, 20_000])),
    };
    let mut settings = json!({
        "retry": {"enabled": draw.chance(90), "maxRetries": draw.dice.roll(4), "baseDelayMs": if draw.patient { 30_000 } else { 1 }},
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
        "options": {"model": *draw.dice.pick(&["one", "one", "two"]), "thinkingLevel": level, "replacement": replacement,
            "inMemory": draw.chance(6)},
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
    let tool = |name: &str, schema: &Value, behaviour: Value| json!({"name": name, "description": format!("The tool {name}."), "schema": schema, "behaviour": behaviour});
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
        tool(
            "blocks",
            &any,
            json!([{"do": "update", "text": "1"}, {"do": "update", "text": "2"},
            {"do": "reply", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}],
                "usage": {"input": 5, "output": 1}}]),
        ),
        tool("empty", &any, json!([{"do": "reply", "content": []}])),
    ];
    let mut alone =
        tool("alone", &word, json!([{"do": "update", "text": "now"}, {"do": "reply", "text": "alone {text}"}]));
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
        out.push(tool(
            &format!("wait{n}"),
            &any,
            json!([{"do": "waitGate", "gate": gate}, {"do": "reply", "text": "waited"}]),
        ));
    }
    out.push(tool("stuck", &any, json!([{"do": "waitAbort"}, {"do": "reply", "text": "ended"}])));
    out.into()
}

/// What is drawn so far.
pub(super) struct Draw {
    pub(super) dice: Dice,
    pub(super) script: Vec<Value>,
    pub(super) steps: Vec<Value>,
    pub(super) calls: usize,
    pub(super) gates: usize,
    pub(super) waits: usize,
    pub(super) sessions: usize,
    /// With the real file tools.
    pub(super) real: bool,
    /// Model, level or tools are not those of the beginning.
    pub(super) changed: bool,
    /// Waits for another try are long.
    pub(super) patient: bool,
    /// Windows are small and answers count much.
    pub(super) tight: bool,
}

impl Draw {
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.dice.roll(100) < percent
    }

    pub(super) fn step(&mut self, step: Value) {
        self.steps.push(step);
    }
}
