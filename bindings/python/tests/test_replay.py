"""Session files that answer again."""

import asyncio

import pytest

import branchline as bl
from branchline import aio, errors
from scripts import call, say


@pytest.fixture
def recorded(scripted, work):
    """The file of a session that read a file twice, with what it said."""
    (work / "lines.txt").write_text("alpha\nbeta\n")
    session = scripted(
        call("read", {"path": "lines.txt"}, "call-1"),
        say("It begins with alpha."),
        say("You are welcome."),
    )
    assert session.run("How does it begin?").text == "It begins with alpha."
    session.run("Thanks.")
    path = session.path
    session.close()
    return path


def test_a_recorded_session_answers_again(engine, work, recorded):
    replay = engine.add_replay(recorded, "cassette")
    assert replay.name == "cassette" and len(replay.models) == 1
    model = replay.models[0]
    assert model.provider == "cassette" and model in engine.models and model.name in repr(replay)
    # The file changed: only recorded results make the same conversation.
    (work / "lines.txt").write_text("gamma\n")
    tools = replay.tools
    assert "read" in [tool.name for tool in tools] and isinstance(tools[0], bl.RecordedTool)
    assert repr(tools[0]) == f"<RecordedTool {tools[0].name}>" and tools[0].definition["name"] == tools[0].name
    session = engine.create_session(work, model=model, tools=[*tools], permissions="allow", in_memory=True)
    result = session.run("How does it begin?")
    assert result.text == "It begins with alpha."
    outcome = next(message for message in result.messages if message["role"] == "toolResult")
    assert "alpha" in outcome["content"][0]["text"]
    assert session.run("Thanks.").text == "You are welcome."
    assert replay.divergence is None


def test_a_divergence_has_both_sides(engine, work, recorded):
    replay = engine.add_replay(recorded)
    assert replay.name == "replay"
    session = engine.create_session(work, model=replay.models[0], tools=[*replay.tools], permissions="allow")
    session.run("How does it begin?")
    result = session.run("No thanks.")
    assert result.stop_reason == "error" and "Thanks." in result.error_message and "No thanks." in result.error_message
    divergence = replay.divergence
    assert divergence.at == 4 and str(divergence) == result.error_message
    assert divergence.recorded[0].message["content"][0]["text"] == "Thanks." and divergence.recorded[0].entry_id
    assert divergence.actual["content"][0]["text"] == "No thanks."


def test_the_end_of_a_recording(engine, work, recorded):
    replay = engine.add_replay(recorded)
    session = engine.create_session(work, model=replay.models[0], tools=[*replay.tools], permissions="allow")
    for text in ("How does it begin?", "Thanks.", "And now?"):
        result = session.run(text)
    assert result.stop_reason == "error"
    assert replay.divergence.recorded == []


def test_live_tools_may_say_something_else(engine, work, recorded):
    (work / "lines.txt").write_text("gamma\n")
    strict = engine.add_replay(recorded, "strict")
    lenient = engine.add_replay(recorded, "lenient", compare_tool_results=False)
    for replay, text in ((strict, ""), (lenient, "It begins with alpha.")):
        session = engine.create_session(
            work, model=replay.models[0], tools=["read"], permissions="allow", in_memory=True
        )
        assert session.run("How does it begin?").text == text
    assert strict.divergence.actual["role"] == "toolResult" and lenient.divergence is None


def test_awaited(tmp_path, work, recorded):
    async def main():
        async with aio.Engine(agent_dir=tmp_path / "agent") as engine:
            replay = await engine.add_replay(recorded, "again")
            tools = [*replay.tools]
            session = await engine.create_session(work, model=replay.models[0], tools=tools, permissions="allow")
            assert (await session.run("How does it begin?")).text == "It begins with alpha."
            await session.close()

    asyncio.run(main())


def test_what_is_no_recording(engine, tmp_path):
    with pytest.raises(errors.StorageFailedError):
        engine.add_replay(tmp_path / "nothing.jsonl")
    (tmp_path / "broken.jsonl").write_text("this is no session\n")
    with pytest.raises(errors.InvalidSessionFileError):
        engine.add_replay(tmp_path / "broken.jsonl")


def test_a_recorded_tool_is_no_function(engine, recorded):
    tool = engine.add_replay(recorded).tools[0]
    with pytest.raises(errors.InvalidArgumentError):
        tool()
