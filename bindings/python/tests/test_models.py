"""Which models an engine knows, its options, keys, and the recording of traffic."""

import asyncio
import copy
import json
import pickle
import threading
import time

import pytest

import branchline as bl
from branchline import aio, errors
from scripts import say
from service import Service

SECRET = "sk-very-secret-9876543210"


@pytest.fixture
def service():
    with Service("Hello", "Hello again") as service:
        yield service


@pytest.fixture
def make(tmp_path):
    """Makes engines that see nothing of this machine."""
    engines = []

    def make(kind=bl.Engine, **options):
        options = {"agent_dir": tmp_path / "agent", "environment": False, "proxy": "direct", **options}
        engines.append(kind(**options))
        return engines[-1]

    yield make
    for engine in engines:
        closing = engine.close()
        if closing is not None:
            asyncio.run(closing)


def test_models_are_names_with_facts(make):
    engine = make()
    models = engine.models
    assert models == engine.models() and "scripted/demo" in models and len(models) > 50
    model = next(model for model in models if model == "anthropic/claude-sonnet-5")
    assert (model.provider, model.id, model.name) == ("anthropic", "claude-sonnet-5", "anthropic/claude-sonnet-5")
    assert model.api == "anthropic-messages" and model.base_url.startswith("https://")
    assert model.context_window >= 200_000 and model.max_tokens > 0 and model.images and model.reasoning
    assert model.thinking_levels[0] == "off" and "high" in model.thinking_levels
    assert model.cost["input"] > 0 and model.display_name
    assert repr(model).startswith("<Model anthropic/claude-sonnet-5, ") and model.name in models._repr_html_()
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert other == model and other.context_window == model.context_window
    with pytest.raises(AttributeError):
        _ = model.nothing
    assert make(builtin_models=False).models == ["scripted/demo"]


def test_a_model_goes_wherever_its_name_goes(make, work):
    engine = make()
    engine.add_scripted_model("a", [say("from a")])
    model = engine.find_model("scripted/a").model
    session = engine.create_session(work, model=model, in_memory=True)
    assert session.run("x").text == "from a" and session.state.model == model
    session.set_model(engine.find_model("scripted/demo").model)
    assert session.state.model == "scripted/demo"


def test_finding_a_model(make):
    engine = make()
    choice = engine.find_model("sonnet:high")
    assert choice.model.provider == "anthropic" and "sonnet" in choice.model and choice.thinking_level == "high"
    assert engine.find_model("anthropic/claude-sonnet-5").thinking_level is None
    with pytest.raises(errors.UnknownModelError, match="claude"):
        engine.find_model("anthropic/claude-sonet-5")


def test_an_id_that_nobody_described(make):
    engine = make(keys={"anthropic": SECRET})
    choice = engine.find_model_or_custom("anthropic/claude-of-tomorrow:low")
    assert (choice.model, choice.thinking_level) == ("anthropic/claude-of-tomorrow", "low")
    assert "claude-of-tomorrow" in choice.warning and choice.model in engine.models
    assert engine.find_model_or_custom("anthropic/claude-sonnet-5").warning is None
    with pytest.raises(errors.UnknownModelError):
        engine.find_model_or_custom("nobody/nothing")


def test_models_by_patterns(make):
    engine = make(keys={"anthropic": SECRET})
    scope = engine.models_in_scope(["anthropic/*haiku*:low", "openai/*"])
    assert scope.models and {choice.thinking_level for choice in scope.models} == {"low"}
    assert all("haiku" in choice.model for choice in scope.models)
    assert len(scope.warnings) == 1 and "openai/*" in scope.warnings[0]
    assert engine.models_in_scope("anthropic/*").models


def test_a_session_says_that_its_model_is_another_one(make, work):
    engine = make()
    engine.add_host_provider("ide", "gone", lambda request: "one")
    with engine.create_session(work, model="ide/gone") as session:
        session.run("x")
        path = session.path
        assert session.state.model_notice is None
    other = make()
    other.add_host_provider("new", "m", lambda request: "two")
    with other.open_session(path) as session:
        assert session.state.model == "new/m" and "ide/gone" in session.state.model_notice
        assert session.run("y").text == "two"


