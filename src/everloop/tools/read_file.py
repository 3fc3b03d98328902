"""read_file: a text file of the workspace, or a whole tool result that was too long to show, by ranges of lines.

An image or a PDF, whatever its name, is shown as what it is. A docx or xlsx is read as text, and so is a PDF beside its
looks.
"""

import asyncio
import codecs
import os
import re
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct, structs

from ..core.people import Role
from ..core.tool import Effect
from ..errors import ToolError
from ..ports import Files
from ..ports.skills import SkillFolders
from ..ports.tools import CallContext, Picture, Result, Shown, Tool
from ..readings.media import HEAD, LARGEST_IMAGE, kind_of, limit_of
from .decorator import tool
from .documents import LARGEST, can_use, office_kind, text_of_document
from .kinds import HEAD as SNIFFED
from .kinds import is_strange_kind
from .marks import MARKS, Marks
from .skill_paths import PREFIX, FileSpot, SkillPaths
from .workspace import Workspace

_INLINE = 128 * 1024  # bytes that are read and decoded faster than a thread is woken
_CHUNK = 64 * 1024
_FARTHEST = 256 * 1024 * 1024
_COUNTED = 8 * 1024 * 1024
_LONGEST_LINE = 10_000_000  # characters; up to four times as many bytes are read to find one of them
_FOOTER = 160
_REFERENCE = 17  # letters that name a kept file
_SURROGATE = re.compile("[\ud800-\udfff]")


class ByteSource(Struct, frozen=True):
    """Bytes that can be read from anywhere."""

    name: str
    size: int
    read_at: Callable[[int, int], bytes]  # position, count


class Document(Struct, frozen=True):
    """A file whose text is still to be found. `shown` is how a model sees it that can."""

    name: str
    kind: str
    data: bytes
    shown: Shown | None = None


class TextWindow(Struct, frozen=True):
    """Which part of a text is wanted: `limit` lines from a line and a column on, but at most so many characters."""

    offset: int
    limit: int
    column: int
    chars: int


def read_file_tool(
    workspace: Workspace,
    files: Files,
    max_chars: int,
    marks: Marks = MARKS,
    skills: SkillFolders | None = None,
) -> Tool:
    paths = SkillPaths(workspace, marks, skills)

    @tool(Effect.READ, local=True, permission=Role.USER)
    async def read_file(
        path: Annotated[str, "Path in the workspace, or a file:… or skill:… reference"],
        context: CallContext,
        offset: Annotated[int, Meta(ge=1, description="First line, from 1")] = 1,
        limit: Annotated[int, Meta(ge=1, description="Lines at most")] = 2000,
        column: Annotated[int, Meta(ge=1, le=_LONGEST_LINE, description="Where to begin in the first line")] = 1,
    ) -> Result:
        """Read text, pdf, docx or xlsx, or look at an image. A long text is read in parts: each says how to go on."""
        if context.role < Role.USER and not path.startswith(("file:", PREFIX)):
            raise ToolError("guests read what came with a message, by its file:… reference, and nothing else")
        spot = await paths.find(path, context)
        part = TextWindow(offset, limit, column, max(max_chars - _FOOTER, _FOOTER))
        origin, public = await _origin(spot, context)
        try:
            found = await _found(spot, files, context.principal, part)
            told = await _told(found, part) if isinstance(found, Document) else found
        except ToolError as error:
            error.origin = origin
            raise
        return told if not origin else structs.replace(_as_shown(told), origin=origin, public=public)

    return read_file


def _as_shown(told: Result) -> Shown:
    return told if isinstance(told, Shown) else Shown(told)


