"""Making sessions, prompting them, and what comes back."""

import json

import pytest

import branchline as bl
from branchline import errors
from scripts import call, say


def test_create_run_and_open_again(engine, scripted):
    session = scripted(say("Four.", usage={"input": 7, "output": 3}), name="sums")
    assert session.leaf is None or session.tree[session.leaf].type != "message"
    assert not session.path.exists()
    result = session.run("Two and two?")
    assert (result.text, result.stop_reason, result.aborted) == ("Four.", "stop", False)
    assert (result.usage.input, result.usage.output, result.usage.total_tokens) == (7, 3, 10)
    assert float(result.usage.cost) == 0.0
    assert result.leaf == session.leaf
    assert [message["role"] for message in result.messages] == ["system", "user", "assistant"]
    assert isinstance(result.events[0], bl.AgentStart) and isinstance(result.events[-1], bl.AgentSettled)
    path = session.path
    session.close()
    assert json.loads(path.read_text().splitlines()[0])["id"] == session.id

    with engine.open_session(path) as again:
        assert again.id == session.id
        assert again.leaf == result.leaf
        assert again.name == "sums"
        assert again.state.model == "scripted/s1"
        assert again.run("And now?").text == "Four."
    with engine.continue_recent(session.cwd) as recent:
        assert recent.path == path
    listed = engine.list_sessions(session.cwd)
    assert [(info.path, info.name, info.first_message) for info in listed] == [(path, "sums", "Two and two?")]
    assert listed[0].created <= listed[0].modified and listed[0].text is None
    assert "Four." in engine.list_sessions(session.cwd, text=True)[0].text
    assert engine.list_sessions(agent_dir=path.parent / "nothing") == []


def test_in_memory_leaves_no_file(scripted, tmp_path):
    session = scripted(say("x"), in_memory=True)
    session.run("y")
    assert session.path is None
    assert not list(tmp_path.rglob("*.jsonl"))


def test_the_default_engine(work, tmp_path, monkeypatch):
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    with bl.Session.create(work, model="scripted/demo", permissions="allow") as session:
        session.run("What is here?")
        path = session.path
    with bl.Session.open(path, read_only=True) as session:
        assert session.state.model == "scripted/demo"
    with bl.Session.continue_recent(work) as session:
        assert session.path == path
    assert [info.path for info in bl.list_sessions(work)] == [path]


def test_events_are_typed(scripted):
    session = scripted(
        {"content": [{"type": "thinking", "thinking": "hm"}, *call("read", {"path": "notes.txt"})["content"]]},
        say("Read it."),
    )
    events = list(session.prompt("Read the notes."))
    assert [event.sequence for event in events] == sorted(event.sequence for event in events)
    assert all(json.loads(event.json)["type"] == event.type for event in events)
    assert {event.session_id for event in events} == {session.id}
    text = "".join(event.text for event in events if isinstance(event, bl.TextDelta))
    thinking = "".join(event.text for event in events if isinstance(event, bl.ThinkingDelta))
    assert (text, thinking) == ("Read it.", "hm")

    start = next(event for event in events if isinstance(event, bl.ToolExecutionStart))
    end = next(event for event in events if isinstance(event, bl.ToolExecutionEnd))
    assert (start.id, start.name, start.args) == ("c1", "read", {"path": "notes.txt"})
    assert (end.id, end.is_error, end.text) == ("c1", False, "first\nsecond\n")
    assert isinstance(end.duration_ms, int)
    turn = next(event for event in events if isinstance(event, bl.TurnEnd))
    assert [message["toolCallId"] for message in turn.tool_results] == ["c1"]
    ends = [event for event in events if isinstance(event, bl.MessageEnd)]
    assert [event.role for event in ends] == ["system", "user", "assistant", "toolResult", "assistant"]
    assert all(session.tree[event.entry_id].message == event.message for event in ends)
    agent_end = next(event for event in events if isinstance(event, bl.AgentEnd))
    assert agent_end.messages == [event.message for event in ends]
    assert not agent_end.will_retry
    assert isinstance(events[-1], bl.AgentSettled)


def test_events_match_by_position_and_keyword(scripted):
    events = list(scripted(say("hello")).prompt("x"))
    assert bl.TextDelta.__match_args__ == ("text",)
    assert any(event.text == "hello" for event in events if isinstance(event, bl.TextDelta))


def test_a_run_can_be_waited_for_instead_of_read(scripted):
    session = scripted(say("one"), say("two"))
    run = session.prompt("x")
    assert run.result().text == "one"
    assert run.settled
    session.prompt("y")  # nobody looks
    session.wait_idle(timeout=60)
    assert session.tree[session.leaf].text == "two"


