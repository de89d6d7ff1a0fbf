//! From one session to the next: new, switch, import; and what an opened session begins with (S99, S189–S192, S289–S293).

#[path = "sibling_support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

use branchline::tree::{EntryKind, Tree};
use branchline::{
    BranchOptions, BranchPoint, EngineOptions, NewSessionOptions, Phase, Session, SessionOptions, SwitchOptions,
    block_on,
};
use serde_json::Value;
use support::*;

fn code<T>(result: branchline::Result<T>) -> &'static str {
    result.err().expect("an error").code().name()
}

fn switch(session: &Session, path: impl AsRef<Path>) -> branchline::Result<Session> {
    block_on(session.switch(path, SwitchOptions::default()))
}

fn import(session: &Session, path: impl AsRef<Path>) -> branchline::Result<Session> {
    block_on(session.import_session(path, SwitchOptions::default()))
}

fn kinds(tree: &Tree) -> Vec<EntryKind> {
    tree.entries().map(|entry| entry.unwrap().kind()).collect()
}

fn write(path: &Path, lines: &[&str]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// A file of another program, with a working directory of its own.
fn stored(setup: &Setup, name: &str, cwd: &Path) -> PathBuf {
    let path = setup.dir.path().join("elsewhere").join(name);
    let header = format!(
        r#"{{"type":"session","version":3,"id":"old","timestamp":"2026-01-01T00:00:00.000Z","cwd":"{}"}}"#,
        cwd.display()
    );
    write(&path, &[&header, MODEL, LEVEL, QUESTION, ANSWER]);
    path
}

const MODEL: &str = r#"{"type":"model_change","id":"00000001","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","provider":"many","modelId":"n"}"#;
const LEVEL: &str = r#"{"type":"thinking_level_change","id":"00000002","parentId":"00000001","timestamp":"2026-01-01T00:00:00.000Z","thinkingLevel":"low"}"#;
const QUESTION: &str = r#"{"type":"message","id":"00000003","parentId":"00000002","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":1}}"#;
const ANSWER: &str = r#"{"type":"message","id":"00000004","parentId":"00000003","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":[],"api":"many","provider":"many","model":"n","usage":{},"stopReason":"stop","timestamp":2}}"#;

#[test]
fn a_new_session_takes_everything_over_but_the_history() {
    let setup = Setup::new();
    let session = setup.session();
    let link = NewSessionOptions::default().record_parent(true);
    assert_eq!(code(block_on(session.new_session(link.clone()))), "not_saved");
    say(&session, "base");
    block_on(session.set_model("many/n")).unwrap();
    block_on(session.set_thinking_level("high")).unwrap();
    let run = begin(&session, "hang hang");
    let new = block_on(session.new_session(link.name("Next"))).unwrap();
    assert!(session.state().running, "this one goes on");
    let state = new.state();
    assert_eq!((state.model.as_deref(), state.thinking_level.as_str(), state.sibling), (Some("many/n"), "high", 0));
    assert_eq!((state.tools.join(","), state.context_messages), ("note".to_owned(), 0));
    assert_eq!((new.name().as_deref(), new.cwd()), (Some("Next"), session.cwd()));
    assert_eq!(new.tree().session_dir(), session.tree().session_dir());
    assert_ne!(new.id(), session.id());
    assert!(!new.path().unwrap().exists());
    say(&new, "new");
    let lines = check_file(&new.path().unwrap());
    assert_eq!(lines[0]["parentSession"].as_str(), session.path().unwrap().to_str());
    // S289, S290
    let path: Vec<&Value> = lines[1..].iter().collect();
    assert_eq!(words(&path)[..4], ["session_info", "model_change", "thinking_level_change", "system"]);
    let plain = block_on(new.new_session(NewSessionOptions::default())).unwrap();
    say(&plain, "plain");
    assert!(check_file(&plain.path().unwrap())[0].get("parentSession").is_none());
    block_on(session.abort()).unwrap();
    drop(run);
    let memory = block_on(setup.engine.create_session(setup.options().in_memory(true))).unwrap();
    assert_eq!(block_on(memory.new_session(NewSessionOptions::default().record_parent(true))).unwrap().path(), None);
}

#[test]
fn switching_closes_the_old_session_once_the_new_one_is_open() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let run = begin(&session, "hang hang");
    let old = session.path().unwrap();
    let file = stored(&setup, "a.jsonl", setup.dir.path());
    let next = switch(&session, &file).unwrap();
    // S189: the aborted turn is in the old file, which is free.
    assert!(block_on(run.result()).unwrap().aborted);
    assert_eq!(session.state().phase, Phase::Closed);
    assert_eq!(check_file(&old).last().unwrap()["message"]["stopReason"], "aborted");
    assert_eq!((next.path(), next.id()), (Some(file.clone()), "old".to_owned()));
    // Model and level of the file (S292, S293), tools of the host.
    let state = next.state();
    assert_eq!((state.model.as_deref(), state.thinking_level.as_str()), (Some("many/n"), "low"));
    assert_eq!(state.tools, ["note"]);
    say(&next, "next turns=1");
    let back = switch(&next, &old).unwrap();
    assert_eq!(back.path(), Some(old));
    assert_eq!(code(switch(&next, &file)), "closed");
    assert_eq!(say(&back, "back").text, "back");
}

