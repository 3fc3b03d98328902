"""Archives of strangers: what leads elsewhere, is no plain file or too much is refused, and nothing is written."""

import gzip
import io
import stat
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

from everloop.errors import MailRefused
from everloop.memory.skills.unpack import ENTRIES, SkillContent, unpacked

TEXT = b"---\ndescription: x\n---\n"


def zipped(*files: tuple[str, bytes], mode: int = 0o100644, **how: int) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", how.get("compression", zipfile.ZIP_DEFLATED)) as archive:
        for name, content in files:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = how.get("compression", zipfile.ZIP_DEFLATED)
            archive.writestr(info, content)
    return raw.getvalue()


def tarred(*entries: tarfile.TarInfo | tuple[str, bytes], packed: str = "w:gz") -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode=packed) as archive:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry, io.BytesIO(b"x" * entry.size))
            else:
                info = tarfile.TarInfo(entry[0])
                info.size, info.mode = len(entry[1]), 0o755
                archive.addfile(info, io.BytesIO(entry[1]))
    return raw.getvalue()


def entry(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def twice() -> bytes:
    with pytest.warns(UserWarning, match="Duplicate name"):
        return zipped(("SKILL.md", TEXT), ("SKILL.md", b"other"))


def bomb_in_a_header() -> bytes:
    """A pax header that says it has 2 GB, all of them zeros: tarfile would read it into memory."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 2 << 30
    return gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + bytes(60 << 20))


def many(count: int) -> bytes:
    return zipped(*((f"f{number}", b"") for number in range(count)))


def encrypted() -> bytes:
    return zipped(("a", TEXT)).replace(b"PK\1\2\x14\x03\x14\x00\x00", b"PK\1\2\x14\x03\x14\x00\x01")


def sparse() -> bytes:
    info = entry("a", tarfile.REGTYPE)
    info.pax_headers = {"GNU.sparse.map": "0,9", "GNU.sparse.size": "9"}
    info.size = 512
    return tarred(info)


def zip64() -> bytes:
    plain = zipped(("SKILL.md", TEXT))
    end = plain.rindex(b"PK\5\6")
    return plain[:end] + b"PK\6\7" + bytes(16) + plain[end:]


def crowded() -> bytes:
    """Says that its list of entries is larger than any that is read."""
    plain = bytearray(zipped(("SKILL.md", TEXT)))
    struct.pack_into("<L", plain, len(plain) - 10, 50_000_000)
    return bytes(plain)


NO_FILE = "'a' is a link, a device or a sparse file; a skill holds plain files"
LINKED = "'a' is a link or a device; a skill holds plain files"
BOMB = "it unpacks to more than it may: it may be a bomb"
MANY = "there are more than 2,000 files in it"
LETTERS = "letters that mean something else to some systems"
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "climbs": (lambda: zipped(("../evil", TEXT)), "'../evil' leads out of the skill, or nowhere"),
    "climbs inside": (lambda: tarred(("a/../../evil", TEXT)), "'a/../../evil' leads out of the skill, or nowhere"),
    "absolute": (lambda: tarred(("/etc/cron.d/x", TEXT)), "'/etc/cron.d/x' leads out of the skill, or nowhere"),
    "backslash": (lambda: zipped(("..\\evil", TEXT)), f"'..\\\\evil' holds {LETTERS}"),
    "drive": (lambda: zipped(("C:evil", TEXT)), f"'C:evil' holds {LETTERS}"),
    "control": (lambda: tarred(("a\nb", TEXT)), f"'a\\nb' holds {LETTERS}"),
    "zip link": (lambda: zipped(("a", b"/etc"), mode=stat.S_IFLNK | 0o777), LINKED),
    "zip device": (lambda: zipped(("a", b""), mode=stat.S_IFBLK | 0o600), LINKED),
    "link, then a file in it": (
        lambda: tarred(entry("a", tarfile.SYMTYPE, "/tmp"), ("a/evil", TEXT)),
        NO_FILE,
    ),
    "hard link": (lambda: tarred(entry("a", tarfile.LNKTYPE, "/etc/passwd")), NO_FILE),
    "sparse": (sparse, NO_FILE),
    "device": (lambda: tarred(entry("a", tarfile.CHRTYPE)), NO_FILE),
    "fifo": (lambda: tarred(entry("a", tarfile.FIFOTYPE)), NO_FILE),
    "twice": (twice, "'SKILL.md' is in it twice"),
    "twice by case": (lambda: tarred(("SKILL.md", TEXT), ("skill.MD", b"x")), "'skill.MD' is in it twice"),
    "file and folder": (lambda: tarred(("a", TEXT), ("a/b", TEXT)), "'a' is a file and a folder in it"),
    "deep": (
        lambda: tarred(("/".join("abcdefghijkl"), TEXT)),
        "'a/b/c/d/e/f/g/h/i/j/k/l' is longer or deeper than the files of a skill are",
    ),
    "zeros": (lambda: zipped(("a", bytes(11_000_000))), BOMB),
    "a large file": (
        lambda: zipped(("a", bytes(11_000_000)), compression=zipfile.ZIP_STORED),
        "'a' has more than 10,000,000 bytes",
    ),
    "ratio": (lambda: zipped(*((f"z{n}", bytes(900_000)) for n in range(30))), BOMB),
    "tar of zeros": (lambda: tarred(*((f"z{n}", bytes(9_000_000)) for n in range(8)), packed="w:xz"), BOMB),
    "bomb in a header": (bomb_in_a_header, BOMB),
    "many": (lambda: many(ENTRIES + 1), MANY),
    "a million, it says": (crowded, MANY),
    "zip64": (zip64, MANY),
    "encrypted": (encrypted, "the archive is encrypted"),
    "bzip2 in a zip": (
        lambda: zipped(("a", TEXT), compression=zipfile.ZIP_BZIP2),
        "'a' is compressed in a way that is not read here",
    ),
    "no archive": (
        lambda: b"hello there" * 100,
        "this is neither a zip file nor a tar file (plain, or packed by gzip, bzip2 or xz)",
    ),
    "large": (lambda: bytes(20_000_001), "the archive has more than 20,000,000 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_such_an_archive_is_refused_whole_and_in_little_memory(name: str):
    make, sentence = REFUSED[name]
    data = make()
    tracemalloc.start()
    try:
        with pytest.raises(MailRefused) as refused:
            unpacked(data)
        assert str(refused.value) == sentence
        assert tracemalloc.get_traced_memory()[1] < 150_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        b"PK\3\4 and no more",
        gzip.compress(b"no tar" * 200, mtime=0),  # without the time: each process names the same tests
        b"\x1f\x8b broken",
        b"\xfd7zXZ\0 broken",
        b"BZh9 broken",
        b"PK\5\6",
    ],
)
def test_what_is_damaged_is_refused_in_a_sentence(data: bytes):
    with pytest.raises(MailRefused, match=r"cannot be read|neither"):
        unpacked(data)


@pytest.mark.parametrize("packed", ["w", "w:gz", "w:bz2", "w:xz"])
def test_plain_files_come_out_of_every_kind_of_tar(packed: str):
    folder = entry("skill", tarfile.DIRTYPE)
    assert unpacked(tarred(folder, ("./skill/SKILL.md", TEXT), ("skill/run.sh", b"#!"), packed=packed)) == {
        "skill/SKILL.md": SkillContent(TEXT, True),
        "skill/run.sh": SkillContent(b"#!", True),
    }


def test_plain_files_come_out_of_a_zip_and_an_archive_in_it_stays_packed():
    inner = zipped(("bomb", bytes(5_000_000)))
    assert unpacked(zipped(("SKILL.md", TEXT), ("inner.zip", inner))) == {
        "SKILL.md": SkillContent(TEXT),
        "inner.zip": SkillContent(inner),
    }
