"""Permissions with handlers and rules, hooks around tool calls, budgets, shell runs."""

import asyncio
import threading

import pytest

import branchline as bl
from branchline import aio, errors
from scripts import call, say

WRITE = call("write", {"path": "new.txt", "content": "hello"})
SHELL = call("bash", {"command": "echo hello"})


def decisions(events):
    return [(event.tool, event.allowed, event.by) for event in events if isinstance(event, bl.PermissionDecision)]


def results(run):
    return [bl.events.text_of(m["content"]) for m in run.messages if m["role"] == "toolResult"]


def test_a_handler_is_asked(scripted, work):
    asked = []

    def ask(request):
        asked.append(request)
        return bl.Allow() if request.tool == "write" else bl.Deny("no shell today")

    session = scripted(WRITE, SHELL, say("ok"), permissions=ask)
    result = session.run("x")
    assert (work / "new.txt").read_text() == "hello"
    assert "no shell today" in results(result)[1]
    assert decisions(result.events) == [("write", True, "handler"), ("bash", False, "handler")]
    write, shell = asked
    assert (write.effect, write.arguments["path"], write.session_id, write.call_id) == (
        "write",
        "new.txt",
        session.id,
        "c1",
    )
    (path,) = write.paths
    assert (path.given, path.path, path.inside) == ("new.txt", work / "new.txt", True)
    assert (shell.effect, shell.command, shell.paths, shell.cwd) == ("execute", "echo hello", [], work)
    denied = next(event for event in result.events if isinstance(event, bl.PermissionDecision) and not event.allowed)
    assert (denied.call_id, denied.effect, denied.rule) == ("c1", "execute", "ask.execute")
    assert "no shell today" in denied.reason


@pytest.mark.parametrize("answer", [True, "allow", bl.Allow(), bl.AllowAlways()])
def test_words_that_allow(scripted, answer):
    assert results(scripted(SHELL, say("ok"), permissions=lambda request: answer).run("x")) == ["hello\n"]


def test_a_denial_for_want_of_an_answer(scripted):
    def fail(request):
        raise ValueError("the dialog is broken")

    def sleep(request):
        assert request.wait_cancelled(30)
        return bl.Allow()

    for handler, by in ((fail, "handler_failed"), (lambda request: None, "handler_failed"), (None, "no_handler")):
        policy = bl.Permissions("ask", handler=handler)
        result = scripted(SHELL, say("ok"), permissions=policy).run("x")
        assert decisions(result.events) == [("bash", False, by)]
        assert "hello" not in results(result)[0]
    late = bl.Permissions(handler=sleep, timeout=0.05)
    result = scripted(SHELL, say("ok"), permissions=late).run("x")
    assert decisions(result.events) == [("bash", False, "timeout")]


def test_rules_and_roots(scripted, work):
    (work / "src").mkdir()
    policy = bl.Permissions("allow", tools={"bash": "deny"}, effects={"write": "allow"}, root=work / "src")
    inside = call("write", {"path": "src/a.txt", "content": "a"})
    result = scripted(WRITE, inside, SHELL, say("ok"), permissions=policy).run("x")
    assert [allowed for _, allowed, _ in decisions(result.events)] == [False, True, False]
    assert (work / "src/a.txt").exists() and not (work / "new.txt").exists()
    for wrong in ({"tools": {"bash": "never"}}, {"effects": {"fly": "deny"}}, {"preset": "yolo"}, {"handler": 1}):
        with pytest.raises(errors.InvalidArgumentError):
            bl.Permissions(**wrong)
    with pytest.raises(errors.InvalidArgumentError):
        scripted(say("x"), permissions=7)


def test_an_answer_for_all_of_the_session(scripted, work):
    asked = []

    def ask(request):
        asked.append(request.tool)
        return bl.AllowAlways("tool")

    session = scripted(SHELL, SHELL, say("ok"), permissions=ask)
    assert [by for *_, by in decisions(session.run("x").events)] == ["handler", "earlier"]
    assert asked == ["bash"]
    session = scripted(WRITE, say("ok"), permissions=lambda request: bl.AllowAlways(below=work))
    assert decisions(session.run("x").events) == [("write", True, "handler")]


def test_a_handler_that_waits_does_not_hold_up_an_abort(scripted):
    asked = threading.Event()
    cancelled = threading.Event()

    def ask(request):
        asked.set()
        if request.wait_cancelled(60):
            cancelled.set()
        return bl.Allow()

    session = scripted(SHELL, say("ok"), permissions=ask)
    run = session.prompt("x")
    assert asked.wait(30)
    session.abort()
    assert run.result().aborted and cancelled.wait(30)


def test_a_handler_may_not_wait_for_its_session(scripted):
    refused = []

    def ask(request):
        with pytest.raises(errors.WouldDeadlockError):
            session.wait_idle()
        refused.append(session.state.phase)
        return bl.Allow()

    session = scripted(SHELL, say("ok"), permissions=ask)
    assert results(session.run("x")) == ["hello\n"]
    assert refused == ["running"]


def test_a_coroutine_is_asked_in_the_loop_of_its_session(engine, work):
    async def main():
        loop, seen = asyncio.get_running_loop(), []

        async def ask(request):
            seen.append(asyncio.get_running_loop() is loop)
            await asyncio.sleep(0)
            return bl.Allow()

        engine.add_scripted_model("a", [SHELL, say("ok")])
        session = await aio.Session.create(work, engine=engine, model="scripted/a", permissions=ask, in_memory=True)
        result = await session.run("x")
        assert results(result) == ["hello\n"] and seen == [True]
        await session.close()

    asyncio.run(main())


