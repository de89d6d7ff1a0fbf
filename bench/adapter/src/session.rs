//! Session storage cases.

use branchline::message::Message;
use branchline::tree::{
    Context, CreateOptions, Cursor, ListOptions, OpenOptions, Structure, Tree, format_iso, list as list_sessions,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

use crate::{Memory, Result, timed};

const CWD: &str = "/home/bench/project";

pub(crate) fn run(case: &str, params: &Value) -> Result<Value> {
    let p = Params(params);
    match case {
        "session.open" => open(&p),
        "session.op" => op(&p),
        "session.append" => append(&p),
        "session.navigate" => navigate(&p),
        "session.branched" => branched(&p),
        "session.fork" => fork(&p),
        "session.list" => list(&p),
        "session.continue" => recent(&p),
        _ => Err(format!("no case {case}").into()),
    }
}

struct Params<'a>(&'a Value);

impl Params<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0[key].as_str()
    }

    fn text(&self, key: &str) -> Result<&str> {
        self.get(key).ok_or_else(|| format!("parameter {key}").into())
    }

    fn number(&self, key: &str, default: usize) -> usize {
        self.0[key].as_u64().map_or(default, |n| n as usize)
    }
}

/// Start of the SHA-256 of a text, as the pi adapter gives it.
fn sha(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn ids_check(name: &str, ids: &[String]) -> Value {
    json!({name: ids.len(), "ids": sha(&ids.join(","))})
}

fn context_check(context: &Context) -> Value {
    let roles: Vec<String> = context.messages().map(|message| message.role_name()).collect();
    json!({
        "messages": roles.len(),
        "model": context.model().map(|(_, model)| model),
        "thinking": context.thinking_level(),
        "roles": sha(&roles.join(",")),
    })
}

/// Shape of a tree: every node in preorder as `depth id label`.
fn tree_check(tree: &Structure) -> Value {
    let row = |(node, depth)| {
        format!("{depth} {} {}", tree.id(node), tree.label(node).map_or(String::new(), |label| label.text))
    };
    let rows: Vec<String> = tree.walk().map(row).collect();
    json!({"roots": tree.roots().len(), "nodes": rows.len(), "shape": sha(&rows.join("\n"))})
}

fn temp_dir() -> Result<tempfile::TempDir> {
    // The name is as long as the pi adapter's: it is part of the header of derived sessions, whose size is compared.
    let base = std::env::var_os("PB_TMP").map_or_else(std::env::temp_dir, PathBuf::from);
    Ok(tempfile::Builder::new().prefix("pb-").rand_bytes(6).tempdir_in(base)?)
}

fn into(dir: &Path) -> CreateOptions {
    CreateOptions { session_dir: Some(dir.to_path_buf()), ..Default::default() }
}

/// Open one file. params: {file}
fn open(p: &Params<'_>) -> Result<Value> {
    let file = p.text("file")?;
    let memory = Memory::start();
    let (ms, tree) = timed(|| Ok(Tree::open(file, OpenOptions::default())?))?;
    let mut report = memory.report(&[ms], Value::Null);
    report["check"] = json!({"entries": tree.entry_count(), "leaf": tree.last_id()});
    Ok(report)
}

/// One read operation, repeated. params: {file, op, iters, leaf?}
///
/// Trees and branches are lazy: `tree` and `branch` time their making plus one pass over the nodes of the tree;
/// `tree-ids` and `branch-ids` add every id and label as an owned string. A context is read from disk for the first time
/// each time: the file is opened again before. `context` ends with every message's JSON at hand, `context-values` with
/// every message parsed.
fn op(p: &Params<'_>) -> Result<Value> {
    let (file, op) = (p.text("file")?, p.text("op")?);
    let iters = p.number("iters", 5).max(1);
    let mut tree = Tree::open(file, OpenOptions::default())?;
    let leaf = p.get("leaf").map(str::to_owned).or_else(|| tree.last_id());
    let leaf = leaf.as_deref();
    let memory = Memory::start();
    let mut ms = Vec::new();
    let mut check = Value::Null;
    for i in 0..iters {
        if op.starts_with("context") && i > 0 {
            drop(tree); // one writer at a time
            tree = Tree::open(file, OpenOptions::default())?;
        }
        let (took, facts) = read(&tree, op, leaf)?;
        ms.push(took);
        if i + 1 == iters {
            check = facts()?;
        }
    }
    Ok(memory.report(&ms, check))
}

/// Facts of an answer, worked out only when asked for.
type Facts<'a> = Box<dyn FnOnce() -> Result<Value> + 'a>;

fn read<'a>(tree: &'a Tree, op: &str, leaf: Option<&str>) -> Result<(f64, Facts<'a>)> {
    Ok(match op {
        "branch" => {
            let (ms, branch) = timed(|| Ok(tree.branch(leaf)))?;
            (ms, Box::new(move || Ok(ids_check("path", &branch.ids().collect::<Vec<_>>()))))
        }
        "branch-ids" => {
            let (ms, ids) = timed(|| Ok(tree.branch(leaf).ids().collect::<Vec<_>>()))?;
            (ms, Box::new(move || Ok(ids_check("path", &ids))))
        }
        "tree" => {
            let (ms, structure) = timed(|| {
                let structure = tree.structure();
                std::hint::black_box(structure.walk().map(|(_, depth)| depth).max());
                Ok(structure)
            })?;
            (ms, Box::new(move || Ok(tree_check(&structure))))
        }
        "tree-ids" => {
            let (ms, structure) = timed(|| {
                let structure = tree.structure();
                for (node, _) in structure.walk() {
                    std::hint::black_box((structure.id(node), structure.label(node)));
                }
                Ok(structure)
            })?;
            (ms, Box::new(move || Ok(tree_check(&structure))))
        }
        "context" => {
            let (ms, context) = timed(|| context_texts(tree, leaf))?;
            (ms, Box::new(move || Ok(context_check(&context))))
        }
        "context-values" => {
            let (ms, context) = timed(|| {
                let context = tree.context(leaf)?;
                context.messages().for_each(|message| drop(std::hint::black_box(message.message())));
                Ok(context)
            })?;
            (ms, Box::new(move || Ok(context_check(&context))))
        }
        "entries" => {
            // pi hands out the list it holds; ours reads every line from the file.
            let (ms, ids) =
                timed(|| tree.entries().map(|entry| Ok(entry?.id().to_owned())).collect::<Result<Vec<_>>>())?;
            (ms, Box::new(move || Ok(ids_check("entries", &ids))))
        }
        "children" => {
            let parent = leaf.and_then(|leaf| tree.parent(leaf));
            let (ms, children) = timed(|| Ok(tree.children(parent.as_deref())))?;
            (ms, Box::new(move || Ok(ids_check("children", &children))))
        }
        _ => return Err(format!("no operation {op}").into()),
    })
}

