"""Backups of a house in which people talk: restored elsewhere, each has every message that was acknowledged before it
was begun, and nothing is said a second time. The same by copying files, or without holding anything back, fails."""

import asyncio
import json
import signal
import sys
import tarfile
from asyncio import create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import apsw
import pytest
from aiohttp import web
from tests.channels.receiver import SECRET, Program, headers_of, message, post
from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.effort import in_full
from tests.ports import free_port
from tests.store.conftest import PostgresHome

from everloop.testing import Say, Shown
from everloop.testing.model_server import ModelServer

CHATS = 6
STUCK = "chat stuck"
BACKUPS = in_full(6, 2)
# A command that kills itself at a failpoint; else it is the command that everybody types.
KILLED = """
import sys
from everloop.cli import run
from everloop.testing import failpoints
failpoints.arm(sys.argv[1])
run(sys.argv[2:])
"""


def lines(shown: Shown) -> list[object]:
    return [Say(f"you said {shown.asked.split()[0]}")]


class Refusing(Program):
    """It does not take what is for one of its chats yet; `tried` are the messages whose answers it has refused."""

    refuses = False

    def __init__(self) -> None:
        super().__init__()
        self.tried: set[str] = set()

    async def _take(self, request: web.Request) -> web.Response:
        told = json.loads(await request.read())
        if self.refuses and told["chat"] == STUCK:
            self.tried.add(told["in_reply_to"])
            return web.Response(status=503)
        return await super()._take(request)


class Town:
    """A gateway, and people who write to it through a webhook: `acked` are the messages that it has acknowledged."""

    def __init__(self, person: Person, program: Refusing) -> None:
        self.person = person
        self.program = program
        self.acked: set[str] = set()
        self.url = ""

    async def talk(self, chat: int, over: asyncio.Event) -> None:
        number = 0
        while not over.is_set():
            event = f"{chat}-{number}"
            await self.say(event, f"chat {chat}")
            await self.program.answered({event})
            number += 1

    async def say(self, event: str, chat: str, url: str = "") -> None:
        await post(url or self.url, event, message(event, chat, "anna"))
        self.acked.add(event)

    async def is_refused(self) -> None:
        while not self.program.tried:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async def backup(self) -> tuple[Path, set[str]]:
        before = set(self.acked)
        ran = await self.person.run("backup", "create", "--json")
        assert ran.status == 0, ran.err
        [made] = [path for path in (self.person.home / "backups").iterdir() if path.name in ran.out]
        return made, before


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with ModelServer(lines) as model, Refusing().open() as program:
        assert isinstance(program, Refusing)
        person = Person(tmp_path, model)
        person.environment["EVERLOOP_CHANNELS__WEBHOOK__URL"] = program.url
        person.environment["EVERLOOP_CHANNELS__WEBHOOK__SECRET"] = SECRET
        person.environment["EVERLOOP_USERS__STRANGERS"] = "guest"
        person.environment["EVERLOOP_USERS__BUDGETS__GUEST_TOKENS"] = "0"
        person.environment["EVERLOOP_USERS__BUDGETS__GUESTS_TOKENS"] = "0"
        yield Town(person, program)
        await person.leave()


@asynccontextmanager
async def gateway(person: Person, links: bool = True) -> AsyncIterator[str]:
    running = await start(person, free_port(), links)
    try:
        yield running.url
    finally:
        await running.stop()


def moved(person: Person, home: Path) -> Person:
    """The same person in another home, with whatever store its own settings name."""
    other = Person(home.parent, ModelServer(lines))
    other.home = home
    other.environment = {**person.environment, "EVERLOOP_HOME": str(home)}
    other.environment.pop("EVERLOOP_STORE__URL", None)
    return other


async def killed_at(person: Person, point: str, *command: str) -> int:
    environment = {**person.environment, "EVERLOOP_TEST": "1"}
    process = await create_subprocess_exec(sys.executable, "-c", KILLED, point, *command, env=environment)
    return await process.wait()


