"""Sessions and engines whose calls are awaited: the same names as in ``branchline``, for asyncio.

::

    from branchline import aio

    async with await aio.Session.create(".", model="scripted/demo") as session:
        async for event in session.prompt("What is here?"):
            ...
        result = await session.run("Thanks.")

They work in any running loop, a notebook's included. ``session.sync`` and ``Session.aio`` are two views of one session.
Cancelling a task that waits for a run aborts the run.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple

from . import session as blocking
from ._core import EngineCore, NavigateResult, SessionCore, SessionInfo, default_engine
from .events import JsonObject
from .options import CreateOptions, OpenOptions, PathLike, SessionOptions
from .run import RunResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Engine", "Session", "list_sessions"]


class Session(SessionCore):
    """As ``branchline.Session``, to be awaited."""

    @classmethod
    async def create(
        cls, cwd: PathLike = ".", *, engine: Optional[EngineCore] = None, **options: Unpack[CreateOptions]
    ) -> Session:
        """Makes a new session. Its file appears with the first message."""
        return cls(await (engine or default_engine())._create(cwd, options))

    @classmethod
    async def open(
        cls, path: PathLike, *, engine: Optional[EngineCore] = None, **options: Unpack[OpenOptions]
    ) -> Session:
        """Opens a session file."""
        return cls(await (engine or default_engine())._open(path, options))

    @classmethod
    async def continue_recent(
        cls, cwd: PathLike = ".", *, engine: Optional[EngineCore] = None, **options: Unpack[SessionOptions]
    ) -> Session:
        """Opens the most recent session of a directory, or makes one."""
        return cls(await (engine or default_engine())._continue_recent(cwd, options))

    @property
    def sync(self) -> blocking.Session:
        """The same session, with calls that block."""
        return blocking.Session(self._native, self.editor_text)

    async def run(self, text: str, *, images: Sequence[JsonObject] = ()) -> RunResult:
        """Sends a prompt and waits for the end of its run. Cancelling the task aborts the run."""
        run = self.prompt(text, images=images)
        events = [event async for event in run]
        return await run._afinish(events)

    async def steer(self, text: str) -> None:
        """Queues a text for the current run: it is delivered before the run's next request."""
        await self._steer(text)

    async def follow_up(self, text: str) -> None:
        """Queues a text for when the current run would end."""
        await self._follow_up(text)

    async def clear_queues(self) -> Tuple[List[str], List[str]]:
        """Empties both queues and returns their texts: steering, follow-up."""
        return await self._clear_queues()

    async def abort(self) -> None:
        """Aborts what runs and waits until the session is idle. Does nothing on an idle session."""
        await self._abort()

    async def wait_idle(self) -> None:
        """Waits until the session is idle."""
        await self._wait_idle()

    async def navigate(
        self,
        entry_id: str,
        *,
        label: Optional[str] = None,
        summarize: bool = False,
        instructions: Optional[str] = None,
        replace_instructions: bool = False,
    ) -> NavigateResult:
        """Moves the session to another entry of its tree. Cancelling the task aborts the summary."""
        try:
            return await self._navigate(entry_id, label, summarize, instructions, replace_instructions)
        except asyncio.CancelledError:
            await self._abort()
            raise

    async def fork(self, entry_id: str, *, position: str = "before") -> Session:
        """Copies the path to an entry into a new file and opens that as a session of its own."""
        return Session(*await self._fork(entry_id, position))

    async def clone(self) -> Session:
        """Copies the path to the leaf into a new file and opens that as a session of its own."""
        return Session(await self._clone())

    async def label(self, entry_id: str, label: Optional[str]) -> str:
        """Sets or, with None, clears the label of an entry. Returns the label's own entry, which becomes the leaf."""
        return await self._label(entry_id, label)

    @property
    def name(self) -> Optional[str]:
        """The session's name; see ``set_name``."""
        return self._native.name()

    async def set_name(self, name: Optional[str]) -> None:
        """Sets the session's name; None clears it."""
        await self._set_name(name or "")

    async def set_model(self, model: str) -> None:
        """Chooses the model, ``provider/model``, from the next request on."""
        await self._set_model(model)

    async def set_thinking_level(self, level: str) -> None:
        """Chooses the thinking level, as far as the model has it."""
        await self._set_thinking_level(level)

    async def set_tools(self, names: Sequence[str]) -> None:
        """Chooses the active tools."""
        await self._set_tools(names)

    async def append_custom(self, custom_type: str, data: Any = None) -> str:
        """Stores data of the host that the model never sees. Returns the entry's id."""
        return await self._append_custom(custom_type, data)

    async def append_custom_message(
        self, custom_type: str, content: Any, *, display: bool = True, details: Any = None
    ) -> Optional[str]:
        """Stores a message of the host that the model sees. Returns the entry's id; None when it is stored later."""
        return await self._append_custom_message(custom_type, content, display, details)

    async def close(self) -> None:
        """Aborts what runs, ends the session and releases its file. May be called again."""
        await self._close()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()


class Engine(EngineCore):
    """As ``branchline.Engine``, to be awaited."""

    async def create_session(self, cwd: PathLike = ".", **options: Unpack[CreateOptions]) -> Session:
        """As ``Session.create``, in this engine."""
        return Session(await self._create(cwd, options))

    async def open_session(self, path: PathLike, **options: Unpack[OpenOptions]) -> Session:
        """As ``Session.open``, in this engine."""
        return Session(await self._open(path, options))

    async def continue_recent(self, cwd: PathLike = ".", **options: Unpack[SessionOptions]) -> Session:
        """As ``Session.continue_recent``, in this engine."""
        return Session(await self._continue_recent(cwd, options))

    async def list_sessions(
        self, cwd: Optional[PathLike] = None, *, session_dir: Optional[PathLike] = None
    ) -> List[SessionInfo]:
        """The session files of a working directory, or of all, newest first."""
        return await self._list_sessions(cwd, session_dir)

    async def close(self) -> None:
        """Aborts and closes every session and waits until their files are released. May be called again."""
        await self._shutdown()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()


async def list_sessions(
    cwd: Optional[PathLike] = None, *, session_dir: Optional[PathLike] = None, engine: Optional[EngineCore] = None
) -> List[SessionInfo]:
    """The session files of a working directory, or of all, newest first."""
    return await (engine or default_engine())._list_sessions(cwd, session_dir)
