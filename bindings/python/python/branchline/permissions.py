"""What tool calls may do: policies, questions to the program, checks around calls, and what a session may spend."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _branchline as native
from .errors import InvalidArgumentError
from .events import JsonObject
from .options import PathLike, json_text
from .tools import ToolContext, ToolResult, is_async

if TYPE_CHECKING:
    from typing import Literal

    _Action = Literal["allow", "ask", "deny"]
    _Effect = Literal["read", "write", "execute"]
    _Preset = Literal["read-only", "ask", "workspace", "allow"]


@dataclass(frozen=True)
class Allow:
    """A permission question's answer: this call runs."""


@dataclass(frozen=True)
class Deny:
    """A permission question's answer: this call does not run."""

    reason: Optional[str] = None
    """What the model reads."""


@dataclass(frozen=True)
class AllowAlways:
    """A permission question's answer: this call runs, and so do others of the session without a question."""

    scope: Literal["same", "tool"] = "same"
    """``same``: the same tool with the same command and paths. ``tool``: every call of the tool."""
    below: Optional[PathLike] = None
    """Instead of ``scope``: calls of any tool with this effect or a weaker one, all of whose paths lead below it."""


@dataclass(frozen=True)
class RequestedPath:
    """A path as a call names it, and where it leads."""

    given: str
    """As the model wrote it."""
    path: Path
    """Absolute, without ``.`` and ``..``."""
    real: Path
    """With every link followed. This is what will be opened if the call is allowed."""
    inside: bool
    """It lies below the working directory, or below the root where one is set."""


