"""Models that are functions of the program, and functions that give out keys, make logins anew and see what is sent."""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import dataclass
from typing import Any, AsyncIterable, Awaitable, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from ._names import camel_keys
from ._question import Question, question
from .errors import CancelledError, InvalidArgumentError
from .events import JsonObject, text_of
from .models import Key, key_value
from .options import json_text
from .tools import ToolContext, is_async

_BREATH = 64
"""Pieces of an answer after which an event loop gets to do something else."""


class ModelRequest:
    """What a model of the program's own is asked."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        value: JsonObject = json.loads(context._request.arguments_json())
        self.value: JsonObject = value
        """All of it, as in JSON."""
        self.provider: str = value["provider"]
        """The provider's name."""
        self.model: str = value["model"]
        """The model's id."""
        self.system_prompt: str = value["systemPrompt"]
        """The system prompt in force; empty without one."""
        self.messages: List[JsonObject] = value["messages"]
        """The conversation: user, assistant and tool-result messages, every call with its result."""
        self.tools: List[JsonObject] = value["tools"]
        """The tools it may call: ``name``, ``description``, ``parameters``."""
        self.thinking_level: str = value["thinkingLevel"]
        """How much it should think."""
        self.session_id: str = value["sessionId"]
        """The session that asks."""
        self.purpose: str = value["purpose"]
        """``turn``, or ``summary``."""
        self.max_tokens: Optional[int] = value.get("maxTokens")
        """The longest answer wanted."""
        self.temperature: Optional[float] = value.get("temperature")

    @property
    def last_text(self) -> str:
        """The text of the last user message."""
        last = next((message for message in reversed(self.messages) if message["role"] == "user"), {})
        return text_of(last.get("content", ""))

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more. Coroutines and async generators are cancelled then."""
        return self._context.cancelled

    def wait_cancelled(self, timeout: Optional[float] = None) -> bool:
        """Blocks until nobody waits for the answer any more, at most ``timeout`` seconds."""
        return self._context.wait_cancelled(timeout)

    def __repr__(self) -> str:
        return f"<ModelRequest {self.provider}/{self.model}: {len(self.messages)} messages, {len(self.tools)} tools>"


Piece = Union[str, Mapping[str, Any]]
"""A piece of an answer: text, or an event (see ``Engine.add_host_provider``)."""
Pieces = Union[Piece, Iterable[Piece], AsyncIterable[Piece], None]
Answer = Callable[[ModelRequest], Union[Pieces, Awaitable[Pieces]]]
"""Who answers: an async generator function, a generator function, a coroutine function or a plain one."""
ModelDefinition = Union[str, Mapping[str, Any]]
"""A model of the program's own: its id, or a dictionary with ``id`` and what is known of it."""


class _Writing:
    """The answer to one request."""

    def __init__(self, context: ToolContext) -> None:
        self.context = context
        self.over = False
        """The answer was finished by an event; what comes after that is not asked for."""

    def write(self, piece: Any) -> bool:
        """Writes a piece and says whether the answer is over. Raises when nobody waits any more."""
        try:
            if isinstance(piece, str):
                if piece:
                    self.context._request.push_text(piece)
            elif isinstance(piece, Mapping):
                self.context._request.push(json_text(dict(piece)))
                self.over = piece.get("type") in ("done", "error")
            else:
                kind = type(piece).__name__
                raise TypeError(f'a model answers with texts and events, dictionaries with a "type", not with a {kind}')
        except CancelledError:
            # The notice of it may still be on its way.
            self.context._cancelled.set()
            raise
        return self.over

    def take(self, value: Any) -> Optional[Awaitable[None]]:
        """Writes all of an answer, or gives what does so when it is awaited."""
        if value is None:
            return None
        if hasattr(value, "__await__") or hasattr(value, "__aiter__"):
            return self.atake(value)
        if isinstance(value, (str, Mapping)) or not hasattr(value, "__iter__"):
            self.write(value)
            return None
        pieces = iter(value)
        try:
            any(self.write(piece) for piece in pieces)
        finally:
            # It ends now, not when somebody collects it.
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
        return None

    async def atake(self, value: Any) -> None:
        if hasattr(value, "__await__"):
            value = await value
        if not hasattr(value, "__aiter__"):
            later = self.take(value)
            if later is not None:
                await later
            return
        pieces = value.__aiter__()
        try:
            count = 0
            async for piece in pieces:
                if self.write(piece):
                    break
                count += 1
                if count % _BREATH == 0:
                    await asyncio.sleep(0)
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()