#[test]
fn a_failed_switch_changes_nothing() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let run = begin(&session, "hang hang");
    let lost = stored(&setup, "lost.jsonl", &setup.dir.path().join("gone"));
    assert_eq!(code(switch(&session, &lost)), "working_directory_missing");
    let garbage = setup.dir.path().join("garbage.jsonl");
    write(&garbage, &["not json"]);
    assert_eq!(code(switch(&session, &garbage)), "invalid_session_file");
    let other = setup.session();
    say(&other, "other");
    assert_eq!(code(switch(&session, other.path().unwrap())), "session_locked");
    assert!(session.state().running && run.try_result().is_none());
    // The directory given by hand is the way out (S191).
    let next = block_on(session.switch(&lost, SwitchOptions::default().cwd(setup.dir.path()))).unwrap();
    assert_eq!(next.cwd(), setup.dir.path());
    assert!(block_on(run.result()).unwrap().aborted);
}

#[test]
fn switching_to_its_own_file_begins_at_its_last_entry() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let other = block_on(session.branch(BranchPoint::Leaf, BranchOptions::default())).unwrap();
    say(&other, "other");
    block_on(other.close()).unwrap();
    let next = switch(&session, session.path().unwrap()).unwrap();
    assert_eq!(session.state().phase, Phase::Closed);
    assert_eq!(next.leaf(), other.leaf());
    assert_eq!(say(&next, "next").text, "next");
    check_file(&next.path().unwrap());
}

#[test]
fn a_file_without_a_known_model_keeps_the_one_in_use() {
    let setup = Setup::new();
    let session = setup.session();
    let path = setup.dir.path().join("x.jsonl");
    let header = r#"{"type":"session","version":3,"id":"old","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;
    write(&path, &[header, &QUESTION.replace("\"00000002\"", "null")]);
    let next = switch(&session, &path).unwrap();
    assert_eq!(next.state().model.as_deref(), Some("many/m"));
}

