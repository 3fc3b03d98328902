"""A conversation becomes part of the memory, in an open house: when it does, what it costs, and what comes of it."""

import asyncio
from pathlib import Path

from msgspec import structs

import everloop
from everloop.app import open_desk
from everloop.core.mail import Address, Inbound, Notice, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.ports.jobs import Job
from everloop.ports.memory import HISTORY, MEMORY
from everloop.providers.models import given as given_model
from everloop.testing import Call, Say, Shown, Wait

from .remembering import (
    QuickClock,
    everything,
    extractions,
    fact,
    pass_time,
    remembering,
    save,
    settled,
    turns,
)


def about_places(shown: Shown):
    if "Oslo" in shown.asked.split("What is new:")[-1].split("The lines:")[-1]:
        return save("They moved to Oslo.", fact("The user lives in Oslo", 1, replaces=1))
    return save("They told where they live.", fact("The user lives in Rome", 1))


async def test_a_correction_is_what_the_next_conversation_knows(tmp_path: Path):
    model = remembering(about_places)
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock()) as agent:
        for text in ("I live in Rome", "/new", "I moved to Oslo", "/new"):
            await agent.ask(text, session="page:one")
            if text == "/new":
                await settled(agent.store)
        facts = await agent.store.facts("owner", ended=True)
        memory = (await agent.store.document("owner", MEMORY)).body
        history = (await agent.store.document("owner", HISTORY)).body
        await agent.ask("Where do I live?", session="page:one")
    assert sorted((each.text, bool(each.until)) for each in facts) == [
        ("The user lives in Oslo", False),
        ("The user lives in Rome", True),
    ]
    assert memory == "# Memory\n\n## Ann\n\n- The user lives in Oslo\n"
    assert [line.split("] ")[1].split(" (")[0] for line in history.splitlines()[2:]] == [
        "They told where they live.",
        "They moved to Oslo.",
    ]
    assert len(extractions(model)) == 2
    assert "The user lives in Oslo" in everything(turns(model)[-1])
    assert "Rome" not in everything(turns(model)[-1])


async def test_an_idle_week_asks_no_model_once_what_was_said_is_remembered(tmp_path: Path):
    model, clock = remembering(about_places), QuickClock()
    async with open_desk(tmp_path / "home", provider=model, clock=clock) as agent:
        await agent.ask("I live in Rome", session="page:one")
        await pass_time(clock, 29 * 60)
        assert extractions(model) == []
        await pass_time(clock, 2 * 60)
        await settled(agent.store)
        calls = model.calls
        for _ in range(7 * 8):
            await pass_time(clock, 3 * 3600)
        versions = len(await agent.store.memory_versions("owner"))
        await agent.ask("And you?", session="page:one")
        await pass_time(clock, 31 * 60)
        await settled(agent.store)
    assert (calls, versions) == (2, 1)
    assert len(extractions(model)) == 2  # something new was said, and that alone is read
    assert "[1]" in extractions(model)[1].asked
    assert "I live in Rome" not in extractions(model)[1].asked.split("What is new:")[1]


async def test_a_house_in_which_nothing_is_said_asks_no_model(tmp_path: Path):
    model, clock = remembering(about_places), QuickClock()
    async with open_desk(tmp_path / "home", provider=model, clock=clock) as agent:
        for _ in range(7 * 8):
            await pass_time(clock, 3 * 3600)
        assert await agent.store.memory_version("owner") == 0
    assert model.calls == 0


async def test_a_window_of_messages_is_remembered_while_people_go_on(tmp_path: Path):
    model, clock = remembering(lambda shown: save("They talked.")), QuickClock()
    settings = {"agents": {"defaults": {"memory_window": 6}}}
    async with open_desk(tmp_path / "home", settings, provider=model, clock=clock) as agent:
        for number in range(7):
            await agent.ask(f"message {number}", session="page:one")
            await pass_time(clock)
            await settled(agent.store)
    assert [shown.asked.count("the user:") for shown in extractions(model)] == [3, 6]  # with three that stood before


async def test_memory_that_is_switched_off_does_nothing_and_has_no_tools(tmp_path: Path):
    model, clock = remembering(about_places), QuickClock()
    async with open_desk(tmp_path / "home", {"memory": {"enabled": False}}, provider=model, clock=clock) as agent:
        await agent.ask("I live in Rome", session="page:one")
        await agent.ask("/new", session="page:one")
        await pass_time(clock, 3600)
        assert await agent.store.jobs("owner") == [
            row for row in await agent.store.jobs("owner") if row.job.kind != "consolidate"
        ]
    assert (model.calls, {"remember", "forget"} & {*model.prompts[0].tools}) == (1, set())


