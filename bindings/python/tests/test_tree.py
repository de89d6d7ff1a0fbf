"""Trees: reading, moving, forking, labelling."""

import asyncio
import json

import pytest

import branchline as bl
from branchline import aio, errors
from scripts import say


@pytest.fixture
def session(scripted):
    """Two questions with their answers."""
    session = scripted(say("one"), say("two"), say("three"))
    session.run("first")
    session.run("second")
    return session


def user(session, text):
    return next(entry.id for entry in session.tree if entry.role == "user" and entry.text == text)


def texts(session):
    return [entry.text for entry in session.tree.branch() if entry.role in ("user", "assistant")]


def test_reading(session):
    tree = session.tree
    assert len(tree) == len(list(tree)) == len(list(tree.walk()))
    assert tree.leaf == session.leaf and tree.leaf in tree and "nope" not in tree and 3 not in tree
    branch = tree.branch()
    ids = list(branch.ids())
    assert ids == [entry.id for entry in branch] and len(branch) == len(ids)
    assert branch[-1] == tree[tree.leaf] == branch[len(branch) - 1]
    assert [entry.id for entry in branch[1:3]] == ids[1:3]
    assert tree.leaf in branch and branch[0] in branch and "nope" not in branch
    with pytest.raises(IndexError):
        branch[len(branch)]
    assert tree.roots() == [ids[0]] and tree.parent(ids[1]) == ids[0] and tree.children(ids[0]) == [ids[1]]
    assert tree.parent(ids[0]) is None and tree.entry("nope") is None
    entry = tree[ids[-1]]
    assert (entry.parent_id, entry.type, entry.role, entry.text) == (ids[-2], "message", "assistant", "two")
    assert json.loads(entry.raw) == entry.value
    lines = session.path.read_bytes().splitlines()
    assert lines[1:] == [entry.raw for entry in tree] and json.loads(lines[0]) == tree.header
    assert [entry.id for entry in tree.entries(after=ids[2])] == ids[3:]
    assert tree.is_saved and tree.path == session.path and tree.session_id == session.id
    assert tree.diagnostics == []
    context = tree.context()
    assert [message["role"] for message in context.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert context.model == "scripted/s1" and set(context.entry_ids) <= set(ids)
    assert len(tree.context(user(session, "first")).messages) == 2
    exported = tree.export_branch(user(session, "first")).splitlines()
    assert json.loads(exported[-1])["message"]["content"][0]["text"] == "first"


def test_a_long_branch_is_read_in_slices(scripted):
    session = scripted(say("one"))
    ids = [session.append_custom("n", index) for index in range(600)]
    branch = session.tree.branch()
    assert list(branch.ids())[-600:] == ids
    assert [entry.value["data"] for entry in branch[-600:]] == list(range(600))
    assert [entry.id for entry in branch][-600:] == ids
    assert [entry.id for entry in session.tree][-600:] == ids
    assert [node.id for node in session.tree.walk()][-600:] == ids


def test_navigate(session):
    before = session.leaf
    moved = session.navigate(user(session, "second"))
    assert moved.editor_text == "second" and not moved.cancelled
    assert moved.leaf == session.leaf == session.tree.parent(user(session, "second"))
    session.run("other")
    assert texts(session) == ["first", "one", "other", "three"]
    parent = session.tree.parent(user(session, "other"))
    assert session.tree.children(parent) == [user(session, "second"), user(session, "other")]
    assert session.navigate(before).leaf == before
    assert texts(session) == ["first", "one", "second", "two"]


def test_navigate_with_a_label(session):
    second = user(session, "second")
    assert session.navigate(second, label="left").summary_entry is None
    assert session.tree.labels == {second: "left"}


def test_navigate_with_a_summary(session):
    moved = session.navigate(user(session, "second"), summarize=True, label="left")
    assert moved.summary_entry in session.tree
    assert session.tree.labels == {moved.summary_entry: "left"}


def test_labels(session):
    first = user(session, "first")
    entry = session.label(first, "start")
    assert session.leaf == entry and session.tree[entry].type == "label"
    assert session.tree.label(first) == "start" and session.tree.labels == {first: "start"}
    assert [node.label for node in session.tree.walk() if node.id == first] == ["start"]
    assert "[start]" in str(session.tree)
    session.label(first, None)
    assert session.tree.labels == {} and session.tree.label(first) is None


def test_fork(session):
    before = list(session.tree)
    fork = session.fork(user(session, "second"))
    assert fork.editor_text == "second" and texts(fork) == ["first", "one"]
    assert fork.path != session.path and fork.tree.header["parentSession"] == str(session.path)
    assert fork.run("elsewhere").text == "three"
    assert list(session.tree) == before
    at = session.fork(session.leaf, position="at")
    assert at.editor_text is None and texts(at) == texts(session)
    with pytest.raises(errors.InvalidForkTargetError):
        session.fork(session.leaf)
    with pytest.raises(errors.InvalidArgumentError):
        session.fork(session.leaf, position="behind")


def test_clone(session):
    copy = session.clone()
    assert texts(copy) == texts(session) and copy.id != session.id and copy.path != session.path


def test_drawing(session):
    session.navigate(user(session, "second"))
    session.run("an <other> question")
    lines = str(session.tree).splitlines()
    assert [line.split()[1] for line in lines] == ["user", "assistant"] * 3
    assert not lines[1].startswith(" ") and lines[2].startswith("  ") and lines[4].startswith("  ")
    assert lines[-1].endswith("<- leaf")
    assert "&lt;other&gt;" in session.tree._repr_html_()


def test_a_damaged_file_opens_and_says_so(session, engine):
    path, entries = session.path, len(session.tree)
    session.close()
    with path.open("ab") as file:
        file.write(b'{"type":"message","id":"to')
    with engine.open_session(path) as again:
        assert len(again.tree) == entries
        (fault,) = again.tree.diagnostics
        assert fault.kind == "torn_tail" and fault.line == entries + 2


def test_a_closed_session_can_still_be_read(session):
    session.close()
    assert texts(session) == ["first", "one", "second", "two"]
    assert isinstance(session.tree, bl.Tree)


def test_a_file_is_read_without_a_session(session, tmp_path):
    tree = bl.read_session(session.path)  # which has it open, and locked
    assert [entry.text for entry in tree.branch() if entry.role in ("user", "assistant")] == [
        "first",
        "one",
        "second",
        "two",
    ]
    assert tree.leaf == session.leaf and tree.path == session.path and tree.session_id == session.id
    assert tree.context().messages == session.tree.context().messages
    assert asyncio.run(aio.read_session(session.path)).leaf == session.leaf
    assert [entry.value["id"] for entry in tree] == [entry.id for entry in session.tree]
    with pytest.raises(errors.StorageFailedError) as caught:
        bl.read_session(tmp_path / "none.jsonl")
    assert caught.value.path == tmp_path / "none.jsonl" and not (tmp_path / "none.jsonl").exists()
