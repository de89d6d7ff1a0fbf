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
import inspect
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Tuple, Union

from . import session as blocking
from . import toolbox, tree
from ._awaited import AwaitedOperations
from ._calls import Call
from ._engine import EngineCore, SessionInfo, default_engine
from ._session import NavigateResult
from .events import JsonObject
from .models import StoredEntry
from .options import CreateOptions, OpenOptions, PathLike, SessionOptions
from .replay import Replay
from .run import RunResult
from .toolbox import Edit, OnProgress, ToolboxCore, checked
from .tools import Tool, ToolResult
from .tree import Tree

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Engine", "Session", "Toolbox", "list_sessions", "read_session"]


class Session(AwaitedOperations):
    """As ``branchline.Session``, to be awaited."""

    @classmethod
    async def create(
        cls, cwd: PathLike = ".", *, engine: Optional[EngineCore] = None, **options: Unpack[CreateOptions]
    ) -> Session:
        """Makes a new session. Its file appears with the first message."""
        return cls(await (engine or default_engine())._create(cwd, options, in_loop=True))

    @classmethod
    async def open(
        cls, path: PathLike, *, engine: Optional[EngineCore] = None, **options: Unpack[OpenOptions]
    ) -> Session:
        """Opens a session file."""
        return cls(await (engine or default_engine())._open(path, options, in_loop=True))

    @classmethod
    async def continue_recent(
        cls, cwd: PathLike = ".", *, engine: Optional[EngineCore] = None, **options: Unpack[SessionOptions]
    ) -> Session:
        """Opens the most recent session of a directory, or makes one."""
        return cls(await (engine or default_engine())._continue_recent(cwd, options, in_loop=True))

    @property
    def sync(self) -> blocking.Session:
        """The same session, with calls that block."""
        return blocking.Session(self._native, self.editor_text)

    async def run(
        self,
        text: str,
        *,
        images: Sequence[JsonObject] = (),
        expand: bool = True,
        forced_prompt: Optional[str] = None,
    ) -> RunResult:
        """Sends a prompt and waits for the end of its run. Cancelling the task aborts the run."""
        run = self.prompt(text, images=images, expand=expand, forced_prompt=forced_prompt)
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

    async def set_tools(self, names: Sequence[Union[str, Tool]]) -> None:
        """Chooses the active tools, by name, of those the session knows."""
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
    """As ``branchline.Engine``, to be awaited. Coroutines it is given run in the loop in which that was."""

    _in_loop = True

    async def create_session(self, cwd: PathLike = ".", **options: Unpack[CreateOptions]) -> Session:
        """As ``Session.create``, in this engine."""
        return Session(await self._create(cwd, options, in_loop=True))

    async def open_session(self, path: PathLike, **options: Unpack[OpenOptions]) -> Session:
        """As ``Session.open``, in this engine."""
        return Session(await self._open(path, options, in_loop=True))

    async def continue_recent(self, cwd: PathLike = ".", **options: Unpack[SessionOptions]) -> Session:
        """As ``Session.continue_recent``, in this engine."""
        return Session(await self._continue_recent(cwd, options, in_loop=True))

    async def import_session(self, path: PathLike, **options: Unpack[OpenOptions]) -> Session:
        """Copies a session file into the session directory and opens the copy.

        Keywords as of ``open_session``; without ``cwd`` the session keeps its own, and is filed under that. When there
        is no such file that is a ``StorageFailedError``.
        """
        return Session(await self._import(path, options, in_loop=True))

    async def list_sessions(
        self,
        cwd: Optional[PathLike] = None,
        *,
        session_dir: Optional[PathLike] = None,
        agent_dir: Optional[PathLike] = None,
        text: bool = False,
    ) -> List[SessionInfo]:
        """The session files of a working directory, or of all, newest first. ``text``: with all they say."""
        return await self._list_sessions(cwd, session_dir, agent_dir, text)

    async def add_replay(self, path: PathLike, name: str = "replay", *, compare_tool_results: bool = True) -> Replay:
        """Adds the models that answered in a session file, ``NAME/ID``; they give the recorded answers again."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._add_replay, path, name, compare_tool_results)

    async def store_key(
        self,
        provider: str,
        key: Optional[str],
        *,
        configured: bool = False,
        variables: Optional[Mapping[str, str]] = None,
    ) -> None:
        """Stores a key in the file that ``auth_file`` or ``agent_files`` names, in the place of what it had for it."""
        await self._store_key(provider, key, configured, variables)

    async def store_login(self, provider: str, login: Mapping[str, Any]) -> None:
        """Stores a login there: ``{"access": …, "refresh": …, "expires": milliseconds}``."""
        await self._store_login(provider, login)

    async def forget_stored(self, provider: str) -> bool:
        """Removes what is stored for a provider. Tells whether something was."""
        return await self._forget_stored(provider)

    async def stored_keys(self) -> List[StoredEntry]:
        """What is stored, in the order of the file, without secrets."""
        return await self._stored_keys()

    async def close(self) -> None:
        """Aborts and closes every session and waits until their files are released. May be called again."""
        await self._shutdown()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()


class Toolbox(ToolboxCore):
    """As ``branchline.Toolbox``, to be awaited.

    Cancelling the task ends the tool. Coroutines among the tools run in the loop in which the toolbox was made.
    ``on_progress`` may be a coroutine function.
    """

    _in_loop = True

    async def call(
        self,
        name: Union[str, Tool],
        arguments: Optional[Mapping[str, Any]] = None,
        /,
        *,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
        **keywords: Any,
    ) -> ToolResult:
        """Calls any tool by its name. Arguments are keywords, a mapping, or both."""
        call = self._start(name, {**(arguments or {}), **keywords})
        try:
            while on_progress is not None:
                text, over = await Call[Tuple[str, bool]](call.step())
                if over:
                    break
                told = on_progress(ToolResult._from_json(text))
                if inspect.isawaitable(told):
                    await told
            else:
                text = await Call[str](call.result())
        finally:
            call.cancel()
        return checked(ToolResult._from_json(text), check)

    async def read(
        self,
        path: PathLike,
        *,
        offset: Optional[int] = None,
        limit: Optional[int] = None,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Reads a text file, from line ``offset`` (from 1), at most ``limit`` lines; or an image."""
        return await self.call("read", toolbox._read(path, offset, limit), on_progress=on_progress, check=check)

    async def write(
        self, path: PathLike, content: str, *, on_progress: Optional[OnProgress] = None, check: bool = True
    ) -> ToolResult:
        """Writes a whole file, and the directories it needs."""
        return await self.call(
            "write", {"path": toolbox._path(path), "content": content}, on_progress=on_progress, check=check
        )

    async def edit(
        self,
        path: PathLike,
        edits: Sequence[Edit],
        *,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Replaces pieces of a file, each of which must be in it once: ``[(old, new), …]``. All or none."""
        return await self.call("edit", toolbox._edits(path, edits), on_progress=on_progress, check=check)

    async def bash(
        self,
        command: str,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Runs a command in a shell, at most ``timeout`` seconds. A code other than 0 is a failure."""
        arguments = toolbox._arguments(command=command, timeout=timeout)
        return await self.call("bash", arguments, on_progress=on_progress, check=check)

    async def ls(
        self,
        path: Optional[PathLike] = None,
        *,
        limit: Optional[int] = None,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Lists a directory, sorted as people sort; directories end with ``/``."""
        return await self.call(
            "ls", toolbox._arguments(path=toolbox._path(path), limit=limit), on_progress=on_progress, check=check
        )

    async def find(
        self,
        pattern: str,
        *,
        path: Optional[PathLike] = None,
        limit: Optional[int] = None,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Finds files by a glob: ``*.py`` at any depth, ``src/**/*.py`` from the directory."""
        arguments = toolbox._arguments(pattern=pattern, path=toolbox._path(path), limit=limit)
        return await self.call("find", arguments, on_progress=on_progress, check=check)

    async def grep(
        self,
        pattern: str,
        *,
        path: Optional[PathLike] = None,
        glob: Optional[str] = None,
        ignore_case: bool = False,
        literal: bool = False,
        context: Optional[int] = None,
        limit: Optional[int] = None,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Searches files for a regular expression, or with ``literal`` for a text. Lines are ``path:line: text``."""
        arguments = toolbox._grep(pattern, path, glob, ignore_case, literal, context, limit)
        return await self.call("grep", arguments, on_progress=on_progress, check=check)


async def list_sessions(
    cwd: Optional[PathLike] = None,
    *,
    session_dir: Optional[PathLike] = None,
    agent_dir: Optional[PathLike] = None,
    text: bool = False,
    engine: Optional[EngineCore] = None,
) -> List[SessionInfo]:
    """The session files of a working directory, or of all, newest first. ``text``: with all they say."""
    return await (engine or default_engine())._list_sessions(cwd, session_dir, agent_dir, text)


async def read_session(path: PathLike) -> Tree:
    """The tree of a session file, to read. Its own methods are those of ``branchline.Tree``: they are not awaited."""
    return await asyncio.get_running_loop().run_in_executor(None, tree.read_session, path)
