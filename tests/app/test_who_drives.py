"""A process drives the threads of whom it acts for, and nobody else's; gateway and worker drive everyone's."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import everloop
from everloop import Effect, Role, tool
from everloop.app import open_desk, open_for_owner
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.runtime.acting import MOST, ForSpeakers
from everloop.store.sqlite import SqliteStore
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel

ANNA, EVE, OWNER = "web:anna", "web:eve", "owner"


def echoing() -> ScriptedModel:
    return ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))


async def leave(home: Path, *letters: tuple[str, str]) -> None:
    """Letters that a process has taken before it was killed: the session, and whose it is."""
    store = await SqliteStore.connect(home)
    for session, person in letters:
        letter = Said(said(f"hello from {session}"), person, session)
        await store.receive(Inbound(Address.parse(session), f"left in {session}", letter, person))
    await store.close()


async def unfinished(home: Path) -> list[str]:
    """The sessions in which somebody waits for an answer."""
    store = await SqliteStore.connect(home)
    try:
        threads = await store.waiting()
        return sorted([(await store.open(thread)).row.session for thread in threads])
    finally:
        await store.close()


async def test_a_terminal_goes_on_with_the_owners_turns_and_with_no_one_elses(tmp_path: Path):
    await leave(tmp_path, (ANNA, ANNA), ("tele:1", "chat:tele/1"), ("cli:other", OWNER), ("cli:direct", OWNER))
    model = echoing()
    async with open_for_owner(tmp_path, provider=model) as agent:
        await agent.finish("cli:direct")
        await agent.finish("cli:other")
        assert not await agent.finish(ANNA)
        await agent.ask("and now", "cli:direct")
    assert sorted(shown.asked for shown in model.prompts) == [
        *("and now", "hello from cli:direct", "hello from cli:other"),
    ]
    assert await unfinished(tmp_path) == ["tele:1", ANNA]


async def test_what_comes_in_elsewhere_while_a_terminal_is_open_is_left_alone_unless_it_is_the_owners(tmp_path: Path):
    model = echoing()
    async with open_for_owner(tmp_path, provider=model):
        await leave(tmp_path, (ANNA, ANNA), ("cli:other", OWNER))
        await model.called(1)  # it looks, and finds both or one
    assert [shown.asked for shown in model.prompts] == ["hello from cli:other"]
    assert ANNA in await unfinished(tmp_path)


async def test_what_a_terminal_leaves_the_gateway_takes_up(tmp_path: Path):
    await leave(tmp_path, (ANNA, ANNA), ("tele:1", "chat:tele/1"))
    model = echoing()
    async with open_desk(tmp_path, provider=model) as desk:
        for session in (ANNA, "tele:1"):
            await desk.finish(session)
    assert sorted(shown.asked for shown in model.prompts) == ["hello from tele:1", f"hello from {ANNA}"]
    assert await unfinished(tmp_path) == []


async def test_a_program_goes_on_for_whom_it_speaks(tmp_path: Path):
    await leave(tmp_path, (ANNA, ANNA), (EVE, EVE), ("api:default", OWNER))
    model = echoing()
    async with everloop.open(tmp_path, provider=model) as agent:
        await agent.finish("api:default")
        assert await agent.user(ANNA).finish()
    assert sorted(shown.asked for shown in model.prompts) == ["hello from api:default", f"hello from {ANNA}"]
    assert await unfinished(tmp_path) == [EVE]


async def test_a_program_goes_on_at_once_for_whom_it_introduces_and_in_its_own_channels(tmp_path: Path):
    await leave(tmp_path, (ANNA, ANNA), (EVE, EVE), ("fake:1", "chat:fake/1"), ("tele:1", "chat:tele/1"))
    model = echoing()
    roles, channel = {ANNA: Role.USER}, RecordingChannel("fake")
    async with everloop.open(tmp_path, provider=model, roles=roles, channels=[channel]):
        await model.called(2)
        await channel.sent(1)
    assert sorted(shown.asked for shown in model.prompts) == ["hello from fake:1", f"hello from {ANNA}"]
    assert await unfinished(tmp_path) == ["tele:1", EVE]


async def test_what_somebody_says_through_a_program_is_answered_there(tmp_path: Path):
    await leave(tmp_path, (EVE, EVE))
    async with everloop.open(tmp_path, provider=echoing()) as agent:
        assert (await agent.user(ANNA).ask("hi")).content == "you said hi"
        assert (await agent.ask("hi", "web:zoe", author="web:zoe")).content == "you said hi"
    assert await unfinished(tmp_path) == [EVE]


@tool(Effect.UNSAFE, permission=Role.USER, guarded=True)
async def order(item: str) -> str:
    """Order something."""
    ORDERED.append(item)
    return "ordered"


ORDERED: list[str] = []


def ordering(home: Path, kind: str) -> "AbstractAsyncContextManager[everloop.Agent]":
    model = ScriptedModel(lambda shown: Call("order", {"item": kind}) if shown.step == 0 else Say("done"))
    given = {"provider": model, "tools": (order,), "roles": {ANNA: Role.USER}}
    opened = {"terminal": open_for_owner, "program": everloop.open, "gateway": open_desk}[kind]
    return opened(home, **given)


@pytest.mark.parametrize("decides, runs", [("terminal", []), ("program", ["program"]), ("gateway", ["program"])])
async def test_what_the_owner_allows_somebody_runs_where_they_are_acted_for(tmp_path: Path, decides: str, runs: list):
    ORDERED.clear()
    async with ordering(tmp_path, "program") as agent:
        async for event in agent.user(ANNA).stream("order a lamp", attended=True):
            if event.name == "approval_asked":
                break
    async with ordering(tmp_path, decides) as agent:
        [question] = await agent.approvals()
        await agent.decide(question.id, True)
        await agent.finish(ANNA)
    assert runs == ORDERED
    assert await unfinished(tmp_path) == ([] if runs else [ANNA])


async def test_whoever_has_spoken_least_lately_is_forgotten_first_and_nobody_who_was_introduced():
    acting = ForSpeakers({ANNA: Role.USER}, ["fake"])
    for number in range(MOST + 1):
        acting.note(f"web:{number}")
        acting.note("web:1")
    whose = acting.whose()
    assert whose is not None
    assert (len(whose.principals), whose.channels) == (MOST + 2, ("fake",))
    names = (OWNER, ANNA, "web:0", "web:1", "web:2", f"web:{MOST}")
    assert [acting.covers(name, "web:x") for name in names] == [True, True, False, True, True, True]
    assert acting.covers("web:0", "fake:x")


async def test_a_name_that_no_database_takes_does_not_end_the_looking(tmp_path: Path):
    await leave(tmp_path, (ANNA, ANNA))
    model = echoing()
    roles = {"web:\ud800": Role.USER, "web:\0": Role.USER, ANNA: Role.USER}
    async with everloop.open(tmp_path, provider=model, roles=roles) as agent:
        await model.called(1)
        await agent.user(ANNA).finish()
    assert await unfinished(tmp_path) == []
