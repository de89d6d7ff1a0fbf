"""What functions of the program and handlers of signals may do without a session hanging, and slips that are told."""

import asyncio
import gc
import json
import math
import signal
import sys
import threading
import weakref

import pytest

import branchline as bl
from branchline import _calls, aio, errors
from scripts import call, say

GUARD = 30


def tool_texts(result):
    """What the model read of the tool calls of a run."""
    return [bl.ToolResult(message["content"]).text for message in result.messages if message["role"] == "toolResult"]


# --- what a function raises ------------------------------------------------------------------------------------------


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no text")


RAISED = {
    "exit": (SystemExit(3), "SystemExit: 3"),
    "interrupt": (KeyboardInterrupt(), "KeyboardInterrupt"),
    "unspeakable": (Unspeakable(), "Unspeakable, whose text cannot be had: its __str__ raised ValueError"),
    "surrogate": (ValueError("half \ud83d"), "ValueError: half ?"),
}


@pytest.mark.parametrize("name", RAISED)
def test_whatever_a_tool_raises_is_a_failed_call(scripted, name):
    error, text = RAISED[name]

    @bl.tool
    def plain() -> str:
        raise error

    @bl.tool
    async def coroutine() -> str:
        raise error

    replies = [call("plain", {}), call("coroutine", {}), say("after")]
    session = scripted(*replies, tools=[plain, coroutine])
    session.prompt("x")
    session.wait_idle(GUARD)
    assert [entry.text for entry in session.tree.branch() if entry.role == "toolResult"] == [text, text]
    assert session.tree[session.leaf].text == "after"


def nested(depth):
    value = "leaf"
    for _ in range(depth):
        value = [value]
    return value


def test_data_that_would_not_be_kept_whole_is_refused(scripted):
    @bl.tool
    def plain() -> list:
        return nested(150)

    @bl.tool
    async def coroutine() -> list:
        return nested(150)

    session = scripted(call("plain", {}), call("coroutine", {}), say("after"), tools=[plain, coroutine])
    for text in tool_texts(session.run("x")):
        assert "nested deeper than 100 levels" in text
    with pytest.raises(errors.InvalidArgumentError, match="nested deeper than 100 levels"):
        session.append_custom("x", nested(150))
    stored = session.tree[session.append_custom("x", nested(98))]
    assert json.loads(stored.raw)["data"] == nested(98)


def test_a_task_of_a_tool_that_exits_ends_nothing_else(scripted):
    @bl.tool
    async def leave() -> str:
        async def inner():
            sys.exit(3)

        await asyncio.create_task(inner())

    @bl.tool
    async def stop() -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "went on"

    session = scripted(call("leave", {}), call("stop", {}), say("after"), tools=[leave, stop])
    session.prompt("x")
    session.wait_idle(GUARD)
    texts = [entry.text for entry in session.tree.branch() if entry.role == "toolResult"]
    assert texts == ["SystemExit: 3", "went on"]


def test_a_coroutine_model_or_handler_that_exits_fails_what_it_was_asked(engine, work):
    async def answer(request):
        sys.exit("no model today")

    async def handler(request):
        sys.exit("nobody is here")

    engine.add_host_provider("own", ["m"], answer)
    session = engine.create_session(work, model="own/m", in_memory=True)
    session.prompt("x")
    session.wait_idle(GUARD)
    message = session.tree[session.leaf].message
    assert (message["stopReason"], message["errorMessage"]) == ("error", "SystemExit: no model today")

    engine.add_scripted_model("asks", [call("ls", {"path": "/"}), say("after")])
    session = engine.create_session(work, model="scripted/asks", in_memory=True, permissions=handler, tools=["ls"])
    session.prompt("x")
    session.wait_idle(GUARD)
    assert session.tree[session.leaf].text == "after"
    (result,) = [entry for entry in session.tree.branch() if entry.role == "toolResult"]
    assert result.message["isError"]


