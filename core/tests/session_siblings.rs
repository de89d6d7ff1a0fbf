//! Sibling sessions: several live cursors over one tree and file.

#[path = "sibling_support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use branchline::message::BashExecution;
use branchline::resources::settings::Settings;
use branchline::tree::{Diagnostic, DiagnosticKind, OpenOptions, Tree};
use branchline::{
    BranchOptions, BranchPoint, Event, Exploration, ExploreOptions, ExploreResult, NavigateOptions, Phase,
    PromptOptions, Session, SessionOptions, SubscribeOptions, block_on,
};
use serde_json::{Value, json};
use support::*;

fn branch(session: &Session, at: impl Into<BranchPoint>) -> Session {
    block_on(session.branch(at, BranchOptions::default())).unwrap()
}

fn code<T>(result: branchline::Result<T>) -> &'static str {
    result.err().expect("an error").code().name()
}

/// A hundred siblings run at once, each four turns, while a reader opens the file again and again.
#[test]
fn a_hundred_siblings_run_at_once_over_one_file() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base turns=2");
    let file = session.path().unwrap();
    let base = session.leaf().unwrap();
    let before = check_file(&file).len();

    let over = Arc::new(AtomicBool::new(false));
    let (theirs, path) = (over.clone(), file.clone());
    let reader = std::thread::spawn(move || {
        let mut looks = 0;
        while !theirs.load(Ordering::Relaxed) {
            let text = std::fs::read_to_string(&path).unwrap();
            // A line that is just being written is not looked at: lines are written whole, one write each.
            check_lines(&text[..text.rfind('\n').unwrap() + 1]);
            let tree = Tree::open(&path, OpenOptions { read_only: true, ..OpenOptions::default() }).unwrap();
            // The system may show a part of a write that crosses a page: a line that waits for its rest, and nothing else.
            let torn = |found: &Diagnostic| found.kind == DiagnosticKind::TornTail;
            let total = tree.diagnostics_total();
            assert!(total <= 1 && tree.diagnostics().iter().all(torn), "{:?}", tree.diagnostics());
            looks += 1;
        }
        looks
    });
    let siblings: Vec<Session> = (0..100).map(|_| branch(&session, &base)).collect();
    assert_eq!(check_file(&file).len(), before, "branching writes nothing (S45)");
    let runs: Vec<_> =
        siblings.iter().enumerate().map(|(n, sibling)| begin(sibling, &format!("s{n} turns=3"))).collect();
    let results: Vec<_> = runs.iter().map(|run| block_on(run.result()).unwrap()).collect();
    over.store(true, Ordering::Relaxed);
    assert!(reader.join().unwrap() > 0);

    let lines = check_file(&file);
    assert_eq!(lines.len(), before + 100 * 8);
    let shared: Vec<_> = path_to(&lines, &base);
    for (n, (sibling, result)) in siblings.iter().zip(&results).enumerate() {
        let name = format!("s{n}");
        assert_eq!(result.text, name);
        assert_eq!(result.leaf, sibling.leaf());
        let path = path_to(&lines, &sibling.leaf().unwrap());
        assert_eq!(path[..shared.len()], shared);
        let own = &path[shared.len()..];
        assert_eq!(words(own), [&["user"][..], &["assistant", "toolResult"].repeat(3), &["assistant"]].concat());
        assert!(own.iter().all(|entry| entry["message"].to_string().contains(&name)), "only its own");
        for turn in 0..3 {
            assert_eq!(own[1 + 2 * turn]["message"]["content"][0]["id"], format!("{name}-{turn}"));
            assert_eq!(own[2 + 2 * turn]["message"]["toolCallId"], format!("{name}-{turn}"));
        }
    }
    assert_eq!(session.leaf().as_deref(), Some(&*base), "the parent stands where it stood");
    say(&session, "parent");
    let path = check_file(&file);
    assert_eq!(words(&path_to(&path, &session.leaf().unwrap())[shared.len()..]), ["user", "assistant"]);
}