async def _origin(spot: FileSpot, context: CallContext) -> tuple[str, bool]:
    """Whose words it holds, and whether they may be searched for: those of a page or a paper may in which the model has
    put nothing itself. What is kept and is no result of this conversation's own tools came with a message, or from
    elsewhere."""
    path, marks = spot.path, spot.marks
    if spot.text is not None:  # a person has accepted it
        return "", False
    if path.startswith("file:"):
        known = any(ref.startswith(path.strip().rstrip(".…")) for ref in context.results)
        return "" if known else path[:_REFERENCE], False
    with spot.workspace.opened(path) as (fd, status):
        head = os.pread(fd, SNIFFED, 0)
    origin = await marks.origin_of(path, status, head)
    # By its content: another name, or a link, is something that the model can give to any file.
    return origin, is_strange_kind("", head) and not await marks.is_tainted(status)


async def _found(spot: FileSpot, files: Files, owner: str, part: TextWindow) -> Result | Document:
    workspace, path = spot.workspace, spot.path
    if (text := spot.text) is not None:
        return read(ByteSource(path, len(text), lambda at, count: text[at : at + count]), part)
    if path.startswith("file:"):
        content = await _stored(files, owner, path)
        source = ByteSource(path, len(content), lambda at, count: content[at : at + count])
        if len(content) <= _INLINE:
            return read(source, part)
        return await asyncio.to_thread(read, source, part)
    with workspace.opened(path) as (fd, status):
        if status.st_size <= _INLINE:
            return read(_source(path, fd, status), part)
    return await asyncio.to_thread(_read_large, workspace, path, part)


def _source(path: str, fd: int, status: os.stat_result) -> ByteSource:
    return ByteSource(path, status.st_size, lambda at, count: os.pread(fd, count, at))


def _read_large(workspace: Workspace, path: str, part: TextWindow) -> Result | Document:
    # Opened once more: a descriptor that the thread owns cannot be closed under it when the call is cancelled.
    with workspace.opened(path) as (fd, status):
        return read(_source(path, fd, status), part)


async def _stored(files: Files, owner: str, ref: str) -> bytes:
    try:
        async with files.open(owner, ref) as file:
            if file.size > LARGEST_IMAGE:
                raise ToolError(f"{ref} has {file.size:,} bytes; load_file brings it into the workspace")
        return await files.get(owner, ref)
    except FileNotFoundError as error:
        raise ToolError(f"there is no stored result {ref}") from error
    except ValueError as error:
        raise ToolError(f"{ref[:100]!r}: {error}") from error
    except OSError as error:
        raise ToolError(f"{ref} cannot be read ({error.strerror})") from error


def read(source: ByteSource, part: TextWindow) -> Result | Document:
    """The whole of an image or a document, or the part of a text. Raises ToolError when it is neither."""
    head = source.read_at(0, HEAD)
    mime = kind_of(head)
    if mime == "application/pdf" and can_use("pdf") and source.size <= LARGEST:
        shown = _shown(source, mime) if source.size <= limit_of(mime) and (part.offset, part.column) == (1, 1) else None
        return Document(source.name, "pdf", source.read_at(0, source.size), shown)
    if mime:
        return _shown(source, mime)
    if head.startswith(b"PK\3\4") and source.size <= LARGEST:
        data = source.read_at(0, source.size)
        if kind := office_kind(data):
            return Document(source.name, kind, data)
    return read_part(source, part)


async def _told(document: Document, part: TextWindow) -> Result:
    """The part of a document's text; a PDF's looks come with the beginning of it."""
    try:
        text = await text_of_document(document.name, document.kind, document.data)
    except ToolError as error:
        if document.shown is None:
            raise
        return Shown(f"{document.shown.text}\n[{error}]", document.shown.pictures)
    data = text.replace("\0", "").encode()
    source = ByteSource(document.name, len(data), lambda at, count: data[at : at + count])
    part = TextWindow(part.offset, part.limit, part.column, max(part.chars - _FOOTER, _FOOTER))
    page = read_part(source, part) if text.strip() else "[there is no text in it]"
    if document.shown is None:
        return page
    return Shown(f"{document.shown.text}. Its text:\n{page}", document.shown.pictures)


def _shown(source: ByteSource, mime: str) -> Shown:
    if source.size > limit_of(mime):
        raise ToolError(f"{source.name!r} has {source.size:,} bytes; of {mime} at most {limit_of(mime):,} can be shown")
    name = source.name.rpartition("/")[2]
    data = source.read_at(0, source.size)
    return Shown(f"{name}: {mime}, {len(data):,} bytes", (Picture(data, mime, name),))


