"""Every operation of the core's session and engine is in C, Python and Node, by the same name. Reads sources."""

import re
from pathlib import Path

import pytest

import branchline
from branchline import aio
from branchline.session import Session

ROOT = Path(__file__).parents[3]

OTHER_NAMES = {
    # Words that mean something else in a language, or are said in another way there.
    ("c", "clone_session"): "clone",
    ("c", "run"): "wait_idle",  # after `prompt`
    ("node", "clone_session"): "clone",
    ("node", "subscribe"): "events",
    ("python", "clone_session"): "clone",
    ("python", "set_label"): "label",
}

LANGUAGES = ("c", "node", "python")

MISSING = set()
"""What a language does not have yet, as ``(language, name)``."""

MISSING_OF_ENGINE = set()

PROPERTIES_ALONE = {"set_name"}
"""``session.name = …`` in Python; ``aio`` has the call."""


OF_ENGINE = {
    # Names of an engine's operations where they are others.
    ("c", "new"): "engine_new",
    ("c", "add_provider"): "engine_add_host_provider",
    ("c", "continue_recent"): "session_continue_recent",
    ("c", "create_session"): "session_create",
    ("c", "import_session"): "session_import",
    ("c", "open_session"): "session_open",
    ("c", "toolbox"): "toolbox_new",
    ("node", "new"): "constructor",
    ("node", "add_provider"): "addHostProvider",
    ("node", "toolbox"): "Toolbox",
    ("python", "new"): "__init__",
    ("python", "add_provider"): "add_host_provider",
    ("python", "shutdown"): "close",
    ("python", "toolbox"): "Toolbox",
}

RUST_ALONE = {
    # What is made of Rust's traits, and what has a form for other languages.
    "add_model",  # configure_models
    "credentials",
    "shutdown_blocking",
    "stream",
}


def operations(of="Session", where="core/src/session/*.rs"):
    """Public methods of a type."""
    found = set()
    for file in ROOT.glob(where):
        blocks = re.findall(rf"^impl {of} \{{\n(.*?)^\}}", file.read_text(), re.MULTILINE | re.DOTALL)
        found.update(
            name for block in blocks for name in re.findall(r"^    pub (?:async )?fn (\w+)", block, re.MULTILINE)
        )
    return found


def camel(name):
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), name)


def of_c():
    return set(re.findall(r"^branchline_session_(\w+)", (ROOT / "ffi/symbols.txt").read_text(), re.MULTILINE))


def of_node():
    declarations = (ROOT / "bindings/node/index.d.ts").read_text()
    body = re.search(r"declare class Session .*?\n\}\n", declarations, re.DOTALL).group(0)
    return set(re.findall(r"^  (?:static |readonly )?(\w+)(?=[(:?])", body, re.MULTILINE))


def of_python():
    return {name for name in {*dir(Session), *dir(aio.Session)} if not name.startswith("_")}


@pytest.mark.parametrize(
    ("language", "there", "spelling"), [("c", of_c, str), ("node", of_node, camel), ("python", of_python, str)]
)
def test_every_operation_of_a_session(language, there, spelling):
    names, known = operations(), there()
    assert len(names) > 40 and len(known) > 40
    absent = {name for name in names if spelling(OTHER_NAMES.get((language, name), name)) not in known}
    assert absent == {name for of, name in MISSING if of == language}


def engine_of_c():
    names = re.findall(r"^branchline_(\w+)", (ROOT / "ffi/symbols.txt").read_text(), re.MULTILINE)
    return {*names, *(name.removeprefix("engine_") for name in names if name.startswith("engine_"))}


def engine_of_node():
    declarations = (ROOT / "bindings/node/index.d.ts").read_text()
    body = re.search(r"declare class Engine .*?\n\}\n", declarations, re.DOTALL).group(0)
    return {*re.findall(r"^  (\w+)(?=[(:?])", body, re.MULTILINE), *re.findall(r"declare class (\w+)", declarations)}


def engine_of_python():
    return {*dir(branchline.Engine), *dir(branchline)}


@pytest.mark.parametrize(
    ("language", "there", "spelling"),
    [("c", engine_of_c, str), ("node", engine_of_node, camel), ("python", engine_of_python, str)],
)
def test_every_operation_of_an_engine(language, there, spelling):
    names, known = operations("Engine", "core/src/engine/*.rs") - RUST_ALONE, there()
    assert len(names) > 15
    absent = {name for name in names if OF_ENGINE.get((language, name), spelling(name)) not in known}
    assert absent == {name for of, name in MISSING_OF_ENGINE if of == language}


def test_the_blocking_form_lacks_only_what_is_a_property():
    public = {name for name in dir(Session) if not name.startswith("_")}
    assert {name for name in dir(aio.Session) if not name.startswith("_")} - public == {"sync", *PROPERTIES_ALONE}


def test_every_event_has_a_class():
    source = (ROOT / "core/src/session/event.rs").read_text()
    kinds = set(re.findall(r"EventKind::(\w+)(?: \{ \.\. \})? => \"", source))
    rows = (ROOT / "bindings/python/src/event.rs").read_text()
    assert len(kinds) > 20
    assert {kind for kind in kinds if f"EventKind::{kind}" not in rows} == set()
