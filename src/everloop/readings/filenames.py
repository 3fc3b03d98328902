"""What people and models call things, as names of files: none leads anywhere else (path traversal), on any system."""

import re
import unicodedata
from hashlib import sha256

LONGEST = 200  # bytes; file systems take 255
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|\ud800-\udfff]')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def plain(name: str) -> str:
    """A name that is one on every system, and leads nowhere: neither up, nor to another drive. One that had to be
    changed has a mark at its end, so that two stay two."""
    safe = unicodedata.normalize("NFC", _UNSAFE.sub("_", name)).rstrip(". ")
    if not safe.strip(".") or _RESERVED.fullmatch(safe):
        safe = f"_{safe}"
    if len(safe.encode()) > LONGEST:
        safe = safe.encode()[: LONGEST - 20].decode(errors="ignore")
    return name if safe == name else f"{safe}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"
