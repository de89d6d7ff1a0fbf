"""Runs what a program gives as functions (tools, models, handlers, hooks, key sources), for whoever calls it.

The engine puts calls into a queue and never enters Python. One Python thread takes them: a plain function runs on a
thread of its own, a coroutine in an event loop. So whoever waits for the result (the main thread in ``session.run``, a
loop in ``await``, another tool) waits with the interpreter released and holds nothing that the tool could need.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import inspect
import itertools
import logging
import os
import threading
import weakref
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Union

from . import _branchline as native
from . import _calls
from ._question import Question
from ._serving import serving
from .errors import Error
from .hooks import ToolHook
from .permissions import Permissions
from .replay import RecordedTool
from .tools import Tool, ToolContext, as_tool, failure, to_json

Asked = Union[Tool, Question]
"""What requests go to."""

_log = logging.getLogger("branchline")
_log.addHandler(logging.NullHandler())  # silent, unless the program wants to hear

_EXIT_GRACE = 1.0
"""Seconds for the thread to end when the interpreter does."""


class Binding:
    """A tool where it is used: what its sessions, engine or toolbox keep alive."""

    __slots__ = ("__weakref__", "loop", "native", "thread", "tool")

    def __init__(self, tool: Asked, loop: Optional[asyncio.AbstractEventLoop]) -> None:
        self.tool = tool
        self.loop = loop
        """Where its coroutines run; None is the loop of the package."""
        self.thread = threading.get_ident()
        self.native: native.PythonTool


def bind(tool: Any, *, in_loop: bool) -> Binding:
    """Makes a tool callable. ``in_loop``: its coroutines run in the loop that runs now."""
    if isinstance(tool, RecordedTool):
        recorded = Binding(tool, None)
        recorded.native = tool._native
        return recorded
    server = _server()
    binding = Binding(as_tool(tool), _loop(in_loop))
    number = server.number(binding)
    binding.native = server.requests.tool(to_json(as_tool(tool).definition), number)
    return binding


def bind_permissions(permissions: Permissions, *, in_loop: bool) -> Tuple[native.Permissions, List[Binding]]:
    """The native policy, and what must live as long as it is used."""
    question = permissions._question()
    if question is None:
        return native.Permissions(permissions._policy), []
    requests, number, binding = bind_question(question, in_loop=in_loop)
    return native.Permissions(permissions._policy, requests, number), [binding]


def bind_hook(hook: ToolHook, *, in_loop: bool) -> Tuple[native.Hook, Binding]:
    """The native hook, and what must live as long as it is used."""
    requests, number, binding = bind_question(hook._question(), in_loop=in_loop)
    return native.Hook(requests, number, hook.before is not None, hook.after is not None), binding


def bind_question(question: Question, *, in_loop: bool) -> Tuple[native.Requests, int, Binding]:
    """Where requests for it go, with which number, and what must live as long as there may be some."""
    server = _server()
    binding = Binding(question, _loop(in_loop))
    return server.requests, server.number(binding), binding


def _loop(in_loop: bool) -> Optional[asyncio.AbstractEventLoop]:
    if in_loop:
        with contextlib.suppress(RuntimeError):
            return asyncio.get_running_loop()
    return None


def split(tools: Sequence[Any], *, in_loop: bool) -> Tuple[List[str], List[Binding]]:
    """The names of all, and the bindings of those that are no names."""
    bindings = [bind(tool, in_loop=in_loop) for tool in tools if not isinstance(tool, str)]
    waiting = iter(bindings)
    names = [tool if isinstance(tool, str) else next(waiting).tool.name for tool in tools]
    return names, bindings


class _Server:
    def __init__(self) -> None:
        self.requests = native.Requests()
        self.bindings: weakref.WeakValueDictionary[int, Binding] = weakref.WeakValueDictionary()
        self.numbers = itertools.count(1)
        self.running: Dict[int, _Running] = {}
        self.waiting: Dict[int, Tuple[_Running, int]] = {}
        """What a loop has not begun yet, and the thread of the loop. Who takes it out of here begins it."""
        self.thread = threading.Thread(target=self.serve, name="branchline-tools", daemon=True)
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.loop_lock = threading.RLock()  # a signal's handler may come in between
        self.tasks: Set[asyncio.Task[None]] = set()
        self.thread.start()

    def number(self, binding: Binding) -> int:
        """Takes it in, as long as somebody holds it."""
        number = next(self.numbers)
        self.bindings[number] = binding
        return number

    def serve(self) -> None:
        while True:
            notice = self.requests.next()
            if notice is None:
                return
            request, cancelled = notice
            if request is None:
                self.cancel(cancelled)
            elif not request.is_cancelled():
                self.begin(request)
            # An idle queue must not keep the last call alive.
            del notice, request

    def cancel(self, id: int) -> None:
        running = self.running.pop(id, None)
        if running is not None:
            running.cancel()

    def begin(self, request: native.Request) -> None:
        binding = self.bindings.get(request.target())
        if binding is None:
            request.fail("the function that this was for does not exist any more")
            return
        running = _Running(self, binding.tool, request)
        self.running[request.id()] = running
        try:
            if binding.tool.is_async:
                self.begin_in_a_loop(running, binding)
            else:
                threading.Thread(target=running.run, name=f"branchline-{binding.tool.name}", daemon=True).start()
        except RuntimeError as error:  # the interpreter is about to end
            running.fail(error)

    def begin_in_a_loop(self, running: _Running, binding: Binding) -> None:
        """In the loop of the binding, unless it is over or its thread waits for something of ours.

        A thread may begin to wait right after it was asked whether it does: then it hands over what it has not begun.
        """
        id = running.request.id()
        self.waiting[id] = running, binding.thread
        loop = binding.loop
        if loop is None or not loop.is_running() or _calls.is_blocked(binding.thread):
            loop = self.own_loop()
        try:
            running.start_in(loop)
        except RuntimeError:  # it was closed meanwhile
            running.start_in(self.own_loop())

    def own_loop(self) -> asyncio.AbstractEventLoop:
        with self.loop_lock:
            if self.loop is None or self.loop.is_closed():
                self.loop = asyncio.new_event_loop()
                threading.Thread(target=_run_for_ever, args=(self.loop,), name="branchline-loop", daemon=True).start()
            return self.loop

    def hand_over(self, thread: int) -> None:
        """The loop of this thread will do nothing for a while."""
        for running, of in list(self.waiting.values()):
            if of == thread:
                running.start_in(self.own_loop())


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    """Runs a loop that all sessions share: no tool may end it for the others.

    What a task that a tool started raises as SystemExit ends ``run_forever``, and so does ``loop.stop()``.
    """
    while not loop.is_closed():
        try:
            loop.run_forever()
        except BaseException:
            _log.warning("a task of a tool's tried to end the program", exc_info=True)


class _Running:
    """One call."""

    def __init__(self, server: _Server, tool: Asked, request: native.Request) -> None:
        self.server = server
        self.tool = tool
        self.request = request
        self.context = ToolContext(request)
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.task: Optional[asyncio.Task[Any]] = None
        held = tool.holds if isinstance(tool, Question) else ""
        self.holds = (held, 0) if held else (self.context.session_id, self.context.sibling)

    def run(self) -> None:
        """On a thread of its own."""
        try:
            with serving(*self.holds):
                value = self.tool._invoke(self.context)
                if inspect.isawaitable(value):  # of a function that does not look like a coroutine function
                    value = asyncio.run(self.later(value))
            self.answer(value)
        except BaseException as error:
            self.fail(error)

    async def later(self, value: Any) -> Any:
        """In a loop for this alone."""
        self.loop, self.task = asyncio.get_running_loop(), asyncio.current_task()
        if self.request.is_cancelled() and self.task is not None:
            self.task.cancel()
        return await value

    def start_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """From another thread than the loop's. When it was told so to several loops, the first one does it."""

        def start() -> None:
            if self.server.waiting.pop(self.request.id(), None) is None:
                return
            self.loop = loop
            self.task = loop.create_task(self.arun())
            self.server.tasks.add(self.task)
            self.task.add_done_callback(self.server.tasks.discard)
            if self.request.is_cancelled():
                self.task.cancel()

        loop.call_soon_threadsafe(start)

    async def arun(self) -> None:
        try:
            with serving(*self.holds):
                value = await self.tool._invoke(self.context)
            self.answer(value)
        except asyncio.CancelledError as error:
            self.fail(error)
            raise
        except BaseException as error:
            self.fail(error)
            # A coroutine that is closed has to end, and Ctrl-C is meant for the program if this is a loop of its own.
            if isinstance(error, GeneratorExit):
                raise
            if isinstance(error, KeyboardInterrupt) and self.loop is not self.server.loop:
                raise

    def cancel(self) -> None:
        self.context._cancelled.set()
        if self.server.waiting.pop(self.request.id(), None) is not None:
            return  # never begun
        if self.loop is not None:
            try:
                self.loop.call_soon_threadsafe(lambda: self.task and self.task.cancel())
            except RuntimeError:  # the loop was closed: nothing will end the task, so nothing may hold it
                if self.task is not None:
                    self.server.tasks.discard(self.task)

    def answer(self, value: Any) -> None:
        text = to_json(value)
        self.server.running.pop(self.request.id(), None)
        with contextlib.suppress(_cancelled()):
            self.request.complete(text)

    def fail(self, error: BaseException) -> None:
        self.server.running.pop(self.request.id(), None)
        self.server.waiting.pop(self.request.id(), None)
        cancelled = self.context.cancelled
        if cancelled:
            self.context._cancelled.set()  # the notice finds nobody any more
        try:
            if not cancelled:
                _log.warning("%s failed", self.tool.name, exc_info=error)
        finally:  # whatever the program's handlers do
            with contextlib.suppress(Error):  # answered, or nobody waits
                self.request.fail(failure(error))


def _cancelled() -> type[Error]:
    from .errors import CancelledError

    return CancelledError


def _hand_over(thread: int) -> None:
    server = _running
    if server is not None and server.waiting:
        server.hand_over(thread)


_calls.on_block.append(_hand_over)

_lock = threading.Lock()
_running: Optional[_Server] = None


def _server() -> _Server:
    global _running
    with _lock:
        if _running is None:
            _running = _Server()
        return _running


def _after_fork() -> None:
    """A child has none of the parent's threads; it starts its own when it has tools."""
    global _lock, _running
    _lock, _running = threading.Lock(), None


@atexit.register
def _at_exit() -> None:
    """After the engines, whose end cancels the calls: nothing native may wait when the interpreter goes."""
    server = _running
    if server is None:
        return
    with contextlib.suppress(Error, KeyboardInterrupt):
        server.requests.close()
        server.thread.join(_EXIT_GRACE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