async def test_jobs_and_guests_alone_are_not_remembered(tmp_path: Path):
    model, clock = remembering(about_places), QuickClock()
    async with open_desk(tmp_path / "home", provider=model, clock=clock) as agent:
        where = Address.parse("api:heartbeat")
        beat = Inbound(where, "beat", Notice("How are things?", "job:heartbeat", "owner", str(where)))
        await agent.store.add_job(Job("heartbeat", "heartbeat", clock.now(), letter=beat))
        await model.called(1)
        gus = Inbound(Address.parse("api:gus"), "e1", Said(said("I live in Rome"), "gus", "api:gus"), "gus")
        await agent.tell(gus)
        await model.called(2)
        for session in (str(where), "api:gus"):
            await agent.finish(session)
        await pass_time(clock, 3600)
        await settled(agent.store, "owner", "gus")
        assert await agent.store.unconsolidated(0.0, 1, 10) == []  # they were looked at
        versions = [await agent.store.memory_version(owner) for owner in ("owner", "gus")]
    assert (extractions(model), versions) == ([], [0, 0])


async def test_a_model_in_this_process_is_not_asked_and_conversations_wait_for_another(tmp_path: Path):
    model, clock = remembering(about_places), QuickClock()
    embedded = structs.replace(given_model(model), compact=True)
    settings = {"agents": {"defaults": {"model": "embedded/mine"}}}
    in_process = {"mine": embedded}
    async with open_desk(tmp_path / "home", settings, clock=clock, in_process=in_process) as agent:
        await agent.ask("I live in Rome", session="page:one")
        await agent.ask("/new", session="page:one")
        await pass_time(clock, 7 * 86400)
    assert extractions(model) == []
    settings = {"agents": {"defaults": {"model": "embedded/other"}}}
    in_process = {"other": given_model(model)}
    async with open_desk(tmp_path / "home", settings, clock=clock, in_process=in_process) as agent:
        await pass_time(clock, 120)
        await settled(agent.store)
        assert [each.text for each in await agent.store.facts("owner")] != []
    assert len(extractions(model)) == 1


async def test_what_one_person_opens_for_a_moment_asks_no_model_and_what_stays_open_does_it_for_them_alone(tmp_path):
    model, clock = remembering(about_places), QuickClock()
    clock.slow = True
    async with everloop.open(tmp_path / "home", provider=model, clock=clock) as agent:
        await agent.ask("I live in Rome", session="api:one")
        await agent.ask("/new", session="api:one")
        await agent.user("web:ann").ask("I live in Bonn")
    assert extractions(model) == []
    clock.slow = False
    clock.time += 86400
    async with everloop.open(tmp_path / "home", provider=model, clock=clock) as agent:
        await pass_time(clock)
        await pass_time(clock)
        async with asyncio.timeout(60):
            while not await agent.store.facts("owner"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await agent.store.memory_version("web:ann") == 0
    assert len(extractions(model)) == 1


async def test_to_undo_a_turn_that_remembered_says_that_it_cannot_be_taken_back(tmp_path: Path):
    def answer(shown: Shown):
        return Say("done") if shown.step else Call("remember", {"text": "The user is a pilot"})

    model = remembering(about_places, answer)
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock()) as agent:
        await agent.ask("I am a pilot", session="page:one")
        told = await agent.ask("/undo", session="page:one")
        kept = [each.text for each in await agent.store.facts("owner")]
    assert 'This cannot be undone: remember {"text":"The user is a pilot"}' in told.content
    assert kept == ["The user is a pilot"]


async def states(agent: everloop.Agent) -> list[tuple[str, str]]:
    """Of all consolidations."""
    return sorted((row.state, row.result) for row in await agent.store.jobs("owner") if row.job.kind == "consolidate")


async def test_two_conversations_at_once_are_consolidated_and_further_ones_leave_room_for_other_work(tmp_path: Path):
    gate = asyncio.Event()
    model, clock = remembering(lambda shown: (Wait(gate), save())), QuickClock()
    async with open_desk(tmp_path / "home", provider=model, clock=clock) as agent:
        for number in range(4):
            await agent.ask("hello", session=f"page:{number}")
            await agent.ask("/new", session=f"page:{number}")
        await model.called(6)
        wanted = [*[("waiting", "others are consolidated first")] * 2, *[("working", "")] * 2]
        async with asyncio.timeout(60):
            while await states(agent) != wanted:
                await pass_time(clock)
            gate.set()
            while len(extractions(model)) < 4:
                await pass_time(clock, 10)
        await settled(agent.store)


async def test_what_somebody_says_to_the_owner_s_bot_is_their_memory_and_not_the_owner_s(tmp_path: Path):
    model, clock = remembering(about_places), QuickClock()
    where = Address.parse("platform:discord/@7")
    async with open_desk(tmp_path / "home", provider=model, clock=clock, roles={"discord:7": Role.USER}) as agent:
        await agent.tell(Inbound(where, "e1", Said(said("I live in Rome"), "discord:7", str(where)), "owner"))
        await model.called(1)
        await agent.finish(str(where))
        await pass_time(clock, 3600)
        await settled(agent.store, "owner", "discord:7")
        kept = {who: [each.text for each in await agent.store.facts(who)] for who in ("owner", "discord:7")}
        spent = [(row.name, row.calls) for row in await agent.store.used("person", 0.0) if row.calls]
    assert kept == {"owner": [], "discord:7": ["The user lives in Rome"]}
    assert len(extractions(model)) == 1
    assert dict(spent)["discord:7"] >= 1
