"""Siblings: further live sessions over one tree, and explorations, which try several prompts at once."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Final,
    Generator,
    Generic,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    TypeVar,
    Union,
)

from . import _branchline as native
from ._calls import Aborting, Call
from .budget import Budgets, native_budgets
from .errors import Error, InvalidArgumentError, make_error
from .events import Event, JsonObject
from .options import PathLike, capacity_of, images_json, json_text
from .run import Events, ExceededLimit, Usage

if TYPE_CHECKING:
    from ._session import NavigateResult

S = TypeVar("S")
"""``branchline.Session`` or ``branchline.aio.Session``."""


class Start(enum.Enum):
    """The type of ``START``."""

    START = "start"


START: Final = Start.START
"""As ``at=``: before the first entry, so that what is said next is a new root."""

At = Union[str, Start, None]
"""Where siblings begin: an entry's id, None for where the session stands, or ``START``."""

Prompt = Union[str, Mapping[str, Any]]
"""One prompt of an exploration: a text, or ``{"text", "images", "model", "thinking_level", "tools"}``."""

_PROMPT_KEYS = {
    "text": "text",
    "images": "images",
    "model": "model",
    "thinking_level": "thinkingLevel",
    "tools": "tools",
}


@dataclass(eq=False)
class ExploreResult(Generic[S]):
    """What became of one prompt of an exploration."""

    session: S
    """The sibling that ran it. It lives on, can be asked further, and adopted."""
    sibling: int
    """Its number, as in its events."""
    text: str
    """The text of its last response."""
    usage: Usage
    """Tokens and cost of all its responses."""
    stop_reason: Optional[str]
    """Why its last response ended; None when there was none."""
    error_message: Optional[str]
    """What the model's service said, when the last response failed or was aborted."""
    leaf: Optional[str]
    """The entry the sibling stood on when it was done."""
    aborted: bool
    """An abort was asked for."""
    budget_exceeded: Optional[ExceededLimit]
    """The limit that stopped it, if one did."""
    error: Optional[Error]
    """There was no run, or it could not be stored: ``cancelled`` when it was aborted before its turn."""
    _messages: List[JsonObject] = field(repr=False)

    @property
    def messages(self) -> List[JsonObject]:
        """What was said, from the prompt on."""
        return self._messages

    @cached_property
    def is_complete(self) -> bool:
        """It came to its end by itself, without an error."""
        failed = self.stop_reason in (None, "error", "aborted")
        return self.error is None and not self.aborted and not failed


def _result(session: S, text: str) -> ExploreResult[S]:
    value = json.loads(text)
    error = value["error"]
    if error is not None:
        error = make_error(error["code"], error["message"], None if error["path"] is None else Path(error["path"]))
    over = value["budgetExceeded"]
    exceeded = None if over is None else ExceededLimit(over["limit"], over["used"], over["max"], over["priceUnknown"])
    return ExploreResult(
        session=session,
        sibling=value["sibling"],
        text=value["text"],
        usage=Usage._from_value(value["usage"]),
        stop_reason=value["stopReason"],
        error_message=value["errorMessage"],
        leaf=value["leaf"],
        aborted=value["aborted"],
        budget_exceeded=exceeded,
        error=error,
        _messages=value["messages"],
    )


class Exploration(Events, Generic[S]):
    """Several siblings at work: their events in one stream, by ``for`` or ``async for``, and then their results.

    ``event.sibling`` tells whose an event is. ``results()`` blocks for the results, ``await exploration`` does not. It
    ends what still runs when nothing refers to it any more, at the end of its ``with`` block, by ``abort()``, and when
    a wait for it is interrupted: by Ctrl-C, or the cancellation of the task.
    """

    def __init__(self, exploration: native.Exploration, wrap: Callable[[native.Session], S]) -> None:
        super().__init__(exploration)
        self._exploration = exploration
        self._wrap = wrap

    @property
    def settled(self) -> bool:
        """Whether all are done."""
        return self._exploration.settled()

    @property
    def siblings(self) -> List[S]:
        """The siblings, in the order of their prompts."""
        return [self._wrap(session) for session in self._exploration.siblings()]

    def _results(self) -> Call[List[ExploreResult[S]]]:
        self._ended = True
        self._queue.clear()
        pending = self._exploration.results()
        return Call(pending, lambda rows: [_result(self._wrap(session), text) for session, text in rows])

    def results(self) -> List[ExploreResult[S]]:
        """Waits until all are done and returns the results in the order of the prompts.

        What failed is a result, too. Events not read yet are lost. Ctrl-C aborts everything.
        """
        call = self._results()
        with Aborting(self._stop):
            return call.wait()

    def __await__(self) -> Generator[Any, None, List[ExploreResult[S]]]:
        return self._aresults().__await__()

    async def _aresults(self) -> List[ExploreResult[S]]:
        try:
            return await self._results()
        except asyncio.CancelledError:
            await self._astop()
            raise

    def __next__(self) -> Event:
        with Aborting(self._stop):
            return super().__next__()

    async def __anext__(self) -> Event:
        try:
            return await super().__anext__()
        except asyncio.CancelledError:
            await self._astop()
            raise

    def abort(self) -> None:
        """Aborts everything, at once; who waited for a turn gets none. The results say when it is over."""
        self._exploration.abort()

    def abort_one(self, prompt: int) -> None:
        """Aborts one sibling, by the position of its prompt, and nothing else."""
        if prompt < 0:
            raise InvalidArgumentError(f"the position of a prompt is 0 or more, not {prompt}")
        self._exploration.abort_one(prompt)

    def _stop(self) -> None:
        with contextlib.suppress(Error):
            Call[None](self._exploration.abort()).wait()

    async def _astop(self) -> None:
        with contextlib.suppress(Error):
            await Call[None](self._exploration.abort())

    def __enter__(self) -> Exploration[S]:
        return self

    def __exit__(self, *_exception: object) -> None:
        if not self.settled:
            self._stop()

    async def __aenter__(self) -> Exploration[S]:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if not self.settled:
            await self._astop()


