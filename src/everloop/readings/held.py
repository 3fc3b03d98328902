"""Changes of files that stand in prompts, held back until a person has seen them (against prompt injection).

What a person, or a conversation without strangers' words, writes into such a file is accepted at once. What came there
while a taint lasted (runtime/tainting.py) is held: prompts go on with what was accepted before, until somebody says
yes.
"""

from collections.abc import Sequence
from hashlib import sha256

from msgspec import Struct, structs

from ..core.people import is_chat
from ..ports.permission import FileState, Held, PromptFile
from ..ports.rows import Taint

WHY = "strangers' words were read where this was changed, and what stands in this file is told in every conversation"
COMPARED = 2000  # lines
PRIVATE = "memory/"
BY_COMMAND = "a command changed this file, and what stands in it is told to the model in every conversation"


def is_private(held: Held) -> bool:
    """Whether nobody but the person whose file it is may see it: what is remembered for them."""
    return is_memory_file(held.name) and not is_chat(held.owner)


def is_memory_file(name: str) -> bool:
    return name.startswith(PRIVATE)


def why_of(held: Held) -> str:
    return WHY if held.outside else BY_COMMAND


class ChangeSource(Struct, frozen=True):
    """Where a change came from, as far as that is known."""

    thread: str = ""
    session: str = ""
    outside: bool = True


def judge(
    before: PromptFile | None, name: str, found: FileState, source: ChangeSource | None, place: str
) -> PromptFile:
    """What becomes of a file that holds `found`; a `source` says that it was changed while a taint lasted.

    What is held stays so until the file is as accepted: an edit by hand may have left strangers' lines in it."""
    if before is None:
        return PromptFile(name, found)
    if found == before.accepted:
        return before if before.held is None else _after(before, held=None)
    if before.held and found == before.held.found:
        return before
    if source is None and before.held is None:
        return _after(before, accepted=found)
    of = source or ChangeSource(before.held.thread, before.held.session, before.held.outside) if before.held else source
    assert of is not None
    id = sha256(f"{place}:{name}:{before.version}:{found!r}".encode()).hexdigest()[:10]
    held = Held(id, name, before.accepted, found, of.thread, of.session, of.outside, owner=before.owner)
    return _after(before, held=held)


def settled(before: PromptFile, allow: bool) -> PromptFile:
    assert before.held is not None
    accepted = before.held.found if allow else before.accepted
    return _after(before, accepted=accepted, held=None)


def told(before: PromptFile) -> PromptFile:
    assert before.held is not None
    return _after(before, held=structs.replace(before.held, asked=True))


def _after(before: PromptFile, **changed: object) -> PromptFile:
    return structs.replace(before, version=before.version + 1, **changed)


def latest(taints: Sequence[Taint]) -> Taint | None:
    """The one by which a change most likely came: of a stranger's rather than a command's, the last that began."""
    return max(taints, key=lambda taint: (taint.outside, taint.began), default=None)


def difference(held: Held) -> str:
    """The whole change, with nothing in it that a person cannot see."""
    before, after = _lines(held.accepted.content), _lines(held.found.content)
    notes = _notes(held.accepted, held.found)
    lines = compared(before, after)
    return "\n".join((*notes, *("".join(map(_seen, line)) for line in lines)))


def _notes(accepted: FileState, found: FileState) -> list[str]:
    notes = ["(there was no such file)"] if accepted.content is None else []
    notes += ["(the file is gone)"] if found.content is None else []
    notes += [f"(it is a link to {found.link!r} now)"] if found.link not in ("", accepted.link) else []
    if found.names > max(1, accepted.names):
        notes.append(f"(it is one file with {found.names} names now: what is written to another one is in it)")
    return notes


def compared(before: list[str], after: list[str]) -> list[str]:
    """What differs between two texts, as `diff -u` tells it, without their names."""
    if len(before) + len(after) > COMPARED:
        return _listed(before, after) if before != after else []
    from difflib import unified_diff  # only a question needs it

    return [*unified_diff(before, after, lineterm="")][2:]  # without the names


def _listed(before: list[str], after: list[str]) -> list[str]:
    """All that differs, one after the other: to compare long texts line by line could take minutes."""
    begin = 0
    while begin < min(len(before), len(after)) and before[begin] == after[begin]:
        begin += 1
    end = 0
    while end < min(len(before), len(after)) - begin and before[-1 - end] == after[-1 - end]:
        end += 1
    old, new = before[begin : len(before) - end], after[begin : len(after) - end]
    where = f"@@ -{begin + 1},{len(old)} +{begin + 1},{len(new)} @@"
    return [where, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]


def _lines(content: bytes | None) -> list[str]:
    return [] if content is None else content.decode("utf-8", "backslashreplace").split("\n")


def _seen(letter: str) -> str:
    return letter if letter.isprintable() or letter == "\t" else f"\\u{ord(letter):04x}"
