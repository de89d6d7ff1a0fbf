//! Exploring with siblings, and going on with one of them.

#[path = "sibling_support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::time::Duration;

use branchline::message::StopReason;
use branchline::{
    AdoptOptions, BranchOptions, BranchPoint, Budget, BudgetLimit, BudgetLimits, Event, Exploration, ExploreOptions,
    ExplorePrompt, ExploreResult, Phase, Session, block_on,
};
use support::*;

fn explore<P: Into<ExplorePrompt>>(
    session: &Session,
    prompts: impl IntoIterator<Item = P>,
    options: ExploreOptions,
) -> Exploration {
    block_on(session.explore(prompts, options)).unwrap()
}

fn results(exploration: &Exploration) -> Vec<ExploreResult> {
    block_on(exploration.results()).unwrap()
}

fn code<T>(result: branchline::Result<T>) -> &'static str {
    result.err().expect("an error").code().name()
}

#[test]
fn results_come_in_the_order_of_the_prompts() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let base = session.leaf();
    let prompts = ["aa turns=4", "bb", "cc fail", "dd turns=1"];
    let exploration = explore(&session, prompts, ExploreOptions::default().limit(2));
    let numbers: Vec<u32> = exploration.siblings().iter().map(Session::sibling).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let events: Vec<Event> = std::iter::from_fn(|| block_on(exploration.next())).collect();
    let results = results(&exploration);
    let words: Vec<_> = results.iter().map(|it| (it.text.as_str(), it.stop_reason, it.is_complete())).collect();
    let (stop, error) = (Some(StopReason::Stop), Some(StopReason::Error));
    assert_eq!(words, [("aa", stop, true), ("bb", stop, true), ("", error, false), ("dd", stop, true)]);
    assert_eq!(results[2].error_message.as_deref(), Some("it does not work"));
    assert!(results.iter().all(|result| result.error.is_none() && !result.aborted));
    assert_eq!(results[0].usage.total_tokens, 5 * 11);
    assert_eq!(results.iter().map(|result| result.sibling).collect::<Vec<_>>(), numbers);

    // Each sibling's events are whole and in order, from its start to its end.
    let mut by_sibling: HashMap<u32, Vec<&Event>> = HashMap::new();
    events.iter().for_each(|event| by_sibling.entry(event.sibling()).or_default().push(event));
    assert_eq!(by_sibling.len(), 4);
    for events in by_sibling.values() {
        assert_eq!(events[0].type_name(), "agent_start");
        assert_eq!(events.last().unwrap().type_name(), "agent_settled");
        assert!(events.windows(2).all(|pair| pair[0].sequence() + 1 == pair[1].sequence()));
    }
    // Two at a time: the third begins when one is done.
    let mut running = 0;
    for event in &events {
        match event.type_name() {
            "agent_start" => running += 1,
            "agent_settled" => running -= 1,
            _ => {}
        }
        assert!((0..=2).contains(&running));
    }

    assert_eq!(session.leaf(), base);
    let lines = check_file(&session.path().unwrap());
    for (result, first) in results.iter().zip(prompts) {
        assert_eq!(result.leaf, result.session.leaf());
        let path = path_to(&lines, result.leaf.as_deref().unwrap());
        let at = path.iter().position(|entry| Some(entry["id"].as_str().unwrap()) == base.as_deref()).unwrap();
        assert_eq!(path[at + 1]["message"]["content"][0]["text"], first);
    }
    // A sibling can be asked further; the exploration is over and hears nothing of it.
    assert_eq!(say(&results[1].session, "further").text, "further");
    assert!(block_on(exploration.next()).is_none());
    assert_eq!(exploration.try_results().unwrap().unwrap().len(), 4);
}

#[test]
fn every_prompt_may_have_its_own_model() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let common = BranchOptions::default().model("many/n").thinking_level("high");
    let prompts = [ExplorePrompt::new("aa"), ExplorePrompt::new("bb").model("many/m")];
    results(&explore(&session, prompts, ExploreOptions::default().branch(common)));
    let asked = |word: &str| setup.model.asked(word).swap_remove(0);
    assert_eq!((asked("aa").model.id.as_str(), asked("bb").model.id.as_str()), ("n", "m"));
    assert!(["aa", "bb"].iter().all(|word| asked(word).thinking_level == "high"));
    // Nothing is run when one cannot be.
    let prompts = [ExplorePrompt::new("cc"), ExplorePrompt::new("dd").model("nobody/x")];
    assert_eq!(code(block_on(session.explore(prompts, ExploreOptions::default()))), "unknown_model");
    assert_eq!(code(block_on(session.explore(["x"], ExploreOptions::default().at("nowhere")))), "entry_not_found");
    assert_eq!(code(block_on(session.explore([] as [&str; 0], ExploreOptions::default()))), "invalid_argument");
    assert!(setup.model.asked("cc").is_empty());
}

