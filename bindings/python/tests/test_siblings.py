"""Siblings, explorations, and what leads from one session to the next."""

import asyncio
import json
import signal
import threading

import pytest

import branchline as bl
from branchline import aio, errors
from scripts import call, say


def test_a_branch_is_another_session_over_the_same_file(scripted):
    session = scripted(say("one"), say("two"), say("three"))
    first = session.run("a").leaf
    sibling = session.branch(first)
    assert (session.sibling, sibling.sibling, sibling.leaf) == (0, 1, first)
    assert sibling.is_sibling_of(session) and sibling.path == session.path
    events = list(sibling.prompt("b"))
    assert {event.sibling for event in events} == {1} == {sibling.state.sibling}
    assert session.leaf == first
    there = sibling.run("c").leaf
    session.close()
    assert sibling.tree[there].text == "three"  # the file stays open for it
    sibling.close()
    with pytest.raises(errors.EntryNotFoundError):
        scripted(say("x")).branch("nothing")


def test_a_branch_may_begin_anew_and_with_choices_of_its_own(engine, scripted):
    engine.add_scripted_model("other", [say("other")])
    session = scripted(say("one"))
    session.run("a")
    root = session.branch(bl.START, model="scripted/other", tools=["read"], thinking_level="off")
    assert (root.leaf, root.state.model, root.state.tools) == (None, "scripted/other", ["read"])
    assert root.run("b").text == "other"
    assert len(session.tree.roots()) == 2
    with pytest.raises(errors.UnknownToolError):
        session.branch(tools=["fly"])


def test_explore_and_adopt(scripted):
    session = scripted(say("begin"), say("recursion", usage={"input": 3, "output": 1}), say("iteration"), say("go on"))
    start = session.run("a").leaf
    results = session.explore(["use recursion", {"text": "use iteration", "tools": ["read"]}], at=start, limit=1)
    assert [result.text for result in results] == ["recursion", "iteration"]
    assert [result.sibling for result in results] == [1, 2]
    assert all(result.is_complete and result.error is None and result.stop_reason == "stop" for result in results)
    assert (results[0].usage.input, results[0].usage.total_tokens) == (3, 4)
    assert results[0].messages[-1]["role"] == "assistant"
    assert results[1].session.state.tools == ["read"]
    assert session.leaf == start
    arrived = session.adopt(results[0])
    assert arrived.leaf == session.leaf == results[0].leaf
    assert session.run("b").text == "go on"


def test_adopt_can_say_what_the_others_found(scripted):
    session = scripted(say("begin"), say("one"), say("two"), say("Both found nothing."))
    session.run("a")
    winner, _ = session.explore(["x", "y"], limit=1)
    arrived = session.adopt(winner, summarize_others=True, instructions="Be short.")
    entry = session.tree[arrived.summary_entry]
    assert entry.type == "branch_summary" and "Both found nothing." in entry.value["summary"]
    with pytest.raises(errors.InvalidArgumentError):
        session.adopt(scripted(say("x")))


def test_a_budget_for_all_of_an_exploration(scripted):
    session = scripted(say("x"))
    budget = bl.Budget(requests=1)
    first, second = session.explore(["a", "b"], limit=1, budget=budget)
    assert first.is_complete and first.budget_exceeded is None
    assert (second.budget_exceeded.limit, second.budget_exceeded.max) == ("requests", 1)
    assert budget.used.requests == 1
    assert session.branch(budget=[budget]).run("c").budget_exceeded is not None
    assert session.run("d").text == "x"
    with pytest.raises(errors.InvalidArgumentError):
        session.branch(budget=["1"])


def test_events_of_an_exploration_are_tagged(scripted):
    session = scripted(say("x"))
    with session.exploration(["a", "b", "c"], limit=2, capacity=4) as exploration:
        assert [sibling.sibling for sibling in exploration.siblings] == [1, 2, 3]
        events = list(exploration)
        results = exploration.results()
    for number in (1, 2, 3):
        own = [event for event in events if event.sibling == number]
        assert isinstance(own[0], bl.AgentStart) and isinstance(own[-1], bl.AgentSettled)
    assert [result.text for result in results] == ["x"] * 3
    assert exploration.settled


def test_one_that_fails_is_a_result(scripted):
    session = scripted({"content": [], "stop": "error", "error": "no such luck"}, say("fine"))
    failed, fine = session.explore(["a", "b"], limit=1)
    assert (failed.stop_reason, failed.error_message, failed.is_complete) == ("error", "no such luck", False)
    assert fine.is_complete
    with pytest.raises(errors.InvalidArgumentError):
        session.explore([])
    with pytest.raises(errors.InvalidArgumentError):
        session.explore("a")
    with pytest.raises(errors.InvalidArgumentError):
        session.explore([{"txt": "a"}])


