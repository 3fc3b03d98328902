"""The log of all processes of this home, as server-sent events while it is written. It has no end, and is therefore no
row of the API's document. Secrets were taken out when it was written."""

import time
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from ..core.people import Role
from ..errors import EverloopError
from ..ports.log_lines import LogWatch
from .access.guard import admit_again
from .access.permissions import Permission, Route
from .http.errors import Refused, refusal
from .http.sse import BEAT, Sse

PATH = "/api/log"
OWNERS = Permission(("admin",), Role.OWNER)


class LogQuery(Struct, forbid_unknown_fields=True):
    """How many of the last lines come first."""

    last: Annotated[int, Meta(ge=0, le=1000)] = 200


def routes(log: LogWatch) -> list[Route]:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await _follow(log, request, _query(request).last)
        except Refused as refused:
            return refusal(refused)

    return [Route("GET", PATH, handle, OWNERS, allows_head=False)]


def _query(request: web.Request) -> LogQuery:
    try:
        return msgspec.convert(dict(request.query), LogQuery, strict=False)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Refused(400, "bad_request", f"The query is not understood: {error}") from error


async def _follow(log: LogWatch, request: web.Request, last: int) -> web.StreamResponse:
    """Each event is a list of lines; the first comes at once, if only to say that there are none yet."""
    sse, lines, silent = Sse(request, {}), log.follow(last), time.monotonic()
    try:
        async for some in lines:
            if request.transport is None:
                break
            if sse.begun and (some or time.monotonic() - silent > BEAT):
                await admit_again(request)  # who may no longer is told nothing more
            if some or not sse.begun:
                await sse.send_all([([*some], "lines")])
            elif time.monotonic() - silent > BEAT:
                await sse.beat()
            else:
                continue
            silent = time.monotonic()
    except (ConnectionError, Refused):
        pass  # whoever listened has gone
    except EverloopError as error:
        if not sse.begun:
            raise Refused(409, "unreadable", str(error)) from error
        await sse.send_all([({"error": str(error)}, "failed")])
    finally:
        await lines.aclose()
    return sse.response
