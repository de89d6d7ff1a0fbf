"""Models that are functions of the program: every form of an answer, aborts, failures, exits, notebooks."""

import asyncio
import gc
import signal
import threading
import time
import weakref

import pytest

import branchline as bl
from branchline import aio, errors

GUARD = 30
MODEL = {"id": "chat", "name": "Chat", "context_window": 32768, "max_tokens": 1000, "reasoning": True}


@pytest.fixture
def serve(engine, work):
    """Makes a session on a model that this function answers."""

    def make(answer, **options):
        engine.add_host_provider("ide", [MODEL, "plain"], answer)
        options = {"model": "ide/chat", "permissions": "allow", "in_memory": True, **options}
        return engine.create_session(work, **options)

    return make


def wait_for(condition):
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < GUARD
        time.sleep(0.005)


def tool_results(result):
    return [m["content"][0]["text"] for m in result.messages if m["role"] == "toolResult"]


async def async_generator(request):
    yield "one "
    await asyncio.sleep(0)
    yield "two"


def generator(request):
    yield "one "
    yield "two"


async def coroutine(request):
    await asyncio.sleep(0)
    return "one two"


class Callable:
    async def __call__(self, request):
        yield "one two"


FORMS = {
    "async generator": async_generator,
    "generator": generator,
    "coroutine": coroutine,
    "text": lambda request: "one two",
    "list": lambda request: ["one ", "two"],
    "block": lambda request: {"type": "text", "text": "one two"},
    "an async generator, given": lambda request: async_generator(request),
    "a coroutine, given": lambda request: coroutine(request),
    "events": lambda request: [
        {"type": "text_start"},
        {"type": "text_delta", "delta": "one two"},
        {"type": "text_end"},
        {"type": "done", "reason": "stop"},
        "never",
    ],
    "object": Callable(),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_an_answer(serve, form):
    result = serve(FORMS[form]).run("x")
    assert (result.text, result.stop_reason, result.error_message) == ("one two", "stop", None)


def test_a_coroutine_may_give_a_generator(serve):
    async def late(request):
        return async_generator(request)

    assert serve(late).run("x").text == "one two"


def test_nothing_is_an_answer_too(serve):
    result = serve(lambda request: None).run("x")
    assert (result.text, result.stop_reason) == ("", "stop")


def test_text_arrives_while_it_is_made(serve):
    told = threading.Event()

    def slow(request):
        yield "first"
        assert told.wait(GUARD)
        yield ", second"

    deltas = []
    for event in serve(slow).prompt("x"):
        if isinstance(event, bl.TextDelta):
            deltas.append(event.text)
            told.set()
    assert deltas[0] == "first" and "".join(deltas) == "first, second"


def test_what_a_model_is_asked(serve, engine):
    asked = []

    def answer(request):
        asked.append(request)
        yield {"type": "usage", "usage": {"input": 11, "output": 5}}
        yield "fine"

    session = serve(answer, system_prompt="Be kind.", tools=["read"], thinking_level="low")
    result = session.run("What is it?")
    request = asked[0]
    assert (request.provider, request.model, request.purpose) == ("ide", "chat", "turn")
    assert (request.thinking_level, request.session_id) == ("low", session.id)
    assert "Be kind." in request.system_prompt and request.last_text == "What is it?"
    assert [message["role"] for message in request.messages] == ["user"]
    assert [tool["name"] for tool in request.tools] == ["read"] and not request.cancelled
    assert repr(request) == "<ModelRequest ide/chat: 1 messages, 1 tools>"
    assert (result.usage.input, result.usage.output) == (11, 5)
    session.run("And now?")
    assert [message["role"] for message in asked[1].messages] == ["user", "assistant", "user"]
    model = engine.find_model("ide/chat").model
    assert (model.display_name, model.context_window, model.max_tokens) == ("Chat", 32768, 1000)
    assert "ide/plain" in engine.available_models()


def test_the_loop_runs_what_a_model_calls(serve):
    async def answer(request):
        last = request.messages[-1]
        if last["role"] == "toolResult":
            yield f"It says {last['content'][0]['text'].split()[0]}."
            return
        yield {"type": "thinking", "text": "I should look."}
        yield "I look. "
        yield {"type": "toolcall", "id": "c1", "name": "read", "arguments": {"path": "notes.txt"}}

    result = serve(answer, tools=["read"]).run("What do the notes say?")
    assert result.text == "It says first."
    assert tool_results(result)[0].startswith("first")
    first = next(message for message in result.messages if message["role"] == "assistant")
    assert [block["type"] for block in first["content"]] == ["thinking", "text", "toolCall"]
    assert first["stopReason"] == "toolUse"


def test_an_abort_ends_an_async_generator(serve):
    begun, ended = threading.Event(), []

    async def endless(request):
        try:
            while True:
                yield "again "
                begun.set()
                await asyncio.sleep(0.001)
        except BaseException as error:
            ended.append(type(error))
            raise
        finally:
            ended.append("over")

    session = serve(endless)
    run = session.prompt("x")
    assert begun.wait(GUARD)
    session.abort()
    result = run.result()
    assert result.aborted and result.text.startswith("again")
    wait_for(lambda: "over" in ended)
    assert ended[0] in (asyncio.CancelledError, GeneratorExit)


def test_an_abort_ends_an_async_generator_that_only_waits(serve):
    begun, ended = threading.Event(), threading.Event()

    async def waiting(request):
        try:
            yield "half"
            begun.set()
            await asyncio.sleep(600)
        finally:
            ended.set()

    for answer in (waiting, lambda request: waiting(request)):
        begun.clear()
        ended.clear()
        session = serve(answer)
        run = session.prompt("x")
        assert begun.wait(GUARD)
        session.abort()
        assert run.result().text == "half" and ended.wait(GUARD)


def test_an_abort_closes_a_generator(serve):
    begun, ended, requests = threading.Event(), threading.Event(), []

    def endless(request):
        requests.append(request)
        try:
            while True:
                yield "again "
                begun.set()
                time.sleep(0.001)
        finally:
            ended.set()

    session = serve(endless)
    run = session.prompt("x")
    assert begun.wait(GUARD)
    session.abort()
    assert run.result().aborted and ended.wait(GUARD)
    assert requests[0].cancelled and requests[0].wait_cancelled(GUARD)


def test_a_function_hears_that_nobody_waits(serve):
    begun, heard = threading.Event(), threading.Event()

    def waiting(request):
        begun.set()
        if request.wait_cancelled(GUARD):
            heard.set()
        return "too late"

    session = serve(waiting)
    run = session.prompt("x")
    assert begun.wait(GUARD)
    session.abort()
    assert run.result().text == "" and heard.wait(GUARD)


BROKEN = {
    "raises": (lambda request: 1 / 0, "division by zero"),
    "wrong piece": (lambda request: [5], "int"),
    "wrong answer": (lambda request: 5.5, "float"),
    "no event": (lambda request: {"type": "nonsense"}, "nonsense"),
    "no JSON": (lambda request: {"type": "text", "text": {1, 2}}, "set"),
    "error event": (lambda request: {"type": "error", "error": "overworked"}, "overworked"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_failure_is_a_failed_response(serve, how):
    answer, text = BROKEN[how]
    result = serve(answer).run("x")
    assert result.stop_reason == "error" and text in result.error_message
    assert "Traceback" not in result.error_message and "File " not in result.error_message


@pytest.mark.parametrize("asynchronous", [True, False])
def test_what_was_said_before_a_failure_stays(serve, asynchronous, caplog):
    async def broken(request):
        yield "half"
        raise ValueError("no more")

    def plainly_broken(request):
        yield "half"
        raise ValueError("no more")

    result = serve(broken if asynchronous else plainly_broken).run("x")
    assert (result.text, result.stop_reason) == ("half", "error") and "no more" in result.error_message
    assert any(record.exc_info for record in caplog.records)  # for who wants to know where


def test_two_sessions_at_once(serve):
    both = threading.Barrier(2)

    def answer(request):
        both.wait(GUARD)
        yield request.last_text.upper()
        both.wait(GUARD)

    sessions = serve(answer), serve(answer)
    runs = [session.prompt(text) for session, text in zip(sessions, ("one", "two"))]
    assert [run.result().text for run in runs] == ["ONE", "TWO"]


def test_explorations_ask_it(serve):
    async def answer(request):
        yield request.last_text.upper()

    session = serve(answer)
    session.run("begin")
    assert [result.text for result in session.explore(["a", "b", "c"])] == ["A", "B", "C"]


def test_a_model_may_not_wait_for_its_session(serve):
    def answer(request):
        with pytest.raises(errors.WouldDeadlockError):
            session.wait_idle()
        return "fine"

    session = serve(answer)
    assert session.run("x").text == "fine"


def test_a_session_keeps_what_answers_it(engine, work):
    session = engine.create_session(work, model="scripted/demo", in_memory=True)

    def answer(request):
        return "still here"

    engine.add_host_provider("late", "m", answer)
    alive = weakref.ref(answer)
    del answer
    gc.collect()
    session.set_model("late/m")
    assert session.run("x").text == "still here"
    engine.add_host_provider("late", "m", lambda request: "another")
    assert session.run("x").text == "another"
    wait_for(lambda: gc.collect() >= 0 and alive() is None)  # its thread may just be ending


def test_definitions_that_are_wrong(engine):
    for name, models in (
        ("", "m"),
        ("ide", 5),
        ("ide", [5]),
        ("ide", [{"id": ""}]),
        ("ide", [{"name": "no id"}]),
        ("ide", [{"id": "m", "context_window": "big"}]),
        ("ide", [{"id": "m", "unknown": 1}]),
        ("ide", [{"id": "m", "context_window": 1, "contextWindow": 2}]),
    ):
        with pytest.raises(errors.InvalidArgumentError):
            engine.add_host_provider(name, models, lambda request: "")
    with pytest.raises(errors.InvalidArgumentError):
        engine.add_host_provider("ide", "m", "no function")


def test_summaries_are_asked_for_as_well(serve):
    purposes = []

    def answer(request):
        purposes.append(request.purpose)
        return ("word " * 20_000) if request.purpose == "turn" else "a summary"

    session = serve(answer, model="ide/plain")
    for text in ("a", "b", "c"):
        session.run(text)
    assert session.compact().summary.startswith("a summary") and "summary" in purposes


def test_it_runs_in_the_loop_of_its_engine(tmp_path, work):
    async def main():
        loop, seen = asyncio.get_running_loop(), []

        async def answer(request):
            seen.append(asyncio.get_running_loop() is loop)
            yield "in the loop"

        async with aio.Engine(agent_dir=tmp_path / "agent") as engine:
            engine.add_host_provider("ide", "m", answer)
            async with await engine.create_session(work, model="ide/m", in_memory=True) as session:
                texts = [event.text async for event in session.prompt("x") if isinstance(event, bl.TextDelta)]
                assert texts == ["in the loop"] and seen == [True]
                first, second = await asyncio.gather(session.run("y"), asyncio.sleep(0))
                assert first.text == "in the loop" and second is None

    asyncio.run(main())


def test_a_generator_that_never_waits_leaves_the_loop_to_others(tmp_path, work):
    """It does not await anything, and still its session can be aborted from the same loop."""

    async def main():
        async def endless(request):
            while True:
                yield "again "

        async with aio.Engine(agent_dir=tmp_path / "agent") as engine:
            engine.add_host_provider("ide", "m", endless)
            async with await engine.create_session(work, model="ide/m", in_memory=True) as session:
                run = session.prompt("x")
                async for event in run:
                    if isinstance(event, bl.TextDelta):
                        break
                await session.abort()
                assert (await run).aborted

    asyncio.run(asyncio.wait_for(main(), GUARD))


def test_cancelling_the_task_of_a_run_ends_what_answers(tmp_path, work):
    async def main():
        begun, ended = asyncio.Event(), asyncio.Event()

        async def waiting(request):
            try:
                yield "half"
                begun.set()
                await asyncio.sleep(600)
            finally:
                await asyncio.sleep(0)
                ended.set()

        async with aio.Engine(agent_dir=tmp_path / "agent") as engine:
            engine.add_host_provider("ide", "m", waiting)
            async with await engine.create_session(work, model="ide/m", in_memory=True) as session:
                task = asyncio.ensure_future(session.run("x"))
                await begun.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await ended.wait()
                assert session.state.phase == "idle"
                assert session.tree[session.leaf].message["stopReason"] == "aborted"

    asyncio.run(asyncio.wait_for(main(), GUARD))


def test_notebooks_block_their_loop(tmp_path, work):
    """In a notebook a loop runs in the main thread, and cells call what blocks as well as what is awaited."""

    async def answer(request):
        await asyncio.sleep(0)
        yield request.last_text.upper()

    async def cell_that_blocks():
        engine = bl.Engine(agent_dir=tmp_path / "agent")
        engine.add_host_provider("ide", "m", answer)
        session = engine.create_session(work, model="ide/m", in_memory=True)
        assert session.run("one").text == "ONE"
        return engine, session

    async def cell_that_awaits(session):
        assert (await session.aio.run("two")).text == "TWO"

    async def cell_that_mixes():
        # Its coroutines belong to the loop that the last call blocks.
        async with aio.Engine(agent_dir=tmp_path / "agent") as engine:
            engine.add_host_provider("ide", "m", answer)
            session = await engine.create_session(work, model="ide/m", in_memory=True)
            assert (await session.run("three")).text == "THREE"
            assert session.sync.run("four").text == "FOUR"
            await session.close()

    loop = asyncio.new_event_loop()
    try:
        engine, session = loop.run_until_complete(cell_that_blocks())
        loop.run_until_complete(cell_that_awaits(session))
        # Run again, as people do.
        again, _ = loop.run_until_complete(cell_that_blocks())
        loop.run_until_complete(cell_that_mixes())
        engine.close()
        again.close()
    finally:
        loop.close()


def test_what_a_blocked_loop_has_not_begun_is_begun_elsewhere(tmp_path, work):
    async def main():
        seen = []

        async def answer(request):
            await asyncio.sleep(0)
            seen.append(threading.current_thread() is threading.main_thread())
            yield "elsewhere"

        async with aio.Engine(agent_dir=tmp_path / "agent") as engine:
            engine.add_host_provider("ide", "m", answer)
            async with await engine.create_session(work, model="ide/m", in_memory=True) as session:
                run = session.prompt("x")
                time.sleep(0.2)  # the request is there, and waits for this loop
                assert seen == []
                assert run.result().text == "elsewhere" and seen == [False]
                assert (await session.run("y")).text == "elsewhere" and seen == [False, True]

    asyncio.run(main())


@pytest.mark.parametrize("answer", ["async", "plain"])
def test_ctrl_c_ends_what_answers(serve, answer):
    begun, ended = threading.Event(), threading.Event()

    async def waiting(request):
        try:
            yield "half"
            begun.set()
            await asyncio.sleep(600)
        finally:
            ended.set()

    def endless(request):
        try:
            while True:
                yield "again "
                begun.set()
                time.sleep(0.001)
        finally:
            ended.set()

    session = serve(waiting if answer == "async" else endless)
    main = threading.main_thread().ident

    def press():
        assert begun.wait(GUARD)
        time.sleep(0.05)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        session.run("x")
    thread.join()
    assert ended.wait(GUARD)
    session.wait_idle(GUARD)
    assert session.tree[session.leaf].message["stopReason"] == "aborted"


START = """
import asyncio, sys, threading, time
import branchline as bl
engine = bl.Engine()
begun = threading.Event()

def blocking(request):
    while True:
        yield "again "
        begun.set()
        time.sleep(0.0001)

def stuck(request):
    yield "half"
    begun.set()
    time.sleep(600)

async def waiting(request):
    yield "half"
    begun.set()
    await asyncio.sleep(600)

async def busy(request):
    while True:
        yield "again "
        begun.set()

async def stubborn(request):
    while True:
        try:
            yield "half"
            begun.set()
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            time.sleep(0.2)

def start(answer):
    engine.add_host_provider("ide", "m", answer)
    session = engine.create_session(".", model="ide/m", in_memory=True)
    run = session.prompt("x")
    assert begun.wait(30)
    return session, run
"""
EXITS = {
    "a generator": "start(blocking)",
    "a generator that sleeps": "kept = start(stuck)",
    "a generator nobody reads": "start(stuck)",
    "an async generator that waits": "kept = start(waiting)",
    "an async generator that never waits": "kept = start(busy)",
    "a given async generator": "kept = start(lambda request: waiting(request))",
    "an async generator that does not obey": "kept = start(stubborn)",
    "a daemon thread that waits": """
session, run = start(blocking)
threading.Thread(target=run.result, daemon=True).start()
time.sleep(0.05)""",
    "several": """
for answer in (blocking, stuck, waiting):
    begun.clear(); kept = start(answer)""",
    "sys.exit in the loop": """
session, run = start(waiting)
for event in run:
    sys.exit(0)""",
    "an interrupt": """
session, run = start(waiting)
import os, signal
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    run.result()
except KeyboardInterrupt:
    pass""",
    "in a loop of its own": """
from branchline import aio
async def main():
    own = aio.Engine()
    own.add_host_provider("ide", "m", waiting)
    session = await own.create_session(".", model="ide/m", in_memory=True)
    run = session.prompt("x")
    while not begun.is_set(): await asyncio.sleep(0.001)
asyncio.run(main())""",
    "a key that is waited for": """
def source(request):
    begun.set()
    time.sleep(600)
service = {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "models": [{"id": "m"}]}
models = {"providers": {"a": service}}
own = bl.Engine(models=models, key_source=source, proxy="direct")
session = own.create_session(".", model="a/m", in_memory=True)
run = session.prompt("x")
assert begun.wait(30)""",
}


@pytest.mark.parametrize("how", EXITS)
def test_the_interpreter_ends_while_it_answers(python, how):
    done = python(START + EXITS[how], timeout=GUARD)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
