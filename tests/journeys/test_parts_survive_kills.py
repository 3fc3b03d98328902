"""An answer in three parts, killed at every step of its sending: what has a receipt is never sent again."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("parts_worker.py")


async def run(folder: Path, kind: str, failpoint: str = "") -> tuple[int, str]:
    armed = {"EVERLOOP_TEST": "1", "EVERLOOP_FAILPOINT": failpoint} if failpoint else {}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(WORKER), str(folder), kind), stdout=pipe, env={**os.environ, **armed}
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode().strip()


POINTS = {
    "outbox.sending:1:kill": "(may be repeated) one|two|three",
    "outbox.delivered:1:kill": "one|(may be repeated) one|two|three",
    "outbox.sending:2:kill": "one|(may be repeated) two|three",
    "outbox.delivered:2:kill": "one|two|(may be repeated) two|three",
    "outbox.sending:3:kill": "one|two|(may be repeated) three",
    "outbox.delivered:3:kill": "one|two|three|(may be repeated) three",
    "outbox.settled:1:kill": "one|two|three",
}


@pytest.mark.parametrize("point", POINTS)
async def test_where_the_platform_knows_our_keys_each_part_is_seen_once(tmp_path: Path, point: str):
    assert (await run(tmp_path, "once", point))[0] == -9
    assert await run(tmp_path, "once") == (0, "one|two|three")


@pytest.mark.parametrize("point", POINTS)
async def test_elsewhere_only_the_part_in_doubt_is_sent_again_and_says_so(tmp_path: Path, point: str):
    assert (await run(tmp_path, "blind", point))[0] == -9
    assert await run(tmp_path, "blind") == (0, POINTS[point])
