"""Patches as values: read from a unified diff or the `*** Begin Patch` form, and applied to a text.

A call that a crash cut off is run again, and so a patch must be seen to be there already: a hunk whose new lines stand
where its old ones would is left alone. A patch that would fit its own result once more is refused.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from ..errors import ToolError
from .effort import Effort
from .nearest import nearest

_RANGE = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_STEP = 30  # lines that could be looked at in the time that a comparison takes beside them
_FORMS = "a unified diff, or *** Begin Patch … *** End Patch"


class Hunk(Struct, frozen=True):
    """Lines that take the place of others. `line` is where the old ones are said to begin."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int | None = None
    anchor: str = ""  # a line above it
    kept_before: int = 0  # how many lines at the beginning and at the end are in both
    kept_after: int = 0
    ends_bare: bool | None = None  # whether the text then ends without a line break, if that is said


class FilePatch(Struct, frozen=True):
    """What is to become of one file; `to` is where it moves."""

    path: str
    kind: Literal["add", "update", "delete"]
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    to: str = ""


def parse(patch: str) -> list[FilePatch]:
    """The files of a patch. Raises ToolError with a sentence for the model."""
    lines = patch.replace("\r\n", "\n").split("\n")
    begin = next((at for at, line in enumerate(lines) if line.strip() == "*** Begin Patch"), None)
    found = _Begun(lines[begin + 1 :]).files() if begin is not None else _Unified(lines).files()
    if not found:
        raise ToolError(f"the patch names no file; give {_FORMS}")
    return found


class _Begun:
    """The form that begins with *** Begin Patch."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def files(self) -> list[FilePatch]:
        found: list[FilePatch] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if line.strip() == "*** End Patch":
                return found
            if path := _after(line, "*** Add File:"):
                found.append(self._added(path))
            elif path := _after(line, "*** Delete File:"):
                found.append(FilePatch(path, "delete"))
            elif path := _after(line, "*** Update File:"):
                found.append(self._updated(path))
            elif line.strip():
                raise ToolError(f"{line[:100]!r} is no line of a patch; expected *** Add, Update or Delete File: path")
        raise ToolError("the patch has no *** End Patch; nothing was changed")

    def _added(self, path: str) -> FilePatch:
        body = self._body()
        if wrong := next((line for line in body if not line.startswith("+")), None):
            raise ToolError(f"{path!r} is added, so each line begins with +, but there is {wrong[:100]!r}")
        return FilePatch(path, "add", content="".join(f"{line[1:]}\n" for line in body))

    def _updated(self, path: str) -> FilePatch:
        to = ""
        if self._at < len(self._lines) and (to := _after(self._lines[self._at], "*** Move to:")):
            self._at += 1
        body = self._body()
        pieces: list[tuple[str, list[str]]] = []
        for line in body:
            if line == "@@" or line.startswith("@@ "):
                pieces.append((line[2:].strip().removesuffix("@@").strip(), []))
                continue
            if not pieces:
                pieces.append(("", []))
            pieces[-1][1].append(line)
        hunks = tuple(_hunk(path, lines, anchor=anchor) for anchor, lines in pieces if lines)
        if not hunks and not to:
            raise ToolError(f"the patch changes nothing in {path!r}")
        return FilePatch(path, "update", hunks, to=to)

    def _body(self) -> list[str]:
        start = self._at
        while self._at < len(self._lines) and not self._lines[self._at].startswith("*** "):
            self._at += 1
        body = self._lines[start : self._at]
        if self._at < len(self._lines) and self._lines[self._at].strip() == "*** End of File":
            self._at += 1
            return [*body, *self._body()]
        return _without_empty_end(body)


class _Unified:
    """What diff -u and git diff write."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def files(self) -> list[FilePatch]:
        found, at = [], 0
        while at < len(self._lines):
            head = at
            if self._lines[at].startswith("diff --git "):
                at = self._until(at + 1, self._is_file)
            if self._names(at):
                names = at
                at = self._until(at + 2, self._is_file)
                found.append(self._file(head, names, at))
            elif at > head:
                found.append(self._without_hunks(head, at))
            elif self._lines[at].startswith("@@ "):
                raise ToolError(
                    f"the patch names no file before {self._lines[at][:60]!r}; begin with --- and +++ lines"
                )
            else:
                at += 1
        return found

    def _until(self, at: int, is_end: Callable[[int], bool]) -> int:
        while at < len(self._lines) and not is_end(at):
            at += 1
        return at

    def _is_file(self, at: int) -> bool:
        return self._lines[at].startswith("diff --git ") or self._names(at)

    def _names(self, at: int) -> bool:
        return (
            at + 1 < len(self._lines) and self._lines[at].startswith("--- ") and self._lines[at + 1].startswith("+++ ")
        )

    def _file(self, head: int, names: int, end: int) -> FilePatch:
        old, new = _names_of(self._lines[names][4:], self._lines[names + 1][4:])
        hunks = tuple(self._hunks(new or old, names + 2, end))
        if not old:
            if len(hunks) != 1 or hunks[0].old:
                raise ToolError(f"{new!r} is new, so the patch must have one hunk for it that only adds lines")
            end_of_text = "" if hunks[0].ends_bare or not hunks[0].new else "\n"
            return FilePatch(new, "add", content="\n".join(hunks[0].new) + end_of_text)
        if not new:
            return FilePatch(old, "delete", hunks)
        if not hunks:
            raise ToolError(f"the patch changes nothing in {new!r}")
        # Two names alone are no move: diff -u is often told to compare a.txt.orig with a.txt.
        if old != new and "rename from " in self._words(head, names):
            return FilePatch(old, "update", hunks, to=new)
        if "copy from " in self._words(head, names):
            raise ToolError(f"{new!r}: a patch cannot copy a file; add it as a new one")
        return FilePatch(new, "update", hunks)

    def _without_hunks(self, head: int, end: int) -> FilePatch:
        """A file that git only moves, adds empty or deletes empty."""
        words = self._words(head, end)
        if "rename from " in words and "rename to " in words:
            return FilePatch(words["rename from "], "update", to=words["rename to "])
        path = self._lines[head].rpartition(" b/")[2]
        if "new file mode " in words:
            return FilePatch(path, "add")
        if "deleted file mode " in words:
            return FilePatch(path, "delete")
        raise ToolError(f"{self._lines[head][:200]!r}: there is no change of text for this file, and no other is known")

    def _words(self, start: int, end: int) -> dict[str, str]:
        """What git says of a file before its hunks."""
        return {key: line.removeprefix(key) for line in self._lines[start:end] for key in _GIT if line.startswith(key)}

    def _hunks(self, path: str, start: int, end: int) -> Iterator[Hunk]:
        at = start
        while at < end:
            match = _RANGE.match(self._lines[at])
            if match is None and not self._lines[at].startswith("@@"):
                if self._lines[at].strip():
                    raise ToolError(f"{self._lines[at][:100]!r} is no line of a patch; expected @@ -1,2 +1,2 @@")
                at += 1
                continue
            body_end = self._until(at + 1, lambda at: at >= end or self._lines[at].startswith("@@"))
            body = _without_empty_end(self._lines[at + 1 : body_end])
            yield _hunk(path, body, line=int(match[1]) if match else None)
            at = body_end


