"""Files: kept to be named in a message, and given to those who may read what tells of them.

A file may hold anything, and it is served by the page's own address. So nothing but pictures is ever shown as what it
is: all else is a download, in a sandbox should a browser open it anyway, and never of a type that could run (stored
XSS).
"""

from urllib.parse import quote

from aiohttp import web

from ...core.errors import EverloopError, MailRefused
from ...core.log import UserSaid
from ...readings.media import kind_of, limit_of, mime_of
from ..file_links import last_of, media_in
from ..http.errors import Refused
from .route import ApiAnswer, ApiCall
from .shapes import FileKept

FAR = 500  # entries before a result in which is looked for whose turn it was
SHOWN_AS_IT_IS = {"image/png", "image/jpeg", "image/gif", "image/webp"}  # nothing that could run a script
OPAQUE = {"application/zip", "application/octet-stream"}  # what only a closer look tells apart
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, max-age=31536000, immutable",
}


async def fetch(call: ApiCall) -> ApiAnswer:
    """One of one's own, by its reference alone."""
    return _answer(await _content(call, call.principal.user), "file")


async def fetch_told(call: ApiCall) -> ApiAnswer:
    """One that an entry of one of one's conversations tells of; without an entry, one of one's own."""
    owner = await _owner(call) if call.query.thread else call.principal.user
    return _answer(await _content(call, owner), call.path.name)


async def keep(call: ApiCall) -> ApiAnswer:
    data = bytearray()
    async for chunk in call.request.content.iter_any():
        data += chunk
        if len(data) > limit_of(kind_of(bytes(data[:64]))):
            raise Refused(413, "too_large", f"The file is larger than {limit_of(kind_of(bytes(data[:64]))):,} bytes.")
    if not data:
        raise Refused(400, "bad_request", "The file is empty.")
    name = "".join(letter for letter in call.query.name if letter.isprintable()).replace("/", "_") or "file"
    if mime_of(bytes(data)) in OPAQUE:
        await _admit(call, name, bytes(data))
    ref = await call.agent.files.put(call.principal.user, bytes(data), name)
    return FileKept(ref, mime_of(bytes(data)), name)


async def _admit(call: ApiCall, name: str, data: bytes) -> None:
    """What no message may bring is refused here already, in the same words, and not when it is sent."""
    try:
        await call.agent.enclose(name, data, call.principal.user)
    except MailRefused as error:
        raise Refused(409, "refused", str(error)) from error


async def _owner(call: ApiCall) -> str:
    """Whose folder the file lies in, as the entry says."""
    thread, seq, user = call.query.thread, call.query.seq, call.principal.user
    try:
        found = await call.agent.sessions.find(thread, user)
    except MailRefused as error:
        raise _missing() from error
    entries = await call.agent.store.history(found.id, seq - 1, 1) if found.id == thread and seq else []
    told = [media for each in entries if each.seq == seq for media in media_in(each.entry)]
    for media in told:
        if media.file == call.path.ref:
            return media.owner or await _principal(call, found.id, seq)
    raise _missing()


async def _principal(call: ApiCall, thread: str, seq: int) -> str:
    """Whose turn it was in which a call returned: a whole result is kept for them, and its entry does not say so."""
    earlier = await call.agent.store.history(thread, max(0, seq - 1 - FAR), min(FAR, seq - 1))
    asked = (each.entry for each in reversed(earlier) if isinstance(each.entry, UserSaid))
    return next((entry.principal or entry.author for entry in asked), call.principal.user)


async def _content(call: ApiCall, owner: str) -> bytes:
    try:
        return await call.agent.files.get(owner, call.path.ref)
    except (EverloopError, OSError, KeyError, ValueError) as error:
        raise _missing() from error


def _missing() -> Refused:
    return Refused(404, "not_found", "There is no such file.")


def _answer(data: bytes, name: str) -> web.Response:
    mime = mime_of(data)
    shown = mime in SHOWN_AS_IT_IS
    disposition = f"{'inline' if shown else 'attachment'}; {filename(name)}"
    charset = "utf-8" if mime == "text/plain" else None
    headers = {**HEADERS, "Content-Disposition": disposition}
    return web.Response(body=data, content_type=mime, charset=charset, headers=headers)


def filename(name: str) -> str:
    """For old programs in plain letters, for others as it is: RFC 6266."""
    name = "".join(letter if letter.isprintable() else "_" for letter in last_of(name))
    plain = "".join(letter if letter.isascii() and letter not in '"\\%;' else "_" for letter in name)
    return f"filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