/// S192.
#[test]
fn importing_copies_under_a_free_name() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let sessions = session.path().unwrap().parent().unwrap().to_path_buf();
    let file = stored(&setup, "a.b.jsonl", setup.dir.path());
    let bytes = std::fs::read(&file).unwrap();
    let first = import(&session, &file).unwrap();
    assert_eq!(session.state().phase, Phase::Closed);
    assert_eq!(first.path(), Some(sessions.join("a.b.jsonl")));
    assert_eq!(std::fs::read(first.path().unwrap()).unwrap(), bytes, "nothing is added by opening");
    let second = import(&first, &file).unwrap();
    assert_eq!(second.path(), Some(sessions.join("a.b-1.jsonl")));
    let third = import(&second, &file).unwrap();
    assert_eq!(third.path(), Some(sessions.join("a.b-2.jsonl")));
    say(&third, "third");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    // What is there already is opened itself.
    let again = import(&third, sessions.join("a.b.jsonl")).unwrap();
    assert_eq!(again.path(), Some(sessions.join("a.b.jsonl")));
    let count = || std::fs::read_dir(&sessions).unwrap().count();
    assert_eq!(count(), 4);
    // A failure leaves no copy and the session as it was.
    let lost = stored(&setup, "lost.jsonl", &setup.dir.path().join("gone"));
    assert_eq!(code(import(&again, &lost)), "working_directory_missing");
    let garbage = setup.dir.path().join("garbage.jsonl");
    write(&garbage, &["not json"]);
    assert_eq!(code(import(&again, &garbage)), "invalid_session_file");
    assert_eq!(code(import(&again, setup.dir.path().join("nothing.jsonl"))), "storage_failed");
    assert_eq!(code(import(&again, setup.dir.path())), "invalid_session_file");
    assert_eq!(count(), 4);
    assert_eq!(again.state().phase, Phase::Idle);
    let with_cwd = block_on(again.import_session(&lost, SwitchOptions::default().cwd(setup.dir.path()))).unwrap();
    assert_eq!(with_cwd.cwd(), setup.dir.path());
    let memory = block_on(setup.engine.create_session(setup.options().in_memory(true))).unwrap();
    assert_eq!(code(import(&memory, &file)), "invalid_argument");
}

#[test]
fn importing_without_a_session() {
    let setup = Setup::new();
    let file = stored(&setup, "a.jsonl", setup.dir.path());
    let mut own = setup.options();
    (own.cwd, own.tools) = (PathBuf::new(), None);
    let sessions = setup.dir.path().join("sessions");
    let first = block_on(setup.engine.import_session(&file, own.clone())).unwrap();
    assert_eq!((first.path(), first.cwd()), (Some(sessions.join("a.jsonl")), setup.dir.path().to_path_buf()));
    let second = block_on(setup.engine.import_session(&file, own.clone())).unwrap();
    assert_eq!(second.path(), Some(sessions.join("a-1.jsonl")));
    // By default it is filed under its working directory (S39).
    let mut default = own.clone();
    default.session_dir = None;
    let filed = block_on(setup.engine.import_session(&file, default)).unwrap();
    let name = branchline::tree::session_dir_name(&setup.dir.path().to_string_lossy());
    assert_eq!(filed.path(), Some(setup.dir.path().join("agent/sessions").join(name).join("a.jsonl")));
    // The settings may name another place (S38).
    let mut set = own.clone();
    set.session_dir = None;
    let place = setup.dir.path().join("set");
    let settings = serde_json::json!({"sessionDir": place}).as_object().unwrap().clone();
    set.settings = Some(branchline::resources::settings::Settings::from_values(settings));
    let placed = block_on(setup.engine.import_session(&file, set)).unwrap();
    assert_eq!(placed.path(), Some(place.join("a.jsonl")));
    assert_eq!(code(block_on(setup.engine.import_session(&file, own.clone().in_memory(true)))), "invalid_argument");
    // With a working directory and without one a missing file is told as such, and leaves nothing behind.
    for options in [own.clone(), setup.options()] {
        let error = block_on(setup.engine.import_session(setup.dir.path().join("none.jsonl"), options)).unwrap_err();
        assert_eq!(error.code().name(), "storage_failed");
        assert!(error.message().to_lowercase().contains("no such file"), "{error}");
        assert!(error.path().unwrap().ends_with("none.jsonl"));
    }
    assert_eq!(code(block_on(setup.engine.import_session(setup.dir.path(), own.clone()))), "invalid_session_file");
    let lost = stored(&setup, "lost.jsonl", &setup.dir.path().join("gone"));
    assert_eq!(code(block_on(setup.engine.import_session(&lost, own))), "working_directory_missing");
    assert!(!sessions.join("lost.jsonl").exists());
}

