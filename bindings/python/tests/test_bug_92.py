"""Bug 92: a worker thread needs the interpreter to run a tool while the caller keeps it waiting."""

import asyncio
import os
import signal
import sys
import threading
import time

import pytest

import branchline as bl
from branchline import aio, errors
from scripts import call, say

GUARD = 30


class Shop:
    """A session with a tool that does something with it, and whoever wants to know what came of it."""

    def __init__(self, scripted, act, **options):
        self.act = act

        @bl.tool
        def work(context: bl.ToolContext) -> str:
            """Works."""
            self.thread = threading.current_thread()
            return self.act(self, context)

        self.session = scripted(call("work", {}), say("done"), tools=[work], **options)

    def result(self, run):
        return next(message for message in run.messages if message["role"] == "toolResult")


def simple(shop, context):
    time.sleep(0.05)  # with the interpreter released, as tools that do something do
    return "worked"


def busy(shop, context):
    deadline = time.monotonic() + 0.05
    while time.monotonic() < deadline:  # with the interpreter held
        pass
    return "worked"


@pytest.mark.parametrize("act", [simple, busy])
def test_bug_92_from_the_main_thread_with_a_listener(scripted, act):
    shop = Shop(scripted, act)
    seen = []

    def listen():
        for event in shop.session.subscribe():
            seen.append(type(event).__name__)

    listener = threading.Thread(target=listen)
    listener.start()
    run = shop.session.run("x")
    assert shop.result(run)["content"][0]["text"] == "worked"
    assert shop.thread is not threading.main_thread()
    shop.session.close()
    listener.join(GUARD)
    assert "ToolExecutionEnd" in seen


def test_bug_92_from_a_second_thread(scripted):
    shop = Shop(scripted, simple)
    runs = []
    thread = threading.Thread(target=lambda: runs.append(shop.session.run("x")))
    thread.start()
    thread.join(GUARD)
    assert runs[0].text == "done"


def test_bug_92_inside_asyncio(engine, work, scripted):
    shop = Shop(scripted, simple)
    assert asyncio.run(shop.session.aio.run("x")).text == "done"

    # A blocking call inside a running loop, with a coroutine for a tool of that loop, which cannot run it.
    async def main():
        @bl.tool
        async def nap() -> str:
            await asyncio.sleep(0.01)
            return "slept"

        engine.add_scripted_model("n", [call("nap", {}), say("ok")])
        options = {"tools": [nap], "in_memory": True, "permissions": "allow"}
        session = await aio.Session.create(work, engine=engine, model="scripted/n", **options)
        return session.sync.run("x")

    assert asyncio.run(main()).text == "ok"


def test_bug_92_the_tool_calls_back_into_its_session(scripted):
    def act(shop, context):
        session = shop.session
        assert context.session_id == session.id and context.call_id == "c1"
        session.append_custom("tool", {"from": "inside"})
        session.steer("more")
        session.name = "named inside"
        assert session.state.phase == "running" and session.tree
        with pytest.raises(errors.RunningError):
            session.run("again")
        with pytest.raises(errors.WouldDeadlockError):
            session.wait_idle()
        with pytest.raises(errors.WouldDeadlockError):
            session.wait_idle(timeout=5)
        return "called back"

    shop = Shop(scripted, act)
    run = shop.session.run("x")
    assert shop.result(run)["content"][0]["text"] == "called back", shop.result(run)
    assert shop.session.name == "named inside"


@pytest.mark.parametrize("how", ["abort", "close"])
def test_bug_92_the_tool_ends_its_session_or_run(scripted, how):
    over = threading.Event()

    def act(shop, context):
        getattr(shop.session, how)()
        assert context.cancelled
        over.set()

    shop = Shop(scripted, act)
    try:
        run = shop.session.run("x")
        assert run.aborted
    except errors.ClosedError:
        assert how == "close"
    assert over.wait(GUARD)


def test_bug_92_the_tool_raises(scripted):
    def act(shop, context):
        raise RuntimeError("boom")

    shop = Shop(scripted, act)
    run = shop.session.run("x")
    assert run.text == "done"
    assert shop.result(run)["isError"] and "boom" in shop.result(run)["content"][0]["text"]


def test_bug_92_ctrl_c_during_the_wait(scripted):
    begun, may_end = threading.Event(), threading.Event()

    def act(shop, context):
        begun.set()
        may_end.wait(GUARD)  # a tool that does not look whether it was cancelled

    def press():
        begun.wait(GUARD)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    shop = Shop(scripted, act)
    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        shop.session.run("x")
    assert shop.session.state.phase == "idle" and not may_end.is_set()
    may_end.set()
    thread.join(GUARD)
    assert shop.session.run("go on").text == "done"


def test_bug_92_tools_that_call_tools(engine, work):
    @bl.tool
    def inner(n: int) -> int:
        return n + 1

    @bl.tool
    def outer(n: int) -> int:
        return tools.call("inner", n=n).structured_content + 1

    tools = bl.Toolbox(work, engine=engine, tools=[inner, outer])
    assert tools.call("outer", n=1).structured_content == 3


PROGRAM = """
import branchline as bl, os, sys, threading, time, warnings
warnings.simplefilter("ignore")
begun = threading.Event()
@bl.tool
def work(how: str = "") -> str:
    begun.set()
    if how == "hang": threading.Event().wait()
    if how == "spin":
        while True: pass
    return "worked"
def model(engine, *arguments):
    call = {"type": "toolCall", "id": "c", "name": "work"}
    replies = [{"content": [{**call, "arguments": {"how": how}}]} for how in arguments]
    replies.append({"content": [{"type": "text", "text": "ok"}]})
    engine.add_scripted_model("m", {"replies": replies, "atEnd": "repeatLast"})
    return engine.create_session(".", model="scripted/m", tools=[work], in_memory=True, permissions="allow")
engine = bl.Engine()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_bug_92_fork_after_use(python):
    done = python(
        PROGRAM
        + """
assert model(engine, "").run("x").text == "ok"
pid = os.fork()
if pid == 0:
    assert model(bl.Engine(), "").run("x").text == "ok"
    assert bl.Toolbox(tools=[work]).call("work").text == "worked"
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert bl.Toolbox(tools=[work]).call("work").text == "worked"
""",
        timeout=GUARD,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("how", ["hang", "spin"])
def test_bug_92_the_interpreter_ends_while_a_tool_runs(python, how):
    start = time.monotonic()
    done = python(PROGRAM + f"run = model(engine, {how!r}).prompt('x'); begun.wait()", timeout=GUARD)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - start < GUARD


def test_bug_92_importing_and_defining_tools_starts_nothing(python):
    done = python("import threading, branchline as bl; bl.tool(lambda: 0); print(threading.active_count())")
    assert done.stdout == "1\n" or sys.platform != "linux"
