"""The names of files. What comes from elsewhere is shown as one name on one line (`plain_name`). What is written by a
name that somebody chose has one that every system takes, and that leads nowhere else (`safe_name`; path traversal)."""

import re
import unicodedata
from hashlib import sha256

LONGEST_SHOWN = 120  # characters
LONGEST_WRITTEN = 200  # bytes; file systems take 255
_ENDING = 16
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|\ud800-\udfff]')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def plain_name(name: str) -> str:
    """The last part of a path of any system, on one line; what cannot be printed, or turns letters around, is `_`."""
    name = name.encode("utf-8", "replace").decode()
    name = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    name = "".join(letter if letter.isprintable() else "_" for letter in name).strip()
    if not name.strip("."):
        return "file"
    return name if len(name) <= LONGEST_SHOWN else _shortened(name)


def _shortened(name: str) -> str:
    head, dot, ending = name.rpartition(".")
    if not dot or len(ending) > _ENDING:
        return name[:LONGEST_SHOWN]
    return f"{head[: LONGEST_SHOWN - len(ending) - 2]}….{ending}"


def safe_name(name: str) -> str:
    """A name that is one on every system, and leads nowhere: neither up, nor to another drive. One that had to be
    changed has a mark at its end, so that two stay two."""
    safe = unicodedata.normalize("NFC", _UNSAFE.sub("_", name)).rstrip(". ")
    if not safe.strip(".") or _RESERVED.fullmatch(safe):
        safe = f"_{safe}"
    if len(safe.encode()) > LONGEST_WRITTEN:
        safe = safe.encode()[: LONGEST_WRITTEN - 20].decode(errors="ignore")
    return name if safe == name else f"{safe}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"
