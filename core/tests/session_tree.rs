//! Moving around, forking and cloning a live session (S163–S188), its labels, names and entries of the host.

#[path = "session_support/mod.rs"]
mod support;

use branchline::{
    EventKind, ForkPosition, NavigateOptions, PromptOptions, Session, SessionOptions, SubscribeOptions, block_on,
};
use serde_json::{Value, json};
use support::*;

fn say(session: &Session, text: &str) {
    block_on(block_on(session.prompt(text, PromptOptions::default())).unwrap().result()).unwrap();
}

/// Replies `a1`, `a2`, ….
fn answers(count: usize) -> Value {
    (1..=count).map(|n| json!({"content": [{"type": "text", "text": format!("a{n}")}]})).collect()
}

/// Ids of the message entries with this role, in file order.
fn ids(session: &Session, role: &str) -> Vec<String> {
    let entries = session.tree().entries().map(|entry| entry.unwrap());
    entries
        .filter(|entry| entry.message().is_some_and(|message| message.role().name() == role))
        .map(|entry| entry.id().to_owned())
        .collect()
}

/// The texts of the messages on the path to the leaf.
fn path(session: &Session) -> Vec<String> {
    let tree = session.tree();
    let branch = tree.branch(session.leaf().as_deref());
    branch
        .entries()
        .filter_map(|entry| entry.unwrap().message())
        .map(|message| message.text(""))
        .filter(|text| !text.is_empty())
        .collect()
}

#[test]
fn navigating_to_messages() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, control) = scripted(&engine, dir.path(), answers(3));
    say(&session, "u1");
    say(&session, "u2");
    let (users, assistants) = (ids(&session, "user"), ids(&session, "assistant"));
    let before = session.tree().entries_len();

    let stay = block_on(session.navigate(&session.leaf().unwrap(), NavigateOptions::default())).unwrap();
    assert_eq!((stay.leaf, stay.editor_text), (session.leaf(), None));
    let back = block_on(session.navigate(&users[1], NavigateOptions::default())).unwrap();
    assert_eq!(back.editor_text.as_deref(), Some("u2"));
    assert_eq!((back.leaf.as_ref(), session.leaf().as_ref()), (Some(&assistants[0]), Some(&assistants[0])));
    assert_eq!(session.tree().entries_len(), before, "navigating writes nothing");
    say(&session, "u2 again");
    assert_eq!(path(&session), ["u1", "a1", "u2 again", "a3"]);
    let sent = control.requests().pop().unwrap();
    let texts: Vec<String> =
        sent.messages.iter().map(|message| message.text("")).filter(|text| !text.is_empty()).collect();
    assert_eq!(texts, ["u1", "a1", "u2 again"], "the model sees the new branch only");

    let labelled = block_on(session.navigate(&assistants[1], NavigateOptions::default().label("left"))).unwrap();
    assert_ne!(labelled.leaf.as_ref(), Some(&assistants[1]), "the label entry is the leaf");
    assert_eq!(session.tree().label(&assistants[1]).unwrap().text, "left");
    let unknown = block_on(session.navigate("nope", NavigateOptions::default())).unwrap_err();
    assert_eq!(unknown.code().name(), "entry_not_found");
}

