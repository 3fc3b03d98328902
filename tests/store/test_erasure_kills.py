"""A process that is killed while it erases somebody has erased nobody yet, or the next one finishes it."""

import asyncio
import os
import signal
import sys
from asyncio import create_subprocess_exec
from pathlib import Path
from typing import Any

import pytest
from tests.store.test_erasing import place_of
from tests.store.town import Town, canary, tables_holding

import everloop
from everloop.core.people import Role
from everloop.errors import MailRefused
from everloop.ports.jobs import ERASE
from everloop.testing import ScriptedModel
from everloop.testing.failpoints import names_in_source

POINTS = [name for name in names_in_source(Path(everloop.__file__).parent) if name.startswith("erasure.")]
ON_A_SERVER = ("erasure.begun", "erasure.blanked", "erasure.rows")
KILLED = """
import asyncio, sys
from pathlib import Path
from everloop.store.postgres import PostgresStore
from everloop.store.sqlite import SqliteStore
from everloop.testing import failpoints
from tests.store.town import Town

async def main(where, folder, point):
    store = await (PostgresStore.connect(where) if where.startswith("postgres") else SqliteStore.connect(Path(where)))
    if point:
        failpoints.arm(point)
    await Town(store, Path(folder)).erase("anna")
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def erased_elsewhere(home: Any, folder: Path, point: str) -> int:
    where = str(getattr(home, "path", "") or home.url)
    environment = {**os.environ, "EVERLOOP_TEST": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    process = await create_subprocess_exec(sys.executable, "-c", KILLED, where, str(folder), point, env=environment)
    return await process.wait()


async def settled(home: Any, folder: Path) -> Town:
    town = Town(await home.connect(), folder)
    await town.settle(("anna", "ben"))
    (folder / "everloop.db.before-3").write_text(canary("anna", "copy"))
    return town


async def is_nowhere(home: Any, town: Town) -> bool:
    rows = [await tables_holding(home, word) for word in ("canaryanna", "fake:anna", "Anna")]
    return not any(rows) and not town.holding("canaryanna")


@pytest.mark.parametrize(
    ("home", "point"),
    [*(("sqlite", point) for point in POINTS), *(("postgres", point) for point in ON_A_SERVER)],
    indirect=["home"],
)
async def test_a_kill_at_each_step_costs_time_and_nothing_else(home: Any, tmp_path: Path, point: str):
    town = await settled(home, place_of(home, tmp_path))
    before = await town.exported("ben")

    assert await erased_elsewhere(home, town.folder, point) == -signal.SIGKILL

    await home.write("UPDATE jobs SET until = 0")  # what a claim needs to run out where nobody sees who is gone
    assert not await is_nowhere(home, town) or point in ("erasure.scrubbed", "erasure.copies", "erasure.rows")
    assert [row.job.kind for row in await town.store.jobs("owner") if row.job.kind == ERASE] == [ERASE]
    known = await town.store.known_by("fake:anna")
    assert known is None or (known.blocked and known.erasing)
    assert (await town.store.role("fake:anna") <= Role.GUEST, await town.store.known_token("hash of anna")) == (
        True,
        None,
    )
    [row] = await town.store.claim_jobs([ERASE], 60.0)
    await town.erasures.work(row)  # as the scheduler of whoever starts next
    assert await is_nowhere(home, town)
    assert (await town.exported("ben"), await town.store.jobs("owner")) == (before, [])


async def test_without_a_kill_the_same_process_ends_well(home: Any, tmp_path: Path):
    town = await settled(home, place_of(home, tmp_path))
    assert await erased_elsewhere(home, town.folder, "") == 0
    assert await is_nowhere(home, town)


async def test_the_next_start_finishes_it_by_itself(sqlite_home: Any, tmp_path: Path):
    town = await settled(sqlite_home, tmp_path)
    assert await erased_elsewhere(sqlite_home, tmp_path, "erasure.begun") == -signal.SIGKILL
    await sqlite_home.lose(town.store)
    async with everloop.open(tmp_path, provider=ScriptedModel([])) as agent:
        while await agent.store.jobs("owner"):  # noqa: ASYNC110  # nobody is told
            await asyncio.sleep(0.02)
    assert await is_nowhere(sqlite_home, town)


async def test_nobody_can_change_one_who_is_being_erased(sqlite_home: Any, tmp_path: Path):
    town = await settled(sqlite_home, tmp_path)
    assert await erased_elsewhere(sqlite_home, tmp_path, "erasure.begun") == -signal.SIGKILL
    for change in ({"name": "Zoe"}, {"role": Role.ADMIN}, {"blocked": False}):
        with pytest.raises(MailRefused, match="Anna is being erased"):
            await town.members.change("anna", Role.OWNER, **change)
        assert not await town.store.change_person("fake:anna", **change)
    with pytest.raises(MailRefused, match="Anna is being erased"):
        await town.members.link("anna", "other:1", Role.OWNER)
    assert await town.store.link("other:1", "fake:anna") == "there is no person 'fake:anna'"
    with pytest.raises(MailRefused):
        await town.members.invitable("anna", Role.OWNER)
