"""Names of fields in JSON, for programs that write them as Python does."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Mapping, Sequence

from .errors import InvalidArgumentError


def camel(name: str) -> str:
    """``context_files`` as ``contextFiles``; what is camelCase already stays."""
    return re.sub(r"(?<=.)_(\w)", lambda match: match.group(1).upper(), name)


def camel_keys(value: Any, what: str) -> Dict[str, Any]:
    """A mapping with its own keys, not those below, in camelCase. None is the same as absent."""
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{what} is a dictionary")
    result: Dict[str, Any] = {}
    for name, item in value.items():
        if not isinstance(name, str):
            raise InvalidArgumentError(f"the keys of {what} are texts")
        if camel(name) in result:
            raise InvalidArgumentError(f"{what} has {name!r} twice")
        if item is not None:
            result[camel(name)] = item
    return result


def paths(value: Any) -> Any:
    """Paths as texts: one alone counts as a list."""
    if isinstance(value, (str, os.PathLike)):
        value = [value]
    if not isinstance(value, Sequence):
        return value
    return [os.fspath(item) if isinstance(item, os.PathLike) else item for item in value]


def path(value: Any) -> Any:
    """A path as a text."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value
