"""What a person sees when things do not go as planned: an answer is stopped, lost, cut, or given by another model."""

import asyncio
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, Ran, ended, is_one_plain_sentence, said_in

from everloop.errors import StreamCut
from everloop.testing import End, Fail, Say, Wait
from everloop.testing.model_server import ModelServer

STOPPED = "⏹ Stopped 1 task(s).\n"
CANCELLED = "everloop: stopped; what was said and done so far stays\n"
CONVERSATION = [("user", "hi"), ("assistant", "operation cancelled by user"), ("user", "again")]
PATIENCE = 30.0  # seconds; what has to happen at once would never happen while something else is waited for


# Stopping


@pytest.fixture
async def talking(person: Person, model: ModelServer) -> asyncio.subprocess.Process:
    """Someone is being answered, and the answer never comes to its end."""
    model.play(lambda shown: Wait(model.gates["never"]))
    process = await person.start("agent", "-m", "hi")
    await model.called(1)
    return process


async def test_a_stop_ends_the_answer_that_another_process_is_given(person, model, talking):
    async with asyncio.timeout(PATIENCE):
        assert await person.run("agent", "-m", "/stop") == Ran(0, STOPPED, "")
        assert await ended(talking) == Ran(130, "", CANCELLED)
        await model.left(1)
    model.play([Say("fine")])
    assert await person.run("agent", "-m", "again") == Ran(0, "fine\n", "")
    assert said_in(model.prompts[-1]) == CONVERSATION


async def test_a_stop_as_the_first_line_of_a_pipe_does_so_too(person, model, talking):
    async with asyncio.timeout(PATIENCE):
        assert await person.run("agent", typed=b"/stop\n") == Ran(0, STOPPED, "")
        assert await ended(talking) == Ran(130, "", CANCELLED)


@pytest.mark.parametrize("typed", [None, b"/stop\n"], ids=["-m", "a pipe"])
async def test_what_was_killed_is_stopped_and_not_begun_again(person, model, talking, typed):
    talking.kill()
    await talking.wait()
    async with asyncio.timeout(PATIENCE):
        stopping = ["agent", "-m", "/stop"] if typed is None else ["agent"]
        assert await person.run(*stopping, typed=typed or b"") == Ran(0, STOPPED, "")
    assert model.calls == 1
    model.play([Say("fine")])
    ran = await person.run("agent", "-m", "again")
    assert (ran.status, ran.out) == (0, "fine\n")
    assert (said_in(model.prompts[-1]), model.calls) == (CONVERSATION, 2)


async def test_a_pipe_whose_first_line_is_no_text_is_read_on(person, model):
    model.play([Say("hello")])
    ran = await person.run("agent", typed=b"caf\xe9\nhi\n")
    assert ran == Ran(0, "hello\n", "everloop: that line is not valid UTF-8 text; it was not sent\n")


# Answers that are cut, or that nobody can read


async def test_what_was_said_of_an_answer_that_broke_off_stands_beside_the_sentence(person, model):
    model.play(lambda shown: [Say("half an answer"), Fail(StreamCut("gone"))])
    ran = await person.run("agent", "-m", "hi")
    cut, sentence = ran.err.split("\n", 1)
    assert (ran.status, ran.out, cut) == (1, "", "half an answer")
    assert sentence.startswith(f"everloop: custom: {model.url.split('/')[2]} broke off in the middle of its answer.")


CUT = "(the answer ends here because it has reached max_tokens)\n"


async def test_a_chat_says_that_what_was_stopped_stays_and_how_to_have_the_rest(person, model):
    model.play([[Say("half "), Wait(model.gates["never"])], Say("fine")])
    async with AtTerminal(person) as chat:
        await chat.sees("> ")
        chat.type("hi")
        await chat.sees("half ")
        chat.process.send_signal(signal.SIGINT)
        await chat.sees("(stopped; what was said and done so far stays)")
        await chat.sees('(say "go on" to have the rest)')
        chat.type("go on")
        await chat.sees("fine")
    assert said_in(model.prompts[-1])[1] == ("assistant", "half \n\n[operation cancelled by user]")