def events_in(home: Path) -> set[str]:
    connection = apsw.Connection(str(home / "everloop.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return {event for (event,) in connection.execute("SELECT event FROM inbox WHERE channel = 'webhook'")}
    finally:
        connection.close()


async def is_adopted_and_says_nothing_twice(town: Town, copy: Person) -> None:
    posts, taken = dict(town.program.posts), dict(town.program.taken)
    async with gateway(copy, links=False) as url:
        body = message("early", "chat 0", "anna")
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{url}/hooks/webhook", data=body, headers=headers_of("early", body)) as answer,
        ):
            assert answer.status == 503  # nobody listens there yet, and it is to come again
        assert (await copy.run("backup", "adopt")).status == 0
        fresh = {f"{copy.home.name}-{chat}" for chat in (*range(CHATS), "stuck")}
        for event in sorted(fresh):
            await town.say(event, f"chat {event.rpartition('-')[2]}", url)
        await town.program.answered(fresh)  # each chat is answered in order: what waited there would have gone before
    assert {id: town.program.posts[id] for id in posts} == posts
    news = [each["in_reply_to"] for id, each in town.program.taken.items() if id not in taken]
    assert sorted(news) == sorted(fresh)


@pytest.mark.shortened
async def test_a_backup_under_load_has_all_that_was_acknowledged_and_says_nothing_twice(town: Town, tmp_path: Path):
    made = list[tuple[Path, set[str]]]()
    async with gateway(town.person) as town.url:
        town.program.refuses = True
        await town.say("stuck", "chat stuck")
        await town.is_refused()
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for chat in range(CHATS):
                group.create_task(town.talk(chat, over))
            made.append(await town.backup())
            assert await killed_at(town.person, "backup.packing", "backup", "create") == -signal.SIGKILL
            town.program.refuses = False
            for _ in range(BACKUPS - 1):
                made.append(await town.backup())
            over.set()
        await town.program.answered(set(town.acked))
    left = sorted(path.name for path in (town.person.home / "backups").iterdir() if path.name.startswith("."))
    assert left == []  # of the one that was killed: the next has seen to that
    assert len(made[-1][1]) > 1
    for number, (file, before) in enumerate(made):
        home = tmp_path / f"copy{number}"
        assert (await town.person.run("backup", "restore", str(file), "--home", str(home))).status == 0
        assert events_in(home) >= before
        listed = (await moved(town.person, home).run("outbox", "list")).out
        assert ("from a backup of" in listed) or number > 0
    await is_adopted_and_says_nothing_twice(town, moved(town.person, tmp_path / "copy0"))


async def test_without_what_a_restore_does_the_same_backup_speaks_twice(town: Town, tmp_path: Path):
    """The control: the same files, put into a home by hand."""
    async with gateway(town.person) as town.url:
        town.program.refuses = True
        await town.say("stuck", "chat stuck")
        await town.is_refused()
        file, _ = await town.backup()
        town.program.refuses = False
        await town.program.answered({"stuck"})
    [id] = town.program.taken
    posts = town.program.posts[id]
    home = tmp_path / "by-hand"
    with tarfile.open(file) as tar:
        tar.extractall(home, filter="data")
    async with gateway(moved(town.person, home), links=False):
        while town.program.posts[id] == posts:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert town.program.posts[id] > posts


async def test_a_copy_of_the_file_while_it_is_written_is_not_enough(town: Town, tmp_path: Path):
    """The control: what was acknowledged lies in the WAL, of which a copy of the file knows nothing."""
    async with gateway(town.person) as town.url:
        await town.say("one", "chat 0")
        (tmp_path / "naive").mkdir()
        (tmp_path / "naive" / "everloop.db").write_bytes((town.person.home / "everloop.db").read_bytes())
        with suppress(apsw.Error):  # it may not even be a database
            assert "one" not in events_in(tmp_path / "naive")


async def test_a_house_on_postgres_is_restored_into_another_database(town: Town, tmp_path: Path, postgres: str):
    first, second = await PostgresHome(postgres).create(), await PostgresHome(postgres).create()
    town.person.environment["EVERLOOP_STORE__URL"] = first.url
    try:
        async with gateway(town.person) as town.url:
            town.program.refuses = True
            await town.say("stuck", "chat stuck")
            await town.is_refused()
            over = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                for chat in range(CHATS):
                    group.create_task(town.talk(chat, over))
                file, before = await town.backup()
                over.set()
                town.program.refuses = False
            await town.program.answered(set(town.acked))
        copy = moved(town.person, tmp_path / "copy")
        assert await killed_at(copy, "restore.settled", "backup", "restore", str(file), "--store", second.url) < 0
        half = await copy.run("users", "list")
        assert (half.status, "half restored" in half.err) == (1, True)
        ran = await copy.run("backup", "restore", str(file), "--store", second.url)
        assert ran.status == 0, ran.err
        assert {row[0] for row in await second.rows("SELECT event FROM inbox WHERE channel = 'webhook'")} >= before
        await is_adopted_and_says_nothing_twice(town, copy)
    finally:
        await first.close()
        await second.close()
