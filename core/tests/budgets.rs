//! Hard limits of what sessions may spend: checked before a request, told by an event of their own, and lifted again.

#[path = "session_support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use branchline::providers::Model;
use branchline::providers::scripted::{Script, ScriptedProvider};
use branchline::{
    Budget, BudgetLimit, BudgetLimits, EventKind, NavigateOptions, Phase, PromptOptions, RunResult, Session,
    SessionOptions, block_on,
};
use serde_json::{Value, json};
use support::*;

fn go(session: &Session) -> (RunResult, Vec<String>) {
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let told = shapes(&until_settled(run.events()));
    (block_on(run.result()).unwrap(), told)
}

/// A model that asks for the same tool again and again.
fn endless() -> Value {
    json!({"replies": [{"content": [{"type": "toolCall", "id": "c", "name": "ls", "arguments": {}}]}], "atEnd": "loop"})
}

fn stopped(result: &RunResult) -> Option<(BudgetLimit, f64, f64)> {
    result.budget_exceeded.map(|over| (over.limit, over.used, over.max))
}

#[test]
fn requests_are_counted_before_they_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let budget = Budget::new(BudgetLimits::default().requests(2));
    let (session, control) =
        scripted_with(&engine, dir.path(), endless(), |options| options.budget(&budget).tools(["ls"]));
    let (result, told) = go(&session);
    assert_eq!(stopped(&result), Some((BudgetLimit::Requests, 3.0, 2.0)));
    assert!(!result.aborted && result.error_message.unwrap().starts_with("Budget exceeded"));
    assert_eq!(control.requests().len(), 2, "the third was not sent");
    let tail: Vec<&str> = told.iter().rev().take(6).rev().map(String::as_str).collect();
    assert_eq!(
        tail,
        [
            "budget_exceeded",
            "message_start assistant error",
            "message_end assistant error",
            "turn_end 0",
            "agent_end assistant",
            "agent_settled false"
        ]
    );
    // Nothing is spent, nothing is sent; then there is room again.
    assert_eq!(stopped(&go(&session).0), Some((BudgetLimit::Requests, 3.0, 2.0)));
    assert_eq!(session.state().phase, Phase::Idle);
    budget.set_limits(budget.limits().requests(3));
    assert_eq!(stopped(&go(&session).0), Some((BudgetLimit::Requests, 4.0, 3.0)));
    assert_eq!((control.requests().len(), budget.used().requests, budget.used().turns), (3, 3, 3));
}

#[test]
fn turns_and_tokens_are_limited() {
    for (limits, expected) in [
        (BudgetLimits::default().turns(1), (BudgetLimit::Turns, 2.0, 1.0)),
        // 110 a response, and what the next prompt holds on top.
        (BudgetLimits::default().tokens(150), (BudgetLimit::Tokens, 0.0, 150.0)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let budget = Budget::new(limits);
        let (session, control) = scripted_with(&engine, dir.path(), endless(), |options| {
            options.budget(&budget).tools(["ls"]).system_prompt("x")
        });
        let (limit, used, max) = stopped(&go(&session).0).unwrap();
        assert_eq!((limit, max), (expected.0, expected.2));
        assert!(used > max && (expected.1 == 0.0 || used == expected.1));
        assert_eq!(control.requests().len(), 1);
    }
}

#[test]
fn retries_and_summaries_count() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let settings = json!({"retry": {"baseDelayMs": 1, "maxRetries": 5}}).as_object().unwrap().clone();
    let settings = branchline::resources::settings::Settings::from_values(settings);
    let budget = Budget::new(BudgetLimits::default().requests(3));
    let script = json!({"replies": [{"content": [], "stop": "error", "error": "503 overloaded"}], "atEnd": "loop"});
    let (session, control) =
        scripted_with(&engine, dir.path(), script, |options| options.budget(&budget).settings(settings));
    let (result, told) = go(&session);
    assert_eq!(stopped(&result), Some((BudgetLimit::Requests, 4.0, 3.0)));
    assert_eq!(control.requests().len(), 3);
    // A number that looks like a status is no reason to try again.
    budget.set_limits(BudgetLimits::default().requests(budget.used().requests));
    assert_eq!(told.iter().filter(|it| it.starts_with("auto_retry_start")).count(), 3);
    // A summary is a request, too.
    let user = session.tree().branch(session.leaf().as_deref()).ids().nth(3).unwrap();
    let error = block_on(session.navigate(&user, NavigateOptions::default().summarize(true))).unwrap_err();
    assert_eq!(error.code().name(), "budget_exceeded");
    assert_eq!(control.requests().len(), 3);
    assert_eq!(session.state().phase, Phase::Idle);
}

