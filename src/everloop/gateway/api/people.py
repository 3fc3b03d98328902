"""People: who is known, who waits to be let in, roles, accounts. Nobody gives more than they have themselves."""

from ...core.people import ROLES_GIVEN
from ..access.credentials import new_invitation
from .people_shapes import Invitation, PersonChanged, PersonList, shown
from .route import ApiAnswer, ApiCall

DAY = 86_400.0


async def list_people(call: ApiCall) -> ApiAnswer:
    members = call.agent.members
    return PersonList([shown(each) for each in await members.everybody()], await members.waiting())


async def introduce(call: ApiCall) -> ApiAnswer:
    asked, by = call.body, call.principal.role
    person = await call.agent.members.add(asked.name, ROLES_GIVEN[asked.role], by, asked.account or "")
    return await _now(call, person.id)


async def pair(call: ApiCall) -> ApiAnswer:
    asked, by = call.body, call.principal.role
    person = await call.agent.members.pair(asked.code, ROLES_GIVEN[asked.role], by, asked.name or "")
    return await _now(call, person.id)


async def change_person(call: ApiCall) -> ApiAnswer:
    members, asked, by, id = call.agent.members, call.body, call.principal.role, call.path.id
    role = ROLES_GIVEN[asked.role] if asked.role else None
    person = await members.change(id, by, name=asked.name, role=role, blocked=asked.blocked)
    return await _now(call, person.id)


async def invite(call: ApiCall) -> ApiAnswer:
    person = await call.agent.members.invitable(call.path.id, call.principal.role)
    path = await new_invitation(call.agent.store, person.id, call.body.days * DAY)
    return Invitation(path)


async def link_account(call: ApiCall) -> ApiAnswer:
    person = await call.agent.members.link(call.path.id, call.body.account, call.principal.role)
    return await _now(call, person.id)


async def unlink_account(call: ApiCall) -> ApiAnswer:
    await call.agent.members.unlink(call.query.account, call.principal.role, of=call.path.id)
    return await _now(call, call.path.id)


async def _now(call: ApiCall, id: str) -> PersonChanged:
    return PersonChanged(shown(await call.agent.members.find(id)))
