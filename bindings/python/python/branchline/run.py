"""What a prompt starts: a stream of events and a result."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, AsyncIterator, Deque, Dict, Generator, Iterator, List, Optional, Tuple, Union

from . import _branchline as native
from ._calls import Aborting, Call
from ._serving import refuse_to_wait_for_session
from .errors import Error
from .events import Event, JsonObject, event_from_row

_BATCH = 64
"""Events fetched at once: enough to make the crossing cheap, few enough to stay a moment's work."""


@dataclass(frozen=True)
class Cost:
    """Price in US dollars."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    total: float

    def __float__(self) -> float:
        return self.total


@dataclass(frozen=True)
class Usage:
    """Tokens, and what they cost."""

    input: int
    """Prompt tokens that were not cached."""
    output: int
    """Produced tokens, reasoning included."""
    cache_read: int
    cache_write: int
    total_tokens: int
    cost: Cost

    @staticmethod
    def _from_value(value: JsonObject) -> Usage:
        cost = value.get("cost") or {}
        return Usage(
            input=value.get("input", 0),
            output=value.get("output", 0),
            cache_read=value.get("cacheRead", 0),
            cache_write=value.get("cacheWrite", 0),
            total_tokens=value.get("totalTokens", 0),
            cost=Cost(
                input=float(cost.get("input", 0.0)),
                output=float(cost.get("output", 0.0)),
                cache_read=float(cost.get("cacheRead", 0.0)),
                cache_write=float(cost.get("cacheWrite", 0.0)),
                total=float(cost.get("total", 0.0)),
            ),
        )


@dataclass(frozen=True)
class ExceededLimit:
    """The limit of a budget that stopped a run."""

    limit: str
    """``requests``, ``turns``, ``tokens``, ``cost`` or ``wall_time``."""
    used: float
    """What is spent, with the least the next request would spend: a number, tokens, US dollars, or seconds."""
    max: float
    price_unknown: bool
    """The cost is limited and the model's price is not known."""


@dataclass(eq=False)
class RunResult:
    """What a run came to. A request that failed is a result too: see ``stop_reason`` and ``error_message``."""

    text: str
    """The text of the last assistant message."""
    usage: Usage
    """Tokens and cost of all responses of the run."""
    stop_reason: Optional[str]
    """Why the last response ended: ``stop``, ``length``, ``toolUse``, ``error`` or ``aborted``."""
    error_message: Optional[str]
    """What the model's service said, when the last response failed or was aborted."""
    leaf: Optional[str]
    """The entry the session stood on when the run was over."""
    aborted: bool
    """An abort was asked for."""
    budget_exceeded: Optional[ExceededLimit]
    """The limit that stopped it, if one did."""
    events: List[Event] = field(repr=False)
    """The events of the run, when ``Session.run`` made it; otherwise empty, as whoever iterated has seen them."""
    _messages: List[str] = field(repr=False)

    @staticmethod
    def _from_native(value: Dict[str, Any], events: List[Event]) -> RunResult:
        usage = Usage._from_value(json.loads(value.pop("usage")))
        over = value.pop("budget_exceeded")
        exceeded = None if over is None else ExceededLimit(*over)
        messages = value.pop("messages")
        return RunResult(usage=usage, budget_exceeded=exceeded, events=events, _messages=messages, **value)

    @cached_property
    def messages(self) -> List[JsonObject]:
        """The messages of the run as dictionaries: system, user, assistant, tool results."""
        return [json.loads(message) for message in self._messages]

    def _repr_html_(self) -> str:
        facts = [self.stop_reason or "", f"{self.usage.total_tokens} tokens", f"${self.usage.cost.total:.4f}"]
        if self.error_message:
            facts.append(self.error_message)
        line = " · ".join(html.escape(fact) for fact in facts if fact)
        return (
            f'<div><div style="white-space: pre-wrap">{html.escape(self.text)}</div>'
            f'<div style="opacity: 0.6; font-size: smaller">{line}</div></div>'
        )


