"""Models: which ones an engine knows, and their keys."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from . import _branchline as native
from ._calls import Call
from ._serving import refuse_to_wait_for
from .errors import InvalidArgumentError
from .events import JsonObject
from .options import json_text


class Model(str):
    """A model: its name, ``provider/id``, which can be given wherever a name is taken, with facts as attributes."""

    provider: str
    """The provider's name."""
    id: str
    """Its id within the provider."""
    display_name: str
    """Its name for people."""
    api: str
    """The wire protocol."""
    base_url: str
    """Where requests go; empty for models that need no network."""
    reasoning: bool
    """Whether it can think before it answers."""
    thinking_levels: List[str]
    """The thinking levels it has, least first."""
    images: bool
    """Whether it accepts images."""
    context_window: int
    """Tokens; 0 when unknown."""
    max_tokens: int
    """Tokens of the longest answer; 0 when unknown."""
    cost: JsonObject
    """US dollars per million tokens: ``input``, ``output``, ``cacheRead``, ``cacheWrite``; empty or 0 when unknown."""
    facts: JsonObject
    """All that is known, as in JSON."""

    def __new__(cls, name: str, facts: Mapping[str, Any]) -> Model:
        model = super().__new__(cls, name)
        provider, _, id = name.partition("/")
        model.facts = dict(facts)
        model.provider = facts.get("provider", provider)
        model.id = facts.get("id", id)
        model.display_name = facts.get("displayName") or model.id
        model.api = facts.get("api", "")
        model.base_url = facts.get("baseUrl") or ""
        model.thinking_levels = list(facts.get("thinkingLevels") or ["off"])
        model.reasoning = bool(facts.get("reasoning", model.thinking_levels != ["off"]))
        model.images = bool(facts.get("images", False))
        model.context_window = facts.get("contextWindow") or 0
        model.max_tokens = facts.get("maxTokens") or 0
        model.cost = facts.get("cost") or {}
        return model

    def __getnewargs__(self) -> Tuple[str, JsonObject]:  # type: ignore[override]
        return str(self), self.facts

    @property
    def name(self) -> str:
        """``provider/id``."""
        return str(self)

    def __repr__(self) -> str:
        window = f", {self.context_window:,} tokens" if self.context_window else ""
        return f"<Model {self}{window}{', images' if self.images else ''}{', thinks' if self.reasoning else ''}>"


class Models(List[Model]):
    """A list of models. Names are found in it (``"provider/id" in models``). Calling it gives it."""

    def __call__(self) -> Models:
        return self

    def _repr_html_(self) -> str:
        rows = (
            (
                model,
                model.display_name,
                f"{model.context_window:,}" if model.context_window else "",
                ", ".join(model.thinking_levels),
                _price(model.cost),
            )
            for model in self
        )
        head = "<tr><th>model</th><th>name</th><th>context</th><th>thinking</th><th>$ per million tokens</th></tr>"
        cells = ("".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows)
        return f"<table>{head}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _price(cost: Mapping[str, Any]) -> str:
    prices = cost.get("input"), cost.get("output")
    return " / ".join(f"{price:g}" for price in prices if price is not None) if any(prices) else ""


def _model(value: JsonObject) -> Model:
    return Model(value["name"], value)


def read_models(text: str) -> Models:
    """A list of models, from the native half."""
    return Models(_model(value) for value in json.loads(text))


@dataclass(frozen=True)
class ModelChoice:
    """What a person's text means: a model, and the thinking level behind it."""

    model: Model
    thinking_level: Optional[str]
    """The level that the text named; None if it named none."""
    warning: Optional[str] = None
    """What is doubtful about the choice, in a sentence."""


@dataclass(frozen=True)
class ModelScope:
    """What patterns mean among the models that can be used."""

    models: List[ModelChoice]
    """In the order of the patterns; each once, with the thinking level of the pattern that named it first."""
    warnings: List[str]
    """What was wrong with patterns, a sentence each."""


def _choice(value: JsonObject) -> ModelChoice:
    return ModelChoice(_model(value["model"]), value.get("thinkingLevel"), value.get("warning"))


@dataclass(frozen=True)
class ModelProblem:
    """Configuration of models that is not in use, and why."""

    message: str
    """What is wrong, in a sentence. Holds no values of the configuration."""
    provider: Optional[str]
    """The provider it is about; None when nothing of the file is in use."""
    path: Optional[Path]
    """The file; None for configuration that the program gave."""

    def __str__(self) -> str:
        return self.message if self.path is None else f"{self.message} ({self.path})"


@dataclass(frozen=True)
class Key:
    """A key for a service. It is not shown."""

    key: str = field(repr=False)
    bearer: bool = False
    """It is sent as ``Authorization: Bearer`` also where the protocol has a header of its own for keys."""

    def _value(self) -> JsonObject:
        return {"key": self.key, "bearer": self.bearer}


