"""Models that cannot be had, asked or opened, at the worst moment: a turn still ends, and someone else answers."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

import everloop
from everloop.app.records import open_records
from everloop.errors import ContextOverflow, HostFailed, ModelMissing, TurnFailed
from everloop.ports.provider import Reply
from everloop.providers.catalog import HOSTS
from everloop.providers.logins import kept_as
from everloop.providers.logins.tokens import LoginTokens
from everloop.providers.models import ResolvedModel, in_process
from everloop.store.vault import KEY_FILE, PASSPHRASE
from everloop.testing import Call, Fail, Line, Say, ScriptedModel, Shown, Wait
from everloop.testing.model_server import ModelServer

Opener = Callable[..., AbstractAsyncContextManager[everloop.Agent]]
SECRET = "sk-canary-trouble"


@pytest.fixture(autouse=True)
def nobodys_keys(monkeypatch) -> None:
    for host in HOSTS.values():
        for variable in host.key_variables:
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv(PASSPHRASE, raising=False)


class Mute(ModelServer):
    """Answers as the script says, and whoever asks for its models with something else than a list."""

    status = 503

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.Response(status=self.status, text="<html>busy</html>", content_type="text/html")
        return await super()._answer(request)


@pytest.fixture
async def mute() -> AsyncIterator[Mute]:
    async with Mute() as server:
        yield server


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(lambda shown: Say("hello"), models=["usual"]) as server:
        yield server


@pytest.fixture
async def local() -> AsyncIterator[ModelServer]:
    """A server of this machine with a model that no other has."""
    async with ModelServer(lambda shown: Say("from here"), models=["tiny-in-a-test"]) as server:
        yield server


@pytest.fixture
def house(tmp_path: Path, server: ModelServer, local: ModelServer) -> Opener:
    """Open everloop with the model mine/usual, and the preset `fast`, which is the local one."""

    def open(model: str = "mine/usual", **defaults) -> AbstractAsyncContextManager[everloop.Agent]:
        settings = {
            "agents": {"defaults": {"model": model, **defaults}, "shutdown_seconds": 0.0},
            "providers": {"mine": {"api_base": server.url, "api_key": "k"}, "ollama": {"api_base": local.url}},
            "models": {"fast": {"model": "tiny-in-a-test"}},
        }
        return everloop.open(home=tmp_path / "home", settings=settings)

    return open


# A window that nobody tells


def asking(server: ModelServer, home: Path, **defaults: object) -> AbstractAsyncContextManager[everloop.Agent]:
    providers = {"mine": {"api_base": server.url, "api_key": "k"}}
    agents = {"defaults": {"model": "mine/scripted", **defaults}}
    return everloop.open(home=home, settings={"agents": agents, "providers": providers})


@pytest.mark.parametrize("status", [503, 200, 429])
async def test_what_the_host_calls_too_long_is_not_sent_again_when_its_window_cannot_be_asked_for(
    mute, tmp_path, status
):
    mute.status = status
    mute.play([*[Fail(ContextOverflow("context_length_exceeded"))] * 5, Say("at last")])
    async with asking(mute, tmp_path / "home") as agent:
        with pytest.raises(TurnFailed, match="too long for the model") as failed:
            await agent.ask("hi")
    assert (failed.value.reason, mute.calls) == ("context", 1)


@pytest.mark.parametrize("status", [503, 200, 429])
async def test_what_we_think_too_long_is_sent_and_the_steps_of_the_turn_are_counted_all_the_same(
    mute, tmp_path, status
):
    def look_around(shown: Shown) -> Line:
        return Call("list_dir", {"path": "."}) if shown.tools and shown.step < 20 else Say(f"after {shown.step}")

    mute.status = status
    mute.play(look_around)
    async with asking(mute, tmp_path / "home", max_tool_iterations=3) as agent:
        answer = await agent.ask("x " * 30_000)  # more than the 8,192 tokens of a model that nobody knows
    assert (answer.content, answer.steps, mute.calls) == ("after 3", 4, 4)
    assert [bool(prompt.tools) for prompt in mute.prompts] == [True, True, True, False]


# An answer that breaks off


async def test_an_answer_that_ends_in_an_error_that_passes_is_asked_for_once_more(house, server):
    gate = asyncio.Event()
    server.play([[Say("half"), Wait(gate), Fail(HostFailed("overloaded"))], Say("whole")])
    async with house() as agent:
        seen = []
        async for event in agent.stream("hi"):
            seen.append(event)
            if event.name == "stream_chunk":
                gate.set()
    assert [event.data["text"] for event in seen if event.name == "stream_chunk"] == ["half", "whole"]
    assert [event.data["kept"] for event in seen if event.name == "stream_end"] == [False, True]
    assert (seen[-1].data["answer"].content, server.calls) == ("whole", 2)


# A local model that was chosen


async def test_a_preset_that_only_names_a_local_model_is_still_answered_by_it_after_a_restart(house, server, local):
    async with house() as agent:
        assert (await agent.ask("/model fast")).content == (
            "ollama/tiny-in-a-test answers in this conversation from now on."
        )
    async with house() as agent:
        answer = await agent.ask("hi")
        told = (await agent.ask("/model")).content
    assert (answer.content, answer.model, server.calls) == ("from here", "ollama/tiny-in-a-test", 0)
    assert told.startswith("fast (ollama/tiny-in-a-test) answers in this conversation.\n")


async def test_when_it_is_gone_the_default_answers_and_whoever_asks_is_told(house, server, local, caplog):
    async with house() as agent:
        await agent.ask("/model fast")
    local.models = ["another"]
    async with house() as agent:
        answers = [await agent.ask(text) for text in ("one", "two")]
        told = (await agent.ask("/model")).content
    assert [(answer.content, answer.model) for answer in answers] == [("hello", "mine/usual")] * 2
    assert told.startswith("mine/usual (in place of fast, which cannot be had) answers in this conversation.\n")
    gone = [record.message for record in caplog.records if "cannot be asked any more" in record.message]
    assert len(gone) == 1  # it is not looked for at every step
    assert gone[0].startswith("fast cannot be asked any more, mine/usual answers: ")
    local.models = ["tiny-in-a-test"]
    async with house() as agent:
        assert (await agent.ask("three")).content == "from here"


# A vault that does not open


async def keep(home: Path, name: str, value: str) -> None:
    async with open_records(home) as records:
        await records.vault.set(name, value)


@pytest.fixture(params=["file", "passphrase"])
async def why(request, tmp_path: Path, monkeypatch) -> str:
    """The key of openai is in the vault and cannot be read; this is why."""
    if request.param == "passphrase":
        monkeypatch.setenv(PASSPHRASE, "open sesame")
    await keep(tmp_path / "home", "key:openai", SECRET)
    if request.param == "passphrase":
        monkeypatch.delenv(PASSPHRASE)
        return (
            "key:openai in the vault cannot be read: it was locked with a passphrase. Set it in "
            "EVERLOOP_VAULT_PASSPHRASE"
        )
    key = tmp_path / "home" / KEY_FILE
    key.unlink()
    return (
        f"key:openai in the vault cannot be read: the key file {key} is missing. Bring it back from where it was "
        "copied to"
    )


async def test_a_key_that_cannot_be_read_is_missed_only_by_the_model_that_needs_it(house, why):
    async with house() as agent:
        assert (await agent.ask("hi")).content == "hello"
        told = (await agent.ask("/model openai/gpt-x")).content
        assert (await agent.ask("hi")).content == "hello"
    assert told == f"The model stays as it is: openai/gpt-x needs its key. {why}."


@pytest.mark.parametrize("name", ["openai/gpt-x", "gpt-x"])
async def test_a_start_that_needs_it_ends_with_the_reason(house, why, name):
    with pytest.raises(ModelMissing) as missing:
        async with house(name):
            pass
    assert str(missing.value) == f"{name} needs its key. {why}"


async def test_a_fallback_that_needs_it_is_left_out_and_named(house, why, caplog):
    async with house(fallbacks=["openai/gpt-x", "fast"]) as agent:
        assert (await agent.ask("hi")).content == "hello"
        assert agent.notice == f"The fallback openai/gpt-x is left out: openai/gpt-x needs its key. {why}."
    assert [record.message for record in caplog.records if record.name == "everloop.models"] == [agent.notice]


@pytest.fixture
async def locked_login(tmp_path: Path) -> Path:
    """Someone is logged in to Codex, and the key of the vault may be read by others since."""
    tokens = LoginTokens("aaa.bbb.ccc", time.time() + 9999, "r", "x")
    await keep(tmp_path / "home", kept_as("openai-codex"), msgspec.json.encode(tokens).decode())
    key = tmp_path / "home" / KEY_FILE
    key.chmod(0o644)
    return key


async def test_a_login_that_cannot_be_read_ends_the_turn_with_the_reason(house, locked_login):
    async with house("openai-codex/gpt-x") as agent:
        with pytest.raises(TurnFailed) as failed:
            await agent.ask("hi")
    assert failed.value.reason == "key"
    assert str(failed.value).startswith(
        f"login:openai-codex in the vault cannot be read: the key file {locked_login} can be used by others (mode 644)."
    )


async def test_a_login_that_cannot_be_read_is_answered_for_by_a_fallback(house, locked_login):
    async with house("openai-codex/gpt-x", fallbacks=["mine/usual"]) as agent:
        seen = [event async for event in agent.stream("hi")]
    answer = seen[-1].data["answer"]
    notices = [event.data["notice"] for event in seen if event.name == "stream_chunk" and event.data["notice"]]
    assert (answer.content, answer.model) == ("hello", "mine/usual")
    assert notices == ["openai-codex/gpt-x does not answer (key refused); asking mine/usual"]


# The end


class Slow:
    """A model of this process that never comes to an end by itself. Tells what happens to it, in order."""

    name = "embedded"

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.asked = asyncio.Event()

    async def reply(self, prompt, show) -> Reply:
        self.happened.append("asked")
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # it takes a while to end, too
            self.happened.append("left" if "closed" not in self.happened else "left, though it was closed")
        raise AssertionError

    async def warm(self) -> None:
        pass

    async def close(self) -> None:
        self.happened.append("closed")


async def test_a_model_of_this_process_that_was_chosen_later_is_closed_after_the_last_turn(house):
    slow = Slow()

    def made(name: str) -> ResolvedModel:
        return in_process(slow, 8192, "", slow.warm)

    async with house() as agent:
        agent._live.now.models._presets._models._embedded = made
        await agent.ask("/model embedded")
        talking = asyncio.create_task(agent.ask("hi"))
        await slow.asked.wait()
    assert slow.happened == ["asked", "left", "closed"]
    with pytest.raises(everloop.EverloopError):
        await talking


async def test_whoever_loses_patience_with_a_house_that_closes_leaves_nothing_running_in_it(tmp_path):
    before = asyncio.all_tasks()
    model, leaving = ScriptedModel([[Say("half "), Wait(asyncio.Event())], Say("whole")]), asyncio.Event()

    async def live() -> None:
        async with everloop.open(home=tmp_path / "home", provider=model) as agent:
            talking.append(asyncio.create_task(agent.ask("hi")))
            await model.called(1)
            leaving.set()

    talking: list[asyncio.Task[everloop.Answer]] = []
    living = asyncio.create_task(live())
    await leaving.wait()
    await asyncio.sleep(0)
    living.cancel()
    with pytest.raises(asyncio.CancelledError):
        await living
    with pytest.raises(everloop.EverloopError):
        await talking[0]
    assert asyncio.all_tasks() - before == set()
    async with everloop.open(home=tmp_path / "home", provider=model) as agent:
        await agent.finish("api:default")
        assert [outbound.text for outbound in await agent.unshown("api:default")] == ["whole"]
