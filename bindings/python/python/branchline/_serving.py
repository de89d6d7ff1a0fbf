"""What waits for the function of the program that this thread or task runs."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import Iterator, List

from .errors import WouldDeadlockError

_waiting: ContextVar[List[str]] = ContextVar("branchline_waiting")
"""A session, by its id, or what else there is. A list, as tasks that a function starts have it too: it is emptied when
the function ends."""


@contextlib.contextmanager
def serving(waiting: str) -> Iterator[None]:
    """While a function runs that this waits for."""
    served = [waiting] if waiting else []
    token = _waiting.set(served)
    try:
        yield
    finally:
        served.clear()
        _waiting.reset(token)


def refuse_to_wait_for(waiting: str) -> None:
    """Fails inside a function that this waits for."""
    if waiting in _waiting.get([]):
        raise WouldDeadlockError("waiting here would wait for this function; return from it and wait elsewhere")
