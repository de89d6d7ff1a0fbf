"""Keywords of the calls that make a session. All are optional."""

from __future__ import annotations

import json
import math
import operator
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, TypedDict, Union

from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from typing import Literal

    from .budget import Budget
    from .hooks import ToolHook
    from .permissions import Handler, Permissions
    from .resources import ResourceOptions
    from .tools import Tool

PathLike = Union[str, "os.PathLike[str]"]


class SessionOptions(TypedDict, total=False):
    """What holds however a session is made. When one is opened, what is absent is the file's own choice."""

    model: str
    """``provider/model``."""
    thinking_level: str
    """``off``, ``minimal``, ``low``, ``medium``, ``high``, ``xhigh`` or ``max``, as far as the model has it."""
    tools: Sequence[Union[str, Tool, Callable[..., Any]]]
    """The active tools: names of built-in ones, and tools of your own (see ``tool``). The file's own choice, else
    ``read``, ``bash``, ``edit``, ``write`` and what was added to the engine."""
    permissions: Union[str, Permissions, Handler]
    """What tool calls may do: a preset (``read-only``, ``ask``, ``workspace``, ``allow``), a function that is asked, or
    a ``Permissions`` with rules. ``ask``, the default: reading below the working directory is allowed, everything else
    asks, and is denied when there is nobody to ask. ``allow``: everything, without a word."""
    tool_hooks: Sequence[ToolHook]
    """Asked about every tool call, in this order."""
    budget: Union[Budget, Sequence[Budget]]
    """Limits of what it may spend; all of them hold. Sessions may share one."""
    system_prompt: str
    """Replaces the built-in one."""
    resources: ResourceOptions
    """What it reads, and tells the model besides its tools: context files, skills, prompt templates. Nothing is read
    unless it says so."""
    session_dir: PathLike
    """Where session files are, instead of the directory for the working directory."""
    durability: Literal["none", "turn", "entry"]
    """When entries are forced to disk."""


class CreateOptions(SessionOptions, total=False):
    """Keywords of ``create``."""

    in_memory: bool
    """Keep the session in memory only."""
    id: str
    """The session's id, instead of a drawn one."""
    name: str
    """The session's name."""
    parent_session: PathLike
    """The session file to record as the one this came from."""


class OpenOptions(SessionOptions, total=False):
    """Keywords of ``open``."""

    cwd: PathLike
    """The working directory, instead of the file's own."""
    read_only: bool
    """Open without the right to write, and without a lock: what would append fails with ``ReadOnlyError``."""


def keywords(kind: Any, options: Mapping[str, Any], cwd: PathLike = "") -> Dict[str, Any]:
    """The options as the native half takes them. None is the same as absent."""
    unknown = set(options) - kind.__optional_keys__
    if unknown:
        raise TypeError(f"unknown keywords: {', '.join(sorted(unknown))}")
    given = {"cwd": cwd, **{name: value for name, value in options.items() if value is not None}}
    if isinstance(given.get("tools"), str):
        raise InvalidArgumentError("tools is a list of names and functions")
    if "tools" in given:
        given["tools"] = list(given["tools"])
    if "parent_session" in given:
        given["parent_session"] = os.fspath(given["parent_session"])
    return given


def seconds(timeout: Any) -> Optional[float]:
    """A limit of time as the native half takes it. None and infinity are none."""
    if timeout is None:
        return None
    try:
        limit = math.nan if isinstance(timeout, (str, bytes)) else float(timeout)
    except (TypeError, ValueError, OverflowError):
        limit = math.nan
    if not limit >= 0:
        raise InvalidArgumentError(f"a timeout is None or a number of seconds, not negative; {timeout!r} is none")
    return None if limit == math.inf else limit


def capacity_of(capacity: Any) -> int:
    """How many events may be held, as the native half takes it."""
    try:
        count = operator.index(capacity)
    except TypeError:
        count = -1
    if not 0 <= count <= sys.maxsize:
        raise InvalidArgumentError(f"capacity is a number of events, not {capacity!r}")
    return count


def images_json(images: Any) -> str:
    """Images of a prompt as the native half takes them."""
    if isinstance(images, (str, bytes, Mapping)) or not isinstance(images, Iterable):
        raise InvalidArgumentError(
            'images is a list of blocks {"type": "image", "data": base64, "mimeType": …},'
            f" not a {type(images).__name__}"
        )
    return json_text(list(images))


def json_text(value: Any) -> str:
    """A value as the native half takes it."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the value cannot be written as JSON: {error}") from None
