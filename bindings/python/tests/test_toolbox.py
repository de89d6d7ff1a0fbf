"""The tools as functions, without a session."""

import asyncio
import inspect
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import branchline as bl
from branchline import aio, errors

GUARD = 30
METHODS = {"bash", "edit", "find", "grep", "ls", "read", "write"}


@pytest.fixture
def tools(engine, work):
    return bl.Toolbox(work, engine=engine)


def test_every_tool_has_a_method_in_both_forms(tools):
    assert {definition["name"] for definition in tools.definitions} - {"powershell"} == METHODS
    for name in METHODS | {"call", "add", "definitions"}:
        one, other = getattr(bl.Toolbox, name), getattr(aio.Toolbox, name)
        assert one.__doc__ and other.__doc__
        if callable(one):
            assert inspect.signature(one) == inspect.signature(other), name
    assert repr(tools).startswith("<Toolbox bash, edit, ")


def test_methods_take_what_the_schemas_say(tools):
    names = {"ignoreCase": "ignore_case"}
    for definition in tools.definitions:
        if definition["name"] in METHODS:
            there = set(inspect.signature(getattr(tools, definition["name"])).parameters)
            said = {names.get(name, name) for name in definition["parameters"]["properties"]}
            assert there == said | {"on_progress", "check"}, definition["name"]


def test_files(tools, work):
    assert tools.read("notes.txt").text == "first\nsecond\n"
    assert tools.read(Path("notes.txt"), offset=2, limit=1).text.startswith("second")
    tools.write("sub/new.py", "one = 1\ntwo = 2\n")
    result = tools.edit("sub/new.py", [("one = 1", "one = 11"), {"oldText": "two = 2", "newText": "two = 22"}])
    assert (work / "sub/new.py").read_text() == "one = 11\ntwo = 22\n"
    assert "+1 one = 11" in result.details["diff"]
    assert tools.ls().text == "notes.txt\nsub/"
    assert tools.ls("sub", limit=5).text == "new.py"
    assert tools.find("*.py").text == "sub/new.py"
    assert tools.grep("SECOND|ONE", path="sub", glob="*.py", ignore_case=True, limit=20).text == "new.py:1: one = 11"
    assert "notes.txt:2: second" in tools.grep("sec", literal=True, context=1).text


def test_commands(tools):
    result = tools.bash("printf one; exit 0", timeout=20)
    assert result.text == "one" and result.structured_content["exit_code"] == 0
    seen = []
    tools.bash("echo begun; sleep 0.3; echo over", on_progress=seen.append)
    assert any(partial.text == "begun\n" for partial in seen)


def test_failures_raise_unless_they_are_looked_at(tools):
    with pytest.raises(bl.ToolError, match="ENOENT") as caught:
        tools.read("missing")
    assert isinstance(caught.value, bl.Error) and caught.value.result.is_error
    failed = tools.bash("echo out; exit 3", check=False)
    assert failed.is_error and "out" in failed.text and failed.structured_content["exit_code"] == 3
    with pytest.raises(bl.ToolError, match="Tool hammer not found"):
        tools.call("hammer")
    with pytest.raises(bl.ToolError, match="Validation failed"):
        tools.call("read", {"path": 1, "offset": "x"})
    with pytest.raises(errors.InvalidArgumentError):
        tools.call("read", {"path": object()})


def test_two_directories_and_the_default_engine(work, tmp_path):
    assert bl.Toolbox(work).read("notes.txt").text == bl.Toolbox(tmp_path).read("work/notes.txt").text


def test_calls_from_many_threads(tools):
    texts = []
    threads = [
        threading.Thread(
            target=lambda number=number: texts.append(tools.bash(f"sleep 0.1; echo {number}").text.strip())
        )
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD)
    assert sorted(texts) == [str(number) for number in range(8)]


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


def wait_gone(pid):
    deadline = time.monotonic() + GUARD
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)


def wait_pid(path):
    deadline = time.monotonic() + GUARD
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().endswith("\n"):
            return int(path.read_text())
        time.sleep(0.005)
    pytest.fail("the command did not start")


@pytest.mark.parametrize("listening", [False, True])
def test_ctrl_c_ends_the_tool(tools, work, listening):
    def press():
        wait_pid(work / "pid")
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        tools.bash("echo $$ > pid; exec sleep 600", on_progress=(lambda partial: None) if listening else None)
    thread.join()
    wait_gone(wait_pid(work / "pid"))


def test_awaited(engine, work):
    async def main():
        tools = aio.Toolbox(work, engine=engine)
        seen = []

        async def listen(partial):
            await asyncio.sleep(0)
            seen.append(partial.text)

        texts = await asyncio.gather(*(tools.bash(f"echo {n}", on_progress=listen) for n in range(5)))
        assert [result.text.strip() for result in texts] == list("01234") and seen
        assert (await tools.grep("second")).text == "notes.txt:2: second"
        await tools.write("a", "b")
        await tools.edit("a", [("b", "c")])
        assert [(await tools.read("a")).text, (await tools.find("a")).text] == ["c", "a"]
        assert "a" in (await tools.ls()).text
        with pytest.raises(bl.ToolError):
            await tools.read("missing")
        assert (await tools.read("missing", check=False)).is_error

        # Cancelling the task ends the tool.
        task = asyncio.ensure_future(tools.bash("echo $$ > pid; exec sleep 600"))
        pid = await asyncio.get_running_loop().run_in_executor(None, wait_pid, work / "pid")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.get_running_loop().run_in_executor(None, wait_gone, pid)

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(tools.bash("sleep 600"), 0.2)

    asyncio.run(main())


def test_after_the_engine(tmp_path, work):
    with bl.Engine(agent_dir=tmp_path / "agent") as engine:
        tools = bl.Toolbox(work, engine=engine)
        results = []
        thread = threading.Thread(target=lambda: results.append(tools.bash("echo $$ > pid; sleep 600", check=False)))
        thread.start()
        wait_pid(work / "pid")
    thread.join(GUARD)
    assert results[0].is_error
    with pytest.raises(errors.ClosedError):
        tools.ls()
