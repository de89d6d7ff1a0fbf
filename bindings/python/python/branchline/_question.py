"""A function of the program, and how it is asked."""

from __future__ import annotations

from typing import Any, Callable

from .tools import ToolContext, is_async


class Question:
    """A function of the program that requests go to; what ``_serve`` runs."""

    def __init__(self, name: str, is_async: bool, ask: Callable[[ToolContext], Any], holds: str = "") -> None:
        self.name = name
        self.is_async = is_async
        self._invoke = ask
        self.holds = holds
        """What cannot be waited for while it is asked, unless that is the session of the request."""


async def late(value: Any, convert: Callable[[Any], Any]) -> Any:
    """What an awaitable gives, converted."""
    return convert(await value)


def question(
    name: str,
    function: Callable[..., Any],
    call: Callable[[ToolContext], Any],
    read: Callable[[Any], Any],
    holds: str = "",
) -> Question:
    """What requests to ``function`` go to: ``call`` calls it, ``read`` reads what it gives, at once or later."""
    if is_async(function):

        async def aask(context: ToolContext) -> Any:
            return read(await call(context))

        return Question(name, True, aask, holds)

    def ask(context: ToolContext) -> Any:
        answer = call(context)
        return late(answer, read) if hasattr(answer, "__await__") else read(answer)

    return Question(name, False, ask, holds)
