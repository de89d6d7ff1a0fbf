"""Context files, skills and prompt templates of sessions."""

import asyncio

import pytest

import branchline as bl
from branchline import aio, errors


@pytest.fixture
def project(work):
    (work / "AGENTS.md").write_text("Always write tests first.\n")
    skill = work / "tools" / "skills" / "release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: Make a release.\n---\nRun make test.\n")
    (work / "tools" / "skills" / "broken").mkdir()
    (work / "tools" / "skills" / "broken" / "SKILL.md").write_text("no description\n")
    (work / "tools" / "prompts").mkdir()
    (work / "tools" / "prompts" / "fix.md").write_text("---\nargument-hint: file\n---\nFix the fault in $1.\n")
    return work


@pytest.fixture
def asked(engine):
    """What the model ``ide/m`` was asked."""
    requests = []

    def answer(request):
        requests.append(request)
        return "done"

    engine.add_host_provider("ide", "m", answer)
    return requests


KNOWN = {
    "context_files": True,
    "skills": ["tools/skills"],
    "prompt_templates": ["tools/prompts"],
    "append_system_prompt": "Answer in German.",
    "extra_context": [{"path": "wiki/style.md", "content": "Two spaces."}],
    "guidelines": ["Be brief."],
    "sections": [{"name": "house", "text": "A quiet one."}],
}


def test_a_session_tells_the_model_what_it_knows(engine, project, asked):
    session = engine.create_session(project, model="ide/m", resources=KNOWN, in_memory=True)
    session.run("x")
    prompt = asked[0].system_prompt
    for text in (
        "Always write tests first.",
        "Answer in German.",
        "Two spaces.",
        "wiki/style.md",
        "Be brief.",
        "<house>",
    ):
        assert text in prompt, text
    assert "Make a release." in prompt and "Run make test." not in prompt


def test_what_a_session_knows_reads_well(engine, project):
    session = engine.create_session(project, model="scripted/demo", resources=KNOWN, in_memory=True)
    known = session.resources
    files = {file.path.name: file.content for file in known.context_files}
    assert files["AGENTS.md"] == "Always write tests first.\n" and files["style.md"] == "Two spaces."
    skill = known.skills[0]
    assert (skill.name, skill.description) == ("release", "Make a release.")
    assert skill.path == project / "tools/skills/release/SKILL.md" and not skill.disable_model_invocation
    template = known.prompt_templates[0]
    assert (template.name, template.argument_hint) == ("fix", "file")
    assert template.content.strip() == "Fix the fault in $1." and template.path.name == "fix.md"
    fault = next(item for item in known.diagnostics if "broken" in str(item.path))
    assert fault.fault == "warning" and str(fault.path) in str(fault)
    assert known.append_system_prompt == "Answer in German." and known.guidelines == ["Be brief."]
    assert known.sections == [{"name": "house", "text": "A quiet one."}] and known.skill_commands
    shown = repr(known)
    assert "release" in shown and "AGENTS.md" in shown and "Always write" not in shown
    table = known._repr_html_()
    assert "Make a release." in table and "/fix" in table


def test_by_default_nothing_is_read(engine, project, asked):
    session = engine.create_session(project, model="ide/m", in_memory=True)
    session.run("/fix parser.py")
    assert "Always write tests first." not in asked[0].system_prompt and asked[0].last_text == "/fix parser.py"
    known = session.resources
    assert (known.context_files, known.skills, known.prompt_templates, known.diagnostics) == ([], [], [], [])


def test_skills_and_templates_in_prompts(engine, project, asked):
    session = engine.create_session(project, model="ide/m", resources=KNOWN, in_memory=True)
    session.run("/fix parser.py")
    assert asked[-1].last_text.strip() == "Fix the fault in parser.py."
    session.run("/skill:release 1.4")
    assert "Run make test." in asked[-1].last_text and "1.4" in asked[-1].last_text
    session.run("/fix parser.py", expand=False)
    assert asked[-1].last_text == "/fix parser.py"
    session.prompt("/fix lexer.py", expand=False).result()
    assert asked[-1].last_text == "/fix lexer.py"


def test_a_prompt_forced_for_one_run(engine, project, asked):
    """S305, P777: it is the whole system prompt of its run; the next run has the session's own again."""
    session = engine.create_session(project, model="ide/m", resources=KNOWN, in_memory=True)
    session.run("x", forced_prompt="Speak like a pirate.")
    assert asked[-1].system_prompt == "Speak like a pirate."
    session.prompt("x", forced_prompt="Be a bird.").result()
    assert asked[-1].system_prompt == "Be a bird."
    session.run("y")
    assert "Always write tests first." in asked[-1].system_prompt and "bird" not in asked[-1].system_prompt
    asyncio.run(session.aio.run("z", forced_prompt="Sing."))
    assert asked[-1].system_prompt == "Sing."


def test_reading_again_and_choosing_anew(engine, project, asked):
    session = engine.create_session(project, model="ide/m", resources={"context_files": True}, in_memory=True)
    session.run("x")
    (project / "AGENTS.md").write_text("Never write tests.\n")
    assert session.resources.context_files[-1].content == "Always write tests first.\n"
    known = session.reload_resources()
    assert known == session.resources and known.context_files[-1].content == "Never write tests.\n"
    session.run("y")
    assert "Never write tests." in asked[-1].system_prompt
    known = session.set_resources({"skills": [project / "tools" / "skills"]})
    assert [skill.name for skill in known.skills] == ["release"] and known.context_files == []
    session.run("z")
    assert "Never write tests." not in asked[-1].system_prompt


def test_awaited(engine, project):
    async def main():
        session = await aio.Session.create(
            project, engine=engine, model="scripted/demo", resources={"contextFiles": True}, in_memory=True
        )
        assert len(session.resources.context_files) == 1
        assert len((await session.reload_resources()).context_files) == 1
        assert (await session.set_resources({"prompt_templates": "tools/prompts"})).prompt_templates[0].name == "fix"
        assert (await session.run("/fix", expand=False)).text
        await session.close()

    asyncio.run(main())


def test_a_fork_knows_what_its_original_knew(engine, project):
    session = engine.create_session(project, model="scripted/demo", resources=KNOWN, permissions="allow")
    session.run("x")
    assert session.clone().resources.skills == session.resources.skills
    path = session.path
    session.close()
    with engine.open_session(path) as again:
        assert again.resources.skills == []
    with engine.open_session(path, resources={"skills": ["tools/skills"]}) as again:
        assert again.resources.skills[0].name == "release"


@pytest.mark.parametrize(
    "options",
    [
        {"unknown": True},
        {"context_files": "yes"},
        {"context_files": True, "contextFiles": True},
        {"discover": "everything"},
        {"sections": [{"name": "No Name", "text": ""}]},
        {"sections": "text"},
        {"skills": [5]},
        {"extra_context": [{"path": "x"}]},
        ["context_files"],
    ],
    ids=str,
)
def test_bad_options_are_told(engine, project, options):
    with pytest.raises(errors.InvalidArgumentError):
        engine.create_session(project, model="scripted/demo", resources=options)
    session = engine.create_session(project, model="scripted/demo", in_memory=True)
    with pytest.raises(errors.InvalidArgumentError):
        session.set_resources(options)
    assert isinstance(session.resources, bl.Resources)
