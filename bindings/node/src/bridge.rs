//! One environment's connection: the way outcomes take, the thread that drives calls, the engines to shut down.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::time::Duration;

use branchline::{Error, ErrorCode, Result};
use futures::FutureExt;
use futures::future::join_all;
use napi::bindgen_prelude::{FnArgs, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status, sys};
use napi_derive::napi;

use crate::engine::{Engine, Lifeline};
use crate::executor::Executor;
use crate::failure;
use crate::outcome::{Outcome, check_text};
use crate::policy::{Budget, Budgets};
use crate::replay::Replays;
use crate::tools::{Desk, ToolDesk};

/// How long the end of an environment may wait for its sessions: long enough to end the processes of running tools,
/// short enough that nobody takes an exit for a hang.
const GRACE: Duration = Duration::from_secs(2);

type Answer = (u32, Option<String>, Outcome);
/// Weak: it never keeps the process alive unless [`Bridge::refer`] says so. Its queue is unbounded, so a call never
/// waits for the JavaScript thread; there are at most as many answers as open tickets.
type Port = ThreadsafeFunction<Answer, (), FnArgs<Answer>, Status, false, true, 0>;

/// What every native object of an environment shares.
pub(crate) struct Shared {
    port: Port,
    executor: Executor,
    engines: Mutex<Vec<Weak<Lifeline>>>,
    limit: AtomicUsize,
    /// Requests to tools of the environment.
    pub(crate) desk: Desk,
    pub(crate) budgets: Budgets,
    pub(crate) replays: Replays,
}

impl Shared {
    /// Drives a call; its outcome goes to the holder of the ticket.
    pub(crate) fn start(self: &Arc<Self>, ticket: u32, call: impl Future<Output = Result<Outcome>> + Send + 'static) {
        let shared = self.clone();
        self.executor.spawn(async move {
            let result = AssertUnwindSafe(call).catch_unwind().await;
            shared.answer(ticket, result.unwrap_or_else(|payload| Err(failure::panicked(&*payload))));
        });
    }

    /// Like [`start`](Shared::start) for work that reads files: on a thread of its own.
    pub(crate) fn start_blocking(
        self: &Arc<Self>,
        ticket: u32,
        work: impl FnOnce() -> Result<Outcome> + Send + 'static,
    ) {
        let (sender, receiver) = async_channel::bounded(1);
        let spawned = std::thread::Builder::new().name("branchline-read".into()).spawn(move || {
            let result = std::panic::catch_unwind(AssertUnwindSafe(work));
            let _ = sender.try_send(result.unwrap_or_else(|payload| Err(failure::panicked(&*payload))));
        });
        self.start(ticket, async move {
            spawned.map_err(|error| Error::new(ErrorCode::Internal, format!("cannot start a thread: {error}")))?;
            receiver.recv().await.unwrap_or_else(|_| Err(Error::new(ErrorCode::Internal, "a thread was lost")))
        });
    }

    fn answer(&self, ticket: u32, result: Result<Outcome>) {
        let answer = match result.and_then(|outcome| outcome.checked(self.limit())) {
            Ok(outcome) => (ticket, None, outcome),
            Err(error) => (ticket, Some(failure::to_json(&error)), Outcome::Nothing),
        };
        // An environment that is ending refuses it, and nobody waits any more.
        self.port.call(answer, ThreadsafeFunctionCallMode::NonBlocking);
    }

    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// The text, if it can become a JavaScript string.
    pub(crate) fn text(&self, text: String) -> Result<String> {
        check_text(&text, self.limit()).map(|()| text)
    }

    pub(crate) fn register(&self, engine: &Arc<Lifeline>) {
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.retain(|known| known.strong_count() > 0);
        engines.push(Arc::downgrade(engine));
    }

