"""MEMORY.md and HISTORY.md as files: whoever edits them, nothing is lost, and no link is followed."""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everloop.app.memory_files import MemoryFiles
from everloop.app.prompt_files import memory_files, watched_files
from everloop.core.briefing import Situation
from everloop.core.people import Role
from everloop.core.prompt import Section
from everloop.files.folder import Folder
from everloop.memory.forgetting import forget
from everloop.memory.lines import lines_of, with_line, without_lines
from everloop.memory.merging import prints_of
from everloop.memory.views import LONGEST, views_in
from everloop.ports.memory import HISTORY, MEMORY, Fact, FactEnd, FactSource, MemoryChange, MemoryDocument
from everloop.readings.sections import left_out_of
from everloop.runtime.clock import MACHINE
from everloop.settings import Settings
from everloop.store.sqlite import SqliteStore
from everloop.tools.home import Home
from tests.effort import in_full

BODY = "# Memory\n\n## Ann\n\n- lives in Rome\n- likes tea\n"
ROME = Fact("f1", "lives in Rome", FactSource("t", 3, "owner", 1.0), "Ann", 5)
TEA = Fact("f2", "likes tea", topic="Ann")


async def told_to(files: MemoryFiles, owner: str, role: Role = Role.USER) -> tuple[Section, ...]:
    """As when a conversation begins."""
    return await files.sections(Situation(owner, role, owner, "cli:x", "t"))


async def never(thread: str, name: str) -> float | None:
    return time.time()


class Machine:
    """A home of its own on one machine; several share a store."""

    def __init__(self, home: Path, store: SqliteStore) -> None:
        home.mkdir(exist_ok=True)
        self.home, self.store = home, store
        (home / "workspace").mkdir(exist_ok=True)
        self.settings = Settings()
        self.path, self.then = (home / "workspace" / "memory" / name for name in (MEMORY, HISTORY))
        self.files = self.opened()

    def opened(self) -> MemoryFiles:
        """As by another process."""
        self.watched = watched_files(Home(self.home), self.settings, self.store, Folder(self.home / "files"), never)
        return memory_files(self.home, self.settings, self.store, self.watched, MACHINE)

    async def learn(self, *facts: Fact, owner: str = "owner", **documents: str) -> None:
        """As a consolidation does."""
        made = []
        for key, body in documents.items():
            name = {"memory": MEMORY, "history": HISTORY}[key]
            made.append(MemoryDocument(name, body, (await self.store.document(owner, name)).version))
        assert await self.store.change_memory(owner, MemoryChange("", "learnt", facts=facts, documents=tuple(made)))

    async def unlearn(self, text: str, body: str) -> None:
        ended = tuple(FactEnd(fact.id, 9.0) for fact in await self.store.facts("owner") if fact.text == text)
        document = MemoryDocument(MEMORY, body, (await self.store.document("owner", MEMORY)).version)
        assert await self.store.change_memory("owner", MemoryChange("", "", ended=ended, documents=(document,)))

    async def body(self, name: str = MEMORY) -> str:
        return (await self.store.document("owner", name)).body

    async def true(self) -> set[str]:
        return {fact.text for fact in await self.store.facts("owner")}

    def edit(self, text: str) -> None:
        """As an editor does: another file in its place."""
        draft = self.path.with_name("draft")
        draft.write_text(text)
        draft.replace(self.path)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.connect(tmp_path, synchronous="OFF")
    yield store
    await store.close()


@pytest.fixture
async def machine(tmp_path: Path, store: SqliteStore) -> Machine:
    machine = Machine(tmp_path / "one", store)
    await machine.learn(ROME, TEA, memory=BODY, history="- then\n")
    await machine.files.changed("owner")
    return machine


async def test_who_has_no_memory_has_no_files_and_is_told_nothing(tmp_path: Path, store: SqliteStore):
    machine = Machine(tmp_path / "one", store)
    assert await told_to(machine.files, "owner") == await told_to(machine.files, "ann") == ()
    assert sorted(each.name for each in machine.home.iterdir()) == ["workspace"]
    assert list((machine.home / "workspace").iterdir()) == []


