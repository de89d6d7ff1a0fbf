//! Starting a process that belongs to nobody else, and waiting for it.
//!
//! Hazard: a library shares its process with the host. The host may ignore SIGCHLD or collect every child itself (then
//! exit codes are gone), block or ignore signals (children inherit that), or hold descriptors without close-on-exec
//! (children would keep them open). On Linux the process is therefore made by `clone`, the way `posix_spawn` does it, with
//! a pidfd from the first moment: that tells its end whoever collects it, and since Linux 6.15 also its code. In the
//! child, signals go back to their defaults and every other descriptor closes on exec. Elsewhere, and where `clone` is
//! forbidden, it is a fork with the same resets.

use std::ffi::{CString, OsString};
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::FromRawFd;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_char, c_int, c_void};
use rustix::process::Pid;

/// A program to start.
#[derive(Debug)]
pub(crate) struct Program {
    /// An absolute path.
    pub(crate) path: PathBuf,
    /// Without the program's own name.
    pub(crate) arguments: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    /// The whole environment; `None` is this process's.
    pub(crate) environment: Option<Vec<(OsString, OsString)>>,
}

/// How a process ended: its code, or `128 + n` when signal `n` killed it.
pub(crate) type Code = i32;

/// A process that runs, or has ended and is not collected.
pub(crate) struct Spawned {
    pub(crate) pid: Pid,
    /// Readable once it has ended. `None` where there is no such thing.
    pub(crate) pidfd: Option<OwnedFd>,
}

#[cfg(target_os = "linux")]
const ANY_CHILD: c_int = libc::__WALL;
#[cfg(not(target_os = "linux"))]
const ANY_CHILD: c_int = 0;

/// Starts a program in a session and process group of its own, without input, with stdout and stderr going to `output`.
/// The caller [collects](Spawned::collect) it.
pub(crate) fn spawn(program: &Program, output: OwnedFd) -> io::Result<Spawned> {
    let input = std::fs::File::open("/dev/null")?;
    // Above the three standard ones, so that copying to those overwrites neither, even in a host that closed them.
    let high = |fd: RawFd| -> io::Result<OwnedFd> {
        // SAFETY: the descriptor is open: its owner lives on in this function.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
    };
    let input = high(input.as_raw_fd())?;
    let output = high(output.as_raw_fd())?;

    let text = |bytes: &[u8]| {
        CString::new(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the command has a NUL byte in it"))
    };
    let path = text(program.path.as_os_str().as_bytes())?;
    let cwd = text(program.cwd.as_os_str().as_bytes())?;
    let mut arguments = vec![path.clone()];
    for argument in &program.arguments {
        arguments.push(text(argument.as_bytes())?);
    }
    let inherited = || std::env::vars_os().collect::<Vec<_>>();
    let mut environment = Vec::new();
    for (name, value) in program.environment.clone().unwrap_or_else(inherited) {
        environment.push(text(&[name.as_bytes(), b"=", value.as_bytes()].concat())?);
    }
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments_ptr, environment_ptr) = (pointers(&arguments), pointers(&environment));
    let start = Start {
        path: path.as_ptr(),
        cwd: cwd.as_ptr(),
        arguments: arguments_ptr.as_ptr(),
        environment: environment_ptr.as_ptr(),
        input: input.as_raw_fd(),
        output: output.as_raw_fd(),
        last_signal: last_signal(),
        error: AtomicI32::new(0),
    };
    start.run()
}

/// What the child needs, ready made: after the split it may not allocate.
struct Start {
    path: *const c_char,
    cwd: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    input: RawFd,
    output: RawFd,
    last_signal: c_int,
    /// Why the program could not be started. Seen by the parent, with which the child shares its memory until then.
    error: AtomicI32,
}

fn last_signal() -> c_int {
    #[cfg(target_os = "linux")]
    return libc::SIGRTMAX();
    #[cfg(not(target_os = "linux"))]
    31
}

