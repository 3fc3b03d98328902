"""What is put into the folder stays there, and only its owner gets it back."""

import asyncio
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from everloop.files.folder import Folder
from everloop.ports import Files

HELLO = b"hello"
REF = f"file:{sha256(HELLO).hexdigest()}"


def stored(root: Path) -> list[Path]:
    return sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())


async def test_what_was_put_is_given_back(tmp_path: Path) -> None:
    files: Files = Folder(tmp_path / "files")
    assert await files.put("ann", HELLO, "hello.txt") == REF
    assert await files.get("ann", REF) == HELLO


@pytest.mark.parametrize("content", [b"", bytes(range(256)), b"x" * 3_000_000])
async def test_any_content_can_be_kept(tmp_path: Path, content: bytes) -> None:
    files = Folder(tmp_path)
    assert await files.get("ann", await files.put("ann", content, "")) == content


async def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    refs = await asyncio.gather(*(files.put("ann", HELLO, f"{n}.txt") for n in range(50)))
    assert set(refs) == {REF}
    assert stored(tmp_path) == [Path("ann") / REF[5:7] / REF[5:]]


async def test_another_folder_object_and_so_another_process_finds_it(tmp_path: Path) -> None:
    await Folder(tmp_path).put("ann", HELLO, "")
    assert await Folder(tmp_path).get("ann", REF) == HELLO


async def test_the_first_twelve_digits_of_a_reference_are_enough(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    await files.put("ann", HELLO, "")
    for written in (REF[:17], f"{REF[:20]}…", f"{REF[:20]}...", f" {REF}\n"):
        assert await files.get("ann", written) == HELLO


async def test_an_ambiguous_beginning_is_refused(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    await files.put("ann", HELLO, "")
    twin = tmp_path / "ann" / REF[5:7] / f"{REF[5:30]}{'0' * 39}"
    twin.write_bytes(b"")
    with pytest.raises(ValueError, match="is the beginning of 2 references; give more digits"):
        await files.get("ann", REF[:17])
    assert await files.get("ann", REF) == HELLO


async def test_a_file_of_someone_else_is_as_absent_as_one_that_never_was(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    await files.put("ann", HELLO, "")
    await files.put("bob", b"other", "")
    for ref in (REF, REF[:20], f"file:{'0' * 64}", f"file:{'0' * 12}"):
        with pytest.raises(FileNotFoundError):
            await files.get("bob", ref)


@pytest.mark.parametrize(
    "ref",
    ["", "file:", "file:abc", REF[5:], REF.upper(), REF + "0", f"file:{'g' * 64}", "file:///etc/passwd",
     "file:../../ann/2c/" + REF[5:], f"{REF}/..", f"{REF[:40]}\0", f"{REF[:17]}*", "file:" + "." * 12],
)  # fmt: skip
async def test_what_is_no_reference_is_refused(tmp_path: Path, ref: str) -> None:
    files = Folder(tmp_path)
    await files.put("ann", HELLO, "")
    with pytest.raises(ValueError, match="a reference is file:"):
        await files.get("ann", ref)


OWNERS = ["..", ".", "", "/", "../x", "/etc", "a/b", "a\0b", "Ann", "ann ", "ann", "x" * 300,
          "жук", "\ud800", "~", "=", "-", ".half-written"]  # fmt: skip


async def test_no_owner_escapes_and_no_two_share_a_folder(tmp_path: Path) -> None:
    files = Folder(tmp_path / "root")
    for owner in OWNERS:
        assert await files.put(owner, HELLO, "") == REF
        assert await files.get(owner, REF) == HELLO
    assert os.listdir(tmp_path) == ["root"]
    assert len(stored(tmp_path / "root")) == len(OWNERS)
    assert all(len(path.parts) == 3 for path in stored(tmp_path / "root"))


async def test_an_owner_named_like_a_hashed_one_is_someone_else(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    await files.put("Ann", HELLO, "")
    [path] = stored(tmp_path)
    with pytest.raises(FileNotFoundError):
        await files.get(path.parts[0], REF)


async def test_a_damaged_file_is_not_given_out(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    await files.put("ann", HELLO, "")
    (tmp_path / stored(tmp_path)[0]).write_bytes(b"jello")
    with pytest.raises(OSError, match="the file is damaged"):
        await files.get("ann", REF)


async def test_a_file_that_was_cut_short_is_written_anew(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    await files.put("ann", HELLO, "")
    (tmp_path / stored(tmp_path)[0]).write_bytes(b"he")
    await files.put("ann", HELLO, "")
    assert await files.get("ann", REF) == HELLO


async def test_only_the_person_who_runs_everloop_can_read_the_files(tmp_path: Path) -> None:
    await Folder(tmp_path / "files").put("ann", HELLO, "")
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "files").rglob("*")}
    assert modes == {0}


async def test_what_a_killed_process_had_begun_is_swept(tmp_path: Path) -> None:
    half = tmp_path / ".half-written"
    half.mkdir()
    (half / "old").write_bytes(b"x")
    (half / "new").write_bytes(b"x")
    os.utime(half / "old", (1, 1))
    await Folder(tmp_path).put("ann", HELLO, "")
    assert os.listdir(half) == ["new"]


async def test_a_full_disk_is_said_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    code = """
import asyncio, resource, signal, sys
from pathlib import Path
from everloop.errors import StoreFull
from everloop.files.folder import Folder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    asyncio.run(Folder(Path(sys.argv[1])).put("ann", b"x" * 5000, "big.txt"))
except StoreFull as error:
    print(error)
"""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"big.txt cannot be kept under {tmp_path} (File too large)\n"
    assert stored(tmp_path) == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
async def test_file_and_folders_are_on_the_disk_before_the_reference_is_given(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from everloop.files.folder import Folder
asyncio.run(Folder(Path(sys.argv[1])).put("ann", b"hello", ""))
"""
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-e", "trace=fsync,rename,renameat,renameat2", "-o", str(trace)]
    await asyncio.to_thread(subprocess.run, [*command, sys.executable, "-c", code, str(tmp_path / "root")], check=True)
    lines = trace.read_text().splitlines()
    renamed = next(n for n, line in enumerate(lines) if "rename" in line)
    assert any("fsync" in line and ".half-written/" in line for line in lines[:renamed])
    assert any("fsync" in line and f"ann/{REF[5:7]}>" in line for line in lines[renamed:])