def test_available_models_have_a_key_or_need_none(make, monkeypatch):
    engine = make()
    assert engine.available_models() == ["scripted/demo"]
    engine.set_key("anthropic", SECRET)
    assert {model.provider for model in engine.available_models()} == {"anthropic", "scripted"}
    engine.set_key("anthropic", None)
    assert engine.available_models() == ["scripted/demo"]
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    assert {model.provider for model in make(environment=True).available_models()} >= {"google", "scripted"}
    with_keys = make(keys={"openai": SECRET, "xai": bl.Key(SECRET, bearer=True)})
    assert {model.provider for model in with_keys.available_models()} == {"openai", "xai", "scripted"}


def test_configured_models_answer(make, work, service):
    engine = make(models=service.models())
    session = engine.create_session(work, model="acme/m", in_memory=True)
    result = session.run("x")
    assert (result.text, result.usage.input, result.usage.output) == ("Hello", 7, 3)
    path, _, body = service.asked[0]
    assert (path, body["model"]) == ("/v1/chat/completions", "m")
    with pytest.raises(errors.InvalidArgumentError, match=r"models\.0\.contextWindow"):
        engine.configure_models({"providers": {"b": {"models": [{"id": "m", "contextWindow": "big"}]}}})
    assert "b/m" not in engine.models
    local = '{"baseUrl": "http://localhost:1", "api": "openai-completions", "models": [{"id": "m"},]}'
    engine.configure_models(f'// a comment\n{{"providers": {{"b": {local}}}}}')
    assert engine.find_model("b/m").model.base_url == "http://localhost:1"
    text = make(models=json.dumps(service.models("c")))
    assert "c/m" in text.models


def test_files_of_models_and_keys(make, tmp_path, work, service):
    directory = tmp_path / "other"
    directory.mkdir()
    (directory / "models.json").write_text(json.dumps(service.models()))
    (directory / "auth.json").write_text(json.dumps({"acme": {"type": "api_key", "key": SECRET}}))
    for options in (
        {"agent_files": directory},
        {"agent_files": True, "agent_dir": directory},
        {"models_file": directory / "models.json", "auth_file": directory / "auth.json"},
    ):
        engine = make(**options)
        assert engine.create_session(work, model="acme/m", in_memory=True).run("x").text.startswith("Hello")
        assert service.asked[-1][1]["authorization"] == f"Bearer {SECRET}"
    assert "acme/m" not in make(agent_files=False).models
    (directory / "models.json").write_text('{"providers": {"acme": {"models": [{"id": 5}]}}}')
    problem = make(agent_files=directory).model_problems()[0]
    assert problem.path == directory / "models.json" and "id" in problem.message
    assert str(directory) in str(problem)
    assert make().model_problems() == []


def test_keys_are_stored_for_other_programs_too(make, tmp_path, work, service, monkeypatch):
    file = tmp_path / "auth.json"
    file.write_text(json.dumps({"other": {"type": "api_key", "key": "k", "more": 1}}))
    engine = make(models=service.models(), auth_file=file)
    engine.store_key("acme", f"$$1-{SECRET}")
    assert engine.stored_keys() == [bl.StoredEntry("other", "api_key"), bl.StoredEntry("acme", "api_key")]
    assert json.loads(file.read_text())["other"] == {"type": "api_key", "key": "k", "more": 1}
    session = engine.create_session(work, model="acme/m", in_memory=True)
    session.run("x")
    assert service.asked[-1][1]["authorization"] == f"Bearer $$1-{SECRET}"
    engine.store_key("acme", "$MINE", configured=True, variables={"MINE": SECRET})
    session.run("x")
    assert service.asked[-1][1]["authorization"] == f"Bearer {SECRET}"
    engine.store_login("acme", {"access": SECRET, "refresh": "r", "expires": 1})
    assert [entry.type for entry in engine.stored_keys()] == ["api_key", "oauth"]
    assert engine.forget_stored("acme") and not engine.forget_stored("acme")
    for call in (lambda: engine.store_key("", "k"), lambda: engine.store_key("a", 5), lambda: make().stored_keys()):
        with pytest.raises(errors.InvalidArgumentError):
            call()

    async def main():
        async with make(aio.Engine, auth_file=tmp_path / "new" / "auth.json") as awaited:
            await awaited.store_key("a", "k")
            await awaited.store_login("b", {"access": "x"})
            assert [entry.provider for entry in await awaited.stored_keys()] == ["a", "b"]
            assert await awaited.forget_stored("a")

    asyncio.run(main())


