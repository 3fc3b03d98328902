"""The system prompt in sections: who the agent is, what the owner's files say, what it remembers and is able to do.

They stand in one order, always. Each has a name, by which a changed prompt says what has changed in it.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256

import msgspec

from ..core.prompt import Section
from ..core.tool import ToolSpec

BOOTSTRAP = ("agents.md", "soul.md", "user.md", "tools.md", "identity.md")
PERSONA = "persona"
CLIENT = "client"  # what a program says that speaks for its user
SKILLS = ("active_skills", "skills")  # all of these, and what those are for
ORDER = ("identity", PERSONA, *BOOTSTRAP, "memory", *SKILLS, CLIENT)
BETWEEN = "\n\n---\n\n"
_LEAST = 120  # characters; of what is cut shorter than this nobody would be the wiser
ALWAYS, HEADING = 1e18, -1.0  # ranks of lines that are not left out for their own sake
LEFT_OUT = "[{} lines that matter less are left out here; `recall` finds them]"
_LEFT_OUT = r"(?m)^\[(\d+) lines that matter less are left out here"
_CUT = "\n[… cut here; the rest is in {}]"


def joined(sections: Iterable[Section]) -> str:
    placed = sorted(sections, key=lambda section: ORDER.index(section.name))
    return BETWEEN.join(section.text for section in placed if section.text)


def cut(section: Section, chars: int) -> Section:
    """As much of it as there is room for, up to the end of a line or a word, with a note that there is more."""
    if len(section.text) <= chars:
        return section
    if section.ranks:
        return cut_by_rank(section, chars)
    note = _CUT.format(section.source or section.name)
    text = section.text[: max(0, chars - len(note))]
    end = max(text.rfind("\n"), text.rfind(" "))
    return Section(section.name, text[: end if end > len(text) // 2 else len(text)].rstrip() + note, section.source)


def cut_by_rank(section: Section, chars: int) -> Section:
    """Without the lines of the lowest ranks, of which the first go first; a heading goes with the last line under it.
    What ranks as ALWAYS stays."""
    before = left_out_of(section)
    lines, ranks = section.text.split("\n"), section.ranks
    if before:
        lines, ranks = lines[:-1], ranks[:-1]
    left = sum(len(line) + 1 for line in lines) + len(LEFT_OUT.format(before + len(lines)))
    out: set[int] = set()
    for _, place in sorted((rank, place) for place, rank in enumerate(ranks) if rank not in (ALWAYS, HEADING)):
        if left <= chars:
            break
        out.add(place)
        left -= len(lines[place]) + 1
    kept = [place for place in range(len(lines)) if place not in out and not _is_bare(place, ranks, out)]
    many = before + sum(1 for place in out if lines[place].strip())
    text = "\n".join([*(lines[place] for place in kept), LEFT_OUT.format(many)])
    short = Section(section.name, text, section.source, (*(ranks[place] for place in kept), ALWAYS))
    return short if len(text) <= chars else _best_lines(section, chars)


def _best_lines(section: Section, chars: int) -> Section:
    """The lines of the highest ranks, as many as there is room for, and nothing about them."""
    lines, kept = section.text.split("\n"), list[int]()
    told = [place for place, rank in enumerate(section.ranks) if rank not in (ALWAYS, HEADING, 0.0)]
    for place in sorted(told, key=lambda each: section.ranks[each], reverse=True):
        if sum(len(lines[each]) + 1 for each in (*kept, place)) <= chars:
            kept.append(place)
    return Section(section.name, "\n".join(lines[place] for place in sorted(kept)), section.source)


def left_out_of(section: Section) -> int:
    """How many lines were left out of it by rank."""
    found = re.search(_LEFT_OUT, section.text)
    return int(found[1]) if found else 0


def _is_bare(place: int, ranks: Sequence[float], out: AbstractSet[int]) -> bool:
    """A heading with nothing under it."""
    if ranks[place] != HEADING:
        return False
    further = range(place + 1, len(ranks))
    end = next((each for each in further if ranks[each] == HEADING), len(ranks))
    return all(each in out for each in range(place + 1, end))


def shrunk(sections: Sequence[Section], chars: int) -> tuple[Section, ...]:
    """These in so many characters: short ones whole, long ones cut to the same length.

    When that would leave too little of each, the longest is left out, so that a short note is not lost beside it.
    """
    left = list(sections)
    while left:
        level = _level([len(section.text) + len(BETWEEN) for section in left], chars) - len(BETWEEN)
        if level >= _LEAST or all(len(section.text) <= level for section in left):
            return tuple(cut(section, level) for section in left)
        left.remove(max(left, key=lambda section: len(section.text)))
    return ()


def _level(sizes: Sequence[int], room: int) -> int:
    """The size to which the larger ones have to be cut, so that all of them fit."""
    ordered = sorted(sizes)
    for at, size in enumerate(ordered):
        count = len(ordered) - at
        if size * count > room:
            return room // count
        room -= size
    return ordered[-1]


def prefix_of(model: str, sections: Iterable[Section], tools: Iterable[ToolSpec]) -> str:
    """A fingerprint of each part of what stands before a conversation: `model:… identity:… tools:…`."""
    described = [(tool.name, tool.description, tool.schema) for tool in tools]
    parts = {"model": model, **{section.name: section.text for section in sections}, "tools": described}
    prints = {name: sha256(msgspec.json.encode(part)).hexdigest()[:8] for name, part in parts.items()}
    return " ".join(f"{name}:{print}" for name, print in prints.items())


def changed_parts(before: str, after: str) -> list[str]:
    """The names of the parts in which two prefixes differ, those that are gone last; none when there was no prefix
    before."""
    if not before or before == after:
        return []
    old, new = before.split(), after.split()
    differing = [part for part in new if part not in old] + [part for part in old if part not in new]
    return list(dict.fromkeys(part.rpartition(":")[0] for part in differing))
