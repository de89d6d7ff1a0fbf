"""branchline in a Python program: a session, a second branch in it, and a fork into a file of its own.

    make demo-python

The model is the built-in scripted/demo: no key, no network, always the same answers.
"""

import tempfile
from pathlib import Path

import branchline as bl


def show(session: bl.Session, text: str) -> None:
    """Sends a prompt and prints what comes back, as it comes."""
    print(f"> {text}")
    for event in session.prompt(text):
        if isinstance(event, bl.TextDelta):
            print(event.text, end="", flush=True)
        elif isinstance(event, bl.ToolExecutionStart):
            print(f"\n  [{event.name} {event.args}]", end="")
        elif isinstance(event, bl.TurnEnd):
            print()
    print()


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary, "work")
        work.mkdir()
        (work / "notes.txt").write_text("Tea at four.\n")

        with bl.Engine(agent_dir=Path(temporary, "agent")) as engine:
            session = engine.create_session(work, model="scripted/demo", name="Demo", permissions="allow")
            show(session, "What is in this directory?")

            # The tools as functions, without a model; and a function as a tool.
            @bl.tool
            def tea(guests: int = 1) -> str:
                """How much tea to make."""
                return f"{guests * 250} ml"

            tools = bl.Toolbox(cwd=work, engine=engine, tools=[tea])
            print(f"grep: {tools.grep('tea', ignore_case=True).text}; tea: {tools.call('tea', guests=2)}\n")

            # Back before the first question: the same session goes on as a second branch.
            first = next(entry for entry in session.tree.branch() if entry.role == "user")
            back = session.navigate(first.id)
            print(f"(back before {back.editor_text!r})\n")
            show(session, "Read the notes.")
            session.label(first.id, "first try")
            print(session.tree, end="\n\n")

            # The first question and its answer, as a session of their own. The old one is left alone.
            answer = session.tree.children(first.id)[0]
            fork = session.fork(answer, position="at")
            print(f"session {session.path}: {len(session.tree)} entries")
            print(f"fork    {fork.path}: {len(fork.tree)} entries")
            assert answer in fork.tree and fork.tree.header["parentSession"] == str(session.path)


if __name__ == "__main__":
    main()