def test_a_stored_login_is_made_anew_by_the_program(make, tmp_path, work, service):
    file = tmp_path / "auth.json"
    aged = {"access": "old", "refresh": "r", "expires": 1, "mine": [1]}
    asked = []

    def source(provider, login):
        asked.append((provider, login))
        return {**login, "access": f"{SECRET}-{len(asked)}", "expires": time.time() * 1000 + 3_600_000}

    async def coroutine(provider, login):
        await asyncio.sleep(0)
        return source(provider, login)

    engine = make(models=service.models(), auth_file=file, login_source=source)
    engine.store_login("acme", aged)
    session = engine.create_session(work, model="acme/m", in_memory=True)
    for _ in range(2):
        session.run("x")
        assert service.asked[-1][1]["authorization"] == f"Bearer {SECRET}-1"
    assert asked == [("acme", {**aged, "type": "oauth"})]
    stored = json.loads(file.read_text())["acme"]
    assert (stored["access"], stored["mine"], stored["type"]) == (f"{SECRET}-1", [1], "oauth")
    for other in (coroutine, lambda provider, login: coroutine(provider, login)):
        engine.store_login("acme", aged)
        engine.set_login_source(other)
        session.run("x")
        assert service.asked[-1][1]["authorization"] == f"Bearer {SECRET}-{len(asked)}"
    assert len(asked) == 3

    def shut(provider, login):
        raise RuntimeError("the door is shut")

    for wrong, says in [
        (shut, "the door is shut"),
        (lambda *_: {"access": SECRET}, "a login is"),
        (lambda *_: 5, "int"),
    ]:
        engine.store_login("acme", aged)
        engine.set_login_source(wrong)
        result = session.run("x")
        assert says in result.error_message and SECRET not in result.error_message
    # Who makes a login anew has the lock of the file: storing something else there is refused, not waited for.
    told, later = [], []

    def stores(provider, login):
        for call in (
            lambda: engine.store_login(provider, aged),
            lambda: engine.store_key("other", "k"),
            lambda: engine.forget_stored("other"),
            lambda: engine.stored_keys(),
        ):
            with pytest.raises(errors.WouldDeadlockError):
                call()
            told.append(provider)
        later.append(threading.Thread(target=engine.store_key, args=("later", "k")))
        later[-1].start()
        return source(provider, login)

    async def astores(provider, login):
        return stores(provider, login)

    for storing in (stores, astores):
        engine.store_login("acme", aged)
        engine.set_login_source(storing)
        assert session.run("x").stop_reason == "stop"
        later[-1].join()
    assert len(told) == 8
    assert {entry.provider for entry in engine.stored_keys()} == {"acme", "later"}
    engine.store_login("acme", aged)
    engine.set_login_source(None)
    assert "no source of logins" in session.run("x").error_message
    for call in (lambda: engine.set_login_source("x"), lambda: make(login_source="x")):
        with pytest.raises(errors.InvalidArgumentError):
            call()


def test_headers_and_limits_of_the_network(make, work, service):
    network = {"headers": {"X-Team": "blue"}, "connect_timeout": 5, "idle_timeout": None, "max_requests_per_origin": 2}
    engine = make(models=service.models(), network=network)
    engine.create_session(work, model="acme/m", in_memory=True).run("x")
    assert service.asked[0][1]["x-team"] == "blue"