def model_question(name: str, answer: Answer) -> Question:
    """What requests for answers go to."""
    if not callable(answer):
        raise InvalidArgumentError("a model is answered by a function")
    called = getattr(answer, "__call__", None)  # noqa: B004 - of an object, what is called
    if is_async(answer) or inspect.isasyncgenfunction(answer) or inspect.isasyncgenfunction(called):

        async def arespond(context: ToolContext) -> None:
            later = _Writing(context).take(answer(ModelRequest(context)))
            if later is not None:
                await later

        return Question(name, True, arespond)
    return Question(name, False, lambda context: _Writing(context).take(answer(ModelRequest(context))))


def provider_json(name: str, models: Union[ModelDefinition, Sequence[ModelDefinition]]) -> str:
    """The definition of a provider, as the native half takes it."""
    if isinstance(models, (str, Mapping)):
        models = [models]
    if not isinstance(models, Sequence):
        raise InvalidArgumentError("models is a list of ids and dictionaries")
    return json_text({"name": name, "models": [_definition(model) for model in models]})


def _definition(model: Any) -> Any:
    if not isinstance(model, Mapping):
        return str(model) if isinstance(model, str) else model
    definition = camel_keys(model, "a model")
    if isinstance(definition.get("cost"), Mapping):
        definition["cost"] = camel_keys(definition["cost"], "the cost of a model")
    return definition


def _arguments(context: ToolContext) -> Dict[str, Any]:
    value: Dict[str, Any] = json.loads(context._request.arguments_json())
    return value


@dataclass(frozen=True)
class KeyRequest:
    """What a key is asked for."""

    provider: str
    """The model's provider."""
    model: str
    """The model's id."""
    base_url: str
    """Where the request goes."""


KeySource = Callable[[KeyRequest], Union[str, Key, Awaitable[Union[str, Key, None]], None]]
"""Who gives out keys: a function, or a coroutine function. None is "look elsewhere"."""


def _key(answer: Any) -> Any:
    return None if answer is None else key_value(answer)


def key_question(source: KeySource) -> Question:
    """What requests for keys go to."""
    if not callable(source):
        raise InvalidArgumentError("a key source is a function")

    def call(context: ToolContext) -> Any:
        value = _arguments(context)
        return source(KeyRequest(value["provider"], value["model"], value["baseUrl"]))

    return question("keys", source, call, _key)


LoginSource = Callable[[str, JsonObject], Union[Mapping[str, Any], Awaitable[Mapping[str, Any]]]]
"""Who makes stored logins anew: a function, or a coroutine function. It gets the provider and the login."""


def _login(answer: Any) -> Any:
    if not isinstance(answer, Mapping):
        raise InvalidArgumentError(f"a login is a dictionary, not a {type(answer).__name__}")
    return dict(answer)


def login_question(source: LoginSource, holds: str) -> Question:
    """What requests to make logins anew go to, and what they hold."""
    if not callable(source):
        raise InvalidArgumentError("a login source is a function")

    def call(context: ToolContext) -> Any:
        value = _arguments(context)
        return source(value["provider"], value["login"])

    return question("logins", source, call, _login, holds)


@dataclass(frozen=True)
class PayloadRequest:
    """A request that is about to be sent to a service."""

    provider: str
    """The model's provider."""
    model: str
    """The model's id."""
    api: str
    """The wire protocol, for example ``anthropic-messages``: it says what the body means."""
    body: JsonObject
    """The JSON body."""


PayloadHook = Callable[[PayloadRequest], Union[Mapping[str, Any], Awaitable[Optional[Mapping[str, Any]]], None]]
"""Who may replace the bodies of requests: a function, or a coroutine function. None sends the body as it was."""


def _body(answer: Any) -> Any:
    if answer is None or isinstance(answer, Mapping):
        return None if answer is None else dict(answer)
    raise InvalidArgumentError(f"the body of a request is a dictionary, or None, not a {type(answer).__name__}")


def payload_question(hook: PayloadHook) -> Question:
    """What the bodies of requests are shown to."""
    if not callable(hook):
        raise InvalidArgumentError("a payload hook is a function")

    def call(context: ToolContext) -> Any:
        value = _arguments(context)
        return hook(PayloadRequest(value["provider"], value["model"], value["api"], value["body"]))

    return question("payloads", hook, call, _body)