class Events(Iterator[Event], AsyncIterator[Event]):
    """A subscription to a session's events: iterate with ``for`` or ``async for``; it ends when the session is closed.

    A session waits for a subscriber that does not read (after ``capacity`` events), so read it, ``close()`` it or let
    go of it.
    """

    def __init__(self, source: Union[native.Events, native.Run, native.Exploration]) -> None:
        self._source = source
        self._queue: Deque[Event] = deque()
        self._ended = False

    def _batch(self) -> Call[List[Tuple[Any, ...]]]:
        return Call(self._source.next_batch(_BATCH))

    def _take(self, rows: List[Tuple[Any, ...]]) -> None:
        if not rows:
            self._ended = True
        self._queue.extend(map(event_from_row, rows))

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while True:
            # Another thread that reads may take what this one fetched.
            with contextlib.suppress(IndexError):
                return self._queue.popleft()
            if self._ended:
                raise StopIteration
            self._take(self._batch().wait())

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while True:
            with contextlib.suppress(IndexError):
                return self._queue.popleft()
            if self._ended:
                raise StopAsyncIteration
            self._take(await self._batch())

    def close(self) -> None:
        """Takes no more events."""
        self._source.discard()
        self._queue.clear()
        self._ended = True


class Run(Events):
    """A run: its events from here to the end, by ``for`` or ``async for``, and then its result.

    ``run.result()`` blocks for the result, ``await run`` does not. Letting the object go unread leaves the run alone. A
    loop over it that is interrupted ends the run: Ctrl-C and the cancellation of the task at once, ``break`` and
    exceptions as soon as nothing refers to the run any more, or at the end of its ``with`` block. To leave a loop and
    let the run go on, keep the object.
    """

    def __init__(self, run: native.Run, session: native.Session) -> None:
        super().__init__(run)
        self._run = run
        self._session = session
        self._iterating = False

    @property
    def settled(self) -> bool:
        """Whether the run is over."""
        return self._run.settled()

    def result(self) -> RunResult:
        """Waits until the run is over. Events not read yet are lost. Ctrl-C aborts the run."""
        return self._finish([])

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._afinish([]).__await__()

    def __next__(self) -> Event:
        with Aborting(self._stop):
            return super().__next__()

    async def __anext__(self) -> Event:
        try:
            return await super().__anext__()
        except asyncio.CancelledError:
            await self._astop()
            raise

    def _batch(self) -> Call[List[Tuple[Any, ...]]]:
        self._refuse_to_wait()
        self._iterating = True
        return super()._batch()

    def _refuse_to_wait(self) -> None:
        """Inside a tool, permission handler, hook or model that the run waits for, it would never go on."""
        if not self.settled:
            refuse_to_wait_for_session(self._session)

    def _result(self, events: List[Event]) -> Call[RunResult]:
        self._refuse_to_wait()
        self._ended = True
        return Call(self._run.result(), lambda value: RunResult._from_native(value, events))

    def _finish(self, events: List[Event]) -> RunResult:
        call = self._result(events)
        with Aborting(self._stop):
            return call.wait()

    async def _afinish(self, events: List[Event]) -> RunResult:
        try:
            return await self._result(events)
        except asyncio.CancelledError:
            await self._astop()
            raise

    def _stop(self) -> None:
        """Aborts the run if it is not over, and waits for its end."""
        with contextlib.suppress(Error):
            if not self.settled:
                self._session.abort().wait()

    async def _astop(self) -> None:
        with contextlib.suppress(Error):
            if not self.settled:
                await Call(self._session.abort())

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop()

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self._astop()

    def __del__(self) -> None:
        # A loop was left early, and nobody can go on with it. Only the signal is given: nothing may wait here. An
        # interpreter that ends may have taken apart what this needs.
        with contextlib.suppress(Exception):
            if self._iterating and not self._ended and not self.settled:
                self._session.abort()