def test_an_exit_in_a_tool_of_the_programs_own_loop_is_a_failed_call(engine, work):
    @bl.tool
    async def leave() -> str:
        sys.exit(3)

    engine.add_scripted_model("leaves", [call("leave", {}), say("after")])

    async def main():
        options = {"tools": [leave], "in_memory": True, "permissions": "allow"}
        session = await aio.Session.create(work, engine=engine, model="scripted/leaves", **options)
        return await asyncio.wait_for(session.run("x"), GUARD)

    assert tool_texts(asyncio.run(main())) == ["SystemExit: 3"]


# --- what a handler of a signal raises -------------------------------------------------------------------------------


class Late(Exception):
    pass


@pytest.fixture
def late():
    """Raises Late, or SystemExit, as a signal's handler, when a model hangs and the main thread waits for it."""
    threads, raised, due = [], Late, False
    main = threading.get_ident()

    def handle(*_):
        nonlocal due
        due = not _calls.is_blocked(main)
        if not due:
            raise raised()

    def on_block(thread):
        # It came before the wait, or between two.
        if due and thread == main:
            signal.raise_signal(signal.SIGUSR1)

    _calls.on_block.append(on_block)
    before = signal.signal(signal.SIGUSR1, handle)

    def when(session, reply=0, error=Late):
        nonlocal raised
        raised = error

        def send():
            session.control.wait_reached(reply, GUARD)
            signal.pthread_kill(main, signal.SIGUSR1)

        threads.append(threading.Thread(target=send))
        threads[-1].start()

    yield when
    for thread in threads:
        thread.join()
    _calls.on_block.remove(on_block)
    signal.signal(signal.SIGUSR1, before)


def prompt_and_wait(session):
    session.run_of_the_test = session.prompt("x")  # is held, so that nothing but the wait can abort it
    session.wait_idle()


def result(session):
    session.run_of_the_test = session.prompt("x")
    session.run_of_the_test.result()


def iterate(session):
    session.run_of_the_test = session.prompt("x")
    for _ in session.run_of_the_test:
        pass


WAITS = {"run": lambda session: session.run("x"), "result": result, "for": iterate, "wait_idle": prompt_and_wait}


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of POSIX")
@pytest.mark.parametrize("error", [Late, SystemExit])
@pytest.mark.parametrize("wait", WAITS)
def test_whatever_a_signals_handler_raises_aborts_the_run(scripted, late, wait, error):
    session = scripted(say("half", hang=True), say("two"), in_memory=True)
    late(session, error=error)
    with pytest.raises(error) as caught:
        WAITS[wait](session)
    # The exception has everything in its frames: only the wait itself has ended the run.
    assert caught.value is not None and session.state.phase == "idle"
    assert session.tree[session.leaf].message["stopReason"] == "aborted"


SUMMARIES = {
    "compact": lambda session: session.compact(),
    "navigate": lambda session: session.navigate(session.tree.branch()[0].id, summarize=True),
}


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of POSIX")
@pytest.mark.parametrize("wait", SUMMARIES)
def test_whatever_a_signals_handler_raises_aborts_a_summary(scripted, late, wait):
    session = scripted(say("one"), say("two"), say("summary", hang=True), in_memory=True)
    for _ in range(2):
        session.run("word " * 30_000)
    leaf = session.leaf
    late(session, reply=2)
    with pytest.raises(Late):
        SUMMARIES[wait](session)
    assert (session.state.phase, session.leaf) == ("idle", leaf)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of POSIX")
@pytest.mark.parametrize("how", ["results", "for"])
def test_whatever_a_signals_handler_raises_aborts_an_exploration(scripted, late, how):
    session = scripted(say("half", hang=True), in_memory=True)
    exploration = session.exploration(["a", "b"])
    late(session)
    with pytest.raises(Late):
        exploration.results() if how == "results" else list(exploration)
    for sibling in exploration.siblings:
        sibling.wait_idle(GUARD)


