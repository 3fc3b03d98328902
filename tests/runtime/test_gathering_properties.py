"""Whatever people send, change and take back, and whenever the process is killed: each message is in one turn, or was
taken back and is in none."""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from everloop.core.log import ModelCalled, ModelSaid, UserSaid
from everloop.core.mail import Address, Amendment, Inbound, Said
from everloop.core.message import said, text_of
from everloop.core.thread import Thread
from everloop.ports import Store
from everloop.readings.amendments import CHANGED
from everloop.runtime.book import Book
from everloop.runtime.people import KnownPeople
from everloop.store.sqlite import SqliteStore
from tests.effort import examples

PEOPLE = ("anna", "bob")
OWNER = "chat:fake/room"


class Deed(Struct, frozen=True):
    """What somebody does, or what happens. `which` is counted among the messages that there are."""

    what: Literal["say", "change", "take back", "wait", "drive", "kill before", "kill within"]
    which: int = 0


class Quiet:
    """A listener to whom nothing matters."""

    def take(self, mail: int, head: int) -> None: ...

    def finish(self, turn: Any) -> None: ...

    def is_waited_for(self) -> bool:
        return False

    def wake(self, thread: str) -> None: ...


class Town:
    def __init__(self, store: Store, steering: Any) -> None:
        self.store = store
        self.steering = steering
        self.room = Address("fake", secrets.token_hex(8))
        self.now = 1000.0
        self.events: list[str] = []
        self.withdrawn: set[str] = set()
        self.mails: dict[int, str] = {}
        self.thread = ""
        self.count = 0

    def letter(self, who: str, text: str) -> Said:
        return Said(said(text) if text else (), who, str(self.room), principal=OWNER, due=self.now + 1.0)

    def inbound(self, event: str, letter: Said | Amendment) -> Inbound:
        return Inbound(self.room, f"{self.room} {event}", letter, OWNER)

    async def do(self, deed: Deed) -> None:
        self.count += 1
        match deed.what:
            case "say":
                who, event = PEOPLE[deed.which % 2], f"m{self.count}"
                receipt = await self.store.receive(
                    Inbound(self.room, f"{self.room} {event}", self.letter(who, event), OWNER)
                )
                self.events.append(event)
                self.mails[receipt.id], self.thread = f"{event} {who}", receipt.thread
            case "change" | "take back" if self.events:
                event = self.events[deed.which % len(self.events)]
                who = next(each.split()[1] for each in self.mails.values() if each.startswith(f"{event} "))
                gone = deed.what == "take back"
                change = Amendment(0, self.letter(who, "" if gone else f"{event} changed {self.count}"), gone)
                taken = await self.store.amend(
                    Inbound(self.room, f"{self.room} c{self.count}", change, OWNER), f"{self.room} {event}"
                )
                if gone and taken:
                    self.withdrawn.add(event)
            case "wait":
                self.now += 0.6
            case "drive" | "kill before" | "kill within" if self.thread:
                await self.drive(deed.what)

    async def drive(self, what: str) -> float:
        """When it is to be looked at again; 0: there is no need."""
        book = await Book.open(self.store, Thread(self.thread), Quiet())
        if book.in_the_middle:
            await book.take_over()
        while True:
            await book.absorb(self.steering, KnownPeople(), self.now)
            if what == "kill before":
                return 0.0
            if book.thread.rests:
                if await book.rest():
                    return book.ripe
                continue
            if not await book.write(ModelCalled("m")):
                continue
            if what == "kill within":
                return 0.0
            book.keep(ModelSaid("answer", model="m"))


async def live(store: Store, deeds: Sequence[Deed], steering: str) -> Town:
    town = Town(store, steering)
    for deed in deeds:
        await town.do(deed)
    town.now += 100.0
    if town.thread:
        await town.drive("drive")
    return town


async def check(town: Town) -> None:
    if not town.thread:
        return
    entries = await town.store.read(town.thread)
    heard = [entry for entry in entries if isinstance(entry, UserSaid) and entry.mail]
    names = [town.mails[entry.mail].split()[0] for entry in heard]
    assert len(names) == len(set(names))
    assert set(town.events) - town.withdrawn <= set(names) <= set(town.events)
    assert all(text_of(entry.parts).startswith(name) for entry, name in zip(heard, names, strict=True))
    words = [entry for entry in entries if isinstance(entry, UserSaid) and not entry.mail]
    assert all(text_of(entry.parts).startswith((CHANGED, "[I have taken back")) for entry in words)
    assert await town.store.mail(town.thread) == []
    assert await town.store.unfinished(town.thread) == []


ALL_DEEDS = ("say", "say", "say", "change", "take back", "wait", "drive", "kill before", "kill within")
DEEDS = st.lists(
    st.builds(
        Deed,
        st.sampled_from(ALL_DEEDS),
        st.integers(0, 5),
    ),
    max_size=14,
)


class Site(Struct, frozen=True):
    """One store for all examples, and the loop that it lives in."""

    runner: asyncio.Runner
    store: SqliteStore


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with asyncio.Runner() as runner:
        store = runner.run(SqliteStore.connect(tmp_path_factory.mktemp("home")))
        try:
            yield Site(runner, store)
        finally:
            runner.run(store.close())


@examples(400)
@given(deeds=DEEDS, steering=st.sampled_from(["steer", "queue", "interrupt"]))
def test_each_message_is_in_exactly_one_turn_or_was_taken_back(site: Site, deeds: list[Deed], steering: str):
    site.runner.run(check(site.runner.run(live(site.store, deeds, steering))))


def test_a_thread_that_is_looked_at_too_early_waits_for_the_last_of_a_burst(site: Site):
    async def look_twice() -> tuple[list[float], list[str]]:
        town, ripe = Town(site.store, "steer"), []
        for _ in range(2):
            await town.do(Deed("say"))
            ripe.append(await town.drive("drive") - town.now)
            town.now += 0.9
        town.now += 0.2
        ripe.append(await town.drive("drive"))
        heard = [text_of(each.parts) for each in await town.store.read(town.thread) if isinstance(each, UserSaid)]
        return [round(each, 3) for each in ripe], heard

    assert site.runner.run(look_twice()) == ([1.0, 1.0, 0.0], ["m1", "m2"])


def test_the_check_notices_a_message_that_is_in_no_turn(site: Site):
    town = site.runner.run(live(site.store, [Deed("say"), Deed("take back")], "steer"))
    site.runner.run(check(town))
    town.withdrawn.clear()
    with pytest.raises(AssertionError):
        site.runner.run(check(town))
