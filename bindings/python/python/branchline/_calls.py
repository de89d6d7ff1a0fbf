"""Calls that wait, for both worlds: ``call.wait()`` blocks, ``await call`` does not.

The engine's threads never enter Python. A blocking wait sleeps inside the native half with the interpreter released. An
awaiting task is woken through a pipe that its loop watches like a socket, one pipe a loop, and then looks at its result
itself; this works in any loop that is already running, a notebook's included. A loop that cannot watch descriptors
(Windows' proactor) looks at short intervals.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
import weakref
from typing import Any, Callable, Dict, Generator, Generic, List, Optional, TypeVar

from . import _branchline as native
from .errors import Error

T = TypeVar("T")

_LOOK_INTERVAL = 0.01
"""Seconds between two looks in loops that cannot be woken: not felt by people, and cheap."""


_blocked: Dict[int, int] = {}
"""How many waits each thread is in; more than one when a signal handler waits too."""


on_block: List[Callable[[int], None]] = []
"""Told which thread begins to wait, before it does."""


def is_blocked(thread: int) -> bool:
    """Whether a thread waits for something of ours, and with it the event loop that it may run."""
    return thread in _blocked


class Call(Generic[T]):
    """A call under way. Wait for it once, one way or the other."""

    __slots__ = ("_convert", "_pending")

    def __init__(self, pending: native.Pending, convert: Optional[Callable[[Any], T]] = None) -> None:
        self._pending = pending
        self._convert = convert

    def _finish(self, value: Any) -> T:
        result: T = value if self._convert is None else self._convert(value)
        return result

    def wait(self, timeout: Optional[float] = None) -> T:
        """Blocks until the result is there. Ctrl-C ends the wait."""
        thread = threading.get_ident()
        _blocked[thread] = _blocked.get(thread, 0) + 1
        try:
            for tell in on_block:
                tell(thread)
            value = self._pending.wait(timeout)
        finally:
            _blocked[thread] -= 1
            if not _blocked[thread]:
                del _blocked[thread]
        return self._finish(value)

    def accepted(self) -> T:
        """As ``wait``, for what never waits for a function of the program's: its thread's event loop is not blocked.

        A model or tool that is asked at once is then asked in that loop, where it belongs.
        """
        return self._finish(self._pending.wait())

    def __await__(self) -> Generator[Any, None, T]:
        return self._drive().__await__()

    async def _drive(self) -> T:
        bridge = _bridge(asyncio.get_running_loop())
        return self._finish(await bridge.drive(self._pending))


class Aborting:
    """Around a wait: when something else than the library ends it, what it waits for is aborted.

    That is what a signal's handler raises: KeyboardInterrupt, SystemExit, or an exception of the program's. An error of
    the library, such as a time that ran out, leaves alone what runs.
    """

    __slots__ = ("_abort",)

    def __init__(self, abort: Callable[[], Any]) -> None:
        self._abort = abort

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: Optional[BaseException], _traceback: Any) -> None:
        if error is not None and not isinstance(error, (Error, StopIteration)):
            with contextlib.suppress(Error):
                self._abort()


class _Bridge:
    """What wakes the tasks of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wakeups = native.Wakeups()
        self._tokens = itertools.count()
        self._sleeping: Dict[int, asyncio.Future[None]] = {}
        try:
            loop.add_reader(self._wakeups.fileno(), self._ring)
            self._can_ring = True
        except (AttributeError, NotImplementedError):
            self._can_ring = False

    def _ring(self) -> None:
        for token in self._wakeups.take():
            sleeping = self._sleeping.get(token)
            if sleeping is not None and not sleeping.done():
                sleeping.set_result(None)

    async def drive(self, pending: native.Pending) -> Any:
        token = next(self._tokens)
        try:
            while True:
                ready = pending.poll(self._wakeups, token)
                if ready is not None:
                    return ready[0]
                if self._can_ring:
                    self._sleeping[token] = asyncio.get_running_loop().create_future()
                    await self._sleeping[token]
                else:
                    await asyncio.sleep(_LOOK_INTERVAL)
        except asyncio.CancelledError:
            pending.cancel()
            raise
        finally:
            self._sleeping.pop(token, None)


_lock = threading.Lock()
_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Callable[[], Optional[_Bridge]]]
_bridges = weakref.WeakKeyDictionary()
"""A bridge that rings is held by its loop, as a reader, and not from here: its futures refer to the loop, which would
never go when it was closed while something waited. One that cannot ring has none."""


def _bridge(loop: asyncio.AbstractEventLoop) -> _Bridge:
    with _lock:
        known = _bridges.get(loop)
        bridge = None if known is None else known()
        if bridge is None:
            bridge = kept = _Bridge(loop)
            _bridges[loop] = weakref.ref(bridge) if bridge._can_ring else lambda: kept
        return bridge


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
