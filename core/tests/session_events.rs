//! Event queues: bounded, merged only where text grows, pollable, never in the way of the session (S195, S201).

#[path = "session_support/mod.rs"]
mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use branchline::{Event, Events, PromptOptions, Run, RunResult, Session, SubscribeOptions, block_on};
use serde_json::{Value, json};
use support::*;

#[test]
fn handles_go_anywhere() {
    fn anywhere<T: Send + Sync + 'static>() {}
    anywhere::<branchline::Engine>();
    anywhere::<Session>();
    anywhere::<Run>();
    anywhere::<Events>();
    anywhere::<Event>();
    anywhere::<RunResult>();
    fn sends<T: Send>(_: T) {}
    let never = |session: &Session| sends(session.prompt("x", PromptOptions::default()));
    let _ = never;
}

/// 200,000 characters in deltas of four, to a reader that reads nothing for a while: the queue stays as long as it may
/// be, and every character arrives.
#[test]
fn a_slow_subscriber_gets_merged_deltas_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let text: String = (0..50_000).map(|n| format!("{:03} ", n % 1000)).collect();
    let script = json!([{"content": [{"type": "text", "text": text}], "chunk": 4}]);
    let (session, _) = scripted(&engine, dir.path(), script);
    let events = session.subscribe(SubscribeOptions::default().capacity(16));
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    drop(run);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(session.state().phase, branchline::Phase::Running, "the session waits for its reader");
    let batch = block_on(events.next_batch(1000));
    assert!(batch.len() <= 18, "{}", batch.len());
    let mut all = batch;
    all.extend(until_settled(&events));
    let heard: String = all.iter().filter_map(Event::text_delta).collect();
    assert!(heard == text, "every character once, in order");
    let longest = all.iter().filter_map(Event::text_delta).map(str::len).max().unwrap();
    assert!((1000..=20_000).contains(&longest), "{longest}");
    assert!(all.windows(2).all(|pair| pair[0].sequence() < pair[1].sequence()));
    let ends = all.iter().filter(|event| event.type_name() == "message_end").count();
    assert_eq!(ends, 3, "nothing but deltas is merged");
}

#[test]
fn a_dropped_subscriber_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let content: Vec<Value> = (0..50).map(|n| json!({"type": "text", "text": format!("block {n}")})).collect();
    let (session, _) = scripted(&engine, dir.path(), json!([{"content": content}]));
    let events = session.subscribe(SubscribeOptions::default().capacity(1));
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    drop(events);
    assert!(block_on(run.result()).is_ok());
}

/// One session's slow reader is not another session's business.
#[test]
fn sessions_do_not_wait_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let script = json!([{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]);
    let (stuck, _) = scripted(&engine, dir.path(), script.clone());
    let unread = stuck.subscribe(SubscribeOptions::default().capacity(1));
    let stuck_run = block_on(stuck.prompt("go", PromptOptions::default())).unwrap();
    let (free, _) = scripted(&engine, dir.path(), script);
    let run = block_on(free.prompt("go", PromptOptions::default())).unwrap();
    assert_eq!(block_on(run.result()).unwrap().text, "a\nb");
    assert_eq!(stuck.state().phase, branchline::Phase::Running);
    drop(unread);
    block_on(stuck_run.result()).unwrap();
}

/// Notes that the reader is woken, and whether it was when the caller is.
#[derive(Default)]
struct Order {
    reader: AtomicBool,
    caller_first: AtomicBool,
}

struct Reader(Arc<Order>);

impl Wake for Reader {
    fn wake(self: Arc<Self>) {
        self.0.reader.store(true, Ordering::SeqCst);
    }
}

struct Caller(Arc<Order>, std::thread::Thread);

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        if !self.0.reader.load(Ordering::SeqCst) {
            self.0.caller_first.store(true, Ordering::SeqCst);
        }
        self.1.unpark();
    }
}

/// Waits for a call and says whether it was answered before the reader of `events`, which waits, was woken.
fn answered_first<T>(events: &Events, meanwhile: impl FnOnce(), call: impl Future<Output = T>) -> (T, bool) {
    let order = Arc::new(Order::default());
    let reader = Waker::from(Arc::new(Reader(order.clone())));
    let mut reading = pin!(events.next());
    assert!(reading.as_mut().poll(&mut Context::from_waker(&reader)).is_pending());
    let caller = Waker::from(Arc::new(Caller(order.clone(), std::thread::current())));
    let mut call = pin!(call);
    let mut meanwhile = Some(meanwhile);
    loop {
        if let Poll::Ready(value) = call.as_mut().poll(&mut Context::from_waker(&caller)) {
            return (value, order.caller_first.load(Ordering::SeqCst));
        }
        if let Some(begin) = meanwhile.take() {
            begin();
        }
        std::thread::park();
    }
}

