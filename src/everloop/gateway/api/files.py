"""Files: kept to be named in a message, and given to those who may read what tells of them.

A file may hold anything, and it is served by the page's own address. So nothing but pictures is ever shown as what it
is: all else is a download, in a sandbox should a browser open it anyway, and never of a type that could run (stored
XSS).
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from aiohttp import web

from ...core.log import UserSaid
from ...core.people import Role
from ...errors import EverloopError, MailRefused
from ...ports import Files
from ..file_links import media_in
from ..http.errors import Refused
from ..http.sending import HEADERS, send_file
from ..link_signing import signer
from .file_shapes import FileGone, OwnFile, OwnFiles
from .route import ApiAnswer, ApiCall
from .shapes import FileKept

FAR = 500  # entries before a result in which is looked for whose turn it was
CHECKED = 1_000_000  # bytes; what is larger is sent as it lies there


async def fetch(call: ApiCall) -> ApiAnswer:
    """One of one's own, by its reference alone."""
    return await _send(call, call.principal.user, "file")


async def fetch_told(call: ApiCall) -> ApiAnswer:
    """One that an entry of one of one's conversations tells of; without an entry, one of one's own."""
    owner = await _owner(call) if call.query.thread else call.principal.user
    return await _send(call, owner, call.path.name)


async def keep(call: ApiCall) -> ApiAnswer:
    """Piece by piece: however large it is, little of it is in memory."""
    record = await call.agent.keep_file(call.principal.user, pieces_of(call), call.query.name)
    return FileKept(record.ref, record.mime, record.name, record.size)


async def list_own(call: ApiCall) -> ApiAnswer:
    """What one has sent and was given, the latest first, and how much room there is."""
    user, asked = _whose(call), call.query
    found = await call.agent.store.recorded_files(user, limit=asked.limit + 1, skip=asked.skip)
    sign = await signer(call.agent)
    shown = [
        OwnFile(each.ref, each.name, each.mime, each.size, each.at, sign(user, each.ref, each.name))
        for each in found[: asked.limit]
    ]
    used, quota = await call.agent.files.used(user), await call.agent.file_quota(user)
    return OwnFiles(shown, len(found) > asked.limit, used, quota or None, call.agent.largest_file)


async def remove(call: ApiCall) -> ApiAnswer:
    """For good, also where a conversation tells of it."""
    if not await call.agent.remove_file(_whose(call), call.path.ref):
        raise _missing()
    return FileGone(call.path.ref)


def _whose(call: ApiCall) -> str:
    """One's own; the owner sees to anybody's, as with `everloop files --of`. Raises Refused."""
    who, of = call.principal, call.query.of
    if of in ("", who.user):
        return who.user
    if who.role is not Role.OWNER:
        raise Refused(403, "forbidden", "Only the owner sees to somebody else's files.")
    who.need("admin")
    who.check_lasting()
    return str(of)


async def pieces_of(call: ApiCall) -> AsyncIterator[bytes]:
    empty = True
    async for piece in call.request.content.iter_any():
        empty = empty and not piece
        yield piece
    if empty:
        raise Refused(400, "bad_request", "The file is empty.")


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


async def _send(call: ApiCall, owner: str, name: str) -> web.StreamResponse:
    return await send_kept(call.request, call.agent.files, owner, call.path.ref, name)


async def send_kept(
    request: web.Request, files: Files, owner: str, ref: str, name: str, cache: str = HEADERS["Cache-Control"]
) -> web.StreamResponse:
    """A file that is kept for someone, whole or in part."""
    async with AsyncExitStack() as stack:
        try:
            file = await stack.enter_async_context(files.open(owner, ref))
            if file.size <= CHECKED:
                await files.get(owner, ref)  # a damaged one is as good as none
        except (EverloopError, OSError, ValueError) as error:
            raise _missing() from error
        return await send_file(request, file, name, cache)


def _missing() -> Refused:
    return Refused(404, "not_found", "There is no such file.")
