//! `branchline_status`: what a call came to.

use std::ffi::{CStr, c_char};

use branchline_core::ErrorCode;

/// What a call came to. OK is 0; every other number has one meaning for ever, and new ones are only added: treat a
/// number you do not know as a failure.
///
/// 1 to 99 are the library's error codes, the same in all languages; 100 to 199 are faults that only C can make;
/// END, from 200, is an answer and no fault. END and TIMEOUT come without an error object.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum branchline_status {
    /// It worked.
    OK = 0,
    /// An argument is missing, malformed or out of range.
    INVALID_ARGUMENT = 1,
    /// A fault inside the library; please report it.
    INTERNAL = 2,
    /// A text is longer than a string of the host's language can be.
    TOO_LARGE = 3,
    /// The file is not a session; its bytes were left alone.
    INVALID_SESSION_FILE = 10,
    /// No entry has the given id.
    ENTRY_NOT_FOUND = 11,
    /// A session id has characters that are not allowed.
    INVALID_SESSION_ID = 12,
    /// A context edit's replacement is neither null nor an object with content.
    INVALID_REPLACEMENT = 13,
    /// The target of a context edit is not on the active branch.
    NOT_ON_ACTIVE_BRANCH = 14,
    /// The target of a context edit is of a kind that cannot be edited.
    NOT_EDITABLE = 15,
    /// The source of a fork has no entries or no header.
    FORK_SOURCE_INVALID = 16,
    /// The file that should be created exists.
    FILE_EXISTS = 17,
    /// Another writer has the session file open.
    SESSION_LOCKED = 18,
    /// The session was opened read-only.
    READ_ONLY = 19,
    /// The operating system refused a file operation.
    STORAGE_FAILED = 20,
    /// The session file was replaced or shortened by someone else while it was open.
    STORAGE_CHANGED = 21,
    /// The session's working directory does not exist.
    WORKING_DIRECTORY_MISSING = 22,
    /// The session has no file yet, so it cannot be forked from disk.
    NOT_SAVED = 23,
    /// Forking before something that is not a user message.
    INVALID_FORK_TARGET = 24,
    /// A run is active and the call needs an idle session.
    RUNNING = 30,
    /// A compaction, branch summary or navigation is active.
    COMPACTING = 31,
    /// The operation was cancelled by its caller.
    CANCELLED = 32,
    /// The session or engine was closed.
    CLOSED = 33,
    /// The time allowed for a wait ran out. Comes without an error object.
    TIMEOUT = 34,
    /// Waiting here would wait for the caller itself.
    WOULD_DEADLOCK = 35,
    /// No model with that name is known.
    UNKNOWN_MODEL = 40,
    /// No model was chosen, and none is the default.
    NO_MODEL = 41,
    /// The model's service refused or broke off a request.
    PROVIDER_FAILED = 42,
    /// There is no key for the model's provider, or none that may be used.
    NO_CREDENTIALS = 43,
    /// A request would break a limit of the session's budget; raise it to go on.
    BUDGET_EXCEEDED = 44,
    /// No tool with that name is known.
    UNKNOWN_TOOL = 50,
    /// A tool failed; the message is what it said.
    TOOL_FAILED = 51,
    /// There is nothing to compact.
    NOTHING_TO_COMPACT = 60,
    /// The path already ends with a compaction.
    ALREADY_COMPACTED = 61,
    /// The request for a summary failed.
    SUMMARY_FAILED = 62,
    /// A handle was freed before, is of another type, or never came from this library.
    INVALID_HANDLE = 100,
    /// The library hit a bug and caught it. The process is fine; please report the message.
    PANIC = 101,
    /// This process is a child made by fork() of the one that uses the library.
    FORKED = 102,
    /// No event will come any more. Comes without an error object.
    END = 200,
}

use branchline_status as Status;

