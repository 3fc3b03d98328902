"""What is a person's, handed over as a zip, or erased. One's own is handed to anybody; another's to the owner alone."""

from contextlib import aclosing

from aiohttp import web

from ...core.people import Role
from ...errors import MailRefused
from ...ports.directory import Person
from ..http.errors import Refused
from ..http.sending import HEADERS, filename
from .leaving_shapes import PersonErased
from .route import ApiAnswer, ApiCall

NOT_CONFIRMED = "Erasing is for good: name the whole id, and confirm=NAME as they are called."


async def export_person(call: ApiCall) -> ApiAnswer:
    person = await _exported(call)
    about = {
        "Cache-Control": "no-store",
        "Content-Disposition": f"attachment; {filename(f'everloop {person.name}.zip')}",
    }
    response = web.StreamResponse(headers=HEADERS | about)
    response.content_type = "application/zip"
    await response.prepare(call.request)
    async with aclosing(call.agent.export(person)) as pieces:
        async for piece in pieces:
            await response.write(piece)
    await response.write_eof()
    return response


async def erase_person(call: ApiCall) -> ApiAnswer:
    """Asked twice: the id stands in the path, and the name as what is confirmed."""
    call.principal.check_lasting()
    person = await call.agent.erasures.find(call.path.id, call.principal.role)
    if person.id != call.path.id or call.query.confirm != person.name:
        raise Refused(409, "not_confirmed", NOT_CONFIRMED)
    return PersonErased(person.id, await call.agent.erasures.erase(person))


async def _exported(call: ApiCall) -> Person:
    who = call.principal
    if call.path.id == who.user:
        return await call.agent.members.find(who.user)
    nobody = Refused(404, "not_found", "There is nobody of that id whose belongings you are handed.")
    if who.role is not Role.OWNER:  # whether there is such a person or not
        raise nobody
    who.need("admin")
    who.check_lasting()
    try:
        person = await call.agent.erasures.somebody(call.path.id)
    except MailRefused as error:
        raise nobody from error
    if person.id != call.path.id:
        raise nobody
    return person
