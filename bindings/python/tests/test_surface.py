"""The public surface: both halves agree, and every operation exists in both forms."""

import ast
import inspect
import re
from pathlib import Path

import branchline as bl
from branchline import _branchline, aio

HERE = Path(__file__).parent.parent

OPERATIONS = {
    "abort",
    "abort_bash",
    "abort_retry",
    "abort_summary",
    "adopt",
    "append_custom",
    "append_custom_message",
    "branch",
    "clear_queues",
    "clone",
    "close",
    "compact",
    "context_usage",
    "continue_recent",
    "create",
    "edit_context",
    "exploration",
    "explore",
    "follow_up",
    "fork",
    "fork_messages",
    "import_session",
    "is_sibling_of",
    "label",
    "navigate",
    "new_session",
    "open",
    "prompt",
    "prompt_custom",
    "record_bash",
    "reload_resources",
    "run",
    "run_bash",
    "send_custom_message",
    "set_model",
    "set_queue_modes",
    "set_resources",
    "set_thinking_level",
    "set_tools",
    "stats",
    "steer",
    "subscribe",
    "switch",
    "wait_idle",
}
FACTS = {"cwd", "id", "leaf", "name", "path", "resources", "sibling", "state", "tree", "editor_text"}
ENGINE = {
    "add_host_provider",
    "add_replay",
    "add_scripted_model",
    "add_tool",
    "available_models",
    "close",
    "configure_models",
    "continue_recent",
    "create_session",
    "find_model",
    "find_model_or_custom",
    "forget_stored",
    "import_session",
    "list_sessions",
    "model_problems",
    "models",
    "models_in_scope",
    "open_session",
    "set_key",
    "set_key_source",
    "set_login_source",
    "set_payload_hook",
    "store_key",
    "store_login",
    "stored_keys",
}


def public(cls):
    declared = [name for base in cls.__mro__ if base is not object for name in getattr(base, "__annotations__", {})]
    return {name for name in [*dir(cls), *declared] if not name.startswith("_")}


def test_operations_of_a_session():
    assert public(bl.Session) == OPERATIONS | FACTS | {"aio"}
    assert public(aio.Session) == OPERATIONS | FACTS | {"sync", "set_name"}


def test_operations_of_an_engine():
    assert public(bl.Engine) == public(aio.Engine) == ENGINE


def test_both_forms_take_the_same():
    for name in sorted(OPERATIONS | ENGINE):
        for blocking, awaited in ((bl.Session, aio.Session), (bl.Engine, aio.Engine)):
            one, other = getattr(blocking, name, None), getattr(awaited, name, None)
            if not callable(one):
                continue
            parameters = [list(inspect.signature(form).parameters) for form in (one, other)]
            if name == "wait_idle":  # deadlines are asyncio's own there
                parameters[0].remove("timeout")
            assert parameters[0] == parameters[1], name


def test_all_is_sorted_and_complete():
    tree = ast.parse((HERE / "python/branchline/__init__.py").read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(bl.__all__) == imported
    assert all(hasattr(bl, name) for name in bl.__all__)


def test_everything_public_is_documented():
    for name in bl.__all__:
        value = getattr(bl, name)
        if not isinstance(value, type):
            continue
        assert value.__doc__, name
        for member in public(value) & set(vars(value)):
            attribute = vars(value)[member]
            if callable(attribute) or isinstance(attribute, (property, classmethod)):
                assert inspect.getdoc(getattr(value, member)), f"{name}.{member}"


def test_the_stub_has_what_the_native_half_has():
    stub = ast.parse((HERE / "python/branchline/_branchline.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    native = {name: value for name, value in vars(_branchline).items() if isinstance(value, type)}
    assert set(classes) == set(native)
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert functions == {name for name, value in vars(_branchline).items() if inspect.isbuiltin(value)}
    for name, node in classes.items():
        members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)} - {"__new__"}
        assert members == {member for member in vars(native[name]) if not member.startswith("_")}, name


def test_one_version():
    files = HERE / "pyproject.toml", HERE.parent.parent / "Cargo.toml"
    versions = [re.search(r'^version = "(.*)"$', file.read_text(), re.MULTILINE).group(1) for file in files]
    assert versions == [bl.__version__] * 2


def test_the_page_names_only_what_exists():
    page = (HERE.parent.parent / "docs/python.md").read_text()
    for name in set(re.findall(r"\bbl\.(\w+)", page)):
        assert hasattr(bl, name), name
    for name in set(re.findall(r"\bsession\.(\w+)", page)):
        assert name in public(bl.Session), name