/// What providers cache is the beginning of a request: it must be the same to the byte.
#[test]
fn requests_of_siblings_begin_with_the_same_bytes() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base turns=2");
    say(&session, "more");
    let at = session.leaf().unwrap();
    let (a, b) = (branch(&session, BranchPoint::Leaf), branch(&session, &at));
    say(&session, "parent turns=1");
    let c = branch(&session, &at); // read from the file, as the parent has gone on
    for (sibling, name) in [(&a, "aa"), (&b, "bb"), (&c, "cc")] {
        say(sibling, &format!("{name} turns=1"));
    }
    let first = |name: &str| setup.model.asked(name).swap_remove(0);
    let parent = sent(&first("parent"));
    let requests = ["aa", "bb", "cc"].map(|name| (name, first(name)));
    let shared = parent.len() - 2; // without its own user message and the tools
    assert!(shared >= 8);
    for (name, request) in &requests {
        let sent = sent(request);
        assert_eq!(sent.len(), parent.len());
        assert_eq!(sent[..shared], parent[..shared], "{name}");
        assert_eq!(sent.last(), parent.last(), "the tools");
        assert!(sent[shared].contains(name));
        assert_eq!(request.session_id, session.id(), "one routing key");
        assert_eq!(request.thinking_level, "off");
    }
    // And so do the requests that follow: each begins with the whole one before it.
    let second = sent(&setup.model.asked("cc").swap_remove(1));
    assert_eq!(second[..shared + 1], sent(&requests[2].1)[..shared + 1]);
}

/// The same after everything that changes what a model sees. The parent has its messages from before they were stored, so
/// times, which no model is shown, may differ from theirs.
#[test]
fn the_common_beginning_survives_edits_and_compactions() {
    let setup = Setup::new();
    let options = setup.options().settings(Settings::from_values(
        json!({"retry": {"enabled": false}, "compaction": {"keepRecentTokens": 30}}).as_object().unwrap().clone(),
    ));
    let session = block_on(setup.engine.create_session(options)).unwrap();
    (0..4).for_each(|n| drop(say(&session, &format!("base{n} turns=1"))));
    block_on(session.compact(None)).unwrap();
    let shell = BashExecution { command: "ls".into(), output: "a\tb".into(), ..Default::default() };
    block_on(session.record_bash(shell)).unwrap();
    block_on(session.append_custom_message("note", json!("from the host"), true, Some(json!({"n": 1.50})))).unwrap();
    let answer = say(&session, "edited").leaf.unwrap();
    block_on(session.edit_context(&answer, json!({"content": "shortened"}))).unwrap();
    block_on(session.set_tools(vec!["note".into(), "ls".into()])).unwrap();
    say(&session, "more");
    let (at, file) = (session.leaf().unwrap(), session.path().unwrap());
    let known = branch(&session, &at); // from what the parent has in memory
    say(&known, "known");
    say(&session, "parent");
    block_on(known.close()).unwrap(); // and not only dropped: the file is opened again below
    let first = |name: &str| sent(&setup.model.asked(name).swap_remove(0));
    let read = branch(&session, &at); // from the file
    say(&read, "read");
    let again = branch(&session, &at);
    say(&again, "again");
    [&read, &again, &session].iter().for_each(|it| block_on(it.close()).unwrap());
    let other = block_on(setup.engine.open_session(&file, SessionOptions::new("").custom_tool(note()))).unwrap();
    say(&branch(&other, &at), "later");
    let [read, again, later] = ["read", "again", "later"].map(first);
    let shared = read.len() - 2;
    assert_eq!(read[..shared], again[..shared]);
    assert_eq!(read[..shared], later[..shared], "also in another process, after the file was opened again");
    assert_eq!(read.last(), later.last());
    let timeless = |sent: &[String]| -> Vec<Value> {
        let value = |text: &String| serde_json::from_str::<Value>(text).unwrap();
        let mut values: Vec<Value> = sent.iter().map(value).collect();
        values.iter_mut().filter_map(Value::as_object_mut).for_each(|message| drop(message.remove("timestamp")));
        values
    };
    assert_eq!(timeless(&read[..shared]), timeless(&first("parent")[..shared]));
    assert_eq!(timeless(&read[..shared]), timeless(&first("known")[..shared]));
}

