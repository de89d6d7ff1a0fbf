//! Running a command with a whole process tree behind it, from a thread that may block.
//!
//! Hazard: killing one process leaves its children, and killing a group whose leader was already collected may hit a
//! stranger that got its number. So the command leads a process group of its own, its end is watched through a pidfd (or by
//! asking, where there is none) without collecting it, the tree is signalled while the leader is still uncollected, and only
//! then is it collected. All waiting is one `poll` on the output, the process and the cancellation.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use super::process_tree::ProcessTree;
use super::spawn::{self, Code, Program, Spawned};
use super::wake_fd::WakeFd;

/// Time between asking a process tree to end and ending it.
const TERM_GRACE: Duration = Duration::from_millis(250);
/// How long output may be silent after the command's end before it counts as over: processes it left behind may hold
/// the pipe open for ever (T230).
const SILENCE: Duration = Duration::from_millis(100);
/// How long processes it left behind may go on writing before their output counts as none of the command's.
const LEFT_BEHIND: Duration = Duration::from_secs(2);
/// How often things are looked at that cannot be polled.
const ASK: Duration = Duration::from_millis(10);
/// Bytes read at once. The pipe is made as large, so that a fast command is not stopped at every page.
const BUFFER: usize = 256 * 1024;

/// Why a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It ended by itself.
    Finished,
    /// The time allowed was over; the tree was killed.
    TimedOut,
    /// The token fired; the tree was killed.
    Cancelled,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// The shell's code: `128 + n` when signal `n` killed it; `None` when the system would not say.
    pub(crate) code: Option<Code>,
    /// How long the shell ran, if it had ended by itself before the command was stopped.
    pub(crate) shell_time: Option<Duration>,
}

struct FdWaker(WakeFd);

impl Wake for FdWaker {
    fn wake(self: Arc<Self>) {
        self.0.set();
    }
}

/// Runs a command to its end, handing out what it writes to stdout and stderr in order of arrival.
pub(crate) fn run(
    program: &Program,
    cancel: &CancellationToken,
    timeout: Option<Duration>,
    mut output: impl FnMut(&[u8]),
) -> io::Result<Ended> {
    let (mut reader, writer) = io::pipe()?;
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, BUFFER); // refused when the user has many pipes
    rustix::io::ioctl_fionbio(&reader, true)?;
    let waker = Arc::new(FdWaker(WakeFd::new().map_err(io::Error::other)?));
    let begun = Instant::now();
    let mut running = Running::new(spawn::spawn(program, OwnedFd::from(writer))?);

    let as_waker = Waker::from(waker.clone());
    let mut context = Context::from_waker(&as_waker);
    let mut cancelled = pin!(cancel.cancelled());
    let deadline = timeout.and_then(|timeout| begun.checked_add(timeout));
    let mut last_output = begun;
    let mut open = true;
    let mut stopping: Option<(End, Instant)> = None;
    let mut shell_time = None;
    let mut buffer = vec![0; BUFFER];
    loop {
        let exited = running.exited_at();
        // Only what was written before it was seen to have ended is surely read by now.
        if open {
            match drain(&mut reader, &mut buffer, &mut output)? {
                Drained::Nothing => {}
                Drained::Some => last_output = Instant::now(),
                Drained::End => open = false,
            }
        }
        let now = Instant::now();
        let mut until = deadline;
        let mut sooner = |at: Instant| until = Some(until.map_or(at, |until| until.min(at)));
        match (stopping, exited) {
            (Some((end, since)), exited) => {
                if (exited.is_some() && !open) || now >= since + TERM_GRACE {
                    running.signal(Signal::KILL);
                    return Ok(Ended { end, code: running.collect(), shell_time });
                }
                until = Some(since + TERM_GRACE);
            }
            (None, Some(at)) => {
                let over = (last_output.max(at) + SILENCE).min(at + LEFT_BEHIND);
                if !open || now >= over {
                    return Ok(Ended { end: End::Finished, code: running.collect(), shell_time: Some(at - begun) });
                }
                sooner(over);
            }
            (None, None) => {}
        }
        if stopping.is_none() {
            let end = if cancelled.as_mut().poll(&mut context).is_ready() {
                Some(End::Cancelled)
            } else {
                deadline.filter(|deadline| now >= *deadline).map(|_| End::TimedOut)
            };
            if let Some(end) = end {
                shell_time = exited.map(|at| at - begun);
                running.signal(Signal::TERM);
                stopping = Some((end, now));
                until = Some(now + TERM_GRACE);
            }
        }
        let wait = until.map(|until| until.saturating_duration_since(now));
        running.wait(open.then_some(&reader), &waker.0, stopping.is_none(), wait)?;
    }
}

enum Drained {
    Nothing,
    Some,
    End,
}

/// Reads what is there, at most a few buffers at a time, so that aborts and timeouts get through to a command that
/// never stops writing.
fn drain(reader: &mut PipeReader, buffer: &mut [u8], output: &mut impl FnMut(&[u8])) -> io::Result<Drained> {
    let mut drained = Drained::Nothing;
    for _ in 0..8 {
        match reader.read(buffer) {
            Ok(0) => return Ok(Drained::End),
            Ok(length) => {
                output(&buffer[..length]);
                drained = Drained::Some;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(drained)
}

/// A command that runs, or has ended and is not collected. Dropping it kills its tree: nothing is left behind on any
/// path.
struct Running {
    process: Spawned,
    tree: ProcessTree,
    exited_at: Option<Instant>,
    collected: bool,
}

impl Running {
    fn new(process: Spawned) -> Running {
        Running { tree: ProcessTree::new(process.pid), process, exited_at: None, collected: false }
    }

    /// When the leader was seen to have ended. It is not collected by this.
    fn exited_at(&mut self) -> Option<Instant> {
        if self.exited_at.is_none() && self.process.has_ended() {
            self.exited_at = Some(Instant::now());
        }
        self.exited_at
    }

    fn signal(&mut self, signal: Signal) {
        self.tree.signal(signal);
    }

    fn collect(mut self) -> Option<Code> {
        self.collected = true;
        self.process.collect()
    }

    /// Waits for output, the end of the process, a cancellation, or the time.
    fn wait(
        &self,
        reader: Option<&PipeReader>,
        cancel: &WakeFd,
        cancellable: bool,
        time: Option<Duration>,
    ) -> io::Result<()> {
        let mut fds = Vec::with_capacity(3);
        if let Some(reader) = reader {
            fds.push(PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN));
        }
        if cancellable {
            fds.push(PollFd::from_borrowed_fd(cancel.as_fd(), PollFlags::IN));
        }
        let mut ask = self.exited_at.is_none();
        if let Some(pidfd) = self.process.pidfd.as_ref().filter(|_| ask) {
            fds.push(PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN));
            ask = false;
        }
        let time = if ask { Some(time.map_or(ASK, |time| time.min(ASK))) } else { time };
        // Rounded up: waking a moment early would only mean to wait again.
        let time = time.map(|time| time + Duration::from_micros(50));
        let time = time.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) });
        match poll(&mut fds, time.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.collected {
            self.signal(Signal::KILL);
            self.process.collect();
        }
    }
}
