"""Sessions on scripted models, in directories of their own."""

import faulthandler
import signal
import sys
from pathlib import Path

import pytest

import branchline as bl

PACKAGE_ROOT = str(Path(bl.__file__).parent.parent)

HANG_GUARD = 240
"""Seconds after which a test hangs: it then says where, and the run ends."""

# Whoever started the tests in the background may have them ignore Ctrl-C, and Python then leaves it at that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def hang_guard():
    faulthandler.dump_traceback_later(HANG_GUARD, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def engine(tmp_path, monkeypatch):
    # Children of the tests must not touch the real home either.
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    with bl.Engine(agent_dir=tmp_path / "agent") as engine:
        yield engine


@pytest.fixture
def work(tmp_path):
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "notes.txt").write_text("first\nsecond\n")
    return directory


@pytest.fixture
def scripted(engine, work):
    """Makes a session whose model gives these replies."""
    count = 0

    def make(*replies, at_end="repeatLast", **options):
        nonlocal count
        count += 1
        control = engine.add_scripted_model(f"s{count}", {"replies": list(replies), "atEnd": at_end})
        options.setdefault("permissions", "allow")
        session = engine.create_session(work, model=f"scripted/s{count}", **options)
        session.control = control
        return session

    return make


@pytest.fixture
def python(tmp_path, monkeypatch):
    """Runs a program in an interpreter of its own."""
    import subprocess

    monkeypatch.setenv("PYTHONPATH", PACKAGE_ROOT)
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))

    def run(program, *arguments, timeout=60):
        command = [sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=tmp_path)

    return run