impl Start {
    #[cfg(target_os = "linux")]
    fn run(&self) -> io::Result<Spawned> {
        const STACK: usize = 64 * 1024;
        let mut stack = Vec::<u128>::with_capacity(STACK / size_of::<u128>());
        // SAFETY: one past the end of the allocation, which is aligned to 16 bytes: where a stack that grows down begins.
        let top = unsafe { stack.as_mut_ptr().add(stack.capacity()) };
        let mut pidfd: c_int = -1;
        // No handler of the host may run in the child, which shares its memory.
        let blocked = BlockedSignals::new();
        // SAFETY: with CLONE_VFORK this thread waits until the child has left this memory by `exec` or `_exit`, so
        // `self`, what it points to and the stack outlive the child's use of them. `in_child` is safe to call there.
        let pid = unsafe {
            let argument = ptr::from_ref(self).cast_mut().cast::<c_void>();
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
            libc::clone(in_child, top.cast(), flags, argument, &raw mut pidfd)
        };
        let failed = io::Error::last_os_error();
        drop(blocked);
        if pid < 0 {
            // Forbidden here, perhaps by a sandbox's filter.
            return self.fork();
        }
        let pid = Pid::from_raw(pid).ok_or(failed)?;
        // SAFETY: the kernel made this descriptor for us; nobody else knows it. One from before Linux 5.2 makes none.
        let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
        let spawned = Spawned { pid, pidfd };
        match self.error.load(Ordering::Acquire) {
            0 => Ok(spawned),
            error => {
                spawned.collect();
                Err(io::Error::from_raw_os_error(error))
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn run(&self) -> io::Result<Spawned> {
        self.fork()
    }

    /// The same with `fork`, after which the child tells its failure by a code only.
    fn fork(&self) -> io::Result<Spawned> {
        let blocked = BlockedSignals::new();
        // SAFETY: the child calls only what is allowed after a fork of a process with threads.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            in_child(ptr::from_ref(self).cast_mut().cast());
        }
        let failed = io::Error::last_os_error();
        drop(blocked);
        if pid < 0 {
            return Err(failed);
        }
        let pid = Pid::from_raw(pid).ok_or(failed)?;
        #[cfg(target_os = "linux")]
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
        #[cfg(not(target_os = "linux"))]
        let pidfd = None;
        Ok(Spawned { pid, pidfd })
    }
}

impl Spawned {
    /// Whether it has ended. It is not collected by this.
    pub(crate) fn has_ended(&self) -> bool {
        wait(self.pid, false).is_some()
    }

    /// Waits for its end, collects it and tells its code, if anyone knows that.
    pub(crate) fn collect(&self) -> Option<Code> {
        wait(self.pid, true).flatten().or_else(|| self.code_of_collected())
    }

    /// The code of a process that someone else collected, or that the kernel did because SIGCHLD is ignored.
    #[cfg(target_os = "linux")]
    fn code_of_collected(&self) -> Option<Code> {
        /// `struct pidfd_info` in its first version.
        #[repr(C)]
        struct Info {
            mask: u64,
            others: [u32; 13],
            exit_code: i32,
        }
        const EXIT: u64 = 1 << 3;
        /// `_IOWR(0xFF, 11, struct pidfd_info)`
        const GET_INFO: u32 = 3 << 30 | (size_of::<Info>() as u32) << 16 | 0xff << 8 | 11;
        /// The kernel tells the code a moment after the process is gone for whoever waits for it.
        const TRIES: u32 = 50;
        let pidfd = self.pidfd.as_ref()?;
        for _ in 0..TRIES {
            let mut info = Info { mask: EXIT, others: [0; 13], exit_code: 0 };
            // SAFETY: the kernel writes at most as many bytes as the request's number says the structure has.
            let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &raw mut info) };
            if result >= 0 && info.mask & EXIT != 0 {
                let status = info.exit_code;
                let signalled = libc::WIFSIGNALED(status);
                return Some(if signalled { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) });
            }
            if result < 0 && errno() != libc::ESRCH {
                // A kernel before 6.15 does not know the question.
                return None;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        None
    }

    #[cfg(not(target_os = "linux"))]
    fn code_of_collected(&self) -> Option<Code> {
        None
    }
}

/// The child's part. Only calls that are safe after a split of a process with threads: no allocation, no locks, no panic.
extern "C" fn in_child(start: *mut c_void) -> c_int {
    // SAFETY: `start` is a `Start` that outlives this call (see `run`), and every pointer in it is to a NUL-terminated
    // text or a NULL-terminated list of such. The calls are system calls, or `sigaction` and `sigemptyset`, which are
    // async-signal-safe. Descriptors are this process's own copies.
    unsafe {
        let start = &*start.cast::<Start>();
        libc::setsid();
        for signal in 1..=start.last_signal {
            default_action(signal);
        }
        let fail = |start: &Start| {
            start.error.store(errno(), Ordering::Release);
            libc::_exit(127)
        };
        if libc::dup2(start.input, 0) < 0 || libc::dup2(start.output, 1) < 0 || libc::dup2(start.output, 2) < 0 {
            fail(start);
        }
        close_on_exec();
        if libc::chdir(start.cwd) < 0 {
            fail(start);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::execve(start.path, start.arguments, start.environment);
        fail(start);
    }
    127
}

/// Makes a signal do what it does in a fresh process.
fn default_action(signal: c_int) {
    // SAFETY: the action is plain data, all zero, which is the default action without flags, in the kernel's form too.
    unsafe {
        // Not the C library's function: that leaves out the signals it uses itself, though they may be ignored as well.
        #[cfg(target_os = "linux")]
        {
            let action = [0usize; 16];
            libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), ptr::null_mut::<c_void>(), 8usize);
        }
        #[cfg(not(target_os = "linux"))]
        {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
}

/// Marks every descriptor but the standard ones. The table is the child's own copy.
fn close_on_exec() {
    // SAFETY: system calls on numbers; those that are no descriptors give an error.
    unsafe {
        #[cfg(target_os = "linux")]
        if libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0 {
            return;
        }
        for fd in 3..1024 {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

fn errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Blocks all signals of this thread until dropped.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn new() -> BlockedSignals {
        // SAFETY: both sets are plain data owned by this function; a zeroed one is valid to be filled.
        unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
            BlockedSignals(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled by `new`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// Whether a process has ended, and how, without collecting it; with `collect` waits for its end and collects it. The
/// inner `None` is a process whose code someone else took.
fn wait(pid: Pid, collect: bool) -> Option<Option<Code>> {
    let flags = if collect { libc::WEXITED } else { libc::WEXITED | libc::WNOWAIT | libc::WNOHANG };
    loop {
        // SAFETY: `info` is plain data that the call fills; its fields are read only as `waitid` sets them for a child.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            if libc::waitid(libc::P_PID, pid.as_raw_nonzero().get() as libc::id_t, &raw mut info, flags | ANY_CHILD) < 0
            {
                if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Some(None);
            }
            if info.si_pid() == 0 {
                return None;
            }
            let status = info.si_status();
            return Some(Some(if info.si_code == libc::CLD_EXITED { status } else { 128 + status }));
        }
    }
}
