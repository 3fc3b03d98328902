"""The API of a house behind the guard: whoever names a person is that person."""

from collections.abc import Iterable

from aiohttp import web

from everloop.app.agent import Agent
from everloop.core.people import Role
from everloop.gateway import api
from everloop.gateway.access.permissions import Route
from everloop.gateway.access.principal import Principal
from everloop.gateway.access.scopes import SCOPES

from ..guarded import guarded

PEOPLE = {
    "owner": Principal("owner", Role.OWNER, frozenset(SCOPES), "token"),
    "reader": Principal("owner", Role.OWNER, frozenset({"read"}), "token"),
    "guest": Principal("bob", Role.GUEST, frozenset(SCOPES), "token"),
    "user": Principal("ada", Role.USER, frozenset(SCOPES), "token"),
}


def stand_in(agent: Agent, further: Iterable[Route] = ()) -> web.Application:
    return guarded([*api.routes(agent), *further], PEOPLE.get)
