"""The files that stand in prompts, under any sequence of what strangers, people, looks, answers and restarts do."""

import asyncio
import itertools
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.errors import MailRefused
from everloop.files.folder import Folder
from everloop.ports.rows import Commit, Lease, Taint, Untaint
from everloop.store.sqlite import SqliteStore
from everloop.tools.bootstrap import FILES, Bootstrap
from everloop.tools.prompt_files import Beside, FilesWithSkills, WatchedFiles
from everloop.tools.skill_files import SkillFiles, is_skill_file
from everloop.tools.tainted import Tainted
from everloop.tools.workspace import Workspace

LETTER = Inbound(Address("cli", "direct"), "e", Said(said("hi"), "owner", "cli:direct"))
DEEDS = ["begin", "evil", "evil", "plant", "end", "end unseen", "edit", "add", "remove", "look", "yes", "no"]
OPERATIONS = st.lists(st.sampled_from([*DEEDS, "restart", "other"]), max_size=25)
SKILL = "skills/one/SKILL.md"
FILE = st.sampled_from(["USER.md", SKILL, "skills/new/SKILL.md"])


class Home:
    """A home with two houses, one of which drives a conversation that has read strangers' words."""

    def __init__(self, folder: Path, store: SqliteStore, lease: Lease, file: str = "USER.md") -> None:
        self.workspace = folder / "workspace"
        for name in ("USER.md", SKILL):
            (self.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / name).write_text("at first")
        self.file = self.workspace / file
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self._files = Folder(folder / "files")
        self._store = store
        self._lease = lease
        self._numbers = itertools.count(1)
        self.open: list[str] = []
        self.running: set[str] = set()  # commands in the background
        self.accepted: set[str] = set()  # what a person has said yes to
        self.mine = self.other = self.house()

    def house(self) -> WatchedFiles:
        async def ended(thread: str, name: str) -> float | None:
            return None if name in self.running else time.time()

        workspace = Workspace(self.workspace)
        tainted = Tainted(self._store, str(self.workspace), ended)
        source = FilesWithSkills(Bootstrap(workspace), SkillFiles(workspace))
        return WatchedFiles(source, workspace, self._store, tainted, self._files)

    async def commit(self, **what) -> None:
        committed = await self._store.commit(self._lease, Commit(**what))
        self._lease.epoch, self._lease.head = committed.epoch, committed.head

    async def do(self, operation: str) -> None:
        file, number = self.file, next(self._numbers)
        now = file.read_text() if file.exists() else ""
        match operation:
            case "begin":
                await self.mine.look()
                self.open.append(f"{self._lease.thread}:{number}:0")
                await self.commit(taints=[Taint(self.open[-1], str(self.workspace), time.time())])
            case "evil" if self.open or self.running:
                file.write_text(f"evil-{number}.")
            case "plant" if self.open or self.running:
                file.write_text(now + f"\nevil-{number}.")
            case "end" if self.open:
                await self.mine.look(closely=True)
                await self.commit(untaints=[Untaint(self.open.pop(), time.time())])
            case "end unseen" if self.open:  # its command goes on; the next such ends the one before
                await self.mine.look(closely=True)
                self.running.clear()
                self.running.add(f"b{number}")
                await self.commit(untaints=[Untaint(self.open.pop(), time.time(), f"b{number}")])
                self.mine.expect_more()
            case "edit":
                file.write_text(f"mine-{number}.")
            case "add":
                file.write_text(now + f"\nmine-{number}.")
            case "remove":
                file.unlink(missing_ok=True)
            case "look":
                await self.mine.look()
            case "other":
                await self.other.look()
            case "restart":
                self.mine = self.house()
                await self.mine.look()
            case "yes" | "no":
                await self.decide(operation == "yes")

    async def decide(self, allow: bool) -> None:
        for held in await self.mine.held():
            try:
                await self.other.decide(held, allow)
            except MailRefused:
                continue
            if allow:
                self.accepted |= set((held.found.content or b"").decode().split())

    def told(self) -> set[str]:
        accepted = [state.content or b"" for house in (self.mine, self.other) for state in house.accepted.values()]
        sections = [each.text for house in (self.mine, self.other) for each in house.sections()]
        return {word for text in (*sections, *(each.decode() for each in accepted)) for word in text.split()}


