"""Errors: one base class, a subclass for each code.

``except branchline.Error`` catches whatever the library raises. A program that wants to tell errors apart catches a
subclass or compares ``code``, the stable name that is the same in all languages. Only misuse of Python itself (an
argument of the wrong type) is a ``TypeError``.
"""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any, ClassVar, Dict, Optional, Type


class Error(Exception):
    """An error of the library."""

    code: str = "unknown"
    """What went wrong, as a stable name."""
    message: str
    """One sentence that says what was wrong and what to do."""
    path: Optional[Path]
    """The file the error is about, when there is one."""

    _by_code: ClassVar[Dict[str, Type[Error]]] = {}

    def __init__(self, message: str, path: Optional[Path] = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Error._by_code.setdefault(cls.code, cls)

    def __str__(self) -> str:
        return self.message if self.path is None else f"{self.message} ({self.path})"


def make_error(code: str, message: str, path: Optional[Path]) -> Error:
    """The exception for a code. One that is newer than this file still is an ``Error`` with that code."""
    error = Error._by_code.get(code, Error)(message, path)
    error.code = code
    return error


class InvalidArgumentError(Error, ValueError):
    """An argument is missing, malformed or out of range."""

    code = "invalid_argument"


class InternalError(Error):
    """A fault inside the library; please report it."""

    code = "internal"


class TooLargeError(Error):
    """A text is longer than a string of the host's language can be."""

    code = "too_large"


class ForkedError(Error):
    """The object was made before ``os.fork()`` and is used in the child."""

    code = "forked"


class InvalidSessionFileError(Error):
    """The file is not a session; its bytes were left alone."""

    code = "invalid_session_file"


class EntryNotFoundError(Error, LookupError):
    """No entry has the given id."""

    code = "entry_not_found"


class InvalidSessionIdError(Error, ValueError):
    """A session id that cannot be one."""

    code = "invalid_session_id"


class InvalidReplacementError(Error, ValueError):
    """A context edit's replacement is neither None nor has a content."""

    code = "invalid_replacement"


class NotOnActiveBranchError(Error):
    """The target of a context edit is not on the active branch."""

    code = "not_on_active_branch"


class NotEditableError(Error):
    """The target of a context edit is of a kind that cannot be edited."""

    code = "not_editable"


class ForkSourceInvalidError(Error):
    """The source of a fork has no entries or no header."""

    code = "fork_source_invalid"


class FileExistsError(Error, builtins.FileExistsError):
    """The file that should be created exists."""

    code = "file_exists"


class SessionLockedError(Error):
    """Another writer has the session file open."""

    code = "session_locked"


class ReadOnlyError(Error):
    """The session was opened read-only."""

    code = "read_only"


class StorageFailedError(Error):
    """The operating system refused a file operation."""

    code = "storage_failed"


class StorageChangedError(Error):
    """The session file was replaced or shortened by someone else while it was open."""

    code = "storage_changed"


class WorkingDirectoryMissingError(Error):
    """The session's working directory does not exist."""

    code = "working_directory_missing"


class NotSavedError(Error):
    """The session has no file yet, so it cannot be forked from disk."""

    code = "not_saved"


class InvalidForkTargetError(Error):
    """Forking before something that is not a user message."""

    code = "invalid_fork_target"


class RunningError(Error):
    """A run is active and the call needs an idle session."""

    code = "running"


class CompactingError(Error):
    """A compaction, branch summary or navigation is active."""

    code = "compacting"


class CancelledError(Error):
    """The operation was cancelled by its caller."""

    code = "cancelled"


class ClosedError(Error):
    """The session or engine was closed."""

    code = "closed"


class TimeoutError(Error, builtins.TimeoutError):
    """The time allowed for a wait ran out."""

    code = "timeout"


class WouldDeadlockError(Error):
    """Waiting here would wait for the caller itself."""

    code = "would_deadlock"


class UnknownModelError(Error, LookupError):
    """No model with that name is known."""

    code = "unknown_model"


class NoModelError(Error):
    """No model was chosen, and none is the default."""

    code = "no_model"


class BudgetExceededError(Error):
    """A request would break a limit of the session's budget; raise it to go on."""

    code = "budget_exceeded"


class ProviderFailedError(Error):
    """The model's service refused or broke off a request."""

    code = "provider_failed"


class NoCredentialsError(Error):
    """There is no key for the model's provider, or none that may be used."""

    code = "no_credentials"


class UnknownToolError(Error, LookupError):
    """No tool with that name is known."""

    code = "unknown_tool"


class ToolError(Error):
    """A tool failed. ``str(error)`` is what it said, ``error.result`` is all of its result."""

    code = "tool_failed"

    result: Any = None
    """The ``branchline.ToolResult``; None when a tool of yours raised this."""


class NothingToCompactError(Error):
    """There is nothing to compact."""

    code = "nothing_to_compact"


class AlreadyCompactedError(Error):
    """The path already ends with a compaction."""

    code = "already_compacted"


class SummaryFailedError(Error):
    """The request for a summary failed."""

    code = "summary_failed"