#[test]
fn siblings_of_an_unsaved_session_bring_the_file_into_being() {
    let setup = Setup::new();
    let session = setup.session();
    let (a, b) = (branch(&session, BranchPoint::Leaf), branch(&session, BranchPoint::Start));
    block_on(a.append_custom("mine", None)).unwrap();
    let file = session.path().unwrap();
    assert!(!file.exists());
    assert_eq!(a.path(), Some(file.clone()));
    drop(session); // its settings stay in the tree
    let run = begin(&b, "bb");
    say(&a, "aa");
    block_on(run.result()).unwrap();
    let lines = check_file(&file);
    let path = path_to(&lines, a.leaf().as_deref().unwrap());
    assert_eq!(words(&path)[..3], ["model_change", "thinking_level_change", "custom"]);
    // A new root says what it was made with.
    let path = path_to(&lines, b.leaf().as_deref().unwrap());
    let expected = ["model_change", "thinking_level_change", "system", "user", "assistant"];
    assert_eq!(words(&path), expected);
    assert_eq!(path[0]["modelId"], "m");
}

#[test]
fn in_memory_sessions_branch_too() {
    let setup = Setup::new();
    let session = block_on(setup.engine.create_session(setup.options().in_memory(true))).unwrap();
    say(&session, "base");
    let sibling = branch(&session, BranchPoint::Leaf);
    block_on(session.close()).unwrap();
    assert_eq!(say(&sibling, "after").text, "after");
    assert_eq!(sibling.tree().branch(sibling.leaf().as_deref()).len(), 7);
}

#[test]
fn the_file_is_free_when_the_last_sibling_is_closed() {
    let setup = Setup::new();
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let session = setup.session();
        say(&session, "base");
        let file = session.path().unwrap();
        let child = branch(&session, BranchPoint::Leaf);
        let grandchild = branch(&child, BranchPoint::Start);
        let mut sessions = [Some(session), Some(child), Some(grandchild)];
        for (closed, at) in order.into_iter().enumerate() {
            let opened = block_on(setup.engine.open_session(&file, SessionOptions::new("")));
            assert_eq!(code(opened), "session_locked", "{closed} of 3 are closed");
            let session = sessions[at].take().unwrap();
            assert_eq!(say(&session, "still").text, "still");
            match at {
                1 => drop(session), // the same by itself
                _ => block_on(session.close()).unwrap(),
            }
        }
        let opened = || block_on(setup.engine.open_session(&file, SessionOptions::new("")));
        until("the lock", || opened().is_ok());
        check_file(&file);
    }
}

#[test]
fn a_closed_session_has_no_siblings() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    block_on(session.close()).unwrap();
    assert_eq!(code(block_on(session.branch(BranchPoint::Leaf, BranchOptions::default()))), "closed");
}

#[test]
fn shutting_the_engine_down_ends_all() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let siblings: Vec<Session> = (0..10).map(|_| branch(&session, BranchPoint::Leaf)).collect();
    let runs: Vec<_> = siblings.iter().map(|sibling| begin(sibling, "x hang")).collect();
    block_on(setup.engine.shutdown());
    for (sibling, run) in siblings.iter().zip(&runs) {
        assert_eq!(sibling.state().phase, Phase::Closed);
        assert!(block_on(run.result()).unwrap().aborted);
    }
    let lines = check_file(&session.path().unwrap());
    assert_eq!(lines.iter().filter(|line| line["message"]["stopReason"] == "aborted").count(), 10);
}

#[test]
fn aborting_one_is_nothing_to_the_others() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let (a, b) = (branch(&session, BranchPoint::Leaf), branch(&session, BranchPoint::Leaf));
    let runs = [begin(&a, "aa hang"), begin(&b, "bb hang"), begin(&session, "parent hang")];
    block_on(a.abort()).unwrap();
    assert!(block_on(runs[0].result()).unwrap().aborted);
    assert!(b.state().running && session.state().running);
    assert!(runs[1].try_result().is_none());
    assert_eq!(say(&a, "again").text, "again");
    block_on(session.abort()).unwrap();
    assert!(b.state().running);
    block_on(b.abort()).unwrap();
    check_file(&session.path().unwrap());
}

