"""A turn that goes to the background, ends there and is taken back, killed wherever it gets to: nothing is lost, and
nothing is told twice."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.effort import in_full
from tests.store.conftest import PostgresHome, postgres  # noqa: F401

from everloop.store.codec import SENDING_SECONDS
from everloop.testing.failpoints import EXIT_CODE, reached_in

WORKER = Path(__file__).with_name("background_worker.py")
TOLD = (
    "This goes on in the background as task 1 | Yes? | Task 1 is done: gold | "
    "Here we go on with task 1, “dig deep”. It is over | More gold. / 2 conversations, 3 calls"
)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Stores:
    """A store for each run of the story."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._homes: list[PostgresHome] = []

    async def make(self) -> str:
        if not self._server:
            return ""
        self._homes.append(await PostgresHome(self._server).create())
        return self._homes[-1].url

    async def let_claims_run_out(self) -> None:
        """Of whoever was killed while they sent something: a server does not see that they are gone, and would have
        each such kill cost a minute and a half."""
        if self._homes:
            await self._homes[-1].load(f"UPDATE outbox SET due = due - {SENDING_SECONDS} WHERE state = 'sending';")

    async def close(self) -> None:
        for home in self._homes:
            await home.close()


@pytest.fixture
async def stores(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[Stores]:
    made = Stores(request.getfixturevalue("postgres") if kind == "postgres" else "")
    yield made
    await made.close()


async def run(folder: Path, url: str, **armed: str) -> tuple[int, str]:
    test = {"EVERLOOP_TEST": "1", **armed} if armed else {}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(WORKER), str(folder), url), stdout=asyncio.subprocess.PIPE, env={**os.environ, **test}
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode().strip()


@pytest.mark.shortened
@pytest.mark.timeout(900)
async def test_a_kill_at_any_place_changes_nothing_of_what_is_told(tmp_path: Path, stores: Stores, kind: str):
    """On a server each kill costs the time of a lease, so there are two of them in short."""
    record = tmp_path / "reached.jsonl"
    assert await run(tmp_path / "calm", await stores.make(), EVERLOOP_FAILPOINT_RECORD=str(record)) == (0, TOLD)
    reached = Counter(reached_in(record))
    points = [f"{name}:{nth}:kill" for name, times in sorted(reached.items()) for nth in range(1, times + 1)]
    points = [point for point in points if not point.startswith("store.")]
    assert len(points) > 20
    for point in points[:: in_full(1, 9 if kind == "sqlite" else len(points) // 2 + 1)]:
        folder, url = tmp_path / point.replace(":", "-"), await stores.make()
        assert (await run(folder, url, EVERLOOP_FAILPOINT=point))[0] in (-9, EXIT_CODE), point
        await stores.let_claims_run_out()
        assert await run(folder, url) == (0, TOLD), point