def test_a_failed_request_is_a_result(scripted):
    session = scripted({"content": [], "stop": "error", "error": "no such key"})
    result = session.run("x")
    assert (result.stop_reason, result.error_message) == ("error", "no such key")


def test_steer_and_follow_up(scripted):
    session = scripted(say("one", waitGate="go"), say("two"), say("three"))
    run = session.prompt("first")
    session.control.wait_reached(0, timeout=60)
    with pytest.raises(errors.RunningError):
        session.prompt("refused")
    session.steer("second")
    session.follow_up("third")
    assert session.state.phase == "running"
    assert (session.state.steering, session.state.follow_up) == (["second"], ["third"])
    session.control.open_gate("go")
    events = list(run)
    users = [event.text for event in events if isinstance(event, bl.MessageEnd) and event.role == "user"]
    assert users == ["first", "second", "third"]
    assert any(isinstance(event, bl.QueueUpdate) and event.follow_up == ["third"] for event in events)
    session.steer("later")
    assert session.clear_queues() == (["later"], [])


def test_subscribe_sees_all_runs_and_ends_with_the_session(scripted):
    session = scripted(say("one"))
    events = session.subscribe()
    session.prompt("a").result()
    session.prompt("b").result()
    session.close()
    assert sum(isinstance(event, bl.AgentSettled) for event in events) == 2


def test_settings(scripted, engine):
    session = scripted(say("one"))
    engine.add_scripted_model("other", [say("from the other")])
    events = session.subscribe()
    session.set_model("scripted/other")
    session.set_thinking_level("high")
    session.set_tools(["read"])
    session.name = "  a name "
    state = session.state
    assert (state.model, state.thinking_level, state.tools) == ("scripted/other", "high", ["read"])
    assert session.name == session.tree.name == "a name"
    assert session.run("x").text == "from the other"
    session.name = None
    assert session.name is None
    session.close()
    seen = list(events)
    assert any(isinstance(event, bl.ThinkingLevelChanged) and event.level == "high" for event in seen)
    assert [event.name for event in seen if isinstance(event, bl.SessionInfoChanged)] == ["a name", None]
    assert "scripted/demo" in engine.models and "scripted/other" in engine.models


def test_data_of_the_host(scripted):
    session = scripted(say("one"))
    events = session.subscribe()
    data = {"b": 1, "a": [2**53 + 1, None, "ü\u0000\U0001f600"]}
    id = session.append_custom("note", data)
    assert session.tree[id].value["data"] == data
    assert list(session.tree[id].value["data"]) == ["b", "a"]
    message = session.append_custom_message("hint", "Be brief.", details={"from": "host"})
    assert session.tree[message].text == "Be brief."
    assert [m["role"] for m in session.tree.context().messages][-1] in ("custom", "user")
    session.close()
    assert [event.entry["id"] for event in events if isinstance(event, bl.EntryAppended)] == [id]


def test_images_are_sent(scripted):
    session = scripted(say("nice"))
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    result = session.run("look", images=[image])
    user = next(message for message in result.messages if message["role"] == "user")
    assert image in user["content"]


def test_a_hundred_sessions(scripted, engine, work):
    sessions = [engine.create_session(work, model="scripted/demo", in_memory=True) for _ in range(100)]
    assert len({session.id for session in sessions}) == 100
    for session in sessions:
        session.close()
        session.close()
        assert session.state.phase == "closed"


def test_letting_go_of_a_session_frees_its_file(engine, scripted):
    session = scripted(say("one"))
    session.run("x")
    path = session.path
    with pytest.raises(errors.SessionLockedError) as caught:
        engine.open_session(path)
    assert caught.value.path == path
    with engine.open_session(path, read_only=True) as reader, pytest.raises(errors.ReadOnlyError):
        reader.label(reader.leaf, "x")
    del session, caught
    for _ in range(600):
        try:
            engine.open_session(path).close()
            break
        except errors.SessionLockedError:
            import time

            time.sleep(0.05)
    else:
        pytest.fail("the file stayed locked")


def test_shown_in_a_notebook(scripted):
    session = scripted(say("<b>bold</b>"))
    result = session.run("a & b")
    assert "&lt;b&gt;bold&lt;/b&gt;" in result._repr_html_()
    shown = session._repr_html_()
    assert "a &amp; b" in shown and "<b>bold" not in shown
    assert "bold" in repr(result) and session.id in repr(session)
