"""What the package does to its process: interrupts, threads, exits, forks."""

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import branchline as bl
from branchline import errors
from scripts import say

GUARD = 30
"""Seconds after which something hangs; nothing here takes more than a fraction of one."""


class Ticker:
    """A Python thread that works while the main thread waits."""

    def __enter__(self):
        self.count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        return self

    def _work(self):
        while not self._stop.wait(0.001):
            self.count += 1

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def interrupt_when(session):
    """Presses Ctrl-C once the model hangs."""

    def press():
        session.control.wait_reached(0, GUARD)
        time.sleep(0.1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


WAITS = {
    "run": lambda session: session.run("x"),
    "for": lambda session: [None for _ in session.prompt("x")],
    "result": lambda session: session.prompt("x").result(),
    "asyncio": lambda session: asyncio.run(session.aio.run("x")),
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_aborts_the_run(scripted, wait):
    session = scripted(say("half", hang=True), say("two"))
    start = time.monotonic()
    thread = interrupt_when(session)
    with pytest.raises(KeyboardInterrupt):
        WAITS[wait](session)
    assert time.monotonic() - start < GUARD
    thread.join()
    assert session.state.phase == "idle"
    assert session.tree[session.leaf].message["stopReason"] == "aborted"
    assert session.run("go on").text == "two"


def test_ctrl_c_in_the_body_of_a_loop_aborts_the_run(scripted):
    session = scripted(say("half", hang=True), say("two"))

    def loop():
        for event in session.prompt("x"):
            if isinstance(event, bl.TextDelta):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop()
    session.wait_idle(timeout=GUARD)
    assert session.run("go on").text == "two"


def test_break_aborts_unless_the_run_is_kept(scripted):
    session = scripted(say("half", hang=True), say("whole", waitGate="go"))
    for event in session.prompt("x"):
        if isinstance(event, bl.TextDelta):
            break
    session.wait_idle(timeout=GUARD)
    run = session.prompt("y")
    for event in run:
        if isinstance(event, bl.TextDelta):
            break
    assert session.state.phase == "running"
    session.control.open_gate("go")
    assert run.result().text == "whole"


def test_with_ends_the_run(scripted):
    session = scripted(say("half", hang=True))
    with session.prompt("x") as run:
        pass
    assert run.settled and session.state.phase == "idle"


def test_other_threads_run_meanwhile(scripted):
    session = scripted(say("one", delayMs=300))
    with Ticker() as ticker:
        session.run("x")
        assert ticker.count > 20


def test_one_session_from_many_threads(scripted):
    session = scripted(say("one", waitGate="go"))
    run = session.prompt("x")
    done = []

    def work(number):
        session.steer(str(number))
        session.wait_idle(timeout=GUARD)
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    while len(session.state.steering) < 8:
        time.sleep(0.001)
    session.control.open_gate("go")
    run.result()
    for thread in threads:
        thread.join(GUARD)
    assert sorted(done) == list(range(8))


def test_abort_from_another_thread(scripted):
    session = scripted(say("half", hang=True))
    other = threading.Timer(0.1, session.abort)
    other.start()
    result = session.run("x")
    other.join(GUARD)
    assert result.aborted and result.stop_reason == "aborted" and result.text == "half"


SILENT = """
import branchline as bl
session = bl.Session.create(".", model="scripted/demo", permissions="allow")
assert session.run("What is here?").text
list(session.prompt("Again."))
"""


def test_nothing_is_written(python):
    done = python(SILENT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_process_stays_as_it_was(python):
    done = python(
        """
import os, signal, branchline as bl
def look():
    handlers = [signal.getsignal(s) for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]
    mask = os.umask(0); os.umask(mask)
    return handlers, mask, os.getcwd(), dict(os.environ)
before = look()
bl.Session.create(".", model="scripted/demo", in_memory=True, permissions="allow").run("x")
assert look() == before
"""
    )
    assert (done.returncode, done.stderr) == (0, "")


START = """
import branchline as bl, threading, asyncio, sys
engine = bl.Engine()
control = engine.add_scripted_model("h", [{"content": [{"type": "text", "text": "half"}], "hang": True}])
session = engine.create_session(".", model="scripted/h", permissions="allow")
"""
EXITS = {
    "after the prompt": "session.prompt('x'); control.wait_reached(0)",
    "reading": "run = iter(session.prompt('x')); next(run); control.wait_reached(0)",
    "a daemon thread waits": """
threading.Thread(target=session.run, args=("x",), daemon=True).start(); control.wait_reached(0)""",
    "a task waits": """
async def main():
    task = asyncio.ensure_future(session.aio.run("x"))
    while session.state.phase != "running": await asyncio.sleep(0.001)
asyncio.run(main())""",
    "sys.exit in a loop": """
for event in session.prompt("x"): sys.exit(0)""",
    "a loop that never ends": """
loop = asyncio.new_event_loop()
task = loop.create_task(session.aio.run("x"))
loop.run_until_complete(asyncio.sleep(0.05))
task._log_destroy_pending = False""",
}


@pytest.mark.parametrize("how", EXITS)
def test_the_interpreter_ends_mid_run(python, how):
    start = time.monotonic()
    done = python(START + EXITS[how], timeout=GUARD)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - start < GUARD


def test_what_a_run_had_is_stored_at_exit(python, tmp_path, engine):
    done = python(START + EXITS["after the prompt"] + "; print(session.path)")
    with engine.open_session(done.stdout.strip()) as session:
        last = session.tree[session.leaf]
        assert (last.text, last.message["stopReason"]) == ("half", "aborted")


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""


def test_processes_of_tools_end_with_the_interpreter(python, tmp_path):
    done = python(
        """
import branchline as bl
engine = bl.Engine()
call = {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "echo $$ > pid; exec sleep 600"}}
engine.add_scripted_model("b", [{"content": [call]}])
session = engine.create_session(".", model="scripted/b", in_memory=True, permissions="allow")
session.prompt("x")
import os, time
while not (os.path.exists("pid") and open("pid").read()): time.sleep(0.01)
""",
        timeout=GUARD,
    )
    assert (done.returncode, done.stderr) == (0, "")
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + GUARD
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if ") Z " in state_of(pid):
            return
        time.sleep(0.01)
    pytest.fail("the tool's process outlived the interpreter")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_the_child_of_a_fork_gets_errors_and_can_start_anew(python):
    done = python(
        """
import os, sys, warnings, branchline as bl
warnings.simplefilter("ignore")
session = bl.Session.create(".", model="scripted/demo", in_memory=True, permissions="allow")
session.run("x")
run, tree, events = session.prompt("y"), session.tree, session.subscribe()
pid = os.fork()
if pid == 0:
    failures = 0
    for call in (lambda: session.run("x"), session.abort, lambda: session.leaf, lambda: next(run), run.result,
                 lambda: len(tree), lambda: next(events), session.close):
        try:
            call()
        except bl.Error as error:
            assert error.code == "forked" and isinstance(error, bl.errors.ForkedError)
            failures += 1
    assert failures == 8, failures
    assert "forked" in repr(session)
    assert bl.Session.create(".", model="scripted/demo", in_memory=True, permissions="allow").run("x").text
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert session.abort() is None
print("parent fine")
""",
        timeout=GUARD,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "parent fine\n", "")


def test_errors_reach_threads_of_a_closed_session(scripted):
    session = scripted(say("half", hang=True))
    caught = []

    def work():
        try:
            session.run("x")
        except errors.ClosedError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    session.control.wait_reached(0, GUARD)
    session.close()
    thread.join(GUARD)
    assert not thread.is_alive() and len(caught) <= 1


def test_import_is_cheap_and_starts_nothing(python):
    done = python(
        "import threading, branchline, os; print(threading.active_count(), len(os.listdir('/proc/self/task')))"
    )
    if sys.platform == "linux":
        assert done.stdout == "1 1\n"
