"""What both kinds of engine share: the native engine, its operations, and its end."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _branchline as native
from . import _serve
from ._calls import Call
from ._question import Question
from .budget import native_budgets
from .engine_options import NetworkOptions, engine_json
from .errors import Error
from .events import JsonObject
from .hooks import as_hooks
from .host_models import (
    Answer,
    KeySource,
    LoginSource,
    ModelDefinition,
    PayloadHook,
    key_question,
    login_question,
    model_question,
    payload_question,
    provider_json,
)
from .models import CatalogueOperations, Configuration, Key
from .options import CreateOptions, OpenOptions, PathLike, SessionOptions, json_text, keywords
from .permissions import Handler, Permissions, as_permissions
from .replay import Replay
from .resources import resources_json

Script = Union[str, Sequence[JsonObject], JsonObject]
"""A scripted model's replies: a list of replies, an object with a list and settings, or either as JSON text."""

_EXIT_GRACE = 1.5
"""Seconds that sessions have, when the interpreter ends, to store what they have and to end their tools' processes."""


@dataclass(frozen=True)
class SessionInfo:
    """What a listing tells of a session file."""

    path: Path
    id: Optional[str]
    cwd: str
    name: Optional[str]
    parent_session: Optional[str]
    created: Optional[datetime]
    modified: datetime
    message_count: int
    first_message: str
    text: Optional[str] = None
    """All text of the session, if it was asked for."""


class ScriptControl:
    """The host's hand on a scripted model."""

    def __init__(self, control: native.ScriptControl) -> None:
        self._control = control

    def open_gate(self, name: str) -> None:
        """Lets replies pass that wait at this gate (``waitGate``)."""
        self._control.open_gate(name)

    def wait_reached(self, reply: int, timeout: Optional[float] = None) -> None:
        """Blocks until the reply with this number, from 0, stands at its ``hang`` or ``waitGate``."""
        Call[None](self._control.reached(reply)).wait(timeout)


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def _infos(rows: List[Tuple[Any, ...]]) -> List[SessionInfo]:
    return [
        SessionInfo(path, id, cwd, name, parent, None if created is None else _time(created), _time(modified), *rest)
        for path, id, cwd, name, parent, created, modified, *rest in rows
    ]


