"""The same from asyncio."""

import asyncio
import threading

import pytest

import branchline as bl
from branchline import aio, errors
from scripts import call, say


def test_everything_awaited(tmp_path, work):
    async def main():
        async with aio.Engine(agent_dir=tmp_path / "agent") as engine:
            engine.add_scripted_model("a", [call("read", {"path": "notes.txt"}), say("one"), say("two"), say("three")])
            session = await engine.create_session(work, model="scripted/a", permissions="allow")
            events = [event async for event in session.prompt("first")]
            assert any(isinstance(event, bl.ToolExecutionEnd) for event in events)
            assert isinstance(events[-1], bl.AgentSettled)
            result = await session.run("second")
            assert (result.text, len(result.events) > 5) == ("two", True)
            second = next(entry.id for entry in session.tree if entry.text == "second")
            await session.label(second, "mark")
            assert session.tree.labels == {second: "mark"}
            await session.set_name("a name")
            assert session.name == session.sync.name == "a name"
            assert (await session.navigate(second)).editor_text == "second"
            fork = await session.fork(second)
            assert fork.editor_text == "second"
            assert (await fork.run("third")).text == "three"
            copy = await session.clone()
            assert list(copy.tree.branch().ids())[-1] == session.leaf
            await session.steer("a")
            await session.follow_up("b")
            assert await session.clear_queues() == (["a"], ["b"])
            await session.set_thinking_level("low")
            await session.set_tools(["read"])
            await session.set_model("scripted/a")
            id = await session.append_custom("x", {"y": 1})
            await session.append_custom_message("x", "y")
            assert id in session.tree
            await session.abort()
            await session.wait_idle()
            path = session.path
            await session.close()
            async with await engine.open_session(path) as again:
                assert id in again.tree
            recent = await engine.continue_recent(work)
            assert len(await engine.list_sessions(work)) == 3
            await recent.close()
            with pytest.raises(errors.EntryNotFoundError):
                await fork.navigate("nope")

    asyncio.run(main())
    asyncio.run(asyncio.sleep(0))


def test_a_run_awaited(scripted):
    session = scripted(say("one"))

    async def main():
        return await session.prompt("x")

    assert asyncio.run(main()).text == "one"


def test_many_at_once(engine, work):
    engine.add_scripted_model("slow", {"replies": [say("x" * 200)], "atEnd": "loop", "chunk": 1})

    async def one():
        session = await aio.Session.create(work, engine=engine, model="scripted/slow", in_memory=True)
        return (await session.run("go")).text

    async def main():
        return await asyncio.gather(*(one() for _ in range(20)))

    assert asyncio.run(main()) == ["x" * 200] * 20


def test_the_loop_goes_on_while_a_task_waits(scripted):
    session = scripted(say("one", waitGate="go"))

    async def main():
        waiting = asyncio.ensure_future(session.aio.run("x"))
        ticks = 0
        while ticks < 20:
            await asyncio.sleep(0.001)
            ticks += 1
        assert not waiting.done()
        session.control.open_gate("go")
        return (await waiting).text

    assert asyncio.run(main()) == "one"


def test_blocking_calls_inside_a_running_loop(scripted):
    """As in a notebook cell: a loop runs in this thread, and the code in it blocks."""
    session = scripted(say("one"), say("two"))

    async def main():
        text = session.run("x").text
        events = list(session.prompt("y"))
        return text, events[-1].type

    assert asyncio.run(main()) == ("one", "agent_settled")


def test_loops_in_several_threads(scripted):
    session = scripted(say("one"))
    texts = []

    def work():
        async def main():
            copy = await session.aio.clone()
            texts.append((await copy.run("y")).text)

        asyncio.run(main())

    session.run("x")
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert texts == ["one"] * 4


def test_cancelling_the_task_aborts_the_run(scripted):
    session = scripted(say("one", hang=True), say("two"))

    async def main(waiting):
        task = asyncio.ensure_future(waiting())
        while session.state.phase != "running":
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert session.state.phase == "idle"
        assert (await session.aio.run("go on")).text == "two"

    asyncio.run(asyncio.wait_for(main(lambda: session.aio.run("x")), 60))


def test_a_deadline(scripted):
    session = scripted(say("one", hang=True), say("two"))

    async def main():
        async def loop():
            async for _event in session.prompt("x"):
                pass

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(loop(), 0.1)
        return (await session.prompt("y")).text

    assert asyncio.run(main()) == "two"


def test_async_with_ends_the_run(scripted):
    session = scripted(say("one", hang=True))

    async def main():
        async with session.prompt("x") as run:
            async for event in run:
                if isinstance(event, bl.TextDelta):
                    break
        assert run.settled and session.state.phase == "idle"

    asyncio.run(main())


def test_a_loop_that_cannot_watch_descriptors(scripted, monkeypatch):
    session = scripted(say("one"))

    def add_reader(*_):
        raise NotImplementedError

    async def main():
        monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", add_reader)
        return (await session.aio.run("x")).text

    assert asyncio.run(main()) == "one"


def test_descriptors_are_returned(scripted, tmp_path):
    import gc
    import os

    session = scripted(say("one"))

    async def main():
        await session.aio.run("x")

    def open_files():
        return len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))

    asyncio.run(main())
    gc.collect()
    before = open_files()
    for _ in range(20):
        asyncio.run(main())
    gc.collect()
    assert open_files() <= before + 2
