"""Files that came of a conversation, as links: who may read the entry that tells of a file may have the file.

A link names the entry, so that it can be checked by reading that alone. Whose folder a file lies in does not matter:
what a guest has sent, or what a tool has made for one, belongs to the conversation.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from ..core.log import Entry
from ..core.message import Made, Media
from ..readings.linked_files import is_address
from ..readings.spoken import spoken


def links_of(thread: str, files: Iterable[Made]) -> list[dict[str, str]]:
    return [link_of(thread, made.seq, made.media) for made in files]


def link_of(thread: str, seq: int, media: Media) -> dict[str, str]:
    name = media.name or "file"
    if is_address(media.file):  # a tool has told where it lies
        return {"file": "", "mime": media.mime, "name": name, "url": media.file}
    address = f"/api/files/{media.file}/{quote(last_of(name), safe='')}?thread={thread}&seq={seq}"
    return {"file": media.file, "mime": media.mime, "name": name, "url": address}


def last_of(path: str) -> str:
    """The name of a file alone, as a browser saves it; a dot or two would be no name in an address."""
    name = path.rpartition("/")[2]
    return name if name.strip(".") else "file"


def media_in(entry: Entry) -> tuple[Media, ...]:
    """The files that an entry tells of."""
    said = spoken(entry)
    return said.files if said else ()


def told_with_links(thread: str, seq: int, entry: Entry) -> dict[str, Any]:
    """The links of an entry, for whoever reads it; nothing if it has none."""
    found = [link_of(thread, seq, media) for media in media_in(entry)]
    return {"links": found} if found else {}
