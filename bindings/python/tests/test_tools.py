"""Tools that are Python functions: schemas, conversions, results, failures, sessions."""

import asyncio
import enum
import gc
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, List, Literal, Mapping, Optional, Sequence, Set, Tuple, TypedDict, Union

import pytest

import branchline as bl
from branchline import aio, errors
from scripts import call, say

GUARD = 30


@bl.tool
def weather(city: str, unit: Literal["c", "f"] = "c") -> str:
    """Current weather.

    city: name of the city
    """
    return f"{city}: 21 {unit}"


def results(run):
    return [message for message in run.messages if message["role"] == "toolResult"]


def text_of_result(run):
    return results(run)[0]["content"][0]["text"]


def test_a_tool_is_still_a_function():
    assert weather("Kyiv", unit="f") == "Kyiv: 21 f"
    assert weather.__name__ == weather.name == "weather" and weather.__doc__.startswith("Current weather.")
    assert repr(weather) == "<Tool weather>"
    assert weather.definition == {
        "name": "weather",
        "description": "Current weather.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "name of the city"},
                "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    }


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: List[str] = field(default_factory=list)


class Filter(TypedDict, total=False):
    name: str


SCHEMAS = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (Any, {}),
    (Optional[int], {"type": ["integer", "null"]}),
    (Optional[Literal["a"]], {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Literal[1, "a"], {"enum": [1, "a"]}),
    (list, {"type": "array"}),
    (List[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}),
    (Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (Set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (dict, {"type": "object"}),
    (Dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Mapping[str, str], {"type": "object", "additionalProperties": {"type": "string"}}),
    (Annotated[int, "how many", {"minimum": 1}], {"type": "integer", "description": "how many", "minimum": 1}),
    (Color, {"type": "string", "enum": ["red", "blue"]}),
    (
        Point,
        {
            "type": "object",
            "properties": {
                "x": {"type": "number"},
                "y": {"type": "number"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "additionalProperties": False,
            "required": ["x"],
        },
    ),
    (Filter, {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False}),
]


@pytest.mark.parametrize(("hint", "schema"), SCHEMAS, ids=lambda value: str(value)[:40])
def test_schemas_of_annotations(hint, schema):
    def function(value):
        pass

    function.__annotations__["value"] = hint
    assert bl.tool(function).parameters["properties"]["value"] == schema


def test_signatures_that_cannot_be_called_by_name():
    for function in (lambda *values: 0, lambda **values: 0, eval):
        with pytest.raises(TypeError):
            bl.tool(function)

    def unknown(value: threading.Lock):
        pass

    with pytest.raises(TypeError, match="no schema"):
        bl.tool(unknown)


def test_descriptions_of_parameters():
    @bl.tool
    def search(text: str, limit: Annotated[int, "at most"] = 3, deep: bool = False):
        """Searches.

        Looks everywhere: twice.

        Args:
            text: what to look for,
                in any language
            deep (bool): also below
        """

    properties = search.parameters["properties"]
    assert search.description == "Searches.\n\nLooks everywhere: twice."
    assert properties["text"]["description"] == "what to look for, in any language"
    assert properties["limit"] == {"type": "integer", "description": "at most", "default": 3}
    assert properties["deep"]["description"] == "also below"


def test_options():
    @bl.tool(name="other", description="text", sequential=True, snippet="one line", guidelines=["a rule"])
    def function():
        """Not this."""

    assert function.definition == {
        "name": "other",
        "description": "text",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        "executionMode": "sequential",
        "snippet": "one line",
        "guidelines": ["a rule"],
    }

    @bl.tool(parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
    def free(context: bl.ToolContext, **anything):
        return {"got": anything, "cwd": str(context.cwd)}

    tools = bl.Toolbox("/", tools=[free])
    assert tools.call("free", a="5", b=[1]).structured_content == {"got": {"a": 5, "b": [1]}, "cwd": "/"}
    with pytest.raises(errors.InvalidArgumentError, match="a name is"):
        bl.Toolbox(tools=[bl.tool(name="two words")(lambda: 0)])
    with pytest.raises(errors.InvalidArgumentError):
        bl.Toolbox(tools=["read"])  # names mean nothing here


def test_arguments_become_what_the_annotations_say(engine):
    seen = {}

    @bl.tool
    def take(
        point: Point,
        points: List[Point],
        color: Color = Color.RED,
        pair: Tuple[int, str] = (0, ""),
        names: Optional[Set[str]] = None,
        either: Union[int, Point, None] = None,
        number: float = 0,
    ):
        seen.update(locals())

    tools = bl.Toolbox(engine=engine, tools=[take])
    result = tools.call(
        "take",
        point={"x": 1},
        points=[{"x": 2, "y": 3, "tags": ["t"]}],
        color="blue",
        pair=[1, "a"],
        names=["n", "m"],
        either={"x": 4},
        number="7",
    )
    assert result.text == "(no output)"
    del seen["seen"]
    assert seen == {
        "point": Point(1.0),
        "points": [Point(2.0, 3.0, ["t"])],
        "color": Color.BLUE,
        "pair": (1, "a"),
        "names": {"n", "m"},
        "either": Point(4.0),
        "number": 7.0,
    }
    assert isinstance(seen["number"], float) and isinstance(seen["point"].x, float)
    with pytest.raises(bl.ToolError, match="Validation failed"):
        tools.call("take", point={}, points=[])


RETURNS = [
    ("text", "text", None),
    ({"a": 1}, '{"a":1}', {"a": 1}),
    ([1, None], "[1,null]", [1, None]),
    (None, "(no output)", None),
    (5, "5", 5),
    ([{"type": "text", "text": "block"}], "block", None),
    (Point(1.5), '{"x":1.5,"y":0,"tags":[]}', {"x": 1.5, "y": 0, "tags": []}),
    ({1, 2} - {2}, "[1]", [1]),
    (bl.ToolResult("full", structured_content={"s": 2**53 + 1}), "full", {"s": 2**53 + 1}),
    ("ü\0€", "ü\0€", None),
]


@pytest.mark.parametrize(("value", "text", "structured"), RETURNS, ids=lambda value: str(value)[:30])
def test_what_a_tool_returns(engine, value, text, structured):
    tools = bl.Toolbox(engine=engine, tools=[bl.tool(name="give")(lambda: value)])
    result = tools.call("give")
    assert (result.text, str(result), result.structured_content, result.is_error) == (text, text, structured, False)


def test_details_and_errors_in_full(engine):
    failed = bl.ToolResult([{"type": "text", "text": "no"}], details={"why": 1}, is_error=True)
    tools = bl.Toolbox(engine=engine, tools=[bl.tool(name="fail")(lambda: failed)])
    with pytest.raises(bl.ToolError, match=r"^no$") as caught:
        tools.call("fail")
    assert caught.value.code == "tool_failed" and caught.value.result == failed
    assert tools.call("fail", check=False) == failed


def test_what_a_tool_raises_is_a_failure_with_its_message(engine, caplog):
    @bl.tool
    def broken():
        raise ValueError("boom")

    @bl.tool
    def refused():
        raise bl.ToolError("not today")

    @bl.tool
    def unwritable():
        return object()

    @bl.tool
    def nan():
        return {"a": float("nan")}

    tools = bl.Toolbox(engine=engine, tools=[broken, refused, unwritable, nan])
    for name, message in (
        ("broken", "ValueError: boom"),
        ("refused", "not today"),
        ("unwritable", "a object has no form in JSON"),
        ("nan", "cannot be written as JSON"),
    ):
        assert message in tools.call(name, check=False).text
    record = next(record for record in caplog.records if "broken" in record.getMessage())
    assert record.name == "branchline" and record.exc_info[1].args == ("boom",)  # with its traceback


def test_progress(engine):
    @bl.tool
    def slow(context: bl.ToolContext, steps: int):
        for step in range(steps):
            assert context.progress(f"step {step}")
        assert (context.name, context.session_id, context.call_id, context.cancelled) == ("slow", "", "", False)
        return "done"

    seen = []
    tools = bl.Toolbox(engine=engine, tools=[slow])
    assert tools.call("slow", steps=3, on_progress=lambda partial: seen.append(partial.text)).text == "done"
    assert seen == ["step 0", "step 1", "step 2"]
    assert tools.call("slow", steps=3).text == "done"
    with pytest.raises(ZeroDivisionError):  # what the listener raises ends the call
        tools.call("slow", steps=3, on_progress=lambda partial: 1 / 0)


def test_in_a_session(scripted):
    session = scripted(
        call("weather", {"city": "Kyiv"}),
        say("Sunny."),
        call("weather", {"city": 5, "unit": "k"}),
        say("?"),
        tools=["read", weather],
    )
    assert session.state.tools == ["read", "weather"]
    run = session.run("Weather?")
    assert (run.text, text_of_result(run)) == ("Sunny.", "Kyiv: 21 c")
    run = session.run("Again?")
    assert results(run)[0]["isError"] and "Validation failed" in text_of_result(run)
    session.set_tools([weather])
    assert session.state.tools == ["weather"]
    # A fork has it too.
    fork = session.clone()
    del session
    gc.collect()
    assert fork.state.tools == ["weather"]
    fork.set_model("scripted/s1")
    assert not results(fork.run("x"))  # its script is over; what matters is that the tool is still known


def test_plain_functions_and_lambdas_with_names(scripted):
    def hour() -> int:
        """What time it is."""
        return 16

    session = scripted(call("hour", {}), say("Four."), tools=[hour])
    assert text_of_result(session.run("x")) == "16"


def test_of_an_engine(engine, work):
    engine.add_tool(weather)
    assert bl.Toolbox(work, engine=engine).call(weather, city="Oslo").text == "Oslo: 21 c"
    engine.add_scripted_model("w", [call("weather", {"city": "Kyiv"}), say("ok")])
    session = engine.create_session(work, model="scripted/w", in_memory=True, permissions="allow")
    assert "weather" in session.state.tools
    assert text_of_result(session.run("x")) == "Kyiv: 21 c"


def test_calls_of_one_batch_run_beside_each_other(scripted):
    barrier = threading.Barrier(3)

    @bl.tool
    def meet(name: str) -> str:
        barrier.wait(GUARD)
        return name

    calls = [call("meet", {"name": name}, id=name)["content"][0] for name in "abc"]
    session = scripted({"content": calls}, say("met"), tools=[meet])
    assert [result["content"][0]["text"] for result in results(session.run("x"))] == ["a", "b", "c"]


def test_coroutines_in_a_program_without_a_loop(scripted):
    @bl.tool
    async def nap(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return threading.current_thread().name

    session = scripted(call("nap", {"seconds": 0}), say("ok"), tools=[nap])
    assert text_of_result(session.run("x")) == "branchline-loop"


def test_coroutines_run_in_the_loop_of_the_session(engine, work):
    async def main():
        here = asyncio.get_running_loop()

        @bl.tool
        async def where() -> bool:
            await asyncio.sleep(0)
            return asyncio.get_running_loop() is here

        tools = aio.Toolbox(work, engine=engine, tools=[where])
        assert (await tools.call(where)).structured_content is True
        engine.add_scripted_model("a", [call("where", {}), say("ok")])
        options = {"tools": [where], "in_memory": True, "permissions": "allow"}
        session = await aio.Session.create(work, engine=engine, model="scripted/a", **options)
        assert text_of_result(await session.run("x")) == "true"

    asyncio.run(main())


def test_a_cancelled_task_cancels_the_coroutine(engine):
    async def main():
        begun, ended = asyncio.Event(), asyncio.Event()

        @bl.tool
        async def wait():
            begun.set()
            try:
                await asyncio.sleep(600)
            finally:
                ended.set()

        task = asyncio.ensure_future(aio.Toolbox(engine=engine, tools=[wait]).call("wait"))
        await asyncio.wait_for(begun.wait(), GUARD)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), GUARD)

    asyncio.run(main())


def test_an_abort_reaches_the_function(scripted):
    begun, seen = threading.Event(), []

    @bl.tool
    def wait(context: bl.ToolContext):
        begun.set()
        seen.append(context.wait_cancelled(GUARD))
        seen.append(context.cancelled)
        seen.append(context.progress("too late"))

    session = scripted(call("wait", {}), say("ok"), tools=[wait])
    thread = threading.Thread(target=session.run, args=("x",))
    thread.start()
    assert begun.wait(GUARD)
    session.abort()
    thread.join(GUARD)
    deadline = time.monotonic() + GUARD
    while len(seen) < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert seen == [True, True, False]


def test_tools_go_with_what_uses_them(engine, work):
    class State:
        pass

    state = State()
    gone = weakref.ref(state)

    def make(state):
        @bl.tool
        def hold():
            return str(state)

        return hold

    engine.add_scripted_model("h", [call("hold", {}), say("ok")])
    session = engine.create_session(work, model="scripted/h", tools=[make(state)], in_memory=True, permissions="allow")
    # The session is known to the tool: a ring that only the garbage collector can undo.
    state.session = session
    run = session.prompt("x")
    del session, state
    gc.collect()
    assert "State object" in text_of_result(run.result())
    del run
    for _ in range(200):
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.01)
    assert gone() is None