/// A branch switched during a run got the late tool result under the new leaf.
#[test]
fn bug_019_navigating_during_a_run_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([
        {"content": [{"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "sleep 0.3; echo late"}}]},
        {"content": [{"type": "text", "text": "done"}]}
    ]);
    let (session, _) = scripted(&engine, dir.path(), script);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    loop {
        let event = block_on(run.next()).unwrap();
        if matches!(event.kind(), EventKind::ToolExecutionUpdate { .. }) {
            break;
        }
    }
    let first = ids(&session, "user").remove(0);
    let refused = block_on(session.navigate(&first, NavigateOptions::default())).unwrap_err();
    assert_eq!(refused.code().name(), "running");
    block_on(session.wait_idle()).unwrap();
    let result = ids(&session, "toolResult").remove(0);
    let tree = session.tree();
    let calls = |entry: branchline::tree::Entry| {
        entry.message().is_some_and(|message| message.tool_calls().any(|call| call.id == "c1"))
    };
    assert!(tree.branch(Some(&result)).entries().any(|entry| calls(entry.unwrap())));
    let moved = block_on(session.navigate(&first, NavigateOptions::default())).unwrap();
    assert_eq!(moved.editor_text.as_deref(), Some("go"));
    assert!(!tree.branch(session.leaf().as_deref()).contains(&result));
}

/// Forked files whose parent was still written to, and a fork before everything that lost its parent.
#[test]
fn bug_021_forks_leave_the_parent_alone() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, _) = scripted(&engine, dir.path(), answers(4));
    say(&session, "u1");
    say(&session, "u2");
    let file = session.path().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let users = ids(&session, "user");

    let fork = block_on(session.fork(&users[1], ForkPosition::Before)).unwrap();
    assert_eq!(fork.editor_text.as_deref(), Some("u2"));
    assert_ne!((fork.session.path(), fork.session.id()), (session.path(), session.id()));
    say(&fork.session, "new");
    assert_eq!(path(&fork.session), ["u1", "a1", "new", "a3"]);
    let header = &lines(&fork.session.path().unwrap())[0];
    assert_eq!(header["parentSession"], file.to_str().unwrap());

    let first = block_on(session.fork(&users[0], ForkPosition::Before)).unwrap();
    assert_eq!(first.editor_text.as_deref(), Some("u1"));
    say(&first.session, "other");
    let all = lines(&first.session.path().unwrap());
    assert_eq!(all[0]["parentSession"], file.to_str().unwrap());
    let user = all.iter().find(|line| line["message"]["role"] == "user").unwrap();
    assert_eq!(user["message"]["content"][0]["text"], "other");
    assert!(
        first
            .session
            .tree()
            .branch(user["parentId"].as_str())
            .entries()
            .all(|entry| { entry.unwrap().message().is_none_or(|message| message.role().name() == "system") })
    );
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "not a byte of the parent changed");
    assert_eq!(path(&session), ["u1", "a1", "u2", "a2"]);

    let copy = block_on(session.clone_session()).unwrap();
    assert_eq!(path(&copy), path(&session));
    let wrong = block_on(session.fork(&ids(&session, "assistant")[0], ForkPosition::Before)).unwrap_err();
    assert_eq!(wrong.code().name(), "invalid_fork_target");
}

#[test]
fn a_session_without_a_file_cannot_be_forked_but_one_in_memory_can() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, _) = scripted(&engine, dir.path(), answers(1));
    assert_eq!(block_on(session.clone_session()).unwrap_err().code().name(), "not_saved");
    let (memory, _) = scripted_with(&engine, dir.path(), answers(2), |options| options.in_memory(true));
    say(&memory, "u1");
    let copy = block_on(memory.clone_session()).unwrap();
    say(&copy, "more");
    assert_eq!((path(&copy).len(), path(&memory).len()), (4, 2));
}

#[test]
fn names_labels_and_entries_of_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, control) = scripted(&engine, dir.path(), answers(2));
    let events = session.subscribe(SubscribeOptions::default());
    say(&session, "u1");
    until_settled(&events);
    block_on(session.set_name("Parser")).unwrap();
    let label = block_on(session.set_label(&ids(&session, "user")[0], Some("start"))).unwrap();
    assert_eq!(session.leaf(), Some(label));
    let custom = block_on(session.append_custom("todo", Some(json!({"open": 3})))).unwrap();
    let message = block_on(session.append_custom_message("note", json!("remember"), true, None)).unwrap();
    assert_eq!(session.leaf(), message);
    block_on(session.set_thinking_level("high")).unwrap();
    assert_eq!(block_on(session.set_thinking_level("loud")).unwrap_err().code().name(), "invalid_argument");
    assert_eq!(session.name().as_deref(), Some("Parser"));
    let words: Vec<String> = std::iter::from_fn(|| events.try_next()).map(|event| shape(&event)).collect();
    assert_eq!(
        words,
        [
            "session_info_changed",
            "entry_appended",
            "message_start custom",
            "message_end custom",
            "thinking_level_changed"
        ]
    );
    say(&session, "u2");
    let sent = control.requests().pop().unwrap();
    let texts: Vec<String> =
        sent.messages.iter().map(|message| message.text("")).filter(|text| !text.is_empty()).collect();
    assert_eq!(texts, ["u1", "a1", "remember", "u2"]);
    assert_eq!(sent.thinking_level, "high");
    assert!(session.tree().contains(&custom));
}

