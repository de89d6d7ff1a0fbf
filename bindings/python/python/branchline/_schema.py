"""JSON schemas from the signatures of functions, and arguments from JSON."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
import typing
from typing import Any, Callable, Dict, List, Literal, Mapping, Optional, Tuple, Union

if sys.version_info >= (3, 10):
    import types

    _UNIONS: Tuple[Any, ...] = (Union, types.UnionType)
else:
    _UNIONS = (Union,)

Schema = Dict[str, Any]

_PLAIN: Dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_NONE: Any = type(None)


class Signature:
    """What a function takes: its schema, its description, and how to call it with JSON."""

    def __init__(self, function: Callable[..., Any], context: type) -> None:
        """``context``: a parameter with this annotation is given by the library and stays out of the schema."""
        name = getattr(function, "__name__", "tool")
        try:
            parameters = inspect.signature(function).parameters
            hints = typing.get_type_hints(_annotated(function), include_extras=True)
        except (NameError, TypeError, ValueError) as error:
            raise TypeError(f"tool {name}: its signature cannot be read: {error}") from error
        self.description, texts = docstring(inspect.getdoc(function) or "", set(parameters))
        self.context: Optional[str] = None
        self._hints: Dict[str, Any] = {}
        properties: Dict[str, Schema] = {}
        required: List[str] = []
        for key, parameter in parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TypeError(f"tool {name}: a model calls it with names, which {parameter} does not take")
            hint = hints.get(key, Any)
            if hint is context:
                self.context = key
                continue
            self._hints[key] = hint
            properties[key] = _property(hint, f"tool {name}: {key}")
            if key in texts:
                properties[key]["description"] = texts[key]
            if parameter.default is inspect.Parameter.empty:
                required.append(key)
            else:
                default = _plain_default(parameter.default)
                if default is not None:
                    properties[key].setdefault("default", default)
        self.schema: Schema = {"type": "object", "properties": properties}
        if required:
            self.schema["required"] = required
        self.schema["additionalProperties"] = False

    def bind(self, arguments: Mapping[str, Any]) -> Dict[str, Any]:
        """The keywords of a call: classes made of the objects that stand for them."""
        return {key: convert(self._hints.get(key, Any), value) for key, value in arguments.items()}


def _annotated(function: Callable[..., Any]) -> Any:
    """What carries the annotations: of a callable object, its ``__call__``."""
    if inspect.isroutine(function) or not callable(function):
        return inspect.unwrap(function)
    return type(function).__call__


def _property(hint: Any, where: str) -> Schema:
    return dict(schema(hint, where))


def schema(hint: Any, where: str) -> Schema:
    """The schema of an annotation."""
    if hint is Any or hint is inspect.Parameter.empty or hint is object:
        return {}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(hint, "__metadata__"):
        return _with_metadata(schema(arguments[0], where), hint.__metadata__)
    if isinstance(hint, type) and hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint is _NONE:
        return {"type": "null"}
    if origin is Literal:
        return _literal(list(arguments))
    if origin in _UNIONS:
        return _union(arguments, where)
    if hint in (list, tuple, set) or origin in _SEQUENCES:
        return _sequence(hint, arguments, where)
    if hint is dict or origin in _MAPPINGS:
        return (
            {"type": "object", "additionalProperties": schema(arguments[1], where)} if arguments else {"type": "object"}
        )
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _literal([member.value for member in hint])
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass(hint, where)
    if typing.is_typeddict(hint) if sys.version_info >= (3, 10) else hasattr(hint, "__total__"):
        return _typed_dict(hint, where)
    raise TypeError(
        f"{where}: no schema for {hint!r}; use str, int, float, bool, Literal, Optional, list, dict, a TypedDict, "
        "a dataclass or an Enum"
    )


_SEQUENCES = (list, tuple, set, *(typing.get_origin(kind) for kind in (typing.Sequence[int], typing.Iterable[int])))
_MAPPINGS = (dict, typing.get_origin(typing.Mapping[str, int]))


def _with_metadata(base: Schema, metadata: Tuple[Any, ...]) -> Schema:
    """``Annotated[int, "how many"]``; a dictionary adds to the schema."""
    result = dict(base)
    for extra in metadata:
        if isinstance(extra, str):
            result["description"] = extra
        elif isinstance(extra, dict):
            result.update(extra)
    return result


def _literal(values: List[Any]) -> Schema:
    kinds = {_PLAIN.get(type(value)) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, "enum": values} if kind else {"enum": values}


def _union(arguments: Tuple[Any, ...], where: str) -> Schema:
    if len(arguments) == 2 and _NONE in arguments:
        # What may be None may be left out; a model that writes null is understood all the same.
        inner = schema(arguments[0] if arguments[1] is _NONE else arguments[1], where)
        if isinstance(inner.get("type"), str) and "enum" not in inner:
            return {**inner, "type": [inner["type"], "null"]}
        return {"anyOf": [inner, {"type": "null"}]} if inner else {}
    return {"anyOf": [schema(argument, where) for argument in arguments]}


def _sequence(hint: Any, arguments: Tuple[Any, ...], where: str) -> Schema:
    if hint is tuple or typing.get_origin(hint) is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": schema(arguments[0], where)}
        if not arguments:
            return {"type": "array"}
        items = [schema(argument, where) for argument in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    result: Schema = {"type": "array"}
    if arguments:
        result["items"] = schema(arguments[0], where)
    if hint is set or typing.get_origin(hint) is set:
        result["uniqueItems"] = True
    return result


def _dataclass(hint: Any, where: str) -> Schema:
    hints = typing.get_type_hints(hint, include_extras=True)
    fields = [field for field in dataclasses.fields(hint) if field.init]
    missing = dataclasses.MISSING
    required = [f.name for f in fields if f.default is missing and f.default_factory is missing]
    return _object({field.name: hints[field.name] for field in fields}, required, where)


def _typed_dict(hint: Any, where: str) -> Schema:
    hints = typing.get_type_hints(hint, include_extras=True)
    unwrapped = {key: _without_required(value) for key, value in hints.items()}
    return _object(unwrapped, [key for key in unwrapped if key in hint.__required_keys__], where)


def _without_required(hint: Any) -> Any:
    """The type inside of ``Required[…]`` or ``NotRequired[…]``."""
    name = getattr(typing.get_origin(hint), "_name", None)
    return typing.get_args(hint)[0] if name in ("Required", "NotRequired") else hint


def _object(hints: Mapping[str, Any], required: List[str], where: str) -> Schema:
    properties = {key: schema(hint, f"{where}.{key}") for key, hint in hints.items()}
    result: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        result["required"] = required
    return result


def _plain_default(value: Any) -> Any:
    """A default that JSON has a word for."""
    if isinstance(value, enum.Enum):
        value = value.value
    return value if isinstance(value, (str, int, float, bool)) else None


def convert(hint: Any, value: Any) -> Any:
    """A value as its annotation says: dataclasses, enums, tuples and sets made of what JSON has for them."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(hint, "__metadata__"):
        return convert(arguments[0], value)
    if origin in _UNIONS:
        return _convert_union(arguments, value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return _convert_list(hint, origin, arguments, value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if isinstance(value, dict):
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            hints = typing.get_type_hints(hint, include_extras=True)
            return hint(**{key: convert(hints.get(key, Any), item) for key, item in value.items()})
        if origin in _MAPPINGS and arguments:
            return {key: convert(arguments[1], item) for key, item in value.items()}
    return value


def _convert_list(hint: Any, origin: Any, arguments: Tuple[Any, ...], value: List[Any]) -> Any:
    kind = origin or hint
    if kind is tuple:
        if arguments and not (len(arguments) == 2 and arguments[1] is Ellipsis):
            return tuple(convert(inner, item) for inner, item in zip(arguments, value))
        return tuple(convert(arguments[0], item) if arguments else item for item in value)
    items = [convert(arguments[0], item) if arguments else item for item in value]
    return set(items) if kind is set else items


def _convert_union(arguments: Tuple[Any, ...], value: Any) -> Any:
    """The first member that takes the value."""
    if value is None and _NONE in arguments:
        return None
    for argument in arguments:
        if argument is _NONE:
            continue
        try:
            converted = convert(argument, value)
        except (TypeError, ValueError):
            continue
        plain = typing.get_origin(argument) or argument
        if not isinstance(plain, type) or plain in (dict, list) or isinstance(converted, plain):
            return converted
    return value


_LINE = re.compile(r"^\s*(?::param\s+)?\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)$")
_HEADING = re.compile(r"^\s*(Args|Arguments|Parameters|Returns|Raises|Yields)\s*:?\s*$")


def docstring(text: str, names: set[str]) -> Tuple[str, Dict[str, str]]:
    """The description, and the texts of parameters: lines ``name: text``, which may go on in deeper lines."""
    described: List[str] = []
    texts: Dict[str, str] = {}
    current: Optional[str] = None
    indent = 0
    inside = False
    for line in text.splitlines():
        match = _LINE.match(line)
        depth = len(line) - len(line.lstrip())
        if match and match[1] in names:
            current, indent, inside = match[1], depth, True
            texts[current] = match[2].strip()
        elif current is not None and line.strip() and depth > indent:
            texts[current] = f"{texts[current]} {line.strip()}".strip()
        elif _HEADING.match(line):
            heading = _HEADING.match(line)
            current, inside = None, heading is not None and heading[1] in ("Args", "Arguments", "Parameters")
            if not inside:
                described.append(line.rstrip())
        else:
            current = None
            if not inside or line.strip():
                described.append(line.rstrip())
    return "\n".join(described).strip(), texts