/// The siblings share one budget, and the session itself does not spend it.
#[test]
fn an_exploration_has_a_budget_of_its_own() {
    let setup = Setup::new();
    let own = Budget::new(BudgetLimits::default().requests(100));
    let session = block_on(setup.engine.create_session(setup.options().budget(&own))).unwrap();
    say(&session, "base");
    let (budget, one) =
        (Budget::new(BudgetLimits::default().requests(5)), Budget::new(BudgetLimits::default().turns(1)));
    let prompts = [
        ExplorePrompt::new("aa turns=1"),
        ExplorePrompt::new("bb turns=1").branch(BranchOptions::default().budget(&one)),
        ExplorePrompt::new("cc turns=3"),
        ExplorePrompt::new("dd"),
    ];
    let results = results(&explore(&session, prompts, ExploreOptions::default().limit(1).budget(&budget)));
    let limits: Vec<_> = results.iter().map(|it| it.budget_exceeded.map(|over| over.limit)).collect();
    let requests = Some(BudgetLimit::Requests);
    assert_eq!(limits, [None, Some(BudgetLimit::Turns), requests, requests]);
    assert!(results[0].is_complete() && results[1..].iter().all(|it| !it.is_complete() && it.error.is_none()));
    assert_eq!((budget.used().requests, one.used().requests, own.used().requests), (5, 1, 6));
    assert_eq!(setup.model.asked("cc").len(), 2);
    assert!(setup.model.asked("dd").is_empty());
    assert_eq!(say(&session, "after").text, "after");
}

#[test]
fn at_an_earlier_entry_and_from_an_empty_session() {
    let setup = Setup::new();
    let session = setup.session();
    let from_nothing = results(&explore(&session, ["aa", "bb"], ExploreOptions::default()));
    assert!(from_nothing.iter().all(ExploreResult::is_complete));
    say(&session, "one");
    let early = session.leaf().unwrap();
    say(&session, "two");
    let exploration = explore(&session, ["cc", "dd"], ExploreOptions::default().at(&early));
    let results = results(&exploration);
    let lines = check_file(&session.path().unwrap());
    for result in &results {
        let path = path_to(&lines, result.leaf.as_deref().unwrap());
        assert_eq!(path[path.len() - 3]["id"], early.as_str());
    }
}

#[test]
fn aborting_one_and_all() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let prompts = ["aa hang", "bb hang", "cc", "dd hang", "ee"];
    let exploration = explore(&session, prompts, ExploreOptions::default().limit(2));
    let siblings = exploration.siblings().to_vec();
    until("two", || siblings.iter().filter(|it| it.state().running).count() == 2 && siblings[1].state().running);
    assert_eq!(code(exploration.abort_one(5)), "invalid_argument");
    exploration.abort_one(0).unwrap();
    exploration.abort_one(4).unwrap(); // before it had its turn
    // The next one comes up, ends, and lets the fourth begin; the second never notices.
    until("the fourth", || siblings[3].state().running);
    assert!(siblings[1].state().running);
    block_on(exploration.abort());
    assert!(siblings.iter().all(|sibling| sibling.state().phase == Phase::Idle));
    let results = results(&exploration);
    let aborted: Vec<bool> = results.iter().map(|result| result.aborted).collect();
    assert_eq!(aborted, [true, true, false, true, true]);
    assert_eq!(results[0].text, "partial");
    assert_eq!(results[2].text, "cc");
    assert_eq!(results[4].error.as_ref().unwrap().code().name(), "cancelled");
    assert!(setup.model.asked("ee").is_empty());
    assert_eq!(results[4].leaf, session.leaf());
    let lines = check_file(&session.path().unwrap());
    assert_eq!(lines.iter().filter(|line| line["message"]["stopReason"] == "aborted").count(), 3);
}

#[test]
fn dropping_an_exploration_aborts_it() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let exploration = explore(&session, ["aa hang", "bb hang"], ExploreOptions::default());
    let siblings = exploration.siblings().to_vec();
    until("both", || siblings.iter().all(|sibling| sibling.state().running));
    drop(exploration);
    until("the end", || siblings.iter().all(|sibling| sibling.state().phase == Phase::Idle));
    let file = session.path().unwrap();
    drop((siblings, session));
    until("the lock", || block_on(setup.engine.open_session(&file, branchline::SessionOptions::new(""))).is_ok());
}

