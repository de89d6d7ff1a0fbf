"""What the model sees: how much of it there is, what is put into it besides prompts, and how room is made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

from . import _branchline as native
from ._calls import Call
from .events import JsonObject
from .options import capacity_of, json_text
from .run import Run, Usage


@dataclass(frozen=True)
class CompactionResult:
    """What a compaction came to. Token counts are estimates."""

    entry_id: str
    """The compaction's entry."""
    summary: str
    """The summary as it was stored."""
    first_kept_entry_id: str
    """The first entry that stays in context."""
    tokens_before: int
    estimated_tokens_after: int
    usage: Optional[Usage]
    """What the summary cost."""
    details: JsonObject
    """``readFiles`` and ``modifiedFiles``."""


@dataclass(frozen=True)
class ContextUsage:
    """How full the model's window is."""

    tokens: Optional[int]
    """Estimated; unknown right after a compaction, until a response reports usage again."""
    window: Optional[int]
    """The model's context window, when known."""
    percent: Optional[float]
    """``tokens`` as a percentage of ``window``."""


@dataclass(frozen=True)
class TokenTotals:
    """Tokens and cost, added up."""

    input: int
    """Prompt tokens that were not cached."""
    output: int
    cache_read: int
    cache_write: int
    cost: float
    """US dollars."""

    @property
    def total(self) -> int:
        """All four kinds of tokens together."""
        return self.input + self.output + self.cache_read + self.cache_write

    @staticmethod
    def _from_value(value: JsonObject) -> TokenTotals:
        return TokenTotals(
            value["input"], value["output"], value["cacheRead"], value["cacheWrite"], float(value["cost"])
        )


@dataclass(frozen=True)
class CostGroup:
    """The part of a session's cost that one model caused."""

    model: Optional[str]
    """``provider/model``; None for everything that names no model (tools, summaries)."""
    tokens: TokenTotals


@dataclass(frozen=True)
class SessionStats:
    """Counts and sums over all entries of a session, all branches."""

    user_messages: int
    assistant_messages: int
    tool_results: int
    messages: int
    """Messages of any role."""
    tool_calls: int
    tokens: TokenTotals
    """Everything spent."""
    costs: List[CostGroup]
    """By model, highest first."""


@dataclass(frozen=True)
class UserCommand:
    """What a shell run of the user came to."""

    output: str
    """The end of what it printed, within the usual limits, without control sequences."""
    exit_code: Optional[int]
    """The shell's code; None when it was cancelled."""
    cancelled: bool
    truncated: bool
    """``output`` is not all."""
    full_output_path: Optional[Path]
    """Where all of it is."""


@dataclass(frozen=True)
class ForkMessage:
    """A user message that ``fork`` can go before."""

    entry_id: str
    text: str


def _compaction(text: str) -> CompactionResult:
    value = json.loads(text)
    usage = value.get("usage")
    return CompactionResult(
        entry_id=value["entryId"],
        summary=value["summary"],
        first_kept_entry_id=value["firstKeptEntryId"],
        tokens_before=value["tokensBefore"],
        estimated_tokens_after=value["estimatedTokensAfter"],
        usage=None if usage is None else Usage._from_value(usage),
        details=value["details"],
    )


def _stats(text: str) -> SessionStats:
    value = json.loads(text)
    return SessionStats(
        user_messages=value["userMessages"],
        assistant_messages=value["assistantMessages"],
        tool_results=value["toolResults"],
        messages=value["messages"],
        tool_calls=value["toolCalls"],
        tokens=TokenTotals._from_value(value["tokens"]),
        costs=[CostGroup(group["model"], TokenTotals._from_value(group["tokens"])) for group in value["costs"]],
    )


def _usage(text: str) -> ContextUsage:
    return ContextUsage(**json.loads(text))


def _fork_messages(text: str) -> List[ForkMessage]:
    return [ForkMessage(message["entryId"], message["text"]) for message in json.loads(text)]


def _message(custom_type: str, content: Any, display: bool, details: Any) -> str:
    message: Dict[str, Any] = {"customType": custom_type, "content": content, "display": display}
    if details is not None:
        message["details"] = details
    return json_text(message)


class ContextOperations:
    """The operations, as calls."""

    _native: native.Session

    def prompt_custom(
        self,
        custom_type: str,
        content: Union[str, List[JsonObject]],
        *,
        display: bool = True,
        details: Any = None,
        when_running: str = "refuse",
        forced_prompt: Optional[str] = None,
        capacity: int = 1024,
    ) -> Run:
        """As ``prompt``, with a message of the host instead of a user's; its text is sent as it is.

        ``content``: a string, or a list of text and image blocks. ``display``: whether people should see it; the model
        does in any case. ``details``: data the model does not see.
        """
        message = _message(custom_type, content, display, details)
        pending = native.prompt_custom(self._native, message, when_running, forced_prompt, capacity_of(capacity))
        return Run(Call[native.Run](pending).accepted(), self._native)

    def abort_retry(self) -> None:
        """Cancels the wait before a failed request is repeated, and with it the repetition; nothing else."""
        native.abort_retry(self._native)

    def abort_summary(self) -> None:
        """Cancels a compaction, or the summary of a branch that is left; nothing else."""
        native.abort_summary(self._native)

    def abort_bash(self) -> None:
        """Ends all commands of ``run_bash`` with everything they started."""
        native.abort_bash(self._native)

    def _run_bash(self, command: str, id: Optional[str], exclude_from_context: bool) -> Call[UserCommand]:
        pending = native.run_bash(self._native, command, id, exclude_from_context)
        return Call(pending, lambda row: UserCommand(*row))

    def _compact(self, instructions: Optional[str]) -> Call[CompactionResult]:
        return Call(native.compact(self._native, instructions), _compaction)

    def _stats(self) -> Call[SessionStats]:
        return Call(native.stats(self._native), _stats)

    def _context_usage(self) -> Call[ContextUsage]:
        return Call(native.context_usage(self._native), _usage)

    def _fork_messages(self) -> Call[List[ForkMessage]]:
        return Call(native.fork_messages(self._native), _fork_messages)

    def _set_queue_modes(self, steer_all: Optional[bool], follow_up_all: Optional[bool]) -> Call[None]:
        return Call(native.set_queue_modes(self._native, steer_all, follow_up_all))

    def _send_custom_message(
        self, custom_type: str, content: Any, display: bool, details: Any, delivery: str
    ) -> Call[Optional[str]]:
        message = _message(custom_type, content, display, details)
        return Call(native.send_custom_message(self._native, message, delivery))

    def _record_bash(
        self,
        command: str,
        output: str,
        exit_code: Optional[int],
        cancelled: bool,
        truncated: bool,
        full_output_path: Optional[str],
        exclude_from_context: bool,
        timestamp: Optional[int],
    ) -> Call[Optional[str]]:
        given: Dict[str, Any] = {
            "command": command,
            "output": output,
            "exitCode": exit_code,
            "cancelled": cancelled,
            "truncated": truncated,
            "fullOutputPath": full_output_path,
            "excludeFromContext": exclude_from_context or None,
            "timestamp": timestamp or 0,
        }
        return Call(native.record_bash(self._native, json_text(given)))

    def _edit_context(self, entry_id: str, replacement: Optional[JsonObject]) -> Call[str]:
        return Call(native.edit_context(self._native, entry_id, json_text(replacement)))
