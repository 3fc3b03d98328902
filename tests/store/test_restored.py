"""What a restored store does not do by itself, on SQLite and on PostgreSQL, and what goes on when it is adopted."""

import asyncio
import math
import time
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from tests.store.conftest import Home, PostgresHome, SqliteHome
from tests.store.test_old import Old, old

import everloop
from everloop.app.files import open_storage
from everloop.app.new_home import make_room
from everloop.app.opening import opened_home
from everloop.core.log import GaveUp, UserSaid
from everloop.core.mail import Address, Inbound, Outbound, Said
from everloop.core.message import said
from everloop.errors import HomeError
from everloop.ports import KeptFile, Store
from everloop.ports.audit import line_of
from everloop.ports.backup import Adopted, HeldBack, RestoredCopy
from everloop.ports.jobs import Job
from everloop.ports.rows import Commit, Lease
from everloop.runtime.cutting_off import TOLD, cut_off
from everloop.runtime.people import KnownPeople
from everloop.store.copying import counts_in
from everloop.store.postgres import PostgresStore
from everloop.store.sqlite import SqliteStore
from everloop.testing import Say, ScriptedModel

COPY = RestoredCopy("everloop-20261118-070000.tar.gz", 1_000_000_000.0, 1_000_003_600.0)
HOUR = 3600.0

__all__ = ["old"]


def letter(event: str, text: str, chat: str = "fake:chat") -> Inbound:
    return Inbound(Address.parse(chat), event, Said(said(text), "owner"), "owner")


async def answered(store: Store, chat: str, text: str) -> str:
    """Something waits to be sent there; the key that it has."""
    receipt = await store.receive(letter(f"{chat}-{text}", "hello", chat))
    key = f"reply:{receipt.thread}:{receipt.id}"
    answer = Outbound(key, Address.parse(chat), text, mails=(receipt.id,))
    row = (await store.open(receipt.thread)).row
    commit = Commit(absorbed=(receipt.id,), ended=((receipt.id, -1),), outbox=(answer,), state="resting", release=True)
    await store.commit(Lease(receipt.thread, row.epoch, row.head), commit)
    return key


async def test_what_waited_to_be_sent_is_held_and_listed_until_somebody_says_so(store: Store):
    await answered(store, "fake:chat", "to a platform")
    await answered(store, "page:chat", "to the page")
    held = await store.hold_back(COPY, [])
    assert held == HeldBack(answers=1)
    assert await store.due("fake") == []
    assert [each.text for each in await store.unshown("page:chat")] == ["to the page"]
    [waiting] = await store.undelivered()
    assert waiting.why.startswith("from a backup of 2001-09-09 01:46 UTC: it may have been sent since.")
    await store.adopt()
    assert await store.due("fake") == []
    assert await store.send_again(waiting.id)
    assert [row.outbound.text for row in await store.due("fake")] == ["to a platform"]


async def test_without_being_held_it_would_be_sent(store: Store):
    await answered(store, "fake:chat", "to a platform")
    assert [row.outbound.text for row in await store.due("fake")] == ["to a platform"]


async def test_what_is_sent_later_has_keys_that_the_original_never_had(store: Store):
    await answered(store, "fake:one", "from before")
    await store.hold_back(COPY, [])
    await answered(store, "fake:two", "from after")
    [old_one] = await store.undelivered()
    await store.send_again(old_one.id)
    assert await store.due("fake") == []
    await store.adopt()
    before, after = await store.due("fake")
    assert (before.salt, before.outbound.text) == ("", "from before")
    assert len(after.salt) > 8


async def test_in_the_same_place_what_waited_goes_on_and_says_that_it_may_be_repeated(store: Store):
    await answered(store, "fake:chat", "to a platform")
    await store.succeed(COPY, [])
    [row] = await store.due("fake")
    assert (row.outbound.text, row.unsure, row.salt) == ("to a platform", 1, "")
    assert await store.restored() is None


