"""What somebody puts into a backup, or beside one, to harm whoever reads it; and that the same without it is read."""

import errno
import fcntl
import gzip
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec
import pytest

from everloop.app.home_taking import HomeTaker
from everloop.app.new_home import make_room
from everloop.app.restoring import RestorePlan, restore
from everloop.backup.listing import new_backup
from everloop.backup.manifest import Member
from everloop.backup.pack import Pack
from everloop.backup.tar import LONGEST_HEADER
from everloop.backup.unpack import open_backup
from everloop.errors import BackupDamaged, BackupError, EverloopError, HomeError
from everloop.files import disk_space
from everloop.ports.audit import hash_of
from everloop.ports.backup import HeldBack
from everloop.store import schema
from everloop.store.copying import counts_in, schema_in
from tests.backup.test_unpack import TOLD, crafted, member, read
from tests.store.test_old import unpacked


def with_header(path: Path, kind: bytes, size: int, times: int = 1) -> Path:
    """A file that begins with headers which say that so much more of a header follows."""
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, size
    with gzip.open(path, "wb") as file:
        for _ in range(times):
            file.write(info.tobuf(tarfile.USTAR_FORMAT) + bytes(min(size, 5_000_000)))
    return path


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
@pytest.mark.parametrize("size", [LONGEST_HEADER + 1, 2**33 - 1])
def test_no_header_takes_more_memory_than_a_header_may(kind: bytes, size: int, tmp_path: Path):
    with pytest.raises(BackupDamaged, match=r"a header in it says|size of|not a backup"):
        read(with_header(tmp_path / "bomb.tar.gz", kind, size))


def test_headers_that_follow_one_another_without_end_are_refused(tmp_path: Path):
    with pytest.raises(BackupDamaged):
        read(with_header(tmp_path / "chain.tar.gz", tarfile.XHDTYPE, 512, 5000))


def test_names_that_are_long_or_in_another_script_are_read(tmp_path: Path):
    name = f"workspace/{'ä' * 120}/{'b' * 200}"
    assert read(crafted(tmp_path / "good.tar.gz", member(name))) == {name: bytes(3)}


@pytest.mark.parametrize("name", ["fifo", "folder"])
def test_nobody_waits_for_what_only_has_the_name_of_a_part_or_of_a_backup(name: str, tmp_path: Path):
    part = tmp_path / ".everloop-20260101-000000-1.part"
    os.mkfifo(part) if name == "fifo" else part.mkdir()
    with new_backup(tmp_path, 0.0, sealed=False) as (file, target):
        file.write(b"x")
    assert (target.read_bytes(), part.exists()) == (b"x", True)
    with pytest.raises(BackupError, match=r"no file|Is a directory"):
        open_backup(part)


def taken(home: Path, *links: tuple[str, str]) -> list[str]:
    home.mkdir(mode=0o700)
    with HomeTaker(home, lambda: False) as taker:
        taker.folder(Member("workspace/a/b/c", 0o755))
        taker.file(Member("workspace/tool", 0o6777, 2), iter([b"hi"]))
        for name, target in links:
            taker.link(Member(name, 0o777, link=target))
        return taker.link_all()


LITTLE: dict[str, Callable[[HomeTaker, str], None]] = {
    "folders": lambda taker, name: taker.folder(Member(name, 0o700)),
    "files": lambda taker, name: taker.file(Member(name, 0o600), iter([])),
    "bytes": lambda taker, name: taker.file(Member(name, 0o600, 9000), iter([bytes(9000)])),
}


