"""The memory as files: what was written into them last, by which a change by hand is known, and what can be read back.

What a file held is kept on the disk that the file is on, by the prints of its lines: another machine has files of its
own, and a disk that was restored from a copy brings along what its files held then.
"""

import msgspec
from msgspec import Struct

from ..ports.memory import DOCUMENTS, HISTORY, MEMORY
from .merging import Prints, prints_of

FOLDER = "memory"
PATHS = {name: f"{FOLDER}/{name}" for name in DOCUMENTS}
LONGEST = {MEMORY: 100_000, HISTORY: 1_000_000}  # bytes of each file
MOST = max(LONGEST.values()) + 1  # bytes that are read
SETTLED = 2.0  # seconds after which an empty file is not one that an editor is just about to write


class View(Struct, frozen=True):
    """What a file held when we were last done with it, and what was then being written into it."""

    held: Prints
    writing: Prints


class Views(Struct, frozen=True):
    """Of the files in one workspace."""

    place: str
    views: dict[str, View] = {}

    def after(self, name: str, held: Prints, writing: Prints) -> "Views":
        return Views(self.place, self.views | {name: View(held, writing)})


def views_in(content: bytes, place: str) -> Views:
    """What was written down about them; nothing of another workspace, or of what cannot be read."""
    try:
        found = msgspec.json.decode(content, type=Views)
    except msgspec.DecodeError:
        return Views(place)
    return found if found.place == place else Views(place)


def is_ours(view: View | None, text: str) -> bool:
    """Whether a file holds what we have written."""
    return view is not None and prints_of(text) in (view.held, view.writing)


def text_in(name: str, content: bytes) -> str:
    """What a file says, with line ends as everywhere. Raises ValueError with a sentence."""
    if len(content) > LONGEST[name]:
        raise ValueError(f"it is longer than {LONGEST[name]:,} bytes: make it shorter")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8: save it as UTF-8 text") from None
    if "\0" in text:
        raise ValueError("it holds NUL bytes: save it as UTF-8 text")
    return text.replace("\r\n", "\n").replace("\r", "\n")