#[test]
fn a_slow_reader_of_one_slows_no_other() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let (slow, free) = (branch(&session, BranchPoint::Leaf), branch(&session, BranchPoint::Leaf));
    let unread = slow.subscribe(SubscribeOptions::default().capacity(1));
    let stuck = begin(&slow, "slow long turns=2");
    for n in 0..5 {
        assert_eq!(say(&free, &format!("free{n} turns=2")).text, format!("free{n}"));
        say(&session, "parent");
    }
    assert!(stuck.try_result().is_none(), "it waits for its reader");
    drop(unread);
    assert_eq!(block_on(stuck.result()).unwrap().messages.len(), 6);
}

#[test]
fn branching_while_the_parent_runs() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let base = session.leaf().unwrap();
    let run = begin(&session, "parent hang");
    let question = || session.leaf().filter(|leaf| *leaf != base);
    until("the question", || question().is_some());
    let (here, before) = (branch(&session, BranchPoint::Leaf), branch(&session, &base));
    assert_eq!(here.leaf(), question());
    assert_eq!(say(&before, "before").text, "before");
    assert_eq!(say(&here, "here").text, "here");
    assert!(session.state().running);
    block_on(session.abort()).unwrap();
    assert!(block_on(run.result()).unwrap().aborted);
    let lines = check_file(&session.path().unwrap());
    let path = path_to(&lines, here.leaf().as_deref().unwrap());
    assert_eq!(words(&path)[5..], ["user", "user", "assistant"]);
    assert!(
        words(&path_to(&lines, session.leaf().as_deref().unwrap())).ends_with(&["user".into(), "assistant".into()])
    );
}

#[test]
fn what_a_sibling_begins_with() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let early = session.leaf().unwrap();
    block_on(session.set_model("many/n")).unwrap();
    block_on(session.set_thinking_level("high")).unwrap();
    block_on(session.set_tools(vec!["note".into(), "read".into()])).unwrap();
    let with = |at: BranchPoint, options| block_on(session.branch(at, options));
    let state = |session: branchline::Result<Session>| {
        let state = session.unwrap().state();
        (state.model.unwrap(), state.thinking_level, state.tools.join(","))
    };
    let three = |model: &str, level: &str, tools: &str| (model.to_owned(), level.to_owned(), tools.to_owned());
    let at = |id: &str| BranchPoint::Entry(id.to_owned());
    // What the path says, and where it says nothing, what the parent has.
    assert_eq!(state(with(at(&early), BranchOptions::default())), three("many/m", "off", "note"));
    assert_eq!(state(with(BranchPoint::Leaf, BranchOptions::default())), three("many/n", "high", "note"));
    assert_eq!(state(with(BranchPoint::Start, BranchOptions::default())), three("many/n", "high", "note,read"));
    // What is asked for.
    let options = BranchOptions::default().model("many/m").thinking_level("low").tools(["ls"]);
    assert_eq!(state(with(BranchPoint::Leaf, options.clone())), three("many/m", "low", "ls"));
    assert_eq!(code(with(at("nobody"), BranchOptions::default())), "entry_not_found");
    assert_eq!(code(with(BranchPoint::Leaf, BranchOptions::default().model("nobody/x"))), "unknown_model");
    assert_eq!(code(with(BranchPoint::Leaf, BranchOptions::default().tools(["hammer"]))), "unknown_tool");
    // Both have their own from then on.
    let sibling = with(BranchPoint::Leaf, options).unwrap();
    block_on(sibling.steer("later")).unwrap();
    block_on(sibling.set_tools(vec![])).unwrap();
    assert_eq!(session.state().tools.join(","), "note,read");
    assert!(session.state().steering.is_empty());
    assert_eq!(block_on(sibling.clear_queues()).unwrap().0, ["later"]);
    say(&sibling, "sibling");
    assert_eq!(say(&session, "parent").text, "parent");
    assert_eq!(setup.model.asked("sibling").last().unwrap().thinking_level, "low");
    assert_eq!(setup.model.asked("parent")[0].thinking_level, "high");
    assert!(setup.model.asked("sibling")[0].tools.is_empty());
    assert_eq!(setup.model.asked("parent")[0].tools.len(), 2);
}

