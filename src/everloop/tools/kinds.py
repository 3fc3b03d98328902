"""Files that hold strangers' words by what they are: what people are sent or have downloaded, not what they write.

Only the standard library is used here, since `grep` asks in a process that has nothing else.
"""

import re

_TEXTS = (
    "html htm xhtml mhtml mht webarchive warc xml svg rss atom opml "  # pages
    "pdf doc docx docm rtf xls xlsx xlsm ppt pptx odt ods odp epub mobi djvu "  # papers
    "eml msg mbox ics vcf"  # letters
)
_IMAGES = "png jpg jpeg gif webp bmp tif tiff heic"
ENDINGS = frozenset(f"{_TEXTS} {_IMAGES}".split())
_NAMED = re.compile(rf"[\w)\]}}*?'\"-]\.({'|'.join(_TEXTS.split())})(?![\w-])", re.IGNORECASE)
HEAD = 1024  # bytes that tell what a file is
_BEGINNINGS = (
    b"%pdf-", b"pk\3\4", b"\xd0\xcf\x11\xe0", b"{\\rtf", b"<!doctype html", b"<html", b"<?xml", b"<svg", b"<rss",
    b"<feed", b"begin:vcalendar", b"begin:vcard", b"from ", b"received:", b"return-path:", b"mime-version:",
    b"delivered-to:",
    b"\x89png", b"\xff\xd8\xff", b"gif8", b"riff",
)  # fmt: skip


def is_strange_kind(name: str, head: bytes) -> bool:
    """Whether a file of this name, which begins so, is one that strangers make. A page or letter is one by any name."""
    if name.rpartition(".")[2].lower() in ENDINGS and "." in name:
        return True
    begins = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:HEAD].lower()
    return begins.startswith(_BEGINNINGS) and (not begins.startswith(b"from ") or b"@" in begins.split(b"\n", 1)[0])


def named_in(command: str) -> str:
    """A kind of file that a command names and strangers make, whose words it may print; "" if it names none."""
    found = _NAMED.search(command)
    return found[1].lower() if found else ""
