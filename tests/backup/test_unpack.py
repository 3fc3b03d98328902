"""A backup is believed when every member is where it belongs and is as it was; whatever else it holds is refused."""

import gc
import gzip
import hashlib
import io
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from everloop.app.restoring import RestorePlan, restore
from everloop.backup.manifest import ABOUT, MANIFEST, About, Member, PackSummary, link_stays
from everloop.backup.pack import Pack
from everloop.backup.unpack import read_backup
from everloop.errors import BackupError

TOLD = About(everloop="0.1.0", schema=1, made=0.0, store="sqlite", home="/h", workspace="/h/workspace", has_key=False)


class Everything:
    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def begin(self, about: About) -> None: ...

    def folder(self, member: Member) -> None: ...

    def link(self, member: Member) -> None: ...

    def file(self, member: Member, pieces: Iterator[bytes]) -> None:
        self.held[member.name] = b"".join(pieces)


def belongs(name: str) -> bool:
    return name in ("workspace", "files", "everloop.db")


def read(path: Path) -> dict[str, bytes]:
    taker = Everything()
    read_backup(path, "", taker, staging=path.parent, belongs=belongs)
    return taker.held


def packed(path: Path, fill: Callable[[Pack], None]) -> Path:
    with open(path, "wb") as file:
        pack = Pack(file, TOLD, passphrase="", staging=path.parent, tell=lambda piece: None)
        fill(pack)
        pack.finish({})
        pack.close()
    return path


def crafted(path: Path, *members: tarfile.TarInfo, ends: bool = True, told: About = TOLD) -> Path:
    """One whose manifest agrees with it, so that nothing but what it holds can be refused."""
    about = msgspec.json.encode(told)
    lines = [Member(ABOUT, 0o600, len(about), hashlib.sha256(about).hexdigest())]
    with gzip.open(path, "wb") as zipped, tarfile.open(fileobj=zipped, mode="w|") as tar:
        info = tarfile.TarInfo(ABOUT)
        info.size, info.mode = len(about), 0o600
        tar.addfile(info, io.BytesIO(about))
        for each in members:
            tar.addfile(each, io.BytesIO(bytes(each.size)))
            hashed = hashlib.sha256(bytes(each.size)).hexdigest() if each.isreg() else ""
            lines.append(Member(each.name, each.mode, each.size, hashed, each.linkname))
        if ends:
            size = sum(line.size for line in lines)
            summary = msgspec.json.encode(PackSummary(members=len(lines), bytes=size, rows={}))
            text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines) + summary + b"\n"
            info = tarfile.TarInfo(MANIFEST)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 3) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size if kind == tarfile.REGTYPE else 0
    return info


