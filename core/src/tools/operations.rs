//! The replaceable layer under the tools (T6): files and commands.
//!
//! Tools never go to the disk by themselves. They ask [`Operations`], and everything else (argument rules, paths, limits,
//! notices, queueing) stays in the tool. A host replaces a part by implementing a trait and overriding what it serves
//! itself: an editor its unsaved buffers, a container all of its files and commands. Every method returns a future, so
//! the answer may come from another thread or machine.

use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use super::{bash_local, local};
use crate::permissions::Fence;

/// What an operation returns. Dropping it gives the operation up; one that has begun to change something may finish.
///
/// An error is shown to the model. One from the system (or of a kind that has a code) is worded as `CODE: description,
/// call 'path'` (T13); one made with a text of the host's own (`io::Error::other("…")`) is shown as that text.
pub type Operation<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// Files as the tools see them. Paths are absolute and lexically normalised.
///
/// Every method has a default that works on the local disk, so that a host overrides only what it serves differently.
/// Methods are called on worker threads, any number at once, and must return at once; the future does the work. A
/// future is polled inside a tokio runtime that has timers and no I/O driver.
pub trait FileOperations: Send + Sync {
    /// Facts about what a path leads to; links are followed.
    fn metadata(&self, path: &Path) -> Operation<Metadata> {
        local::metadata(path)
    }

    /// The whole content of a file.
    fn read(&self, path: &Path) -> Operation<Vec<u8>> {
        local::read(path)
    }

    /// Up to `length` bytes from `offset` on. Fewer than asked for, also none, means that the file ends there.
    ///
    /// The default takes them out of [`read`](FileOperations::read).
    fn read_range(&self, path: &Path, offset: u64, length: usize) -> Operation<Vec<u8>> {
        let whole = self.read(path);
        Box::pin(async move {
            let mut bytes = whole.await?;
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
            bytes.drain(..start);
            bytes.truncate(length);
            Ok(bytes)
        })
    }

    /// Replaces the content of a file, or makes it. An existing file keeps its mode, and a link its target's place.
    fn write(&self, path: &Path, content: Vec<u8>) -> Operation<()> {
        local::write(path, content)
    }

    /// Fails unless the file is there and may be used so.
    fn access(&self, path: &Path, access: Access) -> Operation<()> {
        local::access(path, access)
    }

    /// Makes a directory and those above it that are missing. One that exists is no error.
    fn create_dirs(&self, path: &Path) -> Operation<()> {
        local::create_dirs(path)
    }

    /// The entries of a directory, without `.` and `..`, in any order.
    fn read_dir(&self, path: &Path) -> Operation<Vec<DirEntry>> {
        local::read_dir(path)
    }

    /// The path with every link resolved. Fails with `NotFound` when there is nothing.
    fn real_path(&self, path: &Path) -> Operation<PathBuf> {
        local::real_path(path)
    }

    /// The directory that `~` stands for.
    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir()
    }

    /// Which files are served from elsewhere than the local disk. For all others the tools may go to the disk directly,
    /// which is what makes a search of a hundred thousand files fast. Asked at least once for every call of a tool.
    ///
    /// The default is [`Replaced::All`]: nothing is taken from the disk but through this trait.
    fn replaced(&self) -> Operation<Replaced> {
        Box::pin(std::future::ready(Ok(Replaced::All)))
    }
}

/// Commands as `bash` runs them.
pub trait CommandOperations: Send + Sync {
    /// Runs a command to its end. The future must end soon after the request's token fires or its time is over, and
    /// then says so in [`CommandEnd::end`]. Dropping it ends the command.
    ///
    /// Errors: when the command cannot be started; the text is shown to the model.
    fn run(&self, request: CommandRequest) -> Operation<CommandEnd>;
}

/// The files and commands of one engine, toolbox or call. Cheap to clone.
#[derive(Clone)]
#[non_exhaustive]
pub struct Operations {
    /// Files.
    pub files: Arc<dyn FileOperations>,
    /// Commands.
    pub commands: Arc<dyn CommandOperations>,
    /// What `files` may not leave, for tools that go to the disk themselves.
    pub(crate) fence: Option<Arc<Fence>>,
}

impl Operations {
    /// This machine's files and commands.
    pub fn local() -> Operations {
        Operations { files: Arc::new(LocalFiles), commands: Arc::new(LocalCommands), fence: None }
    }