/// An exploration that is not read holds its siblings, with bounded memory, and nobody else.
#[test]
fn an_unread_exploration_waits() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let options = ExploreOptions::default().limit(8).capacity(16);
    let exploration = explore(&session, (0..8).map(|n| format!("s{n} long turns=2")), options);
    until("a full queue", || exploration.events().len() >= 16);
    assert_eq!(say(&session, "parent").text, "parent");
    std::thread::sleep(Duration::from_millis(50));
    assert!(exploration.events().len() <= 16 + 8, "{}", exploration.events().len());
    assert!(exploration.try_results().is_none());
    // Read slowly, everything arrives.
    let mut heard: HashMap<u32, usize> = HashMap::new();
    while let Some(event) = block_on(exploration.next()) {
        *heard.entry(event.sibling()).or_default() += event.text_delta().map_or(0, str::len);
    }
    assert_eq!(heard.len(), 8);
    assert!(heard.values().all(|length| *length == 400), "{heard:?}");
    assert!(results(&exploration).iter().all(ExploreResult::is_complete));
}

#[test]
fn shutting_down_ends_an_exploration() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let exploration = explore(&session, ["aa hang", "bb", "cc"], ExploreOptions::default().limit(1));
    until("the first", || exploration.siblings()[0].state().running);
    block_on(setup.engine.shutdown());
    exploration.events().discard();
    if let Ok(results) = block_on(exploration.results()) {
        assert!(results[0].aborted);
        // The others did not come up, unless one was faster than the end.
        assert!(results[1..].iter().all(|it| it.error.as_ref().is_none_or(|error| error.code().name() == "closed")));
    }
    check_file(&session.path().unwrap());
}

#[test]
fn adopting_moves_the_parent() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let results = results(&explore(&session, ["aa turns=1", "bb"], ExploreOptions::default()));
    let before = check_file(&session.path().unwrap()).len();
    let moved = block_on(session.adopt(&results[0].session, AdoptOptions::default())).unwrap();
    assert_eq!((moved.leaf.as_ref(), moved.summary_entry), (results[0].leaf.as_ref(), None));
    assert_eq!(session.leaf(), results[0].leaf);
    assert_eq!(check_file(&session.path().unwrap()).len(), before, "moving writes nothing (S45)");
    assert!(setup.model.summaries().is_empty());
    say(&session, "next");
    let request = setup.model.asked("next").swap_remove(0);
    let said: Vec<String> = request.messages.iter().map(|message| message.text("")).collect();
    assert!(said.contains(&"aa turns=1".to_owned()) && !said.contains(&"bb".to_owned()));
    // Its own place, too, and that of a sibling that said nothing.
    let fresh = block_on(session.branch(BranchPoint::Start, BranchOptions::default())).unwrap();
    block_on(session.adopt(&session, AdoptOptions::default())).unwrap();
    assert_eq!(block_on(session.adopt(&fresh, AdoptOptions::default())).unwrap().leaf, None);
}

#[test]
fn adopting_with_one_summary_of_the_others() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let base = session.leaf().unwrap();
    let prompts = ["aa turns=1", "bb turns=2", "cc fail", "dd"];
    let mut results = results(&explore(&session, prompts, ExploreOptions::default()));
    say(&session, "own"); // the parent's own line since then is left, too
    let own = session.leaf().unwrap();
    drop(results.remove(3)); // a closed sibling counts as well
    let options = AdoptOptions::default().summarize_others(true).instructions("the tests");
    let moved = block_on(session.adopt(&results[0].session, options)).unwrap();
    let requests = setup.model.summaries();
    assert_eq!(requests.len(), 1);
    let text = requests[0].messages.last().unwrap().text("");
    assert!(text.contains("[User]: bb turns=2") && text.contains("[User]: cc fail"));
    assert!(text.contains("[User]: dd") && text.contains("[User]: own"));
    assert!(!text.contains("aa turns=1") && !text.contains("base"));
    assert_eq!(text.matches("<line number=").count(), 4);
    assert!(text.ends_with("Additional focus: the tests"));
    assert!(requests[0].tools.is_empty());

    let lines = check_file(&session.path().unwrap());
    let entry = lines.last().unwrap();
    assert_eq!(entry["type"], "branch_summary");
    assert_eq!(entry["id"].as_str(), moved.summary_entry.as_deref());
    assert_eq!(entry["parentId"].as_str(), results[0].leaf.as_deref());
    assert_eq!(entry["fromId"], own.as_str());
    assert_eq!(entry["fromHook"], false);
    assert_eq!(entry["usage"]["totalTokens"], 11);
    assert_eq!(entry["details"], serde_json::json!({"readFiles": [], "modifiedFiles": []}));
    assert!(entry["summary"].as_str().unwrap().ends_with("SUMMARY"));
    assert_eq!(session.leaf(), moved.summary_entry);
    assert_eq!(lines.iter().filter(|line| line["type"] == "branch_summary").count(), 1);
    // The model is told.
    say(&session, "next");
    let request = setup.model.asked("next").swap_remove(0);
    assert!(request.messages.iter().any(|message| message.text("").contains("SUMMARY")));
    assert_eq!(path_to(&lines, &base).len() + 4 + 1, path_to(&lines, entry["id"].as_str().unwrap()).len());
}

