//! One thread that drives every future of an environment.
//!
//! They only wait on channels, so one thread is enough, and none of the engine's workers is ever held by Node.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use async_channel::{Receiver, Sender};
use branchline::{Error, ErrorCode, Result};
use futures::StreamExt;
use futures::stream::FuturesUnordered;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) struct Executor {
    tasks: Sender<Task>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Executor {
    pub(crate) fn new() -> Result<Executor> {
        let (tasks, inbox) = async_channel::unbounded();
        let thread = std::thread::Builder::new()
            .name("branchline-node".into())
            .spawn(move || branchline::block_on(work(inbox)))
            .map_err(|error| Error::new(ErrorCode::Internal, format!("cannot start a thread: {error}")))?;
        Ok(Executor { tasks, thread: Mutex::new(Some(thread)) })
    }

    /// Starts a future. After [`end`](Executor::end) it is dropped.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let _ = self.tasks.try_send(Box::pin(task));
    }

    /// Drops all futures and waits for the thread. Idempotent.
    pub(crate) fn end(&self) {
        self.tasks.close();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

async fn work(inbox: Receiver<Task>) {
    let mut inbox = std::pin::pin!(inbox);
    let mut tasks = FuturesUnordered::new();
    let step = |cx: &mut Context<'_>| {
        // The inbox first: a task that is added wakes nobody.
        while let Poll::Ready(task) = inbox.poll_next_unpin(cx) {
            match task {
                Some(task) => tasks.push(task),
                None => return Poll::Ready(()),
            }
        }
        while let Poll::Ready(Some(())) = tasks.poll_next_unpin(cx) {}
        Poll::Pending
    };
    poll_fn(step).await;
}