async def test_in_the_same_place_a_backup_of_a_copy_that_nobody_adopted_goes_on_too(store: Store):
    await store.add_job(Job("beat", "heartbeat", time.time() - HOUR, schedule="every 1800"))
    await store.keep_secret("owner", "login:codex", b"then")
    await store.hold_back(COPY, [])
    await store.succeed(COPY, [])
    assert [(row.job.id, row.state) for row in await store.jobs("owner")][1:] == [("beat", "waiting")]
    assert sorted(await store.secrets("owner")) == ["login:codex"]


async def test_jobs_wait_and_what_was_missed_is_not_made_up_for_at_once(store: Store):
    now = time.time()
    word = letter("x", "remember")
    await store.add_job(Job("once", "timer", now - HOUR, letter=word))
    await store.add_job(Job("later", "timer", now + HOUR, letter=word))
    await store.add_job(Job("often", "timer", now - 3 * HOUR, schedule="every 600", letter=word))
    await store.add_job(Job("beat", "heartbeat", now - HOUR, schedule="every 1800"))
    await store.add_job(Job("tidy", "tidy", now - HOUR, owner="", schedule="every 86400"))
    await store.add_job(Job("gone", "delete", now - HOUR))  # somebody has asked for it
    assert (await store.hold_back(COPY, [])).jobs == 4
    assert await store.fire() == []
    kinds = ["heartbeat", "tidy", "delete"]
    assert [row.job.id for row in await store.claim_jobs(kinds, 30.0, limit=9)] == ["gone"]
    assert not await store.is_due(["heartbeat", "tidy"])
    assert await store.restored() is not None
    assert await store.adopt() == Adopted(jobs=3, missed=1, answers=0)
    assert await store.restored() is None
    assert await store.adopt() is None
    assert await store.fire() == []
    assert [row.job.id for row in await store.claim_jobs(kinds, 30.0, limit=9)] == ["tidy"]
    jobs = {row.job.id: row for row in await store.jobs("owner")}
    assert all(jobs[id].job.due > now for id in ("later", "often", "beat"))
    assert jobs["once"].state == "failed"


async def test_logins_are_set_aside_and_come_back_unless_somebody_has_logged_in_anew(store: Store):
    for name in ("login:codex", "mcp:notes", "key:openai"):
        await store.keep_secret("owner", name, b"then")
    assert (await store.hold_back(COPY, [])).logins == 2
    assert await store.secret("owner", "mcp:notes") is None
    assert await store.secret("owner", "key:openai") == b"then"
    await store.keep_secret("owner", "mcp:notes", b"now")
    await store.adopt()
    assert await store.secret("owner", "login:codex") == b"then"
    assert await store.secret("owner", "mcp:notes") == b"now"
    assert sorted(await store.secrets("owner")) == ["key:openai", "login:codex", "mcp:notes"]


async def test_a_message_that_nobody_had_begun_with_is_there_and_is_not_answered(store: Store):
    receipts = [await store.receive(letter(f"m{number}", f"do {number}")) for number in range(3)]
    await store.hold_back(COPY, [])
    assert await cut_off(store, KnownPeople(store)) >= 1
    entries = await store.read(receipts[0].thread)
    said_there = [part.text for entry in entries if isinstance(entry, UserSaid) for part in entry.parts]
    assert said_there == ["do 0", "do 1", "do 2"]
    assert entries[-1] == GaveUp("restored", TOLD)
    assert await store.waiting() == []
    await store.hold_answers(COPY)
    assert await store.due("fake") == []


async def test_turns_that_were_open_when_a_machine_died_end_without_a_model_or_a_tool(old: Old):
    store = await old.home.connect()
    await store.hold_back(COPY, [])
    assert {*await store.waiting(), *(row.id for row in await store.asking())} != set()
    assert await cut_off(store, KnownPeople(store)) == 5
    assert [*await store.waiting(), *await store.asking()] == []


async def test_places_follow_the_home_and_what_strangers_wrote_stays_theirs(store: Store, home: Home):
    await home.write(
        "INSERT INTO taints(key, owner, place, began, ended, outside) "
        "VALUES('a:1:0', 'owner', '/old/workspace', 1, 2, 1)"
    )
    await store.hold_back(COPY, [("/old", "/new")])
    assert await store.taints("/new/workspace", 1.5) != []
    assert await store.taints("/new/workspace", time.time()) != []  # a restored file is of now
    assert await store.taints("/new/workspace", time.time() + HOUR) == []


