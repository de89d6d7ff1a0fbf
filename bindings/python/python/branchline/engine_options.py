"""What an engine is made with, as the native half takes it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, TypedDict, Union

from ._names import camel_keys, path
from .errors import InvalidArgumentError
from .models import Configuration, Key, key_value
from .options import PathLike, json_text

_SECONDS = {"connectTimeout": "connectTimeoutMs", "idleTimeout": "idleTimeoutMs"}


class NetworkOptions(TypedDict, total=False):
    """How services are reached. camelCase names are taken as well."""

    proxy: str
    """``environment`` (the default), ``direct``, or ``http://[user:password@]host:port``."""
    ca_file: PathLike
    """A PEM file with certificates that are trusted beside those of the system."""
    connect_timeout: float
    """Seconds to wait for a connection; 30 by default."""
    idle_timeout: Optional[float]
    """Seconds that a service may be silent, before its answer and within it; 300 by default, None for any."""
    max_requests_per_origin: int
    """Requests to one service at a time; 32 by default."""
    headers: Mapping[str, str]
    """Sent with every request. Not for keys."""


def network(options: Any, proxy: Optional[str]) -> Optional[Dict[str, Any]]:
    """Network options as in JSON."""
    if options is None and proxy is None:
        return None
    given = camel_keys(options or {}, "network")
    if options and "idle_timeout" in options and options["idle_timeout"] is None:
        given["idleTimeoutMs"] = None
    for name, milliseconds in _SECONDS.items():
        if name in given:
            seconds = given.pop(name)
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e12:
                raise InvalidArgumentError(f"{name} of network is a number of seconds")
            given[milliseconds] = round(seconds * 1000)
    if "caFile" in given:
        given["caFile"] = path(given["caFile"])
    if proxy is not None and given.setdefault("proxy", proxy) != proxy:
        raise InvalidArgumentError("proxy says something else than network")
    return given


def engine_json(
    *,
    models: Optional[Configuration],
    keys: Optional[Mapping[str, Union[str, Key]]],
    agent_files: Union[bool, PathLike, None],
    network_options: Optional[NetworkOptions],
    proxy: Optional[str],
    settings: Optional[Mapping[str, Any]],
    **plain: Any,
) -> str:
    """All of it as JSON, in the form that is the same in all languages. Texts of a models.json are left out."""
    form = {camel: path(value) for camel, value in camel_keys(plain, "options").items()}
    if models is not None and not isinstance(models, str):
        if not isinstance(models, Mapping):
            raise InvalidArgumentError('models is a dictionary {"providers": {…}}, or the text of a models.json')
        form["models"] = dict(models)
    if keys is not None:
        if not isinstance(keys, Mapping):
            raise InvalidArgumentError("keys is a dictionary of providers and their keys")
        form["keys"] = {provider: key_value(key) for provider, key in keys.items()}
    if settings is not None:
        if not isinstance(settings, Mapping):
            raise InvalidArgumentError("settings is a dictionary in the shape of settings.json")
        form["settings"] = dict(settings)
    if agent_files is not None and agent_files is not False:
        form["agentFiles"] = path(agent_files)
    reached = network(network_options, proxy)
    if reached is not None:
        form["network"] = reached
    return json_text(form)
