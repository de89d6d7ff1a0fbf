"""Tools that are Python functions, and what tools give back."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union, overload

from . import _branchline as native
from ._schema import Signature
from .errors import Error, InvalidArgumentError
from .events import JsonObject, text_of


@dataclass(frozen=True)
class ToolResult:
    """What a tool call came to. A tool of your own may return one, where a text is not enough."""

    content: Union[str, List[JsonObject]]
    """A text for the model, or blocks: ``{"type": "text", "text"}``, ``{"type": "image", "data", "mimeType"}``."""
    details: Any = None
    """Facts for the host and the session file; the model does not see them."""
    structured_content: Any = None
    """The result for programs, as plain data: ``read`` and ``bash`` have it."""
    is_error: bool = False
    """The call failed."""
    usage: Optional[JsonObject] = None
    """Tokens the tool itself spent."""
    terminate: bool = False
    """When every result of a batch of calls says so, the run ends after them."""

    @property
    def text(self) -> str:
        """The text of the content."""
        return text_of(self.content)

    def __str__(self) -> str:
        return self.text

    def _to_value(self) -> JsonObject:
        value: JsonObject = {"content": self.content, "isError": self.is_error, "terminate": self.terminate}
        more = {"details": self.details, "structuredContent": self.structured_content, "usage": self.usage}
        return {**value, **{key: item for key, item in more.items() if item is not None}}

    @staticmethod
    def _from_json(text: str) -> ToolResult:
        value = json.loads(text)
        return ToolResult(
            content=value["content"],
            details=value.get("details"),
            structured_content=value.get("structuredContent"),
            is_error=value.get("isError", False),
            usage=value.get("usage"),
            terminate=value.get("terminate", False),
        )


class ToolContext:
    """One call of a tool, for the tool: a parameter with this annotation gets it, and the model does not see it."""

    def __init__(self, request: native.Request) -> None:
        self._request = request
        self._cancelled = threading.Event()
        self.name: str = request.name()
        """The tool's name."""
        self.call_id: str = request.call_id()
        """The call's id, as the model gave it and events carry it; empty in a toolbox."""
        self.session_id: str = request.session_id()
        """The session that calls; empty in a toolbox."""
        self.sibling: int = request.sibling()
        """Which of the sessions over its tree calls: they share one id; see ``Session.sibling``."""
        self.cwd: Path = Path(request.cwd())
        """The working directory of the session or toolbox."""

    @property
    def cancelled(self) -> bool:
        """Whether the call was aborted: its result goes nowhere, and the tool should stop. Coroutines are cancelled."""
        return self._cancelled.is_set() or self._request.is_cancelled()

    def wait_cancelled(self, timeout: Optional[float] = None) -> bool:
        """Blocks until the call was aborted, at most ``timeout`` seconds; for a tool that would otherwise sleep."""
        return self._cancelled.wait(timeout)

    def progress(self, update: Any) -> bool:
        """Tells how far the work is: a text, or whatever a tool may return. Each update replaces the ones before it.

        Returns False when it was left out because the reader is behind.
        """
        return self._request.progress(to_json(update))


