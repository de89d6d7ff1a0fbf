"""The Python of README.md and docs/*.md runs, block by block, in a directory of its own and without the network."""

import ast
import asyncio
import inspect
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest

import branchline as bl

ROOT = Path(__file__).parents[3]


def blocks():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text()
        for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            yield f"{page.name}:{text.count(chr(10), 0, block.start()) + 1}", block.group(1)


BLOCKS = dict(blocks())


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Nothing of the person's: neither sessions nor keys."""
    for name in [name for name in os.environ if name.endswith(("_KEY", "_TOKEN"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    shutil.copy(ROOT / "examples/session.jsonl", "recorded.jsonl")
    Path("src").mkdir()
    Path("a.txt").write_text("old\n")
    Path("src/b.txt").write_text("TODO\n")
    return tmp_path


async def my_model(*_request):
    for piece in ("Hello ", "there."):
        yield piece


def taken_for_granted():
    """What the blocks use without making it."""
    engine = bl.Engine()
    session = engine.create_session(".", model="scripted/demo", permissions="allow")
    session.run("Hello.")
    question = next(entry for entry in session.tree.branch() if entry.role == "user")

    class Runtime:
        generate = staticmethod(my_model)

    @bl.tool
    def weather(city: str) -> str:
        return f"rain in {city}"

    return {
        "bl": bl,
        "Literal": Literal,
        "engine": engine,
        "session": session,
        "entry_id": question.id,
        "key": "a key",
        "token_for": lambda provider: f"a key of {provider}",
        "my_model": my_model,
        "my_runtime": Runtime,
        "look_up": lambda city, unit: f"21 {unit} in {city}",
        "tb": bl.Toolbox(cwd=".", tools=[weather]),
        "input": lambda _question: "n",
        "print": lambda *_values, **_options: None,
        # One page shows the end of what another one begins.
        "replay": engine.add_replay("recorded.jsonl", "begun"),
    }


def test_there_are_blocks():
    assert len(BLOCKS) > 10


@pytest.mark.parametrize("name", BLOCKS)
def test_block(name, place):
    text = BLOCKS[name]
    if sys.version_info < (3, 10) and re.search(r"^ *match ", text, re.MULTILINE):
        pytest.skip("Python 3.10 has match")
    text = text.replace('cwd="/some/project"', 'cwd="."').replace('tb.bash("make"', 'tb.bash("echo made"')
    names = taken_for_granted()
    code = compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)
    for value in names.values():
        if isinstance(value, (bl.Session, bl.Engine)):
            value.close()