def test_errors_of_the_library_leave_a_run_alone(scripted):
    session = scripted(say("half", hang=True))
    run = session.prompt("x")
    session.control.wait_reached(0, GUARD)
    with pytest.raises(errors.TimeoutError):
        session.wait_idle(0)
    for limit in (-1, math.nan, "5", object()):
        with pytest.raises(errors.InvalidArgumentError, match="timeout"):
            session.wait_idle(limit)
    with pytest.raises(errors.RunningError):
        session.navigate(session.leaf)
    with pytest.raises(errors.RunningError):
        session.run("y")
    with pytest.raises(TypeError):
        session.navigate(5)
    assert session.state.running and not run.settled


# --- waiting inside of a function ------------------------------------------------------------------------------------


def in_a_tool(scripted, act, *replies):
    """What `act` comes to in a tool of a session; it gets the session and its run."""
    box, ready = {}, threading.Event()

    @bl.tool
    def inner() -> str:
        assert ready.wait(GUARD)
        try:
            return str(act(box["session"], box["run"]))
        except errors.WouldDeadlockError:
            return "refused"

    session = box["session"] = scripted(call("inner", {}), *(replies or [say("after")]), tools=[inner])
    box["run"] = session.prompt("x")
    ready.set()
    session.wait_idle(GUARD)
    outcome = box["run"].result()
    assert not outcome.aborted
    return tool_texts(outcome)[0]


def queued(session, _run):
    return session.prompt("f", when_running="follow_up").result()


def queued_loop(session, _run):
    return list(session.prompt("f", when_running="steer"))


OWN = {
    "result": lambda _session, run: run.result(),
    "for": lambda _session, run: list(run),
    "queued": queued,
    "queued loop": queued_loop,
    "another view": lambda session, _run: asyncio.run(session.aio.wait_idle()),
    "wait_idle": lambda session, _run: session.wait_idle(),
}


@pytest.mark.parametrize("wait", OWN)
def test_a_tool_cannot_wait_for_its_own_run(scripted, wait):
    assert in_a_tool(scripted, OWN[wait]) == "refused"


def test_a_coroutine_tool_cannot_wait_for_its_own_run(scripted):
    box, refused = {}, []

    @bl.tool
    async def inner() -> str:
        run = box["session"].aio.prompt("f", when_running="steer")
        with pytest.raises(errors.WouldDeadlockError):
            await run
        with pytest.raises(errors.WouldDeadlockError):
            async for _ in run:
                pass
        with pytest.raises(errors.WouldDeadlockError):
            await asyncio.create_task(box["session"].aio.wait_idle())
        refused.append(True)
        return "done"

    box["session"] = session = scripted(call("inner", {}), say("after"), tools=[inner])
    session.prompt("x")
    session.wait_idle(GUARD)
    assert refused and session.tree[session.leaf].text == "after"


def test_a_run_may_be_read_while_its_tool_runs_in_the_same_loop(engine, work):
    @bl.tool
    async def inner() -> str:
        await asyncio.sleep(0)
        return "done"

    engine.add_scripted_model("loop", [call("inner", {}), say("after")])

    async def main():
        options = {"tools": [inner], "in_memory": True, "permissions": "allow"}
        session = await aio.Session.create(work, engine=engine, model="scripted/loop", **options)
        return await session.run("x")

    assert asyncio.run(main()).text == "after"


def sibling_of(session):
    return session.branch(bl.START, model=session.state.model)


def run_sibling(session, _run):
    return sibling_of(session).run("hello").text


def wait_for_running_sibling(session, _run):
    sibling = sibling_of(session)
    run = sibling.prompt("hello")
    sibling.wait_idle()
    assert run.settled
    return "waited"


def wait_for_idle_sibling(session, _run):
    sibling_of(session).wait_idle()
    return "waited"


def wait_for_steered_sibling(session, _run):
    # A prompt that would have been queued: it does not say that the sibling was idle.
    return sibling_of(session).prompt("hello", when_running="steer").result().text


