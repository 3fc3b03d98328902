"""MEMORY.md, line by line: a fact that stands there is a line of it under the heading of its topic, word for word.

All else that people write there (headings, paragraphs, empty lines) is theirs and stays where it is.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

BULLET = "- "
HEADING = "## "
TITLE = "# Memory\n"
LONGEST = 500  # characters of a fact


class Line(Struct, frozen=True):
    """What a line says that is no heading, and the heading that it stands under."""

    text: str
    topic: str


def one_line(text: str) -> str:
    """A fact as it can stand in a line."""
    seen = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(seen.split()).removeprefix(BULLET).lstrip("#").strip()[:LONGEST]


def lines_of(body: str) -> list[Line]:
    """The facts that a document tells: its bullets."""
    found, topic = [], ""
    for line in body.splitlines():
        if line.startswith("#"):
            topic = line.lstrip("#").strip()
        elif text := _told(line):
            found.append(Line(text, topic))
    return found


def changed_lines(before: str, after: str) -> tuple[list[Line], list[Line]]:
    """What a document tells no longer, and what it tells since. What only stands elsewhere is neither."""
    old, new = lines_of(before), lines_of(after)
    gone = Counter(line.text for line in old) - Counter(line.text for line in new)
    come = Counter(line.text for line in new) - Counter(line.text for line in old)
    return _first(old, gone), _first(new, come)


def with_line(body: str, text: str, topic: str) -> str:
    """With a fact as the last line under its heading, which is made at the end where there is none."""
    if text in (line.text for line in lines_of(body)):
        return body
    lines = (body or TITLE).splitlines()
    for at, line in enumerate(lines):
        if line.startswith("#") and line.lstrip("#").strip().casefold() == topic.casefold():
            lines.insert(_end_of(lines, at), BULLET + text)
            break
    else:
        lines += [*([""] if lines and lines[-1].strip() else []), HEADING + topic, "", BULLET + text]
    return "\n".join(lines) + "\n"


def without_lines(body: str, texts: Sequence[str]) -> str:
    """Without the facts that say this; a heading that had nothing else under it goes with them."""
    kept = [line for line in body.splitlines() if _told(line) not in texts or not _told(line)]
    if len(kept) == len(body.splitlines()):
        return body
    lines = [line for at, line in enumerate(kept) if not (line.startswith(HEADING) and _is_bare(kept, at))]
    return "\n".join(lines).rstrip("\n") + "\n"


def replaced_line(body: str, old: str, new: str, topic: str) -> str:
    """With another fact in the place of one; or as the last under its heading, where that does not stand there."""
    lines = body.splitlines()
    for at, line in enumerate(lines):
        if _told(line) == old:
            lines[at] = line[: len(line) - len(line.lstrip())] + BULLET + new
            return "\n".join(lines) + "\n"
    return with_line(body, new, topic)


def _told(line: str) -> str:
    stripped = line.strip()
    return stripped[2:].strip() if stripped[:2] in ("- ", "* ", "+ ") else ""


def _end_of(lines: Sequence[str], heading: int) -> int:
    """Where the next line under a heading belongs: after the last that is not empty."""
    end = heading + 1
    while end < len(lines) and not lines[end].startswith("#"):
        end += 1
    while end > heading + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def _is_bare(lines: Sequence[str], heading: int) -> bool:
    following = next((line for line in lines[heading + 1 :] if line.strip()), HEADING)
    return following.startswith("#")


def _first(lines: Sequence[Line], counts: Counter[str]) -> list[Line]:
    picked = []
    for line in lines:
        if counts[line.text] > 0:
            counts[line.text] -= 1
            picked.append(line)
    return picked
