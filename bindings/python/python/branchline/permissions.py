"""What tool calls may do: policies, and questions to the program."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _branchline as native
from ._question import Question, question
from .errors import InvalidArgumentError
from .events import JsonObject
from .options import PathLike, json_text
from .tools import ToolContext

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
        return question("permissions", handler, lambda context: handler(PermissionRequest(context)), _answer)


def as_permissions(value: Any) -> Permissions:
    """A policy, from one, the name of a preset, or a handler."""
    if isinstance(value, Permissions):
        return value
    if isinstance(value, str):
        return Permissions(value)  # type: ignore[arg-type]
    if callable(value):
        return Permissions(handler=value)
    raise InvalidArgumentError("permissions is the name of a preset, a function that is asked, or a Permissions")
