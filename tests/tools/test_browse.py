"""A workspace as its person looks at it: what is there is told, what lies outside stays there. Each guard is tried on a
case where there is nothing to guard against, too."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everloop.errors import PathRefused
from everloop.files.folder import Folder
from everloop.ports.workspace import FileWritten, FolderPage, WorkspaceEntry
from everloop.tools.beneath import Opener, open_in_steps, opener
from everloop.tools.browse import WorkspaceBrowser
from everloop.tools.home import Home
from everloop.tools.workspace import Workspace

CANARY = b"canary-7f31"
OPENERS = [pytest.param(opener(), id="kernel"), pytest.param(open_in_steps, id="steps")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "secret.txt").write_bytes(CANARY)
    return tmp_path / "ws"


def browser(root: Path, open_beneath: Opener | None = None, home: Home | None = None) -> WorkspaceBrowser:
    return WorkspaceBrowser(Workspace(root, open_beneath, home), Folder(root.parent / "files"), "owner")


async def content(files: WorkspaceBrowser, path: str) -> bytes:
    async with files.open(path) as file:
        return await file.read(0, file.size)


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


async def refused(awaited: object) -> tuple[str, str]:
    with pytest.raises(PathRefused) as caught:
        await awaited  # type: ignore[misc]
    return caught.value.kind, str(caught.value)


async def names(files: WorkspaceBrowser, path: str = "", **asked: object) -> list[str]:
    return [each.shown for each in (await files.list(path, **asked)).entries]  # type: ignore[arg-type]


async def test_a_folder_is_told_with_folders_first_and_what_each_thing_is(root: Path):
    (root / "b.txt").write_bytes(b"four")
    (root / "Sub").mkdir()
    (root / "sub.d").mkdir()
    (root / ".hidden").write_text("")
    os.symlink("b.txt", root / "inside")
    os.symlink("Sub", root / "to-folder")
    os.symlink("../secret.txt", root / "outside")
    for each in (root / "b.txt", root / "Sub", root / "sub.d"):
        os.utime(each, (5, 5))
    os.utime(root / "outside", (5, 5), follow_symlinks=False)
    assert await browser(root).list("") == FolderPage(
        "",
        6,
        1,
        [
            WorkspaceEntry("Sub", "Sub", "folder", 0, 5.0),
            WorkspaceEntry("sub.d", "sub.d", "folder", 0, 5.0),
            WorkspaceEntry("b.txt", "b.txt", "file", 4, 5.0),
            WorkspaceEntry("inside", "inside", "file", 4, 5.0, link=True),
            WorkspaceEntry("outside", "outside", "other", 0, 5.0, link=True),
            WorkspaceEntry("to-folder", "to-folder", "folder", 0, 5.0, link=True),
        ],
    )
    assert ".hidden" in await names(browser(root), hidden=True)


async def test_a_huge_folder_comes_in_pages(root: Path):
    for n in range(2500):
        (root / f"{n:05}").touch()
    files = browser(root)
    first, last = await files.list("", limit=1000), await files.list("", skip=2000, limit=1000)
    assert (first.total, len(first.entries), len(last.entries), last.entries[-1].name) == (2500, 1000, 500, "02499")


@pytest.mark.parametrize("name", ["a\nb", "tab\t", "no-\udcff-utf8", "\x7f"])
async def test_a_name_that_cannot_be_asked_for_is_shown_and_not_offered(root: Path, name: str):
    (root / name).touch()
    (entry,) = (await browser(root).list("")).entries
    assert (entry.name, entry.shown.isprintable(), "\\u{" in entry.shown) == ("", True, True)
    assert (await refused(browser(root).list(name)))[0] == "refused"


@pytest.mark.parametrize("name", ["~", "~root", "file:abcd", "-rf", "x" * 255, "Ä 🧑\u200d🚀", "a\\b", "%2e%2e", " "])
async def test_any_other_name_can_be_read_and_removed(root: Path, name: str):
    (root / name).write_bytes(b"mine")
    (entry,) = (await browser(root).list("")).entries
    assert (entry.name, await content(browser(root), name)) == (name, b"mine")
    assert (await browser(root).remove(name)).path == name
    assert await names(browser(root), hidden=True) == []


async def test_what_would_turn_a_name_around_is_seen(root: Path):
    (root / "photo\u202egnp.exe").touch()
    (entry,) = (await browser(root).list("")).entries
    assert (entry.name, entry.shown) == ("photo\u202egnp.exe", "photo\\u{202e}gnp.exe")


WAYS_OUT = [
    "../secret.txt", "sub/../../secret.txt", "..", "/etc/passwd", "\\..\\secret.txt", "..\\secret.txt", "out.txt",
    "up/secret.txt", "up", "sub/./../../secret.txt", "absolute", "loop", "\0secret.txt", "x/" * 2000, "y" * 300,
]  # fmt: skip


@pytest.mark.parametrize("open_beneath", OPENERS)
@pytest.mark.parametrize("path", WAYS_OUT)
async def test_no_path_leads_out(root: Path, path: str, open_beneath: Opener):
    (root / "sub").mkdir()
    os.symlink("../secret.txt", root / "out.txt")
    os.symlink("..", root / "up")
    os.symlink(root.parent / "secret.txt", root / "absolute")
    os.symlink("loop", root / "loop")
    files = browser(root, open_beneath)
    for tried in (content(files, path), files.list(path), files.put(f"{path}/new", pieces(b"x"))):
        await refused(tried)
    await refused(files.put(path, pieces(b"x"), replace=True))
    assert (root.parent / "secret.txt").read_bytes() == CANARY
    assert sorted(os.listdir(root.parent)) == ["secret.txt", "ws"]


async def test_the_ways_out_lead_out_where_nobody_guards(root: Path):
    """The control: plain opening follows them."""
    os.symlink("..", root / "up")
    assert [(root / each).read_bytes() for each in ("../secret.txt", "up/secret.txt")] == [CANARY, CANARY]


async def test_a_link_that_is_changed_while_one_reads_never_leads_out(root: Path):
    """The race: a folder becomes a link and a folder again, while the file in it is read over and over."""
    (root / "real").mkdir()
    (root / "real" / "secret.txt").write_bytes(b"inside")
    files, seen = browser(root), set()
    os.symlink("real", root / "turn")

    def turn() -> None:
        for n in range(400):
            os.symlink(("real", "..")[n % 2], root / "next")
            os.rename(root / "next", root / "turn")

    async def read() -> None:
        for _ in range(400):
            try:
                seen.add(await content(files, "turn/secret.txt"))
            except PathRefused:
                seen.add(b"refused")

    await asyncio.gather(asyncio.to_thread(turn), read())
    assert CANARY not in seen
    assert seen <= {b"inside", b"refused"}
    assert (root / "turn" / "secret.txt").read_bytes() == CANARY  # the control: where it leads in the end


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
async def test_what_is_no_file_is_told_as_such_and_nobody_waits_for_it(root: Path, kind: str):
    if kind == "pipe":
        os.mkfifo(root / "it")
    elif kind == "socket":
        os.mknod(root / "it", stat.S_IFSOCK | 0o666)
    else:
        if os.geteuid() != 0:
            pytest.skip("only root makes devices")
        os.mknod(root / "it", 0o20666, os.makedev(1, 5))  # /dev/zero, which never ends
    files = browser(root)
    (entry,) = (await files.list("")).entries
    assert entry.kind == "other"
    async with asyncio.timeout(60):
        await refused(content(files, "it"))
        await refused(files.put("it", pieces(b"x"), replace=True))
        await refused(files.remove("it"))
    assert (await files.list("")).entries == [entry]


async def test_nothing_of_the_home_is_seen_where_it_lies_in_the_workspace(tmp_path: Path):
    root = tmp_path / "all"
    (root / "apps" / ".everloop" / "deep").mkdir(parents=True)
    (root / "apps" / ".other").mkdir()
    for each in (".everloop", ".everloop/deep", ".other"):
        (root / "apps" / each / "config.toml").write_bytes(CANARY)
    os.symlink(".everloop", root / "apps" / "by-link")
    files = browser(root, home=Home(root / "apps" / ".everloop"))
    assert await names(files, "apps", hidden=True) == [".other", "by-link"]
    assert {each.kind for each in (await files.list("apps")).entries} == {"other"}
    for path in ("apps/.everloop", "apps/.everloop/deep", "apps/by-link"):
        await refused(files.list(path))
        await refused(content(files, f"{path}/config.toml"))
        await refused(files.put(f"{path}/config.toml", pieces(b"x"), replace=True))
        await refused(files.remove(f"{path}/config.toml"))
    assert await content(files, "apps/.other/config.toml") == CANARY  # the control: another folder is read


async def test_a_file_that_grows_is_as_long_as_when_it_was_opened(root: Path):
    (root / "log").write_bytes(b"one")
    async with browser(root).open("log") as file:
        os.truncate(root / "log", 1000)
        assert (file.size, await file.read(0, file.size)) == (3, b"one")


async def test_a_file_is_put_whole_and_nothing_is_replaced_unasked(root: Path):
    files = browser(root)
    assert await files.put("a.txt", pieces(b"on", b"e")) == FileWritten("a.txt", 3)
    assert await refused(files.put("a.txt", pieces(b"two"))) == ("exists", "there is a file of that name already")
    assert (root / "a.txt").read_bytes() == b"one"
    os.chmod(root / "a.txt", 0o640)
    written = await files.put("a.txt", pieces(b"two"), replace=True)
    assert ((root / "a.txt").read_bytes(), (root / "a.txt").stat().st_mode & 0o777) == (b"two", 0o640)
    assert await Folder(root.parent / "files").get("owner", written.kept) == b"one"
    assert os.listdir(root) == ["a.txt"]


async def test_what_breaks_off_leaves_nothing(root: Path):
    async def breaking() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises((ConnectionResetError, PathRefused)):
        await browser(root).put("a.txt", breaking())
    assert os.listdir(root) == []


async def test_what_is_too_large_is_refused_and_leaves_nothing(root: Path):
    files = WorkspaceBrowser(Workspace(root), Folder(root.parent / "files"), "owner", largest=10)
    assert (await refused(files.put("a.bin", pieces(b"12345", b"67890", b"1"))))[0] == "too_large"
    assert os.listdir(root) == []
    assert (await files.put("a.bin", pieces(b"12345", b"67890"))).size == 10


async def test_a_file_that_came_there_meanwhile_is_not_lost(root: Path):
    async def slow() -> AsyncIterator[bytes]:
        yield b"mine"
        (root / "a.txt").write_bytes(b"theirs")

    assert (await refused(browser(root).put("a.txt", slow())))[0] == "exists"
    assert (root / "a.txt").read_bytes() == b"theirs"

    async def slower() -> AsyncIterator[bytes]:
        yield b"mine"
        (root / "a.txt").write_bytes(b"theirs again")

    assert (await refused(browser(root).put("a.txt", slower(), replace=True)))[0] == "refused"
    assert os.listdir(root) == ["a.txt"]
    assert (root / "a.txt").read_bytes() == b"theirs again"


async def test_a_draft_that_was_left_is_swept_up_a_day_later(root: Path):
    old, young = root / ".everloop-upload-aa.tmp", root / ".everloop-upload-bb.tmp"
    old.touch()
    young.touch()
    os.utime(old, (5, 5))
    await browser(root).put("a.txt", pieces(b"x"))
    assert sorted(os.listdir(root)) == [young.name, "a.txt"]


async def test_what_is_removed_is_kept_and_a_link_goes_alone(root: Path):
    (root / "a.txt").write_bytes(b"one")
    (root / "empty").mkdir()
    (root / "full").mkdir()
    (root / "full" / "b").touch()
    os.symlink("a.txt", root / "link")
    os.symlink("../secret.txt", root / "outside")
    files = browser(root)
    for path in ("link", "outside", "empty"):
        await files.remove(path)
    assert (await refused(files.remove("full")))[0] == "refused"
    assert (await refused(files.remove("none")))[0] == "missing"
    assert (await refused(files.remove("")))[0] == "refused"
    kept = (await files.remove("a.txt")).kept
    assert await Folder(root.parent / "files").get("owner", kept) == b"one"
    assert (os.listdir(root), (root.parent / "secret.txt").read_bytes()) == (["full"], CANARY)


async def test_what_is_write_protected_stays(root: Path):
    (root / "a.txt").write_bytes(b"one")
    os.chmod(root / "a.txt", 0o444)
    files = browser(root)
    said = [await refused(files.put("a.txt", pieces(b"x"), replace=True)), await refused(files.remove("a.txt"))]
    assert [kind for kind, _ in said] == ["refused", "refused"]
    assert (root / "a.txt").read_bytes() == b"one"


async def test_nothing_is_put_beyond_the_quota_of_a_workspace(root: Path):
    async def quota_of(owner: str) -> int:
        return 10_000

    (root / "sub").mkdir()
    (root / "sub/old").write_bytes(bytes(6000))
    bounded = WorkspaceBrowser(Workspace(root), Folder(root.parent / "files"), "ann", quota_of=quota_of)
    told = await refused(bounded.put("new", pieces(bytes(3000), bytes(3000))))
    assert told == ("no_room", "with this file the workspace would take more than files.quota")
    assert not (root / "new").exists()
    assert await bounded.put("new", pieces(bytes(3000))) == FileWritten("new", 3000)
    assert await browser(root).put("more", pieces(bytes(6000))) == FileWritten("more", 6000)
