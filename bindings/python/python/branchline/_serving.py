"""What waits for the function of the program that this thread or task runs."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import Iterator, List, Tuple

from . import _branchline as native
from .errors import WouldDeadlockError

_waiting: ContextVar[List[Tuple[str, int]]] = ContextVar("branchline_waiting")
"""A session, by its id and its number among those over its tree, or what else there is. A list, as tasks that a
function starts have it too: it is emptied when the function ends."""


@contextlib.contextmanager
def serving(waiting: str, sibling: int = 0) -> Iterator[None]:
    """While a function runs that this waits for."""
    served = [(waiting, sibling)] if waiting else []
    token = _waiting.set(served)
    try:
        yield
    finally:
        served.clear()
        _waiting.reset(token)


def refuse_to_wait_for(waiting: str, sibling: int = 0) -> None:
    """Fails inside a function that this waits for."""
    if (waiting, sibling) in _waiting.get([]):
        raise WouldDeadlockError("waiting here would wait for this function; return from it and wait elsewhere")


def refuse_to_wait_for_session(session: native.Session) -> None:
    """Fails inside a function that this session waits for. Its siblings, which have the same id, may be waited for."""
    if _waiting.get([]):
        refuse_to_wait_for(session.id(), session.sibling())
