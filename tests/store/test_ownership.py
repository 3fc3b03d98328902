"""A channel and its outbox run in one process at a time, over both databases; when it dies, another goes on."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from everloop.errors import StoreError
from everloop.ports import Store
from everloop.runtime.ownership import Ownership

from .conftest import Home


@pytest.fixture
async def pair(home: Home) -> list[Store]:
    return [await home.connect(), await home.connect()]


class Listening:
    """Work that says when it begins and ends."""

    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), asyncio.Event()
        self.times = 0

    async def run(self) -> None:
        self.times += 1
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


class Owner:
    """An ownership in one of several processes, and its work."""

    def __init__(self, store: Any, seconds: float = 30.0) -> None:
        self.ownership, self.work = Ownership(store, "channel:test", seconds), Listening()
        tasks = (self.ownership.run(), self.ownership.during(self.work.run))
        self._tasks = [asyncio.ensure_future(task) for task in tasks]

    async def end(self) -> None:
        for task in reversed(self._tasks):
            task.cancel()
            await asyncio.wait([task])


async def test_one_has_it_and_the_other_stands_by_until_it_is_given_back(pair: list[Store]):
    first = Owner(pair[0])
    await first.work.began.wait()
    second = Owner(pair[1])
    while not second.ownership.is_elsewhere:  # noqa: ASYNC110  it happens in the database
        await asyncio.sleep(0.01)
    assert (first.ownership.is_elsewhere, second.work.times) == (False, 0)
    await first.end()
    await second.work.began.wait()
    assert (first.work.ended.is_set(), second.ownership.is_elsewhere) == (True, False)
    await second.end()


async def test_who_loses_it_ends_the_work_and_begins_it_again_when_it_is_back(home: Home, pair: list[Store]):
    owner = Owner(pair[0])  # a lease that is not lost because the disk is slow
    await owner.work.began.wait()
    thief = pair[1].holder
    await home.write(f"UPDATE leases SET holder = '{thief}', until = until + 3600 WHERE name = 'channel:test'")
    await owner.work.ended.wait()
    owner.work.began.clear()
    await pair[1].let_go("channel:test")
    await owner.work.began.wait()
    assert owner.work.times == 2
    await owner.end()


class Away:
    """A lease that is had at first; then the store cannot be reached, or does not answer at all."""

    def __init__(self, hangs: bool) -> None:
        self._hangs = hangs
        self._asked = 0

    async def hold(self, name: str, seconds: float, under: str = "", *, in_copy: bool = False) -> bool:
        self._asked += 1
        if self._asked == 1:
            return True
        if self._hangs:
            await asyncio.Event().wait()
        raise StoreError("the server is away")

    async def let_go(self, name: str) -> None:
        raise StoreError("the server is away")


@pytest.mark.parametrize("hangs", [False, True])
async def test_without_the_store_the_work_ends_before_another_may_begin_it(hangs, caplog):
    owner, expired = Owner(Away(hangs), 0.4), asyncio.get_running_loop().create_future()
    await owner.work.began.wait()
    asyncio.get_running_loop().call_later(0.39, lambda: expired.set_result(owner.ownership.is_elsewhere))
    assert await expired  # timers go off in order, however slow the machine is
    await owner.work.ended.wait()
    await owner.end()
    assert caplog.text.count("which is tried again: the server is away") == (0 if hangs else 1)


async def test_what_ends_by_itself_has_ended_and_what_fails_is_told(pair: list[Store]):
    ownership = Ownership(pair[0], "channel:test")
    holding = asyncio.ensure_future(ownership.run())

    async def fail() -> None:
        raise ConnectionError("hung up")

    await ownership.during(lambda: asyncio.sleep(0))
    with pytest.raises(ConnectionError, match="hung up"):
        await ownership.during(fail)
    holding.cancel()
    await asyncio.wait([holding])
    assert await pair[1].hold("channel:test", 30.0)


class Gateways:
    """Processes over one database, and what their channel has done."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._file = folder / "done"

    @contextmanager
    def process(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        home = self._folder / (name if self._url else "home")
        command = [sys.executable, "-m", "tests.store.polling", str(home), self._url, str(self._file), name]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == b"open\n"
                yield process
            finally:
                process.kill()

    async def done(self, lines: int) -> list[str]:
        while len(found := self._lines()) < lines:  # noqa: ASYNC110  other processes write it
            await asyncio.sleep(0.02)
        return found

    def _lines(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []


async def test_a_polling_channel_listens_in_one_gateway_and_in_the_other_when_that_is_killed(home: Any, tmp_path: Path):
    gateways = Gateways(tmp_path, getattr(home, "url", ""))
    with gateways.process("one") as one:
        assert await gateways.done(2) == ["one listens from the beginning", "one sends hello"]
        with gateways.process("two") as two:
            one.kill()
            assert one.wait() == -9
            done = await gateways.done(4)
            assert two.poll() is None
    assert done[2:] == ["two listens from 1", "two sends hello"]
    # Nothing was done twice, and nothing by one that stood by.
    assert await gateways.done(4) == done