@pytest.mark.parametrize("how", [["-m", "hi"], []], ids=["-m", "a pipe"])
async def test_an_answer_that_has_reached_its_longest_says_so_beside_it(person, model, how):
    model.play([[Say("half"), End("length")]])
    assert await person.run("agent", *how, typed=b"" if how else b"hi\n") == Ran(0, "half\n", CUT)


async def test_beside_json_it_is_said_too(person, model):
    model.play([[Say("half"), End("length")]])
    ran = await person.run("agent", "--json", "-m", "hi")
    assert (ran.status, msgspec.json.decode(ran.out)["content"], ran.err) == (0, "half", CUT)


LOST = "everloop: the answer cannot be written (No space left on device); it is kept, and shown next time\n"


@pytest.mark.parametrize("how", [["-m", "hi"], []], ids=["-m", "a pipe"])
async def test_an_answer_that_cannot_be_written_is_shown_next_time(person, model, how):
    model.play([Say("hello")])
    with open("/dev/full", "w") as full:  # noqa: ASYNC230
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "everloop", "agent", *how),
            stdin=asyncio.subprocess.PIPE,
            stdout=full,
            stderr=asyncio.subprocess.PIPE,
            env=person.environment,
        )
    _, err = await process.communicate(b"" if how else b"hi\n")
    assert (process.returncode, err.decode()) == (1, LOST)
    assert is_one_plain_sentence(LOST)
    assert await person.run("agent") == Ran(0, "hello\n", "")
    assert await person.run("agent") == Ran(0, "", "")
    assert model.calls == 1


@pytest.mark.parametrize("command", ["models", "usage"])
async def test_what_a_command_cannot_write_is_not_promised_for_later(person, command):
    person.home.mkdir(exist_ok=True)
    with open("/dev/full", "w") as full:  # noqa: ASYNC230
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "everloop", command),
            stdout=full,
            stderr=asyncio.subprocess.PIPE,
            env=person.environment,
        )
    _, err = await process.communicate()
    told = "everloop: the answer cannot be written (No space left on device)\n"
    assert (process.returncode, err.decode()) == (1, told)


# Fallbacks


@contextmanager
def nobody() -> Iterator[str]:
    """An address where nobody listens, and which nobody else can take."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


def configure(person: Person, fallbacks: list[str], **addresses: str) -> None:
    """The first model is one/m, and these are asked in its place."""
    person.environment = {name: person.environment[name] for name in ("PATH", "HOME", "EVERLOOP_HOME")}
    hosts = "".join(f'[providers.{name}]\napi_base = "{url}"\napi_key = "k"\n' for name, url in addresses.items())
    person.home.mkdir(exist_ok=True)
    (person.home / "config.toml").write_text(f'[agents.defaults]\nmodel = "one/m"\nfallbacks = {fallbacks}\n{hosts}')


CHANGES = (
    "(one/m does not answer (not reachable); asking two/m)\n(two/m does not answer (not reachable); asking three/m)\n"
)


@pytest.mark.parametrize("how", [["-m", "hi"], []], ids=["-m", "a pipe"])
async def test_with_two_of_three_down_each_change_is_a_line_beside_the_answer(person, model, how):
    model.play([Say(["hel", "lo"]), Say("again")])
    with nobody() as one, nobody() as two:
        configure(person, ["two/m", "three/m"], one=one, two=two, three=model.url)
        assert await person.run("agent", *how, typed=b"" if how else b"hi\n") == Ran(0, "hello\n", CHANGES)


async def test_in_a_chat_models_that_are_down_rest_and_are_not_told_of_again(person, model):
    model.play([Say("one"), Say("two")])
    with nobody() as one, nobody() as two:
        configure(person, ["two/m", "three/m"], one=one, two=two, three=model.url)
        assert await person.run("agent", typed=b"hi\nhi\n") == Ran(0, "one\ntwo\n", CHANGES)


async def test_a_fallback_that_cannot_be_had_is_in_the_log_and_in_nobodys_way(person, model):
    model.play([Say("hello")])
    configure(person, ["openai/gpt-x"], one=model.url)
    assert await person.run("agent", "-m", "hi") == Ran(0, "hello\n", "")
    (line,) = (person.home / "logs" / "everloop.log").read_text().splitlines()
    assert '"level":"warning","logger":"everloop.models"' in line
    assert '"message":"The fallback openai/gpt-x is left out: openai/gpt-x needs a key: set ' in line
