"""A process that is frozen inside a write transaction: named, and ended if it is one of ours."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.strays import told_by

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.store.sqlite import SqliteStore
from everloop.store.watchdog import Watchdog

FREEZE = """
import os, signal, sys, apsw
from pathlib import Path
from everloop.store.holders import Holders
home = Path(sys.argv[1])
holders = Holders(home / "run") if sys.argv[2] == "ours" else None
connection = apsw.Connection(str(home / "everloop.db"))
connection.execute("BEGIN IMMEDIATE")
print("frozen", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
connection.execute("ROLLBACK")
"""


@contextmanager
def frozen(home: Path, whose: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", FREEZE, str(home), whose], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "frozen\n"
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def letter(event: str) -> Inbound:
    return Inbound(Address("test", "chat"), event, Said(said("hi"), "ann", "test:chat"))


async def test_one_of_ours_that_blocks_the_store_is_named_and_ended(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "everloop.store")
    store = await SqliteStore.connect(tmp_path)
    store._writer._blocked = Watchdog(tmp_path / "everloop.db", store._holders, say_after=0.0, end_after=0.2).waited
    with frozen(tmp_path, "ours") as process:
        assert (await store.receive(letter("e1"))).fresh
        assert process.wait() == -signal.SIGKILL
    assert f"process {process.pid} holds the database's write lock" in caplog.text
    await store.close()


async def test_a_stranger_is_named_but_never_ended(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "everloop.store")
    store = await SqliteStore.connect(tmp_path)
    watchdog = Watchdog(tmp_path / "everloop.db", store._holders, say_after=0.0, end_after=0.0)
    looks = 0

    with frozen(tmp_path, "a stranger's") as process:

        def look(seconds: float) -> None:
            nonlocal looks
            looks += 1
            watchdog.waited(seconds)
            if looks >= 20:  # and again: it may not have stopped yet
                os.kill(process.pid, signal.SIGCONT)

        store._writer._blocked = look
        assert (await store.receive(letter("e1"))).fresh
        assert process.wait() == 0
    assert f"process {process.pid} holds the database's write lock" in caplog.text
    assert "ending process" not in caplog.text
    await store.close()


async def test_one_of_ours_that_runs_as_another_user_is_said_so_once(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "everloop.store")
    store = await SqliteStore.connect(tmp_path)

    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    watchdog = Watchdog(tmp_path / "everloop.db", store._holders, say_after=0.0, end_after=0.0, kill=refuse)
    with frozen(tmp_path, "ours") as process:
        for seconds in (1.0, 2.0, 3.0):
            watchdog.waited(seconds)
        assert told_by("everloop", caplog.records) == [
            f"process {process.pid} holds the database's write lock since 1 s",
            f"ending process {process.pid}, which blocks the database",
            f"process {process.pid} is another user's: end it, nothing can be written before",
        ]
    await store.close()


@pytest.mark.parametrize("whose", ["ours", "a stranger's"])
async def test_while_someone_writes_others_can_read(tmp_path, whose):
    store = await SqliteStore.connect(tmp_path)
    await store.receive(letter("e1"))
    with frozen(tmp_path, whose):
        assert await store.session("test:chat") is not None
    await store.close()