def wait_for_another(session, _run):
    return session.new_session().run("hello").text


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (run_sibling, "theirs"),
        (wait_for_running_sibling, "waited"),
        (wait_for_idle_sibling, "waited"),
        (wait_for_steered_sibling, "theirs"),
        (wait_for_another, "theirs"),
    ],
)
def test_a_tool_may_wait_for_siblings_of_its_session(scripted, act, expected):
    assert in_a_tool(scripted, act, say("theirs"), say("after")) == expected


def test_a_tool_may_wait_for_a_sibling_that_runs_already(scripted):
    box = {}

    @bl.tool
    def inner() -> str:
        box["control"].open_gate("theirs")
        box["sibling"].wait_idle()
        return "waited"

    session = scripted(say("theirs", waitGate="theirs"), call("inner", {}), say("after"), tools=[inner])
    box["control"], box["sibling"] = session.control, session.branch()
    run = box["sibling"].prompt("hello")
    session.control.wait_reached(0, GUARD)
    session.prompt("x")
    session.wait_idle(GUARD)
    assert [entry.text for entry in session.tree.branch() if entry.role == "toolResult"] == ["waited"]
    assert run.result().text == "theirs"


def test_a_model_may_run_a_sibling_of_its_session_and_not_wait_for_that(engine, work):
    box = {}

    def answer(request):
        if request.last_text == "hello":
            return "theirs"
        with pytest.raises(errors.WouldDeadlockError):
            box["session"].wait_idle()
        return box["session"].branch(bl.START, model="own/m").run("hello").text

    engine.add_host_provider("own", ["m"], answer)
    box["session"] = session = engine.create_session(work, model="own/m", in_memory=True)
    session.prompt("x")
    session.wait_idle(GUARD)
    assert session.tree[session.leaf].text == "theirs"


# --- loops and threads -----------------------------------------------------------------------------------------------


def test_a_loop_that_is_closed_while_something_waits_is_let_go_of(engine, scripted):
    @bl.tool
    async def never() -> str:
        await asyncio.Event().wait()

    def leave():
        session = scripted(call("never", {}), say("after"), tools=[never])
        loop = asyncio.new_event_loop()

        async def begin():
            run = session.aio.prompt("x")
            async for event in run:
                if isinstance(event, bl.ToolExecutionStart):
                    break
            waiting = asyncio.ensure_future(run.__anext__())
            waiting._log_destroy_pending = False  # it is destroyed on purpose
            await asyncio.sleep(0)
            return waiting

        waiting = loop.run_until_complete(begin())
        assert not waiting.done()
        loop.close()
        return weakref.ref(loop), weakref.ref(session)

    loop, session = leave()
    gc.collect()
    assert loop() is None and session() is None


@pytest.mark.parametrize("late_thread", range(3))
def test_threads_that_share_a_subscription_read_to_its_end(scripted, monkeypatch, late_thread):
    """Another thread takes all that one has fetched, before it looks at that."""
    session = scripted(say("a"), say("b"), in_memory=True)
    subscription = session.subscribe()
    session.run("x")
    source, stolen = subscription._source, []

    class Source:
        def next_batch(self, size):
            return source.next_batch(1)

        def discard(self):
            source.discard()

    take = type(subscription)._take

    def thief(self, rows):
        take(self, rows)
        if len(stolen) <= late_thread:
            thread = threading.Thread(target=lambda: stolen.append(next(self)))
            thread.start()
            thread.join()

    subscription._source = Source()
    monkeypatch.setattr(type(subscription), "_take", thief)
    event = next(subscription)
    assert [one.sequence for one in stolen] == list(range(stolen[0].sequence, event.sequence))


