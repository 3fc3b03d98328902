"""Whoever asks looks into their own workspace, reads, adds and removes.

A file there may hold anything, and strangers may have had a say in it. So it is served as `files.py` serves those of
conversations: nothing but pictures as what it is. A page is shown on demand alone, in a frame: see `framed.py`.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from aiohttp import web

from ...core.errors import PathRefused
from ...core.ports import WorkspaceFiles
from ...core.ports.workspace import OpenFile
from ...readings.media import mime_of
from ..http.errors import Refused, sentence
from ..http.ranges import RangeRefused, asked_range
from .files import HEADERS, SHOWN_AS_IT_IS, filename
from .framed import LARGEST, framed
from .route import ApiAnswer, ApiCall

HEAD = 65536  # bytes that tell what a file is
PIECE = 262_144
_STATUS = {"missing": 404, "too_large": 413}


async def list_folder(call: ApiCall) -> ApiAnswer:
    asked = call.query
    with _answering(looking=True):
        return await _own(call).list(asked.path, hidden=asked.hidden, skip=asked.skip, limit=asked.limit)


async def read_file(call: ApiCall) -> ApiAnswer:
    with _answering(looking=True):
        async with _own(call).open(call.query.path) as file:
            return await _send(call.request, file, call.query.path)


async def put_file(call: ApiCall) -> ApiAnswer:
    with _answering():
        return await _own(call).put(call.query.path, _pieces(call.request), replace=call.query.replace)


async def remove_file(call: ApiCall) -> ApiAnswer:
    with _answering():
        return await _own(call).remove(call.query.path)


async def show_in_frame(call: ApiCall) -> ApiAnswer:
    with _answering(looking=True):
        async with _own(call).open(call.query.path) as file:
            if file.size > LARGEST:
                raise Refused(413, "too_large", f"Only files of up to {LARGEST:,} bytes are shown. Download it.")
            return framed(await _whole(file), call.query.path)


def _own(call: ApiCall) -> WorkspaceFiles:
    return call.agent.workspace(call.principal.user)


@contextmanager
def _answering(looking: bool = False) -> Iterator[None]:
    try:
        yield
    except PathRefused as error:
        status = 404 if looking else _STATUS.get(error.kind, 409)
        code = {"missing": "not_found"}.get(error.kind, error.kind)
        raise Refused(status, code, sentence(error)) from error


async def _pieces(request: web.Request) -> AsyncIterator[bytes]:
    async for piece in request.content.iter_any():
        yield piece


async def _whole(file: OpenFile) -> bytes:
    """As long as it was when it was opened, even if it grows."""
    data = bytearray()
    while len(data) < file.size and (piece := await file.read(len(data), min(PIECE, file.size - len(data)))):
        data += piece
    return bytes(data)


async def _send(request: web.Request, file: OpenFile, path: str) -> web.StreamResponse:
    """As much as was promised; what has become shorter meanwhile breaks off, and the client sees that it did."""
    head = await file.read(0, min(HEAD, file.size))
    try:
        begin, end, status = asked_range(request, file.size, file.tag)
    except RangeRefused as error:
        raise Refused(416, "range", str(error)) from error
    response = web.StreamResponse(status=status, headers=_headers(head, path, file, begin, end, status))
    response.content_length = end - begin
    await response.prepare(request)
    if request.method != "HEAD":
        while begin < end:
            piece = await file.read(begin, min(PIECE, end - begin))
            if not piece:
                assert request.transport is not None
                request.transport.abort()
                return response
            await response.write(piece)
            begin += len(piece)
    await response.write_eof()
    return response


def _headers(head: bytes, path: str, file: OpenFile, begin: int, end: int, status: int) -> dict[str, str]:
    mime = _mime(head, whole=file.size <= HEAD)
    shown = mime in SHOWN_AS_IT_IS
    told = {
        **HEADERS,
        "Cache-Control": "no-store",
        "Accept-Ranges": "bytes",
        "ETag": f'"{file.tag}"',
        "Content-Type": f"{mime}; charset=utf-8" if mime == "text/plain" else mime,
        "Content-Disposition": f"{'inline' if shown else 'attachment'}; {filename(path)}",
    }
    return told | ({"Content-Range": f"bytes {begin}-{end - 1}/{file.size}"} if status == 206 else {})


def _mime(head: bytes, whole: bool) -> str:
    """By its beginning, which may end in the middle of a letter."""
    if whole:
        return mime_of(head)
    return next((mime for cut in range(4) if (mime := mime_of(head[: len(head) - cut])) == "text/plain"), mime_of(head))