#[test]
fn a_limit_that_reads_like_a_status_is_not_retried() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let budget = Budget::new(BudgetLimits::default().tokens(503));
    let script =
        json!({"replies": [{"content": [{"type": "text", "text": "x"}], "usage": {"input": 503}}], "atEnd": "loop"});
    let (session, _) = scripted_with(&engine, dir.path(), script, |options| {
        options.budget(&budget).system_prompt("x").tools(Vec::<String>::new())
    });
    assert_eq!(go(&session).0.budget_exceeded, None);
    let (result, told) = go(&session);
    assert_eq!(result.budget_exceeded.unwrap().limit, BudgetLimit::Tokens);
    assert!(!told.iter().any(|it| it.starts_with("auto_retry")), "{told:?}");
}

fn priced(engine: &branchline::Engine, dir: &std::path::Path, input: f64, budget: &Budget) -> Session {
    let provider = ScriptedProvider::new("paid");
    let script =
        json!({"replies": [{"content": [{"type": "text", "text": "x"}], "usage": {"input": 1000}}], "atEnd": "loop"});
    let mut model = Model::new("paid", "m", "a");
    model.prices.rates.input = input;
    provider.add([model], &Script::from_value(script).unwrap());
    engine.add_provider(std::sync::Arc::new(provider));
    let options = SessionOptions::new(dir).in_memory(true).model("paid/m").system_prompt("x").budget(budget);
    block_on(engine.create_session(options)).unwrap()
}

#[test]
fn cost_is_limited_and_an_unknown_price_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    // A thousand tokens cost a dollar.
    let budget = Budget::new(BudgetLimits::default().cost(1.5));
    let session = priced(&engine, dir.path(), 1000.0, &budget);
    assert_eq!(go(&session).0.budget_exceeded, None);
    assert_eq!(budget.used().cost, 1.0);
    let over = go(&session).0.budget_exceeded.unwrap();
    assert_eq!((over.limit, over.max, over.price_unknown), (BudgetLimit::Cost, 1.5, false));

    let budget = Budget::new(BudgetLimits::default().cost(1000.0));
    let session = priced(&engine, dir.path(), 0.0, &budget);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let events = until_settled(run.events());
    let told = events.iter().find(|event| event.type_name() == "budget_exceeded").unwrap();
    let told: Value = serde_json::from_str(&told.to_json()).unwrap();
    assert_eq!(told, json!({"type": "budget_exceeded", "limit": "cost", "used": 0, "max": 1000, "priceUnknown": true}));
    budget.set_limits(budget.limits().ignore_unknown_prices(true));
    assert_eq!(go(&session).0.budget_exceeded, None);
    assert_eq!(budget.used().unpriced_requests, 1);
}

#[test]
fn several_sessions_share_one() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let budget = Budget::new(BudgetLimits::default().requests(7));
    let sessions: Vec<Session> = (0..4)
        .map(|_| {
            scripted_with(&engine, dir.path(), endless(), |options| {
                options.budget(&budget).tools(["ls"]).in_memory(true)
            })
            .0
        })
        .collect();
    let runs: Vec<_> =
        sessions.iter().map(|session| block_on(session.prompt("go", PromptOptions::default())).unwrap()).collect();
    for run in &runs {
        assert_eq!(block_on(run.result()).unwrap().budget_exceeded.unwrap().limit, BudgetLimit::Requests);
    }
    assert_eq!(budget.used().requests, 7);
}

#[test]
fn time_that_is_up_stops_what_is_under_way() {
    let hanging = json!([{"content": [{"type": "text", "text": "partial"}], "hang": true}]);
    let sleeping =
        json!([{"content": [{"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "sleep 60"}}]}]);
    for script in [hanging, sleeping] {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine(dir.path());
        let budget = Budget::new(BudgetLimits::default().wall_time(Duration::from_millis(150)));
        let (session, _) = scripted_with(&engine, dir.path(), script, |options| options.budget(&budget));
        let begun = Instant::now();
        let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
        let events = until_settled(run.events());
        assert!(begun.elapsed() < Duration::from_secs(15));
        let result = block_on(run.result()).unwrap();
        assert_eq!(result.budget_exceeded.unwrap().limit, BudgetLimit::WallTime);
        assert!(!result.aborted);
        assert_eq!(events.iter().filter(|it| it.type_name() == "budget_exceeded").count(), 1);
        assert!(matches!(events.last().unwrap().kind(), EventKind::AgentSettled { aborted: false }));
        // Idle time costs nothing, and with more of it the session goes on.
        let used = budget.used().wall_time;
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(budget.used().wall_time, used);
        budget.set_limits(BudgetLimits::default());
        assert_eq!(go(&session).0.budget_exceeded, None);
    }
}

#[test]
fn an_abort_stays_an_abort() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let budget = Budget::new(BudgetLimits::default().requests(1));
    let script = json!([{"content": [{"type": "text", "text": "partial"}], "hang": true}]);
    let (session, control) = scripted_with(&engine, dir.path(), script, |options| options.budget(&budget));
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    block_on(control.reached(0));
    block_on(session.abort()).unwrap();
    let result = block_on(run.result()).unwrap();
    assert!(result.aborted && result.budget_exceeded.is_none());
}
