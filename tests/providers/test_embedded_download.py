"""One download for everybody who wants the model: joined, looked at, left for later, gone on with."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from everloop.errors import ModelMissing
from everloop.providers.embedded import Download, DownloadState

from .downloads import HALF, SMALL, WHOLE, GatedHub

ALL = len(WHOLE)


async def half(download: Download, hub: GatedHub) -> DownloadState:
    """Wait until the gate is reached."""
    await hub.waiting.wait()
    return download.state


async def ended(download: Download) -> DownloadState:
    with contextlib.suppress(ModelMissing):
        await download.join(lambda state: None)
    await asyncio.sleep(0)  # it takes leave
    return download.state


async def test_nothing_is_fetched_before_somebody_asks(tmp_path: Path):
    hub = GatedHub()
    download = Download(SMALL, tmp_path, hub)
    assert (download.state, download.is_here) == (DownloadState("absent", 0, ALL), False)
    assert download.promise == "The first message fetches it: 0.0 GB, once."
    assert hub.asked == []


async def test_it_is_asked_for_seen_and_there(tmp_path: Path):
    hub = GatedHub()
    download = Download(SMALL, tmp_path, hub)
    download.start()
    seen = await half(download, hub)
    download.start()  # somebody else presses, too
    hub.gate.set()
    after = await ended(download)
    assert (seen, after) == (
        DownloadState("fetching", HALF, ALL, "fetching from Hugging Face"),
        DownloadState("ready", ALL, ALL),
    )
    assert (download.promise, hub.asked, (tmp_path / SMALL.file).read_bytes() == WHOLE) == ("", [0], True)


async def test_those_who_need_it_join_the_one_that_runs(tmp_path: Path):
    hub, told = GatedHub(), [[], []]
    download = Download(SMALL, tmp_path, hub)
    joined = [asyncio.create_task(download.join(each.append)) for each in told]
    await half(download, hub)
    hub.gate.set()
    paths = await asyncio.gather(*joined)
    assert (paths, hub.asked) == ([tmp_path / SMALL.file] * 2, [0])
    assert [[state.done for state in each][:1] for each in told] == [[HALF]] * 2
    assert "% of 1 MB" in told[0][0].words


async def test_left_for_later_it_keeps_what_has_come_and_goes_on_from_there(tmp_path: Path):
    hub = GatedHub()
    download = Download(SMALL, tmp_path, hub)
    download.start()
    waits = asyncio.create_task(download.join(lambda state: None))
    await half(download, hub)
    await download.leave()
    with pytest.raises(ModelMissing, match="What has come is kept"):
        await waits
    left = download.state
    hub.gate.set()
    await download.join(lambda state: None)
    assert (left, hub.asked) == (DownloadState("absent", HALF, ALL), [0, HALF])


async def test_who_comes_in_the_middle_is_told_at_once(tmp_path: Path):
    hub, told = GatedHub(), list[DownloadState]()
    download = Download(SMALL, tmp_path, hub)
    download.start()
    seen = await half(download, hub)
    joined = asyncio.create_task(download.join(told.append))
    await asyncio.sleep(0)
    at_once = [*told]
    await download.leave()
    await asyncio.wait({joined})
    assert at_once == [seen]
    assert isinstance(joined.exception(), ModelMissing)


@pytest.mark.parametrize("asked", [False, True])
async def test_who_stops_waiting_ends_it_unless_somebody_else_wants_it(tmp_path: Path, asked: bool):
    hub = GatedHub()
    download = Download(SMALL, tmp_path, hub)
    waits = asyncio.create_task(download.join(lambda state: None))
    await half(download, hub)
    if asked:
        download.start()
    waits.cancel()
    await asyncio.wait({waits})
    goes_on = download.state.state == "fetching"
    await download.leave()
    assert (waits.cancelled(), goes_on) == (True, asked)


async def test_what_went_wrong_is_told_until_the_next_try(tmp_path: Path):
    hub = GatedHub()
    hub.down = True
    download = Download(SMALL, tmp_path, hub)
    download.start()
    failed = await ended(download)
    hub.down = False
    hub.gate.set()
    download.start()
    assert (failed.state, failed.done) == ("failed", 0)
    assert failed.why.startswith("The embedded model Tiny could not be fetched: Hugging Face does not answer")
    assert (await ended(download)).state == "ready"


async def test_the_time_that_is_left_follows_from_how_fast_it_came(tmp_path: Path):
    times = iter([0.0, 10.0, 20.0, *range(30, 1000, 10)])
    hub = GatedHub()
    download = Download(SMALL, tmp_path, hub, now=lambda: next(times))
    told: list[DownloadState] = []
    joined = asyncio.create_task(download.join(told.append))
    await half(download, hub)
    hub.gate.set()
    await joined
    assert [(state.done, state.left) for state in told[:2]] == [(HALF, None), (ALL, 0.0)]