async def test_a_copy_goes_from_either_database_into_either(
    sqlite_home: SqliteHome, postgres_home: PostgresHome, tmp_path: Path
):
    async with everloop.open(sqlite_home.path, provider=ScriptedModel([Say("hello"), Say("again")])) as agent:
        await agent.ask("one")
        await agent.ask("two")
    first = await sqlite_home.connect()
    await first.keep_secret("owner", "key:x", b"\x00\xff")
    await first.copy_to(str(tmp_path / "a.db"))
    server = await postgres_home.connect()
    assert isinstance(server, PostgresStore)
    assert not await server.has_rows()
    await server.note(line_of("token.made", "of a gateway that nobody has spoken with yet"))
    assert await server.has_rows()
    await server.load_from(str(tmp_path / "a.db"))
    assert await server.table_counts() == await first.table_counts() == counts_in(tmp_path / "a.db")
    assert (await server.check_audit()).broken is None
    assert await server.secret("owner", "key:x") == b"\x00\xff"
    assert len(await server.search("owner", "two")) == 1
    await server.receive(letter("new", "a number of its own"))
    await server.copy_to(str(tmp_path / "b.db"))
    back = tmp_path / "back"
    back.mkdir()
    (tmp_path / "b.db").rename(back / "everloop.db")
    again = await SqliteStore.connect(back)
    try:
        assert await again.table_counts() == await server.table_counts()
        assert (await again.check_audit()).broken is None
        assert len(await again.search("owner", "two")) == 1
        await again.receive(letter("newer", "and another"))
    finally:
        await again.close()


async def test_a_copy_is_of_one_moment_while_others_write(home: Home, tmp_path: Path):
    store, beside = await home.connect(), await home.connect()
    for number in range(200):
        await store.receive(letter(f"before-{number}", "x" * 2000))
    over, written = asyncio.Event(), 0

    async def write() -> None:
        nonlocal written
        while not over.is_set():
            await beside.receive(letter(f"during-{written}", "x" * 2000))
            written += 1
            await asyncio.sleep(0)  # a write that is quick lets nobody else go on

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        await store.copy_to(str(tmp_path / "copy.db"))
        over.set()
    counts = counts_in(tmp_path / "copy.db")
    assert 200 <= counts["inbox"] <= 200 + written
    assert counts["threads"] == counts["sessions"] == 1


def test_a_store_that_is_no_copy_says_so(tmp_path: Path):
    async def look() -> RestoredCopy | None:
        store = await SqliteStore.connect(tmp_path)
        try:
            return await store.restored()
        finally:
            await store.close()

    assert asyncio.run(look()) is None


async def test_a_home_that_is_used_is_not_moved_aside_wherever_its_rows_lie(home: Home, tmp_path: Path):
    folder = tmp_path / "used"
    folder.mkdir()
    url = home.url if isinstance(home, PostgresHome) else ""
    (folder / "config.toml").write_text(f'[store]\nurl = "{url}"\n')
    async with opened_home(folder):
        with pytest.raises(HomeError, match="is in use by process"):
            make_room(folder, replace=True)
    assert make_room(folder, replace=True).aside is not None


async def test_a_copy_removes_nothing_from_the_bucket_that_it_shares_with_the_original(tmp_path: Path):
    """What nothing names in the copy may be what somebody has sent to the original since."""
    asked = list[str]()

    async def refuse(request: web.BaseRequest) -> web.Response:
        asked.append(request.method)
        return web.Response(status=404)

    newer = KeptFile("owner", f"file:{'0' * 64}", 1, 0.0)
    async with RawTestServer(refuse) as server:
        given = {"url": "s3://bucket", "endpoint": str(server.make_url("")), "access_key": "x", "secret_key": "y"}
        async with opened_home(tmp_path / "home", {"files": given}) as opened:
            shelves = (await open_storage(opened, KnownPeople(opened.store))).shelves
            await opened.store.hold_back(COPY, [])
            assert [each async for each in shelves.remove([newer], math.inf)] == []
            assert asked == []
            await opened.store.adopt()
            assert [each async for each in shelves.remove([newer], math.inf)] == []
            assert asked == ["HEAD"]
