"""Events: everything a session tells while it works.

Each is an object of a class of its own, made for ``match``::

    for event in session.prompt("Fix the failing test"):
        match event:
            case TextDelta(text=text): print(text, end="")
            case ToolExecutionEnd(name=name, is_error=True): print(name, "failed")

What is small is a field. What may be big (messages, arguments, results) is read from the event when it is looked at.
New kinds of events may come: one this version has no class for is a plain ``Event``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Dict, List, Optional, Tuple, Type

from . import _branchline as native

JsonObject = Dict[str, Any]
"""A JSON object: messages and tool results are plain dictionaries, as they stand in the session file."""


def text_of(content: Any, separator: str = "\n") -> str:
    """The text of a message's or result's ``content``: a string, or blocks of which the text ones count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return separator.join(str(block.get("text", "")) for block in blocks)


@dataclass(eq=False)
class Event:
    """Something happened."""

    sequence: int
    """Counts the events of the session from 1. Merged deltas carry the number of the last one, so numbers may jump."""
    _raw: native.RawEvent = field(repr=False)

    @property
    def type(self) -> str:
        """The event's name in JSON, for example ``message_update``."""
        return self._raw.type

    @property
    def session_id(self) -> str:
        """The session it happened in."""
        return self._raw.session_id

    @property
    def sibling(self) -> int:
        """Which of the sessions over one file it comes from: 0 for the one that opened it. Not part of the JSON."""
        return self._raw.sibling

    @property
    def json(self) -> str:
        """The event as one line of JSON, as pi writes it."""
        return self._raw.to_json()

    @cached_property
    def value(self) -> JsonObject:
        """The event as a dictionary, as pi writes it."""
        value: JsonObject = json.loads(self.json)
        return value


@dataclass(eq=False)
class AgentStart(Event):
    """A pass of the run begins: it has one, and further ones for what follows by itself."""


@dataclass(eq=False)
class TurnStart(Event):
    """A turn began: its messages, one response, and the calls it asks for follow."""


class _WithMessage(Event):
    @property
    def message(self) -> JsonObject:
        """The message."""
        message: JsonObject = self.value["message"]
        return message

    @property
    def text(self) -> str:
        """The message's text."""
        return text_of(self.message.get("content"))


@dataclass(eq=False)
class MessageStart(_WithMessage):
    """A message begins; one of the assistant is empty here."""

    role: str


@dataclass(eq=False)
class MessageUpdate(Event):
    """The response grew: a block began, grew or ended."""

    update: str
    """What grew, for example ``text_start``; the details are in ``value["assistantMessageEvent"]``."""
    index: int
    """Which block of the message."""


@dataclass(eq=False)
class TextDelta(MessageUpdate):
    """Text arrived."""

    text: str
    __match_args__ = ("text",)


@dataclass(eq=False)
class ThinkingDelta(MessageUpdate):
    """Thinking arrived."""

    text: str
    __match_args__ = ("text",)


@dataclass(eq=False)
class ToolCallDelta(MessageUpdate):
    """A part of a tool call's arguments, as JSON text, arrived."""

    text: str
    __match_args__ = ("text",)


@dataclass(eq=False)
class MessageEnd(_WithMessage):
    """A message is complete and stored."""

    role: str
    entry_id: Optional[str]
    """The entry that holds it."""


@dataclass(eq=False)
class _ToolExecution(Event):
    id: str
    """The call's id."""
    name: str
    """The tool's name."""


@dataclass(eq=False)
class ToolExecutionStart(_ToolExecution):
    """A tool call is about to be prepared and run."""

    __match_args__ = ("name",)

    @property
    def args(self) -> JsonObject:
        """Arguments as the model gave them."""
        args: JsonObject = self.value["args"]
        return args


@dataclass(eq=False)
class ToolExecutionUpdate(_ToolExecution):
    """A running tool reports progress."""

    __match_args__ = ("name",)

    @property
    def args(self) -> JsonObject:
        """Arguments as the model gave them."""
        args: JsonObject = self.value["args"]
        return args

    @property
    def result(self) -> JsonObject:
        """The result so far; replaces the one before."""
        result: JsonObject = self.value["partialResult"]
        return result

    @property
    def text(self) -> str:
        """The text of the result so far."""
        return text_of(self.result.get("content"))


@dataclass(eq=False)
class ToolExecutionEnd(_ToolExecution):
    """A tool call is over."""

    is_error: bool
    duration_ms: Optional[int]
    """How long it ran; None when it did not run."""
    __match_args__ = ("name", "is_error")

    @property
    def result(self) -> JsonObject:
        """What it came to."""
        result: JsonObject = self.value["result"]
        return result

    @property
    def text(self) -> str:
        """The text of the result."""
        return text_of(self.result.get("content"))


@dataclass(eq=False)
class TurnEnd(_WithMessage):
    """A turn is over; ``message`` is the response."""

    @property
    def tool_results(self) -> List[JsonObject]:
        """Result messages in the order of the calls."""
        results: List[JsonObject] = self.value["toolResults"]
        return results


