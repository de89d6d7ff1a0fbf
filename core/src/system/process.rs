//! Running a command with a whole process tree behind it, from a thread that may block.
//!
//! Hazard: an async runtime's process support installs a handler for SIGCHLD, which belongs to the host. And killing
//! one process leaves its children, while killing a group whose leader was already waited for may hit a stranger that
//! got its number. So the command leads a process group of its own, its end is watched through a pidfd (or by asking,
//! where there is none) without collecting it, the group is signalled while the leader is still uncollected, and only
//! then is it waited for. All waiting is one `poll` on the output, the process and the cancellation.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::pin::pin;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio_util::sync::CancellationToken;

use super::wake_fd::WakeFd;

/// Time between asking a process group to end and ending it.
const TERM_GRACE: Duration = Duration::from_millis(250);
/// How long output may be silent after the command's end before it counts as over: processes it left behind may hold
/// the pipe open for ever (T230).
const SILENCE: Duration = Duration::from_millis(100);
/// How often the process is asked for where its end cannot be polled.
#[cfg(not(target_os = "linux"))]
const ASK: Duration = Duration::from_millis(10);

/// Why a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It ended by itself.
    Finished,
    /// The time allowed was over; the group was killed.
    TimedOut,
    /// The token fired; the group was killed.
    Cancelled,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// The shell's code: `128 + n` when signal `n` killed it; `None` when the system would not say.
    pub(crate) code: Option<i32>,
}

struct FdWaker(WakeFd);

impl Wake for FdWaker {
    fn wake(self: Arc<Self>) {
        self.0.set();
    }
}

/// Runs a command to its end, handing out what it writes to stdout and stderr in order of arrival. `idle` is called at
/// least every `tick` while it runs.
pub(crate) fn run(
    mut command: Command,
    cancel: &CancellationToken,
    timeout: Option<Duration>,
    tick: Duration,
    mut output: impl FnMut(&[u8]),
    mut idle: impl FnMut(),
) -> io::Result<Ended> {
    let (mut reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let child = command.spawn()?;
    drop(command); // with it our ends of the pipe
    rustix::io::ioctl_fionbio(&reader, true)?;
    let mut running = Running::new(child)?;

    let waker = Arc::new(FdWaker(WakeFd::new().map_err(io::Error::other)?));
    let as_waker = Waker::from(waker.clone());
    let mut context = Context::from_waker(&as_waker);
    let mut cancelled = pin!(cancel.cancelled());
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut last_output = Instant::now();
    let mut open = true;
    let mut stopping: Option<(End, Instant)> = None;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if open {
            match drain(&mut reader, &mut buffer, &mut output)? {
                Drained::Nothing => {}
                Drained::Some => last_output = Instant::now(),
                Drained::End => open = false,
            }
        }
        idle();
        let exited = running.has_exited();
        let now = Instant::now();
        match stopping {
            None if exited && (!open || now.duration_since(last_output.max(running.exited_at(now))) >= SILENCE) => {
                return running.collect(End::Finished);
            }
            None => {
                let end = if cancelled.as_mut().poll(&mut context).is_ready() {
                    Some(End::Cancelled)
                } else {
                    deadline.filter(|deadline| now >= *deadline).map(|_| End::TimedOut)
                };
                if let Some(end) = end {
                    running.signal(Signal::TERM);
                    stopping = Some((end, now));
                }
            }
            Some((end, since)) if (exited && !open) || now.duration_since(since) >= TERM_GRACE => {
                running.signal(Signal::KILL);
                return running.collect(end);
            }
            Some(_) => {}
        }
        let mut wait = tick;
        if exited || stopping.is_some() {
            wait = wait.min(Duration::from_millis(20));
        }
        if let Some(deadline) = deadline {
            wait = wait.min(deadline.saturating_duration_since(now).max(Duration::from_millis(1)));
        }
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
    for _ in 0..16 {
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

/// A command that runs, or has ended and is not collected. Dropping it kills its group: nothing is left behind on any
/// path.
struct Running {
    child: Child,
    pid: Pid,
    exited_at: Option<Instant>,
    collected: bool,
    #[cfg(target_os = "linux")]
    pidfd: Option<std::os::fd::OwnedFd>,
}

impl Running {
    fn new(child: Child) -> io::Result<Running> {
        let pid = Pid::from_child(&child);
        Ok(Running {
            child,
            pid,
            exited_at: None,
            collected: false,
            #[cfg(target_os = "linux")]
            pidfd: rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok(),
        })
    }

    /// Whether the leader has ended. It is not collected by this.
    fn has_exited(&mut self) -> bool {
        if self.exited_at.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            match waitid(WaitId::Pid(self.pid), options) {
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                // An error means that someone else collected it (a host that ignores SIGCHLD): it is over.
                Ok(Some(_)) | Err(_) => self.exited_at = Some(Instant::now()),
            }
        }
        self.exited_at.is_some()
    }

    fn exited_at(&self, now: Instant) -> Instant {
        self.exited_at.unwrap_or(now)
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    fn collect(mut self, end: End) -> io::Result<Ended> {
        self.collected = true;
        let code = self
            .child
            .wait()
            .ok()
            .and_then(|status: ExitStatus| status.code().or_else(|| status.signal().map(|signal| 128 + signal)));
        Ok(Ended { end, code })
    }

    /// Waits for output, the end of the process, a cancellation, or the time.
    fn wait(&self, reader: Option<&PipeReader>, cancel: &WakeFd, cancellable: bool, time: Duration) -> io::Result<()> {
        let mut fds = Vec::with_capacity(3);
        if let Some(reader) = reader {
            fds.push(PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN));
        }
        if cancellable {
            fds.push(PollFd::from_borrowed_fd(cancel.as_fd(), PollFlags::IN));
        }
        #[cfg(target_os = "linux")]
        let time = match &self.pidfd {
            Some(pidfd) if self.exited_at.is_none() => {
                fds.push(PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN));
                time
            }
            _ => time.min(Duration::from_millis(10)),
        };
        #[cfg(not(target_os = "linux"))]
        let time = time.min(ASK);
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.collected {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