def tool_names(tools: Any) -> List[str]:
    """The names of tools that are given by name or as ``Tool``."""
    if isinstance(tools, str):
        raise InvalidArgumentError(f"tools is a list of names, not one name; write [{tools!r}]")
    if not isinstance(tools, Iterable):
        raise InvalidArgumentError(f"tools is a list of names, not a {type(tools).__name__}")
    return [_tool_name(tool) for tool in tools]


def _tool_name(tool: Any) -> str:
    name = tool if isinstance(tool, str) else getattr(tool, "name", None)
    if not isinstance(name, str):
        raise InvalidArgumentError(f"a tool is chosen by its name, or as a Tool, not by {tool!r}")
    return name


def _names(tools: Optional[Sequence[Any]]) -> Optional[List[str]]:
    return None if tools is None else tool_names(tools)


def _options(at: At, **given: Any) -> str:
    options: Dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if at is START:
        options["at"] = None
    elif at is not None:
        options["at"] = at
    return json_text(options)


def _prompt(given: Prompt) -> Union[str, JsonObject]:
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"a prompt is a text or a dictionary, not a {type(given).__name__}")
    unknown = set(given) - set(_PROMPT_KEYS)
    if unknown or "text" not in given:
        raise InvalidArgumentError(f"a prompt is a text or a dictionary of {', '.join(_PROMPT_KEYS)}")
    value = {_PROMPT_KEYS[key]: item for key, item in given.items() if item is not None}
    if "images" in value:
        value["images"] = json.loads(images_json(value["images"]))
    if "tools" in value:
        value["tools"] = _names(value["tools"])
    return value


class SiblingOperations:
    """The operations, as calls."""

    _native: native.Session

    @property
    def sibling(self) -> int:
        """Which of the sessions over its file it is: 0 for the one that opened or made it, then 1, 2, …"""
        sibling: int = self._native.state()["sibling"]
        return sibling

    def is_sibling_of(self, other: SiblingOperations) -> bool:
        """Whether both are sessions over one tree."""
        return native.is_sibling_of(self._native, other._native)

    def _branch(
        self,
        at: At,
        model: Optional[str],
        thinking_level: Optional[str],
        tools: Optional[Sequence[Any]],
        budget: Optional[Budgets],
    ) -> Call[native.Session]:
        options = _options(at, model=model, thinkingLevel=thinking_level, tools=_names(tools))
        return Call(native.branch(self._native, options, native_budgets(budget)))

    def _explore(
        self,
        prompts: Sequence[Prompt],
        at: At,
        limit: int,
        capacity: int,
        model: Optional[str],
        thinking_level: Optional[str],
        tools: Optional[Sequence[Any]],
        budget: Optional[Budgets],
    ) -> native.Exploration:
        if isinstance(prompts, (str, Mapping)) or not isinstance(prompts, Iterable):
            raise InvalidArgumentError("prompts is a list of prompts")
        given = json_text([_prompt(prompt) for prompt in prompts])
        more = {"model": model, "thinkingLevel": thinking_level, "tools": _names(tools)}
        options = _options(at, limit=limit, capacity=capacity_of(capacity), **more)
        pending = native.explore(self._native, given, options, native_budgets(budget))
        return Call[native.Exploration](pending).accepted()

    def _adopt(
        self,
        winner: Union[SiblingOperations, ExploreResult[Any]],
        summarize_others: bool,
        others: Optional[Sequence[str]],
        instructions: Optional[str],
        replace_instructions: bool,
    ) -> Call[NavigateResult]:
        from ._session import NavigateResult

        session = winner.session if isinstance(winner, ExploreResult) else winner
        if not isinstance(session, SiblingOperations):
            raise InvalidArgumentError(f"adopt takes a sibling, or a result of explore, not a {type(session).__name__}")
        options = {
            "summarizeOthers": summarize_others,
            "replaceInstructions": replace_instructions,
            **({} if others is None else {"others": list(others)}),
            **({} if instructions is None else {"instructions": instructions}),
        }
        pending = native.adopt(self._native, session._native, json_text(options))
        return Call(pending, lambda row: NavigateResult(*row))

    def _new_session(self, record_parent: bool, name: Optional[str]) -> Call[native.Session]:
        options = {"recordParent": record_parent, **({} if name is None else {"name": name})}
        return Call(native.new_session(self._native, json_text(options)))

    def _switch(self, path: PathLike, cwd: Optional[PathLike]) -> Call[native.Session]:
        return Call(native.switch(self._native, os.fspath(path), cwd))

    def _import_session(self, path: PathLike, cwd: Optional[PathLike]) -> Call[native.Session]:
        return Call(native.import_session(self._native, os.fspath(path), cwd))
