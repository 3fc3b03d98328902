"""Terminals and gateways over one home: who goes on with whose turns, and settings that change meanwhile."""

import asyncio
import shlex

from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, Ran, asked_in, ended, is_one_plain_sentence
from tests.cli.test_gateway_command import start

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.store.sqlite import SqliteStore
from everloop.testing import Say, Shown
from everloop.testing.model_server import ModelServer

ANNA = "web:anna"


async def leave_a_letter(person: Person) -> None:
    store = await SqliteStore.connect(person.home)
    await store.receive(Inbound(Address.parse(ANNA), "left", Said(said("hello from anna"), ANNA, ANNA), ANNA))
    await store.close()


async def test_what_a_guest_was_left_with_waits_for_the_gateway_and_not_for_a_terminal(
    person: Person, model: ModelServer
):
    model.play(lambda shown: Say("hello"))
    await leave_a_letter(person)
    once = await person.run("agent", "-m", "hi")
    chat = await person.run("agent", typed=b"hi again\n")
    hers = await person.run("agent", "-s", ANNA, "-m", "hi")
    assert (once, chat.out) == (Ran(0, "hello\n", ""), "hello\n")
    assert (hers.status, hers.out) == (1, "")
    assert is_one_plain_sentence(hers.err)
    how = shlex.split(hers.err.partition("read it with: everloop ")[2])
    assert [asked_in(shown)[-1] for shown in model.prompts] == ["hi", "hi again"]
    gateway = await start(person, 0)
    await model.called(3)
    assert (await gateway.stop()).status == 0
    assert asked_in(model.prompts[-1]) == ["hello from anna"]
    assert "hello from anna" in (await person.run(*how)).out


def by_file(person: Person, model: ModelServer, name: str) -> None:
    for variable in [*person.environment]:
        if variable.startswith(("EVERLOOP_AGENTS", "EVERLOOP_PROVIDERS")):
            del person.environment[variable]
    person.home.mkdir(exist_ok=True)
    account = f'[providers.custom]\napi_base = "{model.url}"\n'
    (person.home / "config.toml").write_text(f'{account}[agents.defaults]\nmodel = "custom/{name}"\n')


def naming(shown: Shown) -> Say:
    return Say(f"I am {shown.model}")


async def test_a_chat_answers_with_the_model_that_is_set_by_then(person: Person, model: ModelServer):
    model.play(naming)
    by_file(person, model, "one")
    async with AtTerminal(person) as terminal:
        await terminal.sees("custom/one")
        terminal.type("who are you?")
        await terminal.sees("I am one")
        await terminal.sees("> ")
        by_file(person, model, "two")
        terminal.type("and now?")
        await terminal.sees("(the settings have changed: custom/two answers)")  # before the answer
        await terminal.sees("I am two")
        await terminal.sees("> ")
        (person.home / "config.toml").write_text("[agents")
        terminal.type("still there?")
        await terminal.sees("The settings have changed and cannot be used:")
        await terminal.sees("I am two")
        await terminal.sees("> ")
        terminal.type("/exit")
        assert await terminal.ends() == 0


async def test_a_chat_takes_over_a_key_that_a_command_keeps(person: Person, model: ModelServer):
    model.play(naming)
    by_file(person, model, "one")
    chat = await person.start("agent")
    assert chat.stdin is not None
    assert chat.stdout is not None
    chat.stdin.write(b"one\n")
    assert await chat.stdout.readline() == b"I am one\n"
    assert (await person.run("models", "key", "set", "custom", typed=b"sk-later")).status == 0
    async with asyncio.timeout(60):
        while model.requests[-1].headers.get("Authorization") != "Bearer sk-later":
            chat.stdin.write(b"again\n")
            assert await chat.stdout.readline() == b"I am one\n"
    assert (await ended(chat)).status == 0