/// A context with the JSON text of every message found.
fn context_texts(tree: &Tree, leaf: Option<&str>) -> Result<Context> {
    let context = tree.context(leaf)?;
    std::hint::black_box(context.messages().map(|message| message.raw().len()).sum::<usize>());
    Ok(context)
}

/// The messages that the pi adapter appends.
fn message(i: usize) -> Option<Message> {
    let timestamp = 1_767_600_000_000_u64 + i as u64;
    let value = if i.is_multiple_of(2) {
        let text = format!("message {i} {}", "lorem ipsum dolor sit amet ".repeat(30));
        json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": timestamp})
    } else {
        let text = format!("answer {i} \"quoted\"\n\t{}", "consectetur adipiscing elit ".repeat(24));
        let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
        let usage = json!({"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3, "cost": cost});
        json!({"role": "assistant", "content": [{"type": "text", "text": text}], "api": "openai-completions",
            "provider": "p", "model": "m", "usage": usage, "stopReason": "stop", "timestamp": timestamp})
    };
    Message::from_value(value)
}

/// Append count messages to a copy of a file, or to a new session. Each is made just before it is appended, as a session
/// makes it, outside the measured time. params: {file?, count}
fn append(p: &Params<'_>) -> Result<Value> {
    let dir = temp_dir()?;
    let tree = match p.get("file") {
        Some(file) => {
            let copy = dir.path().join("copy.jsonl");
            std::fs::copy(file, &copy)?;
            Tree::open(copy, OpenOptions::default())?
        }
        None => Tree::create(CWD, into(dir.path()))?,
    };
    let count = p.number("count", 10000);
    let before = tree.entry_count();
    let path = tree.path().ok_or("a session without a file")?;
    let mut cursor = Cursor::new(tree);
    let mut each = Vec::with_capacity(count);
    let memory = Memory::start();
    for message in (0..count).filter_map(message) {
        let (ms, _) = timed(|| Ok(cursor.append_message(&message)?))?;
        each.push(ms * 1e3);
    }
    let mut report = memory.report(&[each.iter().sum::<f64>() / 1e3], Value::Null);
    drop(cursor); // and with it the writer's lock
    let added = Tree::open(path, OpenOptions::default())?.entry_count() - before;
    each.sort_by(f64::total_cmp);
    let quantile = |q: f64| each.get((q * each.len() as f64) as usize);
    report["latency_us"] = json!({"p50": quantile(0.5), "p99": quantile(0.99), "max": each.last()});
    report["check"] = json!({"added": added});
    Ok(report)
}

/// Alternate between two leaves and rebuild the context each time. params: {file, a, b, iters}
fn navigate(p: &Params<'_>) -> Result<Value> {
    let mut cursor = Cursor::new(Tree::open(p.text("file")?, OpenOptions::default())?);
    let leaves = [("b", p.text("b")?), ("a", p.text("a")?)];
    let mut ms = Vec::new();
    let mut check = json!({});
    let memory = Memory::start();
    for i in 0..p.number("iters", 1000) {
        let (name, leaf) = leaves[i % 2];
        let (took, context) = timed(|| {
            cursor.move_to(leaf)?;
            context_texts(cursor.tree(), cursor.leaf())
        })?;
        ms.push(took);
        if i < 2 {
            check[name] = context_check(&context);
        }
    }
    Ok(memory.report(&ms, check))
}

/// Extract the path of the leaf into a new session file. params: {file}
fn branched(p: &Params<'_>) -> Result<Value> {
    let dir = temp_dir()?;
    let options = OpenOptions { session_dir: Some(dir.path().to_path_buf()), ..Default::default() };
    let tree = Tree::open(p.text("file")?, options)?;
    let leaf = tree.last_id().ok_or("an empty session")?;
    let memory = Memory::start();
    let (ms, extracted) = timed(|| Ok(tree.extract_branch(&leaf)?))?;
    let mut report = memory.report(&[ms], Value::Null);
    let bytes = std::fs::metadata(extracted.path().ok_or("a session without a file")?)?.len();
    report["check"] = json!({"bytes": bytes, "entries": extracted.entry_count()});
    Ok(report)
}

/// Fork a file into another project: a full copy. params: {file}
fn fork(p: &Params<'_>) -> Result<Value> {
    let (file, dir) = (p.text("file")?, temp_dir()?);
    let memory = Memory::start();
    let (ms, tree) = timed(|| Ok(Tree::fork_from(file, "/home/bench/other", into(dir.path()))?))?;
    Ok(memory.report(&[ms], json!({"entries": tree.entry_count()})))
}

/// List a directory of sessions. pi always collects all text of each; ours does when asked to. params: {dir, cwd, iters,
/// text?: boolean}
fn list(p: &Params<'_>) -> Result<Value> {
    let (cwd, dir, text) = (p.text("cwd")?, p.text("dir")?, p.0["text"] == true);
    let options = ListOptions { location: into(Path::new(dir)), text, ..Default::default() };
    let memory = Memory::start();
    let mut ms = Vec::new();
    let mut sessions = Vec::new();
    for _ in 0..p.number("iters", 3) {
        let took;
        (took, sessions) = timed(|| Ok(list_sessions(cwd, &options)?))?;
        ms.push(took);
    }
    let mut report = memory.report(&ms, Value::Null);
    let row = |s: &branchline::tree::SessionInfo| {
        let id = s.id.as_deref().unwrap_or_default();
        let name = s.name.as_deref().unwrap_or_default();
        format!("{id}\t{}\t{}\t{name}\t{}", s.message_count, format_iso(s.modified), s.first_message)
    };
    report["check"] = json!({
        "sessions": sessions.len(),
        "messages": sessions.iter().map(|s| s.message_count).sum::<usize>(),
        "facts": sha(&sessions.iter().map(row).collect::<Vec<_>>().join("\n")),
    });
    if text {
        let texts = sessions.iter().filter_map(|s| s.all_messages_text.as_deref());
        report["check"]["text"] = json!(texts.map(|text| text.encode_utf16().count()).sum::<usize>());
    }
    Ok(report)
}

/// Newest session of a directory. params: {dir, cwd, iters}
fn recent(p: &Params<'_>) -> Result<Value> {
    let (cwd, dir) = (p.text("cwd")?, p.text("dir")?);
    let memory = Memory::start();
    let mut ms = Vec::new();
    let mut entries = 0;
    for _ in 0..p.number("iters", 5) {
        let (took, tree) = timed(|| Ok(Tree::continue_recent(cwd, into(Path::new(dir)))?))?;
        ms.push(took);
        entries = tree.entry_count();
    }
    Ok(memory.report(&ms, json!({"entries": entries})))
}
