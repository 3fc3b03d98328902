"""edit_file: one exact piece of a text file replaced by another.

A call that a crash cut off is run again, and so a second run must change nothing. `edited` is built for that: what it
makes of a text it leaves as it is when asked again. An edit that cannot have this property, because the result would
hold the old text anew, is refused and the model gives more of the surroundings.
"""

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from ..core.people import Role
from ..core.tool import Effect
from ..errors import ToolError
from ..ports.tools import CallContext, Result, Shown, Tool
from .changes import Changes, check_sha
from .decorator import tool
from .effort import Effort
from .workspace import Seen
from .write_file import ExpectedSha, encoded

LARGEST = 8 * 1024 * 1024
_MOST = 1000  # places that are looked at


def edit_file_tool(changes: Changes) -> Tool:
    @tool(Effect.IDEMPOTENT, permission=Role.USER, scene=changes.scene, undoable=True)
    async def edit_file(
        path: Annotated[str, "Path in the workspace"],
        old_text: Annotated[str, "The text to replace, exactly as it stands there"],
        new_text: Annotated[str, "The text to put in its place"],
        context: CallContext,
        expected_sha: ExpectedSha = None,
    ) -> Result:
        """Replace one piece of a text file; old_text must occur in it only once."""
        seen = await changes.look(path, LARGEST)
        text = text_of(path, seen)
        old, new = as_lines_end(text, old_text, new_text)
        earlier = changes.made(path, seen, context)
        origin = path if await changes.is_tainted(seen) else ""
        try:
            after = await asyncio.to_thread(edited, text, old, new)
        except ToolError as error:
            if earlier is None:
                raise await changes.quoting(error, path, seen) from error
            after = text
        if after == text:
            done = f"Edited {path}."
            if earlier is None:
                return f"{path} already reads so; nothing was changed."
            return Shown(done, changes=(earlier,), origin=origin)
        check_sha(path, seen, expected_sha)
        change = await changes.write(path, encoded(after), seen, context)
        return Shown(f"Edited {path} at line {_line(text, text.index(old))}.", changes=(change,), origin=origin)

    return edit_file


def text_of(path: str, seen: Seen) -> str:
    """What a file that is to be edited says. Raises ToolError."""
    if seen.status is None:
        raise ToolError(f"there is no {path!r}")
    if seen.content is None:
        raise ToolError(f"{path!r} is too large to edit ({seen.status.st_size} bytes)")
    try:
        return seen.content.decode()
    except UnicodeDecodeError as error:
        line = seen.content.count(b"\n", 0, error.start) + 1
        raise ToolError(f"{path!r} is not UTF-8 text (line {line} holds other bytes)") from error


def as_lines_end(text: str, old: str, new: str) -> tuple[str, str]:
    """Both pieces with the line ends of the text, which a model is not shown."""
    if "\r\n" in text and "\r" not in old + new:
        return old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    return old, new


def edited(text: str, old: str, new: str) -> str:
    """The text with `old` replaced by `new`, or the same text if that has already been done. Raises ToolError.

    Asked again with its own result it returns it or raises, and never changes it.
    """
    if not old:
        raise ToolError("old_text is empty; use write_file to write a whole file")
    if old == new:
        raise ToolError("old_text and new_text are the same; nothing was changed")
    places = list(islice(_occurrences(text, old), _MOST + 1))
    if len(places) > _MOST:
        raise ToolError(f"old_text occurs more than {_MOST:,} times; give more of the surrounding lines")
    if not places:
        if new and new in text:
            return text
        raise ToolError(_not_found(text, old, new))
    effort = Effort("old_text and new_text are too alike to be told apart; give more of the surrounding lines")
    if all(_stands_in(text, place, old, new, effort) for place in places):
        return text
    if len(places) > 1:
        lines = ", ".join(str(_line(text, place)) for place in places[:10])
        raise ToolError(f"old_text occurs {len(places)} times (lines {lines}); give more of the surrounding lines")
    after = text[: places[0]] + new + text[places[0] + len(old) :]
    again = list(islice(_occurrences(after, old), 2))
    if len(again) == 1 and not _stands_in(after, again[0], old, new, effort):
        raise ToolError("the result would hold old_text once more; give whole lines, or more of the surrounding ones")
    return after


def _occurrences(text: str, piece: str) -> Iterator[int]:
    at = text.find(piece)
    while at >= 0:
        yield at
        at = text.find(piece, at + 1)


def _stands_in(text: str, place: int, old: str, new: str, effort: Effort) -> bool:
    """Whether the `old` at this place is a part of a `new` that is already there."""
    for at in _occurrences(new, old):
        effort.spend(len(new))
        if place >= at and text.startswith(new, place - at):
            return True
    return False


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _not_found(text: str, old: str, new: str) -> str:
    sentence = "old_text was not found in the file; nothing was changed."
    if not new:
        sentence += " If it was to be removed, it is already gone."
    from .nearest import nearest  # only an error needs it

    near = nearest(text, old)
    return f"{sentence} In the file {near}" if near else sentence
