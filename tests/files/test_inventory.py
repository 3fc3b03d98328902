"""What lies in the folder of files is counted, bounded, and removed only if nothing names it."""

import asyncio
import fcntl
import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from everloop.errors import NoRoom
from everloop.files.folder import Folder, held
from everloop.files.inventory import FileInventory, unused
from everloop.files.quota import QuotaFiles, QuotaOf
from everloop.ports import KeptFile

LATER = time.time() + 3600
LOCKS = Path("/proc/locks")


class Named:
    """A store that names these files and nothing else."""

    def __init__(self, *refs: str) -> None:
        self._refs = refs

    async def files_named(self) -> set[str]:
        return {ref.removeprefix("file:")[:12] for ref in self._refs}


def ref(content: bytes) -> str:
    return f"file:{sha256(content).hexdigest()}"


def quota(most: int) -> QuotaOf:
    async def quota_of(owner: str) -> int:
        return most

    return quota_of


def make_old(root: Path) -> None:
    for path in root.rglob("*"):
        os.utime(path, (1, 1))


async def kept(root: Path) -> list[tuple[str, str, int]]:
    return [(file.owner, file.ref, file.size) for file in await FileInventory(root).files()]


async def removed(root: Path, files: list[KeptFile], before: float = LATER) -> list[str]:
    return [file.ref async for file in FileInventory(root).remove(files, before)]


async def test_what_is_kept_is_listed_the_largest_first(tmp_path: Path):
    folder = Folder(tmp_path)
    for owner, content in (("ann", b"a"), ("bob", b"a"), ("ann", b"ccc")):
        await folder.put(owner, content, "")
    (tmp_path / "ann" / "zz").mkdir()
    (tmp_path / "ann" / "zz" / "a note of the owner's").write_text("not ours")
    assert await kept(tmp_path) == [("ann", ref(b"ccc"), 3), ("ann", ref(b"a"), 1), ("bob", ref(b"a"), 1)]


async def test_where_nothing_was_kept_nothing_is_listed(tmp_path: Path):
    assert await kept(tmp_path / "files") == []
    assert await removed(tmp_path / "files", []) == []


async def test_only_what_nothing_names_is_removed(tmp_path: Path):
    folder, inventory = Folder(tmp_path), FileInventory(tmp_path)
    for content in (b"named", b"left"):
        await folder.put("ann", content, "")
    left_over = await unused(inventory, Named(ref(b"named")))
    assert [file.ref for file in left_over] == [ref(b"left")]
    assert await removed(tmp_path, left_over) == [ref(b"left")]
    assert await kept(tmp_path) == [("ann", ref(b"named"), 5)]
    assert await removed(tmp_path, left_over) == []


async def test_what_is_put_again_meanwhile_stays(tmp_path: Path):
    """The file is unused and old when it is looked for, and wanted again when it would go."""
    folder, inventory = Folder(tmp_path), FileInventory(tmp_path)
    for content in (b"again", b"left"):
        await folder.put("ann", content, "")
    make_old(tmp_path)
    left_over = await unused(inventory, Named())
    await folder.put("ann", b"again", "")
    assert await removed(tmp_path, left_over, before=time.time() - 60) == [ref(b"left")]
    assert await folder.get("ann", ref(b"again")) == b"again"


async def test_whoever_is_killed_in_the_middle_leaves_the_rest_to_the_next(tmp_path: Path):
    code = """
import asyncio, os, signal, sys, time
from pathlib import Path
from everloop.files.inventory import FileInventory

async def main():
    inventory = FileInventory(Path(sys.argv[1]))
    async for _ in inventory.remove((await inventory.files())[1:], time.time() + 60):
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    folder, contents = Folder(tmp_path), [b"named" * 9, *(bytes([n]) for n in range(9))]
    for content in contents:
        await folder.put("ann", content, "")
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code, str(tmp_path)], check=False)
    left = await kept(tmp_path)
    assert len(left) == 9
    assert left[0] == ("ann", ref(contents[0]), 45)
    left_over = await unused(FileInventory(tmp_path), Named(ref(contents[0])))
    assert len(await removed(tmp_path, left_over)) == 8
    assert await folder.put("ann", contents[3], "") == ref(contents[3])
    assert await folder.get("ann", ref(contents[3])) == contents[3]


async def test_nobody_has_more_than_their_room(tmp_path: Path):
    bounded = QuotaFiles(Folder(tmp_path), quota(20_000))
    await bounded.put("ann", b"a" * 8000, "a.txt")
    await bounded.put("ann", b"b" * 8000, "b.txt")
    with pytest.raises(NoRoom, match=r"c\.txt is not kept: together with it your files would take more than 20,000"):
        await bounded.put("ann", b"c" * 8000, "c.txt")
    await bounded.put("ann", b"a" * 8000, "the same again.txt")
    await bounded.put("bob", b"c" * 8000, "c.txt")
    assert await kept(tmp_path) == sorted(
        [(owner, ref(letter * 8000), 8000) for owner, letter in (("ann", b"a"), ("ann", b"b"), ("bob", b"c"))],
        key=lambda file: file[1],
    )


async def test_small_files_take_room_as_well(tmp_path: Path):
    bounded = QuotaFiles(Folder(tmp_path), quota(10_000))
    await bounded.put("ann", b"a", "")
    await bounded.put("ann", b"b", "")
    with pytest.raises(NoRoom):
        await bounded.put("ann", b"c", "")


async def test_who_has_made_room_may_keep_more(tmp_path: Path):
    bounded = QuotaFiles(Folder(tmp_path), quota(10_000))
    await bounded.put("ann", b"a" * 9000, "")
    with pytest.raises(NoRoom):
        await bounded.put("ann", b"b" * 9000, "")
    assert len(await removed(tmp_path, await FileInventory(tmp_path).files())) == 1  # as another process does it
    await bounded.put("ann", b"b" * 9000, "")
    assert await bounded.get("ann", ref(b"b" * 9000)) == b"b" * 9000


def somebody_waits_for_a_lock() -> bool:
    return any("->" in line and f" {os.getpid()} " in line for line in LOCKS.read_text().splitlines())


@pytest.mark.skipif(not LOCKS.exists(), reason="only Linux tells who waits for a lock")
async def test_nothing_is_removed_in_the_middle_of_a_put(tmp_path: Path):
    folder = Folder(tmp_path)
    await folder.put("ann", b"again", "")
    make_old(tmp_path)
    old = await FileInventory(tmp_path).files()
    with held(tmp_path, fcntl.LOCK_SH):  # a put has begun
        removing = asyncio.create_task(removed(tmp_path, old, time.time() - 60))
        while not removing.done() and not await asyncio.to_thread(somebody_waits_for_a_lock):
            pass
        os.utime(tmp_path / "ann" / old[0].ref[5:7] / old[0].ref[5:])  # and finds the file
    assert await removing == []
    assert await folder.get("ann", old[0].ref) == b"again"