@pytest.mark.parametrize(
    "options",
    [
        {"models": ["acme/m"]},
        {"models": {"providers": 1}},
        {"models": "no JSON"},
        {"keys": {"openai": 5}},
        {"keys": {"openai": bl.Key(None)}},
        {"keys": "sk"},
        {"key_source": "sk"},
        {"network": {"unknown": 1}},
        {"network": {"connect_timeout": "long"}},
        {"network": {"connect_timeout": -1}},
        {"network": {"max_requests_per_origin": 0}},
        {"network": {"proxy": "environment"}},
        {"network": ["proxy"]},
        {"proxy": "no address"},
        {"agent_files": 5},
        {"worker_threads": -1},
        {"builtin_models": "no"},
    ],
    ids=str,
)
def test_bad_options_are_told(make, options):
    with pytest.raises(errors.InvalidArgumentError) as caught:
        make(**options)
    assert SECRET not in str(caught.value)


def test_no_error_shows_a_key(make):
    for options in ({"keys": {"openai": [SECRET]}}, {"keys": [SECRET]}, {"proxy": f"{SECRET}@no address"}):
        with pytest.raises(errors.InvalidArgumentError) as caught:
            make(**options)
        assert SECRET not in str(caught.value)
    with pytest.raises(errors.InvalidArgumentError) as caught:
        make().set_key("openai", SECRET.encode())
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(bl.Key(SECRET))


def events_of(result):
    return "".join(event.json for event in result.events)


def test_a_source_is_asked_for_the_key_of_each_request(make, work, service, tmp_path):
    asked = []

    def source(request):
        asked.append(request)
        return f"{SECRET}-{len(asked)}"

    engine = make(models=service.models(), key_source=source, record=tmp_path / "wire.jsonl")
    session = engine.create_session(work, model="acme/m")
    results = [session.run("x"), session.run("y")]
    assert [result.text for result in results] == ["Hello", "Hello again"]
    assert asked == [bl.KeyRequest("acme", "m", service.url)] * 2
    sent = [headers["authorization"] for _, headers, _ in service.asked]
    assert sent == [f"Bearer {SECRET}-1", f"Bearer {SECRET}-2"]
    told = [events_of(result) for result in results]
    told.append(session.path.read_text())
    engine.close()
    wire = (tmp_path / "wire.jsonl").read_text()
    assert "Hello again" in wire and [json.loads(line) for line in wire.splitlines()]
    assert not [text for text in [*told, wire] if SECRET in text]


@pytest.mark.parametrize("kind", ["coroutine", "key", "none", "changed"])
def test_forms_of_key_sources(make, work, service, kind):
    async def coroutine(request):
        await asyncio.sleep(0)
        return SECRET

    sources = {"coroutine": coroutine, "key": lambda request: bl.Key(SECRET, bearer=True), "none": lambda request: None}
    engine = make(models=service.models(), key_source=sources.get(kind, lambda request: "never"))
    if kind == "none":
        engine.set_key("acme", None)
    if kind == "changed":
        engine.set_key_source(lambda request: SECRET)
    engine.create_session(work, model="acme/m", in_memory=True).run("x")
    got = service.asked[0][1].get("authorization")
    assert got == (None if kind == "none" else f"Bearer {SECRET}")
    engine.set_key_source(None)
    engine.create_session(work, model="acme/m", in_memory=True).run("x")
    assert SECRET not in str(service.asked[1][1])


def test_a_coroutine_gives_keys_in_the_loop_of_its_engine(make, work, service):
    async def main():
        loop, seen = asyncio.get_running_loop(), []

        async def source(request):
            seen.append(asyncio.get_running_loop() is loop)
            return SECRET

        engine = make(aio.Engine, models=service.models(), key_source=source)
        session = await engine.create_session(work, model="acme/m", in_memory=True)
        assert (await session.run("x")).text == "Hello" and seen == [True]
        await session.close()

    asyncio.run(main())
    assert service.asked[0][1]["authorization"] == f"Bearer {SECRET}"