#[test]
fn siblings_made_by_hand_are_others_too() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let early = session.leaf().unwrap();
    let make = |at: BranchPoint| block_on(session.branch(at, BranchOptions::default())).unwrap();
    let (a, b, idle) = (make(BranchPoint::Leaf), make(BranchPoint::Leaf), make(BranchPoint::Leaf));
    let elsewhere = make(BranchPoint::Start);
    [(&a, "aa"), (&b, "bb"), (&elsewhere, "cc")].iter().for_each(|(it, word)| drop(say(it, word)));
    block_on(session.adopt(&a, AdoptOptions::default().summarize_others(true))).unwrap();
    let text = setup.model.summaries().pop().unwrap().messages.last().unwrap().text("");
    assert!(text.contains("[User]: bb") && !text.contains("[User]: cc") && !text.contains("[User]: aa"));
    // Said explicitly.
    let others = AdoptOptions::default().summarize_others(true).others([elsewhere.leaf().unwrap()]);
    block_on(session.adopt(&b, others)).unwrap();
    let text = setup.model.summaries().pop().unwrap().messages.last().unwrap().text("");
    assert!(text.contains("[User]: cc"));
    // Nobody said anything: there is nothing to summarise.
    let (c, d) = (make(BranchPoint::Leaf), make(BranchPoint::Leaf));
    let asked = setup.model.summaries().len();
    let moved = block_on(session.adopt(&c, AdoptOptions::default().summarize_others(true))).unwrap();
    assert_eq!((moved.summary_entry, setup.model.summaries().len()), (None, asked));
    drop((d, idle, early));
}

#[test]
fn what_cannot_be_adopted() {
    let setup = Setup::new();
    let session = setup.session();
    say(&session, "base");
    let make = || block_on(session.branch(BranchPoint::Leaf, BranchOptions::default())).unwrap();
    let (winner, other) = (make(), make());
    let adopt = |winner: &Session, options: AdoptOptions| block_on(session.adopt(winner, options));
    let plain = AdoptOptions::default;
    assert_eq!(code(adopt(&setup.session(), plain())), "invalid_argument");
    let run = begin(&winner, "aa hang");
    assert_eq!(code(adopt(&winner, plain())), "running");
    block_on(winner.abort()).unwrap();
    drop(run);
    let run = begin(&session, "parent hang");
    assert_eq!(code(adopt(&winner, plain())), "running");
    block_on(session.abort()).unwrap();
    drop(run);
    let nowhere = plain().summarize_others(true).others(["nowhere"]);
    assert_eq!(code(adopt(&winner, nowhere)), "entry_not_found");
    // Aborted: nothing has changed.
    say(&other, "bb");
    let before = (session.leaf(), check_file(&session.path().unwrap()).len());
    let (theirs, best) = (session.clone(), winner.clone());
    let options = plain().summarize_others(true).instructions("hang-summary");
    let adopting = std::thread::spawn(move || block_on(theirs.adopt(&best, options)));
    until("the summary", || session.state().phase == Phase::Compacting);
    assert_eq!(code(adopt(&winner, plain())), "compacting");
    session.abort_summary();
    let moved = adopting.join().unwrap().unwrap();
    assert!(moved.cancelled && moved.summary_entry.is_none());
    assert_eq!((session.leaf(), check_file(&session.path().unwrap()).len()), before);
    // A closed winner is as good as an open one.
    block_on(winner.close()).unwrap();
    assert_eq!(adopt(&winner, plain()).unwrap().leaf, winner.leaf());
    block_on(session.close()).unwrap();
    assert_eq!(code(adopt(&winner, plain())), "closed");
}
