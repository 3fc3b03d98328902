"""A document that two have changed: nothing that either has added is lost, and what either has removed is gone.

What both began with is only known by the hashes of its lines, so that nobody has to keep what is forgotten since.
"""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

Prints = tuple[str, ...]
COMPARED = 6000  # lines in all: to find out what stands where in more of them could take minutes
_TITLE = "# "


def prints_of(text: str) -> Prints:
    return tuple(map(_print_of, text.split("\n")))


def merged(base: Sequence[str], ours: str, theirs: str) -> str:
    """The text that both have made of one whose lines had these prints. Where both have added something in the same
    place, ours stands first; what stands under a heading stays there."""
    if ours == theirs or prints_of(theirs) == tuple(base):
        return ours
    if prints_of(ours) == (tuple(base) or prints_of("")):  # nobody else has changed it, or there was nothing
        return theirs
    if len(base) + ours.count("\n") + theirs.count("\n") > COMPARED:
        return _listed(base, ours, theirs)
    mine, other = _Side(base, ours), _Side(base, theirs)
    lines: list[str] = []
    for place in range(len(base) + 1):
        lines += _added(mine.added[place], other.added[place])
        if place < len(base) and place in mine.kept and place in other.kept:
            lines.append(mine.kept[place])
    return "\n".join(lines)


class _Side:
    """What one has kept of the lines, by their places, and what was added before each place."""

    def __init__(self, base: Sequence[str], text: str) -> None:
        from difflib import SequenceMatcher  # few documents are ever merged

        lines, prints = text.split("\n"), prints_of(text)
        self.kept: dict[int, str] = {}
        self.added: list[list[str]] = [[] for _ in range(len(base) + 1)]
        at = place = 0
        for block in SequenceMatcher(None, base, prints).get_matching_blocks():
            # What stands in the place of removed lines was written where they began.
            self.added[place if at < block.b and place < block.a else block.a] += lines[at : block.b]
            self.kept |= {block.a + step: lines[block.b + step] for step in range(block.size)}
            at, place = block.b + block.size, block.a + block.size


def _added(ours: list[str], theirs: list[str]) -> list[str]:
    if not theirs or ours == theirs:
        return ours
    head, rest = _at_heading(ours)
    more, further = _at_heading(_not_in(ours, theirs))
    return [*head, *more, *rest, *further]


def _at_heading(lines: list[str]) -> tuple[list[str], list[str]]:
    """What belongs under the heading before, and the rest."""
    first = next((place for place, line in enumerate(lines) if line.startswith("#")), len(lines))
    return lines[:first], lines[first:]


def _not_in(ours: list[str], theirs: list[str]) -> list[str]:
    """Of theirs, what ours does not say as often. A heading stays, for there are lines that belong under it."""
    said, left = Counter(ours), []
    for line in theirs:
        if said[line] and not (line.startswith("#") and not line.startswith(_TITLE)):
            said[line] -= 1
        else:
            left.append(line)
    return left


def _listed(base: Sequence[str], ours: str, theirs: str) -> str:
    """The same by counting: ours in its order, without what theirs has removed, then what theirs has added."""
    began, mine, other = Counter(base), Counter(prints_of(ours)), Counter(prints_of(theirs))
    removed, added = began - other, other - began - mine
    lines = []
    for line, print in zip(ours.split("\n"), prints_of(ours), strict=True):
        if line and removed[print] > 0:
            removed[print] -= 1
        else:
            lines.append(line)
    more = []
    for line, print in zip(theirs.split("\n"), prints_of(theirs), strict=True):
        if line and added[print] > 0:
            added[print] -= 1
            more.append(line)
    end = [""] if lines and not lines[-1] else []
    return "\n".join([*(lines[:-1] if end else lines), *more, *end])


def _print_of(line: str) -> str:
    return blake2b(line.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
