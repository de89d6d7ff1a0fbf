"""What waits for the function of the program that this thread or task runs."""

from __future__ import annotations

import contextlib
import json
from contextvars import ContextVar
from typing import Iterator, List, Optional, Set

from . import _branchline as native
from .errors import WouldDeadlockError


class _Served:
    """A session, by its id, or what else there is."""

    def __init__(self, what: str, call_id: str) -> None:
        self.what = what
        self.call_id = call_id
        """The tool call that the session makes, if it is that."""
        self.others: Set[int] = set()
        """Siblings of the session, by number, that were idle meanwhile, so that it is none of them."""


_waiting: ContextVar[List[_Served]] = ContextVar("branchline_waiting")
"""A list, as tasks that a function starts have it too: it is emptied when the function ends."""


@contextlib.contextmanager
def serving(waiting: str, call_id: str = "") -> Iterator[None]:
    """While a function runs that this waits for."""
    served = [_Served(waiting, call_id)] if waiting else []
    token = _waiting.set(served)
    try:
        yield
    finally:
        served.clear()
        _waiting.reset(token)


def refuse_to_wait_for(waiting: str) -> None:
    """Fails inside a function that this waits for."""
    if any(served.what == waiting for served in _waiting.get([])):
        raise WouldDeadlockError("waiting here would wait for this function; return from it and wait elsewhere")


def refuse_to_wait_for_session(session: native.Session) -> None:
    """Fails inside a function that this session waits for. Its siblings, which have the same id, may be waited for."""
    for served in list(_waiting.get([])):
        if served.what == session.id() and _serves(session, served):
            refuse_to_wait_for(served.what)


def began_to_run(session: native.Session) -> None:
    """Told of a session that was idle until now: what runs here is not for it."""
    for served in _waiting.get([]):
        if served.what == session.id():
            served.others.add(session.state()["sibling"])


def _serves(session: native.Session, served: _Served) -> bool:
    """Whether this is the sibling that waits. A request names the session and not which sibling it is."""
    state = session.state()
    if state["phase"] in ("idle", "closed") or state["sibling"] in served.others:
        return False
    if not served.call_id:
        return True  # as far as can be known
    called = _calls_at(session, state["leaf"])
    # Calls that a tool makes have the id of its own call, and a number behind that.
    return any(served.call_id == id or served.call_id.startswith(f"{id}/") for id in called)


def _calls_at(session: native.Session, leaf: Optional[str]) -> List[str]:
    """The ids of the tool calls at the end of a path: of its last response, if no user has said anything since."""
    tree = session.tree()
    while leaf is not None:
        entry = tree.entry(leaf)
        role = None if entry is None else entry[2]
        if role == "user":
            return []
        if entry is not None and role == "assistant":
            with contextlib.suppress(ValueError, AttributeError, KeyError, TypeError):
                content = json.loads(entry[3].decode("utf-8", "replace"))["message"]["content"]
                return [str(block.get("id")) for block in content if block.get("type") == "toolCall"]
            return []
        leaf = tree.parent(leaf)
    return []