/// A sibling begins with another toolset than its parent compared last; what differs must be said.
#[test]
fn other_tools_are_announced() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let sibling = block_on(session.branch(BranchPoint::Leaf, BranchOptions::default().tools(["ls"]))).unwrap();
    say(&sibling, "sibling");
    let request = setup.model.asked("sibling").swap_remove(0);
    let names: Vec<&str> = request.tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["ls"]);
}

#[test]
fn events_and_states_tell_siblings_apart() {
    let setup = Setup::new();
    let session = setup.session();
    let (a, b) = (branch(&session, BranchPoint::Leaf), branch(&session, BranchPoint::Start));
    assert_eq!([&session, &a, &b].map(Session::sibling), [0, 1, 2]);
    assert_eq!([&session, &a, &b].map(|it| it.state().sibling), [0, 1, 2]);
    assert!(a.is_sibling_of(&b) && !a.is_sibling_of(&setup.session()));
    for sibling in [&session, &a, &b] {
        let run = block_on(sibling.prompt("x", PromptOptions::default())).unwrap();
        let events: Vec<Event> = std::iter::from_fn(|| block_on(run.next())).collect();
        assert!(events.iter().all(|event| event.sibling() == sibling.sibling() && event.session_id() == session.id()));
        assert_eq!(events[0].sequence(), 1, "each counts its own");
        assert_eq!(events[0].to_json(), r#"{"type":"agent_start"}"#, "as pi writes it");
    }
}

/// Names and labels are the file's; leaves are the sessions'.
#[test]
fn what_siblings_share() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let base = session.leaf().unwrap();
    let sibling = branch(&session, &base);
    block_on(sibling.set_name("Parser")).unwrap();
    block_on(sibling.set_label(&base, Some("here"))).unwrap();
    assert_eq!(session.name().as_deref(), Some("Parser"));
    assert_eq!(session.tree().label(&base).unwrap().text, "here");
    assert_eq!(session.leaf(), Some(base));
    say(&sibling, "found");
    // One may go where the other is.
    block_on(session.navigate(&sibling.leaf().unwrap(), NavigateOptions::default())).unwrap();
    assert_eq!(session.leaf(), sibling.leaf());
    let runs = [begin(&session, "aa turns=1"), begin(&sibling, "bb turns=1")];
    runs.iter().for_each(|run| drop(block_on(run.result()).unwrap()));
    let lines = check_file(&session.path().unwrap());
    for (it, name) in [(&session, "aa"), (&sibling, "bb")] {
        let path = path_to(&lines, it.leaf().as_deref().unwrap());
        assert_eq!(words(&path[path.len() - 4..]), ["user", "assistant", "toolResult", "assistant"]);
        assert_eq!(path.last().unwrap()["message"]["content"][0]["text"], name);
    }
}

#[test]
fn handles_go_anywhere() {
    fn anywhere<T: Send + Sync + 'static>() {}
    anywhere::<Exploration>();
    anywhere::<ExploreResult>();
    anywhere::<BranchOptions>();
    anywhere::<ExploreOptions>();
    fn sends<T: Send>(_: T) {}
    let never = |session: &Session, exploration: &Exploration| {
        sends(session.branch("x", BranchOptions::default()));
        sends(session.explore(["x"], ExploreOptions::default()));
        sends(session.adopt(session, Default::default()));
        sends(session.switch("x", Default::default()));
        sends(session.import_session("x", Default::default()));
        sends(exploration.results());
        sends(exploration.abort());
    };
    let _ = never;
}

/// What was made for siblings goes with them.
#[test]
fn many_come_and_go() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    for _ in 0..300 {
        drop(branch(&session, BranchPoint::Leaf));
    }
    let last = branch(&session, BranchPoint::Leaf);
    assert_eq!(last.sibling(), 301);
    assert_eq!(say(&last, "last").text, "last");
    let events = session.subscribe(SubscribeOptions::default());
    assert!(events.next_timeout(Duration::from_millis(1)).is_err());
}
