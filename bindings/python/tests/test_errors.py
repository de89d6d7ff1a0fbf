"""Errors: typed, under one base."""

import pickle

import pytest

import branchline as bl
from branchline import _branchline, errors
from scripts import say


def test_every_code_has_a_class():
    for code in [*_branchline.ERROR_CODES, "forked"]:
        error = errors.make_error(code, "a sentence", None)
        assert type(error) is not bl.Error, code
        assert (error.code, error.message, error.path) == (code, "a sentence", None)


def test_every_class_derives_from_the_base():
    classes = [value for name, value in vars(errors).items() if name.endswith("Error")]
    assert len(classes) > 30
    assert all(issubclass(cls, bl.Error) for cls in classes)


def test_a_code_of_the_future():
    error = errors.make_error("brand_new", "x", None)
    assert type(error) is bl.Error and error.code == "brand_new"
    assert bl.Error.code == "unknown"


def test_errors_can_be_pickled(tmp_path):
    error = errors.make_error("session_locked", "busy", tmp_path)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is errors.SessionLockedError
    assert (copy.message, copy.path, str(copy)) == ("busy", tmp_path, f"busy ({tmp_path})")


def test_raised(engine, scripted, work, tmp_path):
    session = scripted(say("one"), in_memory=True)
    with pytest.raises(errors.EntryNotFoundError) as caught:
        session.navigate("nope")
    assert caught.value.code == "entry_not_found" and "nope" in caught.value.message
    assert isinstance(caught.value, LookupError)
    with pytest.raises(LookupError):
        session.tree["nope"]
    with pytest.raises(errors.EntryNotFoundError):
        session.tree.entries(after="nope")
    with pytest.raises(errors.UnknownModelError):
        engine.create_session(work, model="scripted/nope")
    with pytest.raises(errors.UnknownToolError):
        engine.create_session(work, model="scripted/demo", tools=["nope"])
    with pytest.raises(errors.InvalidSessionIdError):
        engine.create_session(work, id="no/slash")
    with pytest.raises(errors.InvalidArgumentError):
        engine.create_session(work, durability="sometimes")
    with pytest.raises(errors.InvalidArgumentError, match="read-only, ask, workspace, allow"):
        engine.create_session(work, permissions="yolo")
    with pytest.raises(errors.InvalidArgumentError):
        engine.create_session(work, tools="read")
    with pytest.raises(errors.InvalidArgumentError):
        engine.add_scripted_model("x", [{"no": "such field"}])
    with pytest.raises(errors.InvalidArgumentError):
        session.append_custom("x", {"not": object()})
    with pytest.raises(errors.InvalidArgumentError):
        session.set_thinking_level("sideways")
    with pytest.raises(TypeError):
        engine.create_session(work, modle="scripted/demo")
    with pytest.raises(TypeError):
        session.steer(3)
    foreign = tmp_path / "foreign.jsonl"
    foreign.write_text("hello\n")
    with pytest.raises(errors.InvalidSessionFileError) as caught:
        engine.open_session(foreign)
    assert caught.value.path == foreign
    assert foreign.read_text() == "hello\n"


def test_no_model(engine, work):
    session = engine.create_session(work, in_memory=True)
    with pytest.raises(errors.NoModelError):
        session.prompt("x")


def test_after_close(scripted):
    session = scripted(say("one"))
    session.close()
    for call in (lambda: session.prompt("x"), lambda: session.steer("x"), lambda: session.label("a", "b")):
        with pytest.raises(errors.ClosedError):
            call()
    assert list(session.subscribe()) == []


def test_after_the_engine_was_closed(work):
    engine = bl.Engine()
    session = engine.create_session(work, model="scripted/demo", in_memory=True)
    engine.close()
    engine.close()
    with pytest.raises(errors.ClosedError):
        engine.create_session(work)
    with pytest.raises(errors.ClosedError):
        session.prompt("x")


def test_timeout(scripted):
    session = scripted(say("one", hang=True))
    session.prompt("x")
    with pytest.raises(TimeoutError) as caught:
        session.wait_idle(timeout=0.05)
    assert isinstance(caught.value, bl.Error) and caught.value.code == "timeout"
    with pytest.raises(errors.InvalidArgumentError):
        session.wait_idle(timeout=-1)
    session.abort()
    session.wait_idle(timeout=60)


def test_a_call_is_waited_for_once(scripted):
    pending = scripted(say("one"))._native.wait_idle()
    pending.wait()
    with pytest.raises(errors.InvalidArgumentError):
        pending.wait()