    /// The environment ends: closes what is open, within limits, then drops all calls. Idempotent.
    fn end(&self) {
        let engines = std::mem::take(&mut *self.engines.lock().unwrap_or_else(PoisonError::into_inner));
        let engines: Vec<_> = engines.iter().filter_map(Weak::upgrade).collect();
        if !engines.is_empty() {
            let (done, wait) = mpsc::channel();
            let shutdown = move || {
                branchline::block_on(join_all(engines.iter().map(|engine| engine.engine.shutdown())));
                let _ = done.send(());
            };
            if std::thread::Builder::new().name("branchline-end".into()).spawn(shutdown).is_ok() {
                let _ = wait.recv_timeout(GRACE);
            }
        }
        self.desk.end();
        self.executor.end();
    }
}

#[napi]
pub struct Bridge {
    shared: Arc<Shared>,
}

#[napi]
impl Bridge {
    /// `answer` is called with every outcome; `limit` is the longest string of the JavaScript engine.
    #[napi(constructor)]
    pub fn new(env: Env, answer: Function<FnArgs<Answer>, ()>, limit: f64) -> napi::Result<Self> {
        let port = answer
            .build_threadsafe_function::<Answer>()
            .callee_handled::<false>()
            .weak::<true>()
            .build_callback(|call| Ok(FnArgs::from(call.value)))?;
        let executor = failure::guard(Executor::new)?;
        let limit = AtomicUsize::new(limit as usize);
        let shared = Arc::new(Shared {
            port,
            executor,
            engines: Mutex::default(),
            limit,
            desk: Desk::new(),
            budgets: Budgets::default(),
            replays: Replays::default(),
        });
        // Hooks run last in, first out: this one before the port's own.
        env.add_env_cleanup_hook(Arc::downgrade(&shared), |shared| {
            if let Some(shared) = shared.upgrade() {
                shared.end();
            }
        })?;
        Ok(Bridge { shared })
    }

    /// From now on an open ticket keeps the process alive.
    #[napi(js_name = "ref")]
    pub fn refer(&self, env: Env) {
        self.shared.port.handle.with_read_aborted(|aborted| {
            if !aborted {
                // SAFETY: the function is alive, as it was not aborted, and this is its environment's thread.
                unsafe { sys::napi_ref_threadsafe_function(env.raw(), self.shared.port.raw()) };
            }
        });
    }

    /// From now on nothing here keeps the process alive.
    #[napi]
    pub fn unref(&self, env: Env) {
        self.shared.port.handle.with_read_aborted(|aborted| {
            if !aborted {
                // SAFETY: as above.
                unsafe { sys::napi_unref_threadsafe_function(env.raw(), self.shared.port.raw()) };
            }
        });
    }

    #[napi]
    pub fn sanitize_for_display(&self, text: String) -> String {
        branchline::sanitize_for_display(&text).into_owned()
    }

    /// Answers after everything that was ready to be answered before. Events that a call caused are: their readers are woken
    /// before the call is answered.
    #[napi]
    pub fn flush(&self, ticket: u32) {
        self.shared.start(ticket, async { Ok(Outcome::Nothing) });
    }

    /// The process is about to exit: ends running tools and closes files.
    #[napi]
    pub fn end(&self) {
        self.shared.end();
    }

    #[napi]
    pub fn desk(&self) -> ToolDesk {
        ToolDesk::new(self.shared.clone())
    }

    #[napi]
    pub fn budget(&self, limits: String) -> napi::Result<Budget> {
        failure::guard(|| Budget::new(self.shared.clone(), &limits))
    }

    #[napi]
    pub fn engine(&self, options: String) -> napi::Result<Engine> {
        failure::guard(|| Engine::new(self.shared.clone(), &options))
    }

    /// For tests: sets the longest string.
    #[napi]
    pub fn set_limit(&self, limit: f64) {
        self.shared.limit.store(limit as usize, Ordering::Relaxed);
    }

    /// For tests: a fault inside a synchronous call.
    #[napi]
    pub fn panic(&self) -> napi::Result<()> {
        failure::guard(|| panic!("asked for"))
    }

    /// For tests: a fault inside an asynchronous call.
    #[napi]
    pub fn panic_later(&self, ticket: u32) {
        self.shared.start(ticket, async { panic!("asked for") });
    }
}