class PermissionRequest:
    """A call that asks for permission."""

    def __init__(self, context: ToolContext) -> None:
        value = json.loads(context._request.arguments_json())
        self._context = context
        self.tool: str = value["tool"]
        """The tool's name."""
        self.effect: str = value["effect"]
        """What the call does, at most: ``read``, ``write`` or ``execute``."""
        self.arguments: JsonObject = value["arguments"]
        """The arguments the tool will get."""
        self.command: Optional[str] = value.get("command")
        """The exact text of a command."""
        self.paths: List[RequestedPath] = [
            RequestedPath(path["given"], Path(path["path"]), Path(path["real"]), path["inside"])
            for path in value["paths"]
        ]
        """The paths the call names."""
        self.rule: str = value["rule"]
        """The rule that asks."""
        self.call_id: str = context.call_id
        """The call's id, as events carry it; empty in a toolbox."""
        self.session_id: str = context.session_id
        """The session that asks; empty in a toolbox."""
        self.cwd: Path = context.cwd
        """Where the call works."""

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more: after an abort, or when it took too long."""
        return self._context.cancelled

    def wait_cancelled(self, timeout: Optional[float] = None) -> bool:
        """Blocks until nobody waits for the answer any more, at most ``timeout`` seconds."""
        return self._context.wait_cancelled(timeout)

    def __repr__(self) -> str:
        return f"<PermissionRequest {self.tool}: {self.command or self.arguments}>"


Answer = Union[Allow, Deny, AllowAlways, bool, str]
"""What a handler answers; as words ``"allow"`` and ``"deny"``, or True and False."""
Handler = Callable[[PermissionRequest], Union[Answer, Awaitable[Answer]]]
"""Who is asked: a function, or a coroutine function."""


class Question:
    """A function of the program that requests go to; what ``_serve`` runs."""

    def __init__(self, name: str, is_async: bool, ask: Callable[[ToolContext], Any], holds: str = "") -> None:
        self.name = name
        self.is_async = is_async
        self._invoke = ask
        self.holds = holds
        """What cannot be waited for while it is asked, unless that is the session of the request."""


def _answer(answer: Any) -> Any:
    if isinstance(answer, Allow):
        return "allow"
    if isinstance(answer, Deny):
        return {"decision": "deny", **({} if answer.reason is None else {"reason": answer.reason})}
    if isinstance(answer, AllowAlways):
        below = answer.below
        return {
            "decision": "allowAlways",
            "scope": answer.scope if below is None else {"below": os.path.abspath(os.fspath(below))},
        }
    if isinstance(answer, bool) or answer in ("allow", "deny"):
        return answer
    raise TypeError(f"a permission handler answers Allow(), Deny(), AllowAlways(), True or False, not {answer!r}")


class Permissions:
    """One policy for all tools of a session, toolbox or engine, built-in ones and your own.

    A call is judged by the first of these that says anything: the roots, a rule for its tool, a rule for its effect,
    the preset. Where that says ``ask``, the handler decides; without one, when it raises, or when it takes too long the
    call is denied.
    """

    def __init__(
        self,
        preset: _Preset = "ask",
        *,
        tools: Optional[Mapping[str, _Action]] = None,
        effects: Optional[Mapping[_Effect, _Action]] = None,
        root: Union[PathLike, Sequence[PathLike], None] = None,
        handler: Optional[Handler] = None,
        timeout: Optional[float] = None,
    ) -> None:
        """``preset``: ``read-only``, ``ask``, ``workspace`` or ``allow``.

        ``tools``, ``effects``: what happens to the calls of a tool, or of all tools with an effect (``read``,
        ``write``, ``execute``): ``allow``, ``ask`` or ``deny``. ``root``: one or more directories; every path outside
        of them is refused. ``handler``: who is asked. ``timeout``: seconds it may take, ten minutes by default.
        """
        if handler is not None and not callable(handler):
            raise InvalidArgumentError("a permission handler is a function")
        policy: Dict[str, Any] = {"preset": preset, "tools": dict(tools or {}), "effects": dict(effects or {})}
        if root is not None:
            roots = [root] if isinstance(root, (str, os.PathLike)) else list(root)
            policy["roots"] = [os.fspath(directory) for directory in roots]
        if timeout is not None:
            policy["timeoutMs"] = round(timeout * 1000)
        self._policy = json_text(policy)
        native.Permissions(self._policy)  # says what is wrong
        self.handler = handler
        """Who is asked."""

    def __repr__(self) -> str:
        return f"<Permissions {self._policy}>"

    def _question(self) -> Optional[Question]:
        handler = self.handler
        if handler is None:
            return None
        if is_async(handler):

            async def aask(context: ToolContext) -> Any:
                answer: Any = handler(PermissionRequest(context))
                return _answer(await answer)

            return Question("permissions", True, aask)

        def ask(context: ToolContext) -> Any:
            answer: Any = handler(PermissionRequest(context))
            return late(answer, _answer) if hasattr(answer, "__await__") else _answer(answer)

        return Question("permissions", False, ask)


async def late(value: Any, convert: Callable[[Any], Any]) -> Any:
    """What an awaitable gives, converted."""
    return convert(await value)


def as_permissions(value: Any) -> Permissions:
    """A policy, from one, the name of a preset, or a handler."""
    if isinstance(value, Permissions):
        return value
    if isinstance(value, str):
        return Permissions(value)  # type: ignore[arg-type]
    if callable(value):
        return Permissions(handler=value)
    raise InvalidArgumentError("permissions is the name of a preset, a function that is asked, or a Permissions")


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
    structured: Any = None
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
            structured=answer.structured,
            usage=answer.usage,
            is_error=answer.is_error,
            terminate=answer.terminate,
        )
    if not isinstance(answer, Change):
        raise TypeError(f"a hook answers None, a Change or a ToolResult after a call, not {answer!r}")
    parts = {
        "content": answer.content,
        "details": answer.details,
        "structuredContent": answer.structured,
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


@dataclass(frozen=True)
class BudgetLimits:
    """Limits of a budget; None is no limit."""

    requests: Optional[int] = None
    """Requests to models: turns, summaries, and every repetition of a failed one."""
    turns: Optional[int] = None
    """Requests for the next message of a conversation."""
    tokens: Optional[int] = None
    """Tokens in and out, cached ones included."""
    cost: Optional[float] = None
    """US dollars."""
    wall_time: Optional[float] = None
    """Seconds during which at least one of the sessions runs."""
    ignore_unknown_prices: bool = False
    """With a limit of cost: count requests whose price nobody knows as free, instead of refusing them."""

    def _json(self) -> str:
        limits = {
            "requests": self.requests,
            "turns": self.turns,
            "tokens": self.tokens,
            "cost": self.cost,
            "wallTimeMs": None if self.wall_time is None else round(self.wall_time * 1000),
            "ignoreUnknownPrices": self.ignore_unknown_prices,
        }
        return json_text({key: limit for key, limit in limits.items() if limit is not None})


@dataclass(frozen=True)
class BudgetUse:
    """What was spent so far."""

    requests: int
    turns: int
    tokens: int
    cost: float
    """US dollars, of requests whose price is known."""
    unpriced_requests: int
    """Requests whose price nobody knows."""
    wall_time: float
    """Seconds during which a session ran."""


class Budget:
    """Hard limits for what sessions may spend, and what they spent. Several sessions may share one.

    A request that would break a limit is not sent: the run ends with an event ``BudgetExceeded``, and the session
    goes on when the limits allow it again.
    """

    def __init__(
        self,
        *,
        requests: Optional[int] = None,
        turns: Optional[int] = None,
        tokens: Optional[int] = None,
        cost: Optional[float] = None,
        wall_time: Optional[float] = None,
        ignore_unknown_prices: bool = False,
    ) -> None:
        """As ``BudgetLimits``."""
        limits = BudgetLimits(requests, turns, tokens, cost, wall_time, ignore_unknown_prices)
        self._native = native.Budget(limits._json())

    @property
    def used(self) -> BudgetUse:
        """What was spent so far."""
        value = json.loads(self._native.used())
        return BudgetUse(
            requests=value["requests"],
            turns=value["turns"],
            tokens=value["tokens"],
            cost=float(value["cost"]),
            unpriced_requests=value["unpricedRequests"],
            wall_time=value["wallTimeMs"] / 1000,
        )

    @property
    def limits(self) -> BudgetLimits:
        """The limits now. Assign others at any time, also while sessions run."""
        value = json.loads(self._native.limits())
        time = value["wallTimeMs"]
        return BudgetLimits(
            requests=value["requests"],
            turns=value["turns"],
            tokens=value["tokens"],
            cost=value["cost"],
            wall_time=None if time is None else time / 1000,
            ignore_unknown_prices=value["ignoreUnknownPrices"],
        )

    @limits.setter
    def limits(self, limits: BudgetLimits) -> None:
        self._native.set_limits(limits._json())

    def __repr__(self) -> str:
        return f"<Budget {self._native.limits()}, used {self._native.used()}>"


Budgets = Union[Budget, Sequence[Budget]]
"""One budget, or several that all hold."""


def native_budgets(budget: Optional[Budgets]) -> List[native.Budget]:
    """The budgets as the native half takes them."""
    budgets = [] if budget is None else [budget] if isinstance(budget, Budget) else list(budget)
    if not all(isinstance(one, Budget) for one in budgets):
        raise InvalidArgumentError("budget is a Budget, or a list of them")
    return [one._native for one in budgets]
