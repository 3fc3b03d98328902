"""`everloop approvals`, and the questions of a chat, as people meet them. The commands run in a real sandbox."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, Ran, ended, is_one_plain_sentence, said_in

from everloop.testing import Call, Say
from everloop.testing.model_server import ModelServer

RISKY = Call("exec", {"command": "su --version", "why": "to see it"})
LOOKS = 'exec\n  command: "su --version"\n  why: "to see it"\n(risk: high, changes something, wants to be privileged)\n'
NOT_RUN = """\
exec: This needs a person's permission, and nobody is there to be asked, so it was not run.
(to be asked: --approvals ask, then everloop approvals; to allow all: --approvals allow)
"""
PATIENCE = 60.0


async def test_without_a_terminal_what_is_risky_is_not_run(person, model):
    model.play([RISKY, Say("then not")])
    assert await person.run("agent", "-m", "who?") == Ran(0, "then not\n", NOT_RUN)
    assert "nobody is there to be asked" in said_in(model.prompts[-1])[-1][1]


async def test_who_wants_all_allowed_may_say_so(person, model):
    model.play([RISKY, Say("done")])
    ran = await person.run("agent", "--approvals", "allow", "-m", "who?")
    assert (ran.status, ran.out) == (0, "done\n")
    assert said_in(model.prompts[-1])[-1][1].startswith("[exit code 0]\nsu from")


async def test_what_a_command_answers_is_said_once(person):
    none = "No question has the name 'zz'"
    ran = await person.run("agent", "-m", "/approve zz")
    piped = await person.run("agent", typed=b"/model\n/approve zz\n")
    assert [out.count(none) for out in (ran.out, piped.out)] == [1, 1]
    assert len(piped.out.splitlines()) == len(set(piped.out.splitlines()))


async def test_where_nothing_waits_it_says_so(person):
    assert await person.run("approvals") == Ran(0, "Nothing waits for permission.\n", "")
    assert await person.run("approvals", "grants") == Ran(0, "Nothing is allowed ahead.\n", "")
    assert msgspec.json.decode((await person.run("approvals", "list", "--json")).out) == {"approvals": []}


async def wait_for_question(person: Person, model: ModelServer) -> tuple[asyncio.subprocess.Process, str]:
    """Someone has asked for something risky and waits; the name of the question."""
    model.play([RISKY, Say("done")])
    process = await person.start("agent", "--approvals", "ask", "-m", "who?")
    async with asyncio.timeout(PATIENCE):
        while not (waiting := msgspec.json.decode((await person.run("approvals", "list", "--json")).out)["approvals"]):
            pass
    (asked,) = waiting
    assert (asked["session"], asked["requester"], asked["tool"]) == ("cli:direct", "owner", "exec")
    return process, asked["name"]


async def test_another_terminal_allows_it_and_the_turn_goes_on(person, model):
    process, name = await wait_for_question(person, model)
    listed = await person.run("approvals")
    assert listed.out.splitlines()[1].split() == [name, "cli:direct", "owner", "exec", "high", "1d"]
    assert LOOKS in listed.out
    allowed = await person.run("approvals", "approve", name)
    assert (allowed.status, allowed.out) == (0, f"exec ({name}) is allowed.\n")
    ran = await ended(process)
    assert (ran.status, ran.out) == (0, "done\n")
    assert f"May I run {LOOKS}" in ran.err
    assert ran.err.count("to see it") == 1
    assert said_in(model.prompts[-1])[-1][1].startswith("[exit code 0]\nsu from")
    model.play([Say("gladly")])
    assert await person.run("agent", "-m", "thanks") == Ran(0, "gladly\n", "")  # and is not asked once more


async def test_it_can_be_denied(person, model):
    process, name = await wait_for_question(person, model)
    assert (await person.run("approvals", "deny", name)).out == f"exec ({name}) is not allowed.\n"
    assert (await ended(process)).out == "done\n"
    assert said_in(model.prompts[-1])[-1][1] == "The user did not allow this."


async def test_an_answer_after_a_death_is_carried_out_once(person, model):
    process, name = await wait_for_question(person, model)
    process.kill()
    await process.wait()
    allowed = await person.run("approvals", "approve", name)
    assert (allowed.status, allowed.err.splitlines()[-1]) == (
        0,
        "It goes on at once where everloop runs; else start it: everloop --continue",
    )
    again = await person.run("approvals", "approve", name)
    assert (again.status, is_one_plain_sentence(again.err)) == (1, True)
    ran = await person.run("--continue")
    assert (ran.status, ran.out.splitlines()[-1]) == (0, "done")
    assert next(text for role, text in said_in(model.prompts[-1]) if role == "tool").startswith("[exit code 0]\nsu")
    assert model.calls == 2


async def test_the_like_can_be_allowed_ahead(person, model):
    process, name = await wait_for_question(person, model)
    allowed = await person.run("approvals", "approve", name, "--runs", "2", "--for", "8h", "--argv", "su *")
    assert allowed.err.splitlines()[:2] == [
        "So is, for 8h, 2 more times: su * (not in the background, up to 60 s), in the workspace and below",
        f"Take it back with: everloop approvals revoke {name}",
    ]
    await ended(process)
    (grant,) = msgspec.json.decode((await person.run("approvals", "grants", "--json")).out)["grants"]
    assert {key: grant[key] for key in ("user", "by", "tool", "argv", "risk", "runs")} == {
        "user": "owner",
        "by": "owner",
        "tool": "exec",
        "argv": ["su", "*"],
        "risk": "high",
        "runs": 2,
    }
    for left in ("1", None):
        model.play([Call("exec", {"command": "su --help"}), Say("done")])
        assert (await person.run("agent", "-m", "and now?")).out == "done\n"
        assert said_in(model.prompts[-1])[-1][1].startswith("[exit code 0]")
        rows = (await person.run("approvals", "grants")).out.splitlines()
        assert rows[1].split()[-2] == left if left else rows == ["Nothing is allowed ahead."]


async def test_what_does_not_fit_what_waits_is_refused_and_nothing_is_decided(person, model):
    process, name = await wait_for_question(person, model)
    for choice in (["--argv", "git push *"], ["--folder", "site"], ["--host", "a.example"], ["--argv", " "]):
        refused = await person.run("approvals", "approve", name, *choice)
        assert (refused.status, refused.out, is_one_plain_sentence(refused.err)) == (1, "", True)
    (still,) = msgspec.json.decode((await person.run("approvals", "list", "--json")).out)["approvals"]
    assert (still["name"], still["choices"]) == (name, ["for", "runs", "here", "any", "argv", "folder"])
    assert (await person.run("approvals", "grants")).out == "Nothing is allowed ahead.\n"
    await person.run("approvals", "deny", name)
    await ended(process)


async def test_with_a_time_alone_it_is_the_same_call_and_is_shown_as_that(person, model):
    process, name = await wait_for_question(person, model)
    allowed = await person.run("approvals", "approve", name, "--for", "8h", "--here")
    assert allowed.err.splitlines()[0] == "So is, for 8h: the same call, only in this conversation"
    await ended(process)
    shown = (await person.run("approvals", "grants")).out
    assert f"The call that {name} allows again:\n{LOOKS.partition('(risk')[0]}" in shown
    assert "the same call, only in conversation " in shown.splitlines()[1]
    ran = []
    for call in (RISKY, Call("exec", {"command": "su --help"})):
        model.play([call, Say("done")])
        await person.run("agent", "-m", "and now?")
        ran.append(said_in(model.prompts[-1])[-1][1].startswith("[exit code 0]"))
    assert ran == [True, False]


async def test_what_was_allowed_ahead_can_be_taken_back(person, model):
    process, name = await wait_for_question(person, model)
    await person.run("approvals", "approve", name, "--for", "30m")
    await ended(process)
    (grant,) = msgspec.json.decode((await person.run("approvals", "grants", "--json")).out)["grants"]
    assert grant["name"] == grant["id"]
    assert (await person.run("approvals", "revoke", grant["name"])).out == f"{grant['name']} is taken back.\n"
    gone = await person.run("approvals", "revoke", grant["name"])
    assert (gone.status, is_one_plain_sentence(gone.err)) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["approve", "nosuch"], "no question has the name 'nosuch'"),
        (["deny", "nosuch"], "no question has the name 'nosuch'"),
        (["approve", "x", "--for", "soon"], "--for must be a time such as 30m, 8h or 7d"),
        (["approve", "x", "--runs", "0"], "--runs must be a number from 1 to 10000"),
        (["revoke", "nosuch"], "there is no grant 'nosuch'"),
    ],
)
async def test_what_cannot_be_done_is_said_plainly(person, arguments, says):
    ran = await person.run("approvals", *arguments)
    assert ran.status in (1, 2)
    assert says in ran.err
    assert "Traceback" not in ran.err


@pytest.fixture
async def terminal(person: Person) -> AsyncIterator[AtTerminal]:
    async with AtTerminal(person) as terminal:
        await terminal.sees("> ")
        yield terminal


async def test_a_command_at_the_question_is_understood_and_the_question_is_asked_again(person, model, terminal):
    model.play([RISKY, Say("as you wish")])
    terminal.type("who?")
    await terminal.sees("Allow it? [y/N] ")
    for typed, told in (
        ("/help", "everloop commands:"),
        ("/nonsense", "There is no /nonsense."),
        ("/approve", "May I"),
    ):
        terminal.type(typed)
        await terminal.sees(told)
        await terminal.sees("Allow it? [y/N] ")
    terminal.type("y")
    await terminal.sees("as you wish")
    assert said_in(model.prompts[-1])[-1][1].startswith("[exit code 0]\nsu from")


async def test_a_question_that_a_chat_has_left_is_put_again_by_the_next(person, model):
    model.play([RISKY, Say("as you wish")])
    async with AtTerminal(person) as first:
        await first.sees("> ")
        first.type("who?")
        await first.sees("Allow it? [y/N] ")
    async with AtTerminal(person) as second:
        await second.sees("May I run exec")
        await second.sees("Allow it? [y/N] ")
        second.type("y")
        await second.sees("as you wish")
        await second.sees("> ")
    assert said_in(model.prompts[-1])[-1][1].startswith("[exit code 0]\nsu from")


@pytest.mark.parametrize("second_answers", [True, False])
async def test_two_chats_of_one_session_do_not_withdraw_each_others_questions(person, model, second_answers: bool):
    model.play([RISKY, Say("as you wish"), Say("hello to you, too")])
    async with AtTerminal(person) as first, AtTerminal(person) as second:
        await first.sees("> ")
        await second.sees("> ")
        first.type("who?")
        await first.sees("Allow it? [y/N] ")
        second.type("hello")
        await second.sees("another chat of this session is asked this; what you said waits for the answer")
        await second.sees("May I run exec")
        await second.sees("Allow it? [y/N] ")
        (second if second_answers else first).type("y")
        await first.sees("as you wish")
        await second.sees("> ")
    said = [text for shown in model.prompts for _, text in said_in(shown)]
    assert "not approved; the user went on" not in said
    assert any(text.startswith("[exit code 0]\nsu from") for text in said)
    assert "hello" in said


async def test_whoever_is_shown_anothers_question_and_goes_on_withdraws_it(person, model):
    model.play([RISKY, Say("I leave it")] + [Say("and more")] * 3)
    async with AtTerminal(person) as first, AtTerminal(person) as second:
        await first.sees("> ")
        await second.sees("> ")
        first.type("who?")
        await first.sees("Allow it? [y/N] ")
        second.type("hello")
        await second.sees("Allow it? [y/N] ")
        second.type("never mind that")
        await first.sees("I leave it")
    said = [text for shown in model.prompts for _, text in said_in(shown)]
    assert "not approved; the user went on" in said


@pytest.mark.parametrize(
    ("typed", "result"), [("y", "[exit code 0]\nsu from"), ("n", "The user did not allow"), ("", "The user did not")]
)
async def test_at_a_terminal_one_is_asked(person, model, terminal, typed: str, result: str):
    model.play([RISKY, Say("as you wish")])
    terminal.type("who?")
    await terminal.sees("May I run exec")
    await terminal.sees("Allow it? [y/N] ")
    terminal.type(typed)
    await terminal.sees("as you wish")
    assert said_in(model.prompts[-1])[-1][1].startswith(result)


async def test_at_a_terminal_the_like_can_be_allowed_too(person, model, terminal):
    model.play([RISKY, Say("first"), Call("exec", {"command": "su --help"}), Say("second")])
    terminal.type("who?")
    await terminal.sees("May I run exec")
    await terminal.sees("argv su * (such commands)")
    for typed, says in (
        ("y argv git *", "does not fit the command that waits (su --version)"),
        ("y alwys", "'alwys' is not understood"),
    ):
        await terminal.sees("Allow it? [y/N] ")
        terminal.type(typed)
        await terminal.sees(says)
    await terminal.sees("Allow it? [y/N] ")
    terminal.type("y here argv su *")
    await terminal.sees("exec is allowed. So is, for 1h, until 20")
    await terminal.sees(": su * (not in the background")
    await terminal.sees("Take it back with: everloop approvals revoke")
    await terminal.sees("first")
    terminal.type("and now?")
    await terminal.sees("second")
    assert said_in(model.prompts[-1])[-1][1].startswith("[exit code 0]")


async def test_whoever_says_something_else_goes_on_without_it(person, model, terminal):
    model.play([RISKY, Say("I leave it")])
    terminal.type("who?")
    await terminal.sees("Allow it? [y/N] ")
    terminal.type("rather tell me the time")
    await terminal.sees("I leave it")
    assert said_in(model.prompts[-1])[-2:] == [
        ("tool", "not approved; the user went on"),
        ("user", "rather tell me the time"),
    ]


async def test_a_stop_takes_the_question_back(person, model, terminal):
    model.play([RISKY, Say("hello")])
    terminal.type("who?")
    await terminal.sees("Allow it? [y/N] ")
    assert (await person.run("agent", "-m", "/stop")).out == "⏹ Stopped 1 task(s).\n"
    await terminal.sees("(stopped; ")
    await terminal.sees("> ")
    terminal.type("hi")
    await terminal.sees("hello")
    assert said_in(model.prompts[-1])[-1] == ("user", "hi")


async def test_a_question_that_was_left_open_is_shown_and_can_be_answered(person, model):
    process, name = await wait_for_question(person, model)
    process.kill()
    await process.wait()
    async with AtTerminal(person) as terminal:
        await terminal.sees("Allow it? [y/N] ")
        terminal.type(f"/approve {name}")
        await terminal.sees("exec is allowed.")
        await terminal.sees("done")


# Several processes, one session

WAITS = "everloop: a question waits in cli:direct and has to be answered first (see: everloop approvals)"


@pytest.mark.parametrize("approvals", [[], ["--approvals", "deny"], ["--approvals", "allow"], ["--approvals", "ask"]])
async def test_a_script_does_not_wait_for_what_another_is_asked_nor_withdraw_it(person, model, approvals):
    process, name = await wait_for_question(person, model)
    refused = await person.run("agent", *approvals, "-m", "and I?")
    assert refused == Ran(75, "", f"{WAITS}; nothing was sent (for another session: -s KEY)\n")
    await person.run("approvals", "approve", name)
    assert (await ended(process)).out == "done\n"
    assert said_in(model.prompts[-1])[-1][1].startswith("[exit code 0]\nsu from")
    assert "and I?" not in str(said_in(model.prompts[-1]))


async def test_in_another_session_it_has_its_answer(person, model):
    process, name = await wait_for_question(person, model)
    model.play([Say("here"), Say("done")])
    assert await person.run("agent", "-s", "cli:other", "-m", "and I?") == Ran(0, "here\n", "")
    await person.run("approvals", "deny", name)
    assert (await ended(process)).out == "done\n"


async def test_a_process_that_allows_all_allows_nothing_to_another_whose_message_it_answers(person, model):
    """What was cut off is finished by the next process, whatever that allows for itself."""
    process, name = await wait_for_question(person, model)
    process.kill()
    await process.wait()
    model.play([Say("mine"), Say("theirs")])
    assert (await person.run("agent", "--approvals", "allow", "-s", "cli:other", "-m", "hi")).out == "mine\n"
    (waiting,) = msgspec.json.decode((await person.run("approvals", "list", "--json")).out)["approvals"]
    assert waiting["name"] == name