HOSTILE = {
    "absolute": member("/etc/passwd"),
    "up": member("workspace/../../out"),
    "dots": member(".."),
    "elsewhere": member("run/1234"),
    "link out": member("workspace/link", tarfile.SYMTYPE, "../../out"),
    "link to the vault": member("workspace/link", tarfile.SYMTYPE, "../vault.key"),
    "absolute link": member("workspace/link", tarfile.SYMTYPE, "/etc/passwd"),
    "hard link": member("workspace/link", tarfile.LNKTYPE, "workspace/a"),
    "device": member("workspace/null", tarfile.CHRTYPE),
    "pipe": member("workspace/pipe", tarfile.FIFOTYPE),
    "database as a link": member("everloop.db", tarfile.SYMTYPE, "workspace/a"),
    "twice": member("workspace/a"),
    "twice, the other way round": member("files/a"),
    "beneath a file": member("workspace/a/b"),
    "a second database": member("everloop.db"),
    "longer than a name may be": member(f"workspace/{'n' * 256}"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_what_leads_elsewhere_is_refused_and_nothing_is_left(name: str, tmp_path: Path):
    path = crafted(tmp_path / "bad.tar.gz", member("workspace/a"), HOSTILE[name])
    with pytest.raises(BackupError, match=str(path)):
        read(path)
    with pytest.raises(BackupError):
        await restore(RestorePlan(path, tmp_path / "home"))
    assert list((tmp_path / "home").iterdir()) == []
    assert not (tmp_path / "out").exists()


def test_a_link_that_stays_in_its_folder_is_kept_and_no_other():
    assert link_stays("workspace/a/link", "../b")
    assert link_stays("people/anna/link", "../ben/x")  # both are the home's own
    assert not link_stays("workspace/link", "../people/anna")
    assert not link_stays("config.toml", "workspace/x")


def test_the_same_file_without_what_is_hostile_is_read(tmp_path: Path):
    assert read(crafted(tmp_path / "good.tar.gz", member("workspace/a"))) == {"workspace/a": bytes(3)}


@pytest.mark.parametrize("told", [{"everloop": "\x1b]0;mine\x07"}, {"store": "sqlite\nall is well"}])
def test_what_a_backup_says_of_itself_steers_no_terminal(told: dict[str, str], tmp_path: Path):
    with pytest.raises(BackupError, match="cannot be shown"):
        read(crafted(tmp_path / "bad.tar.gz", told=msgspec.structs.replace(TOLD, **told)))


def test_a_pack_that_is_given_up_writes_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is written into a closed file when it is thrown away would be told as a traceback."""
    gc.collect()  # what tests before this one have left
    failures: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failed: failures.append(repr(failed.exc_value)))
    with open(tmp_path / "half.tar.gz", "wb") as file:
        pack = Pack(file, TOLD, passphrase="", staging=tmp_path, tell=lambda piece: None)
        pack.add_bytes("workspace/a", b"something")
        pack.close()
    del pack
    gc.collect()
    assert failures == []


def test_a_file_that_ends_before_its_manifest_is_no_backup(tmp_path: Path):
    with pytest.raises(BackupError, match="ends before its manifest"):
        read(crafted(tmp_path / "half.tar.gz", member("workspace/a"), ends=False))


def unzipped(path: Path) -> bytes | None:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error):
        return None


def test_one_that_goes_on_where_it_ends_is_refused(tmp_path: Path):
    path = packed(tmp_path / "a.tar.gz", lambda pack: pack.add_bytes("workspace/a.txt", b"x"))
    whole, held = path.read_bytes(), gzip.decompress(path.read_bytes())
    more = [whole + bytes(9), whole + b"x", whole + gzip.compress(b""), gzip.compress(held + b"x")]
    endless = gzip.compress(held + bytes(tarfile.RECORDSIZE + 1))
    for bad in (*more, endless):
        path.write_bytes(bad)
        with pytest.raises(BackupError, match="something follows"):
            read(path)
    path.write_bytes(gzip.compress(held + bytes(tarfile.BLOCKSIZE)))  # as tar itself fills it up
    assert read(path) == {"workspace/a.txt": b"x"}


def test_one_that_is_cut_off_or_changed_anywhere_is_refused(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"something" * 1000)

    def fill(pack: Pack) -> None:
        with open(tmp_path / "a", "rb") as file:
            pack.add_file("workspace/a", file.fileno())

    whole = packed(tmp_path / "whole.tar.gz", fill).read_bytes()
    assert read(tmp_path / "whole.tar.gz") == {"workspace/a": b"something" * 1000}
    bad = tmp_path / "bad.tar.gz"
    for at in range(12, len(whole) - 1, 37):
        bad.write_bytes(whole[:at])
        with pytest.raises(BackupError):
            read(bad)
    for at in range(12, len(whole) - 9, 37):
        bad.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        if unzipped(bad) != gzip.decompress(whole):  # a repetition can be packed in more ways than one
            with pytest.raises(BackupError):
                read(bad)


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(bytes(600_000))
    told = []

    def cut(piece: int) -> None:
        path.write_bytes(b"x")

    with open(tmp_path / "b.tar.gz", "wb") as file, open(path, "rb") as source:
        pack = Pack(file, TOLD, passphrase="", staging=tmp_path, tell=cut)
        pack.add_file("workspace/a", source.fileno())
        told = pack.finish({}).changed
        pack.close()
    assert told == ["workspace/a"]
    assert len(read(tmp_path / "b.tar.gz")["workspace/a"]) == 600_000