    /// Replaces [`files`](Self::files).
    pub fn files(mut self, files: impl FileOperations + 'static) -> Operations {
        self.files = Arc::new(files);
        self
    }

    /// Replaces [`commands`](Self::commands).
    pub fn commands(mut self, commands: impl CommandOperations + 'static) -> Operations {
        self.commands = Arc::new(commands);
        self
    }
}

impl Default for Operations {
    fn default() -> Self {
        Operations::local()
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations").finish_non_exhaustive()
    }
}

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFiles;

impl FileOperations for LocalFiles {
    fn read_range(&self, path: &Path, offset: u64, length: usize) -> Operation<Vec<u8>> {
        local::read_range(path, offset, length)
    }

    fn replaced(&self) -> Operation<Replaced> {
        Box::pin(std::future::ready(Ok(Replaced::None)))
    }
}

/// Commands run on this machine, each in a process group of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalCommands;

impl CommandOperations for LocalCommands {
    fn run(&self, request: CommandRequest) -> Operation<CommandEnd> {
        bash_local::run(request)
    }
}

/// Which files are served from elsewhere than the local disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaced {
    /// None: every file is the one on disk, and is written there.
    None,
    /// These, by absolute path: an editor's unsaved buffers. They need not exist on disk. Writing goes through
    /// [`write`](FileOperations::write) for every file.
    Files(Vec<PathBuf>),
    /// All.
    All,
}

impl Replaced {
    /// Whether this path is served from elsewhere.
    pub fn contains(&self, path: &Path) -> bool {
        match self {
            Replaced::None => false,
            Replaced::Files(files) => files.iter().any(|file| file == path),
            Replaced::All => true,
        }
    }
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// Its kind.
    pub kind: FileKind,
    /// Its size in bytes. Zero for some files that have content (`/proc`).
    pub size: u64,
    /// When its content last changed.
    pub modified: Option<SystemTime>,
    /// Device and number, where files have them: the same for two names of one file.
    pub id: Option<(u64, u64)>,
}

impl Metadata {
    /// Facts about a file or directory of which no more is known.
    pub fn new(kind: FileKind, size: u64) -> Metadata {
        Metadata { kind, size, modified: None, id: None }
    }
}

/// Kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link; only in [`DirEntry`].
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Anything else.
    Other,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: OsString,
    /// Its kind; links are not followed.
    pub kind: FileKind,
}

/// How a file is to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Read and changed.
    ReadWrite,
}

/// Names and values of environment variables.
pub type Environment = Vec<(OsString, OsString)>;

/// Takes pieces of output in order of arrival. Called on the thread that reads them.
pub type OutputSink = Box<dyn FnMut(&[u8]) + Send>;

/// A command to run.
#[non_exhaustive]
pub struct CommandRequest {
    /// What the shell is given.
    pub command: String,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The shell; `None` is the system's usual one (T201).
    pub shell: Option<PathBuf>,
    /// Its whole environment; `None` is this process's.
    pub environment: Option<Environment>,
    /// After this time it is ended with everything it started.
    pub timeout: Option<Duration>,
    /// When this fires it is ended with everything it started.
    pub cancel: CancellationToken,
    /// Takes what it writes to stdout and stderr, in order of arrival.
    pub output: OutputSink,
}

impl CommandRequest {
    /// A command in a directory with no limits.
    pub fn new(command: impl Into<String>, cwd: impl Into<PathBuf>, output: OutputSink) -> Self {
        CommandRequest {
            command: command.into(),
            cwd: cwd.into(),
            shell: None,
            environment: None,
            timeout: None,
            cancel: CancellationToken::new(),
            output,
        }
    }
}

impl fmt::Debug for CommandRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("CommandRequest");
        out.field("command", &self.command).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandEnd {
    /// Why.
    pub end: End,
    /// The shell's code, `128 + n` when signal `n` killed it; `None` when it is not known.
    pub code: Option<i32>,
    /// How long the shell itself ran, when that is known: processes it left behind may have written for longer.
    pub shell_time: Option<Duration>,
}

impl CommandEnd {
    /// A command that ended by itself.
    pub fn finished(code: Option<i32>) -> CommandEnd {
        CommandEnd { end: End::Finished, code, shell_time: None }
    }

    /// A command that was ended.
    pub fn stopped(end: End) -> CommandEnd {
        CommandEnd { end, code: None, shell_time: None }
    }
}

/// Why a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It ended by itself.
    Finished,
    /// The time allowed was over.
    TimedOut,
    /// The token fired.
    Cancelled,
}
