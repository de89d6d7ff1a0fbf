"""What the model sees: compaction, statistics, messages of the host, shell runs, edits, queues."""

import asyncio

import pytest

import branchline as bl
from branchline import aio, errors
from scripts import say


def roles(session):
    return [message["role"] for message in session.tree.context(session.leaf).messages]


def test_compact(scripted):
    session = scripted(say("x" * 90_000), say("y" * 90_000), say("What was said."), say("z"))
    session.run("a")
    session.run("b")
    result = session.compact("Keep the letters.")
    assert isinstance(result, bl.CompactionResult)
    assert "What was said." in result.summary
    assert result.tokens_before > 0 and result.estimated_tokens_after > 0
    assert session.tree[result.entry_id].type == "compaction"
    assert session.tree[result.first_kept_entry_id]
    assert set(result.details) == {"readFiles", "modifiedFiles"}
    assert "compactionSummary" in roles(session)
    with pytest.raises(errors.AlreadyCompactedError):
        session.compact()
    with pytest.raises(errors.NothingToCompactError):
        scripted(say("x")).compact()


def test_aborting_a_compaction(scripted):
    session = scripted(say("x" * 90_000), say("y" * 90_000), {**say("half"), "hang": True})
    session.run("a")
    session.run("b")

    async def main():
        task = asyncio.create_task(session.aio.compact())
        await asyncio.get_running_loop().run_in_executor(None, session.control.wait_reached, 2)
        assert session.state.phase == "compacting"
        session.abort_summary()
        with pytest.raises(errors.CancelledError):
            await task

    asyncio.run(main())
    assert session.state.phase == "idle"


def test_statistics(scripted):
    session = scripted(say("one", usage={"input": 5, "output": 2}), say("two", usage={"input": 7, "output": 3}))
    first = session.run("a").leaf
    session.run("b")
    session.navigate(first)
    stats = session.stats()
    assert (stats.user_messages, stats.assistant_messages, stats.tool_results, stats.tool_calls) == (2, 2, 0, 0)
    assert (stats.tokens.input, stats.tokens.output, stats.tokens.total, stats.tokens.cost) == (12, 5, 17, 0.0)
    assert [group.model for group in stats.costs] == ["scripted/s1"]
    usage = session.context_usage()
    assert isinstance(usage, bl.ContextUsage) and usage.tokens > 0
    assert [message.text for message in session.fork_messages()] == ["a", "b"]
    assert session.fork(session.fork_messages()[1].entry_id).editor_text == "b"


def test_messages_of_the_host(scripted):
    session = scripted(say("one"), say("two"))
    run = session.prompt_custom("note", "The tests are red.", display=False, details={"run": 7})
    assert run.result().text == "one"
    message = next(entry for entry in session.tree if entry.type == "custom_message").value
    assert (message["customType"], message["display"], message["details"]) == ("note", False, {"run": 7})
    assert session.tree[session.send_custom_message("note", "stored")].text == "stored"
    assert session.send_custom_message("note", "with the next prompt", delivery="next_turn") is None
    session.run("b")
    assert roles(session).count("custom") == 3
    with pytest.raises(errors.InvalidArgumentError):
        session.send_custom_message("note", "x", delivery="never")
    with pytest.raises(errors.InvalidArgumentError):
        session.prompt_custom("note", {"neither": "nor"})


def test_a_message_of_the_host_under_another_prompt(engine, work):
    requests = []

    def answer(request):
        requests.append(request)
        return "ok"

    engine.add_host_provider("ide", "m", answer)
    session = engine.create_session(work, model="ide/m", in_memory=True, permissions="allow")
    session.prompt_custom("note", "/name stays", forced_prompt="Speak like a pirate.").result()
    assert requests[-1].system_prompt == "Speak like a pirate."
    assert "/name stays" in str(requests[-1].messages[-1])
    session.prompt_custom("note", "go on").result()
    assert requests[-1].system_prompt and "pirate" not in requests[-1].system_prompt
    with pytest.raises(TypeError):
        session.prompt_custom("note", "x", expand=False)


def test_shell_runs_of_the_user(scripted):
    session = scripted(say("half", waitGate="go"), say("two"))
    run = session.prompt("a")
    session.control.wait_reached(0)
    assert session.record_bash("ls", "notes.txt", exit_code=0) is None
    assert session.state.pending_bash == 1
    session.control.open_gate("go")
    run.result()
    entry = session.record_bash("env", "SECRET=1", exclude_from_context=True)
    assert session.tree[entry].value["message"]["excludeFromContext"] is True
    shell = [message for message in session.tree.context(session.leaf).messages if message["role"] == "bashExecution"]
    facts = [(message["command"], message["output"], message.get("exitCode")) for message in shell]
    assert facts[0] == ("ls", "notes.txt", 0)


def test_editing_what_the_model_sees(scripted):
    session = scripted(say("one"), say("two"))
    session.run("my key is 1234")
    entry = session.fork_messages()[0].entry_id
    edit = session.edit_context(entry, {"content": "my key is hidden"})
    assert session.tree[edit].type == "context_edit"
    texts = [bl.events.text_of(message.get("content")) for message in session.tree.context(session.leaf).messages]
    assert "my key is hidden" in texts and "my key is 1234" not in texts
    session.edit_context(entry, None)
    assert "user" not in roles(session)
    assert session.tree[entry].text == "my key is 1234"
    with pytest.raises(errors.InvalidReplacementError):
        session.edit_context(entry, {"text": "x"})


def test_queues_delivered_at_once(scripted):
    session = scripted(say("half", waitGate="go"), say("two"), say("three"))
    session.set_queue_modes(follow_up_all=True)
    run = session.prompt("a")
    session.control.wait_reached(0)
    session.follow_up("b")
    session.follow_up("c")
    assert session.state.follow_up == ["b", "c"]
    session.control.open_gate("go")
    run.result()
    assert roles(session)[1:] == ["user", "assistant", "user", "user", "assistant"]


def test_the_wait_before_a_retry_can_be_ended(engine, scripted):
    session = scripted({"content": [], "stop": "error", "error": "503 service unavailable"})
    run = session.prompt("a")
    for event in run:
        if event.type == "auto_retry_start":
            assert session.state.phase == "retrying"
            session.abort_retry()
    assert run.result().stop_reason == "error"


def test_context_awaited(engine, work):
    engine.add_scripted_model("a", [say("one"), say("two")])

    async def main():
        session = await aio.Session.create(work, engine=engine, model="scripted/a", in_memory=True)
        assert (await session.prompt_custom("note", "go")).text == "one"
        await session.set_queue_modes(steer_all=True)
        assert await session.record_bash("ls")
        assert (await session.stats()).assistant_messages == 1
        assert (await session.context_usage()).tokens > 0
        assert await session.fork_messages() == []
        assert await session.send_custom_message("note", "x")
        assert await session.edit_context(session.leaf, None)
        with pytest.raises(errors.NothingToCompactError):
            await session.compact()
        await session.close()

    asyncio.run(main())