async def test_a_file_that_a_person_writes_first_is_told_and_a_guests_is_not(tmp_path: Path, store: SqliteStore):
    machine = Machine(tmp_path / "one", store)
    machine.path.parent.mkdir()
    machine.path.write_text(BODY)
    assert await told_to(machine.files, "owner", Role.GUEST) == ()
    [section] = await told_to(machine.files, "owner")
    assert "lives in Rome" in section.text
    assert (machine.path.read_text(), await machine.true()) == (BODY, {"lives in Rome", "likes tea"})


async def test_a_change_is_written_and_told_and_what_is_unchanged_is_the_same_object(machine: Machine):
    assert (machine.path.read_text(), machine.then.read_text()) == (BODY, "- then\n")
    [section] = await told_to(machine.files, "owner")
    assert "lives in Rome" in section.text
    before = machine.path.stat().st_ino
    assert (await told_to(machine.files, "owner"))[0] is section
    await machine.files.sync("owner")
    assert machine.path.stat().st_ino == before  # it was not written again


async def test_an_edit_by_hand_is_a_version_of_the_person_and_its_facts_follow(machine: Machine):
    machine.edit(BODY.replace("- likes tea\n", "- likes tea\n- is a pilot\n").replace("Rome", "Oslo"))
    [section] = await told_to(machine.files, "owner")
    assert ("lives in Oslo" in section.text, "Rome" in section.text) == (True, False)
    assert await machine.true() == {"lives in Oslo", "likes tea", "is a pilot"}
    [latest, *_] = await machine.store.memory_versions("owner")
    assert (latest.author, latest.why, latest.documents) == ("owner", "edited by hand", (MEMORY,))
    assert "Oslo" not in latest.why


async def test_of_two_changes_none_is_lost(machine: Machine):
    """Both were made from the same version: one by hand, one by the agent."""
    await machine.learn(Fact("f3", "ships on Fridays", topic="Work"), memory=BODY + "\n## Work\n\n- ships on Fridays\n")
    machine.edit(BODY.replace("- likes tea\n", "- is a pilot\n"))
    await machine.files.sync("owner")
    both = "# Memory\n\n## Ann\n\n- lives in Rome\n- is a pilot\n\n## Work\n\n- ships on Fridays\n"
    assert (machine.path.read_text(), await machine.body()) == (both, both)
    assert await machine.true() == {"lives in Rome", "is a pilot", "ships on Fridays"}


async def test_several_machines_have_files_of_their_own_and_lose_no_edit(
    tmp_path: Path, store: SqliteStore, machine: Machine
):
    other = Machine(tmp_path / "two", store)
    await other.files.sync("owner")
    assert other.path.read_text() == BODY
    machine.edit(BODY + "- from one\n")
    other.edit(BODY + "- from two\n")
    await machine.files.sync("owner")
    await other.files.sync("owner")
    await machine.files.sync("owner")
    assert machine.path.read_text() == other.path.read_text() == await machine.body()
    assert {"from one", "from two", "lives in Rome", "likes tea"} == await machine.true()
    # A machine that was away for a while takes none of the news back.
    other.edit(BODY.replace("- likes tea\n", "") + "- from one\n- from two\n")
    await other.files.sync("owner")
    await machine.files.sync("owner")
    assert await machine.true() == {"from one", "from two", "lives in Rome"}


async def test_a_file_that_was_never_seen_here_and_is_an_earlier_version_is_no_edit(
    tmp_path: Path, store: SqliteStore, machine: Machine
):
    await machine.learn(memory=BODY + "- newer\n")
    other = Machine(tmp_path / "two", store)  # its disk was restored from a copy
    other.path.parent.mkdir()
    other.path.write_text(BODY)
    await other.files.sync("owner")
    assert (other.path.read_text(), await machine.body()) == (BODY + "- newer\n", BODY + "- newer\n")


async def test_what_is_forgotten_does_not_come_back_from_a_file(machine: Machine):
    machine.edit(BODY + "- is a pilot\n")  # not yet read when it is forgotten
    await forget(machine.store, "owner", "owner", ["f1"])
    await machine.files.changed("owner")
    assert machine.path.read_text() == "# Memory\n\n## Ann\n\n- likes tea\n- is a pilot\n"
    assert await machine.true() == {"likes tea", "is a pilot"}
    assert "Rome" not in b"".join(each.read_bytes() for each in machine.home.rglob("*") if each.is_file()).decode(
        "utf-8", "replace"
    )