def test_permissions_of_an_engine_and_of_a_toolbox(tmp_path, work):
    asked = []

    def ask(request):
        asked.append(request.tool)
        return False

    with bl.Engine(agent_dir=tmp_path / "agent", permissions=ask) as engine:
        engine.add_scripted_model("e", [SHELL, say("ok")])
        engine.create_session(work, model="scripted/e", in_memory=True).run("x")
        assert asked == ["bash"]
        tools = bl.Toolbox(work, engine=engine)
        assert tools.bash("echo hello").text == "hello\n"
        tools.set_permissions("read-only")
        with pytest.raises(bl.ToolError):
            tools.bash("echo hello")
        with pytest.raises(bl.ToolError):
            bl.Toolbox(work, engine=engine, permissions=ask).bash("echo hello")
        assert asked == ["bash", "bash"]


def test_siblings_ask_the_same_handler(scripted):
    asked = []

    def ask(request):
        asked.append(request.tool)
        return True

    session = scripted(say("begin"), SHELL, say("ok"), permissions=ask)
    session.run("x")
    sibling = session.branch()
    session.close()
    del session
    assert sibling.run("y").text == "ok"
    assert asked == ["bash"]


def test_hooks_before_and_after_a_call(scripted):
    seen = []

    def before(call):
        seen.append((call.name, call.call_id, dict(call.arguments)))
        return bl.Change(arguments={"command": "echo changed"})

    def after(call, result):
        seen.append((call.arguments["command"], result.text))
        return bl.Change(content="redacted")

    session = scripted(SHELL, say("ok"), tool_hooks=[bl.ToolHook(before, after)])
    assert results(session.run("x")) == ["redacted"]
    assert seen == [("bash", "c1", {"command": "echo hello"}), ("echo changed", "changed\n")]


def test_hooks_that_stop_a_call(scripted):
    async def slow(call):
        await asyncio.sleep(0)
        return bl.Block("not this one")

    def broken(call):
        raise ValueError("broken hook")

    for before, said in ((slow, "not this one"), (lambda call: "no", "no"), (broken, "broken hook")):
        session = scripted(SHELL, say("ok"), tool_hooks=[bl.ToolHook(before)])
        assert said in results(session.run("x"))[0]
    session = scripted(SHELL, say("never"), tool_hooks=[bl.ToolHook(lambda call: bl.Block("stop", terminate=True))])
    assert session.run("x").text == ""
    session = scripted(SHELL, say("ok"), tool_hooks=[bl.ToolHook(after=lambda call, result: None)])
    assert results(session.run("x")) == ["hello\n"]
    with pytest.raises(errors.InvalidArgumentError):
        bl.ToolHook()


def test_budgets(scripted):
    budget = bl.Budget(requests=2, wall_time=600)
    session = scripted(say("one", usage={"input": 5, "output": 2}), budget=budget)
    other = scripted(say("two"), budget=[budget])
    assert session.run("a").text == "one"
    assert other.run("a").text == "two"
    assert (budget.used.requests, budget.used.turns) == (2, 2) and budget.used.tokens >= 7
    result = session.run("b")
    exceeded = next(event for event in result.events if isinstance(event, bl.BudgetExceeded))
    assert (exceeded.limit, exceeded.used, exceeded.max, exceeded.price_unknown) == ("requests", 3, 2, False)
    assert result.budget_exceeded == bl.ExceededLimit("requests", 3, 2, False)
    assert session.state.phase == "idle"
    assert budget.limits == bl.BudgetLimits(requests=2, wall_time=600)
    budget.limits = bl.BudgetLimits(requests=3)
    assert session.run("c").text == "one"
    with pytest.raises(errors.InvalidArgumentError):
        bl.Budget(cost=-1)
    with pytest.raises(errors.InvalidArgumentError):
        bl.Budget(requests=1.5)


def test_shell_runs(scripted):
    session = scripted(say("ok"), permissions="read-only")
    events = session.subscribe()
    ended = session.run_bash("echo one; echo two", id="mine")
    assert (ended.output.split(), ended.exit_code, ended.cancelled) == (["one", "two"], 0, False)
    session.close()
    told = [event for event in events if isinstance(event, bl.BashExecutionUpdate)]
    assert {event.id for event in told} == {"mine"}
    assert "".join(event.text for event in told).split() == ["one", "two"]


def test_shell_runs_end_when_asked_to(scripted):
    session = scripted(say("ok"))

    async def main():
        events = session.subscribe()
        task = asyncio.create_task(session.aio.run_bash("echo begun; sleep 600"))
        async for event in events:
            if isinstance(event, bl.BashExecutionUpdate):
                break
        session.abort_bash()
        assert (await task).cancelled

    asyncio.run(main())


def test_events_of_retries_and_compactions_have_classes(scripted):
    session = scripted({"content": [], "stop": "error", "error": "503 service unavailable"})
    events = []
    for event in session.prompt("a"):
        events.append(event)
        if isinstance(event, bl.AutoRetryStart):
            session.abort_retry()
    start = next(event for event in events if isinstance(event, bl.AutoRetryStart))
    end = next(event for event in events if isinstance(event, bl.AutoRetryEnd))
    assert (start.attempt, start.error_message) == (1, "503 service unavailable") and start.max_attempts >= 1
    assert (end.success, end.attempt) == (False, 1)

    session = scripted(say("x" * 90_000), say("y" * 90_000), say("short"))
    session.run("a")
    session.run("b")
    events = session.subscribe()
    result = session.compact()
    session.close()
    start, end = [event for event in events if type(event).__name__.startswith("Compaction")]
    assert (start.reason, end.reason, end.aborted, end.will_retry, end.error_message) == (
        "manual",
        "manual",
        False,
        False,
        None,
    )
    assert end.result["summary"] == result.summary
