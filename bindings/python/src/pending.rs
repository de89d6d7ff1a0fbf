//! Calls that wait.
//!
//! Every such call of the core is a future that only waits on channels, so any executor can drive it. Here the executor
//! is the Python thread that waits: [`Pending::wait`] parks it, and an asyncio loop polls when [`Wakeups`] says so. The
//! usual bridge, an engine thread that takes the interpreter lock to set a result, is what hangs or crashes programs
//! that end while something runs.

use std::future::Future;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::{self, IntoPyResult};
use crate::owned::Owned;

/// How often a blocked thread looks for signals: Ctrl-C is felt at once, and an idle wait costs nothing to speak of.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// Makes the result a Python object.
type Answer = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + Send>;
type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One call under way. It can be waited for once; dropping it gives up the wait, not what the engine does.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Pending {
    work: Owned<Mutex<Option<Work>>>,
}

impl Pending {
    /// A call whose outcome `convert` makes a Python object of.
    pub(crate) fn new<T: Send + 'static>(
        future: impl Future<Output = branchline::Result<T>> + Send + 'static,
        convert: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> Pending {
        let work = async move {
            let outcome = future.await;
            let answer: Answer = Box::new(move |py| convert(py, outcome.py(py)?));
            answer
        };
        Pending { work: Owned::new(Mutex::new(Some(Box::pin(work)))) }
    }

    /// A call without a result.
    pub(crate) fn unit(future: impl Future<Output = branchline::Result<()>> + Send + 'static) -> Pending {
        Pending::new(future, |py, ()| Ok(py.None().into_bound(py)))
    }

    fn take(&self, py: Python<'_>) -> PyResult<Work> {
        let work = lock(self.work.get(py)?).take();
        work.ok_or_else(|| error::invalid(py, "this call was waited for already"))
    }

    fn put_back(&self, py: Python<'_>, work: Work) -> PyResult<()> {
        *lock(self.work.get(py)?) = Some(work);
        Ok(())
    }
}

#[pymethods]
impl Pending {
    /// Blocks until the result is there, with the interpreter released. Signals are handled meanwhile: what a handler
    /// raises (KeyboardInterrupt) ends the wait. `timeout` is in seconds; when it runs out the call goes on.
    #[pyo3(signature = (timeout = None))]
    fn wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let limit = match timeout.map(Duration::try_from_secs_f64) {
            None => None,
            Some(Ok(limit)) => Some(limit),
            Some(Err(_)) => return Err(error::invalid(py, "a timeout is a number of seconds, not negative")),
        };
        let start = Instant::now();
        let waker = Waker::from(Arc::new(Parked(std::thread::current())));
        let mut work = self.take(py)?;
        loop {
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            let slice = left.map_or(SIGNAL_CHECK, |left| left.min(SIGNAL_CHECK));
            match py.detach(|| poll_for(&mut work, &waker, slice)) {
                Poll::Ready(Ok(answer)) => return answer(py),
                Poll::Ready(Err(panic)) => return Err(error::internal(py, panic)),
                Poll::Pending => py.check_signals()?,
            }
            if limit.is_some_and(|limit| start.elapsed() >= limit) {
                self.put_back(py, work)?;
                return Err(error::timeout(py));
            }
        }
    }

    /// The result in a tuple if it is there. If not, `None`, and `wakeups` will report `token` when it is time to ask
    /// again.
    fn poll<'py>(&self, py: Python<'py>, wakeups: &Wakeups, token: u64) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        let waker = Waker::from(Arc::new(Reporting { bell: wakeups.bell.get(py)?.clone(), token }));
        let mut work = self.take(py)?;
        match py.detach(|| poll_once(&mut work, &mut Context::from_waker(&waker))) {
            Poll::Ready(Ok(answer)) => Ok(Some((answer(py)?,))),
            Poll::Ready(Err(panic)) => Err(error::internal(py, panic)),
            Poll::Pending => {
                self.put_back(py, work)?;
                Ok(None)
            }
        }
    }

    /// Gives up the wait.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let work = lock(self.work.get(py)?).take();
        py.detach(|| drop(work));
        Ok(())
    }
}

/// One look. A panic is a fault of the library, told like any other error.
fn poll_once(work: &mut Work, cx: &mut Context<'_>) -> Poll<Result<Answer, String>> {
    match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(state) => state.map(Ok),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Poll::Ready(Err(format!("the library panicked: {text}; please report it")))
        }
    }
}

/// Looks, parks the thread, and looks again when woken, for at most `time`.
fn poll_for(work: &mut Work, waker: &Waker, time: Duration) -> Poll<Result<Answer, String>> {
    let start = Instant::now();
    loop {
        let state = poll_once(work, &mut Context::from_waker(waker));
        let left = time.saturating_sub(start.elapsed());
        if state.is_ready() || left.is_zero() {
            return state;
        }
        std::thread::park_timeout(left);
    }
}

/// Wakes a blocked thread.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Which calls an event loop should look at again, and a pipe that tells it to.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Wakeups {
    bell: Owned<Arc<Bell>>,
}

/// Both ends live as long as anything that may ring: writing to a pipe nobody reads would raise a signal.
struct Bell {
    reader: PipeReader,
    writer: PipeWriter,
    tokens: Mutex<Vec<u64>>,
    /// A byte is in the pipe. There is never more than one, so that writing cannot block.
    rung: AtomicBool,
}

struct Reporting {
    bell: Arc<Bell>,
    token: u64,
}

impl Wake for Reporting {
    fn wake(self: Arc<Self>) {
        lock(&self.bell.tokens).push(self.token);
        if !self.bell.rung.swap(true, Ordering::AcqRel) {
            let _ = (&self.bell.writer).write(&[0]);
        }
    }
}

#[pymethods]
impl Wakeups {
    #[new]
    fn new() -> PyResult<Wakeups> {
        let (reader, writer) = std::io::pipe()?;
        let bell = Bell { reader, writer, tokens: Mutex::default(), rung: AtomicBool::new(false) };
        Ok(Wakeups { bell: Owned::new(Arc::new(bell)) })
    }

    /// The descriptor that is readable when there is something to [`take`](Wakeups::take).
    #[cfg(unix)]
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        use std::os::fd::AsRawFd;
        Ok(self.bell.get(py)?.reader.as_raw_fd())
    }

    /// The tokens reported since the last time. Call it only when the descriptor is readable.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let bell = self.bell.get(py)?;
        (&bell.reader).read_exact(&mut [0])?;
        // First allow the next ring, then look: what comes in between is seen now and rings again for nothing.
        bell.rung.store(false, Ordering::Release);
        Ok(std::mem::take(&mut *lock(&bell.tokens)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
