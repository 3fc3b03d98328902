"""What has expired is forgotten once a day, by whoever sees to everyone's jobs; nothing else is."""

import asyncio
import os
from pathlib import Path
from typing import Any

from everloop.app import open_desk
from everloop.files.folder import HALF_WRITTEN
from everloop.ports import Store
from everloop.ports.jobs import Job
from everloop.testing import ScriptedModel

from .conftest import Home

MONTH = 30 * 86400
NOW = {"SqliteHome": "unixepoch('subsec')", "PostgresHome": "extract(epoch from clock_timestamp())"}


async def fill(home: Home, store: Store) -> None:
    """Of each kind one that has expired long ago, one that expired just now, and one that holds."""
    await store.add_job(Job("old", "none", 1.0))
    await store.add_job(Job("recent", "none", 1.0))
    await store.add_job(Job("open", "none", 1.0))
    now = NOW[type(home).__name__]
    await home.write(f"UPDATE jobs SET state = 'done', until = {now} - {MONTH} - 9 WHERE id = 'old'")
    await home.write(f"UPDATE jobs SET state = 'failed', until = {now} - 9 WHERE id = 'recent'")
    for name, ago in {"old": MONTH + 9, "recent": 9, "open": -9999}.items():
        until = f"{now} - ({ago})"
        await home.write(
            f"INSERT INTO grants(id, owner, at, until, runs, body) VALUES('{name}', 'owner', 0, {until}, 1, '')"
        )
        await home.write(f"INSERT INTO tokens VALUES('{name}', 'owner', '{name}', '{name}', '', 0, {until}, '')")
        await home.write(f"INSERT INTO web_sessions VALUES('{name}', 'owner', '{name}', '{name}', 0, {until})")
        await home.write(f"INSERT INTO logins VALUES('owner', '{name}', '{name}', 0, {until})")
    await home.write("INSERT INTO tokens VALUES('ever', 'owner', 'ever', 'ever', '', 0, 0, '')")
    await home.write("INSERT INTO logins VALUES('owner', 'password', 'x', 0, 0)")


async def left(home: Home) -> dict[str, list[str]]:
    ids = {"jobs": "id", "grants": "id", "tokens": "id", "web_sessions": "id", "logins": "kind"}
    return {table: sorted(id for (id,) in await home.rows(f"SELECT {id} FROM {table}")) for table, id in ids.items()}


LEFT = {
    "jobs": ["open", "recent"],
    "grants": ["open", "recent"],
    "tokens": ["ever", "open", "recent"],
    "web_sessions": ["open"],
    "logins": ["open", "password"],
}


async def test_what_holds_no_longer_is_forgotten_and_what_a_person_may_look_for_stays_a_month(home: Home):
    store = await home.connect()
    await fill(home, store)
    gone = await store.forget_expired()
    assert gone == {"grants": 1, "tokens": 1, "jobs": 1, "visits": 2, "links": 2}
    assert await left(home) == LEFT
    assert await store.forget_expired() == {}


async def test_a_gateway_tidies_once_a_day_and_keeps_what_came_of_it(home: Any, tmp_path: Path):
    folder = getattr(home, "path", tmp_path)
    drafts, exports = folder / "files" / HALF_WRITTEN, folder / "importing"
    for place in (drafts, exports):
        place.mkdir(parents=True)
        for name in ("old", "new"):
            (place / name).write_text("half")
        os.utime(place / "old", (1, 1))
    store = await home.connect()
    await fill(home, store)
    settings = {"store": {"url": getattr(home, "url", "")}}
    copy = folder / "backups" / ".copy-x"  # of the database, by a backup that was killed
    copy.mkdir(parents=True)
    async with open_desk(folder, settings, provider=ScriptedModel([])):
        while not (rows := [row for row in await store.jobs("") if row.result]):  # noqa: ASYNC110  in the database
            await asyncio.sleep(0.01)
    [row] = rows
    assert (row.job.id, row.state, row.attempts) == ("tidy", "waiting", 0)
    assert row.result == "1 grants, 1 tokens, 1 jobs, 2 visits, 2 links"
    assert await left(home) == {**LEFT, "jobs": ["open", "recent", "tidy"]}
    assert [[each.name for each in place.iterdir()] for place in (drafts, exports)] == [["new"], ["new"]]
    async with open_desk(folder, settings, provider=ScriptedModel([])) as agent:
        assert [each.job.due for each in await agent.store.jobs("")] == [row.job.due]  # tomorrow
    assert not copy.exists()
