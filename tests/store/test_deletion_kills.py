"""A process that is killed while it deletes a conversation has deleted nothing yet, or the next one finishes it."""

import signal
import sys
from asyncio import create_subprocess_exec
from pathlib import Path
from typing import Any

import pytest

from everloop.core.log import UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import Media, said
from everloop.files.folder import Folder
from everloop.files.inventory import FileInventory
from everloop.ports import Store
from everloop.ports.jobs import DELETE
from everloop.ports.rows import Commit, Lease
from everloop.runtime.deletions import Deletions
from everloop.runtime.sessions import Sessions

CHAT = Address("test", "chat")
CANARY = "canary-in-a-coal-mine"
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from everloop.files.inventory import FileInventory
from everloop.runtime.deletions import Deletions
from everloop.runtime.sessions import Sessions
from everloop.store.postgres import PostgresStore
from everloop.store.sqlite import SqliteStore

where, files, thread, step = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
Base, place = (PostgresStore, where) if where.startswith("postgres") else (SqliteStore, Path(where))

def die_at(name):
    if name == step:
        os.kill(os.getpid(), signal.SIGKILL)

class Killed(Base):
    async def _forget_words(self, ask, threads):
        await super()._forget_words(ask, threads)
        die_at("rows")
    async def scrub(self):
        die_at("scrub")
        await super().scrub()
    async def drop_job(self, owner, id):
        die_at("job")
        return await super().drop_job(owner, id)

class Shelves(FileInventory):
    async def remove(self, files, before):
        die_at("files")
        async for file in super().remove(files, before):
            yield file

async def forget(thread):
    die_at("commands")

async def main():
    store = await Killed.connect(place)
    deletions = Deletions(store, Shelves(files), forget)
    await deletions.delete("owner", await Sessions(store).find(thread, "owner"))
    await deletions.finish()
    await store.close()

asyncio.run(main())
"""


async def leave(thread: str) -> None:
    pass


def holding(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


async def say(store: Store, ref: str) -> str:
    receipt = await store.command(Inbound(CHAT, "new", Said(said("/new"), "owner", str(CHAT))), "new", "")
    named = UserSaid((*said(f"hello {CANARY}"), Media(ref, "text/plain", "a.txt")), "owner", str(CHAT))
    await store.commit(Lease(receipt.thread), Commit([named], release=True, state="resting"))
    return receipt.thread


async def run(home: Any, files: Path, thread: str, step: str) -> int:
    where = str(getattr(home, "path", "") or home.url)
    process = await create_subprocess_exec(sys.executable, "-c", KILLED, where, str(files), thread, step)
    return await process.wait()


@pytest.mark.parametrize("step", ["rows", "commands", "files", "scrub", "job"])
async def test_a_kill_at_each_step_costs_time_and_nothing_else(home: Any, tmp_path: Path, step: str):
    store = await home.connect()
    ref = await Folder(tmp_path / "files").put("owner", CANARY.encode(), "a.txt")
    thread = await say(store, ref)
    before = await store.history(thread)

    assert await run(home, tmp_path / "files", thread, step) == -signal.SIGKILL

    await home.write("UPDATE jobs SET until = 0")  # what a claim needs to run out where nobody sees who is gone
    inventory = FileInventory(tmp_path / "files")
    deletions = Deletions(store, inventory, leave)
    if step == "rows":  # it was not committed, so nothing has happened
        assert (await store.history(thread), await store.jobs("owner")) == (before, [])
        await deletions.delete("owner", await Sessions(store).find(thread, "owner"))
    assert (await store.history(thread), await store.search("owner", CANARY)) == ([], [])
    assert [row.job.kind for row in await store.jobs("owner")] == [DELETE]
    await deletions.finish()
    assert (await inventory.files(), await store.jobs("owner")) == ([], [])
    assert holding(tmp_path) == []


async def test_without_a_kill_the_same_process_ends_well(home: Any, tmp_path: Path):
    store = await home.connect()
    thread = await say(store, await Folder(tmp_path / "files").put("owner", CANARY.encode(), "a.txt"))
    assert await run(home, tmp_path / "files", thread, "") == 0
    assert (await FileInventory(tmp_path / "files").files(), await store.jobs("owner")) == ([], [])