@pytest.mark.parametrize("kind", LITTLE)
def test_what_is_little_by_itself_fills_no_disk_either(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def take_many(taker: HomeTaker) -> None:
        for number in range(30):
            LITTLE[kind](taker, str(number))

    monkeypatch.setattr(disk_space, "LOOK", 100_000)
    monkeypatch.setattr(disk_space, "SPARE", 10**18)
    with HomeTaker(tmp_path, lambda: False) as taker, pytest.raises(HomeError, match="more to come than there is room"):
        take_many(taker)


CHAINS = {
    "through a link": (("workspace/a/b/up", "../.."), ("workspace/x", "a/b/up/../../../out")),
    "to the vault": (("workspace/a/b/up", "../.."), ("workspace/x", "a/b/up/../vault.key")),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_link_that_leads_out_by_way_of_others_is_left_out(name: str, tmp_path: Path):
    [told] = taken(tmp_path / "home", *CHAINS[name])
    assert told.startswith("1 links were left out")
    assert not (tmp_path / "home" / "workspace" / "x").is_symlink()
    assert (tmp_path / "home" / "workspace" / "a" / "b" / "up" / "tool").read_text() == "hi"


def test_a_chain_that_only_the_system_can_follow_is_left_out(tmp_path: Path):
    """A path has at most 4,096 bytes, and what is made step by step lies deeper."""
    folders = ["/".join(["workspace", *["d" * 250] * depth]) for depth in range(19)]
    ups = [(f"{folder}/up", "../..") for folder in folders[2:]]
    assert taken(tmp_path / "home", *ups, (f"{folders[-1]}/x", "/".join(["up"] * 8 + [".."] * 10))) != []
    there = {name for _, inner, files, _ in os.fwalk(tmp_path / "home") for name in (*inner, *files)}
    assert ("up" in there, "x" in there) == (True, False)


def test_a_link_that_stays_is_made_and_no_bit_that_lends_rights_is(tmp_path: Path):
    assert taken(tmp_path / "home", ("workspace/a/link", "../a/../tool")) == []
    assert (tmp_path / "home" / "workspace" / "a" / "link").read_text() == "hi"
    assert (tmp_path / "home" / "workspace" / "tool").stat().st_mode & 0o7022 == 0


@pytest.mark.parametrize(
    "links",
    [
        (("workspace/d", "a/b"), ("workspace/d/x", "y")),  # beneath a link
        (("workspace/tool", "a"),),  # in the place of a file
        (("workspace/a", "tool"),),
    ],
)
def test_nothing_is_put_beneath_a_link_or_in_the_place_of_another(links: tuple[tuple[str, str], ...], tmp_path: Path):
    with pytest.raises(BackupDamaged):
        taken(tmp_path / "home", *links)
    assert list((tmp_path / "home" / "workspace" / "a" / "b").iterdir()) == [
        tmp_path / "home" / "workspace" / "a" / "b" / "c"
    ]


def database(path: Path, *more: str) -> Path:
    connection = apsw.Connection(str(path))
    connection.create_scalar_function("everloop_hash", hash_of, 8, deterministic=True)
    connection.execute("PRAGMA synchronous = OFF")
    for statement in (*schema.statements("sqlite", schema.MIGRATIONS), *more):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS)}")
    connection.close()
    return path


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER mine AFTER INSERT ON audit BEGIN DELETE FROM users; END",
        "CREATE VIEW mine AS SELECT * FROM users",
        "CREATE VIRTUAL TABLE mine USING fts5(a)",
        "CREATE TABLE mine(a, b AS (hex(zeroblob(1000))))",
        "CREATE INDEX mine ON users(lower(id))",
    ],
)
def test_nothing_of_a_strangers_schema_is_run(statement: str, tmp_path: Path):
    with pytest.raises(BackupDamaged, match="that is not as everloop makes it"):
        counts_in(database(tmp_path / "bad.db", statement))


def test_a_table_is_counted_whatever_it_is_called(tmp_path: Path):
    name = 'users" WHERE 0; --'
    quoted = '"' + name.replace('"', '""') + '"'
    assert counts_in(database(tmp_path / "a.db", "CREATE INDEX mine ON users(id)", "ANALYZE"))["users"] == 1
    with pytest.raises(BackupDamaged, match="as everloop makes it"):
        counts_in(database(tmp_path / "b.db", f"CREATE TABLE {quoted}(a)"))
    assert counts_in(database(tmp_path / "c.db", 'CREATE TABLE "order"(a)'))["order"] == 0