/// S289–S293: what resuming records, and where model and level come from.
#[test]
fn what_a_resumed_session_begins_with() {
    let setup = Setup::new();
    let file = stored(&setup, "a.jsonl", setup.dir.path());
    let open = |options: SessionOptions| block_on(setup.engine.open_session(&file, options));
    let bare = || SessionOptions::new("").custom_tool(note());
    let state = |session: &Session| (session.state().model.unwrap_or_default(), session.state().thinking_level);
    let two = |model: &str, level: &str| (model.to_owned(), level.to_owned());
    let session = open(bare()).unwrap();
    assert_eq!(state(&session), two("many/n", "low"));
    assert_eq!(kinds(&session.tree()).len(), 4, "nothing is appended (S291)");
    block_on(session.close()).unwrap();
    // An override wins and is not recorded.
    let session = open(bare().model("many/m").thinking_level("high")).unwrap();
    assert_eq!(state(&session), two("many/m", "high"));
    assert_eq!(kinds(&session.tree()).len(), 4);
    block_on(session.close()).unwrap();

    // Without a level on the path: the default, and that is recorded.
    let header = r#"{"type":"session","version":3,"id":"old","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;
    write(&file, &[header, &QUESTION.replace("\"00000002\"", "null"), &ANSWER.replace("\"n\"", "\"gone\"")]);
    let session = open(bare()).unwrap();
    assert_eq!(session.state().model.as_deref(), Some("many/m"), "the first one that can be used (S292, P92)");
    assert!(session.state().model_notice.unwrap().contains("/gone cannot be used"), "and that is told");
    block_on(session.close()).unwrap();
    write(&file, &[header, &QUESTION.replace("\"00000002\"", "null"), ANSWER]);
    let session = open(bare()).unwrap();
    assert_eq!(state(&session), two("many/n", "medium"));
    assert_eq!(kinds(&session.tree()).last(), Some(&EntryKind::ThinkingLevelChange));
    block_on(session.close()).unwrap();

    // The engine's default where nothing else is said.
    write(&file, &[header, &QUESTION.replace("\"00000002\"", "null")]);
    let options = EngineOptions::default().agent_dir(setup.dir.path().join("agent")).default_model("scripted/demo");
    let engine = branchline::Engine::new(options).unwrap();
    let session = block_on(engine.open_session(&file, SessionOptions::new(""))).unwrap();
    assert_eq!(session.state().model.as_deref(), Some("scripted/demo"));
}

/// S102, S103 and the same rules: the most recent session of the directory, or a new one.
#[test]
fn continuing_the_most_recent() {
    let setup = Setup::new();
    let mut options = setup.options();
    options.model = None;
    let recent = || block_on(setup.engine.continue_recent(options.clone())).unwrap();
    let first = recent();
    assert_eq!(first.state().context_messages, 0);
    block_on(first.set_model("many/n")).unwrap();
    say(&first, "first");
    block_on(first.set_thinking_level("high")).unwrap();
    let entries = kinds(&first.tree()).len();
    block_on(first.close()).unwrap();
    let again = recent();
    assert_eq!((again.path(), again.leaf()), (first.path(), first.leaf()));
    assert_eq!(again.state().model.as_deref(), Some("many/n"));
    assert_eq!(kinds(&again.tree()).len(), entries, "nothing is recorded (S291)");
    // The level that was asked for differs; that is said with the next prompt (S296).
    assert_eq!(again.state().thinking_level, "off");
    say(&again, "again");
    assert_eq!(kinds(&again.tree())[entries], EntryKind::ThinkingLevelChange);
}