class EngineCore(CatalogueOperations):
    """The native engine and its operations."""

    _in_loop = False

    def __init__(
        self,
        *,
        worker_threads: Optional[int] = None,
        agent_dir: Optional[PathLike] = None,
        default_model: Optional[str] = None,
        permissions: Union[str, Permissions, Handler, None] = None,
        models: Optional[Configuration] = None,
        models_file: Optional[PathLike] = None,
        auth_file: Optional[PathLike] = None,
        agent_files: Union[bool, PathLike, None] = None,
        builtin_models: Optional[bool] = None,
        keys: Optional[Mapping[str, Union[str, Key]]] = None,
        key_source: Optional[KeySource] = None,
        login_source: Optional[LoginSource] = None,
        payload_hook: Optional[PayloadHook] = None,
        environment: Optional[bool] = None,
        commands: Optional[bool] = None,
        network: Optional[NetworkOptions] = None,
        proxy: Optional[str] = None,
        record: Optional[PathLike] = None,
        settings: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """Starts an engine.

        ``worker_threads``: one for each processor, at most 4, unless given. ``agent_dir``: where sessions and settings
        live, else ``$PI_CODING_AGENT_DIR`` or ``~/.pi/agent``. ``default_model``: ``provider/model`` for sessions that
        choose none. ``permissions``: what tool calls of sessions may do that do not say, ``ask`` unless given.

        ``models``: providers and models in the shape of ``models.json``. ``models_file``, ``auth_file``: files with
        models and keys; ``agent_files``: both, of the agent directory (True) or another one. ``builtin_models``: False
        leaves out those that are built in.

        ``keys``: providers and their keys, texts or ``Key``. ``key_source``: asked for the key of each request
        (``set_key_source``). ``login_source``: makes stored logins anew (``set_login_source``). ``payload_hook``: may
        replace the bodies of requests (``set_payload_hook``). ``environment``: False leaves out keys of the
        environment. ``commands``: True runs values of the files that are shell commands.

        ``network``: how services are reached; ``proxy`` is its ``proxy``. ``record``: a new file that gets the traffic
        with services, without keys. ``settings``: in the shape of ``settings.json``.
        """
        self._bindings: List[_serve.Binding] = []
        self._served: Dict[str, _serve.Binding] = {}
        policy: Optional[native.Permissions] = None
        if permissions is not None:
            policy, own = _serve.bind_permissions(as_permissions(permissions), in_loop=self._in_loop)
            self._bindings += own
        form = engine_json(
            models=models,
            keys=keys,
            agent_files=agent_files,
            network_options=network,
            proxy=proxy,
            settings=settings,
            worker_threads=worker_threads,
            agent_dir=agent_dir,
            default_model=default_model,
            models_file=models_file,
            auth_file=auth_file,
            builtin_models=builtin_models,
            environment=environment,
            commands=commands,
            record=record,
        )
        self._native = native.Engine(form, models if isinstance(models, str) else None, policy)
        _engines.add(self)
        if key_source is not None:
            self.set_key_source(key_source)
        if login_source is not None:
            self.set_login_source(login_source)
        if payload_hook is not None:
            self.set_payload_hook(payload_hook)

    def add_host_provider(
        self, name: str, models: Union[ModelDefinition, Sequence[ModelDefinition]], answer: Answer
    ) -> None:
        """Adds models that a function answers: sessions choose ``NAME/ID``.

        ``models``: ids, or dictionaries with ``id`` and what is known of it: ``name``, ``context_window``,
        ``max_tokens``, ``input`` (``["text", "image"]``), ``reasoning``, ``cost``. ``answer`` gets a ``ModelRequest``
        and may be an async generator function, a generator function, a coroutine function or a plain one. It yields,
        or returns, texts and events::

            {"type": "text" | "thinking", "text": …}            a whole block
            {"type": "text_delta" | "thinking_delta", "delta": …}
            {"type": "toolcall", "name": …, "arguments": {…}, "id": …}
            {"type": "usage", "usage": {"input": …, "output": …}}
            {"type": "done", "reason": "stop" | "length" | "toolUse"}
            {"type": "error", "error": …, "retryAfterMs": …}

        Nothing more is the end. An exception fails the response, with its text. When nobody waits any more a coroutine
        or async generator is cancelled; a generator is closed at its next piece, and ``request.cancelled`` says so
        before. Functions run as tools do: plain ones on a thread of their own for each request.
        """
        definition = provider_json(name, models)
        requests, number, binding = _serve.bind_question(model_question(name, answer), in_loop=self._in_loop)
        native.add_host_provider(self._native, definition, requests, number)
        self._served[f"model {name}"] = binding

    def set_key_source(self, source: Optional[KeySource]) -> None:
        """Sets who is asked for the key of each request, before anything but ``keys``; None is nobody.

        It gets a ``KeyRequest`` and gives a text, a ``Key``, or None for "look elsewhere"; it may be a coroutine
        function. What it raises fails the request, with its text.
        """
        self._set_source("keys", None if source is None else key_question(source), native.set_key_source)

    def set_login_source(self, source: Optional[LoginSource]) -> None:
        """Sets who makes stored logins anew; None is nobody, and then they are of no use.

        It is called when fewer than five minutes of a login remain, by one program at a time, with the provider's name
        and the login, a dictionary, and gives the one that takes its place, with new ``access`` and ``expires``
        (milliseconds since 1970), within 15 seconds; it may be a coroutine function. What it gives is stored, also when
        the run that needed it was aborted. What it raises fails the request, with its text, unless the login is good
        for a moment yet. The file is locked meanwhile: ``store_login`` and its neighbours are a ``WouldDeadlockError``
        in it, and wait for it elsewhere.
        """
        question = None if source is None else login_question(source, self._login_lock)
        self._set_source("logins", question, native.set_login_source)

    def set_payload_hook(self, hook: Optional[PayloadHook]) -> None:
        """Sets who sees the JSON body of each request to a service before it is sent; None is nobody.

        It gets a ``PayloadRequest`` and gives the body that takes its place, a dictionary, or None to send it as it
        was, whatever became of ``request.body``; it may be a coroutine function. It is asked once for each body, not
        again when the same one is sent again. What it raises fails the request, with its text, and nothing is sent.
        Keys are no part of a body. Models that the program serves, scripted ones and replays have none.
        """
        self._set_source("payloads", None if hook is None else payload_question(hook), native.set_payload_hook)

    def _set_source(
        self,
        what: str,
        question: Optional[Question],
        set_source: Callable[[native.Engine, Optional[native.Requests], int], None],
    ) -> None:
        """Has requests go to a function as long as it is needed; None is nobody."""
        if question is None:
            set_source(self._native, None, 0)
            self._served.pop(what, None)
            return
        requests, number, binding = _serve.bind_question(question, in_loop=self._in_loop)
        set_source(self._native, requests, number)
        self._served[what] = binding

    def _add_replay(self, path: PathLike, name: str, compare_tool_results: bool) -> Replay:
        options = json_text({"compareToolResults": compare_tool_results})
        replay = Replay(native.add_replay(self._native, name, path, options))
        self._served.pop(f"model {name}", None)
        return replay

    def add_scripted_model(self, name: str, script: Script) -> ScriptControl:
        """Adds the model ``scripted/NAME`` that answers from a script, for tests and demonstrations."""
        text = script if isinstance(script, str) else json_text(script)
        return ScriptControl(self._native.add_scripted_model(name, text))

    def add_tool(self, tool: Any) -> None:
        """Adds a tool (``@branchline.tool``, or a plain function) for the sessions and toolboxes made from now on."""
        binding = _serve.bind(tool, in_loop=self._in_loop)
        self._native.add_tool(binding.native)
        self._bindings.append(binding)

    def _keywords(self, given: Dict[str, Any], in_loop: bool) -> Dict[str, Any]:
        """Keywords with the tools that are functions, which the session keeps alive."""
        own: List[_serve.Binding] = []
        if "tools" in given:
            given["tools"], own = _serve.split(given["tools"], in_loop=in_loop)
        given["custom_tools"] = [binding.native for binding in own]
        if "permissions" in given:
            policy = as_permissions(given["permissions"])
            given["permissions"], asked = _serve.bind_permissions(policy, in_loop=in_loop)
            own += asked
        if "tool_hooks" in given:
            hooks = [_serve.bind_hook(hook, in_loop=in_loop) for hook in as_hooks(given["tool_hooks"])]
            given["tool_hooks"] = [hook for hook, _ in hooks]
            own += [binding for _, binding in hooks]
        if "budget" in given:
            given["budgets"] = native_budgets(given.pop("budget"))
        if "resources" in given:
            given["resources"] = resources_json(given["resources"])
        # What the engine gets later may be used by sessions that outlive its object.
        given["keep"] = [self._bindings, self._served, own]
        return given

    def _create(self, cwd: PathLike, options: Mapping[str, Any], in_loop: bool = False) -> Call[native.Session]:
        return Call(self._native.create_session(self._keywords(keywords(CreateOptions, options, cwd), in_loop)))

    def _open(self, path: PathLike, options: Mapping[str, Any], in_loop: bool = False) -> Call[native.Session]:
        return Call(self._native.open_session(path, self._keywords(keywords(OpenOptions, options), in_loop)))

    def _continue_recent(
        self, cwd: PathLike, options: Mapping[str, Any], in_loop: bool = False
    ) -> Call[native.Session]:
        return Call(self._native.continue_recent(self._keywords(keywords(SessionOptions, options, cwd), in_loop)))

    def _import(self, path: PathLike, options: Mapping[str, Any], in_loop: bool = False) -> Call[native.Session]:
        return Call(self._native.import_session(path, self._keywords(keywords(OpenOptions, options), in_loop)))

    def _list_sessions(
        self, cwd: Optional[PathLike], session_dir: Optional[PathLike], agent_dir: Optional[PathLike], text: bool
    ) -> Call[List[SessionInfo]]:
        return Call(self._native.list_sessions(cwd, session_dir, agent_dir, text), _infos)

    def _shutdown(self) -> Call[None]:
        return Call(self._native.shutdown())


_engines: weakref.WeakSet[EngineCore] = weakref.WeakSet()
_default: Optional[EngineCore] = None
_default_lock = threading.Lock()


def default_engine() -> EngineCore:
    """The engine of everything that names none; made when first needed."""
    global _default
    with _default_lock:
        if _default is None:
            _default = EngineCore()
        return _default


def _after_fork() -> None:
    """A child has none of the parent's threads: it makes an engine of its own when it needs one."""
    global _default, _default_lock, _engines
    _default, _default_lock, _engines = None, threading.Lock(), weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    """Sessions store what they have and end their tools' processes. An engine that does not answer is left behind."""
    calls: List[Call[None]] = []
    for engine in list(_engines):
        try:
            calls.append(engine._shutdown())
        except Error:
            continue
    for call in calls:
        try:
            call.wait(_EXIT_GRACE)
        except (Error, KeyboardInterrupt):
            continue


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