async def play(operations: list[str], file: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await SqliteStore.connect(Path(folder), synchronous="OFF")
        try:
            home = Home(Path(folder), store, Lease((await store.receive(LETTER)).thread), file)
            await home.mine.look()
            for operation in operations:
                await home.do(operation)
                assert not {word for word in home.told() if word.startswith("evil")} - home.accepted
            await settle(home)
        finally:
            await store.close()


async def settle(home: Home) -> None:
    """When all is over and answered, what a person edits is told at once."""
    while home.open:
        await home.do("end")
    home.running.clear()
    await home.mine.look()
    await home.mine.look()
    await home.do("no")
    assert await home.mine.held() == []
    home.file.write_text("mine-last.")
    await home.mine.look()
    assert "mine-last." in home.told()


@given(OPERATIONS, FILE)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_strangers_words_are_never_told_before_a_yes_and_a_persons_are_in_the_end(operations: list[str], file: str):
    asyncio.run(play(operations, file))


def test_the_check_notices_a_look_that_was_left_out():
    """Without a look before a taint ends, what came in it would be taken for a person's."""

    async def careless() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = await SqliteStore.connect(Path(folder), synchronous="OFF")
            home = Home(Path(folder), store, Lease((await store.receive(LETTER)).thread))
            await home.mine.look()
            await home.do("begin")
            await home.do("evil")
            await home.commit(untaints=[Untaint(home.open.pop(), time.time())])
            await home.mine.look()
            await store.close()
            assert not {word for word in home.told() if word.startswith("evil")}

    with pytest.raises(AssertionError):
        asyncio.run(careless())


class TestTaintedFiles:
    """Whether a file was written while strangers' words could have been, by its time."""

    async def at(self, tmp_path: Path, ends: dict[str, float | None], moment: float, command: str) -> bool:
        async def ended(thread: str, name: str) -> float | None:
            return ends.get(name, 0.0)

        store = await SqliteStore.connect(tmp_path)
        lease = Lease((await store.receive(LETTER)).thread)
        taint = Taint(f"{lease.thread}:2:0", "/w", 100.0)
        committed = await store.commit(lease, Commit(taints=[taint]))
        lease.epoch, lease.head = committed.epoch, committed.head
        await store.commit(lease, Commit(untaints=[Untaint(taint.key, 101.0, command)]))
        held = await Tainted(store, "/w", ended).holds(moment)
        await store.close()
        return held

    @pytest.mark.parametrize(
        ("ends", "command", "moment", "holds"),
        [
            ({"b2-0": None}, "b2-0", 500.0, True),  # it still runs
            ({"b2-0": 300.0}, "b2-0", 299.0, True),
            ({"b2-0": 300.0}, "b2-0", 500.0, False),
            ({"2-0": None}, "2-0", 500.0, True),  # it was broken off, and runs on
            ({"b2-0": None}, "2-0", 500.0, True),  # or was one of the background
            ({}, "", 500.0, False),
            ({}, "", 99.0, False),
        ],
    )
    async def test_a_command_in_the_background_counts_until_it_is_over(
        self, tmp_path: Path, ends: dict[str, float | None], command: str, moment: float, holds: bool
    ):
        assert await self.at(tmp_path, ends, moment, command) is holds


async def test_files_that_nobody_has_seen_yet_are_accepted_all(tmp_path: Path):
    store = await SqliteStore.connect(tmp_path)
    home = Home(tmp_path, store, Lease("none"))
    await home.mine.look()
    rows = [row for row in await store.watched(str(home.workspace)) if not is_skill_file(row.name)]
    assert [(row.name, row.held) for row in rows] == [(name, None) for name in sorted(FILES)]
    await store.close()


@pytest.mark.parametrize("beside", [True, False])
async def test_no_watcher_ends_a_taint_before_those_beside_it_have_judged(tmp_path: Path, beside: bool):
    """A command in the background has changed a file of another watcher. Without one another they would let it in."""

    async def ended(thread: str, name: str) -> float | None:
        return time.time()

    folder, store = tmp_path / "workspace", await SqliteStore.connect(tmp_path)
    folder.mkdir()
    (folder / "USER.md").write_text("at first")
    workspace, both = Workspace(folder), Beside() if beside else None
    tainted, files = Tainted(store, str(folder), ended), Folder(tmp_path / "files")
    mine = WatchedFiles(Bootstrap(workspace), workspace, store, tainted, files, beside=both)
    other = WatchedFiles(SkillFiles(workspace), workspace, store, tainted, files, beside=both)
    for each in (mine, other):
        await each.look()
    lease = Lease((await store.receive(LETTER)).thread)
    taint = Taint(f"{lease.thread}:2:0", str(folder), time.time())
    committed = await store.commit(lease, Commit(taints=[taint]))
    lease.epoch, lease.head = committed.epoch, committed.head
    await store.commit(lease, Commit(untaints=[Untaint(taint.key, time.time(), "b2-0")]))
    (folder / "USER.md").write_text("OWNED")
    for each in (mine, other):
        each.expect_more()
    await other.look()
    await mine.look()
    assert await store.taints(str(folder)) == []
    assert mine.accepted["USER.md"].content == (b"at first" if beside else b"OWNED")
    await store.close()