def test_a_loop_that_is_closed_while_its_tool_runs_is_let_go_of(engine, work):
    engine.add_scripted_model("never", [call("never", {}), say("after")])
    gone = threading.Event()

    def leave():
        loop = asyncio.new_event_loop()

        async def begin():
            begun = asyncio.Event()

            @bl.tool
            async def never() -> str:
                asyncio.current_task()._log_destroy_pending = False  # it is destroyed on purpose
                begun.set()
                await asyncio.Event().wait()

            options = {"tools": [never], "in_memory": True, "permissions": "allow"}
            session = await aio.Session.create(work, engine=engine, model="scripted/never", **options)
            session.prompt("x")
            await asyncio.wait_for(begun.wait(), GUARD)
            return session

        session = loop.run_until_complete(begin())
        loop.close()
        weakref.finalize(loop, gone.set)
        # Blocks until the call is over, which the loop cannot know any more.
        session.sync.close()

    leave()
    # The thread that serves tools is told of the end of the call some time after that.
    for _ in range(GUARD * 100):
        gc.collect()
        if gone.wait(0.01):
            break
    assert gone.is_set()


# --- slips -----------------------------------------------------------------------------------------------------------


def test_ids_that_the_tree_does_not_know_are_told(scripted, tmp_path):
    session = scripted(say("one"))
    session.run("x")
    for tree in (session.tree, bl.read_session(session.path)):
        for look in (tree.branch, tree.children, tree.export_branch, tree.context):
            with pytest.raises(errors.EntryNotFoundError, match="nope"):
                look("nope")
        assert len(tree.branch()) == len(tree.branch(None)) and tree.context().messages
        assert tree.children(session.leaf) == [] and tree.parent("nope") is None

    # An entry whose parent is missing is a child of that all the same.
    lines = session.path.read_text().splitlines()
    lost = tmp_path / "lost.jsonl"
    second = session.tree.parent(session.leaf)
    lost.write_text("\n".join(line for line in lines if f'"id":"{second}"' not in line) + "\n")
    tree = bl.read_session(lost)
    assert second not in tree and tree.children(second) == [session.leaf]


SLIPS = {
    "adopt": (lambda session: session.adopt("x"), "sibling"),
    "explore": (lambda session: session.explore([5]), "prompt"),
    "prompts": (lambda session: session.explore(5), "prompts"),
    "images of a prompt": (lambda session: session.explore([{"text": "x", "images": "abc"}]), "images"),
    "budget": (lambda session: session.branch(budget=5), "budget"),
    "tools": (lambda session: session.set_tools("read"), r"\['read'\]"),
    "no tools": (lambda session: session.set_tools([5]), "name"),
    "no list": (lambda session: session.set_tools(5), "names"),
    "images": (lambda session: session.prompt("x", images="abc"), "images"),
    "wall time": (lambda session: bl.Budget(wall_time=math.inf), "wall_time"),
    "no wall time": (lambda session: bl.Budget(wall_time="5"), "wall_time"),
    "capacity": (lambda session: session.subscribe(capacity=-1), "capacity"),
    "capacity of a prompt": (lambda session: session.prompt("x", capacity=2**80), "capacity"),
    "capacity of an exploration": (lambda session: session.exploration(["x"], capacity="5"), "capacity"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_are_told(scripted, slip):
    session = scripted(say("one"), in_memory=True)
    make, told = SLIPS[slip]
    with pytest.raises(errors.InvalidArgumentError, match=told):
        make(session)
    assert session.state.phase == "idle"


@pytest.mark.parametrize("hooks", [[lambda call: None], lambda call: None, bl.ToolHook(before=lambda call: None)])
def test_hooks_that_are_none_are_told(scripted, hooks):
    with pytest.raises(errors.InvalidArgumentError, match="ToolHook"):
        scripted(say("one"), tool_hooks=hooks)
    with pytest.raises(errors.InvalidArgumentError, match="budget"):
        scripted(say("one"), budget=5)


def test_a_limit_of_infinity_is_none(scripted):
    session = scripted(say("one"), in_memory=True)
    run = session.prompt("x")
    session.wait_idle(math.inf)
    assert run.settled