_GIT = ("rename from ", "rename to ", "copy from ", "new file mode ", "deleted file mode ")


def _names_of(old: str, new: str) -> tuple[str, str]:
    old, new = old.partition("\t")[0].strip(), new.partition("\t")[0].strip()
    if '"' in (old[:1], new[:1]):
        raise ToolError(f"{old} {new}: write names without quotes")
    sides = [name[:2] for name in (old, new) if name != "/dev/null"]
    if sides in (["a/", "b/"], ["a/"], ["b/"]):
        old, new = (name if name == "/dev/null" else name[2:] for name in (old, new))
    old, new = ("" if name == "/dev/null" else name for name in (old, new))
    if not old and not new:
        raise ToolError("the patch names /dev/null twice")
    return old, new


def _after(line: str, word: str) -> str:
    return line.removeprefix(word).strip() if line.startswith(word) else ""


def _without_empty_end(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    return lines[:end]


def _hunk(path: str, body: Sequence[str], line: int | None = None, anchor: str = "") -> Hunk:
    old: list[str] = []
    new: list[str] = []
    kept: list[bool] = []
    ends_bare: bool | None = None
    side = " "
    for each in body:
        if each.startswith("\\"):  # \ No newline at end of file
            ends_bare = side != "-"
            continue
        side, text = (each[0], each[1:]) if each else (" ", "")
        if side not in " +-":
            raise ToolError(f"{path!r}: {each[:100]!r} begins with neither a space nor + or -")
        if side == "+" and ends_bare:
            ends_bare = False
        kept.append(side == " ")
        if side != "+":
            old.append(text)
        if side != "-":
            new.append(text)
    if all(kept):
        raise ToolError(f"{path!r}: a hunk has no line that begins with + or -")
    return Hunk(tuple(old), tuple(new), line, anchor, kept.index(False), kept[::-1].index(False), ends_bare)


def patched(text: str, hunks: Sequence[Hunk]) -> str:
    """The text with all hunks applied, or the same if they already are. Raises ToolError.

    Asked again with its own result it returns it or raises, and never changes it.
    """
    if 0 < text.count("\r\n") == text.count("\n"):  # a model is not shown how lines end
        return patched(text.replace("\r\n", "\n"), hunks).replace("\n", "\r\n")
    once = _patched(text, hunks)
    if once != text:
        try:
            twice = _patched(once, hunks)
        except ToolError:
            return once
        if twice != once:
            raise ToolError("the patch would fit its own result once more; give more lines around the change")
    return once


def _patched(text: str, hunks: Sequence[Hunk]) -> str:
    lines = text.removesuffix("\n").split("\n") if text else []
    out: list[str] = []
    done = moved = 0  # moved: by how much the lines stand lower than the patch says
    effort = Effort("the patch takes too long to be fitted into this file; use edit_file, or fewer hunks", 100_000_000)
    for number, hunk in enumerate(hunks, 1):
        place, is_there = _place(lines, hunk, number, done, moved, effort)
        if hunk.line:
            moved = place + 1 - hunk.line
        if is_there:
            moved += len(hunk.new) - len(hunk.old)
            continue
        out += (*lines[done:place], *hunk.new)
        done = place + len(hunk.old)
    out += lines[done:]
    bare = next((hunk.ends_bare for hunk in reversed(hunks) if hunk.ends_bare is not None), None)
    if bare is None:
        bare = bool(text) and not text.endswith("\n")
    return "\n".join(out) + ("" if bare or not out else "\n")


def _place(lines: list[str], hunk: Hunk, number: int, start: int, moved: int, effort: Effort) -> tuple[int, bool]:
    """Where a hunk fits, and whether it is there already. Raises ToolError when it is not clear."""
    if not hunk.old:
        place = _place_of_addition(lines, hunk, number, start, effort)
        return place, _stands_in(lines, place, hunk, effort)
    said = hunk.line - 1 + moved if hunk.line else None
    first = _anchored(lines, hunk.anchor, number, start, effort) if hunk.anchor else start
    if said is not None and said >= first:
        if _is_at(lines, said, hunk.old):
            return said, _stands_in(lines, said, hunk, effort)
        if _can_be_seen(hunk) and _is_at(lines, said, hunk.new):
            return said, True
    places = list(_occurrences(lines, hunk.old, first, effort))
    there = list(_occurrences(lines, hunk.new, first, effort)) if _can_be_seen(hunk) else []
    chosen = places[:1] if hunk.anchor else places
    if len(chosen) == 1:
        return chosen[0], _stands_in(lines, chosen[0], hunk, effort)
    if places:
        where = ", ".join(str(place + 1) for place in places[:10])
        raise ToolError(
            f"hunk {number} fits in {len(places)} places (lines {where}); give more lines around the change"
        )
    if there:
        return there[0], True
    near = nearest("\n".join(lines), "\n".join(hunk.old))
    raise ToolError(f"hunk {number} does not fit: its lines were not found.{f' In the file {near}' if near else ''}")


def _place_of_addition(lines: list[str], hunk: Hunk, number: int, start: int, effort: Effort) -> int:
    """Lines that are only added, with none around them: after a line whose number or text is said, or at the end."""
    if hunk.anchor:
        return _anchored(lines, hunk.anchor, number, start, effort) + 1
    if hunk.line is None:
        return len(lines)
    if hunk.line > len(lines):
        raise ToolError(f"hunk {number} adds lines after line {hunk.line}, but there are only {len(lines)}")
    return max(hunk.line, start)


def _anchored(lines: list[str], anchor: str, number: int, start: int, effort: Effort) -> int:
    """Where the line is at which the search begins."""
    for at in range(start, len(lines)):
        if lines[at].strip() == anchor:
            effort.spend(10 * (at - start))  # one by one, which is slower
            return at
    near = nearest("\n".join(lines), anchor)
    raise ToolError(f"hunk {number}: there is no line {anchor!r}.{f' In the file {near}' if near else ''}")


def _can_be_seen(hunk: Hunk) -> bool:
    """Whether the new lines alone tell that they are new; after a mere removal they do if it has two sides."""
    added = len(hunk.new) > hunk.kept_before + hunk.kept_after
    return added or (hunk.kept_before > 0 and hunk.kept_after > 0)


def _stands_in(lines: list[str], place: int, hunk: Hunk, effort: Effort) -> bool:
    """Whether the old lines at this place are a part of the new ones, which are already there."""
    size, new = len(hunk.old), hunk.new
    for at in range(len(new) - size + 1):
        effort.spend(size)
        if place >= at and new[at : at + size] == hunk.old:
            effort.spend(len(new))
            if tuple(lines[place - at : place - at + len(new)]) == new:
                return True
    return False


def _is_at(lines: list[str], place: int, block: Sequence[str]) -> bool:
    return bool(block) and lines[place : place + len(block)] == list(block)


def _occurrences(lines: list[str], block: Sequence[str], start: int, effort: Effort) -> Iterator[int]:
    if not block:
        return
    at = start - 1
    wanted, size = list(block), len(block)
    while True:
        before = at
        try:
            at = lines.index(wanted[0], at + 1)
        except ValueError:
            effort.spend(len(lines) - before)
            return
        effort.spend(at - before + size + _STEP)
        if lines[at : at + size] == wanted:
            yield at
