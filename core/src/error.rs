//! One error type for the whole library: a stable code, a sentence that says what to do next, and where it happened.

use std::fmt;
use std::path::{Path, PathBuf};

/// Result with the library's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// What went wrong, as a stable number (the C status) and a stable name (every binding's error code).
        ///
        /// Numbers are never reused; new codes are only added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum ErrorCode { $($(#[$doc])* $name = $number,)* }

        impl ErrorCode {
            /// Every code, in numeric order.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)*];

            /// The code's stable name, `snake_case`.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorCode::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// An argument is missing, malformed or out of range.
    InvalidArgument = 1, "invalid_argument";
    /// A fault inside the library; please report it.
    Internal = 2, "internal";
    /// A text is longer than a string of the host's language can be.
    TooLarge = 3, "too_large";
    /// The file is not a session (S50); its bytes were left alone.
    InvalidSessionFile = 10, "invalid_session_file";
    /// No entry has the given id.
    EntryNotFound = 11, "entry_not_found";
    /// A session id does not match S16.
    InvalidSessionId = 12, "invalid_session_id";
    /// A context edit's replacement is neither null nor `{content}` (S76).
    InvalidReplacement = 13, "invalid_replacement";
    /// The target of a context edit is not on the active branch (S76).
    NotOnActiveBranch = 14, "not_on_active_branch";
    /// The target of a context edit is of a kind that cannot be edited (S76).
    NotEditable = 15, "not_editable";
    /// The source of a fork has no entries or no header (S97).
    ForkSourceInvalid = 16, "fork_source_invalid";
    /// The file that should be created exists (S43).
    FileExists = 17, "file_exists";
    /// Another writer has the session file open.
    SessionLocked = 18, "session_locked";
    /// The session was opened read-only.
    ReadOnly = 19, "read_only";
    /// The operating system refused a file operation.
    StorageFailed = 20, "storage_failed";
    /// The session file was replaced or shortened by someone else while it was open.
    StorageChanged = 21, "storage_changed";
    /// The session's working directory does not exist.
    WorkingDirectoryMissing = 22, "working_directory_missing";
    /// The session has no file yet, so it cannot be forked from disk (S185).
    NotSaved = 23, "not_saved";
    /// Forking before something that is not a user message (S184).
    InvalidForkTarget = 24, "invalid_fork_target";
    /// A run is active and the call needs an idle session (S163, S202).
    Running = 30, "running";
    /// A compaction, branch summary or navigation is active (S163).
    Compacting = 31, "compacting";
    /// The operation was cancelled by its caller.
    Cancelled = 32, "cancelled";
    /// The session or engine was closed.
    Closed = 33, "closed";
    /// The time allowed for a wait ran out.
    Timeout = 34, "timeout";
    /// Waiting here would wait for the caller itself.
    WouldDeadlock = 35, "would_deadlock";
    /// No model with that name is known.
    UnknownModel = 40, "unknown_model";
    /// No model was chosen, and none is the default.
    NoModel = 41, "no_model";
    /// The model's service refused or broke off a request.
    ProviderFailed = 42, "provider_failed";
    /// There is no key for the model's provider, or none that may be used.
    NoCredentials = 43, "no_credentials";
    /// A request would break a limit of the session's budget; raise it to go on.
    BudgetExceeded = 44, "budget_exceeded";
    /// No tool with that name is known.
    UnknownTool = 50, "unknown_tool";
    /// A tool failed; the message is what it said.
    ToolFailed = 51, "tool_failed";
    /// There is nothing to compact.
    NothingToCompact = 60, "nothing_to_compact";
    /// The path already ends with a compaction.
    AlreadyCompacted = 61, "already_compacted";
    /// The request for a summary failed.
    SummaryFailed = 62, "summary_failed";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error of the library.
///
/// `Display` gives one sentence for people; [`Error::code`] is for programs.
#[derive(Debug, Clone)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    code: ErrorCode,
    message: String,
    path: Option<PathBuf>,
}

impl Error {
    /// An error with a code and a sentence that says what was wrong and what to do.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { code, message: message.into(), path: None }))
    }

    /// The same error, naming the file it is about.
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path = Some(path.as_ref().to_path_buf());
        self
    }

    /// A refused file operation: `action` completes "cannot …".
    pub(crate) fn storage(action: &str, path: &Path, error: &std::io::Error) -> Self {
        Error::new(ErrorCode::StorageFailed, format!("cannot {action}: {error}")).at(path)
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The sentence, without the path.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file the error is about, when there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.path {
            Some(path) => write!(f, "{} ({})", self.0.message, path.display()),
            None => f.write_str(&self.0.message),
        }
    }
}

impl std::error::Error for Error {}