def key_value(key: Any) -> Any:
    """A key as JSON. What is wrong with it is said without it."""
    if isinstance(key, Key):
        key_value(key.key)
        return key._value()
    if isinstance(key, str):
        return key
    raise InvalidArgumentError(f"a key is a text or a branchline.Key, not a {type(key).__name__}")


@dataclass(frozen=True)
class StoredEntry:
    """What is stored for one provider, without the secret."""

    provider: str
    type: str
    """``api_key``, ``oauth``, or what another program wrote."""


Configuration = Union[str, Mapping[str, Any]]
"""Models in the shape of ``models.json``: ``{"providers": {…}}``, or its text, which may have comments."""


def configuration(value: Configuration) -> str:
    """It as text."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        raise InvalidArgumentError('models is a dictionary {"providers": {…}}, or the text of a models.json')
    return json_text(dict(value))


class CatalogueOperations:
    """What an engine can be asked of models."""

    _native: native.Engine

    @property
    def models(self) -> Models:
        """Every model known: built-in ones, those of configuration, and those that were added.

        Each is its name, ``provider/id``, with facts as attributes. The first call reads them.
        """
        return read_models(native.models(self._native))

    def available_models(self) -> Models:
        """The models that can be used: those whose provider has a key, and those that need none."""
        return read_models(native.available_models(self._native))

    def find_model(self, text: str) -> ModelChoice:
        """The model that a text of a person means: a name, or a part of one; ``:high`` behind it is a thinking level.

        ``UnknownModelError`` names what is near, or between what to choose.
        """
        return _choice(json.loads(native.find_model(self._native, text)))

    def find_model_or_custom(self, text: str) -> ModelChoice:
        """As ``find_model``, but an unknown id of a known provider, ``provider/id``, is a model as well.

        It has the facts of the provider's default model; ``choice.warning`` says so. The engine knows it by its name
        from then on.
        """
        return _choice(json.loads(native.find_model_or_custom(self._native, text)))

    def models_in_scope(self, patterns: Sequence[str]) -> ModelScope:
        """The available models that patterns mean: ``google/*``, ``*haiku*:low``, or texts as of ``find_model``.

        ``:level`` behind a pattern chooses the thinking level.
        """
        if isinstance(patterns, str):
            patterns = [patterns]
        found, warnings = native.models_in_scope(self._native, list(patterns))
        return ModelScope([_choice(value) for value in json.loads(found)], warnings)

    def configure_models(self, models: Configuration) -> None:
        """Adds providers and models in the shape of ``models.json``, above what is known.

        What is wrong in it is an ``InvalidArgumentError`` that names the places, and nothing changes. Sessions that are
        open go on with the models they have.
        """
        native.configure_models(self._native, configuration(models))

    def model_problems(self) -> List[ModelProblem]:
        """What is wrong with ``models.json``. The rest of it is in use."""
        problems = json.loads(native.model_problems(self._native))
        return [
            ModelProblem(
                problem["message"],
                problem.get("provider"),
                None if problem.get("path") is None else Path(problem["path"]),
            )
            for problem in problems
        ]

    def set_key(self, provider: str, key: Union[str, Key, None], *, bearer: bool = False) -> None:
        """Sets or, with None, forgets the key of a provider, from the next request on. It wins over every other.

        ``bearer``: send it as ``Authorization: Bearer`` whatever the protocol says.
        """
        if key is None:
            return native.set_key(self._native, provider, None, False)
        value = key if isinstance(key, Key) else Key(key, bearer)
        key_value(value)
        native.set_key(self._native, provider, value.key, value.bearer or bearer)

    @property
    def _login_lock(self) -> str:
        """Names the lock of the file with keys, which is held while a login is made anew."""
        return f"logins {id(self._native)}"

    def _store_key(
        self, provider: str, key: Optional[str], configured: bool, variables: Optional[Mapping[str, str]]
    ) -> Call[None]:
        refuse_to_wait_for(self._login_lock)
        if key is not None and not isinstance(key, str):
            raise InvalidArgumentError(f"a key that is stored is a text, not a {type(key).__name__}")
        return Call(native.store_key(self._native, provider, key, configured, list((variables or {}).items())))

    def _store_login(self, provider: str, login: Mapping[str, Any]) -> Call[None]:
        refuse_to_wait_for(self._login_lock)
        return Call(native.store_login(self._native, provider, json_text(dict(login))))

    def _forget_stored(self, provider: str) -> Call[bool]:
        refuse_to_wait_for(self._login_lock)
        return Call(native.forget_stored(self._native, provider))

    def _stored_keys(self) -> Call[List[StoredEntry]]:
        refuse_to_wait_for(self._login_lock)
        return Call(native.stored_keys(self._native), _stored)


def _stored(text: str) -> List[StoredEntry]:
    return [StoredEntry(entry["provider"], entry["type"]) for entry in json.loads(text)]
