"""The tools as functions, without a session. ``branchline.aio`` has the same to be awaited."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _branchline as native
from . import _serve
from ._calls import Call
from ._engine import EngineCore, default_engine
from .errors import ToolError
from .events import JsonObject
from .options import PathLike, json_text
from .permissions import Handler, Permissions, as_permissions
from .tools import Tool, ToolResult

Edit = Union[Tuple[str, str], Mapping[str, str]]
"""A replacement: ``(old, new)``, or ``{"oldText": old, "newText": new}``."""
OnProgress = Callable[[ToolResult], Any]


def _path(path: Optional[PathLike]) -> Optional[str]:
    return None if path is None else os.fspath(path)


def _arguments(**given: Any) -> Dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _read(path: PathLike, offset: Optional[int], limit: Optional[int]) -> Dict[str, Any]:
    return _arguments(path=_path(path), offset=offset, limit=limit)


def _edits(path: PathLike, edits: Sequence[Edit]) -> Dict[str, Any]:
    pairs = [dict(edit) if isinstance(edit, Mapping) else {"oldText": edit[0], "newText": edit[1]} for edit in edits]
    return {"path": _path(path), "edits": pairs}


def _grep(
    pattern: str,
    path: Optional[PathLike],
    glob: Optional[str],
    ignore_case: bool,
    literal: bool,
    context: Optional[int],
    limit: Optional[int],
) -> Dict[str, Any]:
    flags = _arguments(ignoreCase=ignore_case or None, literal=literal or None)
    return _arguments(pattern=pattern, path=_path(path), glob=glob, context=context, limit=limit, **flags)


def checked(result: ToolResult, check: bool) -> ToolResult:
    """The result, or the exception of one that failed."""
    if check and result.is_error:
        error = ToolError(result.text)
        error.result = result
        raise error
    return result


class ToolboxCore:
    """The native toolbox and what needs no waiting."""

    _in_loop = False

    def __init__(
        self,
        cwd: PathLike = ".",
        *,
        tools: Sequence[Any] = (),
        permissions: Union[str, Permissions, Handler, None] = None,
        engine: Optional[EngineCore] = None,
    ) -> None:
        """Makes a toolbox with the built-in tools and those of the engine.

        ``cwd``: where they work. ``tools``: tools of your own. ``permissions``: what calls may do; everything, unless
        given, as who calls a tool as a function has decided. ``engine``: whose threads they run on.
        """
        engine = engine or default_engine()
        self._native = engine._native.toolbox(Path(cwd))
        self._keep: List[Any] = list(engine._bindings)
        for tool in tools:
            self.add(tool)
        if permissions is not None:
            self.set_permissions(permissions)

    def set_permissions(self, permissions: Union[str, Permissions, Handler]) -> None:
        """Sets what calls may do from now on. Answers given for always are forgotten."""
        policy, own = _serve.bind_permissions(as_permissions(permissions), in_loop=self._in_loop)
        self._native.set_permissions(policy)
        self._keep += own

    def add(self, tool: Any) -> None:
        """Adds a tool (``@branchline.tool``, or a plain function), replacing one of the same name."""
        binding = _serve.bind(tool, in_loop=self._in_loop)
        self._native.add(binding.native)
        self._keep.append(binding)

    @property
    def definitions(self) -> List[JsonObject]:
        """What can be called: name, description and parameters of each tool, by name."""
        definitions: List[JsonObject] = json.loads(self._native.definitions_json())
        return definitions

    def _start(self, name: Union[str, Tool], arguments: Mapping[str, Any]) -> native.ToolCall:
        return self._native.start(name if isinstance(name, str) else name.name, json_text(arguments))

    def __repr__(self) -> str:
        names = [definition["name"] for definition in self.definitions]
        return f"<{type(self).__name__} {', '.join(names)}>"


class Toolbox(ToolboxCore):
    """The tools in a directory, as functions.

    ::

        tb = bl.Toolbox(cwd=".")
        tb.grep("TODO", path="src", limit=20).text

    Each call blocks until the tool is done, with the interpreter released; Ctrl-C ends the tool. It returns a
    ``ToolResult`` and raises ``ToolError`` when the tool fails, unless ``check=False``: then see ``result.is_error``.
    ``on_progress`` is called with partial results, on the calling thread; what it raises ends the call.
    """

    def call(
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
                text, over = Call[Tuple[str, bool]](call.step()).wait()
                if over:
                    break
                on_progress(ToolResult._from_json(text))
            else:
                text = Call[str](call.result()).wait()
        finally:
            call.cancel()
        return checked(ToolResult._from_json(text), check)

    def read(
        self,
        path: PathLike,
        *,
        offset: Optional[int] = None,
        limit: Optional[int] = None,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Reads a text file, from line ``offset`` (from 1), at most ``limit`` lines; or an image."""
        return self.call("read", _read(path, offset, limit), on_progress=on_progress, check=check)

    def write(
        self, path: PathLike, content: str, *, on_progress: Optional[OnProgress] = None, check: bool = True
    ) -> ToolResult:
        """Writes a whole file, and the directories it needs."""
        return self.call("write", {"path": _path(path), "content": content}, on_progress=on_progress, check=check)

    def edit(
        self,
        path: PathLike,
        edits: Sequence[Edit],
        *,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Replaces pieces of a file, each of which must be in it once: ``[(old, new), …]``. All or none."""
        return self.call("edit", _edits(path, edits), on_progress=on_progress, check=check)

    def bash(
        self,
        command: str,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Runs a command in a shell, at most ``timeout`` seconds. A code other than 0 is a failure."""
        arguments = _arguments(command=command, timeout=timeout)
        return self.call("bash", arguments, on_progress=on_progress, check=check)

    def ls(
        self,
        path: Optional[PathLike] = None,
        *,
        limit: Optional[int] = None,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Lists a directory, sorted as people sort; directories end with ``/``."""
        return self.call("ls", _arguments(path=_path(path), limit=limit), on_progress=on_progress, check=check)

    def find(
        self,
        pattern: str,
        *,
        path: Optional[PathLike] = None,
        limit: Optional[int] = None,
        on_progress: Optional[OnProgress] = None,
        check: bool = True,
    ) -> ToolResult:
        """Finds files by a glob: ``*.py`` at any depth, ``src/**/*.py`` from the directory."""
        arguments = _arguments(pattern=pattern, path=_path(path), limit=limit)
        return self.call("find", arguments, on_progress=on_progress, check=check)

    def grep(
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
        arguments = _grep(pattern, path, glob, ignore_case, literal, context, limit)
        return self.call("grep", arguments, on_progress=on_progress, check=check)