class Tool:
    """A function that a model, and ``Toolbox.call``, may call. Made by ``@tool``; calling it calls the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        parameters: Optional[Mapping[str, Any]] = None,
        sequential: bool = False,
        snippet: Optional[str] = None,
        guidelines: Sequence[str] = (),
        effect: str = "execute",
        path_arguments: Sequence[str] = (),
    ) -> None:
        """As ``tool``."""
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self._signature = None if parameters is not None else Signature(function, ToolContext)
        self._context = _context_of(function) if self._signature is None else self._signature.context
        self.name: str = name or str(getattr(function, "__name__", ""))
        """What the model calls it."""
        described = (inspect.getdoc(function) or "") if self._signature is None else self._signature.description
        self.description: str = described if description is None else description
        """What the model is told."""
        self.parameters: Dict[str, Any] = dict(parameters or {}) if self._signature is None else self._signature.schema
        """The JSON schema of its arguments."""
        self.sequential = sequential
        """Whether a model's calls run one after the other when this tool is among them."""
        self._more: Dict[str, Any] = {}
        if snippet is not None:
            self._more["snippet"] = snippet
        if guidelines:
            self._more["guidelines"] = list(guidelines)
        if effect != "execute":
            self._more["effect"] = effect
        if path_arguments:
            self._more["pathArguments"] = list(path_arguments)

    @property
    def definition(self) -> JsonObject:
        """All of it, as a dictionary."""
        mode = {"executionMode": "sequential"} if self.sequential else {}
        facts = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {**facts, **mode, **self._more}

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return is_async(self.function)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.function(*arguments, **keywords)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def _invoke(self, context: ToolContext) -> Any:
        """Calls the function for a request."""
        arguments = json.loads(context._request.arguments_json())
        keywords = arguments if self._signature is None else self._signature.bind(arguments)
        if self._context is not None:
            keywords[self._context] = context
        return self.function(**keywords)


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine, as far as that can be seen."""
    call = getattr(function, "__call__", None)  # noqa: B004 - of an object, what is called
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _context_of(function: Callable[..., Any]) -> Optional[str]:
    """The parameter that gets the context, of a function whose schema was given."""
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.annotation is ToolContext or str(parameter.annotation).endswith("ToolContext"):
            return name
    return None


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    function: None = None,
    /,
    *,
    name: Optional[str] = None,
    description: Optional[str] = None,
    parameters: Optional[Mapping[str, Any]] = None,
    sequential: bool = False,
    snippet: Optional[str] = None,
    guidelines: Sequence[str] = (),
    effect: str = "execute",
    path_arguments: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Optional[Callable[..., Any]] = None, /, **options: Any) -> Any:
    """Makes a tool of a function, sync or async. ``@tool`` or ``@tool(name=…, sequential=True)``.

    The schema comes from the annotations (str, int, float, bool, Literal, Optional, list, dict, Annotated, TypedDict,
    dataclasses, enums), descriptions of parameters from lines ``name: text`` of the docstring or from
    ``Annotated[int, "text"]``, everything else of the docstring is the description. ``parameters`` gives the schema
    yourself. ``sequential``: a model's calls run one after the other when this tool is among them. ``snippet`` and
    ``guidelines`` go to the system prompt. Permissions go by ``effect``, ``read``, ``write`` or ``execute`` (anything),
    and look at where the arguments named in ``path_arguments`` lead.

    The function returns a text, a dictionary or other plain data (which the model gets as JSON), a list of blocks, or a
    ``ToolResult``. What it raises is a failed call with the exception's message. A parameter annotated ``ToolContext``
    gets the call: progress, cancellation, working directory.
    """
    if function is not None:
        return Tool(function, **options)
    return lambda function: Tool(function, **options)


def as_tool(value: Any) -> Tool:
    """A tool, from one or from a plain function."""
    if isinstance(value, Tool):
        return value
    if callable(value) and not isinstance(value, type):
        return Tool(value)
    raise InvalidArgumentError(f"{value!r} is no tool; write @branchline.tool above a function, or name a built-in one")


def to_json(value: Any) -> str:
    """What a tool gave back, as the core reads it."""
    if isinstance(value, ToolResult):
        value = value._to_value()
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the tool's result cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON; return text or plain data")


def failure(error: BaseException) -> str:
    """What a model reads of an exception. Always gives a text: without one, whoever asked would wait for ever."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException as fault:
        return f"{name}, whose text cannot be had: its __str__ raised {type(fault).__name__}"
    if not isinstance(error, Error):
        text = f"{name}: {text}" if text else name
    # Half of a surrogate pair is no text outside of Python.
    return text.encode("utf-8", "replace").decode("utf-8")