#[test]
fn a_reopened_session_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, control) = scripted(&engine, dir.path(), answers(2));
    say(&session, "u1");
    let (file, leaf) = (session.path().unwrap(), session.leaf());
    let locked = block_on(engine.open_session(&file, SessionOptions::new(""))).unwrap_err();
    assert_eq!(locked.code().name(), "session_locked");
    let bytes = std::fs::read(&file).unwrap();
    block_on(session.close()).unwrap();
    assert_eq!(session.tree().entries_len(), 5, "a closed session's tree can still be read");
    assert_eq!(block_on(session.set_name("x")).unwrap_err().code().name(), "closed");

    let again = block_on(engine.open_session(&file, SessionOptions::new(""))).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "opening writes nothing");
    assert_eq!(again.leaf(), leaf);
    assert_eq!(again.state().model.as_deref(), Some("scripted/test"));
    assert_eq!(again.state().thinking_level, "off");
    say(&again, "u2");
    assert_eq!(path(&again), ["u1", "a1", "u2", "a2"]);
    let roles: Vec<_> =
        control.requests().pop().unwrap().messages.iter().map(|message| message.role().name()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"], "prompt and tools are not said twice");
}

#[test]
fn navigating_with_a_summary() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([
        {"content": [{"type": "text", "text": "a1"}]},
        {"content": [{"type": "text", "text": "a2"}]},
        {"content": [{"type": "text", "text": "half"}], "hang": true},
        {"stop": "error", "error": "no"},
        {"content": [{"type": "text", "text": "NOTES"}]}
    ]);
    let (session, control) = scripted(&engine, dir.path(), script);
    say(&session, "u1");
    say(&session, "u2");
    let (leaf, first) = (session.leaf(), ids(&session, "assistant").remove(0));
    let options = || NavigateOptions::default().summarize(true).instructions("files").label("left");

    let (theirs, target) = (session.clone(), first.clone());
    let navigating = std::thread::spawn(move || block_on(theirs.navigate(&target, options())));
    block_on(control.reached(2));
    let busy = block_on(session.prompt("no", PromptOptions::default())).err().unwrap();
    assert_eq!(busy.code().name(), "compacting");
    block_on(session.abort()).unwrap();
    assert!(navigating.join().unwrap().unwrap().cancelled);
    let failed = block_on(session.navigate(&first, options())).unwrap_err();
    assert_eq!(failed.code().name(), "summary_failed");
    assert_eq!(session.leaf(), leaf, "nothing has changed");

    let moved = block_on(session.navigate(&first, options())).unwrap();
    let summary = session.tree().entry(&moved.summary_entry.unwrap()).unwrap().unwrap().value();
    assert_eq!((&summary["parentId"], &summary["fromId"]), (&json!(first), &json!(leaf)));
    assert!(summary["summary"].as_str().unwrap().ends_with("\n\nNOTES"));
    assert_eq!(summary["fromHook"], false);
    assert_eq!(session.tree().label(summary["id"].as_str().unwrap()).unwrap().text, "left");
    let asked = control.requests().pop().unwrap();
    let text = asked.messages[1].text("");
    assert!(text.starts_with("<conversation>\n[User]: u2\n\n[Assistant]: a2\n</conversation>\n\n"), "{text}");
    assert!(text.ends_with("\n\nAdditional focus: files"));
}
