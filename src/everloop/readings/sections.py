"""The system prompt in sections: who the agent is, what the owner's files say, what it remembers and is able to do.

They stand in one order, always. Each has a name, by which a changed prompt says what has changed in it.
"""

from collections.abc import Iterable, Sequence
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
_CUT = "\n[… cut here; the rest is in {}]"


def joined(sections: Iterable[Section]) -> str:
    placed = sorted(sections, key=lambda section: ORDER.index(section.name))
    return BETWEEN.join(section.text for section in placed if section.text)


def cut(section: Section, chars: int) -> Section:
    """As much of it as there is room for, up to the end of a line or a word, with a note that there is more."""
    if len(section.text) <= chars:
        return section
    note = _CUT.format(section.source or section.name)
    text = section.text[: max(0, chars - len(note))]
    end = max(text.rfind("\n"), text.rfind(" "))
    return Section(section.name, text[: end if end > len(text) // 2 else len(text)].rstrip() + note, section.source)


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
