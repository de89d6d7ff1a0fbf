//! What a session promises about its file: when it is on the disk, what a copy repeats, what a reopened one takes over.

#[path = "storage_support/mod.rs"]
mod storage_support;
#[path = "session_support/mod.rs"]
mod support;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use branchline::message::Message;
use branchline::tree::*;
use branchline::{EventKind, ForkPosition, PromptOptions, Session, SessionOptions, SubscribeOptions, block_on};
use serde_json::{Value, json};
use storage_support::{Call, Watch, Watched};
use support::*;

/// A disk that counts what was appended since the last sync.
#[derive(Debug, Clone, Default)]
struct Counting {
    unsynced: Arc<AtomicUsize>,
}

impl Counting {
    fn unsynced(&self) -> usize {
        self.unsynced.load(Ordering::SeqCst)
    }
}

impl Watch for Counting {
    fn before(&self, call: Call) -> io::Result<()> {
        match call {
            Call::Append => {
                self.unsynced.fetch_add(1, Ordering::SeqCst);
            }
            Call::Sync => self.unsynced.store(0, Ordering::SeqCst),
            _ => {}
        }
        Ok(())
    }
}

fn say(session: &Session, text: &str) {
    block_on(block_on(session.prompt(text, PromptOptions::default())).unwrap().result()).unwrap();
}

fn answers(count: usize) -> Value {
    (1..=count).map(|n| json!({"content": [{"type": "text", "text": format!("a{n}")}]})).collect()
}

#[test]
fn durability_turn_is_on_the_disk_before_it_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let disk = Counting::default();
    // The second request fails outright; its message is stored on the way out.
    let script =
        json!([{"content": [{"type": "text", "text": "a"}]}, {"throw": "no service"}, {"content": [], "hang": true}]);
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| {
        options.durability(Durability::Turn).storage(Arc::new(Watched(disk.clone())))
    });
    let events = session.subscribe(SubscribeOptions::default().capacity(1));
    for text in ["u1", "u2"] {
        let run = block_on(session.prompt(text, PromptOptions::default())).unwrap();
        run.events().discard();
        let mut turns = 0;
        // A queue of one: the session is never more than an event ahead.
        while let Some(event) = block_on(events.next()) {
            match event.kind() {
                EventKind::TurnEnd { .. } => {
                    assert_eq!(disk.unsynced(), 0, "{text}");
                    turns += 1;
                }
                EventKind::AgentSettled { .. } => break,
                _ => {}
            }
        }
        assert_eq!(turns, 1);
    }
    drop(events);

    // What comes while a run is on its way is synced with it, held messages too.
    let run = block_on(session.prompt("u3", PromptOptions::default())).unwrap();
    block_on(control.reached(2));
    block_on(session.append_custom_message("note", json!("held"), true, None)).unwrap();
    block_on(session.abort()).unwrap();
    block_on(run.result()).unwrap();
    assert_eq!(disk.unsynced(), 0, "settled");

    block_on(session.set_name("outside of a run")).unwrap();
    assert_eq!(disk.unsynced(), 1);
    block_on(session.close()).unwrap();
    assert_eq!(disk.unsynced(), 0, "closed");
}

#[test]
fn copies_do_not_repeat_the_name_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, _) = scripted_with(&engine, dir.path(), answers(1), |options| options.name("Parser"));
    say(&session, "u1");
    let lines = session.tree().entries_len();
    let copy = block_on(session.clone_session()).unwrap();
    assert_eq!((copy.tree().entries_len(), copy.name().as_deref()), (lines, Some("Parser")));
    let fork = block_on(session.fork(&session.leaf().unwrap(), ForkPosition::At)).unwrap().session;
    assert_eq!(fork.tree().entries_len(), lines);
}

/// The only system message lies before the compaction, whose snapshot another program did not write.
fn compacted(dir: &Path) -> PathBuf {
    let tree = Tree::create(dir, CreateOptions { session_dir: Some(dir.join("old")), ..Default::default() }).unwrap();
    let mut cursor = Cursor::new(tree.clone());
    cursor.append_message(&Message::user("u1", vec![], 1)).unwrap();
    let file = tree.path().unwrap();
    let declared = json!([{"name": "read", "description": "", "parameters": {}}]);
    let system = json!({"role": "system", "content": "", "timestamp": 2, "toolsAdded": declared});
    cursor.append_message(&Message::from_value(system).unwrap()).unwrap();
    let parent = cursor.leaf().unwrap().to_owned();
    drop((cursor, tree));
    let entry = json!({"type": "compaction", "id": "cut", "parentId": parent, "timestamp": "2026-11-10T09:30:00.000Z",
        "summary": "S", "firstKeptEntryId": "cut", "tokensBefore": 1});
    let text = std::fs::read_to_string(&file).unwrap() + &entry.to_string() + "\n";
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn tools_come_from_the_whole_path() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let file = compacted(dir.path());
    let session = block_on(engine.open_session(&file, SessionOptions::new(""))).unwrap();
    assert_eq!(session.state().tools, ["read"]);
    block_on(session.set_tools(vec!["bash".into()])).unwrap();
    let label = block_on(session.set_label("cut", Some("here"))).unwrap();
    assert_ne!(label, "cut");
    block_on(session.navigate("cut", Default::default())).unwrap();
    assert_eq!(session.state().tools, ["read"], "also after navigating");
}

#[test]
fn a_missing_working_directory_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let gone = dir.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let (session, _) = scripted_with(&engine, &gone, answers(1), |options| options.session_dir(dir.path().join("s")));
    say(&session, "u1");
    let file = session.path().unwrap();
    block_on(session.close()).unwrap();
    std::fs::remove_dir(&gone).unwrap();
    let error = block_on(engine.open_session(&file, SessionOptions::new(""))).unwrap_err();
    assert_eq!(error.code().name(), "working_directory_missing");
    assert_eq!(error.path(), Some(&*file));
    assert!(error.message().contains(gone.to_str().unwrap()) && error.message().contains("cwd"), "{error}");
    let reading = block_on(engine.open_session(&file, SessionOptions::new("").read_only(true))).unwrap();
    assert_eq!(reading.cwd(), gone);
    drop(reading);
    let moved = block_on(engine.open_session(&file, SessionOptions::new(dir.path()))).unwrap();
    assert_eq!(moved.cwd(), dir.path());
}

/// A context edit that hides a call left its result in the request, which services refuse.
#[test]
fn bug_101_a_result_without_its_call_is_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([
        {"content": [{"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "true"}}]},
        {"content": [{"type": "text", "text": "a1"}]},
        {"content": [{"type": "text", "text": "a2"}]}
    ]);
    let (session, control) = scripted(&engine, dir.path(), script);
    say(&session, "u1");
    let (file, tree) = (session.path().unwrap(), session.tree());
    let mut entries = tree.entries().map(|entry| entry.unwrap());
    let call = entries.find(|entry| entry.message().is_some_and(|it| it.tool_calls().next().is_some())).unwrap();
    block_on(session.close()).unwrap();
    let mut cursor = Cursor::new(Tree::open(&file, OpenOptions::default()).unwrap());
    cursor.append_context_edit(call.id(), &Value::Null).unwrap();
    drop(cursor);
    let session = block_on(engine.open_session(&file, SessionOptions::new(""))).unwrap();
    say(&session, "u2");
    let sent = control.requests().pop().unwrap();
    let roles: Vec<_> = sent.messages.iter().map(|message| message.role().name()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}
