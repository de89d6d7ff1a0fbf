//! Files that no careful program writes: odd links, odd contents, missing fields. pi and we must read them alike. Left out
//! are the forms in which we differ on purpose (docs/differences.md): repeated ids, cycles, lines that are no entries.

use branchline::tree::{OpenOptions, Tree};
use branchline_interop::{Peer, State};
use serde_json::{Map, Value, json};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn pick(&mut self, values: &[Value]) -> Value {
        values[self.below(values.len())].clone()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const ABSENT: &str = "absent";

fn put(entry: &mut Map<String, Value>, key: &str, value: Value) {
    if value != json!(ABSENT) {
        entry.insert(key.to_owned(), value);
    }
}

fn message(random: &mut Random) -> Value {
    let blocks = json!([{"type": "text", "text": "a"}, {"type": "odd"}, {"type": "text", "text": ""}]);
    let role = ["system", "user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage", "strange"]
        [random.below(8)];
    let mut message = Map::new();
    put(&mut message, "role", json!(role));
    let contents = [json!("plain"), json!(""), json!([]), blocks, json!(null), json!(ABSENT)];
    put(&mut message, "content", random.pick(&contents));
    match role {
        "assistant" => {
            put(&mut message, "provider", random.pick(&[json!("p"), json!("q")]));
            put(&mut message, "model", random.pick(&[json!("m1"), json!("m2")]));
            put(&mut message, "stopReason", random.pick(&[json!("stop"), json!("error"), json!("aborted")]));
        }
        "system" => {
            let sections = [json!({"a": "1", "b": null}), json!({"b": "2", "a": null, "c": ""}), json!(ABSENT)];
            put(&mut message, "sections", random.pick(&sections));
            let tools = [json!([{"name": "t", "n": 1}]), json!([{"name": "u"}, {"name": "t", "n": 2}]), json!(ABSENT)];
            put(&mut message, "toolsAdded", random.pick(&tools));
            put(&mut message, "toolsRemoved", random.pick(&[json!([{"name": "t"}, {"name": "none"}]), json!(ABSENT)]));
        }
        "bashExecution" => {
            put(&mut message, "command", json!("ls"));
            put(&mut message, "output", random.pick(&[json!(""), json!("x\n```\n")]));
            put(&mut message, "exitCode", random.pick(&[json!(0), json!(3), json!(null), json!(ABSENT)]));
            put(&mut message, "cancelled", random.pick(&[json!(true), json!(false), json!(ABSENT)]));
        }
        "toolResult" => put(&mut message, "toolCallId", json!("c")),
        _ => {}
    }
    put(&mut message, "timestamp", random.pick(&[json!(5), json!(5.5), json!(ABSENT), json!("soon")]));
    Value::Object(message)
}

/// One odd file; also the number of its entries.
fn odd_file(random: &mut Random) -> String {
    let header = [
        json!({"type": "session", "version": 3, "id": "odd", "timestamp": "2025-01-15T09:00:00.000Z", "cwd": "/work/demo"}),
        json!({"id": "odd", "extra": 1, "type": "session", "version": 9}),
    ];
    let mut lines = vec![random.pick(&header).to_string()];
    let count = 1 + random.below(30);
    let name = |n: usize| format!("e{n}");
    for n in 0..count {
        let any = json!(name(random.below(count)));
        let earlier = if n == 0 { json!(null) } else { json!(name(random.below(n))) };
        let last = if n == 0 { json!(null) } else { json!(name(n - 1)) };
        let mut entry = Map::new();
        // A parent that comes later must not close a cycle: only leaves of the backward links are named that way.
        let parents = [
            last.clone(),
            last.clone(),
            last.clone(),
            last,
            earlier,
            json!(null),
            json!("ghost"),
            json!(""),
            json!(ABSENT),
        ];
        let parent = random.pick(&parents);
        let kinds = [
            "message",
            "message",
            "message",
            "message",
            "message",
            "custom_message",
            "compaction",
            "context_edit",
            "label",
            "session_info",
            "branch_summary",
            "model_change",
            "thinking_level_change",
            "usage",
            "custom",
            "future",
        ];
        let kind = kinds[random.below(kinds.len())];
        put(&mut entry, "type", json!(kind));
        put(&mut entry, "id", json!(name(n)));
        put(&mut entry, "parentId", parent);
        let minute = random.below(5);
        let times =
            [json!(format!("2025-01-15T09:0{minute}:00.000Z")), json!("2025-01-15T09:02:00Z"), json!("2025-01-15")];
        put(&mut entry, "timestamp", random.pick(&times));
        match kind {
            "message" => put(&mut entry, "message", message(random)),
            "custom_message" => {
                put(&mut entry, "customType", json!("note"));
                put(&mut entry, "content", random.pick(&[json!("text"), json!([]), json!(null), json!(ABSENT)]));
                put(&mut entry, "display", random.pick(&[json!(true), json!(false), json!(ABSENT)]));
                put(&mut entry, "details", random.pick(&[json!({"2": 1, "1": 2}), json!(null), json!(ABSENT)]));
            }
            "compaction" => {
                put(&mut entry, "summary", random.pick(&[json!("s"), json!("")]));
                let first = [any, json!("ghost"), json!(name(n)), json!(ABSENT), json!(7)];
                put(&mut entry, "firstKeptEntryId", random.pick(&first));
                put(&mut entry, "tokensBefore", random.pick(&[json!(10), json!(1.5), json!(ABSENT)]));
                let system = json!({"role": "system", "content": "snap", "timestamp": 3});
                put(&mut entry, "systemMessage", random.pick(&[system, json!(ABSENT)]));
            }
            "context_edit" => {
                put(&mut entry, "targetId", any);
                let with = |content: Value| json!({"content": content});
                let edits = [json!(null), with(json!("edited")), with(json!([{"type": "text", "text": "blocks"}]))];
                put(&mut entry, "replacement", random.pick(&edits));
            }
            "label" => {
                put(&mut entry, "targetId", random.pick(&[any, json!("ghost")]));
                put(
                    &mut entry,
                    "label",
                    random.pick(&[json!("l1"), json!("l2"), json!(""), json!(ABSENT), json!(" ")]),
                );
            }
            "session_info" => {
                put(&mut entry, "name", random.pick(&[json!("n"), json!(" n\n"), json!(""), json!(ABSENT)]))
            }
            "branch_summary" => {
                put(&mut entry, "fromId", random.pick(&[any, json!("root")]));
                put(&mut entry, "summary", random.pick(&[json!("left"), json!("")]));
            }
            "model_change" => {
                put(&mut entry, "provider", json!("p"));
                put(&mut entry, "modelId", json!("m"));
            }
            "thinking_level_change" => put(&mut entry, "thinkingLevel", random.pick(&[json!("high"), json!("odd")])),
            _ => put(&mut entry, "data", json!({"deep": [[[]]], "1": 2})),
        }
        if random.chance(10) {
            put(&mut entry, "unknown", json!([1.0, "\u{2028}"]));
        }
        lines.push(Value::Object(entry).to_string());
        if random.chance(5) {
            lines.push(["", "  \t", "{bad", "\r"][random.below(4)].to_owned());
        }
    }
    lines.join(if random.chance(20) { "\r\n" } else { "\n" }) + ["\n", "\n", "", "\r\n"][random.below(4)]
}

#[test]
fn odd_files_are_read_alike() {
    let Some(mut peer) = Peer::start() else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("odd.jsonl");
    for seed in 0..400 {
        let text = odd_file(&mut Random(seed));
        std::fs::write(&path, &text).expect("a file");
        let tree =
            Tree::open(&path, OpenOptions { read_only: true, ..Default::default() }).expect("ours opens the file");
        let ours = State::of(&tree, tree.last_id().as_deref());
        peer.open(&path, dir.path());
        ours.assert_is(&peer.state(), &format!("seed {seed}\n{text}"));
    }
}
