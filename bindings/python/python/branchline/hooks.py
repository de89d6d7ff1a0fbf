"""Checks around tool calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, Iterable, List, Mapping, Optional, Union

from ._question import Question, late
from .errors import InvalidArgumentError
from .events import JsonObject
from .tools import ToolContext, ToolResult, is_async


@dataclass(frozen=True)
class HookedCall:
    """A tool call as hooks see it."""

    name: str
    """The tool's name."""
    call_id: str
    session_id: str
    arguments: JsonObject
    """The arguments the tool will get, or got."""


@dataclass(frozen=True)
class Block:
    """What a hook answers before a call that shall not run."""

    reason: Optional[str] = None
    """What the model reads."""
    terminate: bool = False
    """When every call of the batch says so, the run ends after them."""


@dataclass(frozen=True)
class Change:
    """What a hook answers to change a call: before it its arguments, after it parts of its result.

    What is None stays as it is.
    """

    arguments: Optional[Mapping[str, Any]] = None
    """Before the call: the arguments the tool gets; the stored call keeps the model's own."""
    content: Union[str, List[JsonObject], None] = None
    """After it: what the model reads. Structured content goes with the old one unless it is replaced, too."""
    details: Any = None
    structured_content: Any = None
    usage: Optional[JsonObject] = None
    is_error: Optional[bool] = None
    terminate: Optional[bool] = None


def _before(answer: Any) -> Any:
    if answer is None or isinstance(answer, (bool, str)):
        return answer
    if isinstance(answer, Block):
        return {"block": True if answer.reason is None else answer.reason, "terminate": answer.terminate}
    if isinstance(answer, Change):
        return None if answer.arguments is None else {"arguments": dict(answer.arguments)}
    raise TypeError(
        f"a hook answers None, Block(…), Change(arguments=…), a text or False before a call, not {answer!r}"
    )


def _after(answer: Any) -> Any:
    if answer is None:
        return None
    if isinstance(answer, ToolResult):
        answer = Change(
            content=answer.content,
            details=answer.details,
            structured_content=answer.structured_content,
            usage=answer.usage,
            is_error=answer.is_error,
            terminate=answer.terminate,
        )
    if not isinstance(answer, Change):
        raise TypeError(f"a hook answers None, a Change or a ToolResult after a call, not {answer!r}")
    parts = {
        "content": answer.content,
        "details": answer.details,
        "structuredContent": answer.structured_content,
        "usage": answer.usage,
        "isError": answer.is_error,
        "terminate": answer.terminate,
    }
    return {key: part for key, part in parts.items() if part is not None}


class ToolHook:
    """Is asked about every tool call of a session, in front of the permissions.

    ``before(call)`` returns None (it runs), ``Block(reason)`` or a text (it does not; the model reads it), or
    ``Change(arguments=…)``. ``after(call, result)`` returns None, or a ``Change`` or ``ToolResult`` with what replaces
    the result. Either may be a coroutine function. What they raise is the call's error.
    """

    def __init__(
        self,
        before: Optional[Callable[[HookedCall], Any]] = None,
        after: Optional[Callable[[HookedCall, ToolResult], Any]] = None,
    ) -> None:
        if before is None and after is None:
            raise InvalidArgumentError("a hook has a function before, after, or both")
        self.before = before
        """Asked before a call."""
        self.after = after
        """Asked after a call."""

    def _question(self) -> Question:
        before, after = self.before, self.after

        def call(context: ToolContext) -> Any:
            value = json.loads(context._request.arguments_json())
            call = HookedCall(context.name, context.call_id, context.session_id, value["arguments"])
            if context._request.kind() == "before_tool":
                return (before(call) if before is not None else None), _before
            result = ToolResult._from_json(json.dumps(value["result"]))
            return (after(call, result) if after is not None else None), _after

        if is_async(before) or is_async(after):

            async def aask(context: ToolContext) -> Any:
                answer, convert = call(context)
                return convert(await answer) if hasattr(answer, "__await__") else convert(answer)

            return Question("hook", True, aask)

        def ask(context: ToolContext) -> Any:
            answer, convert = call(context)
            return late(answer, convert) if hasattr(answer, "__await__") else convert(answer)

        return Question("hook", False, ask)


def as_hooks(value: Any) -> List[ToolHook]:
    """The hooks of a session, when that is what they are."""
    hooks = list(value) if isinstance(value, Iterable) else None
    if hooks is None or not all(isinstance(hook, ToolHook) for hook in hooks):
        raise InvalidArgumentError("tool_hooks is a list of ToolHook; write ToolHook(before=…) around a function")
    return hooks