def test_aborting_an_exploration_or_one_of_it(scripted):
    session = scripted(say("x"), {**say("half"), "hang": True}, at_end="loop")
    session.run("a")
    exploration = session.exploration(["b", "c"], limit=1)
    session.control.wait_reached(1)
    assert not exploration.settled
    exploration.abort_one(0)
    with pytest.raises(errors.InvalidArgumentError):
        exploration.abort_one(9)
    first, second = exploration.results()
    assert (first.aborted, first.stop_reason) == (True, "aborted")
    assert second.is_complete


def test_who_waits_for_a_turn_gets_none_after_an_abort(scripted):
    session = scripted({**say("half"), "hang": True})
    exploration = session.exploration(["a", "b"], limit=1)
    session.control.wait_reached(0)
    exploration.abort()
    first, second = exploration.results()
    assert first.aborted
    assert isinstance(second.error, errors.CancelledError)  # it never had its turn


def test_letting_go_of_an_exploration_ends_it(scripted):
    session = scripted({**say("half"), "hang": True}, at_end="loop")
    exploration = session.exploration(["a"])
    (sibling,) = exploration.siblings
    session.control.wait_reached(0)
    assert sibling.state.running
    del exploration
    sibling.wait_idle(30)


def test_ctrl_c_aborts_an_exploration(scripted):
    session = scripted({**say("half"), "hang": True}, at_end="loop")

    def interrupt():
        session.control.wait_reached(0)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        session.explore(["a", "b"], limit=1)
    thread.join()
    assert session.tree.roots()  # what the first one said so far is stored
    assert session.stats().assistant_messages == 1


def test_from_one_session_to_the_next(engine, scripted, tmp_path):
    session = scripted(say("one"), say("two"), name="first")
    session.run("a")
    new = session.new_session(record_parent=True, name="second")
    assert new.id != session.id and new.name == "second" and new.state.model == session.state.model
    new.run("b")
    assert json.loads(new.path.read_text().splitlines()[0])["parentSession"] == str(session.path)
    path, leaf = new.path, new.leaf
    new.close()
    there = session.switch(path)
    assert (there.path, there.leaf) == (path, leaf)
    assert session.state.phase == "closed"
    # A file of a session that is over, from elsewhere.
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(path.read_bytes())
    copy = there.import_session(elsewhere)
    assert copy.path.parent == path.parent and copy.path.name == "elsewhere.jsonl" and copy.leaf == leaf
    copy.close()
    other = tmp_path / "other.jsonl"
    other.write_bytes(path.read_bytes())
    with engine.import_session(other) as imported:
        assert imported.path.name == "other.jsonl" and imported.path != other
    with pytest.raises(errors.StorageFailedError):
        engine.import_session(tmp_path / "missing.jsonl")


def test_siblings_awaited(engine, work):
    engine.add_scripted_model(
        "a", [say("one"), say("two"), say("three"), call("read", {"path": "notes.txt"}), say("end")]
    )

    async def main():
        session = await aio.Session.create(work, engine=engine, model="scripted/a")
        await session.run("a")
        results = await session.explore(["b", "c"], limit=1)
        assert [result.text for result in results] == ["two", "three"]
        assert isinstance(results[0].session, aio.Session)
        arrived = await session.adopt(results[1])
        assert session.leaf == arrived.leaf == results[1].leaf
        sibling = await session.branch()
        events = [event async for event in sibling.prompt("d")]
        assert any(isinstance(event, bl.ToolExecutionEnd) for event in events)
        async with session.exploration(["e"]) as exploration:
            assert {event.sibling async for event in exploration} == {4}
            assert len(await exploration) == 1
        new = await session.new_session()
        assert new.leaf != session.leaf
        await new.close()
        await session.close()
        await sibling.close()

    asyncio.run(main())


def test_a_cancelled_task_aborts_its_exploration(engine, work):
    control = engine.add_scripted_model("h", {"replies": [{**say("half"), "hang": True}], "atEnd": "loop"})

    async def main():
        session = await aio.Session.create(work, engine=engine, model="scripted/h")
        exploration = session.exploration(["a"])
        (sibling,) = exploration.siblings

        async def wait():
            await exploration

        task = asyncio.create_task(wait())
        await asyncio.get_running_loop().run_in_executor(None, control.wait_reached, 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert exploration.settled and not sibling.state.running
        await session.close()

    asyncio.run(main())