@pytest.mark.parametrize("file", [BODY, BODY + "- newer\n"])
async def test_a_kill_between_what_is_noted_and_what_is_written_loses_nothing(machine: Machine, file: str):
    """A file is known as ours before it is written; what was removed since does not come back with it."""
    newer = BODY + "- newer\n"
    state = machine.home / "views" / "owner.json"
    views = views_in(state.read_bytes(), str(machine.home / "workspace"))
    state.write_bytes(msgspec.json.encode(views.after(MEMORY, prints_of(BODY), prints_of(newer))))
    machine.edit(file)
    await machine.learn(memory=newer)
    await machine.learn(memory=BODY + "- newest\n")
    await machine.opened().sync("owner")
    assert (machine.path.read_text(), await machine.body()) == (BODY + "- newest\n",) * 2


async def test_a_removed_file_is_written_again_and_an_emptied_one_empties(machine: Machine):
    machine.path.unlink()
    await machine.files.sync("owner")
    assert machine.path.read_text() == BODY
    machine.edit("")
    await machine.files.sync("owner")
    assert await machine.body() == BODY  # an editor may be about to write it
    os.utime(machine.path, (1, 1))
    await machine.files.sync("owner")
    assert (await machine.body(), await machine.true(), machine.path.read_text()) == ("", set(), "")
    machine.edit(BODY)
    await machine.files.sync("owner")
    assert {fact.id for fact in await machine.store.facts("owner")} == {"f1", "f2"}  # they are what they were


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"- caf\xe9\n", "it is not UTF-8"),
        ("- tea\n".encode("utf-16-le"), "it holds NUL bytes"),
        (b"- tea\x00\n", "it holds NUL bytes"),
        (b"x" * (LONGEST[MEMORY] + 1), "it is longer than 100,000 bytes"),
    ],
)
async def test_what_cannot_be_read_is_left_alone_and_told(machine: Machine, content: bytes, why: str):
    machine.path.write_bytes(content)
    await machine.learn(memory=BODY + "- newer\n")
    await machine.files.sync("owner")
    assert machine.path.read_bytes() == content
    assert [why in each for each in machine.files.problems("owner")] == [True]
    assert await machine.body() == BODY + "- newer\n"
    machine.edit(BODY + "- mine\n")  # and is taken in when it is mended
    await machine.files.sync("owner")
    assert machine.files.problems("owner") == []
    assert {"- newer", "- mine"} <= set(machine.path.read_text().split("\n"))


async def test_line_ends_and_a_mark_at_the_beginning_are_no_edit(machine: Machine):
    machine.path.write_bytes(b"\xef\xbb\xbf" + BODY.replace("\n", "\r\n").encode())
    await machine.files.sync("owner")
    assert (await machine.store.memory_version("owner"), machine.files.problems("owner")) == (1, [])


async def test_a_link_is_not_followed_neither_to_read_nor_to_write(machine: Machine, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / MEMORY).write_text("- secret\n")
    machine.path.unlink()
    machine.path.symlink_to(outside / MEMORY)
    await machine.learn(memory=BODY + "- newer\n")
    await machine.files.sync("owner")
    assert "it is a link" in machine.files.problems("owner")[0]
    machine.path.unlink()
    machine.then.unlink()
    machine.path.parent.rmdir()
    machine.path.parent.symlink_to(outside)
    await machine.files.sync("owner")
    assert "link in it leads out" in machine.files.problems("owner")[0]
    assert ((outside / MEMORY).read_text(), await machine.body()) == ("- secret\n", BODY + "- newer\n")
    assert [each.name for each in outside.iterdir()] == [MEMORY]
    assert "secret" not in str(await told_to(machine.files, "owner"))


async def test_a_pipe_or_a_folder_in_its_place_hangs_nobody(machine: Machine):
    machine.path.unlink()
    os.mkfifo(machine.path)
    await machine.files.sync("owner")
    assert "is a pipe" in machine.files.problems("owner")[0]
    machine.path.unlink()
    machine.path.mkdir()
    await machine.files.sync("owner")
    assert "is a folder" in machine.files.problems("owner")[0]
    machine.path.rmdir()
    await machine.files.sync("owner")
    assert (machine.path.read_text(), machine.files.problems("owner")) == (BODY, [])


