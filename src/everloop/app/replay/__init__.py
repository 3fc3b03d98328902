"""Runs a recorded turn again: the real driver, with a store of its own; what is outside is as it was then.

What a model answered, what a call brought, what people said and where a process died is played from the record, each at
its place; nothing is asked, run or sent. What the driver writes is compared with what was written, entry by entry.
"""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct, structs

from ...bus.local import LocalBus
from ...core.decide import Rules
from ...core.log import Answered, Entry, ModelChosen, decode, encode
from ...core.mail import Inbound, Stop
from ...core.people import Role
from ...core.thread import Thread
from ...core.tool import ToolSpec
from ...files.folder import Folder
from ...files.pictures import fit
from ...ports.rows import Commit, Lease, ThreadState
from ...runtime.driver import Driver
from ...runtime.interrupt import Interrupt
from ...runtime.models import OneModel
from ...settings import Settings
from ...testing.as_test import name_of, source_of
from ...testing.entry_difference import EntryDifference
from ...testing.masking import Masking
from ...testing.record import Record, cut, thread_before, turns_in
from ..tools import build_tools
from .book import HERE, Died, PlayedBook, PutDown
from .outside import (
    UNLIMITED,
    EmptyGallery,
    PlayedApprovers,
    PlayedBriefer,
    PlayedBudgets,
    PlayedModel,
    PlayedPeople,
    PlayedPolicy,
    PlayedStore,
    PlayedToolbox,
)
from .tape import Differs, Over, Tape

__all__ = ["Record", "Replayed", "cut", "masked", "name_of", "replay", "source_of", "tools_now", "turns_in"]

AT_ONCE = 1000  # entries in a commit


class Replayed(Struct, frozen=True):
    """`entries` are what was written now, as far as it went; `believed` of them could only be taken from the record."""

    entries: list[Entry]
    difference: EntryDifference | None
    believed: int = 0


async def replay(record: Record, specs: Mapping[str, ToolSpec] = {}) -> Replayed:
    """Run a turn again and say where it first differs, if it does. `specs` are tools as they are now, of whose names
    the record's are not used."""
    with TemporaryDirectory(prefix="everloop-replay-") as folder:
        store = await PlayedStore.connect(Path(folder), synchronous="OFF")
        assert isinstance(store, PlayedStore)
        try:
            return await _replay(record, specs, store, Path(folder))
        finally:
            await store.close()


def tools_now(settings: Settings) -> dict[str, ToolSpec]:
    """The built-in tools as this everloop knows them. What a plugin brings is not loaded: it is a stranger's code."""
    chosen = structs.replace(settings, tools=structs.replace(settings.tools, plugins=()))
    with TemporaryDirectory(prefix="everloop-replay-") as folder:
        home = Path(folder)
        tools = build_tools(home, home / "workspace", chosen, Folder(home / "files"), LocalBus(), 8000).tools
        return {tool.spec.name: tool.spec for tool in tools}


def masked(entries: Iterable[Entry], secrets: Iterable[str]) -> list[Entry]:
    """A log without these words in it, should they have been said."""
    masking = Masking(secrets)
    return [decode(masking.data(encode(entry))) for entry in entries]


async def _replay(record: Record, specs: Mapping[str, ToolSpec], store: PlayedStore, home: Path) -> Replayed:
    tape = Tape(record, specs)
    store.play(tape)
    thread = await _begin(store, record)
    driver = _driver(store, tape, home)
    difference = None
    try:
        await _run(driver, store, thread, tape)
    except Differs as found:
        difference = found.difference
    entries = await store.read(thread, after=record.start - 1)
    return Replayed(entries, difference or tape.compare_all(entries), tape.believed)


async def _begin(store: PlayedStore, record: Record) -> str:
    """A thread that holds what came before, each entry at its place; before a compaction nothing is ever read."""
    thread = (await store.command(Inbound(HERE, "begin", Stop("replay")), "new", "")).thread
    unread: Entry = ModelChosen("")
    entries = [unread] * (record.start - 1 - len(record.before)) + [*record.before]
    state: ThreadState = "running" if thread_before(record).owes_reply else "resting"
    lease = Lease(thread)
    for at in range(0, len(entries), AT_ONCE):
        last = at + AT_ONCE >= len(entries)
        commit = Commit(entries[at : at + AT_ONCE], release=last, state=state if last else "running")
        committed = await store.commit(lease, commit)
        lease = Lease(thread, committed.epoch, committed.head)
    return thread


async def _run(driver: Driver, store: PlayedStore, thread: str, tape: Tape) -> None:
    """One life of a process after the other, until all that was recorded has happened again."""
    interrupt = tape.interrupt = Interrupt(asyncio.current_task())
    while True:
        before = tape.seq
        book = await PlayedBook.open(store, Thread(thread), tape)
        try:
            await driver.drive(book, interrupt, lambda: False)
        except Died:
            continue
        except PutDown:
            await book.give_back()
            continue
        except Over:
            await book.give_back()
            return
        if tape.coming is None:
            return
        if tape.seq == before:
            raise Differs(tape.differs("nothing: it rests"))


def _driver(store: PlayedStore, tape: Tape, home: Path) -> Driver:
    record = tape.record
    deciders = {entry.by: Role.OWNER for entry in record.turn if isinstance(entry, Answered)}
    rules = Rules(tape.tools, record.max_steps, limit=UNLIMITED, policy=PlayedPolicy(tape=tape))
    models, briefer = OneModel(PlayedModel(tape)), PlayedBriefer(rules)
    files = Folder(home / "files")
    return Driver(
        store=store,
        bus=LocalBus(),
        models=models,
        briefer=briefer,
        toolbox=PlayedToolbox(tape, files),
        gallery=EmptyGallery(files, fit),
        people=PlayedPeople(tape, deciders),
        approvers=PlayedApprovers(tape),
        budgets=PlayedBudgets(store, tape),
    )
