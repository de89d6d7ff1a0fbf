"""Sessions and engines whose calls block. ``branchline.aio`` has the same with calls to be awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Tuple, Union

from ._blocking import BlockingOperations
from ._calls import Aborting
from ._engine import EngineCore, SessionInfo, default_engine
from ._session import NavigateResult
from .events import JsonObject
from .models import StoredEntry
from .options import CreateOptions, OpenOptions, PathLike, SessionOptions, seconds
from .replay import Replay
from .run import RunResult
from .tools import Tool

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import aio as aio_module


class Session(BlockingOperations):
    """A live session: a position in a session tree, with a model, tools and a running agent.

    Made by ``Session.create``, ``Session.open`` or ``Session.continue_recent``. Every method may be called from any
    thread. While a call waits, other threads run. It is closed by ``close()``, at the end of a ``with`` block, or when
    nothing refers to it.
    """

    @classmethod
    def create(
        cls, cwd: PathLike = ".", *, engine: Optional[EngineCore] = None, **options: Unpack[CreateOptions]
    ) -> Session:
        """Makes a new session. Its file appears with the first message.

        Keywords: ``model`` (``provider/model``), ``thinking_level``, ``tools`` (names and functions),
        ``system_prompt``, ``in_memory``, ``session_dir``, ``id``, ``name``, ``parent_session``, ``durability``: see
        ``CreateOptions``.
        """
        return cls((engine or default_engine())._create(cwd, options).wait())

    @classmethod
    def open(cls, path: PathLike, *, engine: Optional[EngineCore] = None, **options: Unpack[OpenOptions]) -> Session:
        """Opens a session file. A path where there is none is a new session, whose file appears with the first message.

        Keywords: ``cwd``, ``read_only``, ``model``, ``thinking_level``, ``tools``, ``system_prompt``, ``session_dir``,
        ``durability``: see ``OpenOptions``.
        """
        return cls((engine or default_engine())._open(path, options).wait())

    @classmethod
    def continue_recent(
        cls, cwd: PathLike = ".", *, engine: Optional[EngineCore] = None, **options: Unpack[SessionOptions]
    ) -> Session:
        """Opens the most recent session of a directory, or makes one.

        Keywords: ``model``, ``thinking_level``, ``tools``, ``system_prompt``, ``session_dir``, ``durability``.
        """
        return cls((engine or default_engine())._continue_recent(cwd, options).wait())

    @property
    def aio(self) -> aio_module.Session:
        """The same session, with calls to be awaited."""
        from . import aio

        return aio.Session(self._native, self.editor_text)

    def run(
        self,
        text: str,
        *,
        images: Sequence[JsonObject] = (),
        expand: bool = True,
        forced_prompt: Optional[str] = None,
    ) -> RunResult:
        """Sends a prompt and waits for the end of its run. Ctrl-C aborts the run. Keywords as of ``prompt``."""
        run = self.prompt(text, images=images, expand=expand, forced_prompt=forced_prompt)
        return run._finish(list(run))

    def steer(self, text: str) -> None:
        """Queues a text for the current run: it is delivered before the run's next request."""
        self._steer(text).wait()

    def follow_up(self, text: str) -> None:
        """Queues a text for when the current run would end."""
        self._follow_up(text).wait()

    def clear_queues(self) -> Tuple[List[str], List[str]]:
        """Empties both queues and returns their texts: steering, follow-up."""
        return self._clear_queues().wait()

    def abort(self) -> None:
        """Aborts what runs and waits until the session is idle. Does nothing on an idle session."""
        self._abort().wait()

    def wait_idle(self, timeout: Optional[float] = None) -> None:
        """Waits until the session is idle, at most ``timeout`` seconds (then ``TimeoutError``). Ctrl-C aborts it."""
        limit = seconds(timeout)
        call = self._wait_idle()
        with Aborting(self.abort):
            call.wait(limit)

    def navigate(
        self,
        entry_id: str,
        *,
        label: Optional[str] = None,
        summarize: bool = False,
        instructions: Optional[str] = None,
        replace_instructions: bool = False,
    ) -> NavigateResult:
        """Moves the session to another entry of its tree.

        Choosing a user message moves before it and gives its text, to be edited and sent again. ``summarize`` stores a
        summary of what is left behind; ``instructions`` say what it should pay attention to. Ctrl-C
        aborts the summary.
        """
        call = self._navigate(entry_id, label, summarize, instructions, replace_instructions)
        with Aborting(self.abort):
            return call.wait()

    def fork(self, entry_id: str, *, position: str = "before") -> Session:
        """Copies the path to an entry into a new file and opens that as a session of its own.

        ``position``: ``"before"`` a user message (``fork.editor_text`` is then its text), or ``"at"`` any entry. This
        session stays as it is, also while it runs.
        """
        return Session(*self._fork(entry_id, position).wait())

    def clone(self) -> Session:
        """Copies the path to the leaf into a new file and opens that as a session of its own."""
        return Session(self._clone().wait())

    def label(self, entry_id: str, label: Optional[str]) -> str:
        """Sets or, with None, clears the label of an entry. Returns the label's own entry, which becomes the leaf."""
        return self._label(entry_id, label).wait()

    @property
    def name(self) -> Optional[str]:
        """The session's name; None clears it."""
        return self._native.name()

    @name.setter
    def name(self, name: Optional[str]) -> None:
        self._set_name(name or "").wait()

    def set_model(self, model: str) -> None:
        """Chooses the model, ``provider/model``, from the next request on."""
        self._set_model(model).wait()

    def set_thinking_level(self, level: str) -> None:
        """Chooses the thinking level, as far as the model has it."""
        self._set_thinking_level(level).wait()

    def set_tools(self, names: Sequence[Union[str, Tool]]) -> None:
        """Chooses the active tools, by name, of those the session knows."""
        self._set_tools(names).wait()

    def append_custom(self, custom_type: str, data: Any = None) -> str:
        """Stores data of the host that the model never sees. Returns the entry's id."""
        return self._append_custom(custom_type, data).wait()

    def append_custom_message(
        self, custom_type: str, content: Any, *, display: bool = True, details: Any = None
    ) -> Optional[str]:
        """Stores a message of the host that the model sees: a string, or a list of text and image blocks.

        Returns the entry's id; None when a run is active, as the message is then stored after the current turn.
        """
        return self._append_custom_message(custom_type, content, display, details).wait()

    def close(self) -> None:
        """Aborts what runs, ends the session and releases its file. May be called again."""
        self._close().wait()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class Engine(EngineCore):
    """What owns threads, models and tools. Sessions share one by default; make one for settings of its own.

    ``with Engine() as engine: engine.create_session(".")``
    """

    def create_session(self, cwd: PathLike = ".", **options: Unpack[CreateOptions]) -> Session:
        """As ``Session.create``, in this engine."""
        return Session(self._create(cwd, options).wait())

    def open_session(self, path: PathLike, **options: Unpack[OpenOptions]) -> Session:
        """As ``Session.open``, in this engine."""
        return Session(self._open(path, options).wait())

    def continue_recent(self, cwd: PathLike = ".", **options: Unpack[SessionOptions]) -> Session:
        """As ``Session.continue_recent``, in this engine."""
        return Session(self._continue_recent(cwd, options).wait())

    def import_session(self, path: PathLike, **options: Unpack[OpenOptions]) -> Session:
        """Copies a session file into the session directory and opens the copy.

        Keywords as of ``open_session``; without ``cwd`` the session keeps its own, and is filed under that. When there
        is no such file that is a ``StorageFailedError``.
        """
        return Session(self._import(path, options).wait())

    def list_sessions(
        self,
        cwd: Optional[PathLike] = None,
        *,
        session_dir: Optional[PathLike] = None,
        agent_dir: Optional[PathLike] = None,
        text: bool = False,
    ) -> List[SessionInfo]:
        """The session files of a working directory, or of all, newest first. ``text``: with all they say."""
        return self._list_sessions(cwd, session_dir, agent_dir, text).wait()

    def add_replay(self, path: PathLike, name: str = "replay", *, compare_tool_results: bool = True) -> Replay:
        """Adds the models that answered in a session file, ``NAME/ID``; they give the recorded answers again.

        They do so as long as the conversation is the recorded one; where it leaves it the request fails, and
        ``replay.divergence`` has both sides. ``compare_tool_results``: False lets live tools say something else.
        """
        return self._add_replay(path, name, compare_tool_results)

    def store_key(
        self,
        provider: str,
        key: Optional[str],
        *,
        configured: bool = False,
        variables: Optional[Mapping[str, str]] = None,
    ) -> None:
        """Stores a key in the file that ``auth_file`` or ``agent_files`` names, in the place of what was stored for it.

        It is pi's file: other entries stay, and it is changed under the lock pi takes. ``configured``: the key may have
        variables, ``$NAME``, and one that begins with ``!`` is a command. ``variables``: such that only this provider
        sees; ``key`` may be None then.
        """
        self._store_key(provider, key, configured, variables).wait()

    def store_login(self, provider: str, login: Mapping[str, Any]) -> None:
        """Stores a login there: ``{"access": …, "refresh": …, "expires": milliseconds}``."""
        self._store_login(provider, login).wait()

    def forget_stored(self, provider: str) -> bool:
        """Removes what is stored for a provider. Tells whether something was."""
        return self._forget_stored(provider).wait()

    def stored_keys(self) -> List[StoredEntry]:
        """What is stored, in the order of the file, without secrets."""
        return self._stored_keys().wait()

    def close(self) -> None:
        """Aborts and closes every session and waits until their files are released. May be called again."""
        self._shutdown().wait()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def list_sessions(
    cwd: Optional[PathLike] = None,
    *,
    session_dir: Optional[PathLike] = None,
    agent_dir: Optional[PathLike] = None,
    text: bool = False,
    engine: Optional[EngineCore] = None,
) -> List[SessionInfo]:
    """The session files of a working directory, or of all, newest first. ``text``: with all they say."""
    return (engine or default_engine())._list_sessions(cwd, session_dir, agent_dir, text).wait()
