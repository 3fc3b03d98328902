"""Files that a tool tells of by an address: `url` at the top of its JSON, and of each of its `files`."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ..core.message import Media
from .filenames import plain_name

LONGEST = 100_000  # characters of a result that is looked into
MOST = 20
_LONGEST_ADDRESS = 2000


def linked_files(text: str) -> tuple[Media, ...]:
    if not text.startswith("{") or len(text) > LONGEST or '"url"' not in text:
        return ()
    try:
        told = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ()
    found = {media.file: media for media in _found(told)}
    return tuple(found.values())[:MOST]


def _found(told: dict[str, Any]) -> Iterator[Media]:
    files = told.get("files")
    for each in (told, *(files if isinstance(files, list) else ())):
        if isinstance(each, dict) and isinstance(url := each.get("url"), str) and is_address(url):
            name = each.get("filename") or each.get("name")
            yield Media(url, "", plain_name(name) if isinstance(name, str) else "file")


def is_address(url: str) -> bool:
    """On the web, and on one line."""
    if len(url) > _LONGEST_ADDRESS or not url.isprintable() or " " in url:
        return False
    return url.startswith(("https://", "http://"))
