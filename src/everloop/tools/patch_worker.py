"""Applying a patch to the files of a workspace: all that `apply_patch` does, loaded when it is first used.

Everything is looked at and worked out before anything is changed.
"""

import asyncio
from typing import Any

from msgspec import Struct

from ..core.tool import FileChange
from ..errors import ToolError
from ..ports.tools import CallContext, Result, Shown
from .changes import Changes, check_sha
from .edit_file import LARGEST, text_of
from .patch import FilePatch, parse, patched
from .workspace import Seen, Workspace
from .write_file import encoded

_MOST_FILES = 200
_MOST_BYTES = 64 * 1024 * 1024  # of them all, before and after, which are held in memory


class Planned(Struct, frozen=True):
    """A change of one file that has been checked. Without `data` it is removed; `already` means that it is done."""

    path: str
    verb: str
    seen: Seen
    data: bytes | None = None
    already: bool = False
    earlier: FileChange | None = None

    @property
    def size(self) -> int:
        return len(self.seen.content or b"") + len(self.data or b"")


async def apply(
    workspace: Workspace, changes: Changes, patch: str, context: CallContext, expected: dict[str, str]
) -> Result:
    """Change the files, and what is said of it. Raises ToolError, which says what was done if it was anything."""
    files = parse(patch)
    _check_names(workspace, files, expected)
    plan: list[Planned] = []
    for file in files:
        try:
            plan += await _plan(changes, file, context, expected)
        except ToolError as error:
            raise await changes.quoting(error, file.path, await changes.look(file.path, LARGEST)) from error
        if sum(each.size for each in plan) > _MOST_BYTES:
            raise ToolError(
                f"the files of the patch have more than {_MOST_BYTES >> 20} MiB together; patch fewer at once"
            )
    tainted = [each.path for each in plan if await changes.is_tainted(each.seen)]
    return await _carry_out(changes, plan, context, tainted[0] if tainted else "")


def _check_names(workspace: Workspace, files: list[FilePatch], expected: dict[str, Any]) -> None:
    if len(files) > _MOST_FILES:
        raise ToolError(f"the patch is for {len(files)} files; at most {_MOST_FILES} are taken at once")
    names = [workspace.parts_of(name) for file in files for name in (file.path, file.to) if name]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ToolError(f"the patch names {'/'.join(twice)!r} twice; put all changes of a file into one place")
    if unknown := [path for path in expected if path not in {file.path for file in files}]:
        raise ToolError(f"expected_sha names {unknown[0]!r}, which the patch does not")
    if not all(isinstance(sha, str) for sha in expected.values()):
        raise ToolError("expected_sha gives a sha256 for a path, both as text")


async def _plan(changes: Changes, file: FilePatch, context: CallContext, expected: dict[str, str]) -> list[Planned]:
    seen = await changes.look(file.path, LARGEST)
    if seen.by_link and (file.kind == "delete" or file.to):
        raise ToolError(f"{file.path!r} is a link, not a regular file")
    earlier = changes.made(file.path, seen, context)
    match file.kind:
        case "add":
            planned = _added(file, seen, earlier)
        case "delete":
            planned = _deleted(file, seen)
        case "update" if file.to:
            return await _moved(changes, file, seen, context, expected)
        case "update":
            planned = await _updated(file, seen, earlier)
    if not planned.already:
        check_sha(file.path, seen, expected.get(file.path))
    return [planned]


def _added(file: FilePatch, seen: Seen, earlier: FileChange | None) -> Planned:
    data = encoded(file.content)
    if seen.exists and seen.content != data:
        raise ToolError(f"{file.path!r} already exists; update it, or delete it first. Nothing was changed")
    return Planned(file.path, "added", seen, data, seen.exists, earlier)


def _deleted(file: FilePatch, seen: Seen) -> Planned:
    if file.hunks and seen.exists:
        _explained(file.path, text_of(file.path, seen), file)
    return Planned(file.path, "deleted", seen, already=not seen.exists)


async def _updated(file: FilePatch, seen: Seen, earlier: FileChange | None) -> Planned:
    text = text_of(file.path, seen)
    try:
        after = await asyncio.to_thread(_explained, file.path, text, file)
    except ToolError:
        if earlier is None:
            raise
        after = text
    return Planned(file.path, "changed", seen, encoded(after), after == text, earlier)


async def _moved(
    changes: Changes, file: FilePatch, seen: Seen, context: CallContext, expected: dict[str, str]
) -> list[Planned]:
    there = await changes.look(file.to, LARGEST)
    if not seen.exists and there.exists:  # moved by an attempt that was cut off
        text = text_of(file.to, there)
        if _explained(file.to, text, file) == text:
            earlier = changes.made(file.to, there, context)
            return [
                Planned(file.to, "added", there, already=True, earlier=earlier),
                Planned(file.path, "deleted", seen, already=True),
            ]
    check_sha(file.path, seen, expected.get(file.path))
    data = encoded(_explained(file.path, text_of(file.path, seen), file))
    if there.exists and there.content != data:
        raise ToolError(f"{file.path!r} cannot be moved: {file.to!r} already exists. Nothing was changed")
    return [
        Planned(file.to, "added", there, data, there.exists, changes.made(file.to, there, context)),
        Planned(file.path, "deleted", seen),
    ]


def _explained(path: str, text: str, file: FilePatch) -> str:
    try:
        return patched(text, file.hunks) if file.hunks else text
    except ToolError as error:
        raise ToolError(f"{path!r}: {error}\nNothing was changed in any file.") from error


async def _carry_out(changes: Changes, plan: list[Planned], context: CallContext, origin: str) -> Result:
    done: list[FileChange] = []
    sentences: list[str] = []
    for number, each in enumerate(plan):
        try:
            change, sentence = await _carry_out_one(changes, each, context)
        except ToolError as error:
            rest = ", ".join(left.path for left in plan[number + 1 :]) or "none"
            happened = "; ".join(sentences) or "nothing"
            told = f"{error}. The patch was applied in part. Done: {happened}. Not tried: {rest}."
            raise ToolError(told, tuple(done), origin=origin) from error
        done += [change] if change else []
        sentences.append(sentence)
    return Shown(f"Patch applied: {'; '.join(sentences)}.", changes=tuple(done), origin=origin)


async def _carry_out_one(changes: Changes, each: Planned, context: CallContext) -> tuple[FileChange | None, str]:
    if each.already:
        if each.earlier is not None:
            return each.earlier, f"{each.verb} {each.path}"
        state = "was not there" if each.verb == "deleted" else "already reads so"
        return None, f"{each.path} {state}"
    if each.data is None:
        return await changes.remove(each.path, each.seen, context), f"{each.verb} {each.path}"
    return await changes.write(each.path, each.data, each.seen, context), f"{each.verb} {each.path}"