def read_part(source: ByteSource, part: TextWindow) -> str:
    """The part as text, and a note on what follows. Raises ToolError when it is not text or not there."""
    if b"\0" in source.read_at(0, 8192):
        raise ToolError(f"{source.name!r} is not text but binary data ({source.size} bytes)")
    if not source.size:
        return "[the file is empty]"
    start = _start_of_line(source, part.offset)
    text, is_all = _decoded(source, start, part)
    first_line = text.find("\n") if "\n" in text else len(text)
    if part.column > first_line + 1:
        raise ToolError(f"line {part.offset} of {source.name!r} has only {first_line} characters")
    text = text[part.column - 1 :]
    shown = _cut(text, part.limit, part.chars)
    _refuse_what_is_not_text(source, shown, part)
    if not is_all or len(shown) < len(text):
        return f"{shown.removesuffix(chr(10))}\n{_how_to_go_on(source, shown, part)}"
    return shown if (part.offset, part.column) == (1, 1) else f"{shown.removesuffix(chr(10))}\n[the end]"


def _start_of_line(source: ByteSource, line: int) -> int:
    position, missing = 0, line - 1
    while missing and position < min(source.size, _FARTHEST):
        chunk = source.read_at(position, _CHUNK)
        if not chunk:
            break
        here = chunk.count(b"\n")
        if here < missing:
            position += len(chunk)
            missing -= here
            continue
        at = -1
        for _ in range(missing):
            at = chunk.index(b"\n", at + 1)
        position += at + 1
        missing = 0
    if position >= source.size:
        raise ToolError(f"{source.name!r} has fewer than {line} lines")
    if missing:
        raise ToolError(f"line {line} of {source.name!r} lies beyond the first {_FARTHEST >> 20} MiB")
    return position


def _decoded(source: ByteSource, start: int, part: TextWindow) -> tuple[str, bool]:
    """At least as many characters from `start` on as the part needs; or all there are, and True."""
    data = source.read_at(start, min(4 * (part.column + part.chars), _FARTHEST))
    is_all = start + len(data) >= source.size
    # Bytes that are not UTF-8 matter only if they are shown: kept as surrogates here, and looked for then.
    return codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(data, final=is_all), is_all


def _refuse_what_is_not_text(source: ByteSource, shown: str, part: TextWindow) -> None:
    if "\0" in shown:
        raise ToolError(f"{source.name!r} is not text but binary data ({source.size} bytes)")
    if not shown.isascii() and (bad := _SURROGATE.search(shown)):
        line = part.offset + shown.count("\n", 0, bad.start())
        raise ToolError(f"{source.name!r} is not UTF-8 text (line {line} holds other bytes)")


def _cut(text: str, lines: int, chars: int) -> str:
    """At most so many lines and characters: whole lines, if one fits."""
    head = text[:chars]
    *_, rest = head.split("\n", lines)
    if head.count("\n") >= lines:
        return head[: len(head) - len(rest)]
    return head if len(head) == len(text) else head[: head.rfind("\n") + 1] or head


def _how_to_go_on(source: ByteSource, shown: str, part: TextWindow) -> str:
    line = part.offset + shown.count("\n")
    if shown.endswith("\n"):
        return f"[lines {part.offset}-{line - 1} of {_lines_in(source)}; continue with offset={line}]"
    column = len(shown) - shown.rfind("\n") - 1 + (part.column if line == part.offset else 1)
    return f"[line {line} goes on; continue with offset={line}, column={column}]"


def _lines_in(source: ByteSource) -> str:
    if source.size > _COUNTED:
        return f"a file of {source.size} bytes"
    lines = sum(source.read_at(at, _CHUNK).count(b"\n") for at in range(0, source.size, _CHUNK))
    return str(lines + (source.read_at(source.size - 1, 1) != b"\n"))
