"""Files as they are given out. One may hold anything, and it is served by the page's own address: so nothing but
pictures is ever shown as what it is. All else is a download, in a sandbox should a browser open it anyway, and never of
a type that could run (stored XSS)."""

from urllib.parse import quote

from aiohttp import web

from ...ports.workspace import OpenFile
from ...readings.filenames import plain_name
from ...readings.media import SNIFFED, mime_of_head
from .errors import Refused
from .ranges import RangeRefused, asked_range

PIECE = 262_144
SHOWN_AS_IT_IS = {"image/png", "image/jpeg", "image/gif", "image/webp"}  # nothing that could run a script
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, max-age=31536000, immutable",
}


async def send_file(request: web.Request, file: OpenFile, path: str, cache: str = "no-store") -> web.StreamResponse:
    """As much as was promised; what has become shorter meanwhile breaks off, and the client sees that it did."""
    head = await file.read(0, min(SNIFFED, file.size))
    try:
        begin, end, status = asked_range(request, file.size, file.tag)
    except RangeRefused as error:
        raise Refused(416, "range", str(error)) from error
    headers = _headers(head, path, file, begin, end, status) | {"Cache-Control": cache}
    response = web.StreamResponse(status=status, headers=headers)
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
    mime = mime_of_head(head, file.size)
    shown = mime in SHOWN_AS_IT_IS
    told = {
        **HEADERS,
        "Accept-Ranges": "bytes",
        "ETag": f'"{file.tag}"',
        "Content-Type": f"{mime}; charset=utf-8" if mime == "text/plain" else mime,
        "Content-Disposition": f"{'inline' if shown else 'attachment'}; {filename(path)}",
    }
    return told | ({"Content-Range": f"bytes {begin}-{end - 1}/{file.size}"} if status == 206 else {})


def filename(name: str) -> str:
    """For old programs in plain letters, for others as it is: RFC 6266."""
    name = plain_name(name)
    plain = "".join(letter if letter.isascii() and letter not in '"\\%;' else "_" for letter in name)
    return f"filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