async def test_two_do_not_restore_into_one_home(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    with (home / "restoring.json").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(HomeError, match="another process is restoring"):
            await restore(RestorePlan(tmp_path / "any.tar.gz", home))
    with pytest.raises(BackupError, match=r"any\.tar\.gz"):  # of one that was cut off, it begins again
        await restore(RestorePlan(tmp_path / "any.tar.gz", home))


def backup_of(rows: Path, file: Path) -> Path:
    with open(file, "wb") as target, open(rows, "rb") as opened:
        told = msgspec.structs.replace(TOLD, schema=schema_in(rows))
        pack = Pack(target, told, passphrase="", staging=file.parent, tell=lambda piece: None)
        pack.add_file("everloop.db", opened.fileno())
        pack.finish(counts_in(rows))
        pack.close()
    return file


async def test_what_fails_after_all_was_unpacked_is_put_back_too(tmp_path: Path):
    home, file = tmp_path / "home", backup_of(database(tmp_path / "a.db"), tmp_path / "b.tar.gz")
    home.mkdir()
    (home / "run").write_text("where the store has a folder")
    with pytest.raises(EverloopError):
        await restore(RestorePlan(file, home))
    assert [path.name for path in home.iterdir()] == ["run"]
    (home / "run").unlink()
    assert (await restore(RestorePlan(file, home))).held == HeldBack()


async def test_rows_that_cannot_be_read_are_a_damaged_backup(tmp_path: Path):
    mark = (
        "INSERT INTO jobs(id, owner, kind, session, schedule, due, body) VALUES('restored', 'o', 'r', '', '', 0, '{')"
    )
    file = backup_of(database(tmp_path / "a.db", mark), tmp_path / "b.tar.gz")
    with pytest.raises(BackupDamaged, match=r"b\.tar\.gz: something in its database cannot be read"):
        await restore(RestorePlan(file, tmp_path / "home"))


async def test_a_backup_of_an_older_everloop_is_brought_up_to_date_and_no_second_copy_of_it_is_kept(tmp_path: Path):
    (tmp_path / "old.db").write_bytes(unpacked("sqlite.gz"))
    file = backup_of(tmp_path / "old.db", tmp_path / "b.tar.gz")
    await restore(RestorePlan(file, tmp_path / "home"))
    assert schema_in(tmp_path / "home" / "everloop.db") == len(schema.MIGRATIONS)
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["everloop.db", "run"]


def test_of_a_restore_that_was_cut_off_the_next_one_knows_what_was_there_before(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text("mine")
    first = make_room(home, replace=True)
    with first.marked("b.tar.gz", ""):
        (home / "everloop.db").write_text("half")
        with pytest.raises(HomeError, match="another process is restoring"):
            make_room(home, replace=True)
    second = make_room(home, replace=False)
    assert (second, [path.name for path in home.iterdir()]) == (first, ["restoring.json"])
    second.put_back()
    assert {path.name: path.read_text() for path in home.iterdir()} == {"config.toml": "mine"}


def no_links(code: int) -> Callable[..., None]:
    def link(*names: object) -> None:
        raise OSError(code, os.strerror(code))

    return link


def test_a_disk_without_hard_links_keeps_backups_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As exFAT and many network shares: nothing there is written over either, and what fails otherwise is told."""
    monkeypatch.setattr(os, "link", no_links(errno.EPERM))
    with new_backup(tmp_path, 0.0, False) as (file, target):
        file.write(b"whole")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"whole"]
    with pytest.raises(BackupError, match="File exists"), new_backup(tmp_path, 1.0, False) as (_, target):
        target.write_bytes(b"another's")
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"another's", b"whole"]
    monkeypatch.setattr(os, "link", no_links(errno.EIO))
    with pytest.raises(BackupError, match="nothing is left of it"), new_backup(tmp_path, 2.0, False):
        pass
    assert len(list(tmp_path.iterdir())) == 2
