"""Fifty people in one house, with canaries in message, file, bootstrap file and workspace: none of them is in a
request, a result, a trace, a log, a search or an export of another, on either database."""

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.effort import in_full
from tests.journeys.neighbours import GIVEN_TO, House, Neighbour, Obedient, Rooms, canary, found, room_of, whose
from tests.store.conftest import PostgresHome, postgres  # noqa: F401  # a fixture
from tests.telemetry.collector import Collector, collecting

from everloop.app import serve
from everloop.cli.logbook import LogFile, log_path
from everloop.core.people import Role
from everloop.testing import ScriptedModel
from everloop.tools.decorator import tool

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shortened, pytest.mark.timeout(900)]
PEOPLE = in_full(50, 4)
OWN = {"message", "answer", "bootstrap", "work", "path", "deep", "file", "filename", "call", "title", "token"} | {
    "broken",
    "failed",
}


class Lived:
    """What is left when all have done what they do."""

    def __init__(self, house: House, model: Obedient, collector: Collector) -> None:
        self.house, self.model, self.collector = house, model, collector

    def logged(self) -> list[tuple[str, set[str]]]:
        """Of each line of the log the session that it names, and of whom there is something in it."""
        lines = log_path(self.house.home).read_text().splitlines()
        return [(json.loads(line).get("session", ""), whose(line)) for line in lines]


@tool(permission=Role.USER, guarded=True)
async def send(text: str) -> str:
    """Send something."""
    return "sent"


@tool(permission=Role.USER)
async def breaks(text: str) -> str:
    """Break."""
    raise RuntimeError(text)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lived(database: str, request: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lived]:
    home = tmp_path_factory.mktemp("neighbours") / "home"
    rows = await PostgresHome(request.getfixturevalue("postgres")).create() if database == "postgres" else None
    model, rooms, log = Obedient(), Rooms(), LogFile(log_path(home))
    for name in {*GIVEN_TO.values()}:
        (home / "personas" / name).mkdir(parents=True)
        (home / "personas" / name / "AGENTS.md").write_text(canary(name, "persona"))
    async with collecting() as collector:
        settings = {
            "gateway": {"port": 0, "connections_per_address": 500},
            "telemetry": {"otlp_endpoint": collector.url},
            "personas": {
                name: {"prompt": canary(name, "prompt"), "places": [f"chat:fake:{room}"]}
                for room, name in GIVEN_TO.items()
            },
            **({"store": {"url": rows.url}} if rows else {}),
        }
        (home / "config.json").write_text(json.dumps(settings))
        logger = logging.getLogger()
        logger.addHandler(log)
        async with serve(
            home, settings, provider=ScriptedModel(model), tools=[send, breaks], channels=[rooms]
        ) as opened:
            house = House(home, opened.url, rooms)
            await rooms.listens.wait()
            await house.introduce(PEOPLE)
            await house.live()
            await rooms.sent(PEOPLE)
            yield Lived(house, model, collector)
        logger.removeHandler(log)
        log.close()
    if rows:
        await rows.close()


async def test_each_of_them_finds_all_of_their_own_and_so_the_tests_below_would_see_it(lived: Lived):
    for each in lived.house.people:
        assert each.own() == {*OWN, "bot", "told", "group"}
    prompts = {kind for _, prompt in lived.model.shown for _, kind in found(prompt)}
    assert {"message", "file", "bootstrap", "work", "answer", "group", "reply", "persona", "prompt"} <= prompts
    assert {who for who, _ in lived.model.shown} >= {*(each.name for each in lived.house.people), "room0", "owner"}


async def test_a_word_of_anothers_would_be_seen():
    one = Neighbour("p00", "fake:p00", "")
    one.hear("search", f"{canary('p00', 'message')} {canary('p01', 'file')}")
    assert one.foreign() == [("search", {("p01", "file")})]


async def test_no_prompt_holds_anything_of_another(lived: Lived):
    """In a group there is what was said in that group, and the files of its persona."""
    strange = []
    for who, prompt in lived.model.shown:
        allowed = {(each, kind) for each, kind in found(prompt) if each == who and kind not in ("group", "reply")}
        if who.startswith("room"):
            members = {each.name for each in lived.house.people if room_of(each.name) == who}
            allowed = {(each, kind) for each in members for kind in ("group", "reply")}
            allowed |= {(GIVEN_TO.get(who, ""), kind) for kind in ("persona", "prompt")}
        strange += [(who, found(prompt) - allowed)] if found(prompt) - allowed else []
    assert (strange, len(lived.model.shown) > 8 * PEOPLE) == ([], True)


async def test_nothing_that_anybody_is_told_holds_anything_of_another(lived: Lived):
    """Answers, results, searches, lists, traces, exports, what is pushed, and what comes of prying."""
    assert [(each.name, each.foreign()) for each in lived.house.people if each.foreign()] == []


async def test_the_owner_is_told_what_their_own_bot_has_heard_and_what_waits_for_a_yes(lived: Lived):
    kinds = {kind for _, each in lived.house.owner.foreign() for _, kind in each}
    asked = {where for where, each in lived.house.owner.foreign() for _, kind in each if kind == "call"}
    assert (kinds, asked) == ({"bot", "told", "call", "persona", "prompt"}, {"GET /api/approvals"})


async def test_a_group_is_told_what_was_said_in_it(lived: Lived):
    told = [(sent.chat.removeprefix("fake:"), found(sent.text)) for sent in lived.house.rooms.sends]
    foreign = [each for room, canaries in told for each in canaries if room_of(each[0]) != room or each[1] != "reply"]
    assert (foreign, len(told)) == ([], PEOPLE)


async def test_a_line_of_the_log_that_holds_something_of_somebody_names_a_conversation_of_theirs(lived: Lived):
    """At DEBUG, where tools and hosts have failed over somebody's words: so it goes with them when they are erased."""
    names = [each.name for each in (*lived.house.people, lived.house.owner)]
    held = [(session, who) for session, who in lived.logged() if who]
    assert sorted(held, key=str) == sorted(
        ((f"api:{name}{of}", {name}) for name in names for of in ("", "-fails")), key=str
    )


async def test_no_span_holds_anything_of_anybody(lived: Lived):
    spans = [str(span) for span in await lived.collector.until(8 * PEOPLE)]
    assert [each for each in spans if whose(each)] == []