/// A host may end, or let go of its reader, when a call is answered: what the call caused must be on its way by then.
#[test]
fn readers_are_woken_before_who_waits_for_a_call() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let gated = |gate: &str| json!({"content": [{"type": "text", "text": "x"}], "waitGate": gate});
    let (session, control) = scripted(&engine, dir.path(), json!([gated("a"), gated("b")]));
    let events = session.subscribe(SubscribeOptions::default());
    let begin = |request| {
        let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
        block_on(control.reached(request));
        std::thread::sleep(Duration::from_millis(20)); // until the session waits
        while events.try_next().is_some() {}
        run
    };
    let drain = || while events.try_next().is_some() {};

    let (named, first) = answered_first(&events, || (), session.set_name("a name"));
    named.unwrap();
    assert!(!first, "the answer of a command");
    drain();
    let run = begin(0);
    let (result, first) = answered_first(&events, || control.gates().open("a"), run.result());
    result.unwrap();
    assert!(!first, "the result of a run");
    drain();
    let _run = begin(1);
    let (idle, first) = answered_first(&events, || control.gates().open("b"), session.wait_idle());
    idle.unwrap();
    assert!(!first, "an idle session");
    drain();
    let (refused, first) = answered_first(&events, || (), session.compact(None));
    assert!(refused.is_err() && !first, "a compaction");
}

#[test]
fn waiting_without_async_and_by_descriptor() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (session, control) =
        scripted(&engine, dir.path(), json!([{"content": [{"type": "text", "text": "x"}], "waitGate": "g"}]));
    let events = session.subscribe(SubscribeOptions::default());
    assert_eq!(events.next_timeout(Duration::from_millis(20)).unwrap_err().code().name(), "timeout");
    let fd = events.fd().unwrap();
    assert_eq!(fd, events.fd().unwrap());
    let readable = |wait: i64| {
        // SAFETY: the descriptor lives as long as `events`, which outlives this closure.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let time = rustix::event::Timespec { tv_sec: wait, tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&time)).unwrap() == 1
    };
    assert!(!readable(0));
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    assert!(readable(5));
    block_on(control.reached(0));
    while events.try_next().is_some() {}
    assert!(!readable(0));
    control.gates().open("g");
    block_on(run.result()).unwrap();
    assert!(readable(5));
    until_settled(&events);
    assert!(!readable(0));
    block_on(session.close()).unwrap();
    assert!(readable(5), "the end is readable");
    assert!(events.next_timeout(Duration::ZERO).unwrap().is_none());
}

#[test]
fn the_wire_form_of_events() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    std::fs::write(dir.path().join("a.txt"), "hi").unwrap();
    let script = json!([
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a\u{2028}b"},
            {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.txt"}}]},
        {"content": [{"type": "text", "text": "ok"}]}
    ]);
    let (session, _) = scripted(&engine, dir.path(), script);
    let run = block_on(session.prompt("go", PromptOptions::default())).unwrap();
    let events = until_settled(run.events());
    let json: Vec<String> = events.iter().map(Event::to_json).collect();
    let usage = r#""usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
    let update = |inner: &str| format!(r#"{{"type":"message_update",{usage},"assistantMessageEvent":{inner}}}"#);
    let expected = [
        r#"{"type":"agent_start"}"#.to_owned(),
        update(r#"{"type":"thinking_start","contentIndex":0}"#),
        update(r#"{"type":"thinking_delta","contentIndex":0,"delta":"hm"}"#),
        update(r#"{"type":"thinking_end","contentIndex":0,"content":"hm"}"#),
        update("{\"type\":\"text_delta\",\"contentIndex\":1,\"delta\":\"a\u{2028}b\"}"),
        update(r#"{"type":"toolcall_start","contentIndex":2,"id":"c1","toolName":"read"}"#),
        update(r#"{"type":"toolcall_delta","contentIndex":2,"delta":"{\"path\":\"a.txt\"}"}"#),
        update(
            r#"{"type":"toolcall_end","contentIndex":2,"toolCall":{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a.txt"}}}"#,
        ),
        r#"{"type":"tool_execution_start","toolCallId":"c1","toolName":"read","args":{"path":"a.txt"}}"#.to_owned(),
        r#"{"type":"agent_settled","aborted":false}"#.to_owned(),
    ];
    for expected in expected {
        assert!(json.contains(&expected), "{expected}\n{}", json.join("\n"));
    }
    let end = json.iter().find(|line| line.starts_with(r#"{"type":"tool_execution_end""#)).unwrap();
    let start = r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"read","result":{"content":[{"type":"text","text":"hi"}],"structuredContent":"hi"},"isError":false,"durationMs":"#;
    assert!(end.starts_with(start), "{end}");
    // What ended is what was stored, byte for byte.
    let file = std::fs::read_to_string(session.path().unwrap()).unwrap();
    for line in json.iter().filter(|line| line.starts_with(r#"{"type":"message_end""#)) {
        let message = line.strip_prefix(r#"{"type":"message_end","message":"#).unwrap().strip_suffix('}').unwrap();
        assert!(file.contains(&format!(r#""message":{message}}}"#)), "{message}");
    }
}