impl Status {
    /// The status with the number of a code.
    pub(crate) const fn of(code: ErrorCode) -> Status {
        match code {
            ErrorCode::InvalidArgument => Status::INVALID_ARGUMENT,
            ErrorCode::TooLarge => Status::TOO_LARGE,
            ErrorCode::InvalidSessionFile => Status::INVALID_SESSION_FILE,
            ErrorCode::EntryNotFound => Status::ENTRY_NOT_FOUND,
            ErrorCode::InvalidSessionId => Status::INVALID_SESSION_ID,
            ErrorCode::InvalidReplacement => Status::INVALID_REPLACEMENT,
            ErrorCode::NotOnActiveBranch => Status::NOT_ON_ACTIVE_BRANCH,
            ErrorCode::NotEditable => Status::NOT_EDITABLE,
            ErrorCode::ForkSourceInvalid => Status::FORK_SOURCE_INVALID,
            ErrorCode::FileExists => Status::FILE_EXISTS,
            ErrorCode::SessionLocked => Status::SESSION_LOCKED,
            ErrorCode::ReadOnly => Status::READ_ONLY,
            ErrorCode::StorageFailed => Status::STORAGE_FAILED,
            ErrorCode::StorageChanged => Status::STORAGE_CHANGED,
            ErrorCode::WorkingDirectoryMissing => Status::WORKING_DIRECTORY_MISSING,
            ErrorCode::NotSaved => Status::NOT_SAVED,
            ErrorCode::InvalidForkTarget => Status::INVALID_FORK_TARGET,
            ErrorCode::Running => Status::RUNNING,
            ErrorCode::Compacting => Status::COMPACTING,
            ErrorCode::Cancelled => Status::CANCELLED,
            ErrorCode::Closed => Status::CLOSED,
            ErrorCode::Timeout => Status::TIMEOUT,
            ErrorCode::WouldDeadlock => Status::WOULD_DEADLOCK,
            ErrorCode::UnknownModel => Status::UNKNOWN_MODEL,
            ErrorCode::NoModel => Status::NO_MODEL,
            ErrorCode::ProviderFailed => Status::PROVIDER_FAILED,
            ErrorCode::NoCredentials => Status::NO_CREDENTIALS,
            ErrorCode::BudgetExceeded => Status::BUDGET_EXCEEDED,
            ErrorCode::UnknownTool => Status::UNKNOWN_TOOL,
            ErrorCode::ToolFailed => Status::TOOL_FAILED,
            ErrorCode::NothingToCompact => Status::NOTHING_TO_COMPACT,
            ErrorCode::AlreadyCompacted => Status::ALREADY_COMPACTED,
            ErrorCode::SummaryFailed => Status::SUMMARY_FAILED,
            _ => Status::INTERNAL,
        }
    }

    /// Whether it comes with an error object. Waiting in a loop would otherwise leave one behind at each round.
    pub(crate) fn has_error(self) -> bool {
        !matches!(self, Status::OK | Status::TIMEOUT | Status::END)
    }
}

// A code that was added to the core and forgotten here does not compile.
const _: () = {
    let mut n = 0;
    while n < ErrorCode::ALL.len() {
        assert!(Status::of(ErrorCode::ALL[n]) as u32 == ErrorCode::ALL[n] as u32);
        n += 1;
    }
};

/// Names of what the core has no code for.
const OWN: &[(Status, &CStr)] = &[
    (Status::OK, c"ok"),
    (Status::INVALID_HANDLE, c"invalid_handle"),
    (Status::PANIC, c"panic"),
    (Status::FORKED, c"forked"),
    (Status::END, c"end"),
];

/// The stable name of a status, the same as the error code in other languages: "session_locked". "unknown" for a number
/// that is no status.
///
/// Ownership: the string is static; do not free it.
/// Threads: any, also after fork().
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn branchline_status_name(status: u32) -> *const c_char {
    let own = OWN.iter().find(|(own, _)| *own as u32 == status).map(|(_, name)| *name);
    let code = ErrorCode::ALL.iter().position(|code| *code as u32 == status);
    match (own, code) {
        (Some(name), _) => name.as_ptr(),
        (None, Some(code)) => NAMES[code].as_ptr().cast(),
        (None, None) => c"unknown".as_ptr(),
    }
}

/// Room for the longest name and a NUL.
const NAME_SIZE: usize = 32;

/// The names of all codes, each with a NUL behind it. Made by the compiler: nothing has to be set up in a forked child.
static NAMES: [[u8; NAME_SIZE]; ErrorCode::ALL.len()] = {
    let mut names = [[0; NAME_SIZE]; ErrorCode::ALL.len()];
    let mut code = 0;
    while code < names.len() {
        let name = ErrorCode::ALL[code].name().as_bytes();
        assert!(name.len() < NAME_SIZE);
        let mut at = 0;
        while at < name.len() {
            names[code][at] = name[at];
            at += 1;
        }
        code += 1;
    }
    names
};
