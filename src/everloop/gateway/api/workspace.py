"""Whoever asks looks into their own workspace, reads, adds and removes.

A file there may hold anything, and strangers may have had a say in it. So it is served as `files.py` serves those of
conversations: nothing but pictures as what it is. A page is shown on demand alone, in a frame: see `framed.py`.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from aiohttp import web

from ...errors import PathRefused
from ...ports import WorkspaceFiles
from ...ports.workspace import OpenFile
from ..http.errors import Refused, sentence
from ..http.sending import PIECE, send_file
from .framed import LARGEST, framed
from .route import ApiAnswer, ApiCall

_STATUS = {"missing": 404, "too_large": 413, "no_room": 413}


async def list_folder(call: ApiCall) -> ApiAnswer:
    asked = call.query
    with _answering(looking=True):
        return await _own(call).list(asked.path, hidden=asked.hidden, skip=asked.skip, limit=asked.limit)


async def read_file(call: ApiCall) -> ApiAnswer:
    with _answering(looking=True):
        async with _own(call).open(call.query.path) as file:
            return await send_file(call.request, file, call.query.path)


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