@dataclass(eq=False)
class AgentEnd(Event):
    """A pass is over."""

    will_retry: bool
    """The same request follows again, after a wait."""

    @property
    def messages(self) -> List[JsonObject]:
        """The messages of this run."""
        messages: List[JsonObject] = self.value["messages"]
        return messages


@dataclass(eq=False)
class AgentSettled(Event):
    """The run is over: nothing follows by itself any more, the session is idle."""

    aborted: bool


@dataclass(eq=False)
class QueueUpdate(Event):
    """The queues of waiting texts changed."""

    steering: List[str]
    """Texts for the current run."""
    follow_up: List[str]
    """Texts for after it."""


@dataclass(eq=False)
class EntryAppended(Event):
    """An entry was stored that no other event speaks of."""

    @property
    def entry(self) -> JsonObject:
        """The entry as it stands in the file."""
        entry: JsonObject = self.value["entry"]
        return entry


@dataclass(eq=False)
class SessionInfoChanged(Event):
    """The session's name changed."""

    name: Optional[str]


@dataclass(eq=False)
class ThinkingLevelChanged(Event):
    """The effective thinking level changed."""

    level: str


@dataclass(eq=False)
class PermissionDecision(Event):
    """It was decided whether a tool call runs. Never comes where everything is allowed."""

    call_id: str
    tool: str
    """The tool's name."""
    effect: str
    """What the call does, at most: ``read``, ``write`` or ``execute``."""
    allowed: bool
    rule: str
    """The rule that decided or asked."""
    by: str
    """``policy``, ``handler``, ``earlier``, ``no_handler``, ``handler_failed`` or ``timeout``."""
    reason: Optional[str]
    """Why it was denied."""
    __match_args__ = ("tool", "allowed")


@dataclass(eq=False)
class BudgetExceeded(Event):
    """A limit of a budget was reached; the run ends."""

    limit: str
    """``requests``, ``turns``, ``tokens``, ``cost`` or ``wall_time``."""
    used: float
    """What is spent, with the least the next request would spend: a number, tokens, US dollars, or seconds."""
    max: float
    price_unknown: bool
    """The cost is limited and the model's price is not known."""
    __match_args__ = ("limit",)


@dataclass(eq=False)
class BashExecutionUpdate(Event):
    """A shell run of the user printed something."""

    id: Optional[str]
    """The program's name for it."""
    text: str
    """The new part of its output."""
    __match_args__ = ("text",)


@dataclass(eq=False)
class CompactionStart(Event):
    """A compaction begins."""

    reason: str
    """``manual``, ``threshold`` or ``overflow``."""


@dataclass(eq=False)
class CompactionEnd(Event):
    """A compaction is over."""

    reason: str
    aborted: bool
    will_retry: bool
    """The failed request is made again."""
    error_message: Optional[str]

    @property
    def result(self) -> Optional[JsonObject]:
        """What came of it; None when it failed or was aborted."""
        result: Optional[JsonObject] = self.value.get("result")
        return result


@dataclass(eq=False)
class _RetryWait(Event):
    attempt: int
    """Which repetition this will be, from 1."""
    max_attempts: int
    delay_ms: int
    """How long is waited."""
    error_message: str
    """The error that made it necessary."""


@dataclass(eq=False)
class AutoRetryStart(_RetryWait):
    """A failed request will be made again after a wait."""


@dataclass(eq=False)
class AutoRetryEnd(Event):
    """Retrying is over."""

    success: bool
    attempt: int
    """Which attempt was the last."""
    final_error: Optional[str]


@dataclass(eq=False)
class SummarizationRetryScheduled(_RetryWait):
    """A failed request for a summary will be made again after a wait."""


@dataclass(eq=False)
class SummarizationRetryAttemptStart(Event):
    """A request for a summary is made again."""

    compaction: Optional[str]
    """Why the compaction is made that the summary is for; None for that of a branch that is left."""


@dataclass(eq=False)
class SummarizationRetryFinished(Event):
    """Retrying a request for a summary is over."""


_CLASSES: Dict[str, Type[Event]] = {
    cls.__name__: cls
    for cls in (
        AgentStart,
        TurnStart,
        MessageStart,
        MessageUpdate,
        TextDelta,
        ThinkingDelta,
        ToolCallDelta,
        MessageEnd,
        ToolExecutionStart,
        ToolExecutionUpdate,
        ToolExecutionEnd,
        TurnEnd,
        AgentEnd,
        AgentSettled,
        QueueUpdate,
        EntryAppended,
        SessionInfoChanged,
        ThinkingLevelChanged,
        PermissionDecision,
        BudgetExceeded,
        BashExecutionUpdate,
        CompactionStart,
        CompactionEnd,
        AutoRetryStart,
        AutoRetryEnd,
        SummarizationRetryScheduled,
        SummarizationRetryAttemptStart,
        SummarizationRetryFinished,
    )
}


def event_from_row(row: Tuple[Any, ...]) -> Event:
    """Makes an event of what the native half gives: class name, sequence, raw event, fields."""
    return _CLASSES.get(row[0], Event)(*row[1:])
