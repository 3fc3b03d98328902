"""`everloop onboard`: from nothing to a first answer, at a terminal and by options alone, with a host on loopback."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession, web
from tests.channels.parrot import PLUGGED, TOKEN, Cage
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, Ran, is_one_plain_sentence
from tests.cli.test_models_command import LOCAL, files_with, nowhere
from tests.cli.test_service_command import manager, orders_in
from tests.effort import in_full

from everloop.app.onboarding import provider_called
from everloop.providers.keys import Keys
from everloop.providers.offered import offered
from everloop.settings import load
from everloop.testing import Call, Say, Shown, Wait
from everloop.testing.model_server import ModelServer

__all__ = ["manager", "nowhere"]
KEY = "sk-canary-of-onboarding-51"
PASSWORD = "correct horse, battery"


def ready(shown: Shown) -> Say | Call:
    """Passes the trial, and answers anything else."""
    return Call("add", {"a": 17, "b": 25}) if "add 17" in str(shown.said) else Say("Ready.")


@pytest.fixture
def person(person: Person, nowhere: str, model: ModelServer) -> Person:
    """Nothing but a machine on which no local server answers."""
    model.play(ready)
    for name in [name for name in person.environment if name.startswith("EVERLOOP_") and name != "EVERLOOP_HOME"]:
        del person.environment[name]
    for name in LOCAL:
        person.environment[f"EVERLOOP_PROVIDERS__{name.upper()}__API_BASE"] = nowhere
    return person


QUESTIONS = (
    ("Number [", "SERVER"),
    ("Its address", "ADDRESS"),
    ("The key of this server", KEY),
    ("What are you called [owner]", "Ann"),
    ("opens it. [y/N]", "y"),
    ("The new password", PASSWORD),
    ("Once more", PASSWORD),
    ("or none [none]", ""),
    ("as a service? [y/N]", ""),
)


async def answer(seat: AtTerminal, model: ModelServer, questions: tuple[tuple[str, str], ...]) -> None:
    for question, said in questions:
        await seat.sees(question)
        number = await _number_of_own_server(seat) if said == "SERVER" else ""
        seat.type({"SERVER": number, "ADDRESS": model.url.removeprefix("http://").removesuffix("/v1")}.get(said, said))


async def _number_of_own_server(seat: AtTerminal) -> str:
    line = next(line for line in seat.raw.decode().splitlines() if "a server of your own" in line)
    return line.split()[0]


async def test_from_nothing_to_a_first_answer_at_a_terminal(person: Person, model: ModelServer):
    async with AtTerminal(person, "onboard") as seat:
        await answer(seat, model, QUESTIONS)
        assert await seat.ends() == 0
        shown = seat.raw.decode()
        assert seat.state() == seat.before
    assert "answer: ok (" in shown
    assert "tool call: ok (" in shown
    assert [line.split("  ")[1] for line in shown.splitlines()[-3:]] == [
        "everloop",
        "everloop gateway",
        "everloop doctor",
    ]
    assert KEY not in shown
    assert PASSWORD not in shown
    settings = load(person.home, {})
    assert settings.agents.defaults.model == "custom/scripted"
    assert settings.providers.accounts["custom"].api_base == model.url
    assert "# Who answers: provider/model" in (person.home / "config.toml").read_text()
    assert files_with(KEY, person.home) == []
    assert [path.name for path in sorted((person.home / "workspace").glob("*.md"))] == [
        *("AGENTS.md", "IDENTITY.md", "SOUL.md", "TOOLS.md", "USER.md")
    ]
    ran = await person.run("-m", "hi")
    assert (ran.status, ran.out) == (0, "Ready.\n")
    assert model.requests[-1].headers["Authorization"] == f"Bearer {KEY}"
    assert "Ann" in (await person.run("users", "list")).out


@pytest.mark.shortened
@pytest.mark.parametrize("at", range(0, len(QUESTIONS), in_full(1, 3)), ids=lambda at: QUESTIONS[at][0].strip(" ["))
async def test_ctrl_c_at_each_question_leaves_what_was_finished_and_says_so(
    person: Person, model: ModelServer, at: int
):
    async with AtTerminal(person, "onboard") as seat:
        await answer(seat, model, QUESTIONS[:at])
        await seat.sees(QUESTIONS[at][0])
        seat.process.send_signal(signal.SIGINT)
        assert await seat.ends() == 130
        shown = seat.raw.decode().replace("\r\n", "\n")
        assert seat.state() == seat.before
    told = shown[shown.rindex("\nWritten: ") :]
    done = at > 2
    assert (person.home / "config.toml").exists() == ("agents.defaults.model" in told) == done
    assert ("your name: Ann" in told, "the model" in told.partition("Not done")[2]) == (at > 3, not done)
    assert "Not done: " in told
    assert "the service." in told
    assert "Traceback" not in shown


async def test_ctrl_c_while_the_model_is_asked_keeps_nothing(person: Person, model: ModelServer):
    gate = asyncio.Event()
    model.play([Wait(gate), Say("too late")])
    async with AtTerminal(person, "onboard") as seat:
        await answer(seat, model, QUESTIONS[:3])
        await model.called(1)
        seat.process.send_signal(signal.SIGINT)
        assert await seat.ends() == 130
        assert "Written: nothing. Not done: the model, your name" in seat.raw.decode()
    gate.set()
    assert await kept_in(person) == (False, "")


async def test_a_service_is_installed_when_the_options_say_so(person: Person, model: ModelServer, manager: Path):
    given = ("--address", model.url, "--model", "scripted", "--service", "--json")
    ran = await person.run("onboard", *given)
    assert ran.status == 0
    assert msgspec.json.decode(ran.out)["written"][-1].endswith(".config/systemd/user/everloop.service")
    assert orders_in(manager)[-1] == "--user restart everloop"


async def test_run_again_it_shows_what_is_set_and_changes_nothing(person: Person, model: ModelServer):
    address = ("--address", model.url, "--model", "scripted", "--key-stdin", "--yes")
    assert (await person.run("onboard", *address, typed=KEY.encode())).status == 0
    before = (person.home / "config.toml").read_bytes()
    async with AtTerminal(person, "onboard") as seat:
        await seat.sees("1  keep custom/scripted")
        for question in ("Number [1]", "called [owner]", "opens it. [y/N]", "[none]", "service? [y/N]"):
            await seat.sees(question)
            seat.type("")
        assert await seat.ends() == 0
        assert "Nothing had to be written." in seat.raw.decode()
    again = await person.run("onboard", "--yes", "--json")
    assert msgspec.json.decode(again.out)["written"] == []
    assert (person.home / "config.toml").read_bytes() == before


async def test_killed_in_the_middle_what_was_finished_stays_and_the_rest_goes_on(person: Person, model: ModelServer):
    async with AtTerminal(person, "onboard") as seat:
        await answer(seat, model, QUESTIONS[:4])
        await seat.sees("Set a password")
        seat.process.send_signal(signal.SIGKILL)
        await seat.process.wait()
    ran = await person.run("onboard", "--yes", "--password-env", "PW")
    assert (ran.status, "PW is not set" in ran.err) == (1, True)
    person.environment["PW"] = PASSWORD
    ran = await person.run("onboard", "--yes", "--password-env", "PW", "--json")
    assert msgspec.json.decode(ran.out)["written"] == ["the password of the page"]
    assert msgspec.json.decode(ran.out)["model"] == "custom/scripted"


async def refuse(request: web.BaseRequest) -> web.Response:
    shown = request.headers.get("Authorization", "")
    return web.json_response({"error": {"message": f"no entry with {shown}"}}, status=401)


def guarded_host() -> AbstractAsyncContextManager[str]:
    """A host that refuses every key, and repeats it, as careless ones do."""
    return served(refuse)


@asynccontextmanager
async def served(answer: Callable[[web.BaseRequest], Awaitable[web.Response]]) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def kept_in(person: Person) -> tuple[bool, str]:
    """Whether there are settings, and which keys there are."""
    return (person.home / "config.toml").exists(), (await person.run("models", "key", "list")).out


@pytest.mark.parametrize("model_given", [(), ("--model", "large")])
async def test_a_wrong_key_is_told_and_nothing_is_kept(person: Person, model_given: tuple[str, ...]):
    async with guarded_host() as url:
        given = ("--address", url, *model_given, "--key-stdin", "--yes")
        ran = await person.run("onboard", *given, typed=KEY.encode())
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("everloop: ")
    assert "refuses the key" in ran.err
    assert KEY not in ran.err
    assert await kept_in(person) == (False, "")


async def test_a_wrong_key_at_a_terminal_can_be_typed_again(person: Person, model: ModelServer):
    async with guarded_host() as url, AtTerminal(person, "onboard") as seat:
        await seat.sees("Number [")
        seat.type(await _number_of_own_server(seat))
        await seat.sees("Its address")
        seat.type("models.example.org")
        await seat.sees("'models.example.org' is no address")
        seat.type(url)
        await seat.sees("The key of this server")
        seat.type("sk-wrong")
        await seat.sees("(Enter: something else)")
        seat.type("")
        await seat.sees("Choose again? [Y/n]")
        seat.type("")
        await answer(seat, model, QUESTIONS)
        assert await seat.ends() == 0
    assert load(person.home, {}).providers.accounts["custom"].api_base == model.url


async def test_a_server_that_lists_no_models_is_asked_for_the_one_that_somebody_names(
    person: Person, model: ModelServer
):
    async def only_talks(request: web.BaseRequest) -> web.Response:
        if request.path.endswith("/models"):
            return web.Response(text="<html>")
        async with (
            ClientSession() as session,
            session.post(
                f"{model.url}/chat/completions", data=await request.read(), headers={"Content-Type": "application/json"}
            ) as answer,
        ):
            return web.Response(body=await answer.read(), status=answer.status, content_type=answer.content_type)

    async with served(only_talks) as url, AtTerminal(person, "onboard") as seat:
        await seat.sees("Number [")
        seat.type(await _number_of_own_server(seat))
        for question, said in (
            *(("Its address", url), ("key of this server", ""), ("The name of the model (Enter", "")),
            *(("Choose again? [Y/n]", ""), ("Number [", await _number_of_own_server(seat)), ("Its address", url)),
            *(("key of this server", ""), ("The name of the model (Enter", "scripted"), ("called [owner]", "")),
        ):
            await seat.sees(question)
            seat.type(said)
        await seat.sees("opens it. [y/N]")
        seat.process.send_signal(signal.SIGINT)
        assert await seat.ends() == 130
    settings = load(person.home, {})
    assert settings.agents.defaults.model == "custom/scripted"
    assert settings.providers.accounts["custom"].api_base == url


async def test_a_model_that_does_not_pass_is_not_kept_unless_it_is_not_tried(person: Person, model: ModelServer):
    model.play(lambda shown: Say("I would rather talk."))
    given = ("--address", model.url, "--model", "scripted", "--yes")
    ran = await person.run("onboard", *given)
    assert (ran.status, "it did not call the tool" in ran.err) == (1, True)
    assert await kept_in(person) == (False, "")
    told = msgspec.json.decode((await person.run("onboard", *given, "--json")).out)
    assert (told["model"], [each["ok"] for each in told["tests"]]) == ("", [True, False])
    assert (await person.run("onboard", *given, "--skip-test")).status == 0
    assert load(person.home, {}).agents.defaults.model == "custom/scripted"


async def test_a_server_that_is_not_there_yet_is_kept_untried_by_whoever_says_so(person: Person, nowhere: str):
    given = ("--address", nowhere, "--model", "large")
    ran = await person.run("onboard", *given)
    assert (ran.status, "cannot be reached" in ran.err, await kept_in(person)) == (1, True, (False, ""))
    assert (await person.run("onboard", *given, "--skip-test")).status == 0
    assert load(person.home, {}).agents.defaults.model == "custom/large"


async def test_by_options_alone_an_existing_file_is_edited_and_not_overwritten(person: Person, model: ModelServer):
    person.home.mkdir(exist_ok=True)
    (person.home / "config.toml").write_text("# mine\n[gateway]\nport = 8080  # through the firewall\n")
    person.environment["MY_KEY"] = KEY
    ran = await person.run("onboard", "--address", model.url, "--key-env", "MY_KEY", "--name", "Ann", "--json")
    told = msgspec.json.decode(ran.out)
    assert (ran.status, told["model"], [each["ok"] for each in told["tests"]]) == (0, "custom/scripted", [True, True])
    assert told["written"] == [
        "agents.defaults.model = custom/scripted",
        "the key of custom, in the vault",
        "your name: Ann",
    ]
    assert (person.home / "config.toml").read_text() == (
        '# mine\n[gateway]\nport = 8080  # through the firewall\n\n[agents.defaults]\nmodel = "custom/scripted"\n\n'
        f'[providers.custom]\napi_base = "{model.url}"\n'
    )
    assert not (person.home / "workspace").exists()


async def test_a_file_that_cannot_be_read_is_to_be_mended_first(person: Person, model: ModelServer):
    person.home.mkdir(exist_ok=True)
    (person.home / "config.toml").write_text("[gateway\n")
    ran = await person.run("onboard", "--address", model.url, "--yes")
    assert (ran.status, ran.out, is_one_plain_sentence(ran.err), "line 1" in ran.err) == (1, "", True, True)


async def test_a_local_server_is_found_by_itself(person: Person, model: ModelServer):
    person.environment["EVERLOOP_PROVIDERS__VLLM__API_BASE"] = model.url
    ran = await person.run("onboard", "--yes", "--json")
    told = msgspec.json.decode(ran.out)
    assert (ran.status, told["model"], told["failed"]) == (0, "vllm/scripted", [])


async def test_a_key_of_the_environment_is_found_and_another_provider_is_asked_for_one(
    person: Person, model: ModelServer
):
    for name in ("OPENAI", "GROQ"):
        person.environment[f"EVERLOOP_PROVIDERS__{name}__API_BASE"] = model.url
    person.environment["OPENAI_API_KEY"] = "sk-canary-of-the-environment"
    async with AtTerminal(person, "onboard") as seat:
        await seat.sees("1  OpenAI (GPT): key: OPENAI_API_KEY, 1 model\r\n")
        await seat.sees("another provider")
        number = next(line.split()[0] for line in seat.raw.decode().splitlines() if "another provider" in line)
        for question, said in (
            *(
                ("Number [1]", number),
                ("Which [openai]", "clade"),
                ("did you mean claude?)", "qroq"),
                ("did you mean groq?)", "Groq"),
            ),
            *(("key of groq, which is not shown: ", KEY), ("called [owner]", "")),
        ):
            await seat.sees(question)
            seat.type(said)
        await seat.sees("Set a password")
        seat.process.send_signal(signal.SIGINT)
        assert await seat.ends() == 130
    assert model.requests[-1].headers["Authorization"] == f"Bearer {KEY}"
    assert load(person.home, {}).agents.defaults.model == "groq/scripted"
    assert (await person.run("models", "key", "list")).out == "groq\n"


async def test_a_key_that_another_one_comes_before_is_kept_and_said_to_be_barred(person: Person, model: ModelServer):
    person.environment["EVERLOOP_PROVIDERS__OPENAI__API_BASE"] = model.url
    person.environment["OPENAI_API_KEY"] = "sk-canary-of-the-environment"
    given = ("--provider", "openai", "--model", "scripted", "--key-stdin")
    ran = await person.run("onboard", *given, "--json", typed=KEY.encode())
    told = msgspec.json.decode(ran.out)
    barred = "OPENAI_API_KEY comes before the key in the vault: unset OPENAI_API_KEY, also where each login sets it"
    assert (ran.status, told["failed"], told["model"]) == (1, [f"the model: {barred}"], "openai/scripted")
    shown = (await person.run("onboard", *given, typed=KEY.encode())).err
    assert f"openai/scripted does not answer yet: {barred}." in shown
    person.environment["OPENAI_API_KEY"] = KEY
    assert (await person.run("onboard", *given, typed=KEY.encode())).status == 0
    del person.environment["OPENAI_API_KEY"]
    assert (await person.run("-m", "hi")).status == 0
    assert model.requests[-1].headers["Authorization"] == f"Bearer {KEY}"


async def test_a_json_file_stays_one(person: Person, model: ModelServer):
    person.home.mkdir(exist_ok=True)
    (person.home / "config.json").write_text('{"gateway": {"port": 8080}}')
    assert (await person.run("onboard", "--address", model.url, "--model", "scripted")).status == 0
    assert msgspec.json.decode((person.home / "config.json").read_text()) == {
        "gateway": {"port": 8080},
        "agents": {"defaults": {"model": "custom/scripted"}},
        "providers": {"custom": {"api_base": model.url}},
    }


async def test_a_kept_key_is_not_sent_to_an_address_that_somebody_has_just_written(person: Person, model: ModelServer):
    await person.run("models", "key", "set", "openai", typed=KEY.encode())
    given = ("--provider", "openai", "--address", model.url, "--model", "scripted", "--yes")
    ran = await person.run("onboard", *given)
    assert (ran.status, "would be sent to the new address" in ran.err) == (1, True)
    assert [each.headers.get("Authorization", "") for each in model.requests] == []


async def test_what_the_environment_says_is_told_and_not_written_over(person: Person, model: ModelServer):
    person.environment["EVERLOOP_AGENTS__DEFAULTS__MODEL"] = "openai/gpt-5"
    ran = await person.run("onboard", "--address", model.url, "--model", "scripted", "--yes")
    assert (ran.status, "EVERLOOP_AGENTS__DEFAULTS__MODEL lies over the file" in ran.err) == (1, True)
    assert await kept_in(person) == (False, "")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((), 2),
        (("--json",), 2),
        (("--model", "scripted"), 1),
        (("--provider", "opnai", "--yes"), 1),
        (("--provider", "openai", "--key-env", "NOBODY_SET_THIS"), 1),
        (("--key-env", "A", "--key-stdin"), 2),
        (("--address", "nowhere", "--model", "x"), 1),
    ],
)
async def test_wrong_options_are_told_and_nothing_is_written(person: Person, words: tuple[str, ...], status: int):
    ran: Ran = await person.run("onboard", *words)
    first = ran.err.split("\n\n")[0].removesuffix("\n") + "\n"
    assert (ran.status, is_one_plain_sentence(first)) == (status, True)
    assert not (person.home / "config.toml").exists()


async def test_a_channel_is_set_up_with_a_live_test_and_a_refused_one_can_be_left(person: Person, model: ModelServer):
    person.environment["PYTHONPATH"] = str(PLUGGED)
    given = ("--address", model.url, "--model", "scripted", "--yes")
    assert (await person.run("onboard", *given)).status == 0
    async with Cage().open() as cage, AtTerminal(person, "onboard") as seat:
        for question in ("Number [1]", "called [owner]", "opens it. [y/N]"):
            await seat.sees(question)
            seat.type("")
        for token in ("wrong-canary-0001", TOKEN):
            await seat.sees("or none [none]")
            seat.type("parrot")
            for question, said in (("parrot lives: ", cage.url), ("told you: ", token), ("left out): ", "")):
                await seat.sees(question)
                seat.type(said)
        await seat.sees("It answers: polly")
        await seat.sees("or none [none]")
        seat.type("")
        await seat.sees("service? [y/N]")
        seat.type("")
        assert await seat.ends() == 0
        shown = seat.raw.decode()
    assert "Nothing was written" in shown
    assert TOKEN not in shown
    assert "channels.parrot" in shown[shown.rindex("Written: ") :]
    assert "parrot" in load(person.home, {}).channels


async def test_the_first_chat_in_an_empty_home_names_it_once(person: Person, model: ModelServer):
    person.environment["EVERLOOP_PROVIDERS__VLLM__API_BASE"] = model.url
    for words, is_told in (("everloop onboard", True), ("session cli:direct", False)):
        async with AtTerminal(person) as seat:
            await seat.sees(words)
            await seat.sees("> ")
            seat.send("\x04")
            assert await seat.ends() == 0
            assert ("Nothing is set up here yet" in seat.raw.decode()) == is_told


def test_a_provider_is_known_by_its_name_and_by_what_people_call_it():
    offers = offered(Keys({}, {}, {}, Path()))
    typed = ("openai", "Claude", "google", "grok", "Groq", "Hugging Face", "github", "z.ai", "")
    assert [found and found.name for found in (provider_called(word, offers) for word in typed)] == [
        *("openai", "anthropic", "gemini", "xai", "groq", "huggingface", "github", None, None)
    ]