def test_a_source_that_fails_fails_the_request(make, work, service):
    def broken(request):
        raise RuntimeError("the vault is closed")

    engine = make(models=service.models(), key_source=broken)
    session = engine.create_session(work, model="acme/m", in_memory=True)
    result = session.run("x")
    assert result.stop_reason == "error" and "the vault is closed" in result.error_message
    assert "Traceback" not in events_of(result) and service.asked == []
    engine.set_key_source(lambda request: [SECRET])
    result = session.run("x")
    assert result.stop_reason == "error" and SECRET not in events_of(result) + result.error_message
    assert "list" in result.error_message


def test_an_abort_does_not_wait_for_a_key(make, work, service):
    cancelled = []

    async def source(request):
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def main():
        engine = make(aio.Engine, models=service.models(), key_source=source)
        session = await engine.create_session(work, model="acme/m", in_memory=True)
        run = session.prompt("x")
        await asyncio.sleep(0.1)
        await session.abort()
        assert (await run).aborted
        while not cancelled:
            await asyncio.sleep(0.01)
        await session.close()

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_recording_is_a_new_file(make, work, service, tmp_path):
    path = tmp_path / "wire.jsonl"
    engine = make(models=service.models(), keys={"acme": SECRET}, record=path)
    engine.create_session(work, model="acme/m", in_memory=True).run("What is it?")
    engine.close()
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds[:2] == ["request", "response"] and kinds[-1] == "end"
    text = path.read_text()
    assert "What is it?" in text and SECRET not in text
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(errors.FileExistsError):
        make(record=path)


def test_a_recording_is_whole_when_the_interpreter_ends(python, service, tmp_path):
    program = f"""
import branchline as bl
engine = bl.Engine(models={service.models()!r}, keys={{"acme": {SECRET!r}}}, record="wire.jsonl", proxy="direct")
session = engine.create_session(".", model="acme/m", in_memory=True)
assert session.run("What is it?").text == "Hello"
"""
    done = python(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    lines = [json.loads(line) for line in (tmp_path / "wire.jsonl").read_text().splitlines()]
    assert [lines[0]["kind"], lines[-1]["kind"]] == ["request", "end"]
    assert SECRET not in (tmp_path / "wire.jsonl").read_text()


@pytest.mark.parametrize("kind", ["function", "coroutine", "awaitable"])
def test_bodies_are_seen_and_replaced(make, work, service, kind):
    seen = []

    def function(request):
        seen.append(request)
        return {**request.body, "tenant": len(seen)}

    async def coroutine(request):
        await asyncio.sleep(0)
        return function(request)

    hooks = {"function": function, "coroutine": coroutine, "awaitable": lambda request: coroutine(request)}
    engine = make(models=service.models(), keys={"acme": SECRET}, payload_hook=hooks[kind])
    session = engine.create_session(work, model="acme/m", in_memory=True)
    assert session.run("x").text == "Hello"
    assert service.asked[0][2] == {**seen[0].body, "tenant": 1}
    assert seen == [bl.PayloadRequest("acme", "m", "openai-completions", seen[0].body)] and SECRET not in repr(seen)

    def changes(request):
        request.body.clear()

    engine.set_payload_hook(changes)
    session.run("y")
    assert service.asked[1][2]["model"] == "m" and "tenant" not in service.asked[1][2]

    def refuses(request):
        raise RuntimeError("no such tenant")

    for hook, says in [(refuses, "no such tenant"), (lambda request: [1], "a dictionary, or None, not a list")]:
        engine.set_payload_hook(hook)
        result = session.run("z")
        assert result.stop_reason == "error" and says in result.error_message
    assert len(service.asked) == 2
    engine.set_payload_hook(None)
    assert session.run("z").stop_reason == "stop"
    for call in (lambda: engine.set_payload_hook("x"), lambda: make(payload_hook="x")):
        with pytest.raises(errors.InvalidArgumentError):
            call()


def test_settings(work, tmp_path):
    with bl.Engine(
        agent_dir=tmp_path / "agent", settings={"defaultTools": ["read", "ls"], "defaultThinkingLevel": "off"}
    ) as engine:
        session = engine.create_session(work, model="scripted/demo")
        assert session.state.tools == ["read", "ls"] and session.state.thinking_level == "off"
    with pytest.raises(errors.InvalidArgumentError):
        bl.Engine(settings=["retry"])