async def test_everybody_has_their_own(machine: Machine):
    await machine.learn(Fact("f1", "mine is Bonn", topic="Bob"), owner="bob", memory="## Bob\n\n- mine is Bonn\n")
    await machine.learn(owner="chat:telegram/-7", memory="## We\n\n- meet on Mondays\n")
    told = {owner: await told_to(machine.files, owner) for owner in ("owner", "bob", "chat:telegram/-7", "eve")}
    assert {owner: [each.text.split("\n")[-1] for each in sections] for owner, sections in told.items()} == {
        "owner": ["- likes tea"],
        "bob": ["- mine is Bonn"],
        "chat:telegram/-7": ["- meet on Mondays"],
        "eve": [],
    }
    group = machine.home / "chats" / "chat%3Atelegram%2F-7" / "workspace" / "memory" / MEMORY
    group.write_text("## We\n\n- meet on Sundays\n")
    await machine.files.sync("chat:telegram/-7")
    [latest, *_] = await machine.store.memory_versions("chat:telegram/-7")
    assert (latest.author, (await machine.store.document("chat:telegram/-7", MEMORY)).body) == (
        "",
        "## We\n\n- meet on Sundays\n",
    )


async def test_a_long_memory_is_told_by_what_matters(machine: Machine):
    facts = [Fact(f"n{n}", f"number {n} of many things", topic="All", importance=2) for n in range(300)]
    lines = "".join(f"- {fact.text}\n" for fact in facts)
    await machine.learn(*facts, memory=f"{BODY}\n## All\n\n{lines}")
    [section] = await told_to(machine.opened(), "owner")
    assert (len(section.text) <= 4000, "lives in Rome" in section.text, left_out_of(section) > 100) == (
        True,
        True,
        True,
    )
    assert len(machine.path.read_text()) > 8000  # the file has all of it


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["agent", "unlearn", "edit", "remove", "sync", "restart", "lose"]), st.integers(0, 1)),
    max_size=14,
)


async def play(operations: list[tuple[str, int]], folder: Path) -> None:
    """An agent and two people at two machines, each of whom sees what their file holds."""
    store = await SqliteStore.connect(folder, synchronous="OFF")
    try:
        machines = [Machine(folder / name, store) for name in ("one", "two")]
        await machines[0].learn(memory="# Memory\n\n- first\n")
        wanted, numbers = {"first"}, count()
        for each in machines:
            await each.files.changed("owner")
        for operation, which in operations:
            machine, line = machines[which], f"line {next(numbers)}"
            held = machine.path.read_text() if machine.path.exists() else ""
            body = await machine.body()
            match operation:
                case "agent":
                    await machine.learn(Fact(line, line, topic="Memory"), memory=with_line(body, line, "Memory"))
                    wanted.add(line)
                case "unlearn" if told := lines_of(body):
                    await machine.unlearn(told[-1].text, without_lines(body, [told[-1].text]))
                    wanted.discard(told[-1].text)
                case "edit" if held:
                    machine.edit(f"{held}- {line}\n")
                    wanted.add(line)
                case "remove" if len(told := lines_of(held)) > 1:
                    machine.edit("".join(each for each in held.splitlines(True) if each != f"- {told[0].text}\n"))
                    wanted.discard(told[0].text)
                case "sync":
                    await machine.files.sync("owner")
                case "restart":
                    machine.files = machine.opened()
                case "lose":
                    await machine.files.sync("owner")
                    machine.path.unlink()
        for each in (*machines, *machines):
            await each.files.sync("owner")
        texts = [await machines[0].body(), *(each.path.read_text() for each in machines)]
        assert [{line.text for line in lines_of(text)} for text in texts] == [wanted] * 3
        assert await machines[0].true() - {"first"} == wanted - {"first"}
    finally:
        await store.close()


@pytest.mark.shortened
@given(OPERATIONS)
@settings(deadline=None, max_examples=in_full(300, 12), suppress_health_check=[HealthCheck.too_slow])
def test_whatever_two_people_and_an_agent_do_no_change_is_lost(operations: list[tuple[str, int]]):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(operations, Path(folder)))
