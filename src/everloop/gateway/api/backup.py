"""Backups: shown, made, handed out and scheduled for the owner."""

from aiohttp import web

from ...errors import MailRefused
from ..http.errors import Refused
from ..http.sending import HEADERS, filename
from .route import ApiAnswer, ApiCall


async def show_backups(call: ApiCall) -> ApiAnswer:
    return await call.agent.backups.standing()


async def create_backup(call: ApiCall) -> ApiAnswer:
    return await call.agent.backups.create()


async def schedule_backups(call: ApiCall) -> ApiAnswer:
    call.principal.check_lasting()
    await call.agent.backups.schedule(call.body.every, call.body.keep)
    return await call.agent.backups.standing()


async def adopt_copy(call: ApiCall) -> ApiAnswer:
    call.principal.check_lasting()
    await call.agent.backups.adopt()
    return await call.agent.backups.standing()


async def download_backup(call: ApiCall) -> ApiAnswer:
    call.principal.check_lasting()
    try:
        size, pieces = await call.agent.backups.download(call.path.name)
    except MailRefused as error:
        raise Refused(404, "not_found", str(error)) from error
    about = {"Cache-Control": "no-store", "Content-Disposition": f"attachment; {filename(call.path.name)}"}
    response = web.StreamResponse(headers=HEADERS | about)
    response.content_type, response.content_length = "application/octet-stream", size
    await response.prepare(call.request)
    async for piece in pieces:
        await response.write(piece)
    await response.write_eof()
    return response
